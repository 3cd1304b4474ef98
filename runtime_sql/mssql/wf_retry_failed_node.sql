-- The way back from FAILED: the node that failed goes on, and all that its failure ended (R14).
-- Twin: pg/wf_retry_failed_node.sql
--
-- What goes back, worked out as three sets of executions:
--     causes   the ACTION or WAIT_EVENT whose error ended the instance, and others whose failure
--              would fail a restored parent again at once (branches that failed in the same call, or
--              under keep_going); each is tried once more
--     chain    the ancestors that failed by them: RUNNING again
--     back     what those ancestors cancelled when they closed: ACTIONs and WAIT_EVENTs become READY,
--              composites RUNNING
-- Counters, items and counts of loops are kept when a composite fails or is cancelled by a failure
-- (wf_closing.sql), so that nothing is evaluated twice: a FOREACH goes on with the items it had.
-- Time-outs of what goes back count anew, and an ACTION gets a fresh retry budget.
--
-- The sets are tables of sp_retry_failed_node: #cause (node_execution_id), #restored
-- (node_execution_id, is_chain), and #reopened, which has both with what they are.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Adds to #cause the causes that it leads to: the failed children of the composites that would be
-- restored, where those fail the composite again or nobody would ever look at them. Leaves
-- #restored as the causes make it.
create or alter procedure wf.wf_retry_causes
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    while 1 = 1
    begin
        exec wf.wf_retry_restored @workflow_instance_id = @workflow_instance_id;
        insert into #cause (node_execution_id)
        select distinct f.error_execution_id
          from (select c.error_execution_id,
                       count(*) over (partition by r.node_execution_id) as failed_count,
                       coalesce(j.allowed_failures, 0) as allowed_failures
                  from #restored as r
                  join wf.node_execution as c
                    on c.workflow_instance_id = @workflow_instance_id
                   and c.parent_execution_id = r.node_execution_id
                   and c.status = N'FAILED'
                  left join wf.join_counter as j on j.node_execution_id = r.node_execution_id
                 where c.node_execution_id not in
                           (select x.node_execution_id from #restored as x)
                   and c.node_execution_id not in
                           (select x.node_execution_id from #cause as x)) as f
         where f.failed_count > f.allowed_failures
           and f.error_execution_id not in (select x.node_execution_id from #cause as x);
        if @@rowcount = 0 return;
    end;
end;
GO

-- Makes #restored what a retry of #cause makes open again, the causes apart: their failed ancestors
-- (is_chain) and what those cancelled.
create or alter procedure wf.wf_retry_restored
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_count int;

    delete from #restored;
    insert into #restored (node_execution_id, is_chain)
    select distinct p.node_execution_id, 1
      from #cause as x
      join wf.node_execution as c on c.node_execution_id = x.node_execution_id
      join wf.node_execution as p on p.node_execution_id = c.parent_execution_id;
    set @v_count = @@rowcount;
    while @v_count > 0
    begin
        insert into #restored (node_execution_id, is_chain)
        select distinct p.node_execution_id, 1
          from #restored as r
          join wf.node_execution as c on c.node_execution_id = r.node_execution_id
          join wf.node_execution as p on p.node_execution_id = c.parent_execution_id
         where p.node_execution_id not in (select y.node_execution_id from #restored as y);
        set @v_count = @@rowcount;
    end;
    set @v_count = 1;
    while @v_count > 0
    begin
        insert into #restored (node_execution_id, is_chain)
        select b.node_execution_id, 0
          from #restored as r
          join wf.node_execution as b
            on b.workflow_instance_id = @workflow_instance_id
           and b.parent_execution_id = r.node_execution_id and b.status = N'CANCELLED'
         where b.node_execution_id not in (select y.node_execution_id from #restored as y);
        set @v_count = @@rowcount;
    end;
end;
GO

-- Why #cause and #restored cannot go back, or null.
create or alter procedure wf.wf_retry_problem
    @workflow_instance_id bigint,
    @problem nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_id bigint;

    set @problem = null;
    select @v_id = min(e.node_execution_id)
      from #cause as x
      join wf.node_execution as e on e.node_execution_id = x.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
     where n.node_type not in (N'ACTION', N'WAIT_EVENT') or e.status <> N'FAILED';
    if @v_id is not null
    begin
        set @problem = concat(wf.wf_execution_path(@v_id),
            N' failed, which is no action and no wait_event');
        return;
    end;
    select @v_id = min(c.parent_execution_id)
      from #restored as x
      join wf.node_execution as c
        on c.workflow_instance_id = @workflow_instance_id
       and c.parent_execution_id = x.node_execution_id
      join wf.workflow_node as n on n.node_id = c.node_id
     where n.edge_kind in (N'ON_ERROR', N'FINALLY');
    if @v_id is not null
    begin
        set @problem = concat(N'an on_error or finally of ', wf.wf_execution_path(@v_id),
            N' has run');
        return;
    end;
    select @v_id = min(x.node_execution_id)
      from #restored as x
      join wf.node_execution as e on e.node_execution_id = x.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
      left join wf.join_counter as j on j.node_execution_id = x.node_execution_id
      left join wf.loop_state as l on l.node_execution_id = x.node_execution_id
     where ((n.node_type in (N'PARALLEL', N'FOREACH') and j.node_execution_id is null)
            or (n.node_type = N'REPEAT' and l.node_execution_id is null))
       and exists (select 1 from wf.node_execution as c
                    where c.workflow_instance_id = @workflow_instance_id
                      and c.parent_execution_id = x.node_execution_id);
    if @v_id is not null
        set @problem = concat(N'the state of ', wf.wf_execution_path(@v_id), N' was not kept');
end;
GO

-- Queues the ACTIONs of #reopened that have an input, each with its next attempt. What a failed
-- attempt was answered stays known under its token (R4).
create or alter procedure wf.wf_retry_queue
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);

    select @v_now = c.now from #call as c;
    insert into wf.node_attempt (node_execution_id, lease_token, attempt_no, worker_id, result_code,
        output_hash, answer, engine_error_code, engine_error_message, claimed_at, ended_at)
    select e.node_execution_id, e.last_token, e.attempt_no, e.worker_id, e.answered_code,
           wf.wf_output_hash(e.output_json), e.answer, e.engine_error_code, e.engine_error_message,
           e.started_at, e.ended_at
      from #reopened as x
      join wf.node_execution as e on e.node_execution_id = x.node_execution_id
     where x.is_queued = 1 and e.answer is not null;
    insert into wf.task (node_execution_id, workflow_instance_id, node_id, action_id, priority,
                         available_at, is_claimable, input_json, affinity_key, max_per_worker,
                         max_concurrent, rate_per_minute, is_exclusive, prefers_previous,
                         prefers_group, requires_previous, pinned_worker_id, attempt_no,
                         attempts_before, lease_token)
    select e.node_execution_id, e.workflow_instance_id, e.node_id, n.action_id,
           wf.wf_add_priorities(n.priority, i.priority), @v_now, 1, e.input_json, d.affinity_key,
           d.max_per_worker, d.max_concurrent, d.rate_per_minute, d.is_exclusive,
           d.prefers_previous, d.prefers_group, d.requires_previous,
           case when d.requires_previous = 1 and d.is_exclusive = 0
                then wf.wf_pinned_worker(e.workflow_instance_id, n.action_id, d.affinity_key) end,
           e.attempt_no + 1, e.attempt_no, coalesce(e.last_token, 0)
      from #reopened as x
      join wf.node_execution as e on e.node_execution_id = x.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.workflow_instance as i on i.workflow_instance_id = e.workflow_instance_id
     cross apply wf.wf_dispatch_of(n.action_id, json_query(n.attributes_json, N'$.dispatch'),
                                   e.input_json) as d
     where x.is_queued = 1;
end;
GO

-- Counts the PARALLELs and FOREACHs of #reopened anew. Where nothing below one is open, a child that
-- has succeeded is left uncounted and added to #kicked: looking at it starts the next child or decides.
create or alter procedure wf.wf_retry_recount
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_join table (
        node_execution_id bigint not null primary key,
        started_count int not null,
        open_count int not null,
        succeeded_count int not null,
        failed_count int not null,
        last_succeeded_id bigint null
    );

    insert into @v_join (node_execution_id, started_count, open_count, succeeded_count,
                         failed_count, last_succeeded_id)
    select x.node_execution_id, count(*),
           sum(case when c.status in (N'READY', N'RUNNING') then 1 else 0 end),
           sum(case when c.status in (N'SUCCEEDED', N'SKIPPED') then 1 else 0 end),
           sum(case when c.status = N'FAILED' then 1 else 0 end),
           max(case when c.status in (N'SUCCEEDED', N'SKIPPED') then c.node_execution_id end)
      from #reopened as x
      join wf.node_execution as c
        on c.workflow_instance_id = @workflow_instance_id
       and c.parent_execution_id = x.node_execution_id
     where x.is_join = 1
     group by x.node_execution_id;
    insert into #kicked (node_execution_id)
    select j.last_succeeded_id from @v_join as j
     where j.open_count = 0 and j.last_succeeded_id is not null;
    update k
       set next_index = j.started_count,
           open_count = case when j.open_count = 0 then 1 else j.open_count end,
           succeeded_count = case when j.open_count = 0 then j.succeeded_count - 1
                                  else j.succeeded_count end,
           failed_count = j.failed_count, last_started = null,
           first_failed_id = (select top (1) c.node_execution_id
                                from wf.node_execution as c
                               where c.workflow_instance_id = @workflow_instance_id
                                 and c.parent_execution_id = j.node_execution_id
                                 and c.status = N'FAILED'
                               order by c.ended_at, c.node_execution_id)
      from wf.join_counter as k
      join @v_join as j on j.node_execution_id = k.node_execution_id;
end;
GO

-- Opens #cause and #restored again and makes #agenda what sets them going: those that had not begun
-- are activated; composites below which nothing is open look at their last child again.
create or alter procedure wf.wf_retry_reopen
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);
    create table #reopened (
        node_execution_id bigint not null primary key,
        is_queued bit not null,
        is_fresh bit not null,
        is_join bit not null
    );
    create table #kicked (node_execution_id bigint not null primary key);

    select @v_now = c.now from #call as c;
    insert into #reopened (node_execution_id, is_queued, is_fresh, is_join)
    select q.node_execution_id,
           case when q.node_type = N'ACTION' and q.has_input = 1 then 1 else 0 end,
           case when q.has_children = 0 and (q.node_type <> N'ACTION' or q.has_input = 0)
                then 1 else 0 end,
           case when q.has_children = 1 and q.node_type in (N'PARALLEL', N'FOREACH')
                then 1 else 0 end
      from (select e.node_execution_id, n.node_type,
                   case when e.input_json is not null then 1 else 0 end as has_input,
                   case when exists (select 1 from wf.node_execution as c
                                      where c.workflow_instance_id = @workflow_instance_id
                                        and c.parent_execution_id = e.node_execution_id)
                        then 1 else 0 end as has_children
              from (select x.node_execution_id from #cause as x
                    union
                    select r.node_execution_id from #restored as r) as u
              join wf.node_execution as e on e.node_execution_id = u.node_execution_id
              join wf.workflow_node as n on n.node_id = e.node_id) as q;
    exec wf.wf_retry_queue;
    update e
       set status = case when n.node_type = N'ACTION'
                              or (x.is_fresh = 1 and n.node_type = N'WAIT_EVENT') then N'READY'
                         else N'RUNNING' end,
           result_code = null, engine_error_code = null, engine_error_message = null,
           error_execution_id = null, last_token = null, answered_code = null, answer = null,
           worker_id = null, started_at = null, ended_at = null, input_json = null,
           output_json = null
      from wf.node_execution as e
      join #reopened as x on x.node_execution_id = e.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id;
    insert into wf.timer (node_execution_id, workflow_instance_id, due_at)
    select e.node_execution_id, e.workflow_instance_id, wf.wf_add_ms(@v_now, n.timeout_ms)
      from #reopened as x
      join wf.node_execution as e on e.node_execution_id = x.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
     where n.node_type <> N'ACTION' and n.timeout_ms is not null
       and (n.node_type <> N'WAIT_EVENT' or x.is_fresh = 1);
    exec wf.wf_retry_recount @workflow_instance_id = @workflow_instance_id;
    insert into #kicked (node_execution_id)
    select max(c.node_execution_id)
      from #reopened as x
      join wf.node_execution as c
        on c.workflow_instance_id = @workflow_instance_id
       and c.parent_execution_id = x.node_execution_id
     where x.is_join = 0
     group by x.node_execution_id
    having max(case when c.status in (N'READY', N'RUNNING') then 1 else 0 end) = 0;
    insert into #agenda (ordinal, node_execution_id, workflow_instance_id, kind)
    select row_number() over (order by q.node_execution_id), q.node_execution_id,
           @workflow_instance_id, q.kind
      from (select x.node_execution_id, N'A' as kind from #reopened as x where x.is_fresh = 1
            union all
            select k.node_execution_id, case when n.success_may_close = 1 then N'J' else N'S' end
              from #kicked as k
              join wf.node_execution as e on e.node_execution_id = k.node_execution_id
              join wf.workflow_node as n on n.node_id = e.node_id) as q;
end;
GO

-- Brings a FAILED instance back to RUNNING from the node that failed (see the head of this file).
-- Answers its status, and how many failed nodes are tried again; the instance may have ended again
-- by the time the call answers. Locks: the gate exclusive.
-- Errors: 20002 unknown instance; 20003 it has not failed, what failed is no ACTION or WAIT_EVENT, or
-- an on_error or finally has run at or above it.
create or alter procedure wf.sp_retry_failed_node
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_status nvarchar(20);
    declare @v_problem nvarchar(max);
    declare @v_message nvarchar(2000);
    declare @v_retried_count int;
    create table #call (now datetime2(3) not null, first_new_id bigint not null, work_left bigint not null, work_limit bigint not null, has_closed bit not null, restart_instance_id bigint null);
    create table #exclusive (workflow_instance_id bigint not null primary key);
    create table #agenda (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);   -- the level in work
    create table #next (seq bigint identity(1, 1) not null, ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);     -- what it leads to
    create table #held (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #waits (seq bigint identity(1, 1) not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #entry (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);    -- the entries a handler takes
    create table #step (seq bigint identity(1, 1) not null, ordinal int not null, rank int not null, step nvarchar(7) not null, node_execution_id bigint not null, workflow_instance_id bigint not null, node_id bigint null, iteration_no int null, item_json nvarchar(max) null, result_code int null, engine_error_code int null, message nvarchar(max) null, error_execution_id bigint null);
    create table #cause (node_execution_id bigint not null primary key);
    create table #restored (node_execution_id bigint not null primary key, is_chain bit not null);

    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_lock_instance @workflow_instance_id = @workflow_instance_id,
            @status = @v_status output;
        insert into #call (now, first_new_id, work_left, work_limit, has_closed)
        values (wf.wf_now(), 0, 0, 0, 0);
        insert into #exclusive (workflow_instance_id) values (@workflow_instance_id);
        if @v_status <> N'FAILED'
        begin
            set @v_message = concat(N'instance ', @workflow_instance_id, N' is ', lower(@v_status),
                N', not failed');
            throw 70003, @v_message, 1;
        end;
        insert into #cause (node_execution_id)
        select i.error_execution_id from wf.workflow_instance as i
         where i.workflow_instance_id = @workflow_instance_id;
        exec wf.wf_retry_causes @workflow_instance_id = @workflow_instance_id;
        exec wf.wf_retry_problem @workflow_instance_id = @workflow_instance_id,
            @problem = @v_problem output;
        if @v_problem is not null
        begin
            set @v_message = left(concat(N'instance ', @workflow_instance_id,
                N' cannot be retried: ', @v_problem), 2000);
            throw 70003, @v_message, 1;
        end;
        update wf.workflow_instance
           set status = N'RUNNING', ended_at = null, error_code = null, engine_error_code = null,
               engine_error_message = null, error_execution_id = null
         where workflow_instance_id = @workflow_instance_id;
        insert into wf.audit_log (at, what, detail_json)
        select c.now, N'retry', concat(N'{"instance":', @workflow_instance_id, N',"executions":[',
                   (select string_agg(cast(x.node_execution_id as nvarchar(max)), N',')
                           within group (order by x.node_execution_id) from #cause as x), N']}')
          from #call as c;
        exec wf.wf_retry_reopen @workflow_instance_id = @workflow_instance_id;
        exec wf.wf_engine_run;
        -- An ACTION that had no input yet was queued by its activation, as a first attempt.
        update t
           set attempt_no = e.attempt_no + 1, attempts_before = e.attempt_no
          from wf.task as t
          join #cause as x on x.node_execution_id = t.node_execution_id
          join wf.node_execution as e on e.node_execution_id = t.node_execution_id
         where t.attempts_before = 0;
        select @v_status = i.status from wf.workflow_instance as i
         where i.workflow_instance_id = @workflow_instance_id;
        select @v_retried_count = count(*) from #cause;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select @v_status as instance_status, @v_retried_count as retried_count;
end;
GO

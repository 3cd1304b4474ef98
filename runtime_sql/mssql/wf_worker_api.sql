-- What a worker calls: claim, submit, heartbeat, fail, release. Twin: pg/wf_worker_api.sql
--
-- Every call names the worker and its token. A claim hands out a lease with a token that only grows
-- per execution; a call under a lease token that is no longer current changes nothing (R4).

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The digest that stands for a worker's token. Both parts are hashed as the hex digits of their
-- bytes: ASCII, so the digest does not depend on how a server keeps other characters.
create or alter function wf.wf_token_digest(@salt varbinary(64), @worker_token nvarchar(4000))
returns varbinary(64)
as
begin
    return hashbytes('SHA2_256', concat(convert(varchar(128), @salt, 2), ':',
        convert(varchar(8000), cast(@worker_token as varbinary(4000)), 2)));
end;
GO

-- Checks a worker's token. Throws 20001; says the same whether the worker or the token is unknown.
-- The digest is compared whole, so no prefix leaks.
create or alter procedure wf.wf_worker_authenticate
    @worker_id nvarchar(4000),
    @worker_token nvarchar(4000)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    if @worker_id is null or @worker_token is null or not exists (
        select 1 from wf.worker_token as t
         where t.worker_id = @worker_id and datalength(t.worker_id) = datalength(@worker_id)
           and t.revoked_at is null
           and (t.expires_at is null or t.expires_at > wf.wf_now())
           and t.token_hash = wf.wf_token_digest(t.salt, @worker_token))
        throw 70001, N'the worker is not known or its token is not valid', 1;
end;
GO

-- The number of the iteration a task runs in, from 1: that of its nearest loop; 0 outside loops.
create or alter function wf.wf_iteration_no(@node_execution_id bigint) returns int
as
begin
    declare @v_id bigint = @node_execution_id;
    declare @v_parent_id bigint;
    declare @v_iteration_no int;
    declare @v_is_body bit;

    while 1 = 1
    begin
        set @v_parent_id = null;
        select @v_parent_id = e.parent_execution_id, @v_iteration_no = e.iteration_no,
               @v_is_body = n.is_loop_body
          from wf.node_execution as e
          join wf.workflow_node as n on n.node_id = e.node_id
         where e.node_execution_id = @v_id;
        if @v_parent_id is null return 0;
        if @v_is_body = 1 return @v_iteration_no + 1;
        set @v_id = @v_parent_id;
    end;
    return 0;
end;
GO

-- What a worker's state tells it to do.
create or alter function wf.wf_worker_command(@desired_state nvarchar(20)) returns nvarchar(20)
as
begin
    return case @desired_state when N'DRAINING' then N'DRAIN' when N'STOPPING' then N'STOP'
                               else N'NONE' end;
end;
GO

-- What happens by itself and is due (wf_timers.sql, wf_reclaim_expired_leases.sql), at most 100 of
-- each. Outside a transaction of the caller each instance has one of its own.
create or alter procedure wf.wf_run_passes
    @reclaimed_count int output,
    @timer_count int output,
    @released_count int output
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    create table #call (now datetime2(3) not null, first_new_id bigint not null, work_left bigint not null, work_limit bigint not null, has_closed bit not null, restart_instance_id bigint null);
    create table #exclusive (workflow_instance_id bigint not null primary key);
    create table #agenda (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);   -- the level in work
    create table #next (seq bigint identity(1, 1) not null, ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);     -- what it leads to
    create table #held (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #waits (seq bigint identity(1, 1) not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #entry (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);    -- the entries a handler takes
    create table #step (seq bigint identity(1, 1) not null, ordinal int not null, rank int not null, step nvarchar(7) not null, node_execution_id bigint not null, workflow_instance_id bigint not null, node_id bigint null, iteration_no int null, item_json nvarchar(max) null, result_code int null, engine_error_code int null, message nvarchar(max) null, error_execution_id bigint null);
    insert into #call (now, first_new_id, work_left, work_limit, has_closed)
    values (wf.wf_now(), 0, 0, 0, 0);
    exec wf.wf_reclaim_leases @limit = 100, @count = @reclaimed_count output;
    exec wf.wf_run_timers @limit = 100, @count = @timer_count output;
    exec wf.wf_release_due_tasks @limit = 100, @count = @released_count output;
end;
GO

-- Takes up to @max_tasks tasks that this worker may do, best first (wf_dispatch.sql has the rules),
-- into #claimed, which the public procedure makes.
-- Locks: the worker's row (claims of one worker queue, of different workers never do), then what
-- wf_claim_lock takes. Never a gate, but for what is due before it.
-- Errors: 20001; 20004 an argument is out of range.
create or alter procedure wf.wf_claim
    @worker_id nvarchar(4000),
    @worker_token nvarchar(4000),
    @capability nvarchar(4000),
    @max_lease_seconds int,
    @max_tasks int,
    @desired_state nvarchar(20) output
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_now datetime2(3);
    declare @v_ignored int;

    exec wf.wf_worker_authenticate @worker_id = @worker_id, @worker_token = @worker_token;
    if @max_tasks is null or @max_tasks not between 1 and 1000
        throw 70004, N'max_tasks must be between 1 and 1000', 1;
    if @max_lease_seconds is null or @max_lease_seconds not between 1 and 86400
        throw 70004, N'max_lease_seconds must be between 1 and 86400', 1;
    set @v_now = wf.wf_now();
    -- Most claims find nothing due, and this alone is cheap.
    if exists (select 1 from wf.task as t
                where t.worker_id is not null and t.lease_until <= @v_now)
       or exists (select 1 from wf.timer as t where t.due_at <= @v_now)
       or exists (select 1 from wf.task as t where t.deadline_at <= @v_now)
       or exists (select 1 from wf.task as t
                   where t.is_claimable = 0 and t.available_at <= @v_now)
        exec wf.wf_run_passes @reclaimed_count = @v_ignored output,
            @timer_count = @v_ignored output, @released_count = @v_ignored output;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        update wf.worker set @desired_state = desired_state, desired_state = desired_state
         where worker_id = @worker_id;
        update wf.worker_presence set last_seen_at = @v_now where worker_id = @worker_id;
        if @desired_state = N'ACTIVE'
            exec wf.wf_claim_lock @worker_id = @worker_id, @capability = @capability,
                @max_lease_seconds = @max_lease_seconds, @max_tasks = @max_tasks, @now = @v_now;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
end;
GO

-- Claims up to @max_tasks tasks; one row for each. @capability narrows to one of the worker's
-- capabilities; null means all of them. A worker that is to end gets one row without a task, which
-- brings the command (R28). Locks and errors: wf_claim.
create or alter procedure wf.sp_worker_request_tasks
    @worker_id nvarchar(4000),
    @worker_token nvarchar(4000),
    @capability nvarchar(4000) = null,
    @max_lease_seconds int = 300,
    @max_tasks int = 1
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_desired_state nvarchar(20);
    create table #claimed (
        position int identity(1, 1) not null primary key, node_execution_id bigint not null,
        workflow_instance_id bigint not null, node_key nvarchar(200) not null,
        action_name nvarchar(200) not null, capability nvarchar(200) not null,
        attempt_no int not null, input_json nvarchar(max) null, iteration_no int not null,
        lease_token bigint not null, lease_until_utc datetime2(3) not null,
        deadline_utc datetime2(3) null, path nvarchar(max) null
    );
    exec wf.wf_claim @worker_id = @worker_id, @worker_token = @worker_token,
        @capability = @capability, @max_lease_seconds = @max_lease_seconds,
        @max_tasks = @max_tasks, @desired_state = @v_desired_state output;
    select c.node_execution_id, c.workflow_instance_id, c.node_key, c.action_name, c.capability,
           c.attempt_no, c.input_json, c.iteration_no, @v_desired_state as desired_state,
           wf.wf_worker_command(@v_desired_state) as command, c.lease_token, c.lease_until_utc,
           c.deadline_utc, c.path
      from (select 1 as one) as o
      left join #claimed as c on c.position > 0
     where c.position > 0 or @v_desired_state <> N'ACTIVE'
     order by c.position;
end;
GO

-- One task, as exactly one row: the task's columns are null when there is none. See the batch form.
create or alter procedure wf.sp_worker_request_task
    @worker_id nvarchar(4000),
    @worker_token nvarchar(4000),
    @capability nvarchar(4000) = null,
    @max_lease_seconds int = 300
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_desired_state nvarchar(20);
    create table #claimed (
        position int identity(1, 1) not null primary key, node_execution_id bigint not null,
        workflow_instance_id bigint not null, node_key nvarchar(200) not null,
        action_name nvarchar(200) not null, capability nvarchar(200) not null,
        attempt_no int not null, input_json nvarchar(max) null, iteration_no int not null,
        lease_token bigint not null, lease_until_utc datetime2(3) not null,
        deadline_utc datetime2(3) null, path nvarchar(max) null
    );
    exec wf.wf_claim @worker_id = @worker_id, @worker_token = @worker_token,
        @capability = @capability, @max_lease_seconds = @max_lease_seconds, @max_tasks = 1,
        @desired_state = @v_desired_state output;
    select c.node_execution_id, c.workflow_instance_id, c.node_key, c.action_name, c.capability,
           c.attempt_no, c.input_json, c.iteration_no, @v_desired_state as desired_state,
           wf.wf_worker_command(@v_desired_state) as command, c.lease_token, c.lease_until_utc,
           c.deadline_utc, c.path
      from (select 1 as one) as o
      left join #claimed as c on c.position > 0;
end;
GO

-- Submits ------------------------------------------------------------------------------------------
--
-- The public procedures make two tables: #submit_item, what is submitted (at most one row per
-- position), and #submit_answer, one row per item.

-- Whether an instance has a deadline that is due.
create or alter function wf.wf_has_due(@workflow_instance_id bigint) returns bit
as
begin
    if exists (select 1 from wf.timer as t
                where t.workflow_instance_id = @workflow_instance_id
                  and t.due_at <= wf.wf_now())
        return 1;
    if exists (select 1 from wf.task as t
                where t.workflow_instance_id = @workflow_instance_id
                  and t.deadline_at <= wf.wf_now())
        return 1;
    return 0;
end;
GO

-- Takes the gates of #gate (workflow_instance_id) in ascending order, exclusive those that stand in
-- #exclusive.
create or alter procedure wf.wf_take_gates
as
begin
    set nocount, xact_abort on;
    declare @v_id bigint = 0;
    declare @v_next_id bigint;
    declare @v_is_exclusive bit;

    while 1 = 1
    begin
        select @v_next_id = min(g.workflow_instance_id) from #gate as g
         where g.workflow_instance_id > @v_id;
        if @v_next_id is null break;
        set @v_id = @v_next_id;
        set @v_is_exclusive = case when exists (
            select 1 from #exclusive as x where x.workflow_instance_id = @v_id) then 1 else 0 end;
        exec wf.wf_take_gate @workflow_instance_id = @v_id, @is_exclusive = @v_is_exclusive;
    end;
end;
GO

-- Lets what is due in the running instances of #exclusive act first (R21), in their order.
create or alter procedure wf.wf_apply_all_due
as
begin
    set nocount, xact_abort on;
    declare @v_id bigint = 0;
    declare @v_next_id bigint;

    while 1 = 1
    begin
        select @v_next_id = min(x.workflow_instance_id)
          from #exclusive as x
          join wf.workflow_instance as i on i.workflow_instance_id = x.workflow_instance_id
         where x.workflow_instance_id > @v_id and i.status = N'RUNNING';
        if @v_next_id is null break;
        set @v_id = @v_next_id;
        exec wf.wf_apply_due @workflow_instance_id = @v_id;
        if exists (select 1 from #call as c where c.restart_instance_id is not null) return;
    end;
end;
GO

-- Completes many tasks of one worker in one transaction. The single calls are this with one item.
-- Locks: gates (ascending), task rows, executions, then what the continuation touches
-- (03_engine_core.sql). Where something turns out to close other work under a shared gate, the
-- attempt goes back to its savepoint and starts over with that gate exclusive.
create or alter procedure wf.wf_submit
    @worker_id nvarchar(200)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    -- A table variable keeps its rows when the attempt is rolled back.
    declare @v_exclusive table (workflow_instance_id bigint not null primary key);
    declare @v_restart_id bigint;
    create table #call (now datetime2(3) not null, first_new_id bigint not null, work_left bigint not null, work_limit bigint not null, has_closed bit not null, restart_instance_id bigint null);
    create table #exclusive (workflow_instance_id bigint not null primary key);
    create table #agenda (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);   -- the level in work
    create table #next (seq bigint identity(1, 1) not null, ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);     -- what it leads to
    create table #held (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #waits (seq bigint identity(1, 1) not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #entry (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);    -- the entries a handler takes
    create table #step (seq bigint identity(1, 1) not null, ordinal int not null, rank int not null, step nvarchar(7) not null, node_execution_id bigint not null, workflow_instance_id bigint not null, node_id bigint null, iteration_no int null, item_json nvarchar(max) null, result_code int null, engine_error_code int null, message nvarchar(max) null, error_execution_id bigint null);
    create table #gate (workflow_instance_id bigint not null primary key);
    create table #completed (ordinal int not null, node_execution_id bigint not null);
    create table #retried (position int not null primary key);
    begin try
        if @v_owns_transaction = 1 begin transaction;
        insert into #gate (workflow_instance_id)
        select distinct t.workflow_instance_id
          from #submit_item as i
          join wf.task as t on t.node_execution_id = i.node_execution_id;
        insert into @v_exclusive (workflow_instance_id)
        select distinct t.workflow_instance_id
          from #submit_item as i
          join wf.task as t on t.node_execution_id = i.node_execution_id
          join wf.workflow_node as n on n.node_id = t.node_id
          join wf.workflow_version as v on v.workflow_version_id = n.workflow_version_id
         where n.may_close = 1
            or i.result_code < 0 and wf.wf_retry_takes(n.retry_json,
                   t.attempt_no - t.attempts_before, cast(i.result_code as nvarchar(20))) = 0
            or v.has_deadlines = 1 and wf.wf_has_due(t.workflow_instance_id) = 1;
        while 1 = 1
        begin
            save transaction wf_attempt;
            insert into #exclusive (workflow_instance_id)
            select x.workflow_instance_id from @v_exclusive as x;
            exec wf.wf_submit_attempt @worker_id = @worker_id;
            set @v_restart_id = (select top (1) c.restart_instance_id from #call as c);
            if @v_restart_id is null break;
            rollback transaction wf_attempt;
            insert into @v_exclusive (workflow_instance_id) values (@v_restart_id);
        end;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
end;
GO

-- One attempt at a submit: takes the gates, completes what is under a current lease, runs the
-- continuation, and answers every item. Reads #submit_item, #gate, #exclusive; fills #submit_answer.
create or alter procedure wf.wf_submit_attempt
    @worker_id nvarchar(200)
as
begin
    set nocount, xact_abort on;
    declare @v_gone table (
        node_execution_id bigint not null primary key,
        node_id bigint not null,
        worker_id nvarchar(200) collate Latin1_General_100_BIN2 not null,
        attempt_no int not null,
        delivery_count int not null,
        lease_token bigint not null,
        claimed_at datetime2(3) null,
        affinity_key nvarchar(200) collate Latin1_General_100_BIN2 null,
        input_json nvarchar(max) collate Latin1_General_100_BIN2 not null
    );
    declare @v_now datetime2(3);
    declare @v_mark bigint;

    exec wf.wf_take_gates;
    set @v_now = wf.wf_now();
    insert into #call (now, first_new_id, work_left, work_limit, has_closed)
    values (@v_now, 0, 0, 0, 0);
    exec wf.wf_apply_all_due;
    if exists (select 1 from #call as c where c.restart_instance_id is not null) return;
    exec wf.wf_retry_items @worker_id = @worker_id;
    delete from wf.task
    output deleted.node_execution_id, deleted.node_id, deleted.worker_id, deleted.attempt_no,
           deleted.delivery_count, deleted.lease_token, deleted.claimed_at,
           deleted.affinity_key, deleted.input_json
      into @v_gone (node_execution_id, node_id, worker_id, attempt_no, delivery_count,
                    lease_token, claimed_at, affinity_key, input_json)
     where node_execution_id in (select i.node_execution_id from #submit_item as i)
       and worker_id = @worker_id
       and exists (select 1 from #submit_item as i
                    where i.node_execution_id = task.node_execution_id
                      and (i.lease_token is null or i.lease_token = task.lease_token));
    -- Of two items for one task the first counts.
    update i set is_done = 1
      from #submit_item as i
      join @v_gone as g on g.node_execution_id = i.node_execution_id
     where i.position = (select min(o.position) from #submit_item as o
                          where o.node_execution_id = g.node_execution_id
                            and (o.lease_token is null or o.lease_token = g.lease_token));
    update e
       set status = case when i.result_code >= 0 then N'SUCCEEDED' else N'FAILED' end,
           result_code = i.result_code,
           engine_error_message = case when i.result_code < 0
               then coalesce(i.message, concat(N'result code ', i.result_code)) end,
           error_execution_id = case when i.result_code < 0 then e.node_execution_id end,
           output_json = i.output_json, input_json = g.input_json, worker_id = g.worker_id,
           attempt_no = g.attempt_no, delivery_count = g.delivery_count,
           last_token = g.lease_token, answered_code = i.result_code, answer = N'OK',
           started_at = g.claimed_at, ended_at = @v_now
      from wf.node_execution as e
      join @v_gone as g on g.node_execution_id = e.node_execution_id
      join #submit_item as i on i.node_execution_id = g.node_execution_id and i.is_done = 1;
    -- Every entry is S until its `set`s have run; wf_complete_items turns the failed ones.
    insert into #agenda (ordinal, node_execution_id, workflow_instance_id, kind)
    select i.position, e.node_execution_id, e.workflow_instance_id,
           case when i.result_code < 0 then N'F' when n.success_may_close = 1 then N'J'
                else N'S' end
      from #submit_item as i
      join wf.node_execution as e on e.node_execution_id = i.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
     where i.is_done = 1;
    if @@rowcount > 0
    begin
        exec wf.wf_complete_items;
        insert into #completed (ordinal, node_execution_id)
        select i.position, i.node_execution_id
          from #submit_item as i
          join @v_gone as g on g.node_execution_id = i.node_execution_id
         where i.is_done = 1 and g.affinity_key is not null and i.result_code >= 0;
        if @@rowcount > 0 exec wf.wf_remember_workers;
        set @v_mark = next value for wf.node_execution_id_seq;
        exec wf.wf_engine_run;
        if exists (select 1 from #call as c where c.restart_instance_id is not null) return;
    end;
    exec wf.wf_answer_items @worker_id = @worker_id, @mark = @v_mark, @now = @v_now;
end;
GO

-- Puts the tasks back to READY whose failure their retry policy takes; the positions of those items
-- are added to #retried. Locks: the task rows.
create or alter procedure wf.wf_retry_items
    @worker_id nvarchar(200)
as
begin
    set nocount, xact_abort on;
    declare @v_position int = -1;
    declare @v_id bigint;
    declare @v_token bigint;
    declare @v_result_code int;
    declare @v_message nvarchar(max);
    declare @v_output_json nvarchar(max);
    declare @v_node_id bigint;
    declare @v_attempt_no int;
    declare @v_retry_json nvarchar(max);

    while 1 = 1
    begin
        set @v_id = null;
        select top (1) @v_position = i.position, @v_id = i.node_execution_id,
               @v_token = i.lease_token, @v_result_code = i.result_code,
               @v_message = coalesce(i.message, concat(N'result code ', i.result_code)),
               @v_output_json = i.output_json
          from #submit_item as i
         where i.position > @v_position and i.result_code < 0
         order by i.position;
        if @v_id is null break;
        -- An update that changes nothing takes the row.
        update wf.task
           set @v_node_id = node_id, @v_attempt_no = attempt_no - attempts_before,
               worker_id = worker_id
         where node_execution_id = @v_id and worker_id = @worker_id
           and (@v_token is null or lease_token = @v_token);
        if @@rowcount = 0 continue;
        select @v_retry_json = n.retry_json from wf.workflow_node as n
         where n.node_id = @v_node_id;
        if wf.wf_retry_takes(@v_retry_json, @v_attempt_no,
                             cast(@v_result_code as nvarchar(20))) = 1
        begin
            exec wf.wf_retry_task @node_execution_id = @v_id, @retry_json = @v_retry_json,
                @result_code = @v_result_code, @engine_error_code = null,
                @message = @v_message, @output_json = @v_output_json;
            insert into #retried (position) values (@v_position);
        end;
    end;
end;
GO

-- Runs the `set`s of completed ACTIONs. One that fails fails its node (R20); its entry of #agenda
-- becomes F.
create or alter procedure wf.wf_complete_items
as
begin
    set nocount, xact_abort on;
    declare @v_ordinal int = -1;
    declare @v_id bigint;
    declare @v_output_json nvarchar(max);
    declare @v_result_code int;
    declare @v_error_code int;
    declare @v_error_message nvarchar(max);

    while 1 = 1
    begin
        set @v_id = null;
        select top (1) @v_ordinal = a.ordinal, @v_id = a.node_execution_id,
               @v_output_json = e.output_json, @v_result_code = e.result_code
          from #agenda as a
          join wf.node_execution as e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node as n on n.node_id = e.node_id
         where a.ordinal > @v_ordinal and a.kind in (N'S', N'J') and n.has_output_bindings = 1
         order by a.ordinal;
        if @v_id is null break;
        exec wf.wf_apply_output_bindings @node_execution_id = @v_id,
            @output_json = @v_output_json, @result_code = @v_result_code, @event_json = null,
            @error_code = @v_error_code output, @error_message = @v_error_message output;
        if @v_error_code is not null
        begin
            update #agenda set kind = N'F' where ordinal = @v_ordinal;
            exec wf.wf_fail_completed @node_execution_id = @v_id,
                @engine_error_code = @v_error_code, @text = @v_error_message;
        end;
    end;
end;
GO

-- Turns an execution that has just succeeded into one that failed by an engine error; its output
-- stays.
create or alter procedure wf.wf_fail_completed
    @node_execution_id bigint,
    @engine_error_code int,
    @text nvarchar(max)
as
begin
    set nocount, xact_abort on;

    update wf.node_execution
       set status = N'FAILED', result_code = null, engine_error_code = @engine_error_code,
           engine_error_message = concat(wf.wf_execution_path(@node_execution_id), N': ', @text),
           error_execution_id = @node_execution_id
     where node_execution_id = @node_execution_id;
end;
GO

-- Answers every item. What completed nothing: REPEATED the same result again under a token already
-- answered; CANCELLED and ENDED say why there is no lease any more; STALE another token is current,
-- or the execution is not this worker's. @mark: what this call activated has a higher id.
create or alter procedure wf.wf_answer_items
    @worker_id nvarchar(200),
    @mark bigint,
    @now datetime2(3)
as
begin
    set nocount, xact_abort on;

    insert into #submit_answer (position, node_execution_id, accepted, instance_status,
                                next_ready_count, reason)
    select i.position, i.node_execution_id, 1, w.status,
           case when i.is_done = 1 then (
               select count(*) from wf.task as t
                where t.workflow_instance_id = e.workflow_instance_id
                  and t.node_execution_id > @mark and t.worker_id is null
                  and t.available_at = @now) else 0 end, N'OK'
      from #submit_item as i
      join wf.node_execution as e on e.node_execution_id = i.node_execution_id
      join wf.workflow_instance as w on w.workflow_instance_id = e.workflow_instance_id
     where i.is_done = 1 or i.position in (select r.position from #retried as r);
    insert into #submit_answer (position, node_execution_id, accepted, instance_status,
                                next_ready_count, reason)
    select q.position, q.node_execution_id, case when q.reason = N'REPEATED' then 1 else 0 end,
           q.status, 0, q.reason
      from (select i.position, i.node_execution_id, w.status,
                   case when e.worker_id = @worker_id and e.answer = N'OK'
                             and (i.lease_token is null or e.last_token = i.lease_token)
                             and e.answered_code = i.result_code
                             and wf.wf_is_same_json(e.output_json, i.output_json) = 1
                        then N'REPEATED'
                        when exists (
                            select 1 from wf.node_attempt as t
                             where t.node_execution_id = e.node_execution_id
                               and t.lease_token = i.lease_token and t.worker_id = @worker_id
                               and t.result_code = i.result_code
                               and t.output_hash = wf.wf_output_hash(i.output_json))
                        then N'REPEATED'
                        when e.status = N'CANCELLED' then N'CANCELLED'
                        when w.status in (N'SUCCEEDED', N'FAILED', N'CANCELLED') then N'ENDED'
                        else N'STALE' end as reason
              from #submit_item as i
              left join wf.node_execution as e on e.node_execution_id = i.node_execution_id
              left join wf.workflow_instance as w
                on w.workflow_instance_id = e.workflow_instance_id
             where i.position not in (select a.position from #submit_answer as a)) as q;
end;
GO

-- Whether two values are equal; SQL null equals SQL null only.
create or alter function wf.wf_is_same_json(@one nvarchar(max), @other nvarchar(max)) returns bit
as
begin
    if @one is null or @other is null
        return case when @one is null and @other is null then 1 else 0 end;
    if @one = @other collate Latin1_General_100_BIN2 return 1;
    return case when wf.wf_canonical_json(@one, 0)
                     = wf.wf_canonical_json(@other, 0) collate Latin1_General_100_BIN2
                then 1 else 0 end;
end;
GO

-- Checks what every submit must hold, of #submit_item. Errors: 20002 unknown execution, 20004 no
-- result code or an output that is no JSON, 20005 output over 16 MB.
create or alter procedure wf.wf_check_submit
as
begin
    set nocount, xact_abort on;
    declare @v_position int = -1;
    declare @v_next int;
    declare @v_id bigint;
    declare @v_result_code int;
    declare @v_output_json nvarchar(max);
    declare @v_message nvarchar(2000);

    while 1 = 1
    begin
        set @v_next = null;
        select top (1) @v_next = i.position, @v_id = i.node_execution_id,
               @v_result_code = i.result_code, @v_output_json = i.output_json
          from #submit_item as i
         where i.position > @v_position
         order by i.position;
        if @v_next is null break;
        set @v_position = @v_next;
        if @v_result_code is null throw 70004, N'result_code must be a number', 1;
        exec wf.wf_check_json @what = N'output', @value_json = @v_output_json;
        if @v_id is null or not exists (select 1 from wf.node_execution as e
                                         where e.node_execution_id = @v_id)
        begin
            set @v_message = concat(N'there is no node execution ', @v_id);
            throw 70002, @v_message, 1;
        end;
    end;
end;
GO

-- Submits a result. A negative result_code fails the node, with @message if there is one.
-- Answers one row; reason is OK, REPEATED, STALE, CANCELLED or ENDED (R4).
-- Errors: 20001, 20002, 20004, 20005.
create or alter procedure wf.sp_worker_submit_result
    @node_execution_id bigint,
    @worker_id nvarchar(4000),
    @worker_token nvarchar(4000),
    @result_code int,
    @output_json nvarchar(max) = null,
    @lease_token bigint = null,
    @message nvarchar(max) = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    create table #submit_item (
        position int not null primary key, node_execution_id bigint null, lease_token bigint null,
        result_code int null, message nvarchar(max) null, output_json nvarchar(max) null,
        is_done bit not null default 0
    );
    create table #submit_answer (
        position int not null primary key, node_execution_id bigint not null,
        accepted bit not null, instance_status nvarchar(20) null, next_ready_count int not null,
        reason nvarchar(20) not null
    );
    exec wf.wf_worker_authenticate @worker_id = @worker_id, @worker_token = @worker_token;
    insert into #submit_item (position, node_execution_id, lease_token, result_code, message,
                              output_json)
    values (1, @node_execution_id, @lease_token, @result_code, @message, @output_json);
    exec wf.wf_check_submit;
    exec wf.wf_submit @worker_id = @worker_id;
    select a.accepted, a.instance_status, a.next_ready_count, a.reason from #submit_answer as a;
end;
GO

-- Submits many results, an array of {node_execution_id, lease_token, result_code, output, message};
-- one row per element, in their order. All or nothing: an error refuses the whole batch.
create or alter procedure wf.sp_worker_submit_results
    @worker_id nvarchar(4000),
    @worker_token nvarchar(4000),
    @results_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_bad int;
    declare @v_message nvarchar(2000);
    create table #submit_item (
        position int not null primary key, node_execution_id bigint null, lease_token bigint null,
        result_code int null, message nvarchar(max) null, output_json nvarchar(max) null,
        is_done bit not null default 0
    );
    create table #submit_answer (
        position int not null primary key, node_execution_id bigint not null,
        accepted bit not null, instance_status nvarchar(20) null, next_ready_count int not null,
        reason nvarchar(20) not null
    );
    exec wf.wf_worker_authenticate @worker_id = @worker_id, @worker_token = @worker_token;
    exec wf.wf_check_json @what = N'results_json', @value_json = @results_json,
        @has_limit = 0;
    if coalesce(wf.wf_json_type(@results_json), N'') <> N'array'
        throw 70004, N'results_json must be an array', 1;
    select @v_bad = min(cast(r.[key] as int)) + 1
      from openjson(@results_json) as r
     where r.type <> 5 or wf.wf_is_result(r.value) = 0;
    if @v_bad is not null
    begin
        set @v_message = concat(N'result ', @v_bad, N' must be an object with the integers '
            + N'node_execution_id and result_code, and may have lease_token (an integer), output '
            + N'and message (a string)');
        throw 70004, @v_message, 1;
    end;
    insert into #submit_item (position, node_execution_id, lease_token, result_code, message,
                              output_json)
    select cast(r.[key] as int) + 1,
           cast(json_value(r.value, N'$.node_execution_id') as bigint),
           cast(json_value(r.value, N'$.lease_token') as bigint),
           cast(json_value(r.value, N'$.result_code') as int),
           (select m.value from openjson(r.value) as m
             where m.[key] collate Latin1_General_100_BIN2 = N'message'),
           wf.wf_json_member(r.value, N'output')
      from openjson(@results_json) as r;
    exec wf.wf_check_submit;
    if exists (select 1 from #submit_item as i) exec wf.wf_submit @worker_id = @worker_id;
    select a.node_execution_id, a.accepted, a.instance_status, a.next_ready_count, a.reason
      from #submit_answer as a
     order by a.position;
end;
GO

-- Whether an object has the shape of one result of a batch submit, its numbers within their columns.
create or alter function wf.wf_is_result(@value_json nvarchar(max)) returns bit
as
begin
    if exists (select 1 from openjson(@value_json) as m
                where m.[key] collate Latin1_General_100_BIN2 in (N'node_execution_id',
                          N'lease_token', N'result_code')
                  and not (m.type = 0 and m.[key] collate Latin1_General_100_BIN2 = N'lease_token')
                  and (m.type not in (1, 2) or wf.wf_is_digits(m.value,
                          case when m.[key] collate Latin1_General_100_BIN2 = N'result_code'
                               then 10 else 18 end) = 0))
        return 0;
    if exists (select 1 from openjson(@value_json) as m
                where m.[key] collate Latin1_General_100_BIN2 = N'result_code'
                  and (try_cast(m.value as bigint) is null
                       or try_cast(m.value as bigint) not between -2147483648 and 2147483647))
        return 0;
    if exists (select 1 from openjson(@value_json) as m
                where m.[key] collate Latin1_General_100_BIN2 = N'message'
                  and m.type not in (0, 1))
        return 0;
    return case when (select count(*) from openjson(@value_json) as m
                       where m.[key] collate Latin1_General_100_BIN2 in (N'node_execution_id',
                                 N'result_code')) = 2 then 1 else 0 end;
end;
GO

-- Whether a text is a whole number of at most @most digits.
create or alter function wf.wf_is_digits(@text nvarchar(max), @most int) returns bit
as
begin
    declare @v_digits nvarchar(max) = case when left(@text, 1) = N'-'
                                           then substring(@text, 2, 1000) else @text end;
    return case when len(@v_digits + N'.') - 1 between 1 and @most
                     and patindex(N'%[^0-9]%', @v_digits collate Latin1_General_100_BIN2) = 0
                then 1 else 0 end;
end;
GO

-- Reports that a task failed: a submit with @error_code if it is negative, else -1.
create or alter procedure wf.sp_worker_fail_task
    @node_execution_id bigint,
    @worker_id nvarchar(4000),
    @worker_token nvarchar(4000),
    @error_code int,
    @error_message nvarchar(max),
    @lease_token bigint = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_result_code int = case when @error_code < 0 then @error_code else -1 end;

    exec wf.sp_worker_submit_result @node_execution_id = @node_execution_id,
        @worker_id = @worker_id, @worker_token = @worker_token, @result_code = @v_result_code,
        @lease_token = @lease_token, @message = @error_message;
end;
GO

-- Extends a lease. rows_updated 0 with CANCEL: the lease is gone and the work may stop.
-- Locks: the task's row, then the row of the worker's presence. Errors: 20001, 20004.
create or alter procedure wf.sp_worker_heartbeat
    @node_execution_id bigint,
    @worker_id nvarchar(4000),
    @worker_token nvarchar(4000),
    @extend_seconds int = 300,
    @lease_token bigint = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_now datetime2(3);
    declare @v_until datetime2(3);
    declare @v_rows int;

    exec wf.wf_worker_authenticate @worker_id = @worker_id, @worker_token = @worker_token;
    if @extend_seconds is null or @extend_seconds not between 1 and 86400
        throw 70004, N'extend_seconds must be between 1 and 86400', 1;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        set @v_now = wf.wf_now();
        set @v_until = dateadd(second, @extend_seconds, @v_now);
        update wf.task
           set lease_until = case when lease_until > @v_until then lease_until else @v_until end
         where node_execution_id = @node_execution_id and worker_id = @worker_id
           and (@lease_token is null or lease_token = @lease_token);
        set @v_rows = @@rowcount;
        update wf.worker_presence set last_seen_at = @v_now where worker_id = @worker_id;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select @v_rows as rows_updated, w.desired_state,
           case when @v_rows = 0 then N'CANCEL' else wf.wf_worker_command(w.desired_state) end
               as command
      from wf.worker as w
     where w.worker_id = @worker_id;
end;
GO

-- Gives a task back unharmed: READY at once, no attempt used (R28). Locks: the task's row.
-- Errors: 20001.
create or alter procedure wf.sp_worker_release_task
    @node_execution_id bigint,
    @worker_id nvarchar(4000),
    @worker_token nvarchar(4000),
    @lease_token bigint = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_rows int;

    exec wf.wf_worker_authenticate @worker_id = @worker_id, @worker_token = @worker_token;
    update wf.task
       set worker_id = null, lease_until = null, claimed_at = null, deadline_at = null,
           delivery_count = delivery_count - 1
     where node_execution_id = @node_execution_id and worker_id = @worker_id
       and (@lease_token is null or lease_token = @lease_token);
    set @v_rows = @@rowcount;
    select @v_rows as rows_updated;
end;
GO

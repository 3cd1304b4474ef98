-- What happens by itself at a time: time-outs, sleeps, tasks that become due. Twin: pg/wf_timers.sql
--
-- No process of its own (R21): the passes run within a claim and in sp_tick, bounded and backed by
-- an index. A deadline counts from the moment it is due: a submit or an event first applies what is
-- due in its instance (wf_apply_due), so it loses against a deadline that no pass has seen yet.
--
-- A pass gives each instance a transaction of its own, where the twin has a savepoint: an error
-- dooms a whole transaction here. So a pass is called before `begin transaction`; within a caller's
-- own transaction an error is the caller's.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Applies every timer of one instance that is due, in due order, and the time-outs of its leased
-- ACTIONs. Answers whether there was one. Needs the instance's gate exclusive, and #agenda empty.
create or alter procedure wf.wf_apply_due
    @workflow_instance_id bigint,
    @has_acted bit = null output
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);
    declare @v_id bigint;
    declare @v_is_task int;

    set @has_acted = 0;
    select @v_now = c.now from #call as c;
    while 1 = 1
    begin
        set @v_id = null;
        select top (1) @v_id = q.node_execution_id, @v_is_task = q.is_task
          from (select t.node_execution_id, t.due_at, 0 as is_task
                  from wf.timer as t
                 where t.workflow_instance_id = @workflow_instance_id and t.due_at <= @v_now
                union all
                select k.node_execution_id, k.deadline_at, 1
                  from wf.task as k
                 where k.workflow_instance_id = @workflow_instance_id
                   and k.deadline_at <= @v_now) as q
         order by q.due_at, q.node_execution_id;
        if @v_id is null return;
        set @has_acted = 1;
        if not exists (select 1 from #exclusive as x
                        where x.workflow_instance_id = @workflow_instance_id)
            insert into #exclusive (workflow_instance_id) values (@workflow_instance_id);
        if @v_is_task = 1
            exec wf.wf_time_out_task @node_execution_id = @v_id;
        else
        begin
            delete from wf.timer where node_execution_id = @v_id;
            exec wf.wf_timer_entry @node_execution_id = @v_id,
                @workflow_instance_id = @workflow_instance_id;
            exec wf.wf_engine_run;
        end;
    end;
end;
GO

-- The agenda of one timer that is due: a sleep has succeeded, anything else has timed out.
create or alter procedure wf.wf_timer_entry
    @node_execution_id bigint,
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_is_sleep bit;
    declare @v_success_may_close bit;

    select @v_is_sleep = case when n.node_type = N'SEQUENCE' and n.delay_ms is not null
                              then 1 else 0 end,
           @v_success_may_close = n.success_may_close
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @node_execution_id;
    if @v_is_sleep = 1
        update e
           set status = N'SUCCEEDED', result_code = 0, ended_at = c.now
          from wf.node_execution as e
         cross join #call as c
         where e.node_execution_id = @node_execution_id;
    insert into #agenda (ordinal, node_execution_id, workflow_instance_id, kind)
    values (1, @node_execution_id, @workflow_instance_id,
            case when @v_is_sleep = 0 then N'T' when @v_success_may_close = 1 then N'J'
                 else N'S' end);
end;
GO

-- An ACTION ran past its timeout: the attempt fails with 10013, and may be made again. Needs the
-- exclusive gate. Locks: the task's row.
create or alter procedure wf.wf_time_out_task
    @node_execution_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_retry nvarchar(max);
    declare @v_text nvarchar(max);

    -- The update that changes nothing takes the row, so that no call extends the lease meanwhile.
    update t
       set deadline_at = t.deadline_at
      from wf.task as t
     cross join #call as c
     where t.node_execution_id = @node_execution_id and t.deadline_at <= c.now;
    if @@rowcount = 0 return;
    select @v_retry = n.retry_json, @v_text = concat(N'timed out after ', n.timeout_ms, N' ms')
      from wf.task as t
      join wf.workflow_node as n on n.node_id = t.node_id
     where t.node_execution_id = @node_execution_id;
    exec wf.wf_fail_attempt @node_execution_id = @node_execution_id, @retry_json = @v_retry,
        @failure = N'10013', @engine_error_code = 10013, @text = @v_text;
end;
GO

-- An attempt that the engine itself ends with an error: made again when the retry policy takes
-- @failure, else its node fails. Needs the exclusive gate, named in #exclusive, and the task's row;
-- #agenda is empty.
create or alter procedure wf.wf_fail_attempt
    @node_execution_id bigint,
    @retry_json nvarchar(max),
    @failure nvarchar(20),
    @engine_error_code int,
    @text nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_message nvarchar(max) =
        concat(wf.wf_execution_path(@node_execution_id), N': ', @text);
    declare @v_now datetime2(3);
    declare @v_takes bit;

    select @v_now = c.now from #call as c;
    select @v_takes = wf.wf_retry_takes(@retry_json, t.attempt_no - t.attempts_before, @failure)
      from wf.task as t
     where t.node_execution_id = @node_execution_id;
    if @v_takes = 1
    begin
        exec wf.wf_retry_task @node_execution_id = @node_execution_id, @retry_json = @retry_json,
            @result_code = null, @engine_error_code = @engine_error_code, @message = @v_message,
            @output_json = null;
        return;
    end;
    update e
       set status = N'FAILED', result_code = null, engine_error_code = @engine_error_code,
           engine_error_message = @v_message, error_execution_id = t.node_execution_id,
           input_json = t.input_json, worker_id = t.worker_id, attempt_no = t.attempt_no,
           delivery_count = t.delivery_count, last_token = t.lease_token,
           started_at = t.claimed_at, ended_at = @v_now
      from wf.node_execution as e
      join wf.task as t on t.node_execution_id = e.node_execution_id
     where e.node_execution_id = @node_execution_id;
    delete from wf.task where node_execution_id = @node_execution_id;
    insert into #agenda (ordinal, node_execution_id, workflow_instance_id, kind)
    select 1, e.node_execution_id, e.workflow_instance_id, N'F'
      from wf.node_execution as e
     where e.node_execution_id = @node_execution_id;
    exec wf.wf_engine_run;
end;
GO

-- Makes delayed tasks claimable whose time has come; those of a paused instance wait. Answers how
-- many. Locks: task rows.
create or alter procedure wf.wf_release_due_tasks
    @limit int,
    @count int output
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);
    declare @v_due table (node_execution_id bigint not null primary key);

    set @count = 0;
    select @v_now = c.now from #call as c;
    insert into @v_due (node_execution_id)
    select top (@limit) t.node_execution_id
      from wf.task as t with (readpast)
      join wf.workflow_instance as i on i.workflow_instance_id = t.workflow_instance_id
     where t.is_claimable = 0 and t.available_at <= @v_now and i.status = N'RUNNING'
     order by t.available_at, t.node_execution_id;
    -- Most calls find nothing.
    if @@rowcount = 0 return;
    update t
       set is_claimable = 1
      from wf.task as t with (rowlock, readpast)
      join @v_due as d on d.node_execution_id = t.node_execution_id
     where t.is_claimable = 0 and t.available_at <= @v_now;
    set @count = @@rowcount;
end;
GO

-- Applies what is due, instance by instance, in due order; an instance that another call is at, or
-- that is paused, is left for the next pass. Answers how many instances it went through.
-- Locks: gates exclusive without waiting.
create or alter procedure wf.wf_run_timers
    @limit int,
    @count int output
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);
    declare @v_id bigint;
    declare @v_has_acted bit;
    declare @v_instance table (
        position bigint not null primary key,
        workflow_instance_id bigint not null
    );

    set @count = 0;
    select @v_now = c.now from #call as c;
    insert into @v_instance (position, workflow_instance_id)
    select row_number() over (order by min(q.due_at), q.workflow_instance_id),
           q.workflow_instance_id
      from (select * from (select top (@limit) t.workflow_instance_id, t.due_at
                             from wf.timer as t
                            where t.due_at <= @v_now
                            order by t.due_at, t.node_execution_id) as x
            union all
            select * from (select top (@limit) k.workflow_instance_id, k.deadline_at
                             from wf.task as k
                            where k.deadline_at <= @v_now
                            order by k.deadline_at, k.node_execution_id) as y) as q
     group by q.workflow_instance_id;
    declare v_instance cursor local static for
        select i.workflow_instance_id from @v_instance as i order by i.position;
    open v_instance;
    fetch next from v_instance into @v_id;
    while @@fetch_status = 0
    begin
        exec wf.wf_run_timers_of @workflow_instance_id = @v_id, @has_acted = @v_has_acted output;
        set @count = @count + case when @v_has_acted = 1 then 1 else 0 end;
        fetch next from v_instance into @v_id;
    end;
    close v_instance;
    deallocate v_instance;
end;
GO

-- What is due in one instance, in a transaction of its own: whatever one instance makes of its
-- timers, the others' act.
create or alter procedure wf.wf_run_timers_of
    @workflow_instance_id bigint,
    @has_acted bit output
as
begin
    set nocount, xact_abort on;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_is_taken bit;
    declare @v_message nvarchar(2000);

    set @has_acted = 0;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        delete from #exclusive;
        delete from #agenda;
        exec wf.wf_take_gate @workflow_instance_id = @workflow_instance_id, @is_exclusive = 1,
            @waits = 0, @is_taken = @v_is_taken output;
        if @v_is_taken = 1
           and exists (select 1 from wf.workflow_instance as i
                        where i.workflow_instance_id = @workflow_instance_id
                          and i.status = N'RUNNING')
            exec wf.wf_apply_due @workflow_instance_id = @workflow_instance_id,
                @has_acted = @has_acted output;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 0 throw;
        if xact_state() <> 0 rollback transaction;
        set @has_acted = 0;
        set @v_message = concat(N'timers of instance ', @workflow_instance_id, N' could not act: ',
            left(error_message(), 1500));
        raiserror (N'%s', 10, 1, @v_message) with nowait;
    end catch;
end;
GO

-- The periodic pass of workers and gateways, who call it every few seconds, so that a graph that only
-- waits moves too: expired leases, timers, delayed tasks. Bounded: at most 100 of each.
create or alter procedure wf.sp_tick
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_reclaimed_count int;
    declare @v_timer_count int;
    declare @v_released_count int;

    exec wf.wf_run_passes @reclaimed_count = @v_reclaimed_count output,
        @timer_count = @v_timer_count output, @released_count = @v_released_count output;
    select @v_reclaimed_count as reclaimed_count, @v_timer_count as timer_count,
           @v_released_count as released_count;
end;
GO

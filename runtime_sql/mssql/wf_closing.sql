-- Ends: joins, failures, on_error, finally, cancellation, the end of an instance.
-- Twin: pg/wf_closing.sql
--
-- Everything here that closes other work needs the instance's gate exclusive. The engine's loop
-- takes such entries alone (kinds F, J and T of 03_engine_core.sql) and has checked the gate. Where
-- the twin answers steps, these add them to #step; all read the time of the call in #call.
--
-- What a closing composite waits for (R13): a SEQUENCE with a finally that is cancelled stays
-- RUNNING, runs it, and is CANCELLED then. Rows of wf.pending_end make a tree of those that wait:
-- cancel_parent_id names who is told when a cancelled SEQUENCE is done.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Steps -------------------------------------------------------------------------------------------

-- Lets an execution fail with the error of another, which it copies (R13).
create or alter procedure wf.wf_fail_by_step
    @ordinal int,
    @node_execution_id bigint,
    @workflow_instance_id bigint,
    @failed_execution_id bigint
as
begin
    set nocount, xact_abort on;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, result_code,
                       engine_error_code, message, error_execution_id)
    select @ordinal, 0, N'FAIL', @node_execution_id, @workflow_instance_id, e.result_code,
           e.engine_error_code, e.engine_error_message, e.error_execution_id
      from wf.node_execution as e
     where e.node_execution_id = @failed_execution_id;
end;
GO

-- Lets an execution take the verdict that stands on its row of wf.pending_end, which goes.
create or alter procedure wf.wf_take_verdict
    @ordinal int,
    @node_execution_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_instance_id bigint;
    declare @v_verdict nvarchar(20);
    declare @v_result_code int;
    declare @v_code int;
    declare @v_message nvarchar(max);
    declare @v_error_id bigint;

    update wf.pending_end
       set verdict = N'FAIL', phase = N'ON_ERROR'
     where node_execution_id = @node_execution_id and verdict = N'HANDLER_FAILED';
    if @@rowcount > 0
    begin
        exec wf.wf_sequence_finally @ordinal = @ordinal, @node_execution_id = @node_execution_id;
        return;
    end;
    select @v_instance_id = p.workflow_instance_id, @v_verdict = p.verdict,
           @v_result_code = p.result_code, @v_code = p.engine_error_code,
           @v_message = p.engine_error_message, @v_error_id = p.error_execution_id
      from wf.pending_end as p
     where p.node_execution_id = @node_execution_id;
    delete from wf.pending_end where node_execution_id = @node_execution_id;
    if @v_verdict = N'BODY_FAILED'
        exec wf.wf_sequence_body_failed @ordinal = @ordinal,
            @node_execution_id = @node_execution_id, @workflow_instance_id = @v_instance_id,
            @result_code = @v_result_code, @engine_error_code = @v_code,
            @engine_error_message = @v_message, @error_execution_id = @v_error_id;
    else if @v_verdict = N'SUCCEED'
        exec wf.wf_succeed_step @ordinal = @ordinal, @node_execution_id = @node_execution_id,
            @workflow_instance_id = @v_instance_id;
    else
        insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id,
                           result_code, engine_error_code, message, error_execution_id)
        values (@ordinal, 0, N'FAIL', @node_execution_id, @v_instance_id, @v_result_code, @v_code,
                @v_message, @v_error_id);
end;
GO

-- Joins -------------------------------------------------------------------------------------------

-- One child of a PARALLEL or FOREACH has ended. Closes the join when it is decided (N successes, or
-- one failure too many), unless it keeps going; else starts the next child while there is one, and
-- decides when none is open (S6.3, S6.8, R31, R32).
-- Locks: the counter's row.
create or alter procedure wf.wf_join_ended
    @ordinal int,
    @child_execution_id bigint,
    @has_succeeded bit
as
begin
    set nocount, xact_abort on;
    declare @v_instance_id bigint;
    declare @v_parent_id bigint;
    declare @v_parent_node_id bigint;
    declare @v_parent_type nvarchar(20);
    declare @v_total_count int;
    declare @v_open_count int;
    declare @v_succeeded_count int;
    declare @v_failed_count int;
    declare @v_last_started int;
    declare @v_needed_count int;
    declare @v_allowed_failures int;
    declare @v_keeps_going bit;
    declare @v_skips_known bit;
    declare @v_first_failed_id bigint;

    select @v_instance_id = e.workflow_instance_id, @v_parent_id = e.parent_execution_id,
           @v_parent_node_id = n.parent_node_id, @v_parent_type = n.parent_type
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @child_execution_id;
    update c
       set open_count = c.open_count - case when c.next_index < c.total_count then 0 else 1 end,
           last_started = case when c.next_index < c.total_count then c.next_index end,
           next_index = case when c.next_index < c.total_count then c.next_index + 1
                             else c.total_count end,
           succeeded_count = c.succeeded_count + case @has_succeeded when 1 then 1 else 0 end,
           failed_count = c.failed_count + case @has_succeeded when 1 then 0 else 1 end,
           first_failed_id = case when @has_succeeded = 1 then c.first_failed_id
                                  else coalesce(c.first_failed_id, @child_execution_id) end
      from wf.join_counter as c
     where c.node_execution_id = @v_parent_id;
    if @@rowcount = 0 return;
    select @v_skips_known = c.skips_known, @v_last_started = c.last_started,
           @v_keeps_going = c.keeps_going, @v_failed_count = c.failed_count,
           @v_allowed_failures = c.allowed_failures
      from wf.join_counter as c
     where c.node_execution_id = @v_parent_id;
    if @v_skips_known = 1 and @v_last_started is not null
       and (@v_keeps_going = 1 or @v_failed_count <= @v_allowed_failures)
        exec wf.wf_foreach_skip_ahead @node_execution_id = @v_parent_id;
    select @v_total_count = c.total_count, @v_open_count = c.open_count,
           @v_succeeded_count = c.succeeded_count, @v_failed_count = c.failed_count,
           @v_last_started = c.last_started, @v_needed_count = c.needed_count,
           @v_first_failed_id = c.first_failed_id
      from wf.join_counter as c
     where c.node_execution_id = @v_parent_id;
    if @v_keeps_going = 0 and @v_failed_count > @v_allowed_failures
        exec wf.wf_close @ordinal = @ordinal, @workflow_instance_id = @v_instance_id,
            @node_execution_id = @v_parent_id, @verdict = N'FAIL',
            @failed_execution_id = @v_first_failed_id;
    else if @v_keeps_going = 0 and @v_succeeded_count = @v_needed_count
         and @v_needed_count < @v_total_count
        exec wf.wf_close @ordinal = @ordinal, @workflow_instance_id = @v_instance_id,
            @node_execution_id = @v_parent_id, @verdict = N'SUCCEED', @failed_execution_id = null;
    else if @v_last_started is not null
        exec wf.wf_join_start_next @ordinal = @ordinal, @parent_execution_id = @v_parent_id,
            @workflow_instance_id = @v_instance_id, @parent_node_id = @v_parent_node_id,
            @parent_type = @v_parent_type, @index = @v_last_started;
    else if @v_open_count > 0
        return;
    else if @v_failed_count <= @v_allowed_failures
        exec wf.wf_succeed_step @ordinal = @ordinal, @node_execution_id = @v_parent_id,
            @workflow_instance_id = @v_instance_id;
    else
        exec wf.wf_fail_by_step @ordinal = @ordinal, @node_execution_id = @v_parent_id,
            @workflow_instance_id = @v_instance_id, @failed_execution_id = @v_first_failed_id;
end;
GO

-- The child or iteration number @index of a PARALLEL or FOREACH, as a START step.
create or alter procedure wf.wf_join_start_next
    @ordinal int,
    @parent_execution_id bigint,
    @workflow_instance_id bigint,
    @parent_node_id bigint,
    @parent_type nvarchar(20),
    @index int
as
begin
    set nocount, xact_abort on;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, node_id,
                       iteration_no, item_json)
    select @ordinal, 0, N'START', @parent_execution_id, @workflow_instance_id, c.node_id,
           case when @parent_type = N'FOREACH' then @index else 0 end,
           (select f.item_json from wf.foreach_item as f
             where f.node_execution_id = @parent_execution_id and f.iteration_no = @index)
      from wf.workflow_node as c
     where c.parent_node_id = @parent_node_id
       and c.child_order = case when @parent_type = N'FOREACH' then 0 else @index end;
end;
GO

-- Cancelling --------------------------------------------------------------------------------------

-- Closes what is open below a composite and gives it its verdict: at once when nothing is left open,
-- else when the finallys of the SEQUENCEs it cancelled are done.
-- @failed_execution_id: whose error a FAIL copies.
create or alter procedure wf.wf_close
    @ordinal int,
    @workflow_instance_id bigint,
    @node_execution_id bigint,
    @verdict nvarchar(20),
    @failed_execution_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_result_code int;
    declare @v_code int;
    declare @v_message nvarchar(max);
    declare @v_error_id bigint;

    select @v_result_code = e.result_code, @v_code = e.engine_error_code,
           @v_message = e.engine_error_message, @v_error_id = e.error_execution_id
      from wf.node_execution as e
     where e.node_execution_id = @failed_execution_id;
    insert into wf.pending_end (node_execution_id, workflow_instance_id, phase, verdict,
        result_code, engine_error_code, engine_error_message, error_execution_id)
    values (@node_execution_id, @workflow_instance_id, N'WAITING', @verdict, @v_result_code,
            @v_code, @v_message, @v_error_id);
    exec wf.wf_close_below @ordinal = @ordinal, @workflow_instance_id = @workflow_instance_id,
        @node_execution_id = @node_execution_id;
end;
GO

-- The second half of wf_close, for a composite that has its row in wf.pending_end.
create or alter procedure wf.wf_close_below
    @ordinal int,
    @workflow_instance_id bigint,
    @node_execution_id bigint
as
begin
    set nocount, xact_abort on;
    exec wf.wf_cancel_below @ordinal = @ordinal, @workflow_instance_id = @workflow_instance_id,
        @node_execution_id = @node_execution_id, @is_operator = 0;
    delete from wf.timer where node_execution_id = @node_execution_id;
    if not exists (select 1 from wf.pending_end as p
                    where p.cancel_parent_id = @node_execution_id)
        exec wf.wf_take_verdict @ordinal = @ordinal, @node_execution_id = @node_execution_id;
end;
GO

-- Cancels every open execution below one, level by level: READY and leased tasks go, waits, timers
-- and counters go, the rows become CANCELLED. SEQUENCEs with a finally are kept: they get a row in
-- wf.pending_end, and the finallys of those with nothing kept below them start (the steps added, in
-- the order in which the SEQUENCEs were activated).
-- @is_operator: an operator cancels; nothing is kept, and finallys that are running end too.
-- The caller holds the gate exclusive, so no other call completes them meanwhile; a claim that just
-- took such a task has its row deleted under it and hears CANCEL at the next heartbeat.
create or alter procedure wf.wf_cancel_below
    @ordinal int,
    @workflow_instance_id bigint,
    @node_execution_id bigint,
    @is_operator bit
as
begin
    set nocount, xact_abort on;
    declare @v_depth int = 0;
    declare @v_count int;
    declare @v_rank int = 0;
    declare @v_id bigint = 0;
    -- What was found, by depth: K kept, O to be cancelled, P it only has to tell another one now.
    -- tells: whom it tells; those below a kept SEQUENCE tell it, those below another one the same.
    declare @v_found table (
        node_execution_id bigint not null primary key,
        depth int not null,
        tells bigint not null,
        kind nchar(1) not null
    );
    create table #open (node_execution_id bigint not null primary key);

    insert into @v_found (node_execution_id, depth, tells, kind)
    values (@node_execution_id, 0, @node_execution_id, N'R');
    while 1 = 1
    begin
        insert into @v_found (node_execution_id, depth, tells, kind)
        select c.node_execution_id, @v_depth + 1,
               case f.kind when N'K' then f.node_execution_id else f.tells end,
               case when @is_operator = 0 and (q.phase = N'FINALLY' or q.is_cancelled = 1) then N'P'
                    when @is_operator = 0 and n.finally_node_id is not null then N'K'
                    else N'O' end
          from @v_found as f
          join wf.node_execution as c
            on c.workflow_instance_id = @workflow_instance_id
           and c.parent_execution_id = f.node_execution_id
           and c.status in (N'READY', N'RUNNING')
          join wf.workflow_node as n on n.node_id = c.node_id
          left join wf.pending_end as q on q.node_execution_id = c.node_execution_id
         where f.depth = @v_depth and f.kind <> N'P';
        set @v_count = @@rowcount;
        if @is_operator = 1
        begin
            -- What an earlier close kept lies below what it cancelled; we look for it by whom it
            -- tells.
            insert into @v_found (node_execution_id, depth, tells, kind)
            select k.node_execution_id, @v_depth + 1, f.tells, N'O'
              from @v_found as f
              join wf.pending_end as k
                on k.cancel_parent_id = f.node_execution_id and k.cancel_parent_id <> 0
             where f.depth = @v_depth
               and not exists (select 1 from @v_found as x
                                where x.node_execution_id = k.node_execution_id);
            set @v_count = @v_count + @@rowcount;
        end;
        if @v_count = 0 break;
        set @v_depth = @v_depth + 1;
    end;

    -- Its finally goes on, or it waits for those below it.
    update q
       set is_cancelled = 1, cancel_parent_id = f.tells
      from wf.pending_end as q
      join @v_found as f on f.node_execution_id = q.node_execution_id
     where f.kind = N'P';
    update q
       set phase = N'WAITING', is_cancelled = 1, cancel_parent_id = f.tells, verdict = null,
           result_code = null, engine_error_code = null, engine_error_message = null,
           error_execution_id = null
      from wf.pending_end as q
      join @v_found as f on f.node_execution_id = q.node_execution_id
     where f.kind = N'K';
    insert into wf.pending_end (node_execution_id, workflow_instance_id, phase, is_cancelled,
                                cancel_parent_id)
    select f.node_execution_id, @workflow_instance_id, N'WAITING', 1, f.tells
      from @v_found as f
     where f.kind = N'K'
       and not exists (select 1 from wf.pending_end as q
                        where q.node_execution_id = f.node_execution_id);
    -- Whom one that goes was waiting for tells the one above it from now on.
    update q
       set cancel_parent_id = f.tells
      from wf.pending_end as q
      join @v_found as f on f.node_execution_id = q.cancel_parent_id
     where f.kind = N'O';

    delete from wf.timer where node_execution_id in
        (select f.node_execution_id from @v_found as f where f.kind in (N'K', N'O'));
    insert into #open (node_execution_id)
    select f.node_execution_id from @v_found as f where f.kind = N'O';
    exec wf.wf_cancel_executions @is_for_good = @is_operator;
    while 1 = 1
    begin
        select @v_id = min(f.node_execution_id) from @v_found as f
         where f.kind = N'K' and f.node_execution_id > @v_id;
        if @v_id is null break;
        set @v_rank = @v_rank + 1;
        exec wf.wf_start_finally @ordinal = @ordinal, @rank = @v_rank, @node_execution_id = @v_id;
    end;
end;
GO

-- Starts the finally of a cancelled SEQUENCE when no other one is left below it.
create or alter procedure wf.wf_start_finally
    @ordinal int,
    @rank int,
    @node_execution_id bigint
as
begin
    set nocount, xact_abort on;
    if exists (select 1 from wf.pending_end as p where p.cancel_parent_id = @node_execution_id)
        return;
    update wf.pending_end set phase = N'FINALLY' where node_execution_id = @node_execution_id;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, node_id,
                       iteration_no)
    select @ordinal, @rank, N'START', e.node_execution_id, e.workflow_instance_id,
           n.finally_node_id, 0
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @node_execution_id;
end;
GO

-- Makes open executions, those of #open (node_execution_id bigint), a table of the caller, CANCELLED
-- and removes what only open ones have. What a retry of the failure that cancelled them would go on
-- from stays (R14), unless it is for good.
create or alter procedure wf.wf_cancel_executions
    @is_for_good bit
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);
    declare @v_gone table (
        node_execution_id bigint not null primary key,
        input_json nvarchar(max) not null,
        worker_id nvarchar(200) null,
        claimed_at datetime2(3) null,
        attempt_no int not null,
        delivery_count int not null,
        lease_token bigint not null
    );

    if not exists (select 1 from #open) return;
    select @v_now = c.now from #call as c;
    delete from wf.task
    output deleted.node_execution_id, deleted.input_json, deleted.worker_id, deleted.claimed_at,
           deleted.attempt_no, deleted.delivery_count, deleted.lease_token
      into @v_gone (node_execution_id, input_json, worker_id, claimed_at, attempt_no,
                    delivery_count, lease_token)
     where node_execution_id in (select o.node_execution_id from #open as o);
    update e
       set status = N'CANCELLED', ended_at = @v_now, input_json = g.input_json,
           worker_id = g.worker_id, started_at = g.claimed_at,
           attempt_no = g.attempt_no - case when g.claimed_at is null then 1 else 0 end,
           delivery_count = g.delivery_count, last_token = nullif(g.lease_token, 0)
      from wf.node_execution as e
      join @v_gone as g on g.node_execution_id = e.node_execution_id;
    update wf.node_execution
       set status = N'CANCELLED', ended_at = @v_now
     where node_execution_id in (select o.node_execution_id from #open as o)
       and status in (N'READY', N'RUNNING');
    delete from wf.event_wait
     where node_execution_id in (select o.node_execution_id from #open as o);
    delete from wf.pending_end
     where node_execution_id in (select o.node_execution_id from #open as o);
    if @is_for_good = 1 exec wf.wf_forget_progress;
end;
GO

-- Removes the counters, items and counts of composites that will not go on: those of #open
-- (node_execution_id bigint), a table of the caller.
create or alter procedure wf.wf_forget_progress
as
begin
    set nocount, xact_abort on;
    delete from wf.join_counter
     where node_execution_id in (select o.node_execution_id from #open as o);
    delete from wf.loop_state
     where node_execution_id in (select o.node_execution_id from #open as o);
    delete from wf.foreach_item
     where node_execution_id in (select o.node_execution_id from #open as o);
end;
GO

-- SEQUENCEs with on_error and finally --------------------------------------------------------------

-- The body of a SEQUENCE has failed with this error: on_error runs if there is one, else finally,
-- else the SEQUENCE fails.
create or alter procedure wf.wf_sequence_body_failed
    @ordinal int,
    @node_execution_id bigint,
    @workflow_instance_id bigint,
    @result_code int,
    @engine_error_code int,
    @engine_error_message nvarchar(max),
    @error_execution_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_on_error_id bigint;
    declare @v_next_id bigint;

    select @v_on_error_id = n.on_error_node_id,
           @v_next_id = coalesce(n.on_error_node_id, n.finally_node_id)
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @node_execution_id;
    if @v_next_id is null
    begin
        insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id,
                           result_code, engine_error_code, message, error_execution_id)
        values (@ordinal, 0, N'FAIL', @node_execution_id, @workflow_instance_id, @result_code,
                @engine_error_code, @engine_error_message, @error_execution_id);
        return;
    end;
    if @v_on_error_id is null
        delete from wf.timer where node_execution_id = @node_execution_id;
    insert into wf.pending_end (node_execution_id, workflow_instance_id, phase, verdict,
        result_code, engine_error_code, engine_error_message, error_execution_id)
    values (@node_execution_id, @workflow_instance_id,
            case when @v_on_error_id is null then N'FINALLY' else N'ON_ERROR' end, N'FAIL',
            @result_code, @engine_error_code, @engine_error_message, @error_execution_id);
    exec wf.wf_start_step @ordinal = @ordinal, @parent_execution_id = @node_execution_id,
        @workflow_instance_id = @workflow_instance_id, @node_id = @v_next_id;
end;
GO

-- A child of a SEQUENCE has failed: its body, its on_error or its finally.
create or alter procedure wf.wf_sequence_failed
    @ordinal int,
    @child_execution_id bigint,
    @edge_kind nvarchar(20)
as
begin
    set nocount, xact_abort on;
    declare @v_parent_id bigint;
    declare @v_instance_id bigint;
    declare @v_result_code int;
    declare @v_code int;
    declare @v_message nvarchar(max);
    declare @v_error_id bigint;
    declare @v_is_cancelled bit;
    declare @v_verdict nvarchar(20);

    -- The error of the child is the verdict of its parent.
    select @v_parent_id = e.parent_execution_id, @v_instance_id = e.workflow_instance_id,
           @v_result_code = e.result_code, @v_code = e.engine_error_code,
           @v_message = e.engine_error_message, @v_error_id = e.error_execution_id
      from wf.node_execution as e
     where e.node_execution_id = @child_execution_id;
    if @edge_kind = N'SEQUENCE'
    begin
        exec wf.wf_sequence_body_failed @ordinal = @ordinal, @node_execution_id = @v_parent_id,
            @workflow_instance_id = @v_instance_id, @result_code = @v_result_code,
            @engine_error_code = @v_code, @engine_error_message = @v_message,
            @error_execution_id = @v_error_id;
        return;
    end;
    if @edge_kind = N'ON_ERROR'
    begin
        update wf.pending_end
           set result_code = @v_result_code, engine_error_code = @v_code,
               engine_error_message = @v_message, error_execution_id = @v_error_id
         where node_execution_id = @v_parent_id;
        exec wf.wf_sequence_finally @ordinal = @ordinal, @node_execution_id = @v_parent_id;
        return;
    end;
    select @v_is_cancelled = p.is_cancelled, @v_verdict = p.verdict
      from wf.pending_end as p
     where p.node_execution_id = @v_parent_id;
    if @v_is_cancelled = 1
        exec wf.wf_cancelled_done @ordinal = @ordinal, @node_execution_id = @v_parent_id;
    else if @v_verdict = N'SUCCEED'
    begin
        delete from wf.pending_end where node_execution_id = @v_parent_id;
        exec wf.wf_fail_by_step @ordinal = @ordinal, @node_execution_id = @v_parent_id,
            @workflow_instance_id = @v_instance_id, @failed_execution_id = @child_execution_id;
    end
    else
    begin
        update wf.pending_end
           set engine_error_message = concat(engine_error_message, N' (and in finally: ',
                                             @v_message, N')')
         where node_execution_id = @v_parent_id;
        exec wf.wf_take_verdict @ordinal = @ordinal, @node_execution_id = @v_parent_id;
    end;
end;
GO

-- Goes on from on_error, or from a body that succeeded, with the verdict on the row: to the finally,
-- if there is one, else to the end.
create or alter procedure wf.wf_sequence_finally
    @ordinal int,
    @node_execution_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_instance_id bigint;
    declare @v_finally_id bigint;

    select @v_instance_id = e.workflow_instance_id, @v_finally_id = n.finally_node_id
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @node_execution_id;
    if @v_finally_id is null
    begin
        exec wf.wf_take_verdict @ordinal = @ordinal, @node_execution_id = @node_execution_id;
        return;
    end;
    -- Once the finally has begun, the time-out no longer applies.
    delete from wf.timer where node_execution_id = @node_execution_id;
    update wf.pending_end set phase = N'FINALLY' where node_execution_id = @node_execution_id;
    exec wf.wf_start_step @ordinal = @ordinal, @parent_execution_id = @node_execution_id,
        @workflow_instance_id = @v_instance_id, @node_id = @v_finally_id;
end;
GO

-- The last child of a body, an on_error or a finally has succeeded.
create or alter procedure wf.wf_sequence_done
    @ordinal int,
    @child_execution_id bigint,
    @edge_kind nvarchar(20)
as
begin
    set nocount, xact_abort on;
    declare @v_parent_id bigint;
    declare @v_instance_id bigint;
    declare @v_is_cancelled bit;

    select @v_parent_id = e.parent_execution_id, @v_instance_id = e.workflow_instance_id
      from wf.node_execution as e
     where e.node_execution_id = @child_execution_id;
    if @edge_kind = N'SEQUENCE'
    begin
        insert into wf.pending_end (node_execution_id, workflow_instance_id, phase, verdict)
        values (@v_parent_id, @v_instance_id, N'FINALLY', N'SUCCEED');
        exec wf.wf_sequence_finally @ordinal = @ordinal, @node_execution_id = @v_parent_id;
        return;
    end;
    if @edge_kind = N'ON_ERROR'
    begin
        update wf.pending_end
           set verdict = N'SUCCEED', result_code = null, engine_error_code = null,
               engine_error_message = null, error_execution_id = null
         where node_execution_id = @v_parent_id;
        exec wf.wf_sequence_finally @ordinal = @ordinal, @node_execution_id = @v_parent_id;
        return;
    end;
    select @v_is_cancelled = p.is_cancelled from wf.pending_end as p
     where p.node_execution_id = @v_parent_id;
    if @v_is_cancelled = 1
        exec wf.wf_cancelled_done @ordinal = @ordinal, @node_execution_id = @v_parent_id;
    else
        exec wf.wf_take_verdict @ordinal = @ordinal, @node_execution_id = @v_parent_id;
end;
GO

-- The finally of a cancelled SEQUENCE has ended, whatever it gave: the SEQUENCE is CANCELLED, and the
-- one it tells goes on when this was the last it waited for.
create or alter procedure wf.wf_cancelled_done
    @ordinal int,
    @node_execution_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);
    declare @v_above_id bigint;
    declare @v_is_cancelled bit;

    select @v_now = c.now from #call as c;
    select @v_above_id = p.cancel_parent_id from wf.pending_end as p
     where p.node_execution_id = @node_execution_id;
    delete from wf.pending_end where node_execution_id = @node_execution_id;
    update wf.node_execution
       set status = N'CANCELLED', ended_at = @v_now
     where node_execution_id = @node_execution_id;
    if exists (select 1 from wf.pending_end as p where p.cancel_parent_id = @v_above_id) return;
    select @v_is_cancelled = p.is_cancelled from wf.pending_end as p
     where p.node_execution_id = @v_above_id;
    if @v_is_cancelled = 1
        exec wf.wf_start_finally @ordinal = @ordinal, @rank = 0, @node_execution_id = @v_above_id;
    else
        exec wf.wf_take_verdict @ordinal = @ordinal, @node_execution_id = @v_above_id;
end;
GO

-- Closing entries ---------------------------------------------------------------------------------

-- One entry that may close other work: a failure (F), a success that may decide its parent (J), a
-- time that is up (T). Needs the exclusive gate.
create or alter procedure wf.wf_engine_close
    @ordinal int,
    @node_execution_id bigint,
    @workflow_instance_id bigint,
    @kind nchar(1)
as
begin
    set nocount, xact_abort on;
    declare @v_parent_id bigint;
    declare @v_parent_type nvarchar(20);
    declare @v_edge_kind nvarchar(20);
    declare @v_has_succeeded bit = case when @kind = N'J' then 1 else 0 end;

    select @v_parent_id = e.parent_execution_id, @v_parent_type = n.parent_type,
           @v_edge_kind = n.edge_kind
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @node_execution_id;
    if @kind = N'T'
        exec wf.wf_time_is_up @ordinal = @ordinal, @node_execution_id = @node_execution_id,
            @workflow_instance_id = @workflow_instance_id;
    else if @v_parent_id = 0
        exec wf.wf_end_instance @workflow_instance_id = @workflow_instance_id, @status = N'FAILED',
            @root_execution_id = @node_execution_id;
    else if @v_parent_type in (N'PARALLEL', N'FOREACH')
        exec wf.wf_join_ended @ordinal = @ordinal, @child_execution_id = @node_execution_id,
            @has_succeeded = @v_has_succeeded;
    else if @kind = N'J'
        exec wf.wf_sequence_done @ordinal = @ordinal, @child_execution_id = @node_execution_id,
            @edge_kind = @v_edge_kind;
    else if @v_parent_type = N'SEQUENCE'
        exec wf.wf_sequence_failed @ordinal = @ordinal, @child_execution_id = @node_execution_id,
            @edge_kind = @v_edge_kind;
    else
        exec wf.wf_fail_by_step @ordinal = @ordinal, @node_execution_id = @v_parent_id,
            @workflow_instance_id = @workflow_instance_id,
            @failed_execution_id = @node_execution_id;
end;
GO

-- The time of a composite or a WAIT_EVENT is up (S7.3, S8.5): what is open below a composite is
-- cancelled and it fails with 10013, a SEQUENCE by way of its on_error and finally; a WAIT_EVENT runs
-- its timeout body, or fails.
create or alter procedure wf.wf_time_is_up
    @ordinal int,
    @node_execution_id bigint,
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_node_type nvarchar(20);
    declare @v_timeout_ms bigint;
    declare @v_timeout_node_id bigint;
    declare @v_message nvarchar(max);

    select @v_node_type = n.node_type, @v_timeout_ms = n.timeout_ms,
           @v_timeout_node_id = n.timeout_node_id
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @node_execution_id;
    delete from wf.event_wait where node_execution_id = @node_execution_id;
    if @v_timeout_node_id is not null
    begin
        update wf.node_execution set status = N'RUNNING'
         where node_execution_id = @node_execution_id;
        exec wf.wf_start_step @ordinal = @ordinal, @parent_execution_id = @node_execution_id,
            @workflow_instance_id = @workflow_instance_id, @node_id = @v_timeout_node_id;
        return;
    end;
    set @v_message = concat(wf.wf_execution_path(@node_execution_id), N': timed out after ',
        @v_timeout_ms, N' ms');
    -- The time of a SEQUENCE is up in its on_error, which ends and is not tried again.
    update wf.pending_end
       set phase = N'WAITING', verdict = N'HANDLER_FAILED', result_code = null,
           engine_error_code = 10013, engine_error_message = @v_message,
           error_execution_id = @node_execution_id
     where node_execution_id = @node_execution_id;
    if @@rowcount = 0
        insert into wf.pending_end (node_execution_id, workflow_instance_id, phase, verdict,
            engine_error_code, engine_error_message, error_execution_id)
        values (@node_execution_id, @workflow_instance_id, N'WAITING',
                case @v_node_type when N'SEQUENCE' then N'BODY_FAILED' else N'FAIL' end,
                10013, @v_message, @node_execution_id);
    exec wf.wf_close_below @ordinal = @ordinal, @workflow_instance_id = @workflow_instance_id,
        @node_execution_id = @node_execution_id;
end;
GO

-- Instances ---------------------------------------------------------------------------------------

-- Ends an instance whose root has ended; its error is the root's.
create or alter procedure wf.wf_end_instance
    @workflow_instance_id bigint,
    @status nvarchar(20),
    @root_execution_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);

    select @v_now = c.now from #call as c;
    update i
       set status = @status, ended_at = @v_now,
           error_code = case when @status = N'FAILED' then e.result_code end,
           engine_error_code = case when @status = N'FAILED' then e.engine_error_code end,
           engine_error_message = case when @status = N'FAILED' then e.engine_error_message end,
           error_execution_id = case when @status = N'FAILED' then e.error_execution_id end
      from wf.workflow_instance as i
      join wf.node_execution as e on e.node_execution_id = @root_execution_id
     where i.workflow_instance_id = @workflow_instance_id;
end;
GO

-- The root has succeeded: evaluates `output` in the root's scope and ends the instance. A name that
-- only a `set` would have brought into being, and none has, gives null; any other error fails the
-- instance at the root (R16).
create or alter procedure wf.wf_finish_instance
    @workflow_instance_id bigint,
    @root_execution_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_name nvarchar(max);
    declare @v_program nvarchar(max);
    declare @v_value nvarchar(max);
    declare @v_result nvarchar(max);
    declare @v_code int;
    declare @v_message nvarchar(max);
    declare v_output cursor local static for
        select json_value(o.value, N'$.name'), json_query(o.value, N'$.program')
          from wf.workflow_instance as i
          join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
         cross apply openjson(v.outputs_json) as o
         where i.workflow_instance_id = @workflow_instance_id
         order by cast(o.[key] as int);

    open v_output;
    fetch next from v_output into @v_name, @v_program;
    while @@fetch_status = 0
    begin
        exec wf.wf_eval_expression @program = @v_program, @execution_id = @root_execution_id,
            @unset_is_null = 1, @value_json = @v_value output, @error_code = @v_code output,
            @error_message = @v_message output;
        if @v_code is not null break;
        set @v_result = concat(@v_result + N',', wf.wf_json_quote(@v_name), N':', @v_value);
        fetch next from v_output into @v_name, @v_program;
    end;
    close v_output;
    deallocate v_output;
    if @v_code is null and @v_result is not null
    begin
        set @v_result = concat(N'{', @v_result, N'}');
        set @v_message = wf.wf_storable_problem(@v_result);
        if @v_message is not null set @v_code = 10018;
    end;
    if @v_code is not null
    begin
        update wf.node_execution
           set status = N'FAILED', result_code = null, error_execution_id = @root_execution_id,
               engine_error_code = @v_code,
               engine_error_message = concat(wf.wf_execution_path(@root_execution_id), N': ',
                                             @v_message)
         where node_execution_id = @root_execution_id;
        exec wf.wf_end_instance @workflow_instance_id = @workflow_instance_id, @status = N'FAILED',
            @root_execution_id = @root_execution_id;
        return;
    end;
    if @v_result is not null
        update wf.execution_context set output_json = @v_result
         where workflow_instance_id = @workflow_instance_id;
    exec wf.wf_end_instance @workflow_instance_id = @workflow_instance_id, @status = N'SUCCEEDED',
        @root_execution_id = @root_execution_id;
end;
GO

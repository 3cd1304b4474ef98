-- The engine's loop: a work list, never recursion. Twin: pg/03_engine_core.sql
--
-- A call that changes instances makes AGENDA ENTRIES and hands them to wf.wf_engine_run, which
-- works them off level by level (rules S1.6, R12). An entry is one execution and what is to be
-- looked at:
--     A  it was activated just now         S  it has succeeded        F  it has failed
--     J  it has succeeded, which may decide a join or end a cancelled SEQUENCE
--     T  its time is up                    C  it has succeeded, and the counter of its join may be
--                                             touched now
-- A handler takes the entries of one kind and answers STEPS: START a child, or let an execution
-- SUCCEED or FAIL. wf.wf_engine_apply carries the steps out in set-based statements and answers the
-- entries of the next level. One handler per node type stands in wf_nodes.sql, FOREACH's in
-- 08_foreach_support.sql, WAIT_EVENT's in wf_event_plane.sql.
--
-- What the twin hands on as arrays are tables here, which the entry procedure of the call creates
-- before its transaction (the same block in each of them) and everything below it shares:
--     #call       one row: the time of the call, what is left of its work, whether it has closed
--                 anything, and the instance whose gate it lacks, if it has to start over
--     #exclusive  the instances whose gate is held exclusive
--     #agenda     the level in work        #next   what it leads to, in order
--     #entry      what a handler takes     #step   what handlers answer, by ordinal, rank and seq
--     #held       joins whose counters may not be touched yet
--     #waits      WAIT_EVENTs, which meet their events last
-- A step START: node_execution_id is the parent, node_id and iteration_no the child's, item_json a
-- FOREACH's item. SUCCEED and FAIL: node_execution_id is what ends; item_json is its output.
--
-- Gate (R1). Every caller holds the gate of each instance it hands in: shared when it can only
-- extend its own branch, exclusive when it may close other work. A failure that turns up under a
-- shared gate is no error here, which would doom the transaction: the loop writes the instance into
-- #call.restart_instance_id and returns at once; the entry procedure rolls back to its savepoint and
-- starts over with that gate exclusive.
--
-- Lock order: gates by instance id, tasks, own executions, affinity, join counters, event routes.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The only clock of the engine: UTC, whole milliseconds, cut and not rounded. A row `now` in
-- wf.wf_setting, which only the owner can write and only in a test database, moves it.
create or alter function wf.wf_now() returns datetime2(3)
as
begin
    declare @v_now datetime2(7) = coalesce(
        (select try_convert(datetime2(7), s.value, 127) from wf.wf_setting as s
          where s.name = N'now'),
        sysutcdatetime());
    return dateadd(nanosecond, -(datepart(nanosecond, @v_now) % 1000000), @v_now);
end;
GO

-- The time @ms milliseconds after @at; the last one there is when it would be later. In two parts,
-- since DATEADD counts in int: 24 days of milliseconds.
create or alter function wf.wf_add_ms(@at datetime2(3), @ms bigint) returns datetime2(3)
as
begin
    if @ms / 86400000 >= datediff(day, @at, N'9999-12-31') return N'9999-12-31T23:59:59.999';
    return dateadd(millisecond, @ms % 86400000, dateadd(day, @ms / 86400000, @at));
end;
GO

-- Whether a node's attributes have one of this name.
create or alter function wf.wf_has_attribute(@attributes_json nvarchar(max), @name nvarchar(200))
returns bit
as
begin
    if exists (select 1 from openjson(@attributes_json) as a
                where a.[key] = @name collate Latin1_General_100_BIN2)
        return 1;
    return 0;
end;
GO

-- Takes the gate of an instance (R1) for the rest of the transaction: the one place that does.
-- @waits 1: waits for those who hold it, up to the setting `gate_timeout_ms`, a minute without one.
-- @waits 0: takes it at once or not at all, and @is_taken tells.
-- Errors: 70009 it could not be had.
create or alter procedure wf.wf_take_gate
    @workflow_instance_id bigint,
    @is_exclusive bit,
    @waits bit = 1,
    @is_taken bit = null output
as
begin
    set nocount, xact_abort on;
    declare @v_resource nvarchar(60) = concat(N'wf.i.', @workflow_instance_id);
    declare @v_mode nvarchar(20) = case @is_exclusive when 1 then N'Exclusive' else N'Shared' end;
    declare @v_timeout int = 0;
    declare @v_answer int;
    declare @v_message nvarchar(200);

    if @waits = 1
    begin
        set @v_timeout = null;
        select @v_timeout = try_cast(s.value as int) from wf.wf_setting as s
         where s.name = N'gate_timeout_ms';
        set @v_timeout = coalesce(@v_timeout, 60000);
    end;
    exec @v_answer = sys.sp_getapplock @Resource = @v_resource, @LockMode = @v_mode,
        @LockOwner = N'Transaction', @LockTimeout = @v_timeout;
    set @is_taken = case when @v_answer >= 0 then 1 else 0 end;
    if @is_taken = 0 and @waits = 1
    begin
        set @v_message = concat(N'instance ', @workflow_instance_id, N' is busy');
        throw 70009, @v_message, 1;
    end;
end;
GO

-- The steps that handlers answer most, added to #step.
create or alter procedure wf.wf_start_step
    @ordinal int,
    @parent_execution_id bigint,
    @workflow_instance_id bigint,
    @node_id bigint,
    @iteration_no int = 0
as
begin
    set nocount, xact_abort on;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, node_id,
                       iteration_no)
    values (@ordinal, 0, N'START', @parent_execution_id, @workflow_instance_id, @node_id,
            @iteration_no);
end;
GO

create or alter procedure wf.wf_succeed_step
    @ordinal int,
    @node_execution_id bigint,
    @workflow_instance_id bigint,
    @result_code int = 0
as
begin
    set nocount, xact_abort on;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, result_code)
    values (@ordinal, 0, N'SUCCEED', @node_execution_id, @workflow_instance_id, @result_code);
end;
GO

-- A FAIL step of an execution that the engine itself fails; the message gets the node's path.
create or alter procedure wf.wf_fail_step
    @ordinal int,
    @node_execution_id bigint,
    @workflow_instance_id bigint,
    @engine_error_code int,
    @text nvarchar(max)
as
begin
    set nocount, xact_abort on;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id,
                       engine_error_code, message, error_execution_id)
    values (@ordinal, 0, N'FAIL', @node_execution_id, @workflow_instance_id, @engine_error_code,
            concat(wf.wf_execution_path(@node_execution_id), N': ', @text), @node_execution_id);
end;
GO

-- Evaluates a condition in the place of an execution: its truth, or an engine error.
create or alter procedure wf.wf_eval_condition
    @program_json nvarchar(max),
    @node_execution_id bigint,
    @is_true bit output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_value nvarchar(max);

    set @is_true = null;
    exec wf.wf_eval_expression @program = @program_json, @execution_id = @node_execution_id,
        @value_json = @v_value output,
        @error_code = @error_code output, @error_message = @error_message output;
    if @error_code is not null return;
    set @is_true = wf.wf_truth(@v_value);
    if @is_true is null
    begin
        set @error_code = 10010;
        set @error_message = concat(N'a condition takes a boolean, an integer or null, not ',
            wf.wf_type_word(@v_value));
    end;
end;
GO

-- Carrying out steps ------------------------------------------------------------------------------

-- Carries out the steps of one level: ends executions, starts children, and adds to #next the
-- entries of the next level in the order of the entries that caused them. Ids rise in that order
-- too. #step is empty afterwards.
create or alter procedure wf.wf_engine_apply
as
begin
    set nocount, xact_abort on;
    declare @v_last int;

    if not exists (select 1 from #step) return;
    if exists (select 1 from #step as s where s.step <> N'START')
        exec wf.wf_engine_end;
    if exists (select 1 from #step as s where s.step = N'START')
        exec wf.wf_engine_start;
    select @v_last = coalesce(max(x.ordinal), 0) from #next as x;
    insert into #next (ordinal, node_execution_id, workflow_instance_id, kind)
    select @v_last + row_number() over (order by s.ordinal, s.rank, s.seq),
           s.node_execution_id, s.workflow_instance_id,
           case when s.step = N'START' then N'A'
                when s.step = N'FAIL' then N'F'
                when n.success_may_close = 1
                     or (n.edge_kind = N'FINALLY' and exists (
                            select 1 from wf.pending_end as q
                             where q.node_execution_id = e.parent_execution_id
                               and q.is_cancelled = 1)) then N'J'
                else N'S' end
      from #step as s
      join wf.node_execution as e on e.node_execution_id = s.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id;
    delete from #step;
end;
GO

-- Ends the executions of #step: lets FOREACHs collect, writes the rows, and forgets what a PARALLEL,
-- FOREACH or REPEAT that has succeeded needs no more; one that failed may be retried (R14).
create or alter procedure wf.wf_engine_end
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);
    declare @v_collects int;
    declare @v_has_progress int;
    declare @v_is_timed int;

    select @v_now = c.now from #call as c;
    select @v_collects = max(case when n.collect_node_id is not null and s.step = N'SUCCEED'
                                  then 1 else 0 end),
           @v_has_progress = max(case when n.node_type in (N'PARALLEL', N'FOREACH', N'REPEAT')
                                      then 1 else 0 end),
           @v_is_timed = max(case when n.timeout_ms is not null then 1 else 0 end)
      from #step as s
      join wf.node_execution as e on e.node_execution_id = s.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
     where s.step <> N'START';
    if @v_collects = 1 exec wf.wf_foreach_collect;
    update e
       set status = case s.step when N'SUCCEED' then N'SUCCEEDED' else N'FAILED' end,
           attempt_no = case when e.attempt_no < 1 then 1 else e.attempt_no end,
           result_code = s.result_code, output_json = s.item_json, ended_at = @v_now,
           engine_error_code = s.engine_error_code, engine_error_message = s.message,
           error_execution_id = s.error_execution_id
      from wf.node_execution as e
      join #step as s on s.node_execution_id = e.node_execution_id
     where s.step <> N'START';
    if @v_has_progress = 1
    begin
        delete from wf.join_counter where node_execution_id in
            (select s.node_execution_id from #step as s where s.step = N'SUCCEED');
        delete from wf.foreach_item where node_execution_id in
            (select s.node_execution_id from #step as s where s.step = N'SUCCEED');
        delete from wf.loop_state where node_execution_id in
            (select s.node_execution_id from #step as s where s.step = N'SUCCEED');
    end;
    if @v_is_timed = 1
        delete from wf.timer where node_execution_id in
            (select s.node_execution_id from #step as s where s.step <> N'START');
end;
GO

-- Inserts the executions, scopes, timers and loop variables of all START steps. A START step names
-- the execution it started afterwards, no longer the parent.
create or alter procedure wf.wf_engine_start
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);
    declare @v_start table (
        position bigint not null primary key,
        seq bigint not null,
        parent_execution_id bigint not null
    );
    declare @v_id table (node_execution_id bigint not null primary key);

    select @v_now = c.now from #call as c;
    insert into @v_start (position, seq, parent_execution_id)
    select row_number() over (order by s.ordinal, s.rank, s.seq), s.seq, s.node_execution_id
      from #step as s
     where s.step = N'START';
    -- A sequence gives its numbers in no order, so the order is made afterwards.
    insert into @v_id (node_execution_id)
    select next value for wf.node_execution_id_seq from @v_start;
    update s
       set node_execution_id = i.node_execution_id
      from #step as s
      join @v_start as t on t.seq = s.seq
      join (select d.node_execution_id, row_number() over (order by d.node_execution_id) as position
              from @v_id as d) as i on i.position = t.position;

    insert into wf.node_execution (node_execution_id, workflow_instance_id, parent_execution_id,
        node_id, iteration_no, scope_id, join_parent_id, status, attempt_no, created_at)
    select s.node_execution_id, s.workflow_instance_id, t.parent_execution_id, s.node_id,
           s.iteration_no,
           case when n.opens_scope = 1 then s.node_execution_id else p.scope_id end,
           case when n.parent_type in (N'PARALLEL', N'FOREACH') then p.node_execution_id
                else p.join_parent_id end,
           case when n.node_type in (N'ACTION', N'WAIT_EVENT') then N'READY' else N'RUNNING' end,
           case n.node_type when N'ACTION' then 0 else 1 end, @v_now
      from #step as s
      join @v_start as t on t.seq = s.seq
      join wf.node_execution as p on p.node_execution_id = t.parent_execution_id
      join wf.workflow_node as n on n.node_id = s.node_id;
    insert into wf.scope (scope_id, parent_scope_id, workflow_instance_id, owner_key)
    select s.node_execution_id, p.scope_id, s.workflow_instance_id, n.node_key
      from #step as s
      join @v_start as t on t.seq = s.seq
      join wf.node_execution as p on p.node_execution_id = t.parent_execution_id
      join wf.workflow_node as n on n.node_id = s.node_id
     where n.opens_scope = 1;
    insert into wf.timer (node_execution_id, workflow_instance_id, due_at)
    select s.node_execution_id, s.workflow_instance_id, wf.wf_add_ms(@v_now, n.timeout_ms)
      from #step as s
      join wf.workflow_node as n on n.node_id = s.node_id
     where s.step = N'START' and n.timeout_ms is not null and n.node_type <> N'ACTION';
    insert into wf.scope_variable (scope_id, name, value_json)
    select s.node_execution_id, n.loop_item_name, s.item_json
      from #step as s
      join wf.workflow_node as n on n.node_id = s.node_id
     where s.step = N'START' and n.loop_item_name is not null;
    insert into wf.scope_variable (scope_id, name, value_json)
    select s.node_execution_id, n.loop_index_name, cast(s.iteration_no as nvarchar(20))
      from #step as s
      join wf.workflow_node as n on n.node_id = s.node_id
     where s.step = N'START' and n.loop_index_name is not null;
end;
GO

-- The loop ----------------------------------------------------------------------------------------

-- Makes #next the level in work: moves it to #agenda, numbered from 1.
create or alter procedure wf.wf_engine_turn
as
begin
    set nocount, xact_abort on;
    delete from #agenda;
    insert into #agenda (ordinal, node_execution_id, workflow_instance_id, kind)
    select row_number() over (order by x.ordinal), x.node_execution_id, x.workflow_instance_id,
           x.kind
      from #next as x;
    delete from #next;
end;
GO

-- Works off the entries of #agenda before @below_ordinal, all of them without one, which cannot close
-- other work: handler by handler, their steps go to #step. What must wait goes to #held, joins whose
-- counters may not be touched yet, and to #waits.
create or alter procedure wf.wf_engine_steps
    @below_ordinal int
as
begin
    set nocount, xact_abort on;
    declare @v_part table (
        ordinal int not null,
        node_execution_id bigint not null,
        workflow_instance_id bigint not null,
        kind nchar(1) not null,
        handler nvarchar(30) not null,
        opens_scope bit not null
    );
    declare @v_handler nvarchar(30) = N'';
    declare @v_opens_scopes int;

    insert into @v_part (ordinal, node_execution_id, workflow_instance_id, kind, handler,
                         opens_scope)
    select a.ordinal, a.node_execution_id, a.workflow_instance_id, a.kind,
           case a.kind when N'A' then n.node_type when N'C' then N'JOIN'
                       else concat(N'IN_', coalesce(n.parent_type, N'INSTANCE')) end,
           case when a.kind = N'A' and n.has_scope_defaults = 1 and n.parent_node_id is not null
                then 1 else 0 end
      from #agenda as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
     where @below_ordinal is null or a.ordinal < @below_ordinal;
    delete from #agenda where @below_ordinal is null or ordinal < @below_ordinal;
    while 1 = 1
    begin
        select @v_handler = min(p.handler) from @v_part as p where p.handler > @v_handler;
        if @v_handler is null break;
        delete from #entry;
        insert into #entry (ordinal, node_execution_id, workflow_instance_id, kind)
        select p.ordinal, p.node_execution_id, p.workflow_instance_id, p.kind
          from @v_part as p
         where p.handler = @v_handler;
        select @v_opens_scopes = max(cast(p.opens_scope as int)) from @v_part as p
         where p.handler = @v_handler;
        if @v_opens_scopes = 1 exec wf.wf_engine_open_scopes;
        if @v_handler in (N'IN_PARALLEL', N'IN_FOREACH') exec wf.wf_engine_hold_back;
        if @v_handler = N'WAIT_EVENT'
            insert into #waits (node_execution_id, workflow_instance_id)
            select a.node_execution_id, a.workflow_instance_id from #entry as a order by a.ordinal;
        if exists (select 1 from #entry) exec wf.wf_engine_handle @handler = @v_handler;
    end;
    delete from #entry;
end;
GO

-- Evaluates the variables of the scopes that open with the activations of #entry (S2.3); an
-- execution whose variable cannot be computed fails and leaves #entry.
create or alter procedure wf.wf_engine_open_scopes
as
begin
    set nocount, xact_abort on;
    create table #open (
        ordinal int not null,
        node_execution_id bigint not null,
        error_code int null,
        error_message nvarchar(max) null
    );

    insert into #open (ordinal, node_execution_id)
    select a.ordinal, a.node_execution_id
      from #entry as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
     where n.has_scope_defaults = 1;
    exec wf.wf_open_scopes;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id,
                       engine_error_code, message, error_execution_id)
    select a.ordinal, 0, N'FAIL', a.node_execution_id, a.workflow_instance_id, o.error_code,
           concat(wf.wf_execution_path(a.node_execution_id), N': ', o.error_message),
           a.node_execution_id
      from #open as o
      join #entry as a on a.node_execution_id = o.node_execution_id
     where o.error_code is not null;
    delete from #entry where node_execution_id in
        (select o.node_execution_id from #open as o where o.error_code is not null);
end;
GO

-- The table of handlers: each reads #entry and adds to #step. A new node type gets a line here.
create or alter procedure wf.wf_engine_handle
    @handler nvarchar(30)
as
begin
    set nocount, xact_abort on;
    if @handler = N'ACTION' exec wf.wf_action_activate;
    else if @handler = N'SEQUENCE' exec wf.wf_sequence_activate;
    else if @handler = N'PARALLEL' exec wf.wf_parallel_activate;
    else if @handler = N'IF' exec wf.wf_if_activate;
    else if @handler = N'SWITCH' exec wf.wf_switch_activate;
    else if @handler = N'REPEAT' exec wf.wf_repeat_activate;
    else if @handler = N'WHILE' exec wf.wf_while_activate;
    else if @handler = N'FOREACH' exec wf.wf_foreach_activate;
    else if @handler = N'WAIT_EVENT' exec wf.wf_wait_activate;
    else if @handler = N'IN_SEQUENCE' exec wf.wf_sequence_continue;
    else if @handler in (N'IN_IF', N'IN_SWITCH') exec wf.wf_branch_continue;
    else if @handler = N'IN_REPEAT' exec wf.wf_repeat_continue;
    else if @handler = N'IN_WHILE' exec wf.wf_while_continue;
    else if @handler in (N'IN_PARALLEL', N'IN_FOREACH', N'JOIN') exec wf.wf_join_continue;
    else if @handler = N'IN_WAIT_EVENT' exec wf.wf_wait_continue;
    else if @handler = N'IN_INSTANCE' exec wf.wf_instance_continue;
end;
GO

-- Drops from #agenda what no longer counts. An entry counts when its execution is open and was not
-- cancelled for its finally to run, or ended under a parent that listens to it: not closing, and a
-- SEQUENCE to its on_error or its finally alone once that has begun. A time that is up counts while
-- nothing else has decided.
create or alter procedure wf.wf_engine_alive
as
begin
    set nocount, xact_abort on;
    delete from #agenda where ordinal not in (
        select a.ordinal
          from #agenda as a
          join wf.node_execution as e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node as n on n.node_id = e.node_id
          left join wf.node_execution as p on p.node_execution_id = e.parent_execution_id
         where (a.kind = N'A' and e.status in (N'READY', N'RUNNING') and not exists (
                    select 1 from wf.pending_end as q
                     where q.node_execution_id = e.node_execution_id))
            or (a.kind = N'T' and e.status in (N'READY', N'RUNNING') and not exists (
                    select 1 from wf.pending_end as q
                     where q.node_execution_id = e.node_execution_id and q.phase <> N'ON_ERROR'))
            or (a.kind not in (N'A', N'T') and (e.parent_execution_id = 0
                or (p.status = N'RUNNING' and not exists (
                    select 1 from wf.pending_end as q
                     where q.node_execution_id = e.parent_execution_id
                       and q.phase <> n.edge_kind)))));
end;
GO

-- Takes out of #entry the ended children of joins whose counter existed before this call and whose
-- instance is held shared (R1): they are held, and come back as C entries.
create or alter procedure wf.wf_engine_hold_back
as
begin
    set nocount, xact_abort on;
    declare @v_first_new_id bigint;

    select @v_first_new_id = c.first_new_id from #call as c;
    insert into #held (ordinal, node_execution_id, workflow_instance_id)
    select a.ordinal, a.node_execution_id, a.workflow_instance_id
      from #entry as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
     where e.parent_execution_id < @v_first_new_id
       and a.workflow_instance_id not in (select x.workflow_instance_id from #exclusive as x);
    delete from #entry where node_execution_id in (select h.node_execution_id from #held as h);
end;
GO

-- Moves to #agenda, which is empty, the held counters that may be touched now: all above the highest
-- counter that still may follow, in descending order; the rest stay held (R1). What a closing has
-- dropped is dropped first.
create or alter procedure wf.wf_engine_release
as
begin
    set nocount, xact_abort on;
    declare @v_highest bigint;

    insert into #agenda (ordinal, node_execution_id, workflow_instance_id, kind)
    select row_number() over (order by e.parent_execution_id desc, h.ordinal),
           h.node_execution_id, h.workflow_instance_id, N'C'
      from #held as h
      join wf.node_execution as e on e.node_execution_id = h.node_execution_id;
    delete from #held;
    if exists (select 1 from #call as c where c.has_closed = 1) exec wf.wf_engine_alive;
    select @v_highest = max(p.join_parent_id)
      from #agenda as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
      join wf.node_execution as p on p.node_execution_id = e.parent_execution_id;
    insert into #held (ordinal, node_execution_id, workflow_instance_id)
    select a.ordinal, a.node_execution_id, a.workflow_instance_id
      from #agenda as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
     where e.parent_execution_id <= @v_highest;
    delete from #agenda where node_execution_id in (select h.node_execution_id from #held as h);
end;
GO

-- The work limit of one call (R25): takes out of #agenda the activations before @below_ordinal that
-- would go past it, and fails them with 10019. Every test of a loop that goes on activates a body,
-- so loops count too.
create or alter procedure wf.wf_engine_over_limit
    @below_ordinal int
as
begin
    set nocount, xact_abort on;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id,
                       engine_error_code, message, error_execution_id)
    select q.ordinal, 0, N'FAIL', q.node_execution_id, q.workflow_instance_id, 10019,
           concat(wf.wf_execution_path(q.node_execution_id), N': more than ', c.work_limit,
                  N' activations in one call'),
           q.node_execution_id
      from (select a.ordinal, a.node_execution_id, a.workflow_instance_id,
                   row_number() over (order by a.ordinal) as so_far
              from #agenda as a
             where a.kind = N'A' and (@below_ordinal is null or a.ordinal < @below_ordinal)) as q
     cross join #call as c
     where q.so_far > c.work_left;
    delete from #agenda where node_execution_id in (select s.node_execution_id from #step as s)
       and kind = N'A';
end;
GO

-- Entries of #agenda before @below_ordinal, all of them without one, which cannot close other work:
-- as one set, within the work limit. What they lead to goes to #next.
create or alter procedure wf.wf_engine_set
    @below_ordinal int
as
begin
    set nocount, xact_abort on;
    declare @v_count bigint;
    declare @v_left bigint;

    select @v_count = count(*) from #agenda as a
     where a.kind = N'A' and (@below_ordinal is null or a.ordinal < @below_ordinal);
    select @v_left = c.work_left - @v_count from #call as c;
    if @v_left < 0
    begin
        exec wf.wf_engine_over_limit @below_ordinal = @below_ordinal;
        set @v_left = 0;
    end;
    update #call set work_left = @v_left;
    exec wf.wf_engine_steps @below_ordinal = @below_ordinal;
    exec wf.wf_engine_apply;
end;
GO

-- One level. Entries that cannot close other work are taken as one set; one that may (F, J, T) is
-- taken alone, after the earlier and before the later entries, and what it closed is dropped from the
-- later ones (R12). Returns at once when an instance held shared needs its gate exclusive.
create or alter procedure wf.wf_engine_level
as
begin
    set nocount, xact_abort on;
    declare @v_ordinal int;
    declare @v_id bigint;
    declare @v_instance_id bigint;
    declare @v_kind nchar(1);

    while exists (select 1 from #agenda)
    begin
        set @v_ordinal = null;
        select top (1) @v_ordinal = a.ordinal, @v_id = a.node_execution_id,
               @v_instance_id = a.workflow_instance_id, @v_kind = a.kind
          from #agenda as a
         where a.kind in (N'F', N'J', N'T')
         order by a.ordinal;
        if @v_ordinal is null
           or exists (select 1 from #agenda as a where a.ordinal < @v_ordinal)
            exec wf.wf_engine_set @below_ordinal = @v_ordinal;
        if @v_ordinal is null return;
        if not exists (select 1 from #exclusive as x where x.workflow_instance_id = @v_instance_id)
        begin
            update #call set restart_instance_id = @v_instance_id;
            return;
        end;
        delete from #agenda where ordinal = @v_ordinal;
        exec wf.wf_engine_close @ordinal = @v_ordinal, @node_execution_id = @v_id,
            @workflow_instance_id = @v_instance_id, @kind = @v_kind;
        exec wf.wf_engine_apply;
        update #call set has_closed = 1;
        exec wf.wf_engine_alive;
    end;
end;
GO

-- Works off #agenda until nothing is left to do in this call. Reads #call.now and #exclusive, the
-- instances whose gate the caller holds exclusive. When #call.restart_instance_id is not null
-- afterwards, that instance's gate is needed exclusive: the caller rolls back to its savepoint and
-- starts over. #agenda is empty otherwise.
create or alter procedure wf.wf_engine_run
as
begin
    set nocount, xact_abort on;
    declare @v_first_new_id bigint;
    declare @v_work_limit bigint;
    declare @v_has_closed bit;

    if not exists (select 1 from #agenda) return;
    select @v_first_new_id = next value for wf.node_execution_id_seq;
    select @v_work_limit = try_cast(s.value as bigint) from wf.wf_setting as s
     where s.name = N'max_activations_per_call';
    set @v_work_limit = coalesce(@v_work_limit, 1000000);
    update #call
       set first_new_id = @v_first_new_id, work_left = @v_work_limit, work_limit = @v_work_limit,
           has_closed = 0, restart_instance_id = null;
    delete from #next;
    delete from #held;
    delete from #waits;
    while 1 = 1
    begin
        select @v_has_closed = c.has_closed from #call as c;
        if @v_has_closed = 1 exec wf.wf_engine_alive;
        if not exists (select 1 from #agenda) and exists (select 1 from #held)
            exec wf.wf_engine_release;
        if not exists (select 1 from #agenda)
        begin
            -- Waits meet their events last, after every counter of this call (R1, R2).
            if not exists (select 1 from #waits) return;
            exec wf.wf_wait_register;
            if exists (select 1 from #call as c where c.restart_instance_id is not null) return;
            delete from #waits;
            continue;
        end;
        exec wf.wf_engine_level;
        if exists (select 1 from #call as c where c.restart_instance_id is not null) return;
        exec wf.wf_engine_turn;
    end;
end;
GO

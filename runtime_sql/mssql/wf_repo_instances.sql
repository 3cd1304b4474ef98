-- The repository's writers of instances and executions, for repairs by hand. Twin:
-- pg/wf_repo_instances.sql
--
-- None of them writes a state that the engine would not: each takes the instance's gate exclusive,
-- asks whether the change is one that the engine could make now (20003 when it is not), and lets the
-- engine make it, with everything that follows. They are the owner's, no client's (R22).

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Sets the status of an instance: RUNNING starts or resumes it, PAUSED pauses, CANCELLED cancels. It
-- succeeds and fails by its nodes alone. The status it has already changes nothing.
-- Locks: the gate exclusive. Errors: 10015 the input does not fit; 20002; 20003; 20004 no status.
create or alter procedure wf.wf_repo_set_instance_status
    @workflow_instance_id bigint,
    @status nvarchar(4000)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_new nvarchar(20) = @status;
    declare @v_status nvarchar(20);
    declare @v_after nvarchar(20);
    declare @v_count int;
    declare @v_message nvarchar(2000);

    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_lock_instance @workflow_instance_id = @workflow_instance_id,
            @status = @v_status output;
        if @v_new is null or @v_new collate Latin1_General_100_BIN2 not in (N'CREATED',
               N'RUNNING', N'PAUSED', N'SUCCEEDED', N'FAILED', N'CANCELLED')
            throw 70004, N'status must be one of those of an instance', 1;
        if @v_status = N'CREATED' and @v_new = N'RUNNING'
            exec wf.wf_begin_instance @workflow_instance_id = @workflow_instance_id,
                @status = @v_after output, @ready_count = @v_count output;
        else if @v_status = N'PAUSED' and @v_new = N'RUNNING'
            exec wf.wf_resume_instance @workflow_instance_id = @workflow_instance_id,
                @status = @v_after output;
        else if @v_status = N'RUNNING' and @v_new = N'PAUSED'
            exec wf.wf_pause_instance @workflow_instance_id = @workflow_instance_id;
        else if @v_status in (N'CREATED', N'RUNNING', N'PAUSED') and @v_new = N'CANCELLED'
            exec wf.wf_cancel_instance @workflow_instance_id = @workflow_instance_id,
                @reason = N'set in the repository';
        else if @v_status <> @v_new
        begin
            set @v_message = concat(N'instance ', @workflow_instance_id, N' is ', @v_status,
                                    N' and cannot become ', @v_new);
            throw 70003, @v_message, 1;
        end;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select i.workflow_instance_id, i.status as instance_status,
           cast(case when @v_status <> @v_new then 1 else 0 end as bit) as changed
      from wf.workflow_instance as i
     where i.workflow_instance_id = @workflow_instance_id;
end;
GO

-- Takes the gate of an execution's instance exclusive and answers the instance, which must be open.
-- Errors: 20002 unknown execution, 20003 its instance is not RUNNING or PAUSED.
create or alter procedure wf.wf_lock_open_execution
    @node_execution_id bigint,
    @workflow_instance_id bigint output
as
begin
    set nocount, xact_abort on;
    declare @v_status nvarchar(20);
    declare @v_message nvarchar(2000);

    set @workflow_instance_id = null;
    select @workflow_instance_id = e.workflow_instance_id from wf.node_execution as e
     where e.node_execution_id = @node_execution_id;
    if @workflow_instance_id is null
    begin
        set @v_message = concat(N'there is no node execution ', @node_execution_id);
        throw 70002, @v_message, 1;
    end;
    exec wf.wf_lock_instance @workflow_instance_id = @workflow_instance_id,
        @status = @v_status output;
    exec wf.wf_check_instance_open @workflow_instance_id = @workflow_instance_id,
        @status = @v_status;
end;
GO

create or alter procedure wf.wf_check_instance_open
    @workflow_instance_id bigint,
    @status nvarchar(20)
as
begin
    set nocount, xact_abort on;
    declare @v_message nvarchar(2000);

    if @status in (N'RUNNING', N'PAUSED') return;
    set @v_message = concat(N'instance ', @workflow_instance_id, N' is ', @status, N', not open');
    throw 70003, @v_message, 1;
end;
GO

-- Starts the execution that is missing: the root of an instance that was created, or the child that
-- its parent would start next. An execution that is there already is answered with created = 0.
-- Locks: the gate exclusive. Errors: 20002 unknown instance, parent or node; 20003 the parent would
-- not start it now; the children of PARALLEL and FOREACH are counted, so it starts them itself.
create or alter procedure wf.wf_repo_insert_node_execution
    @workflow_instance_id bigint,
    @parent_execution_id bigint,
    @node_key nvarchar(4000),
    @iteration_no int = 0
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_status nvarchar(20);
    declare @v_node_id bigint;
    declare @v_parent_node_id bigint;
    declare @v_found bigint;
    declare @v_count int;
    declare @v_created bit = 0;
    declare @v_message nvarchar(2000);

    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_lock_instance @workflow_instance_id = @workflow_instance_id,
            @status = @v_status output;
        select @v_node_id = n.node_id, @v_parent_node_id = n.parent_node_id
          from wf.workflow_instance as i
          join wf.workflow_node as n
            on n.workflow_version_id = i.workflow_version_id and n.node_key = @node_key
           and datalength(n.node_key) = datalength(@node_key)
         where i.workflow_instance_id = @workflow_instance_id;
        if @v_node_id is null
        begin
            set @v_message = concat(N'instance ', @workflow_instance_id, N' has no node ',
                                    left(@node_key, 200));
            throw 70002, @v_message, 1;
        end;
        set @v_found = wf.wf_execution_at(@workflow_instance_id, @parent_execution_id,
                                          @v_node_id, @iteration_no);
        if @v_found is null
        begin
            if @v_status = N'CREATED' and @parent_execution_id = 0 and @v_parent_node_id is null
                exec wf.wf_begin_instance @workflow_instance_id = @workflow_instance_id,
                    @status = @v_status output, @ready_count = @v_count output;
            else
            begin
                exec wf.wf_check_instance_open @workflow_instance_id = @workflow_instance_id,
                    @status = @v_status;
                exec wf.wf_start_child @workflow_instance_id = @workflow_instance_id,
                    @parent_execution_id = @parent_execution_id, @node_id = @v_node_id,
                    @iteration_no = @iteration_no;
            end;
            set @v_found = wf.wf_execution_at(@workflow_instance_id, @parent_execution_id,
                                              @v_node_id, @iteration_no);
            set @v_created = 1;
        end;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select e.node_execution_id, e.status as node_status, @v_created as created
      from wf.node_execution as e
     where e.node_execution_id = @v_found;
end;
GO

create or alter function wf.wf_execution_at(
    @workflow_instance_id bigint,
    @parent_execution_id bigint,
    @node_id bigint,
    @iteration_no int
) returns bigint
as
begin
    return (select e.node_execution_id
              from wf.node_execution as e
             where e.workflow_instance_id = @workflow_instance_id
               and e.parent_execution_id = @parent_execution_id and e.node_id = @node_id
               and e.iteration_no = @iteration_no);
end;
GO

-- Starts a child that its parent would start next, and runs what follows. Errors: 20002 unknown
-- parent; 20003 the parent would not start it now. The caller has the gate exclusive.
create or alter procedure wf.wf_start_child
    @workflow_instance_id bigint,
    @parent_execution_id bigint,
    @node_id bigint,
    @iteration_no int
as
begin
    set nocount, xact_abort on;
    declare @v_problem nvarchar(1000);
    declare @v_message nvarchar(2000);
    create table #call (now datetime2(3) not null, first_new_id bigint not null, work_left bigint not null, work_limit bigint not null, has_closed bit not null, restart_instance_id bigint null);
    create table #exclusive (workflow_instance_id bigint not null primary key);
    create table #agenda (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);   -- the level in work
    create table #next (seq bigint identity(1, 1) not null, ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);     -- what it leads to
    create table #held (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #waits (seq bigint identity(1, 1) not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #entry (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);    -- the entries a handler takes
    create table #step (seq bigint identity(1, 1) not null, ordinal int not null, rank int not null, step nvarchar(7) not null, node_execution_id bigint not null, workflow_instance_id bigint not null, node_id bigint null, iteration_no int null, item_json nvarchar(max) null, result_code int null, engine_error_code int null, message nvarchar(max) null, error_execution_id bigint null);
    if not exists (select 1 from wf.node_execution as e
                    where e.node_execution_id = @parent_execution_id
                      and e.workflow_instance_id = @workflow_instance_id)
    begin
        set @v_message = concat(N'there is no node execution ', @parent_execution_id,
                                N' in instance ', @workflow_instance_id);
        throw 70002, @v_message, 1;
    end;
    set @v_problem = wf.wf_start_problem(@workflow_instance_id, @parent_execution_id, @node_id,
                                         @iteration_no);
    if @v_problem is not null
    begin
        select @v_message = concat(N'node ', n.node_key, N' cannot start now: ', @v_problem)
          from wf.workflow_node as n
         where n.node_id = @node_id;
        throw 70003, @v_message, 1;
    end;
    insert into #call (now, first_new_id, work_left, work_limit, has_closed)
    values (wf.wf_now(), 0, 0, 0, 0);
    insert into #exclusive (workflow_instance_id) values (@workflow_instance_id);
    exec wf.wf_start_step @ordinal = 1, @parent_execution_id = @parent_execution_id,
        @workflow_instance_id = @workflow_instance_id, @node_id = @node_id,
        @iteration_no = @iteration_no;
    exec wf.wf_engine_apply;
    exec wf.wf_engine_turn;
    exec wf.wf_engine_run;
end;
GO

-- Why a parent would not start this child now, or null.
create or alter function wf.wf_start_problem(
    @workflow_instance_id bigint,
    @parent_execution_id bigint,
    @node_id bigint,
    @iteration_no int
) returns nvarchar(200)
as
begin
    declare @v_parent_node_id bigint;
    declare @v_status nvarchar(20);
    declare @v_own_parent_id bigint;
    declare @v_parent_type nvarchar(20);
    declare @v_edge_kind nvarchar(20);
    declare @v_child_order int;
    declare @v_is_loop bit = 0;
    declare @v_previous nvarchar(20);
    declare @v_count bigint;

    select @v_parent_node_id = e.node_id, @v_status = e.status
      from wf.node_execution as e
     where e.node_execution_id = @parent_execution_id
       and e.workflow_instance_id = @workflow_instance_id;
    select @v_own_parent_id = n.parent_node_id, @v_parent_type = n.parent_type,
           @v_edge_kind = n.edge_kind, @v_child_order = n.child_order
      from wf.workflow_node as n
     where n.node_id = @node_id;
    if @v_parent_type in (N'REPEAT', N'WHILE') set @v_is_loop = 1;
    if @v_own_parent_id is null or @v_parent_node_id <> @v_own_parent_id
        return N'it is no child of the parent''s node';
    if @v_status <> N'RUNNING' or exists (
        select 1 from wf.pending_end as q where q.node_execution_id = @parent_execution_id)
        return N'the parent is not running, or about to end';
    if @v_parent_type in (N'PARALLEL', N'FOREACH')
        return concat(N'a ', @v_parent_type, N' starts its children itself');
    if @v_edge_kind in (N'ON_ERROR', N'FINALLY', N'TIMEOUT')
        return N'a handler starts by what happens in its parent';
    if @iteration_no < 0 or @iteration_no > 0 and @v_is_loop = 0
        return N'its parent has no such iteration';
    if @v_parent_type in (N'IF', N'SWITCH') or @v_is_loop = 1
    begin
        select @v_count = l.total_count from wf.loop_state as l
         where l.node_execution_id = @parent_execution_id;
        if @v_parent_type = N'REPEAT' and @iteration_no >= coalesce(@v_count, 0)
            return N'the loop does not run that often';
        -- Nothing else has been started below, except the iterations before this one.
        select @v_count = count(*)
          from wf.node_execution as e
         where e.parent_execution_id = @parent_execution_id
           and e.workflow_instance_id = @workflow_instance_id;
        if @v_count <> @iteration_no return N'it is not the next one';
    end;
    select @v_previous = coalesce(max(e.status), N'none')
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.parent_execution_id = @parent_execution_id
       and e.workflow_instance_id = @workflow_instance_id
       and (@v_is_loop = 1 and e.iteration_no = @iteration_no - 1
            or @v_is_loop = 0 and n.next_node_id = @node_id);
    if @v_previous <> N'SUCCEEDED'
       and (@iteration_no > 0 or @v_parent_type = N'SEQUENCE' and @v_child_order > 0)
        return N'the one before it has not succeeded';
    return null;
end;
GO

-- Ends an ACTION by hand: SUCCEEDED with a result code from 0 (left out: 0), or FAILED with a
-- negative one (left out: -1). Whoever holds its lease is told that it is stale; no retry is made. The
-- `set`s run and the workflow goes on, as after a submit. Every other node ends by its children. The
-- status it has already changes nothing.
-- Locks: the gate exclusive, the task. Errors: 20002; 20003; 20004 a code that does not fit; 20005.
create or alter procedure wf.wf_repo_update_node_execution_status
    @node_execution_id bigint,
    @status nvarchar(4000),
    @result_code int = null,
    @output_json nvarchar(max) = null,
    @message nvarchar(max) = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_instance_id bigint;
    declare @v_code int = coalesce(@result_code, case @status when N'SUCCEEDED' then 0 else -1 end);
    declare @v_old nvarchar(20);
    declare @v_changed bit = 0;
    declare @v_message nvarchar(2000);

    exec wf.wf_check_json @what = N'output', @value_json = @output_json;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_lock_open_execution @node_execution_id = @node_execution_id,
            @workflow_instance_id = @v_instance_id output;
        select @v_old = case when t.worker_id is not null then N'RUNNING' else e.status end
          from wf.node_execution as e
          left join wf.task as t on t.node_execution_id = e.node_execution_id
         where e.node_execution_id = @node_execution_id;
        if @status is null or @v_old <> @status
        begin
            set @v_changed = 1;
            if @status is null
               or @status collate Latin1_General_100_BIN2 not in (N'SUCCEEDED', N'FAILED')
               or not exists (select 1 from wf.task as t
                               where t.node_execution_id = @node_execution_id)
            begin
                set @v_message = concat(N'node execution ', @node_execution_id, N' is ', @v_old,
                    N' and cannot become ', coalesce(left(@status, 200), N'null'), N' by hand');
                throw 70003, @v_message, 1;
            end;
            if @status = N'SUCCEEDED' and @v_code < 0 or @status = N'FAILED' and @v_code >= 0
            begin
                set @v_message = concat(@status, N' does not go with result code ', @v_code);
                throw 70004, @v_message, 1;
            end;
            exec wf.wf_end_action_by_hand @node_execution_id = @node_execution_id,
                @result_code = @v_code, @output_json = @output_json, @message = @message;
            insert into wf.audit_log (at, what, detail_json)
            values (wf.wf_now(), N'end action', concat(N'{"execution":', @node_execution_id,
                                                       N',"result_code":', @v_code, N'}'));
        end;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select e.node_execution_id, e.status as node_status, i.status as instance_status,
           @v_changed as changed
      from wf.node_execution as e
      join wf.workflow_instance as i on i.workflow_instance_id = e.workflow_instance_id
     where e.node_execution_id = @node_execution_id;
end;
GO

-- What a submit does with one task, whoever holds it. The caller has the gate exclusive.
create or alter procedure wf.wf_end_action_by_hand
    @node_execution_id bigint,
    @result_code int,
    @output_json nvarchar(max),
    @message nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3) = wf.wf_now();
    create table #call (now datetime2(3) not null, first_new_id bigint not null, work_left bigint not null, work_limit bigint not null, has_closed bit not null, restart_instance_id bigint null);
    create table #exclusive (workflow_instance_id bigint not null primary key);
    create table #agenda (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);   -- the level in work
    create table #next (seq bigint identity(1, 1) not null, ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);     -- what it leads to
    create table #held (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #waits (seq bigint identity(1, 1) not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #entry (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);    -- the entries a handler takes
    create table #step (seq bigint identity(1, 1) not null, ordinal int not null, rank int not null, step nvarchar(7) not null, node_execution_id bigint not null, workflow_instance_id bigint not null, node_id bigint null, iteration_no int null, item_json nvarchar(max) null, result_code int null, engine_error_code int null, message nvarchar(max) null, error_execution_id bigint null);
    insert into #call (now, first_new_id, work_left, work_limit, has_closed)
    values (@v_now, 0, 0, 0, 0);
    update e
       set status = case when @result_code >= 0 then N'SUCCEEDED' else N'FAILED' end,
           result_code = @result_code, output_json = @output_json,
           engine_error_message = case when @result_code < 0
               then coalesce(@message, concat(N'result code ', @result_code)) end,
           error_execution_id = case when @result_code < 0 then e.node_execution_id end,
           input_json = t.input_json, attempt_no = t.attempt_no,
           delivery_count = t.delivery_count, last_token = t.lease_token, answer = N'BY_HAND',
           completed_by = original_login(), started_at = t.claimed_at, ended_at = @v_now
      from wf.node_execution as e
      join wf.task as t on t.node_execution_id = e.node_execution_id
     where e.node_execution_id = @node_execution_id;
    delete from wf.task where node_execution_id = @node_execution_id;
    insert into #exclusive (workflow_instance_id)
    select e.workflow_instance_id from wf.node_execution as e
     where e.node_execution_id = @node_execution_id;
    insert into #agenda (ordinal, node_execution_id, workflow_instance_id, kind)
    select 1, e.node_execution_id, e.workflow_instance_id,
           case when @result_code < 0 then N'F' when n.success_may_close = 1 then N'J'
                else N'S' end
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @node_execution_id;
    exec wf.wf_complete_items;
    exec wf.wf_engine_run;
end;
GO

-- Puts the number of iterations of a running REPEAT back that has lost it. The number that is there
-- already is answered with created = 0.
-- Locks: the gate exclusive. Errors: 20002; 20003 no running REPEAT, or another number is there;
-- 20004 fewer than the iterations there are.
create or alter procedure wf.wf_repo_insert_loop_state
    @node_execution_id bigint,
    @total_count bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_instance_id bigint;
    declare @v_old bigint;
    declare @v_least bigint;
    declare @v_message nvarchar(2000);

    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_lock_open_execution @node_execution_id = @node_execution_id,
            @workflow_instance_id = @v_instance_id output;
        if not exists (select 1 from wf.node_execution as e
                         join wf.workflow_node as n on n.node_id = e.node_id
                        where e.node_execution_id = @node_execution_id
                          and n.node_type = N'REPEAT' and e.status = N'RUNNING')
        begin
            set @v_message = concat(N'node execution ', @node_execution_id,
                                    N' is no running REPEAT');
            throw 70003, @v_message, 1;
        end;
        select @v_least = case when count(*) > 1 then count(*) else 1 end
          from wf.node_execution as e
         where e.workflow_instance_id = @v_instance_id
           and e.parent_execution_id = @node_execution_id;
        if @total_count is null or @total_count < @v_least
        begin
            set @v_message = concat(N'total_count must be at least ', @v_least);
            throw 70004, @v_message, 1;
        end;
        select @v_old = l.total_count from wf.loop_state as l
         where l.node_execution_id = @node_execution_id;
        if @v_old <> @total_count
        begin
            set @v_message = concat(N'node execution ', @node_execution_id, N' runs ', @v_old,
                                    N' times');
            throw 70003, @v_message, 1;
        end;
        if @v_old is null
            insert into wf.loop_state (node_execution_id, workflow_instance_id, total_count)
            values (@node_execution_id, @v_instance_id, @total_count);
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select @node_execution_id as node_execution_id, @total_count as total_count,
           cast(case when @v_old is null then 1 else 0 end as bit) as created;
end;
GO

-- Sets a variable where an execution sees it: in the nearest scope around it that declares the name.
-- Locks: the gate exclusive. Errors: 20002; 20003 the instance is not open, or the scope is not;
-- 20004 no such variable, or a value that does not fit its type.
create or alter procedure wf.wf_repo_set_scope_variable
    @node_execution_id bigint,
    @name nvarchar(4000),
    @value_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_instance_id bigint;
    declare @v_scope_id bigint;
    declare @v_owner nvarchar(200);
    declare @v_problem nvarchar(max);
    declare @v_is_set bit;

    exec wf.wf_check_json @what = N'value', @value_json = @value_json, @has_limit = 0;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_lock_open_execution @node_execution_id = @node_execution_id,
            @workflow_instance_id = @v_instance_id output;
        exec wf.wf_find_variable @node_execution_id = @node_execution_id, @name = @name,
            @value_json = @value_json, @scope_id = @v_scope_id output, @owner_key = @v_owner output,
            @problem = @v_problem output;
        if @v_problem is not null exec wf.wf_raise @code = 20004, @message = @v_problem;
        exec wf.wf_set_scope_variable @scope_id = @v_scope_id, @owner_key = @v_owner,
            @name = @name, @value = @value_json, @is_set = @v_is_set output;
        if @v_is_set = 0
        begin
            set @v_problem = concat(N'the scope of ', @v_owner, N' is not open');
            exec wf.wf_raise @code = 20003, @message = @v_problem;
        end;
        set @v_scope_id = wf.wf_find_scope(@v_scope_id, @v_owner);
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select @v_scope_id as scope_id, @v_owner as owner_key, cast(@name as nvarchar(200)) as name;
end;
GO

-- The scope of an execution, who declares a name that it sees, and why a value cannot be written to
-- it, or null.
create or alter procedure wf.wf_find_variable
    @node_execution_id bigint,
    @name nvarchar(4000),
    @value_json nvarchar(max),
    @scope_id bigint output,
    @owner_key nvarchar(200) output,
    @problem nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_node_id bigint;
    declare @v_version_id bigint;
    declare @v_type_id int;
    declare @v_error_code int;

    set @owner_key = null;
    set @problem = null;
    select @scope_id = e.scope_id, @v_node_id = n.node_id, @v_version_id = n.workflow_version_id
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @node_execution_id;
    if len(@name + N'.') - 1 <= 200 and right(@name, 1) <> N' '
        set @owner_key = wf.wf_owner_of_variable(@v_node_id, @name);
    if @owner_key is null
        set @problem = concat(N'there is no variable ', coalesce(left(@name, 200), N'null'));
    else if @value_json is null
        set @problem = N'value_json is null';
    else
        set @problem = wf.wf_storable_problem(@value_json);
    if @problem is not null return;
    select @v_type_id = d.type_id
      from wf.node_scope_default as d
     where d.workflow_version_id = @v_version_id and d.owner_key = @owner_key
       and d.name = @name;
    if @v_type_id is not null
        exec wf.wf_check_variable @version_id = @v_version_id, @type_id = @v_type_id,
            @name = @name, @value = @value_json, @error_code = @v_error_code output,
            @error_message = @problem output;
end;
GO

-- The result code of the execution of a node that ended last, in the whole instance. Never throws:
-- no row when there is none.
create or alter procedure wf.wf_repo_try_latest_task_result_code
    @workflow_instance_id bigint,
    @node_key nvarchar(4000)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    select top (1) e.node_execution_id, e.status as node_status, e.result_code
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.workflow_instance_id = @workflow_instance_id and n.node_key = @node_key
       and datalength(n.node_key) = datalength(@node_key) and e.ended_at is not null
     order by e.ended_at desc, e.node_execution_id desc;
end;
GO

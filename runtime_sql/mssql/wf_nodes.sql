-- The handlers of the node types: what activating a node, or the success of a child, leads to.
-- Twin: pg/wf_nodes.sql
--
-- A handler takes the agenda entries of #entry and adds its steps to #step (03_engine_core.sql).
-- FOREACH's stand in 08_foreach_support.sql, WAIT_EVENT's in wf_event_plane.sql. All read the time of
-- the call in #call.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Activation: one handler per node type ---------------------------------------------------------

-- The priority of a task: its node's and its instance's, within the column's bounds.
create or alter function wf.wf_add_priorities(@one int, @other int) returns int
as
begin
    declare @v_sum bigint = cast(coalesce(@one, 0) as bigint) + coalesce(@other, 0);
    return case when @v_sum > 2147483647 then 2147483647
                when @v_sum < -2147483648 then -2147483648
                else @v_sum end;
end;
GO

-- ACTION: builds the input and queues the task, with its dispatch columns (wf_dispatch.sql). A failure
-- to build fails the node (S4.1).
create or alter procedure wf.wf_action_activate
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);
    create table #input (
        node_execution_id bigint not null,
        value_json nvarchar(max) null,
        error_code int null,
        error_message nvarchar(max) null
    );

    select @v_now = c.now from #call as c;
    insert into #input (node_execution_id)
    select a.node_execution_id from #entry as a;
    exec wf.wf_build_inputs;

    insert into wf.task (node_execution_id, workflow_instance_id, node_id, action_id, priority,
                         available_at, is_claimable, input_json)
    select a.node_execution_id, a.workflow_instance_id, e.node_id, n.action_id,
           wf.wf_add_priorities(n.priority, i.priority),
           case when n.delay_ms > 0 then wf.wf_add_ms(@v_now, n.delay_ms) else @v_now end,
           case when coalesce(n.delay_ms, 0) = 0 and i.status = N'RUNNING' then 1 else 0 end,
           b.value_json
      from #entry as a
      join #input as b on b.node_execution_id = a.node_execution_id
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.workflow_instance as i on i.workflow_instance_id = a.workflow_instance_id
     where b.error_code is null;
    -- Most actions have no rules of dispatch, and their tasks need no look at them.
    if exists (select 1
                 from #entry as a
                 join wf.task as t on t.node_execution_id = a.node_execution_id
                 join wf.workflow_action as k on k.action_id = t.action_id
                 join wf.workflow_node as n on n.node_id = t.node_id
                where k.exclusive_worker = 1
                   or coalesce(k.max_per_worker, k.max_concurrent, k.rate_per_minute) is not null
                   or k.affinity_key_field is not null
                   or json_query(n.attributes_json, N'$.dispatch') is not null)
    begin
        delete from #input where error_code is not null;
        exec wf.wf_apply_dispatch_rules;
    end;

    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id,
                       engine_error_code, message, error_execution_id)
    select a.ordinal, 0, N'FAIL', a.node_execution_id, a.workflow_instance_id, b.error_code,
           concat(wf.wf_execution_path(a.node_execution_id), N': ', b.error_message),
           a.node_execution_id
      from #entry as a
      join #input as b on b.node_execution_id = a.node_execution_id
     where b.error_code is not null;
end;
GO

-- Gives the tasks of #input (node_execution_id bigint, …), a table of the caller, their dispatch
-- columns and the worker they are pinned to.
create or alter procedure wf.wf_apply_dispatch_rules
as
begin
    set nocount, xact_abort on;
    update t
       set affinity_key = d.affinity_key, max_per_worker = d.max_per_worker,
           max_concurrent = d.max_concurrent, rate_per_minute = d.rate_per_minute,
           is_exclusive = coalesce(d.is_exclusive, 0),
           prefers_previous = coalesce(d.prefers_previous, 0),
           prefers_group = coalesce(d.prefers_group, 0),
           requires_previous = coalesce(d.requires_previous, 0),
           pinned_worker_id = case when d.requires_previous = 1 and d.is_exclusive = 0
               then wf.wf_pinned_worker(t.workflow_instance_id, t.action_id, d.affinity_key) end
      from wf.task as t
      join #input as b on b.node_execution_id = t.node_execution_id
      join wf.workflow_node as n on n.node_id = t.node_id
     cross apply wf.wf_dispatch_of(t.action_id, json_query(n.attributes_json, N'$.dispatch'),
                                   t.input_json) as d;
end;
GO

-- SEQUENCE: its first child; without children it ends at once, after the `set` or `fail` that it
-- carries, or when its `sleep` is over (wf_timers.sql).
create or alter procedure wf.wf_sequence_activate
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);
    declare @v_ordinal int;
    declare @v_id bigint;
    declare @v_instance_id bigint;
    declare @v_delay_ms bigint;
    declare @v_has_bindings bit;
    declare @v_fail nvarchar(max);
    declare @v_code int;
    declare @v_message nvarchar(max);

    select @v_now = c.now from #call as c;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, node_id,
                       iteration_no)
    select a.ordinal, 0, N'START', a.node_execution_id, a.workflow_instance_id, n.first_child_id, 0
      from #entry as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
     where n.first_child_id is not null;
    declare v_entry cursor local fast_forward for
        select a.ordinal, a.node_execution_id, a.workflow_instance_id, n.delay_ms,
               n.has_output_bindings, json_query(n.attributes_json, N'$.fail')
          from #entry as a
          join wf.node_execution as e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node as n on n.node_id = e.node_id
         where n.first_child_id is null
         order by a.ordinal;
    open v_entry;
    fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id, @v_delay_ms, @v_has_bindings,
        @v_fail;
    while @@fetch_status = 0
    begin
        set @v_code = null;
        if @v_fail is not null
            exec wf.wf_fail_statement @ordinal = @v_ordinal, @node_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id, @fail = @v_fail;
        else if @v_delay_ms > 0
            insert into wf.timer (node_execution_id, workflow_instance_id, due_at)
            values (@v_id, @v_instance_id, wf.wf_add_ms(@v_now, @v_delay_ms));
        else
        begin
            if @v_has_bindings = 1
                exec wf.wf_apply_output_bindings @node_execution_id = @v_id, @output_json = null,
                    @result_code = null, @event_json = null, @error_code = @v_code output,
                    @error_message = @v_message output;
            if @v_code is not null
                exec wf.wf_fail_step @ordinal = @v_ordinal, @node_execution_id = @v_id,
                    @workflow_instance_id = @v_instance_id, @engine_error_code = @v_code,
                    @text = @v_message;
            else
                exec wf.wf_succeed_step @ordinal = @v_ordinal, @node_execution_id = @v_id,
                    @workflow_instance_id = @v_instance_id;
        end;
        fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id, @v_delay_ms,
            @v_has_bindings, @v_fail;
    end;
    close v_entry;
    deallocate v_entry;
end;
GO

-- `fail CODE "message"`: builds the message, then fails with the code and no engine code (R32).
create or alter procedure wf.wf_fail_statement
    @ordinal int,
    @node_execution_id bigint,
    @workflow_instance_id bigint,
    @fail nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_program nvarchar(max) = json_query(@fail, N'$.message');
    declare @v_value nvarchar(max);
    declare @v_code int;
    declare @v_message nvarchar(max);

    exec wf.wf_eval_expression @program = @v_program, @execution_id = @node_execution_id,
        @value_json = @v_value output, @error_code = @v_code output,
        @error_message = @v_message output;
    if @v_code is null and wf.wf_json_type(@v_value) <> N'string'
    begin
        set @v_code = 10017;
        set @v_message = concat(wf.wf_type_word(@v_value), N' cannot stand inside a string');
    end;
    if @v_code is not null
    begin
        exec wf.wf_fail_step @ordinal = @ordinal, @node_execution_id = @node_execution_id,
            @workflow_instance_id = @workflow_instance_id, @engine_error_code = @v_code,
            @text = @v_message;
        return;
    end;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, result_code,
                       message, error_execution_id)
    values (@ordinal, 0, N'FAIL', @node_execution_id, @workflow_instance_id,
            cast(json_value(@fail, N'$.code') as int), wf.wf_json_string(@v_value),
            @node_execution_id);
end;
GO

-- PARALLEL: all children, or the first `limit`; the counter knows how many are open.
create or alter procedure wf.wf_parallel_activate
as
begin
    set nocount, xact_abort on;
    insert into wf.join_counter (node_execution_id, workflow_instance_id, join_parent_id,
                                 total_count, next_index, open_count, needed_count,
                                 allowed_failures, keeps_going)
    select a.node_execution_id, a.workflow_instance_id, e.join_parent_id, n.child_count,
           case when n.branch_limit < n.child_count then n.branch_limit else n.child_count end,
           case when n.branch_limit < n.child_count then n.branch_limit else n.child_count end,
           n.needed_count,
           case when n.needed_count < n.child_count then n.child_count - n.needed_count else 0 end,
           wf.wf_has_attribute(n.attributes_json, N'keep_going')
      from #entry as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
     where n.child_count > 0;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, node_id,
                       iteration_no)
    select a.ordinal, c.child_order, N'START', a.node_execution_id, a.workflow_instance_id,
           c.node_id, 0
      from #entry as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.workflow_node as c on c.parent_node_id = n.node_id
     where c.child_order < coalesce(n.branch_limit, n.child_count);
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, result_code)
    select a.ordinal, 0, N'SUCCEED', a.node_execution_id, a.workflow_instance_id, 0
      from #entry as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
     where n.child_count = 0;
end;
GO

-- IF: the branch that the condition chooses; false without an else succeeds (S6.4).
create or alter procedure wf.wf_if_activate
as
begin
    set nocount, xact_abort on;
    declare @v_ordinal int;
    declare @v_id bigint;
    declare @v_instance_id bigint;
    declare @v_node_id bigint;
    declare @v_condition nvarchar(max);
    declare @v_is_true bit;
    declare @v_branch_id bigint;
    declare @v_code int;
    declare @v_message nvarchar(max);
    declare v_entry cursor local fast_forward for
        select a.ordinal, a.node_execution_id, a.workflow_instance_id, n.node_id,
               json_query(n.attributes_json, N'$.condition')
          from #entry as a
          join wf.node_execution as e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node as n on n.node_id = e.node_id
         order by a.ordinal;

    open v_entry;
    fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id, @v_node_id, @v_condition;
    while @@fetch_status = 0
    begin
        set @v_branch_id = null;
        exec wf.wf_eval_condition @program_json = @v_condition, @node_execution_id = @v_id,
            @is_true = @v_is_true output, @error_code = @v_code output,
            @error_message = @v_message output;
        if @v_code is null
            select @v_branch_id = b.node_id from wf.workflow_node as b
             where b.parent_node_id = @v_node_id
               and b.edge_kind = case when @v_is_true = 1 then N'THEN' else N'ELSE' end;
        if @v_code is null and @v_branch_id is null and @v_is_true = 1
        begin
            set @v_code = 10003;
            set @v_message = N'the if has no branch to take';
        end;
        if @v_code is not null
            exec wf.wf_fail_step @ordinal = @v_ordinal, @node_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id, @engine_error_code = @v_code,
                @text = @v_message;
        else if @v_branch_id is not null
            exec wf.wf_start_step @ordinal = @v_ordinal, @parent_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id, @node_id = @v_branch_id;
        else
            exec wf.wf_succeed_step @ordinal = @v_ordinal, @node_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id;
        fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id, @v_node_id, @v_condition;
    end;
    close v_entry;
    deallocate v_entry;
end;
GO

-- SWITCH: the first case that holds an equal value (S3.1), else default, else 10004.
create or alter procedure wf.wf_switch_activate
as
begin
    set nocount, xact_abort on;
    declare @v_ordinal int;
    declare @v_id bigint;
    declare @v_instance_id bigint;
    declare @v_node_id bigint;
    declare @v_subject nvarchar(max);
    declare @v_value nvarchar(max);
    declare @v_branch_id bigint;
    declare @v_code int;
    declare @v_message nvarchar(max);
    declare v_entry cursor local fast_forward for
        select a.ordinal, a.node_execution_id, a.workflow_instance_id, n.node_id,
               json_query(n.attributes_json, N'$.subject')
          from #entry as a
          join wf.node_execution as e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node as n on n.node_id = e.node_id
         order by a.ordinal;

    open v_entry;
    fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id, @v_node_id, @v_subject;
    while @@fetch_status = 0
    begin
        set @v_branch_id = null;
        exec wf.wf_eval_expression @program = @v_subject, @execution_id = @v_id,
            @value_json = @v_value output, @error_code = @v_code output,
            @error_message = @v_message output;
        if @v_code is null
            exec wf.wf_switch_choose @node_id = @v_node_id, @value_json = @v_value,
                @branch_node_id = @v_branch_id output, @error_code = @v_code output,
                @error_message = @v_message output;
        if @v_code is not null
            exec wf.wf_fail_step @ordinal = @v_ordinal, @node_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id, @engine_error_code = @v_code,
                @text = @v_message;
        else
            exec wf.wf_start_step @ordinal = @v_ordinal, @parent_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id, @node_id = @v_branch_id;
        fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id, @v_node_id, @v_subject;
    end;
    close v_entry;
    deallocate v_entry;
end;
GO

-- The branch of a SWITCH that a value takes. Pure: errors are values.
create or alter procedure wf.wf_switch_choose
    @node_id bigint,
    @value_json nvarchar(max),
    @branch_node_id bigint output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_type nvarchar(7) = wf.wf_json_type(@value_json);
    declare @v_scalar nvarchar(max);
    declare @v_case_type int;
    declare @v_case_word nvarchar(7);

    set @branch_node_id = null;
    set @error_code = null;
    set @error_message = null;
    if @v_type in (N'object', N'array')
    begin
        -- Only null may be compared with an object or an array (S3.1).
        select top (1) @v_case_word = wf.wf_type_word(wf.wf_json_text(v.value, v.type))
          from wf.workflow_node as n
          join wf.workflow_edge as d
            on d.workflow_version_id = n.workflow_version_id and d.parent_key = n.node_key
         cross apply openjson(d.case_value) as v
         where n.node_id = @node_id and v.type <> 0
         order by d.child_order, cast(v.[key] as int);
        if @v_case_word is not null
        begin
            set @error_code = 10010;
            set @error_message = concat(N'cannot compare ', @v_type, N' with ', @v_case_word);
            return;
        end;
    end;
    -- A scalar as OPENJSON gives it: 1 and 1.0 are equal, so numbers are compared as such.
    select @v_scalar = case when @v_type = N'string' then wf.wf_json_string(@value_json)
                            when @v_type in (N'number', N'boolean') then @value_json end,
           @v_case_type = case @v_type when N'null' then 0 when N'string' then 1 when N'number' then 2
                                       when N'boolean' then 3 else -1 end;
    select top (1) @branch_node_id = b.node_id
      from wf.workflow_node as n
      join wf.workflow_edge as d
        on d.workflow_version_id = n.workflow_version_id and d.parent_key = n.node_key
      join wf.workflow_node as b
        on b.workflow_version_id = d.workflow_version_id and b.node_key = d.child_key
     where n.node_id = @node_id
       and (d.branch_kind = N'DEFAULT'
            or exists (
                select 1
                  from openjson(d.case_value) as v
                 where v.type = @v_case_type
                   and (v.type = 0
                        or (v.type = 2 and wf.wf_number_order(v.value, @v_scalar) = 0)
                        or (v.type in (1, 3)
                            and v.value = @v_scalar collate Latin1_General_100_BIN2
                            and datalength(v.value) = datalength(@v_scalar)))))
     order by case when d.branch_kind = N'DEFAULT' then 1 else 0 end, d.child_order;
    if @branch_node_id is null
    begin
        set @error_code = 10004;
        set @error_message = N'no case fits and there is no default';
    end;
end;
GO

-- REPEAT: evaluates the count once and starts iteration 0; n <= 0 succeeds at once (S6.6).
create or alter procedure wf.wf_repeat_activate
as
begin
    set nocount, xact_abort on;
    declare @v_ordinal int;
    declare @v_id bigint;
    declare @v_instance_id bigint;
    declare @v_body_id bigint;
    declare @v_program nvarchar(max);
    declare @v_value nvarchar(max);
    declare @v_count bigint;
    declare @v_code int;
    declare @v_message nvarchar(max);
    declare v_entry cursor local fast_forward for
        select a.ordinal, a.node_execution_id, a.workflow_instance_id, n.first_child_id,
               json_query(n.attributes_json, N'$.count')
          from #entry as a
          join wf.node_execution as e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node as n on n.node_id = e.node_id
         order by a.ordinal;

    open v_entry;
    fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id, @v_body_id, @v_program;
    while @@fetch_status = 0
    begin
        exec wf.wf_eval_expression @program = @v_program, @execution_id = @v_id,
            @value_json = @v_value output, @error_code = @v_code output,
            @error_message = @v_message output;
        if @v_code is null and wf.wf_type_word(@v_value) <> N'integer'
        begin
            set @v_code = 10010;
            set @v_message = concat(N'repeat takes an integer, not ', wf.wf_type_word(@v_value));
        end;
        if @v_code is null and @v_body_id is null
        begin
            set @v_code = 10005;
            set @v_message = N'the repeat has no body';
        end;
        -- A count beyond 64 bits is as good as the largest one, or as none.
        set @v_count = coalesce(try_cast(@v_value as bigint),
            case when left(@v_value, 1) = N'-' then 0 else 9223372036854775807 end);
        if @v_code is not null
            exec wf.wf_fail_step @ordinal = @v_ordinal, @node_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id, @engine_error_code = @v_code,
                @text = @v_message;
        else if @v_count <= 0
            exec wf.wf_succeed_step @ordinal = @v_ordinal, @node_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id;
        else
        begin
            insert into wf.loop_state (node_execution_id, workflow_instance_id, total_count)
            values (@v_id, @v_instance_id, @v_count);
            exec wf.wf_start_step @ordinal = @v_ordinal, @parent_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id, @node_id = @v_body_id;
        end;
        fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id, @v_body_id, @v_program;
    end;
    close v_entry;
    deallocate v_entry;
end;
GO

-- WHILE: the first test of each.
create or alter procedure wf.wf_while_activate
as
begin
    set nocount, xact_abort on;
    declare @v_ordinal int;
    declare @v_id bigint;
    declare @v_instance_id bigint;
    declare v_entry cursor local fast_forward for
        select a.ordinal, a.node_execution_id, a.workflow_instance_id from #entry as a
         order by a.ordinal;

    open v_entry;
    fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id;
    while @@fetch_status = 0
    begin
        exec wf.wf_while_test @ordinal = @v_ordinal, @node_execution_id = @v_id,
            @workflow_instance_id = @v_instance_id, @iteration_no = 0;
        fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id;
    end;
    close v_entry;
    deallocate v_entry;
end;
GO

-- The test before iteration @iteration_no of a WHILE; shared by activation and continuation. Passing
-- `max` with the condition still true is 10012.
create or alter procedure wf.wf_while_test
    @ordinal int,
    @node_execution_id bigint,
    @workflow_instance_id bigint,
    @iteration_no int
as
begin
    set nocount, xact_abort on;
    declare @v_body_id bigint;
    declare @v_condition nvarchar(max);
    declare @v_max bigint;
    declare @v_is_true bit;
    declare @v_code int;
    declare @v_message nvarchar(max);

    select @v_body_id = n.first_child_id,
           @v_condition = json_query(n.attributes_json, N'$.condition'),
           @v_max = coalesce(cast(json_value(n.attributes_json, N'$.max') as bigint), 10000)
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @node_execution_id;
    if @v_body_id is null
    begin
        set @v_code = 10006;
        set @v_message = N'the while has no body';
    end
    else
        exec wf.wf_eval_condition @program_json = @v_condition,
            @node_execution_id = @node_execution_id, @is_true = @v_is_true output,
            @error_code = @v_code output, @error_message = @v_message output;
    if @v_code is null and @v_is_true = 1 and @iteration_no >= @v_max
    begin
        set @v_code = 10012;
        set @v_message = concat(N'while passed its max of ', @v_max);
    end;
    if @v_code is not null
        exec wf.wf_fail_step @ordinal = @ordinal, @node_execution_id = @node_execution_id,
            @workflow_instance_id = @workflow_instance_id, @engine_error_code = @v_code,
            @text = @v_message;
    else if @v_is_true = 1
        exec wf.wf_start_step @ordinal = @ordinal, @parent_execution_id = @node_execution_id,
            @workflow_instance_id = @workflow_instance_id, @node_id = @v_body_id,
            @iteration_no = @iteration_no;
    else
        exec wf.wf_succeed_step @ordinal = @ordinal, @node_execution_id = @node_execution_id,
            @workflow_instance_id = @workflow_instance_id;
end;
GO

-- Continuation: what follows when a child has succeeded -------------------------------------------

-- The next child of the SEQUENCE, or its end; by way of its finally, if it has one.
create or alter procedure wf.wf_sequence_continue
as
begin
    set nocount, xact_abort on;
    declare @v_ordinal int;
    declare @v_id bigint;
    declare @v_edge_kind nvarchar(20);

    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, node_id,
                       iteration_no, result_code)
    select a.ordinal, 0, case when n.next_node_id is null then N'SUCCEED' else N'START' end,
           e.parent_execution_id, a.workflow_instance_id, n.next_node_id, 0,
           case when n.next_node_id is null then 0 end
      from #entry as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.workflow_node as p on p.node_id = n.parent_node_id
     where n.edge_kind = N'SEQUENCE'
       and (n.next_node_id is not null or p.finally_node_id is null);
    declare v_done cursor local static for
        select a.ordinal, a.node_execution_id, n.edge_kind
          from #entry as a
          join wf.node_execution as e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node as n on n.node_id = e.node_id
          join wf.workflow_node as p on p.node_id = n.parent_node_id
         where n.edge_kind <> N'SEQUENCE'
            or (n.next_node_id is null and p.finally_node_id is not null)
         order by a.ordinal;
    open v_done;
    fetch next from v_done into @v_ordinal, @v_id, @v_edge_kind;
    while @@fetch_status = 0
    begin
        exec wf.wf_sequence_done @ordinal = @v_ordinal, @child_execution_id = @v_id,
            @edge_kind = @v_edge_kind;
        fetch next from v_done into @v_ordinal, @v_id, @v_edge_kind;
    end;
    close v_done;
    deallocate v_done;
end;
GO

-- An IF or a SWITCH ends with its branch.
create or alter procedure wf.wf_branch_continue
as
begin
    set nocount, xact_abort on;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, result_code)
    select a.ordinal, 0, N'SUCCEED', e.parent_execution_id, a.workflow_instance_id, 0
      from #entry as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id;
end;
GO

-- `keep N` of a WHILE or REPEAT (R31): of the iterations that have succeeded only the newest N stay.
-- Removes what is older with everything below it, one generation after the other; all of it has
-- ended, so no other call is at these rows.
create or alter procedure wf.wf_drop_iterations
as
begin
    set nocount, xact_abort on;
    declare @v_depth int = 0;
    declare @v_gone table (
        node_execution_id bigint not null primary key,
        workflow_instance_id bigint not null,
        depth int not null
    );

    if not exists (select 1
                     from #entry as a
                     join wf.node_execution as e on e.node_execution_id = a.node_execution_id
                     join wf.workflow_node as n on n.node_id = e.node_id
                     join wf.workflow_node as p on p.node_id = n.parent_node_id
                    where json_value(p.attributes_json, N'$.keep') is not null) return;
    insert into @v_gone (node_execution_id, workflow_instance_id, depth)
    select distinct o.node_execution_id, o.workflow_instance_id, 0
      from #entry as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.workflow_node as p on p.node_id = n.parent_node_id
      join wf.node_execution as o
        on o.workflow_instance_id = e.workflow_instance_id
       and o.parent_execution_id = e.parent_execution_id and o.node_id = e.node_id
       and o.iteration_no <= e.iteration_no - cast(json_value(p.attributes_json, N'$.keep') as int);
    if @@rowcount = 0 return;
    while 1 = 1
    begin
        insert into @v_gone (node_execution_id, workflow_instance_id, depth)
        select c.node_execution_id, c.workflow_instance_id, @v_depth + 1
          from @v_gone as g
          join wf.node_execution as c
            on c.workflow_instance_id = g.workflow_instance_id
           and c.parent_execution_id = g.node_execution_id
         where g.depth = @v_depth;
        if @@rowcount = 0 break;
        set @v_depth = @v_depth + 1;
    end;
    create table #open (node_execution_id bigint not null primary key);
    insert into #open (node_execution_id) select g.node_execution_id from @v_gone as g;
    delete from wf.scope_variable where scope_id in (select o.node_execution_id from #open as o);
    delete from wf.scope where scope_id in (select o.node_execution_id from #open as o);
    delete from wf.node_attempt
     where node_execution_id in (select o.node_execution_id from #open as o);
    exec wf.wf_forget_progress;
    delete from wf.node_execution
     where node_execution_id in (select o.node_execution_id from #open as o);
end;
GO

-- The next iteration of a REPEAT, or its end.
create or alter procedure wf.wf_repeat_continue
as
begin
    set nocount, xact_abort on;
    exec wf.wf_drop_iterations;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, node_id,
                       iteration_no, result_code)
    select a.ordinal, 0,
           case when e.iteration_no + 1 < l.total_count then N'START' else N'SUCCEED' end,
           e.parent_execution_id, a.workflow_instance_id, e.node_id, e.iteration_no + 1,
           case when e.iteration_no + 1 < l.total_count then null else 0 end
      from #entry as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id
      join wf.loop_state as l on l.node_execution_id = e.parent_execution_id;
end;
GO

-- The next test of a WHILE.
create or alter procedure wf.wf_while_continue
as
begin
    set nocount, xact_abort on;
    declare @v_ordinal int;
    declare @v_id bigint;
    declare @v_instance_id bigint;
    declare @v_iteration_no int;
    declare v_entry cursor local fast_forward for
        select a.ordinal, e.parent_execution_id, a.workflow_instance_id, e.iteration_no + 1
          from #entry as a
          join wf.node_execution as e on e.node_execution_id = a.node_execution_id
         order by a.ordinal;

    exec wf.wf_drop_iterations;
    open v_entry;
    fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id, @v_iteration_no;
    while @@fetch_status = 0
    begin
        exec wf.wf_while_test @ordinal = @v_ordinal, @node_execution_id = @v_id,
            @workflow_instance_id = @v_instance_id, @iteration_no = @v_iteration_no;
        fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id, @v_iteration_no;
    end;
    close v_entry;
    deallocate v_entry;
end;
GO

-- A WAIT_EVENT ends with its timeout body, with result code 1 (S8.5).
create or alter procedure wf.wf_wait_continue
as
begin
    set nocount, xact_abort on;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, result_code)
    select a.ordinal, 0, N'SUCCEED', e.parent_execution_id, a.workflow_instance_id, 1
      from #entry as a
      join wf.node_execution as e on e.node_execution_id = a.node_execution_id;
end;
GO

-- PARALLEL and FOREACH: takes the ended children off their counters, one counter after the other in the
-- order of #entry; wf.wf_engine_run hands counters of instances held shared in descending order (R1).
-- Where all children have started, only the last of several can decide anything, so the others are
-- counted in one update: a row that one transaction updates over and over gets slower each time.
create or alter procedure wf.wf_join_continue
as
begin
    set nocount, xact_abort on;
    declare @v_ordinal int;
    declare @v_id bigint;
    declare @v_parent_id bigint;
    declare @v_from_start int;
    declare @v_from_end int;
    declare @v_are_counted bit;
    declare v_entry cursor local static for
        select q.ordinal, q.node_execution_id, q.parent_execution_id, q.from_start, q.from_end
          from (select a.ordinal, a.node_execution_id, e.parent_execution_id,
                       row_number() over (partition by e.parent_execution_id order by a.ordinal) - 1
                           as from_start,
                       row_number() over (partition by e.parent_execution_id
                                          order by a.ordinal desc) - 1 as from_end,
                       min(a.ordinal) over (partition by e.parent_execution_id) as first_ordinal
                  from #entry as a
                  join wf.node_execution as e on e.node_execution_id = a.node_execution_id) as q
         order by q.first_ordinal, q.ordinal;

    open v_entry;
    fetch next from v_entry into @v_ordinal, @v_id, @v_parent_id, @v_from_start, @v_from_end;
    while @@fetch_status = 0
    begin
        if @v_from_start = 0
        begin
            set @v_are_counted = 0;
            if @v_from_end > 0
            begin
                update wf.join_counter
                   set open_count = open_count - @v_from_end,
                       succeeded_count = succeeded_count + @v_from_end,
                       last_started = null
                 where node_execution_id = @v_parent_id and next_index = total_count;
                if @@rowcount > 0 set @v_are_counted = 1;
            end;
        end;
        if @v_are_counted = 0 or @v_from_end = 0
            exec wf.wf_join_ended @ordinal = @v_ordinal, @child_execution_id = @v_id,
                @has_succeeded = 1;
        fetch next from v_entry into @v_ordinal, @v_id, @v_parent_id, @v_from_start, @v_from_end;
    end;
    close v_entry;
    deallocate v_entry;
end;
GO

-- The roots of instances have succeeded.
create or alter procedure wf.wf_instance_continue
as
begin
    set nocount, xact_abort on;
    declare @v_id bigint;
    declare @v_instance_id bigint;
    declare v_entry cursor local fast_forward for
        select a.workflow_instance_id, a.node_execution_id from #entry as a order by a.ordinal;

    open v_entry;
    fetch next from v_entry into @v_instance_id, @v_id;
    while @@fetch_status = 0
    begin
        exec wf.wf_finish_instance @workflow_instance_id = @v_instance_id,
            @root_execution_id = @v_id;
        fetch next from v_entry into @v_instance_id, @v_id;
    end;
    close v_entry;
    deallocate v_entry;
end;
GO

-- Completion --------------------------------------------------------------------------------------

-- Runs the `set`s of a node that has succeeded, in order, each seeing those before it (S2.4). The
-- first error, or value that does not fit its variable's type (R5), ends it and is answered.
create or alter procedure wf.wf_apply_output_bindings
    @node_execution_id bigint,
    @output_json nvarchar(max),
    @result_code int,
    @event_json nvarchar(max),
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_name nvarchar(200);
    declare @v_owner_key nvarchar(200);
    declare @v_program nvarchar(max);
    declare @v_version_id bigint;
    declare @v_type_id int;
    declare @v_scope_id bigint;
    declare @v_value nvarchar(max);
    declare @v_is_set bit;
    declare v_binding cursor local fast_forward for
        select b.name, b.owner_key, b.program_json, b.workflow_version_id, b.type_id, e.scope_id
          from wf.node_execution as e
          join wf.variable_output_binding as b on b.node_id = e.node_id
         where e.node_execution_id = @node_execution_id and b.binding_kind = N'var'
         order by b.binding_order;

    set @error_code = null;
    set @error_message = null;
    open v_binding;
    fetch next from v_binding into @v_name, @v_owner_key, @v_program, @v_version_id, @v_type_id,
        @v_scope_id;
    while @@fetch_status = 0
    begin
        exec wf.wf_eval_expression @program = @v_program, @execution_id = @node_execution_id,
            @output_json = @output_json, @result_code = @result_code, @event_json = @event_json,
            @value_json = @v_value output, @error_code = @error_code output,
            @error_message = @error_message output;
        if @error_code is null and @v_type_id is not null
            exec wf.wf_check_variable @version_id = @v_version_id, @type_id = @v_type_id,
                @name = @v_name, @value = @v_value, @error_code = @error_code output,
                @error_message = @error_message output;
        if @error_code is not null break;
        exec wf.wf_set_scope_variable @scope_id = @v_scope_id, @owner_key = @v_owner_key,
            @name = @v_name, @value = @v_value, @is_set = @v_is_set output;
        fetch next from v_binding into @v_name, @v_owner_key, @v_program, @v_version_id,
            @v_type_id, @v_scope_id;
    end;
    close v_binding;
    deallocate v_binding;
end;
GO

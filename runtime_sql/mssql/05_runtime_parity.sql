-- References: what `var`, `ctx`, `out`, `code` and `event` name. Twin: pg/05_runtime_parity.sql
--
-- A program (compiler/spec.py) is a postfix list of instructions; wf.wf_eval_expression runs it
-- with one loop over a stack. wf.wf_resolve_reference finds what `var`, `ctx`, `out`, `code` and
-- `event` name. Nothing here changes a row, takes a lock, runs text from a row or calls itself.
--
-- None of these routines raises: they answer value_json, or error_code with error_message (rule
-- S5's codes; the text has no path, the engine puts it before). A JSON null is the text null; SQL
-- null is "nothing there". The place of an evaluation is an execution: its scope chain holds the
-- variables, the executions above it are what `ctx` looks at.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The path of an execution for messages (the twin has it in 07_trace.sql; here wf.wf_error_entry
-- needs it before): keys from the root, loops with their iteration; generated nodes are left out.
create or alter function wf.wf_execution_path(@execution_id bigint) returns nvarchar(max)
as
begin
    declare @v_execution_id bigint = @execution_id;
    declare @v_parent_id bigint;
    declare @v_iteration_no int;
    declare @v_node_key nvarchar(200);
    declare @v_is_generated bit;
    declare @v_is_loop_body bit;
    declare @v_path nvarchar(max);
    declare @v_iteration nvarchar(20) = N'';
    while 1 = 1
    begin
        set @v_node_key = null;
        select @v_parent_id = e.parent_execution_id, @v_iteration_no = e.iteration_no,
               @v_node_key = n.node_key, @v_is_generated = n.is_generated,
               @v_is_loop_body = n.is_loop_body
          from wf.node_execution as e
          join wf.workflow_node as n on n.node_id = e.node_id
         where e.node_execution_id = @v_execution_id;
        if @v_node_key is null return @v_path;
        if @v_is_loop_body = 1
            set @v_iteration = concat(N'[', @v_iteration_no, N']');
        else if @v_is_generated = 0
        begin
            set @v_path = concat(@v_node_key, @v_iteration, N'/' + @v_path);
            set @v_iteration = N'';
        end;
        set @v_execution_id = @v_parent_id;
    end;
    return @v_path;
end;
GO

-- References --------------------------------------------------------------------------------------

-- One step of a path as an author writes it: .name, ["odd key"] or [3].
create or alter function wf.wf_step_text(@value nvarchar(max), @type int) returns nvarchar(max)
as
begin
    return case
        when @type = 2 then concat(N'[', @value, N']')
        when @value like N'[A-Za-z_]%' collate Latin1_General_100_BIN2
             and @value not like N'%[^A-Za-z0-9_]%' collate Latin1_General_100_BIN2
            then N'.' + @value
        else N'[' + wf.wf_json_quote(@value) + N']' end;
end;
GO

-- A reference as an author writes it, for messages: var.items[3], var.a["odd key"], var.a[var.i].
create or alter function wf.wf_reference_text(@ref nvarchar(max)) returns nvarchar(max)
as
begin
    -- What is still to be written, the next one at the highest place.
    declare @v_todo table (
        place int not null primary key,
        item nvarchar(max) not null,
        is_reference bit not null
    );
    declare @v_place int = 0;
    declare @v_item nvarchar(max) = @ref;
    declare @v_is_reference bit = 1;
    declare @v_path nvarchar(max);
    declare @v_size int;
    declare @v_text nvarchar(max) = N'';
    while @v_item is not null
    begin
        if @v_is_reference = 0
            set @v_text = @v_text + @v_item;
        else
        begin
            select @v_text = @v_text + max(case e.[key] when N'0' then e.value end)
                       + max(case when e.[key] <> N'1' or e.type <> 1 then N''
                                  else N'.' + e.value end),
                   @v_path = max(case e.type when 4 then e.value end)
              from openjson(@v_item) as e;
            set @v_size = (select count(*) from openjson(@v_path) as s);
            insert into @v_todo (place, item, is_reference)
            select @v_place + 3 * (@v_size - cast(s.[key] as int)) - p.piece,
                   case when s.type <> 4 then wf.wf_step_text(s.value, s.type)
                        when p.piece = 0 then N'[' when p.piece = 1 then s.value else N']' end,
                   case when s.type = 4 and p.piece = 1 then 1 else 0 end
              from openjson(@v_path) as s
              join (values (0), (1), (2)) as p(piece) on p.piece = 0 or s.type = 4;
        end;
        set @v_item = null;
        select top (1) @v_place = t.place, @v_item = t.item, @v_is_reference = t.is_reference
          from @v_todo as t
         order by t.place desc;
        delete from @v_todo where place = @v_place;
    end;
    return @v_text;
end;
GO

-- The execution of node @task_key that a reader at @execution_id sees (R27), or null: from the
-- deepest execution around the reader that is above that node, down its static chain, in loops by
-- the latest iteration; into a parallel FOREACH nothing is seen from outside.
-- Reader and node climb by turns until they meet, so that a sibling costs one step.
create or alter function wf.wf_find_task_execution(@execution_id bigint, @task_key nvarchar(max))
returns bigint
as
begin
    declare @v_execution_id bigint;
    declare @v_instance_id bigint;
    declare @v_parent_execution_id bigint = @execution_id;
    declare @v_reader_node_id bigint;
    declare @v_reader_depth int;
    declare @v_version_id bigint;
    declare @v_node_id bigint;
    declare @v_parent_node_id bigint;
    declare @v_depth int;
    declare @v_is_loop_body bit;
    declare @v_down table (place int identity(1, 1) not null primary key, node_id bigint not null);
    declare @v_place int;

    select @v_execution_id = e.node_execution_id, @v_instance_id = e.workflow_instance_id,
           @v_parent_execution_id = e.parent_execution_id, @v_reader_node_id = e.node_id,
           @v_version_id = n.workflow_version_id, @v_reader_depth = n.depth
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @execution_id;
    if @v_execution_id is null return null;
    select @v_node_id = k.node_id, @v_parent_node_id = k.parent_node_id, @v_depth = k.depth,
           @v_is_loop_body = k.is_loop_body
      from wf.workflow_node as k
     where k.workflow_version_id = @v_version_id and k.node_key = @task_key
       and datalength(k.node_key) = datalength(@task_key);
    if @v_node_id is null return null;

    while 1 = 1
    begin
        if @v_reader_depth >= @v_depth
        begin
            set @v_execution_id = null;
            select @v_execution_id = e.node_execution_id,
                   @v_parent_execution_id = e.parent_execution_id, @v_reader_node_id = e.node_id,
                   @v_reader_depth = n.depth
              from wf.node_execution as e
              join wf.workflow_node as n on n.node_id = e.node_id
             where e.node_execution_id = @v_parent_execution_id;
            if @v_execution_id is null return null;
            continue;
        end;
        insert into @v_down (node_id) values (@v_node_id);
        if @v_is_loop_body = 1 and exists (
            select 1
              from wf.workflow_node as p
             where p.node_id = @v_parent_node_id and p.node_type = N'FOREACH'
               and coalesce(json_value(p.attributes_json, '$.parallel'), N'1') <> N'1')
            return null;
        if @v_parent_node_id = @v_reader_node_id break;
        select @v_node_id = k.node_id, @v_parent_node_id = k.parent_node_id, @v_depth = k.depth,
               @v_is_loop_body = k.is_loop_body
          from wf.workflow_node as k
         where k.node_id = @v_parent_node_id;
    end;

    set @v_place = (select max(d.place) from @v_down as d);
    while @v_place > 0
    begin
        set @v_parent_execution_id = @v_execution_id;
        set @v_execution_id = null;
        select top (1) @v_execution_id = e.node_execution_id
          from @v_down as d
          join wf.node_execution as e
            on e.workflow_instance_id = @v_instance_id
           and e.parent_execution_id = @v_parent_execution_id
           and e.node_id = d.node_id
         where d.place = @v_place
         order by e.iteration_no desc;
        if @v_execution_id is null return null;
        set @v_place = @v_place - 1;
    end;
    return @v_execution_id;
end;
GO

-- `ctx.task.K.resultCode`: the code of the ended execution of K that the reader sees, else 10001.
create or alter procedure wf.wf_try_task_result_code
    @execution_id bigint,
    @task_key nvarchar(max),
    @value_json nvarchar(max) output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    -- Found first: within the statement below a plan may ask it for each row.
    declare @v_found_id bigint = wf.wf_find_task_execution(@execution_id, @task_key);
    set @value_json = null;
    set @error_code = null;
    set @error_message = null;
    select @value_json = cast(e.result_code as nvarchar(20))
      from wf.node_execution as e
     where e.node_execution_id = @v_found_id
       and e.status not in (N'READY', N'RUNNING');
    if @value_json is null
    begin
        set @error_code = 10001;
        set @error_message = wf.wf_reference_text(N'["ctx","task",['
            + wf.wf_json_quote(@task_key) + N',"resultCode"]]') + N' is not there';
    end;
end;
GO

-- `ctx.task.K.output`: the output of the succeeded execution of K that the reader sees, else 10001.
create or alter procedure wf.wf_try_task_output_json
    @execution_id bigint,
    @task_key nvarchar(max),
    @value_json nvarchar(max) output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_found_id bigint = wf.wf_find_task_execution(@execution_id, @task_key);
    set @value_json = null;
    set @error_code = null;
    set @error_message = null;
    select @value_json = coalesce(e.output_json, N'null')
      from wf.node_execution as e
     where e.node_execution_id = @v_found_id
       and e.status = N'SUCCEEDED';
    if @value_json is null
    begin
        set @error_code = 10001;
        set @error_message = wf.wf_reference_text(N'["ctx","task",['
            + wf.wf_json_quote(@task_key) + N',"output"]]') + N' is not there';
    end;
end;
GO

-- `ctx.item`, `index`, `iterationNo`: of the nearest iteration around the execution, itself
-- included; null outside of loops, and for the item of a loop that has none.
create or alter function wf.wf_loop_entry(@execution_id bigint, @root nvarchar(max))
returns nvarchar(max)
as
begin
    declare @v_execution_id bigint = @execution_id;
    declare @v_parent_id bigint;
    declare @v_parent_node_id bigint;
    declare @v_iteration_no int;
    declare @v_is_loop_body bit;
    while 1 = 1
    begin
        set @v_is_loop_body = null;
        select @v_parent_id = e.parent_execution_id, @v_iteration_no = e.iteration_no,
               @v_is_loop_body = n.is_loop_body, @v_parent_node_id = n.parent_node_id
          from wf.node_execution as e
          join wf.workflow_node as n on n.node_id = e.node_id
         where e.node_execution_id = @v_execution_id;
        if @v_is_loop_body is null return null;
        if @v_is_loop_body = 1 break;
        set @v_execution_id = @v_parent_id;
    end;
    if @root = N'index' return cast(@v_iteration_no as nvarchar(20));
    if @root = N'iterationNo' return cast(@v_iteration_no + 1 as nvarchar(20));
    return (select v.value_json
              from wf.workflow_node as p
              join wf.scope_variable as v
                on v.scope_id = @v_execution_id
               and v.name = json_value(p.attributes_json, '$.item')
                   collate Latin1_General_100_BIN2
             where p.node_id = @v_parent_node_id and p.node_type = N'FOREACH');
end;
GO

-- `ctx.sequenceIndex` and `parallelIndex`: the child order of the nearest execution, itself
-- included, that hangs on such an edge.
create or alter function wf.wf_nearest_child_order(@execution_id bigint, @edge_kind nvarchar(20))
returns nvarchar(max)
as
begin
    declare @v_execution_id bigint = @execution_id;
    declare @v_parent_id bigint;
    declare @v_edge_kind nvarchar(20);
    declare @v_child_order int;
    while 1 = 1
    begin
        set @v_parent_id = null;
        select @v_parent_id = e.parent_execution_id, @v_edge_kind = n.edge_kind,
               @v_child_order = n.child_order
          from wf.node_execution as e
          join wf.workflow_node as n on n.node_id = e.node_id
         where e.node_execution_id = @v_execution_id;
        if @v_parent_id is null return null;
        if @v_edge_kind = @edge_kind return cast(@v_child_order as nvarchar(20));
        set @v_execution_id = @v_parent_id;
    end;
    return null;
end;
GO

-- `ctx.parent.resultCode`: from the nearest execution, itself included, whose parent is a SEQUENCE,
-- the code of the sibling before it.
create or alter function wf.wf_previous_result_code(@execution_id bigint) returns nvarchar(max)
as
begin
    declare @v_execution_id bigint = @execution_id;
    declare @v_instance_id bigint;
    declare @v_parent_id bigint;
    declare @v_parent_node_id bigint;
    declare @v_parent_type nvarchar(20);
    declare @v_child_order int;
    while 1 = 1
    begin
        set @v_parent_id = null;
        select @v_instance_id = e.workflow_instance_id, @v_parent_id = e.parent_execution_id,
               @v_parent_node_id = n.parent_node_id, @v_parent_type = n.parent_type,
               @v_child_order = n.child_order
          from wf.node_execution as e
          join wf.workflow_node as n on n.node_id = e.node_id
         where e.node_execution_id = @v_execution_id;
        if @v_parent_id is null return null;
        if @v_parent_type = N'SEQUENCE' break;
        set @v_execution_id = @v_parent_id;
    end;
    return (select cast(e.result_code as nvarchar(20))
              from wf.workflow_node as n
              join wf.node_execution as e
                on e.workflow_instance_id = @v_instance_id
               and e.parent_execution_id = @v_parent_id
               and e.node_id = n.node_id
               and e.iteration_no = 0
             where n.parent_node_id = @v_parent_node_id
               and n.child_order = @v_child_order - 1);
end;
GO

-- `ctx.error` (S6.9): the error that the nearest on_error or finally around the reader handles, as
-- it was when that began; null outside of one, and in a finally after success or cancellation.
create or alter function wf.wf_error_entry(@execution_id bigint) returns nvarchar(max)
as
begin
    declare @v_execution_id bigint = @execution_id;
    declare @v_parent_id bigint;
    declare @v_edge_kind nvarchar(20);
    while 1 = 1
    begin
        set @v_parent_id = null;
        select @v_parent_id = e.parent_execution_id, @v_edge_kind = n.edge_kind
          from wf.node_execution as e
          join wf.workflow_node as n on n.node_id = e.node_id
         where e.node_execution_id = @v_execution_id;
        if @v_parent_id is null return null;
        if @v_edge_kind in (N'ON_ERROR', N'FINALLY') break;
        set @v_execution_id = @v_parent_id;
    end;
    return (
        select concat(N'{"code":', coalesce(cast(p.result_code as nvarchar(20)), N'null'),
                      N',"engine_code":',
                      coalesce(cast(p.engine_error_code as nvarchar(20)), N'null'),
                      N',"message":', wf.wf_json_quote(coalesce(p.engine_error_message, N'')),
                      N',"node":', wf.wf_json_quote(n.node_key),
                      N',"path":', coalesce(wf.wf_json_quote(
                          wf.wf_execution_path(p.error_execution_id)), N'null'), N'}')
          from wf.pending_end as p
          join wf.node_execution as o on o.node_execution_id = p.error_execution_id
          join wf.workflow_node as n on n.node_id = o.node_id
         where p.node_execution_id = @v_parent_id
           and p.verdict = N'FAIL');
end;
GO

-- The instance of an execution. While inputs are checked the root has a scope and no row yet.
create or alter function wf.wf_instance_of_execution(@execution_id bigint) returns bigint
as
begin
    return coalesce(
        (select e.workflow_instance_id from wf.node_execution as e
          where e.node_execution_id = @execution_id),
        (select s.workflow_instance_id from wf.scope as s where s.scope_id = @execution_id));
end;
GO

-- What a `ctx` reference starts from (R27): value_json, null when it is not there, and how many of
-- its steps that took (`task` takes key and field, `parent` its field).
create or alter procedure wf.wf_context_entry
    @execution_id bigint,
    @root nvarchar(max),
    @steps nvarchar(max),
    @result_code int,
    @value_json nvarchar(max) output,
    @steps_taken int output
as
begin
    set nocount, xact_abort on;
    declare @v_step_count int;
    declare @v_first nvarchar(max);
    declare @v_second nvarchar(max);
    declare @v_error_code int;
    declare @v_error_message nvarchar(max);

    set @value_json = null;
    set @steps_taken = case @root when N'task' then 2 when N'parent' then 1 else 0 end;
    select @v_step_count = count(*),
           @v_first = max(case when e.[key] = N'0' and e.type = 1 then e.value end),
           @v_second = max(case when e.[key] = N'1' and e.type = 1 then e.value end)
      from openjson(@steps) as e;
    if @v_step_count < @steps_taken return;
    if @root = N'task' and @v_second = N'output' and @v_first is not null
        exec wf.wf_try_task_output_json @execution_id = @execution_id, @task_key = @v_first,
            @value_json = @value_json output, @error_code = @v_error_code output,
            @error_message = @v_error_message output;
    else if @root = N'task' and @v_second = N'resultCode' and @v_first is not null
        exec wf.wf_try_task_result_code @execution_id = @execution_id, @task_key = @v_first,
            @value_json = @value_json output, @error_code = @v_error_code output,
            @error_message = @v_error_message output;
    else if @root = N'error'
        set @value_json = wf.wf_error_entry(@execution_id);
    else if @root in (N'item', N'index', N'iterationNo')
        set @value_json = wf.wf_loop_entry(@execution_id, @root);
    else if @root = N'parent' and @v_first = N'resultCode'
        set @value_json = wf.wf_previous_result_code(@execution_id);
    else if @root = N'sequenceIndex'
        set @value_json = wf.wf_nearest_child_order(@execution_id, N'SEQUENCE');
    else if @root = N'parallelIndex'
        set @value_json = wf.wf_nearest_child_order(@execution_id, N'PARALLEL');
    -- Only in a `set`, which is where there is a result code (R27).
    else if @root = N'attempt' and @result_code is not null
        select @value_json = cast(case when coalesce(t.attempt_no, e.attempt_no) > 1
                                       then coalesce(t.attempt_no, e.attempt_no)
                                       else 1 end as nvarchar(20))
          from wf.node_execution as e
          left join wf.task as t on t.node_execution_id = e.node_execution_id
         where e.node_execution_id = @execution_id;
    else if @root = N'node'
        select @value_json = wf.wf_json_quote(n.node_key)
          from wf.node_execution as e
          join wf.workflow_node as n on n.node_id = e.node_id
         where e.node_execution_id = @execution_id;
    else if @root in (N'workflow', N'version', N'instance_id')
        select @value_json = wf.wf_json_quote(case @root
                   when N'workflow' then d.name
                   when N'version' then left(w.content_hash, 12)
                   else cast(i.workflow_instance_id as nvarchar(20)) end)
          from wf.workflow_instance as i
          join wf.workflow_version as w on w.workflow_version_id = i.workflow_version_id
          join wf.workflow_def as d on d.workflow_def_id = w.workflow_def_id
         where i.workflow_instance_id = wf.wf_instance_of_execution(@execution_id);
    else if @root in (N'context', N'forceRerun', N'event')
        select @value_json = case @root
                   when N'context' then c.context_json
                   when N'event' then c.event_json
                   else coalesce(wf.wf_json_member(c.context_json, N'forceRerun'), N'false') end
          from wf.execution_context as c
         where c.workflow_instance_id = wf.wf_instance_of_execution(@execution_id);
end;
GO

-- Whether the variable is one that only a `set` or `collect` brings into being (R16).
create or alter function wf.wf_is_set_only_variable(
    @execution_id bigint, @owner_key nvarchar(max), @name nvarchar(max)
) returns bit
as
begin
    return case when exists (
        select 1
          from wf.node_execution as e
          join wf.workflow_node as n on n.node_id = e.node_id
          join wf.node_scope_default as d
            on d.workflow_version_id = n.workflow_version_id
           and d.owner_key = @owner_key and d.name = @name
         where e.node_execution_id = @execution_id
           and d.variable_kind = N'set') then 1 else 0 end;
end;
GO

-- The nearest scope, from @scope_id outwards, that node @owner_key opened, or null (the twin has it
-- in 06_scopes_and_types.sql; here wf.wf_resolve_reference needs it before).
create or alter function wf.wf_find_scope(@scope_id bigint, @owner_key nvarchar(200))
returns bigint
as
begin
    declare @v_scope_id bigint = @scope_id;
    declare @v_owner nvarchar(200);
    declare @v_parent_id bigint;
    while 1 = 1
    begin
        set @v_owner = null;
        select @v_owner = s.owner_key, @v_parent_id = s.parent_scope_id
          from wf.scope as s
         where s.scope_id = @v_scope_id;
        if @v_owner is null return null;
        if @v_owner = @owner_key collate Latin1_General_100_BIN2 return @v_scope_id;
        set @v_scope_id = @v_parent_id;
    end;
    return null;
end;
GO

-- What a reference names (S3.6). A step that is itself a reference is resolved by setting the outer
-- one aside in @v_outer, where it waits for the index that the inner one is to give.
-- @unset_is_null: variables that only a `set` brings into being read as null until then; the
-- workflow's `output` reads so (R16). @scope_id: the execution's innermost scope, if the caller
-- knows it; an execution without a row (the root, while its inputs are read) is its own scope.
create or alter procedure wf.wf_resolve_reference
    @ref nvarchar(max),
    @execution_id bigint,
    @output_json nvarchar(max) = null,
    @result_code int = null,
    @event_json nvarchar(max) = null,
    @unset_is_null bit = 0,
    @scope_id bigint = null,
    @value_json nvarchar(max) output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_ref nvarchar(max) = @ref;
    declare @v_is_new bit = 1;      -- a reference begins
    declare @v_root nvarchar(max);
    declare @v_name nvarchar(max);
    declare @v_owner nvarchar(max);
    declare @v_value nvarchar(max);
    declare @v_steps nvarchar(max);
    declare @v_step nvarchar(max);
    declare @v_step_type int;
    declare @v_at int;
    declare @v_count int;
    declare @v_scope_id bigint;
    declare @v_depth int = 0;
    declare @v_outer nvarchar(max) = N'';  -- a stack: reference, steps, value and place of each

    set @value_json = null;
    set @error_code = null;
    set @error_message = null;
    while 1 = 1
    begin
        if @v_is_new = 1
        begin
            set @v_is_new = 0;
            set @v_at = 0;
            set @v_value = null;
            select @v_root = max(case e.[key] when N'0' then e.value end),
                   @v_name = max(case e.[key] when N'1' then e.value end),
                   @v_owner = max(case e.[key] when N'2' then e.value end),
                   @v_steps = coalesce(max(case e.type when 4 then e.value end), N'[]')
              from openjson(@v_ref) as e;
            set @v_count = case when @v_steps = N'[]' then 0
                                else (select count(*) from openjson(@v_steps) as s) end;
            if @v_root = N'var'
            begin
                set @v_scope_id = @scope_id;
                if @v_scope_id is null
                begin
                    set @v_scope_id = @execution_id;
                    select @v_scope_id = e.scope_id
                      from wf.node_execution as e
                     where e.node_execution_id = @execution_id;
                end;
                set @v_scope_id = wf.wf_find_scope(@v_scope_id, @v_owner);
                select @v_value = v.value_json
                  from wf.scope_variable as v
                 where v.scope_id = @v_scope_id and v.name = @v_name;
                if @v_value is null and @unset_is_null = 1 and @v_depth = 0
                   and wf.wf_is_set_only_variable(@execution_id, @v_owner, @v_name) = 1
                    set @v_value = N'null';
            end;
            else if @v_root = N'ctx'
                exec wf.wf_context_entry @execution_id = @execution_id, @root = @v_name,
                    @steps = @v_steps, @result_code = @result_code,
                    @value_json = @v_value output, @steps_taken = @v_at output;
            else if @v_root = N'out'
                set @v_value = coalesce(@output_json, N'null');
            else if @v_root = N'code'
                set @v_value = cast(@result_code as nvarchar(20));
            else
                set @v_value = @event_json;
        end;
        if @v_value is null
        begin
            set @error_code = 10001;
            set @error_message = wf.wf_reference_text(@v_ref) + N' is not there';
            return;
        end;
        if @v_at < @v_count
        begin
            select @v_step = e.value, @v_step_type = e.type
              from openjson(@v_steps) as e
             where e.[key] = cast(@v_at as nvarchar(20));
            set @v_at = @v_at + 1;
            if @v_step_type = 4
            begin
                set @v_depth = @v_depth + 1;
                set @v_outer = wf.wf_stack_push(@v_outer, @v_ref);
                set @v_outer = wf.wf_stack_push(@v_outer, @v_steps);
                set @v_outer = wf.wf_stack_push(@v_outer, @v_value);
                set @v_outer = wf.wf_stack_push(@v_outer, cast(@v_at as nvarchar(20)));
                set @v_ref = @v_step;
                set @v_is_new = 1;
                continue;
            end;
        end;
        else if @v_depth = 0
        begin
            set @value_json = @v_value;
            return;
        end;
        else
        begin
            -- An index is complete: back to the reference that it stands in.
            set @v_step = @v_value;
            set @v_step_type = 2;
            set @v_at = cast(wf.wf_stack_top(@v_outer) as int);
            set @v_outer = wf.wf_stack_below(@v_outer);
            set @v_value = wf.wf_stack_top(@v_outer);
            set @v_outer = wf.wf_stack_below(@v_outer);
            set @v_steps = wf.wf_stack_top(@v_outer);
            set @v_outer = wf.wf_stack_below(@v_outer);
            set @v_ref = wf.wf_stack_top(@v_outer);
            set @v_outer = wf.wf_stack_below(@v_outer);
            set @v_depth = @v_depth - 1;
            set @v_count = (select count(*) from openjson(@v_steps) as s);
            if wf.wf_type_word(@v_step) <> N'integer'
            begin
                set @error_code = 10010;
                set @error_message = N'an index takes an integer, not '
                    + wf.wf_type_word(@v_step);
                return;
            end;
        end;
        if @v_step_type = 1
            set @v_value = wf.wf_json_member(@v_value, @v_step);
        else
        begin
            -- A negative index would count from the end; one of ten digits names nothing.
            set @v_step = wf.wf_number_text(@v_step);
            set @v_value = case when len(@v_step) <= 9 and @v_step not like N'-%'
                                then wf.wf_json_item(@v_value, try_cast(@v_step as int)) end;
        end;
    end;
end;
GO

-- The value of variable @name of the nearest scope, from @scope_id outwards, that node @owner_key
-- opened; 10001 when it has none.
create or alter procedure wf.wf_get_scope_variable_json
    @scope_id bigint,
    @owner_key nvarchar(200),
    @name nvarchar(200),
    @value_json nvarchar(max) output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_ref nvarchar(max) = concat(N'["var",', wf.wf_json_quote(@name), N',',
                                          wf.wf_json_quote(@owner_key), N',[]]');
    exec wf.wf_resolve_reference @ref = @v_ref, @execution_id = 0, @scope_id = @scope_id,
        @value_json = @value_json output, @error_code = @error_code output,
        @error_message = @error_message output;
end;
GO

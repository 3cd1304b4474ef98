-- The trace document (semantics §11). Twin: pg/07_trace.sql
--
-- Everything here reads; nothing locks. The document is put together from pieces of JSON text:
-- FOR JSON would write a stored value as a string, or leave out what is null. Paths of executions
-- stand in 05_runtime_parity.sql.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The instance's own id inside data as "$instance_id" (R27): a string that is the id and nothing
-- else. In JSON text such a string is the digits between two quotes, of which the first is not
-- escaped; a key is followed by a colon and stays.
create or alter function wf.wf_mask_instance_id(@value_json nvarchar(max), @instance_id bigint)
returns nvarchar(max)
as
begin
    declare @v_id nvarchar(30) = concat(N'"', @instance_id, N'"');
    declare @v_text nvarchar(max) = @value_json;
    declare @v_at int = charindex(@v_id, @v_text);
    declare @v_after int;

    while @v_at > 0
    begin
        set @v_after = @v_at + len(@v_id);
        while substring(@v_text, @v_after, 1) in (N' ', nchar(9), nchar(10), nchar(13))
              and datalength(substring(@v_text, @v_after, 1)) > 0
            set @v_after = @v_after + 1;
        if substring(@v_text, @v_after, 1) = N':'
           or @v_at > 1 and substring(@v_text, @v_at - 1, 1) = N'\'
            set @v_at = charindex(@v_id, @v_text, @v_at + 1);
        else
        begin
            set @v_text = stuff(@v_text, @v_at, len(@v_id), N'"$instance_id"');
            set @v_at = charindex(@v_id, @v_text, @v_at + 1);
        end;
    end;
    return @v_text;
end;
GO

-- An error as the trace writes it. @execution_id: where it arose. Engine errors hold no data, so only
-- the message of a `fail` or an action can be the instance's id.
create or alter function wf.wf_trace_error(
    @instance_id bigint,
    @code int,
    @engine_code int,
    @message nvarchar(max),
    @execution_id bigint
) returns nvarchar(max)
as
begin
    return concat(
        N'{"code":', coalesce(cast(@code as nvarchar(20)), N'null'),
        N',"engine_code":', coalesce(cast(@engine_code as nvarchar(20)), N'null'),
        N',"message":', case
            when @engine_code is null
            then wf.wf_mask_instance_id(wf.wf_json_quote(coalesce(@message, N'')), @instance_id)
            else coalesce(wf.wf_json_quote(@message), N'null') end,
        N',"node":', coalesce((
            select wf.wf_json_quote(n.node_key)
              from wf.node_execution as e
              join wf.workflow_node as n on n.node_id = e.node_id
             where e.node_execution_id = @execution_id), N'null'),
        N',"path":', coalesce(wf.wf_json_quote(wf.wf_execution_path(@execution_id)), N'null'),
        N'}');
end;
GO

-- A value with another one put at a path, a JSON array of keys and indexes, from its step @at on. What
-- the path does not meet stays. Calls itself once for each step, of which there may be twenty.
create or alter function wf.wf_json_put(
    @value nvarchar(max),
    @path nvarchar(max),
    @at int,
    @new nvarchar(max)
) returns nvarchar(max)
as
begin
    declare @v_step nvarchar(max) = wf.wf_json_string(wf.wf_json_item(@path, @at));
    declare @v_type nvarchar(7) = wf.wf_json_type(@value);

    if @v_step is null return @new;
    if @v_type = N'object' and wf.wf_json_member(@value, @v_step) is not null
        return concat(N'{', (
            select string_agg(concat(wf.wf_json_quote(m.[key]), N':', case
                       when m.[key] collate Latin1_General_100_BIN2 = @v_step
                            and datalength(m.[key]) = datalength(cast(@v_step as nvarchar(4000)))
                       then wf.wf_json_put(wf.wf_json_text(m.value, m.type), @path, @at + 1, @new)
                       else wf.wf_json_text(m.value, m.type) end), N',')
              from openjson(@value) as m), N'}');
    if @v_type = N'array' and wf.wf_is_digits(@v_step, 9) = 1
       and wf.wf_json_item(@value, cast(@v_step as int)) is not null
        return concat(N'[', (
            select string_agg(case when m.[key] = @v_step
                       then wf.wf_json_put(wf.wf_json_text(m.value, m.type), @path, @at + 1, @new)
                       else wf.wf_json_text(m.value, m.type) end, N',')
                       within group (order by cast(m.[key] as int))
              from openjson(@value) as m), N']');
    return @value;
end;
GO

-- A value in which what an action calls sensitive is "***". @pointers: JSON pointers that begin with
-- /input or /output; @part says which of the two @value is. What a pointer does not meet stays, and
-- so does a null that stands for no value at all.
create or alter function wf.wf_mask_sensitive(
    @value nvarchar(max),
    @pointers nvarchar(max),
    @part nvarchar(20)
) returns nvarchar(max)
as
begin
    declare @v_value nvarchar(max) = @value;
    declare @v_index int = 0;
    declare @v_pointer nvarchar(600);
    declare @v_path nvarchar(max);

    if @value is null or @pointers is null or @value = N'null' return @value;
    while 1 = 1
    begin
        set @v_pointer = null;
        select @v_pointer = p.value from openjson(@pointers) as p
         where p.[key] = cast(@v_index as nvarchar(20));
        if @v_pointer is null return @v_value;
        set @v_index = @v_index + 1;
        set @v_path = wf.wf_pointer_path(@v_pointer);
        if wf.wf_json_string(wf.wf_json_item(@v_path, 0)) = @part
            set @v_value = wf.wf_json_put(@v_value, @v_path, 1, N'"***"');
    end;
    return @v_value;
end;
GO

-- The variables of a scope that have a value, as an object.
create or alter function wf.wf_scope_variables(@scope_id bigint) returns nvarchar(max)
as
begin
    return concat(N'{', (
        select string_agg(concat(wf.wf_json_quote(v.name), N':', v.value_json), N',')
                   within group (order by v.name)
          from wf.scope_variable as v
         where v.scope_id = @scope_id), N'}');
end;
GO

-- The rows of a trace as a JSON array: every execution but generated ones that are no loop body, in
-- pre-order by child order, then iteration. Sensitive parts of inputs and outputs are
-- masked, whoever asks. The executions are gathered level by level; place is the
-- child order and iteration of each on the way from the root, ten digits each.
create or alter procedure wf.wf_trace_nodes
    @workflow_instance_id bigint,
    @nodes_json nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_tree table (
        node_execution_id bigint not null primary key,
        path nvarchar(max) collate Latin1_General_100_BIN2 not null,
        node_type nvarchar(20) collate Latin1_General_100_BIN2 not null,
        is_hidden bit not null,
        place nvarchar(max) collate Latin1_General_100_BIN2 not null,
        level_no int not null
    );
    declare @v_level_no int = 0;
    declare @v_row_count int;

    insert into @v_tree (node_execution_id, path, node_type, is_hidden, place, level_no)
    select e.node_execution_id, n.node_key, n.node_type,
           case when n.is_generated = 1 and n.is_loop_body = 0 then 1 else 0 end, N'', 0
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.workflow_instance_id = @workflow_instance_id and e.parent_execution_id = 0;
    set @v_row_count = @@rowcount;
    while @v_row_count > 0
    begin
        insert into @v_tree (node_execution_id, path, node_type, is_hidden, place, level_no)
        select e.node_execution_id,
               concat(t.path, case when n.is_loop_body = 1 then concat(N'[', e.iteration_no, N']')
                                   when n.is_generated = 1 then N''
                                   else concat(N'/', n.node_key) end),
               n.node_type,
               case when n.is_generated = 1 and n.is_loop_body = 0 then 1 else 0 end,
               concat(t.place, right(concat(N'000000000', n.child_order), 10),
                      right(concat(N'000000000', e.iteration_no), 10)),
               @v_level_no + 1
          from @v_tree as t
          join wf.node_execution as e
            on e.workflow_instance_id = @workflow_instance_id
           and e.parent_execution_id = t.node_execution_id
          join wf.workflow_node as n on n.node_id = e.node_id
         where t.level_no = @v_level_no;
        set @v_row_count = @@rowcount;
        set @v_level_no = @v_level_no + 1;
    end;
    select @nodes_json = concat(N'[', string_agg(x.node_json, N',')
                                          within group (order by x.place), N']')
      from (select t.place, concat(
                       N'{"path":', wf.wf_json_quote(t.path),
                       N',"type":"', t.node_type,
                       N'","status":"', case
                           when e.status in (N'READY', N'RUNNING') and t.node_type = N'ACTION'
                           then case when k.worker_id is null then N'READY' else N'RUNNING' end
                           else e.status end,
                       N'","attempts":', case when t.node_type = N'ACTION'
                           then coalesce(k.attempt_no, e.attempt_no) else 1 end,
                       N',"result_code":', coalesce(cast(e.result_code as nvarchar(20)), N'null'),
                       N',"input":', case when t.node_type = N'ACTION'
                           then coalesce(wf.wf_mask_instance_id(wf.wf_mask_sensitive(
                               coalesce(k.input_json, e.input_json), r.sensitive_json, N'input'),
                               @workflow_instance_id), N'null') else N'null' end,
                       N',"output":', coalesce(wf.wf_mask_instance_id(wf.wf_mask_sensitive(
                           e.output_json, r.sensitive_json, N'output'), @workflow_instance_id),
                           N'null'),
                       N',"error":', case when e.status = N'FAILED'
                           then wf.wf_trace_error(@workflow_instance_id, e.result_code,
                               e.engine_error_code, e.engine_error_message,
                               coalesce(e.error_execution_id, e.node_execution_id))
                           else N'null' end,
                       case when s.scope_id is not null and t.level_no > 0
                           then concat(N',"variables":', wf.wf_mask_instance_id(
                               wf.wf_scope_variables(s.scope_id), @workflow_instance_id)) end,
                       N'}') as node_json
              from @v_tree as t
              join wf.node_execution as e on e.node_execution_id = t.node_execution_id
              left join wf.workflow_node as n on n.node_id = e.node_id
              left join wf.workflow_action_revision as r
                on r.action_name = n.action_name and r.revision = n.action_revision
              left join wf.task as k on k.node_execution_id = t.node_execution_id
              left join wf.scope as s on s.scope_id = t.node_execution_id
             where t.is_hidden = 0) as x;
end;
GO

-- The trace document, which two engines agree on as JSON; null for an unknown instance.
create or alter procedure wf.wf_trace_instance
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_nodes_json nvarchar(max);
    declare @v_trace_json nvarchar(max);

    exec wf.wf_trace_nodes @workflow_instance_id = @workflow_instance_id,
        @nodes_json = @v_nodes_json output;
    select @v_trace_json = concat(
               N'{"trace_format":1,"workflow":', wf.wf_json_quote(d.name),
               N',"status":"', i.status,
               N'","error":', case when i.status = N'FAILED'
                   then wf.wf_trace_error(i.workflow_instance_id, i.error_code,
                       i.engine_error_code, i.engine_error_message,
                       coalesce(i.error_execution_id, i.root_execution_id))
                   else N'null' end,
               N',"output":', coalesce(wf.wf_mask_instance_id(
                   c.output_json, i.workflow_instance_id), N'null'),
               N',"variables":', wf.wf_mask_instance_id(
                   wf.wf_scope_variables(i.root_execution_id), i.workflow_instance_id),
               N',"nodes":', @v_nodes_json, N'}')
      from wf.workflow_instance as i
      join wf.workflow_def as d on d.workflow_def_id = i.workflow_def_id
      left join wf.execution_context as c on c.workflow_instance_id = i.workflow_instance_id
     where i.workflow_instance_id = @workflow_instance_id;
    select @v_trace_json as trace_json;
end;
GO

-- One instance with its output; no row for an unknown id.
create or alter procedure wf.wf_repo_get_workflow_instance
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    select v.workflow_instance_id, v.workflow_name, v.version_no, v.status as instance_status,
           v.created_at, v.started_at, v.ended_at, v.business_key, c.output_json, v.error_code,
           v.engine_error_code, v.engine_error_message as error_message
      from wf.v_instance as v
      left join wf.execution_context as c on c.workflow_instance_id = v.workflow_instance_id
     where v.workflow_instance_id = @workflow_instance_id;
end;
GO

-- The instances that are RUNNING or PAUSED, oldest first.
create or alter procedure wf.wf_repo_get_running_instances
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    select v.workflow_instance_id, v.workflow_name, v.version_no, v.status as instance_status,
           v.created_at, v.started_at, v.ended_at, v.business_key,
           cast(null as nvarchar(max)) as output_json, v.error_code, v.engine_error_code,
           v.engine_error_message as error_message
      from wf.v_instance as v
     where v.status in (N'RUNNING', N'PAUSED') and v.ended_at is null
     order by v.workflow_instance_id;
end;
GO

-- FOREACH: what its iterations export, and how many may fail. Twin: pg/08_foreach_support.sql
--
-- #entry, #step and #call are the tables of the call (03_engine_core.sql).

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- How many iterations may fail: `tolerate N`, or the largest number that is at most P % (R31).
create or alter function wf.wf_tolerated(@tolerate nvarchar(max), @total int) returns int
as
begin
    return coalesce(cast(json_value(@tolerate, N'$.count') as int),
        cast(floor(cast(json_value(@tolerate, N'$.percent') as decimal(20, 10)) * @total / 100)
             as int),
        0);
end;
GO

-- Looks at the SUCCEED steps of a level. An iteration of a FOREACH that collects gets what it
-- exports as its output, or fails if that cannot be evaluated; a FOREACH that succeeds writes the
-- arrays of its iterations' exports, in iteration order, null where there is none (S2.5, R31). With
-- `reuse`, what the iterations export is kept: wf_foreach_keep_bundles reads #exported.
create or alter procedure wf.wf_foreach_collect
as
begin
    set nocount, xact_abort on;
    declare @v_seq bigint;
    declare @v_ordinal int;
    declare @v_id bigint;
    declare @v_instance_id bigint;
    declare @v_foreach_node_id bigint;
    declare @v_is_foreach int;
    declare @v_reuses bit;
    declare @v_value nvarchar(max);
    declare @v_code int;
    declare @v_message nvarchar(max);
    create table #exported (
        seq bigint identity(1, 1) not null,
        node_execution_id bigint not null,
        exported_json nvarchar(max) not null
    );
    declare v_step cursor local static for
        select s.seq, s.ordinal, s.node_execution_id, s.workflow_instance_id, n.collect_node_id,
               case when n.collect_node_id = n.node_id then 1 else 0 end,
               wf.wf_has_attribute(f.attributes_json, N'reuse')
          from #step as s
          join wf.node_execution as e on e.node_execution_id = s.node_execution_id
          join wf.workflow_node as n on n.node_id = e.node_id
          join wf.workflow_node as f on f.node_id = n.collect_node_id
         where s.step = N'SUCCEED'
         order by s.seq;

    open v_step;
    fetch next from v_step into @v_seq, @v_ordinal, @v_id, @v_instance_id, @v_foreach_node_id,
        @v_is_foreach, @v_reuses;
    while @@fetch_status = 0
    begin
        if @v_is_foreach = 1
            exec wf.wf_foreach_write_collected @node_execution_id = @v_id,
                @error_code = @v_code output, @error_message = @v_message output;
        else
        begin
            exec wf.wf_foreach_export @node_execution_id = @v_id,
                @foreach_node_id = @v_foreach_node_id, @value_json = @v_value output,
                @error_code = @v_code output, @error_message = @v_message output;
            if @v_code is null and @v_value <> N'{}'
                update #step set item_json = @v_value where seq = @v_seq;
            if @v_code is null and @v_reuses = 1
                insert into #exported (node_execution_id, exported_json) values (@v_id, @v_value);
        end;
        if @v_code is not null
        begin
            delete from #step where seq = @v_seq;
            exec wf.wf_fail_step @ordinal = @v_ordinal, @node_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id, @engine_error_code = @v_code,
                @text = @v_message;
        end;
        fetch next from v_step into @v_seq, @v_ordinal, @v_id, @v_instance_id, @v_foreach_node_id,
            @v_is_foreach, @v_reuses;
    end;
    close v_step;
    deallocate v_step;
    if exists (select 1 from #exported) exec wf.wf_foreach_keep_bundles;
end;
GO

-- What one iteration exports: the object {collect name: value}, evaluated in its own scope.
create or alter procedure wf.wf_foreach_export
    @node_execution_id bigint,
    @foreach_node_id bigint,
    @value_json nvarchar(max) output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_name nvarchar(200);
    declare @v_program nvarchar(max);
    declare @v_value nvarchar(max);
    declare @v_members nvarchar(max);
    declare v_binding cursor local fast_forward for
        select b.name, b.program_json
          from wf.variable_output_binding as b
         where b.node_id = @foreach_node_id and b.binding_kind = N'collect'
         order by b.binding_order;

    set @value_json = null;
    set @error_code = null;
    set @error_message = null;
    open v_binding;
    fetch next from v_binding into @v_name, @v_program;
    while @@fetch_status = 0
    begin
        exec wf.wf_eval_expression @program = @v_program, @execution_id = @node_execution_id,
            @value_json = @v_value output, @error_code = @error_code output,
            @error_message = @error_message output;
        if @error_code is not null break;
        set @v_members = concat(@v_members + N',', wf.wf_json_quote(@v_name), N':', @v_value);
        fetch next from v_binding into @v_name, @v_program;
    end;
    close v_binding;
    deallocate v_binding;
    if @error_code is null set @value_json = concat(N'{', @v_members, N'}');
end;
GO

-- Writes the variables of a FOREACH's collects. Iterations that were never started contribute
-- null, as do those that exported nothing. An array that cannot be stored (10018) or does not fit the
-- variable's type (10015) ends it and is answered.
create or alter procedure wf.wf_foreach_write_collected
    @node_execution_id bigint,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_name nvarchar(200);
    declare @v_owner_key nvarchar(200);
    declare @v_version_id bigint;
    declare @v_type_id int;
    declare @v_scope_id bigint;
    declare @v_values nvarchar(max);
    declare @v_is_set bit;
    declare v_binding cursor local fast_forward for
        select b.name, b.owner_key, b.workflow_version_id, b.type_id, e.scope_id
          from wf.node_execution as e
          join wf.variable_output_binding as b on b.node_id = e.node_id
         where e.node_execution_id = @node_execution_id and b.binding_kind = N'collect'
         order by b.binding_order;

    set @error_code = null;
    set @error_message = null;
    open v_binding;
    fetch next from v_binding into @v_name, @v_owner_key, @v_version_id, @v_type_id, @v_scope_id;
    while @@fetch_status = 0
    begin
        exec wf.wf_foreach_collected @node_execution_id = @node_execution_id, @name = @v_name,
            @value_json = @v_values output;
        set @error_message = wf.wf_storable_problem(@v_values);
        if @error_message is not null set @error_code = 10018;
        if @error_code is null
            exec wf.wf_check_variable @version_id = @v_version_id, @type_id = @v_type_id,
                @name = @v_name, @value = @v_values, @error_code = @error_code output,
                @error_message = @error_message output;
        if @error_code is not null break;
        exec wf.wf_set_scope_variable @scope_id = @v_scope_id, @owner_key = @v_owner_key,
            @name = @v_name, @value = @v_values, @is_set = @v_is_set output;
        fetch next from v_binding into @v_name, @v_owner_key, @v_version_id, @v_type_id,
            @v_scope_id;
    end;
    close v_binding;
    deallocate v_binding;
end;
GO

-- The array of what the iterations of a FOREACH exported under one name, in iteration order.
create or alter procedure wf.wf_foreach_collected
    @node_execution_id bigint,
    @name nvarchar(200),
    @value_json nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_total int;
    declare @v_count int;
    declare @v_values nvarchar(max);
    declare @v_no int = 0;
    declare @v_value table (iteration_no int not null primary key, value_json nvarchar(max) null);

    select @v_total = c.total_count from wf.join_counter as c
     where c.node_execution_id = @node_execution_id;
    set @v_total = coalesce(@v_total, 0);
    insert into @v_value (iteration_no, value_json)
    select x.iteration_no, wf.wf_json_member(x.output_json, @name)
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.node_execution as x
        on x.workflow_instance_id = e.workflow_instance_id
       and x.parent_execution_id = e.node_execution_id and x.node_id = n.first_child_id
     where e.node_execution_id = @node_execution_id and x.iteration_no < @v_total;
    set @v_count = @@rowcount;
    -- Those that were never started are those after the last one.
    set @v_no = @v_count;
    while @v_no < @v_total
    begin
        insert into @v_value (iteration_no) values (@v_no);
        set @v_no = @v_no + 1;
    end;
    select @v_values = string_agg(cast(coalesce(v.value_json, N'null') as nvarchar(max)), N',')
                       within group (order by v.iteration_no)
      from @v_value as v;
    set @value_json = concat(N'[', @v_values, N']');
end;
GO

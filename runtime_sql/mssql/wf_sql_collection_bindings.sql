-- What a FOREACH runs over: the value of its collection, cut into items. Twin:
-- pg/wf_sql_collection_bindings.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Reads the collection once (S6.8) and starts the first iterations. The counter counts iterations;
-- items of those that start later are kept in wf.foreach_item, so that the array is never indexed
-- again. An empty array succeeds at once. With `reuse`, iterations that are known are skipped
-- (wf_foreach_bundles.sql).
create or alter procedure wf.wf_foreach_activate
as
begin
    set nocount, xact_abort on;
    declare @v_ordinal int;
    declare @v_id bigint;
    declare @v_instance_id bigint;
    declare @v_program nvarchar(max);
    declare @v_attributes nvarchar(max);
    declare @v_value nvarchar(max);
    declare @v_code int;
    declare @v_message nvarchar(max);
    declare v_entry cursor local fast_forward for
        select a.ordinal, a.node_execution_id, a.workflow_instance_id, n.attributes_json,
               coalesce(b.program_json, N'[["lit",null]]')
          from #entry as a
          join wf.node_execution as e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node as n on n.node_id = e.node_id
          left join wf.collection_binding as b on b.node_id = n.node_id
         order by a.ordinal;

    open v_entry;
    fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id, @v_attributes, @v_program;
    while @@fetch_status = 0
    begin
        exec wf.wf_eval_expression @program = @v_program, @execution_id = @v_id,
            @value_json = @v_value output, @error_code = @v_code output,
            @error_message = @v_message output;
        if @v_code is null and wf.wf_json_type(@v_value) = N'null'
        begin
            set @v_code = 10001;
            set @v_message = N'the collection is null';
        end
        else if @v_code is null and wf.wf_json_type(@v_value) <> N'array'
        begin
            set @v_code = 10009;
            set @v_message = concat(N'the collection is an array or nothing else, not ',
                wf.wf_type_word(@v_value));
        end;
        if @v_code is not null
            exec wf.wf_fail_step @ordinal = @v_ordinal, @node_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id, @engine_error_code = @v_code,
                @text = @v_message;
        else
        begin
            if json_value(@v_attributes, N'$.batch') is not null
                set @v_value = wf.wf_batches(@v_value,
                    cast(json_value(@v_attributes, N'$.batch') as int));
            exec wf.wf_foreach_begin @ordinal = @v_ordinal, @node_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id, @items_json = @v_value;
        end;
        fetch next from v_entry into @v_ordinal, @v_id, @v_instance_id, @v_attributes, @v_program;
    end;
    close v_entry;
    deallocate v_entry;
end;
GO

-- Makes the counter of a FOREACH over these items and starts the first iterations.
create or alter procedure wf.wf_foreach_begin
    @ordinal int,
    @node_execution_id bigint,
    @workflow_instance_id bigint,
    @items_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_total int;
    declare @v_width int;
    declare @v_body_id bigint;
    declare @v_reuses bit;
    declare @v_item table (
        iteration_no int not null primary key,
        item_json nvarchar(max) not null
    );

    insert into @v_item (iteration_no, item_json)
    select cast(i.[key] as int), wf.wf_json_text(i.value, i.type) from openjson(@items_json) as i;
    select @v_total = count(*) from @v_item;
    if @v_total = 0
    begin
        exec wf.wf_succeed_step @ordinal = @ordinal, @node_execution_id = @node_execution_id,
            @workflow_instance_id = @workflow_instance_id;
        return;
    end;
    select @v_body_id = n.first_child_id,
           @v_width = case when n.branch_limit > 0 and n.branch_limit < @v_total
                           then n.branch_limit else @v_total end,
           @v_reuses = wf.wf_has_attribute(n.attributes_json, N'reuse')
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @node_execution_id;
    insert into wf.join_counter (node_execution_id, workflow_instance_id, join_parent_id,
                                 total_count, next_index, open_count, allowed_failures,
                                 keeps_going, skips_known)
    select e.node_execution_id, e.workflow_instance_id, e.join_parent_id, @v_total, @v_width,
           @v_width,
           wf.wf_tolerated(json_query(n.attributes_json, N'$.tolerate'), @v_total),
           wf.wf_has_attribute(n.attributes_json, N'keep_going'), @v_reuses
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @node_execution_id;
    if @v_reuses = 1
    begin
        exec wf.wf_foreach_start_unknown @ordinal = @ordinal,
            @node_execution_id = @node_execution_id, @items_json = @items_json, @width = @v_width;
        return;
    end;
    insert into wf.foreach_item (node_execution_id, iteration_no, item_json)
    select @node_execution_id, i.iteration_no, i.item_json
      from @v_item as i
     where i.iteration_no >= @v_width;
    insert into #step (ordinal, rank, step, node_execution_id, workflow_instance_id, node_id,
                       iteration_no, item_json)
    select @ordinal, i.iteration_no, N'START', @node_execution_id, @workflow_instance_id, @v_body_id,
           i.iteration_no, i.item_json
      from @v_item as i
     where i.iteration_no < @v_width;
end;
GO

-- An array cut into lists of @size items, the last one perhaps shorter (R31).
create or alter function wf.wf_batches(@items_json nvarchar(max), @size int) returns nvarchar(max)
as
begin
    declare @v_batches nvarchar(max);

    select @v_batches = string_agg(b.items, N',') within group (order by b.batch_no)
      from (select i.position / @size as batch_no,
                   concat(N'[', string_agg(i.item_json, N',') within group (order by i.position),
                          N']') as items
              from (select cast(x.[key] as int) as position,
                           cast(wf.wf_json_text(x.value, x.type) as nvarchar(max)) as item_json
                      from openjson(@items_json) as x) as i
             group by i.position / @size) as b;
    return concat(N'[', @v_batches, N']');
end;
GO

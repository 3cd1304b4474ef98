-- What a FOREACH runs over: the value of its collection, cut into items. Twin:
-- mssql/wf_sql_collection_bindings.sql

-- Reads the collection once (S6.8) and starts the first iterations. The counter counts iterations;
-- items of those that start later are kept in wf.foreach_item, so that the array is never indexed
-- again. An empty array succeeds at once. With `reuse`, iterations that are known are skipped
-- (wf_foreach_bundles.sql).
create or replace function wf.wf_foreach_activate(p_entries wf.agenda_entry[], p_now timestamptz)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_total integer;
    v_width integer;
begin
    for v_row in
        select a.*, e.join_parent_id, n.first_child_id, n.branch_limit, n.attributes_json,
               c.value_json, c.error_code, c.error_message
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
          left join wf.collection_binding b on b.node_id = n.node_id
         cross join lateral wf.wf_eval_expression(coalesce(b.program_json, '[["lit",null]]'),
                                                  a.node_execution_id) c
         order by a.ordinal
    loop
        if v_row.error_code is null and jsonb_typeof(v_row.value_json) = 'null' then
            v_row.error_code := 10001;
            v_row.error_message := 'the collection is null';
        elsif v_row.error_code is null and jsonb_typeof(v_row.value_json) <> 'array' then
            v_row.error_code := 10009;
            v_row.error_message := 'the collection is an array or nothing else, not '
                || wf.wf_type_word(v_row.value_json);
        end if;
        if v_row.error_code is not null then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, v_row.error_code, v_row.error_message);
            continue;
        end if;
        if v_row.attributes_json ? 'batch' then
            v_row.value_json := wf.wf_batches(v_row.value_json,
                                              (v_row.attributes_json ->> 'batch')::integer);
        end if;
        v_total := jsonb_array_length(v_row.value_json);
        if v_total = 0 then
            return next wf.wf_succeed_step(v_row.ordinal, v_row.node_execution_id,
                                           v_row.workflow_instance_id);
            continue;
        end if;
        v_width := least(v_total, coalesce(nullif(v_row.branch_limit, 0), v_total));
        insert into wf.join_counter (node_execution_id, workflow_instance_id, join_parent_id,
                                     total_count, next_index, open_count, allowed_failures,
                                     keeps_going, skips_known)
        values (v_row.node_execution_id, v_row.workflow_instance_id, v_row.join_parent_id,
                v_total, v_width, v_width,
                wf.wf_tolerated(v_row.attributes_json -> 'tolerate', v_total),
                v_row.attributes_json ? 'keep_going', v_row.attributes_json ? 'reuse');
        if v_row.attributes_json ? 'reuse' then
            return query
            select s.* from wf.wf_foreach_start_unknown(
                v_row.ordinal, v_row.node_execution_id, v_row.value_json, v_width, p_now) s;
            continue;
        end if;
        insert into wf.foreach_item (node_execution_id, iteration_no, item_json)
        select v_row.node_execution_id, i.position - 1, i.value
          from jsonb_array_elements(v_row.value_json) with ordinality i(value, position)
         where i.position > v_width;
        return query
        select v_row.ordinal, (i.position - 1)::integer, 'START', v_row.node_execution_id,
               v_row.workflow_instance_id, v_row.first_child_id, (i.position - 1)::integer, i.value,
               null::integer, null::integer, null::text, null::bigint
          from jsonb_array_elements(v_row.value_json) with ordinality i(value, position)
         where i.position <= v_width;
    end loop;
end
$$;

-- An array cut into lists of p_size items, the last one perhaps shorter (R31).
create or replace function wf.wf_batches(p_items jsonb, p_size integer) returns jsonb
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select coalesce(jsonb_agg(b.items order by b.batch_no), '[]')
      from (select (i.position - 1) / p_size as batch_no,
                   jsonb_agg(i.value order by i.position) as items
              from jsonb_array_elements(p_items) with ordinality i(value, position)
             group by 1) b
$$;

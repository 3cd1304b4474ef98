-- FOREACH: what its iterations export, and how many may fail. Twin: mssql/08_foreach_support.sql

-- How many iterations may fail: `tolerate N`, or the largest number that is at most P % (R31).
create or replace function wf.wf_tolerated(p_tolerate jsonb, p_total integer) returns integer
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select coalesce((p_tolerate ->> 'count')::integer,
                    floor((p_tolerate ->> 'percent')::numeric * p_total / 100)::integer, 0)
$$;

-- Looks at the SUCCEED steps of a level. An iteration of a FOREACH that collects gets what it
-- exports as its output, or fails if that cannot be evaluated; a FOREACH that succeeds writes the
-- arrays of its iterations' exports, in iteration order, null where there is none (S2.5, R31). With
-- `reuse`, what the iterations export is kept.
create or replace function wf.wf_foreach_collect(p_steps wf.agenda_step[], p_now timestamptz)
returns wf.agenda_step[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_steps    wf.agenda_step[] := p_steps;
    v_row      record;
    v_export   record;
    v_problem  record;
    v_kept     bigint[] := '{}';
    v_exported jsonb[] := '{}';
begin
    for v_row in
        select s.position, s.node_execution_id, s.workflow_instance_id, s.ordinal,
               n.collect_node_id, n.collect_node_id = n.node_id as is_foreach,
               f.attributes_json ? 'reuse' as reuses
          from unnest(p_steps) with ordinality
               s(ordinal, seq, step, node_execution_id, workflow_instance_id, child_id, iteration_no,
                 item_json, result_code, engine_error_code, message, error_execution_id, position)
          join wf.node_execution e on e.node_execution_id = s.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
          join wf.workflow_node f on f.node_id = n.collect_node_id
         where s.step = 'SUCCEED' and n.collect_node_id is not null
    loop
        if v_row.is_foreach then
            select * into v_problem from wf.wf_foreach_write_collected(v_row.node_execution_id);
            if v_problem.error_code is not null then
                v_steps[v_row.position] := wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                    v_row.workflow_instance_id, v_problem.error_code, v_problem.error_message);
            end if;
            continue;
        end if;
        select * into v_export
          from wf.wf_foreach_export(v_row.node_execution_id, v_row.collect_node_id);
        if v_export.error_code is null then
            v_steps[v_row.position].item_json := nullif(v_export.value_json, '{}');
            if v_row.reuses then
                v_kept := v_kept || v_row.node_execution_id;
                v_exported := v_exported || v_export.value_json;
            end if;
        else
            v_steps[v_row.position] := wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, v_export.error_code, v_export.error_message);
        end if;
    end loop;
    if cardinality(v_kept) > 0 then
        perform wf.wf_foreach_keep_bundles(v_kept, v_exported, p_now);
    end if;
    return v_steps;
end
$$;

-- What one iteration exports: the object {collect name: value}, evaluated in its own scope.
create or replace function wf.wf_foreach_export(
    p_node_execution_id bigint, p_foreach_node_id bigint,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_binding record;
    v_value   record;
begin
    value_json := '{}';
    for v_binding in
        select b.name, b.program_json
          from wf.variable_output_binding b
         where b.node_id = p_foreach_node_id and b.binding_kind = 'collect'
         order by b.binding_order
    loop
        select * into v_value from wf.wf_eval_expression(v_binding.program_json, p_node_execution_id);
        if v_value.error_code is not null then
            value_json := null;
            error_code := v_value.error_code;
            error_message := v_value.error_message;
            return;
        end if;
        value_json := value_json || jsonb_build_object(v_binding.name, v_value.value_json);
    end loop;
end
$$;

-- Writes the variables of a FOREACH's collects. Iterations that were never started contribute
-- null, as do those that exported nothing. An array that cannot be stored (10018) or does not fit the
-- variable's type (10015) ends it and is answered.
create or replace function wf.wf_foreach_write_collected(
    p_node_execution_id bigint, out error_code integer, out error_message text
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_binding record;
    v_values  jsonb;
begin
    for v_binding in
        select b.name, b.owner_key, b.workflow_version_id, b.type_id, e.workflow_instance_id, e.scope_id, n.first_child_id,
               coalesce(c.total_count, 0) as total_count
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
          join wf.variable_output_binding b on b.node_id = e.node_id
          left join wf.join_counter c on c.node_execution_id = e.node_execution_id
         where e.node_execution_id = p_node_execution_id and b.binding_kind = 'collect'
         order by b.binding_order
    loop
        select coalesce(jsonb_agg(coalesce(x.output_json -> v_binding.name, 'null')
                                  order by g.iteration_no), '[]')
          into v_values
          from generate_series(0, v_binding.total_count - 1) g(iteration_no)
          left join wf.node_execution x
            on x.workflow_instance_id = v_binding.workflow_instance_id
           and x.parent_execution_id = p_node_execution_id
           and x.node_id = v_binding.first_child_id
           and x.iteration_no = g.iteration_no;
        error_message := wf.wf_storable_problem(v_values);
        if error_message is not null then
            error_code := 10018;
            return;
        end if;
        select c.error_code, c.error_message into error_code, error_message
          from wf.wf_check_variable(v_binding.workflow_version_id, v_binding.type_id,
                                    v_binding.name, v_values) c;
        if error_code is not null then
            return;
        end if;
        perform wf.wf_set_scope_variable(v_binding.scope_id, v_binding.owner_key, v_binding.name,
                                         v_values);
    end loop;
end
$$;

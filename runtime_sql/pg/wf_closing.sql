-- Failures, cancellation, and the end of an instance. Twin: mssql/wf_closing.sql

-- Closing -----------------------------------------------------------------------------------------

-- Cancels every open execution below one, level by level: READY and leased tasks go, waits and
-- counters go, the rows become CANCELLED. The caller holds the instance's gate exclusive, so no
-- other call can complete them meanwhile; a claim that just took such a task has its row deleted
-- under it and hears CANCEL at the next heartbeat.
create or replace function wf.wf_cancel_below(
    p_workflow_instance_id bigint, p_node_execution_id bigint, p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_frontier bigint[] := array[p_node_execution_id];
    v_open     bigint[] := '{}';
begin
    loop
        select array_agg(c.node_execution_id order by c.node_execution_id) into v_frontier
          from wf.node_execution c
         where c.workflow_instance_id = p_workflow_instance_id
           and c.parent_execution_id = any (v_frontier)
           and c.status in ('READY', 'RUNNING');
        exit when v_frontier is null;
        v_open := v_open || v_frontier;
    end loop;
    if cardinality(v_open) = 0 then
        return;
    end if;
    with gone as (
        delete from wf.task t where t.node_execution_id = any (v_open) returning t.*
    )
    update wf.node_execution e
       set status = 'CANCELLED', ended_at = p_now,
           input_json = g.input_json, worker_id = g.worker_id, started_at = g.claimed_at,
           attempt_no = g.attempt_no - case when g.claimed_at is null then 1 else 0 end,
           delivery_count = g.delivery_count, last_token = nullif(g.lease_token, 0)
      from gone g
     where e.node_execution_id = g.node_execution_id;
    update wf.node_execution e
       set status = 'CANCELLED', ended_at = p_now
     where e.node_execution_id = any (v_open) and e.status in ('READY', 'RUNNING');
    delete from wf.event_wait w where w.node_execution_id = any (v_open);
    delete from wf.join_counter c where c.node_execution_id = any (v_open);
    delete from wf.loop_state l where l.node_execution_id = any (v_open);
    delete from wf.foreach_item f where f.node_execution_id = any (v_open);
end
$$;

-- One failed execution: what is open beside it is cancelled and its parent fails by it (S1.5), or
-- the instance does. Needs the exclusive gate.
create or replace function wf.wf_close_failed(p_entry wf.agenda_entry, p_now timestamptz)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_failed record;
begin
    select e.parent_execution_id, e.result_code, e.engine_error_code, e.engine_error_message,
           e.error_execution_id, n.parent_type
      into v_failed
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_entry.node_execution_id;
    if v_failed.parent_execution_id = 0 then
        perform wf.wf_end_instance(p_entry.workflow_instance_id, 'FAILED', p_entry.node_execution_id,
                                   p_now);
        return;
    end if;
    if v_failed.parent_type in ('PARALLEL', 'FOREACH') then
        perform wf.wf_cancel_below(p_entry.workflow_instance_id, v_failed.parent_execution_id, p_now);
    end if;
    return next row(p_entry.ordinal, 0, 'FAIL', v_failed.parent_execution_id,
                    p_entry.workflow_instance_id, null, null, null, v_failed.result_code,
                    v_failed.engine_error_code, v_failed.engine_error_message,
                    v_failed.error_execution_id)::wf.agenda_step;
end
$$;

-- Ends an instance whose root has ended; its error is the root's.
create or replace function wf.wf_end_instance(
    p_workflow_instance_id bigint, p_status text, p_root_execution_id bigint, p_now timestamptz
) returns void
language sql set search_path = pg_catalog, pg_temp as $$
    update wf.workflow_instance i
       set status = p_status, ended_at = p_now,
           error_code = case when p_status = 'FAILED' then e.result_code end,
           engine_error_code = case when p_status = 'FAILED' then e.engine_error_code end,
           engine_error_message = case when p_status = 'FAILED' then e.engine_error_message end,
           error_execution_id = case when p_status = 'FAILED' then e.error_execution_id end
      from wf.node_execution e
     where i.workflow_instance_id = p_workflow_instance_id
       and e.node_execution_id = p_root_execution_id
$$;

-- The root has succeeded: evaluates `output` in the root's scope and ends the instance. A name that
-- only a `set` would have brought into being, and none has, gives null; any other error fails the
-- instance at the root (R16).
create or replace function wf.wf_finish_instance(
    p_workflow_instance_id bigint, p_root_execution_id bigint, p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_output record;
    v_value  record;
    v_result jsonb;
begin
    for v_output in
        select o.value ->> 'name' as name, o.value -> 'program' as program_json
          from wf.workflow_instance i
          join wf.workflow_version v on v.workflow_version_id = i.workflow_version_id
         cross join lateral jsonb_array_elements(v.outputs_json) with ordinality o(value, position)
         where i.workflow_instance_id = p_workflow_instance_id
         order by o.position
    loop
        select * into v_value
          from wf.wf_eval_expression(v_output.program_json, p_root_execution_id,
                                     p_unset_is_null => true);
        if v_value.error_code is not null then
            update wf.node_execution e
               set status = 'FAILED', result_code = null, error_execution_id = p_root_execution_id,
                   engine_error_code = v_value.error_code,
                   engine_error_message = wf.wf_execution_path(p_root_execution_id) || ': '
                       || v_value.error_message
             where e.node_execution_id = p_root_execution_id;
            perform wf.wf_end_instance(p_workflow_instance_id, 'FAILED', p_root_execution_id, p_now);
            return;
        end if;
        v_result := coalesce(v_result, '{}')
            || jsonb_build_object(v_output.name, v_value.value_json);
    end loop;
    if v_result is not null then
        update wf.execution_context x set output_json = v_result
         where x.workflow_instance_id = p_workflow_instance_id;
    end if;
    perform wf.wf_end_instance(p_workflow_instance_id, 'SUCCEEDED', p_root_execution_id, p_now);
end
$$;


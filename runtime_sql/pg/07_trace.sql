-- Paths, the trace document (semantics §11). Twin: mssql/07_trace.sql
--
-- Everything here reads; nothing locks. Paths are worked out, never stored (R9): an execution's
-- path is its parent's and its node's key, a loop body's is its loop's with the iteration, another
-- generated node's is its parent's.

-- The path of an execution. Views call it with the rights of who reads them.
create or replace function wf.wf_execution_path(p_execution_id bigint) returns text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return (select p.path from wf.wf_execution_places(array[p_execution_id]) p);
end
$$;

-- The paths of executions, and the number of the iteration that each is in: from 1, that of its
-- nearest loop; 0 outside of loops. All climb at once, one level of the tree after the other.
create or replace function wf.wf_execution_places(p_execution_ids bigint[])
returns table (node_execution_id bigint, path text, iteration_no integer)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    if cardinality(p_execution_ids) = 0 then
        return;
    end if;
    return query
    with recursive climb as (
        select u.id, u.id as next_id, null::text as path, '' as iteration, 0 as iteration_no
          from unnest(p_execution_ids) u(id)
        union all
        select c.id, e.parent_execution_id,
               case when e.is_loop_body or e.is_generated then c.path
                    else concat_ws('/', e.node_key || c.iteration, c.path) end,
               case when e.is_loop_body then '[' || e.iteration_no::text || ']'
                    when e.is_generated then c.iteration
                    else '' end,
               case when c.iteration_no = 0 and e.is_loop_body then e.iteration_no + 1
                    else c.iteration_no end
          from climb c
         cross join lateral (
            select x.parent_execution_id, x.iteration_no, n.node_key, n.is_generated,
                   n.is_loop_body
              from wf.node_execution x
              join wf.workflow_node n on n.node_id = x.node_id
             where x.node_execution_id = c.next_id
            offset 0) e
         where c.next_id <> 0
    )
    select c.id, c.path, c.iteration_no from climb c where c.next_id = 0;
end
$$;

-- The instance's own id inside data as "$instance_id" (R27): a string that is the id and nothing
-- else. In the text of a jsonb value such a string is the digits between two quotes, of which the
-- first is not escaped; a key is followed by a colon and stays.
create or replace function wf.wf_mask_instance_id(p_value jsonb, p_instance_id bigint)
returns jsonb
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case when strpos(p_value::text, '"' || p_instance_id || '"') = 0 then p_value
                else regexp_replace(p_value::text, '(?<!\\)"' || p_instance_id || '"(?!:)',
                                    '"$instance_id"', 'g')::jsonb end
$$;

-- A value in which what an action calls sensitive is "***". p_pointers: JSON pointers that begin with
-- /input or /output; p_part says which of the two p_value is. What a pointer does not meet stays, and
-- so does a null that stands for no value at all.
create or replace function wf.wf_mask_sensitive(p_value jsonb, p_pointers jsonb, p_part text)
returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v_value   jsonb := p_value;
    v_pointer text;
    v_path    text[];
begin
    if p_value is null or p_pointers is null or p_value = 'null' then
        return p_value;
    end if;
    for v_pointer in select e.value from jsonb_array_elements_text(p_pointers) e(value) loop
        continue when split_part(v_pointer, '/', 2) <> p_part;
        v_path := array(select replace(replace(u.step, '~1', '/'), '~0', '~')
                          from unnest((string_to_array(v_pointer, '/'))[3:])
                               with ordinality u(step, position)
                         order by u.position);
        if cardinality(v_path) = 0 then
            return '"***"';
        end if;
        if v_value #> v_path is not null then
            v_value := jsonb_set(v_value, v_path, '"***"', false);
        end if;
    end loop;
    return v_value;
end
$$;

-- An error as the trace writes it; null when there is none. p_execution_id: where it arose. Engine
-- errors hold no data, so only the message of a `fail` or an action can be the instance's id.
create or replace function wf.wf_trace_error(
    p_instance_id bigint, p_code integer, p_engine_code integer, p_message text,
    p_execution_id bigint
) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return jsonb_build_object(
        'code', p_code,
        'engine_code', p_engine_code,
        'message', case when p_engine_code is null
                        then wf.wf_mask_instance_id(to_jsonb(coalesce(p_message, '')),
                                                    p_instance_id)
                        else to_jsonb(p_message) end,
        'node', (select n.node_key
                   from wf.node_execution e
                   join wf.workflow_node n on n.node_id = e.node_id
                  where e.node_execution_id = p_execution_id),
        'path', wf.wf_execution_path(p_execution_id));
end
$$;

-- The variables of a scope that have a value, as an object.
create or replace function wf.wf_scope_variables(p_scope_id bigint) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return coalesce((select jsonb_object_agg(v.name, v.value_json)
                       from wf.scope_variable v
                      where v.scope_id = p_scope_id), '{}');
end
$$;

-- The rows of a trace: every execution but generated ones that are no loop body, in pre-order by
-- child order, then iteration. Sensitive parts of inputs and outputs are masked, whoever asks.
create or replace function wf.wf_trace_nodes(p_workflow_instance_id bigint) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return coalesce((
        with recursive tree as (
            select e.node_execution_id, e.node_id, n.node_key as path, n.node_type,
                   n.is_generated and not n.is_loop_body as is_hidden,
                   array[]::integer[] as place
              from wf.node_execution e
              join wf.workflow_node n on n.node_id = e.node_id
             where e.workflow_instance_id = p_workflow_instance_id
               and e.parent_execution_id = 0
            union all
            select e.node_execution_id, e.node_id,
                   t.path || case when n.is_loop_body then '[' || e.iteration_no::text || ']'
                                  when n.is_generated then ''
                                  else '/' || n.node_key end,
                   n.node_type, n.is_generated and not n.is_loop_body,
                   t.place || n.child_order || e.iteration_no
              from tree t
              join wf.node_execution e
                on e.workflow_instance_id = p_workflow_instance_id
               and e.parent_execution_id = t.node_execution_id
              join wf.workflow_node n on n.node_id = e.node_id
        )
        select jsonb_agg(
                   jsonb_build_object(
                       'path', t.path,
                       'type', t.node_type,
                       'status', case when e.status in ('READY', 'RUNNING')
                                           and t.node_type = 'ACTION'
                                      then case when k.worker_id is null then 'READY'
                                                else 'RUNNING' end
                                      else e.status end,
                       'attempts', case when t.node_type = 'ACTION'
                                        then coalesce(k.attempt_no, e.attempt_no) else 1 end,
                       'result_code', e.result_code,
                       'input', case when t.node_type = 'ACTION' then wf.wf_mask_instance_id(
                           wf.wf_mask_sensitive(coalesce(k.input_json, e.input_json),
                                                r.sensitive_json, 'input'),
                           p_workflow_instance_id) end,
                       'output', wf.wf_mask_instance_id(
                           wf.wf_mask_sensitive(e.output_json, r.sensitive_json, 'output'),
                           p_workflow_instance_id),
                       'error', case when e.status = 'FAILED' then wf.wf_trace_error(
                           p_workflow_instance_id, e.result_code, e.engine_error_code,
                           e.engine_error_message,
                           coalesce(e.error_execution_id, e.node_execution_id)) end)
                   || case when s.scope_id is null or t.place = '{}' then '{}'::jsonb
                           else jsonb_build_object('variables', wf.wf_mask_instance_id(
                               wf.wf_scope_variables(s.scope_id), p_workflow_instance_id)) end
                   order by t.place)
          from tree t
          join wf.node_execution e on e.node_execution_id = t.node_execution_id
          left join wf.task k on k.node_execution_id = t.node_execution_id
          left join wf.scope s on s.scope_id = t.node_execution_id
          left join wf.workflow_node n on n.node_id = t.node_id
          left join wf.workflow_action_revision r
            on r.action_name = n.action_name and r.revision = n.action_revision
         where not t.is_hidden), '[]');
end
$$;

-- The trace document, which two engines agree on as JSON; null for an unknown instance.
create or replace function wf.wf_trace_instance(p_workflow_instance_id bigint) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return (
        select jsonb_build_object(
                   'trace_format', 1,
                   'workflow', d.name,
                   'status', i.status,
                   'error', case when i.status = 'FAILED' then wf.wf_trace_error(
                       i.workflow_instance_id, i.error_code, i.engine_error_code,
                       i.engine_error_message,
                       coalesce(i.error_execution_id, i.root_execution_id)) end,
                   'output', wf.wf_mask_instance_id(c.output_json, i.workflow_instance_id),
                   'variables', wf.wf_mask_instance_id(
                       wf.wf_scope_variables(i.root_execution_id), i.workflow_instance_id),
                   'nodes', wf.wf_trace_nodes(i.workflow_instance_id))
          from wf.workflow_instance i
          join wf.workflow_def d on d.workflow_def_id = i.workflow_def_id
          left join wf.execution_context c on c.workflow_instance_id = i.workflow_instance_id
         where i.workflow_instance_id = p_workflow_instance_id);
end
$$;

-- One instance with its output; no row for an unknown id.
create or replace function wf.wf_repo_get_workflow_instance(p_workflow_instance_id bigint)
returns table (
    workflow_instance_id bigint, workflow_name text, version_no integer, instance_status text,
    created_at timestamptz, started_at timestamptz, ended_at timestamptz, business_key text,
    output_json jsonb, error_code integer, engine_error_code integer, error_message text
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    select v.workflow_instance_id, v.workflow_name, v.version_no, v.status, v.created_at,
           v.started_at, v.ended_at, v.business_key, c.output_json, v.error_code,
           v.engine_error_code, v.engine_error_message
      from wf.v_instance v
      left join wf.execution_context c on c.workflow_instance_id = v.workflow_instance_id
     where v.workflow_instance_id = p_workflow_instance_id;
end
$$;

-- The instances that are RUNNING or PAUSED, oldest first.
create or replace function wf.wf_repo_get_running_instances()
returns table (
    workflow_instance_id bigint, workflow_name text, version_no integer, instance_status text,
    created_at timestamptz, started_at timestamptz, ended_at timestamptz, business_key text,
    output_json jsonb, error_code integer, engine_error_code integer, error_message text
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    select v.workflow_instance_id, v.workflow_name, v.version_no, v.status, v.created_at,
           v.started_at, v.ended_at, v.business_key, null::jsonb, v.error_code,
           v.engine_error_code, v.engine_error_message
      from wf.v_instance v
     where v.status in ('RUNNING', 'PAUSED') and v.ended_at is null
     order by v.workflow_instance_id;
end
$$;

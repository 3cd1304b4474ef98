-- Values that a program around the workflows keeps beside an instance, and what a gateway must know of
-- an ACTION before it submits. Twin: mssql/wf_instance_extension.sql
--
-- The engine reads none of these values. They go when the instance is purged.

-- Writes one value beside an instance; a second time replaces it. Locks: the instance's row shared, so
-- that it is not purged meanwhile. Errors: 20002 unknown instance; 20004 the name is out of bounds or
-- there is no value; 20005 the value has more than 16 MB.
create or replace function wf.wf_repo_upsert_instance_extension(
    p_workflow_instance_id bigint, p_name text, p_value_json jsonb
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform wf.wf_check_key('name', p_name);
    if p_value_json is null then
        perform wf.wf_raise(20004, 'value must be given');
    end if;
    if pg_column_size(p_value_json) > 16777216 then
        perform wf.wf_raise(20005, 'the value has more than 16 MB');
    end if;
    perform 1 from wf.workflow_instance i
      where i.workflow_instance_id = p_workflow_instance_id for key share;
    if not found then
        perform wf.wf_raise(20002, format('there is no workflow instance %s',
                                          p_workflow_instance_id));
    end if;
    insert into wf.instance_extension (workflow_instance_id, name, value_json)
    values (p_workflow_instance_id, p_name, p_value_json)
    on conflict on constraint pk_instance_extension do update set value_json = excluded.value_json;
end
$$;

-- The values beside an instance by name: one, or all. Reads only. No error for what is not there.
create or replace function wf.wf_repo_get_instance_extension(
    p_workflow_instance_id bigint, p_name text default null
) returns table (name text, value_json jsonb)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
    select x.name, x.value_json
      from wf.instance_extension x
     where x.workflow_instance_id = p_workflow_instance_id
       and x.name = coalesce(p_name, x.name)
     order by x.name collate "C";
end
$$;

-- Where an ACTION stands and for whom: what a gateway checks a result against and writes into its log.
-- Of one that has ended the lease columns are null, input, attempt and worker are the last ones. Reads
-- only. No row for an unknown execution or one that is no ACTION.
create or replace function wf.wf_repo_get_action_submit_context(p_node_execution_id bigint)
returns table (
    node_execution_id bigint, workflow_instance_id bigint, workflow_name text,
    instance_status text, node_key text, path text, action_name text, status text,
    attempt_no integer, worker_id text, lease_token bigint, lease_until_utc timestamptz,
    input_json jsonb, output_schema_json jsonb, execution_scope_id bigint,
    result_codes_json jsonb, sensitive_json jsonb
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
    select e.node_execution_id, e.workflow_instance_id, d.name, i.status, n.node_key,
           wf.wf_execution_path(e.node_execution_id), n.action_name,
           case when t.worker_id is not null then 'RUNNING' else e.status end,
           coalesce(t.attempt_no, e.attempt_no), coalesce(t.worker_id, e.worker_id),
           case when t.worker_id is not null then t.lease_token end, t.lease_until,
           coalesce(t.input_json, e.input_json), r.output_schema_json, i.execution_scope_id,
           r.result_codes_json, r.sensitive_json
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
      join wf.workflow_instance i on i.workflow_instance_id = e.workflow_instance_id
      join wf.workflow_def d on d.workflow_def_id = i.workflow_def_id
      left join wf.task t on t.node_execution_id = e.node_execution_id
      left join wf.workflow_action_revision r
        on r.action_name = n.action_name and r.revision = n.action_revision
     where e.node_execution_id = p_node_execution_id and n.node_type = 'ACTION';
end
$$;

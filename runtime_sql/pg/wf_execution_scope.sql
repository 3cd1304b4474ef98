-- Execution scopes: named sets of parameters under which instances run.
-- Twin: mssql/wf_execution_scope.sql
--
-- A scope is its name and the hash of its parameters; a row never changes, so what an instance ran
-- with is known for ever. Its parameters become variables of the instance when it starts, with the
-- lowest rank: an input's default wins over them, and the context wins over both
-- (06_scopes_and_types.sql). What each ACTION produced under a scope is written down beside it.

-- Puts a CREATED instance under a scope, which is made if it is new; once. Locks: the instance's gate
-- exclusive. Errors: 20002 unknown instance; 20003 it has started, ended or has a scope; 20004 the
-- name is out of bounds or the parameters are no object; 20005 they have more than 16 MB.
create or replace function wf.wf_apply_execution_scope(
    p_workflow_instance_id bigint, p_name text, p_parameters_json jsonb
) returns table (execution_scope_id bigint, content_hash text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_status   text := wf.wf_lock_instance(p_workflow_instance_id);
    v_scope_id bigint;
    v_hash     text;
begin
    perform wf.wf_check_key('name', p_name);
    perform wf.wf_check_object('parameters', p_parameters_json);
    perform wf.wf_check_key('the name of a parameter', k)
       from jsonb_object_keys(p_parameters_json) k;
    select i.execution_scope_id into v_scope_id
      from wf.workflow_instance i where i.workflow_instance_id = p_workflow_instance_id;
    if v_status <> 'CREATED' or v_scope_id is not null then
        perform wf.wf_raise(20003, format('instance %s %s', p_workflow_instance_id,
            case when v_status <> 'CREATED' then 'is ' || lower(v_status) || ', not created'
                 else 'has an execution scope' end));
    end if;
    v_hash := wf.wf_json_sha256(p_parameters_json);
    insert into wf.execution_scope (name, content_hash, parameters_json, created_at)
    values (p_name, v_hash, p_parameters_json, wf.wf_now())
    on conflict on constraint uq_execution_scope do nothing;
    select s.execution_scope_id into v_scope_id
      from wf.execution_scope s where s.name = p_name and s.content_hash = v_hash;
    update wf.workflow_instance i set execution_scope_id = v_scope_id
     where i.workflow_instance_id = p_workflow_instance_id;
    return query select v_scope_id, v_hash;
end
$$;

-- Refuses what is no JSON object (20004) or has more than 16 MB (20005).
create or replace function wf.wf_check_object(p_what text, p_value jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if p_value is null or jsonb_typeof(p_value) <> 'object' then
        perform wf.wf_raise(20004, format('the %s must be a JSON object', p_what));
    end if;
    if pg_column_size(p_value) > 16777216 then
        perform wf.wf_raise(20005, format('the %s have more than 16 MB', p_what));
    end if;
end
$$;

-- The parameters of the scope that an instance runs under; {} without one.
create or replace function wf.wf_scope_parameters(p_workflow_instance_id bigint) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce((select s.parameters_json
                       from wf.workflow_instance i
                       join wf.execution_scope s on s.execution_scope_id = i.execution_scope_id
                      where i.workflow_instance_id = p_workflow_instance_id), '{}')
$$;

-- The parameters that become variables of node p_owner_key: those that are no inputs, which take theirs
-- apart, and no variables with an initialiser, which wins over them.
create or replace function wf.wf_parameters_for_variables(
    p_version_id bigint, p_owner_key text, p_parameters jsonb
) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
    select p_parameters - array(
        select d.name from wf.node_scope_default d
         where d.workflow_version_id = p_version_id and d.owner_key = p_owner_key
           and (d.variable_kind = 'input' or d.program_json is not null))
$$;

-- Writes down what an ACTION produced under a scope; a second time replaces it. Locks: the entry's
-- row. Errors: 20002 unknown scope; 20004 an argument is missing or out of bounds.
create or replace function wf.wf_repo_upsert_execution_scope_action_entry(
    p_execution_scope_id bigint, p_node_execution_id bigint, p_action_name text,
    p_result_code integer, p_output_json jsonb default null
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform wf.wf_check_key('action_name', p_action_name);
    if p_node_execution_id is null or p_result_code is null then
        perform wf.wf_raise(20004, 'node_execution_id and result_code must be given');
    end if;
    if not exists (select 1 from wf.execution_scope s
                    where s.execution_scope_id = p_execution_scope_id) then
        perform wf.wf_raise(20002, format('there is no execution scope %s', p_execution_scope_id));
    end if;
    if pg_column_size(p_output_json) > 16777216 then
        perform wf.wf_raise(20005, 'the output has more than 16 MB');
    end if;
    insert into wf.execution_scope_action_entry as x (execution_scope_id, node_execution_id,
        action_name, result_code, output_json, recorded_at)
    values (p_execution_scope_id, p_node_execution_id, p_action_name, p_result_code, p_output_json,
            wf.wf_now())
    on conflict on constraint pk_execution_scope_action_entry do update
        set action_name = excluded.action_name, result_code = excluded.result_code,
            output_json = excluded.output_json, recorded_at = excluded.recorded_at;
end
$$;

-- Writes down what a submitted ACTION produced, when its instance runs under a scope. A gateway calls
-- it after a submit and may ignore its errors. Answers whether there was something to write down.
-- Locks: the entry's row; no gate, since it reads what has ended. Errors: 20002 unknown execution.
create or replace function wf.sync_execution_scope_action_entry_after_submit(
    p_node_execution_id bigint
) returns table (recorded boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    select i.execution_scope_id, n.action_name, e.result_code, e.output_json into v_row
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
      join wf.workflow_instance i on i.workflow_instance_id = e.workflow_instance_id
     where e.node_execution_id = p_node_execution_id;
    if not found then
        perform wf.wf_raise(20002, format('there is no execution %s', p_node_execution_id));
    end if;
    recorded := v_row.execution_scope_id is not null and v_row.action_name is not null
                and v_row.result_code is not null;
    if recorded then
        perform wf.wf_repo_upsert_execution_scope_action_entry(v_row.execution_scope_id,
            p_node_execution_id, v_row.action_name, v_row.result_code, v_row.output_json);
    end if;
    return next;
end
$$;

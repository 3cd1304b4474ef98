-- The worker of the test bed: answers tasks from a script. Twin: mssql/wf_test_bed_worker.sql
--
-- A script is {"results": {node key: [result, …]}, "events": [event, …], "expect": {…}}, all of it
-- optional. A result is {"code", "output", "message"}, 0, {} and none by default, or {"hang": true}
-- for one that never comes; the n-th visit of the node takes the n-th, the last one repeats. A node
-- that has none succeeds with 0 and {}.

-- What is wrong with the form of a script, for workflow version p_version_id; null: nothing.
create or replace function wf.wf_test_bed_script_problem(p_script jsonb, p_version_id bigint)
returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_key text;
begin
    if p_script is null or jsonb_typeof(p_script) <> 'object'
       or p_script - array['results', 'events', 'expect'] <> '{}'
       or jsonb_typeof(coalesce(p_script -> 'results', '{}')) <> 'object'
       or jsonb_typeof(coalesce(p_script -> 'events', '[]')) <> 'array'
       or jsonb_typeof(coalesce(p_script -> 'expect', '{}')) <> 'object'
       or coalesce(p_script -> 'expect', '{}') - array['status', 'output'] <> '{}' then
        return 'a script is {"results": {node: […]}, "events": […], "expect": {"status", "output"}}';
    end if;
    select r.key into v_key
      from jsonb_each(coalesce(p_script -> 'results', '{}')) r
     where case when jsonb_typeof(r.value) <> 'array' then true
                else jsonb_array_length(r.value) = 0 or exists (
                    select 1 from jsonb_array_elements(r.value) x
                     where jsonb_typeof(x.value) <> 'object'
                        or case when jsonb_typeof(x.value) = 'object'
                                then x.value - array['code', 'output', 'message', 'hang'] <> '{}' end
                        or jsonb_typeof(coalesce(x.value -> 'code', '0')) <> 'number') end
     order by r.key collate "C" limit 1;
    if found then
        return format('the results of %s must be a list of {"code", "output", "message", "hang"}',
                      left(v_key, 200));
    end if;
    select k.key into v_key
      from jsonb_object_keys(coalesce(p_script -> 'results', '{}')) k(key)
     where not exists (select 1 from wf.workflow_node n
                        where n.workflow_version_id = p_version_id and n.node_key = k.key
                          and n.node_type = 'ACTION')
     order by k.key collate "C" limit 1;
    if found then
        return format('the workflow has no action %s', left(v_key, 200));
    end if;
    return null;
end
$$;

-- Claims one task, best first, and submits what the script has for it. Answers whether there was one,
-- and logs it. Locks and errors: those of sp_worker_request_task and sp_worker_submit_result.
create or replace function wf.wf_test_bed_step(
    p_test_bed_run_id bigint, p_task_no integer, p_script jsonb, p_worker_id text, p_token text
) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_task   record;
    v_listed jsonb;
    v_visit  integer;
    v_result jsonb;
begin
    -- A day's lease: the clock of a run moves by itself, and no result is late.
    select * into v_task
      from wf.sp_worker_request_task(p_worker_id, p_token, null, 86400) t;
    if v_task.node_execution_id is null then
        return false;
    end if;
    v_listed := coalesce(p_script -> 'results' -> v_task.node_key, '[{}]');
    select count(*) into v_visit
      from wf.test_bed_task_log l
     where l.test_bed_run_id = p_test_bed_run_id and l.node_key = v_task.node_key;
    v_result := v_listed -> least(v_visit, jsonb_array_length(v_listed) - 1);
    insert into wf.test_bed_task_log (test_bed_run_id, task_no, node_execution_id, node_key, path,
        action_name, attempt_no, input_json, result_code, output_json, message, logged_at)
    values (p_test_bed_run_id, p_task_no, v_task.node_execution_id, v_task.node_key, v_task.path,
            v_task.action_name, v_task.attempt_no, v_task.input_json,
            case when v_result -> 'hang' = 'true' then null
                 else coalesce((v_result ->> 'code')::integer, 0) end,
            case when v_result -> 'hang' = 'true' then null
                 else coalesce(v_result -> 'output', '{}') end,
            v_result ->> 'message', wf.wf_now());
    if v_result -> 'hang' is distinct from 'true' then
        perform wf.sp_worker_submit_result(v_task.node_execution_id, p_worker_id, p_token,
            coalesce((v_result ->> 'code')::integer, 0), coalesce(v_result -> 'output', '{}'),
            v_task.lease_token, v_result ->> 'message');
    end if;
    return true;
end
$$;

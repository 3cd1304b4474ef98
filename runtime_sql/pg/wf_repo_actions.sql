-- The repository of actions: names with their live dispatch columns, revisions with what versions
-- freeze (R24). Twin: mssql/wf_repo_actions.sql

-- Adds an action or changes its live columns: the capability, and those that p_dispatch_json names
-- (fields of `dispatch` in wf.graph_field); the others stay. What is activated later goes by the new
-- values; each change of an action that was there is a row of wf.audit_log.
-- Answers one row. Locks: the action's row. Errors: 20004 a bad name, capability or column.
create or replace function wf.wf_repo_upsert_workflow_action(
    p_action_name text, p_capability text, p_dispatch_json jsonb default '{}'
) returns table (action_id bigint, action_name text, created boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_old     wf.workflow_action;
    v_new     wf.workflow_action;
    v_problem text;
begin
    perform wf.wf_check_key('action_name', p_action_name);
    perform wf.wf_check_key('capability', p_capability);
    v_problem := wf.wf_graph_row_problem(array['dispatch'], array[0], array[p_dispatch_json]);
    if p_dispatch_json is null or v_problem is not null then
        perform wf.wf_raise(20004, 'dispatch_json: ' || coalesce(substr(v_problem, 8), 'is null'));
    end if;
    if exists (select 1 from jsonb_each(p_dispatch_json) e
                where case when jsonb_typeof(e.value) = 'number' then e.value::numeric < 1 end) then
        perform wf.wf_raise(20004, 'dispatch_json: a number must be at least 1');
    end if;
    insert into wf.workflow_action as a (action_name, capability)
    values (p_action_name, p_capability)
    on conflict (action_name) do nothing
    returning a.* into v_new;
    created := found;
    select a.* into v_old
      from wf.workflow_action a where a.action_name = p_action_name for update;
    select d.* into v_new from jsonb_populate_record(v_old, p_dispatch_json) d;
    update wf.workflow_action a
       set capability = p_capability, max_per_worker = v_new.max_per_worker,
           exclusive_worker = v_new.exclusive_worker,
           affinity_key_field = v_new.affinity_key_field,
           prefer_previous_worker = v_new.prefer_previous_worker,
           prefer_continue_group = v_new.prefer_continue_group,
           require_previous_worker = v_new.require_previous_worker,
           max_concurrent = v_new.max_concurrent, rate_per_minute = v_new.rate_per_minute,
           max_deliveries = v_new.max_deliveries
     where a.action_id = v_old.action_id
    returning a.* into v_new;
    if not created and v_old is distinct from v_new then
        insert into wf.audit_log (at, what, detail_json)
        values (wf.wf_now(), 'update action', jsonb_build_object(
            'action', p_action_name, 'from', to_jsonb(v_old), 'to', to_jsonb(v_new)));
    end if;
    return query select v_new.action_id, v_new.action_name, created;
end
$$;

-- Adds a revision of an action: an object that may have description, version, input_schema,
-- output_schema, result_codes, idempotent, timeout_ms and sensitive. The revision is the hash of what
-- it says (the description apart), so the same schema again adds nothing.
-- Answers one row. Errors: 20002 unknown action; 20004 a bad schema.
create or replace function wf.wf_repo_upsert_action_schema(p_action_name text, p_schema_json jsonb)
returns table (action_name text, revision text, created boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_defaults constant jsonb := '{"description": null, "version": null, "input_schema": null,
        "output_schema": null, "result_codes": {}, "idempotent": true, "timeout_ms": null,
        "sensitive": []}';
    v_full     jsonb;
    v_problem  text;
    v_revision text;
begin
    if not exists (select 1 from wf.workflow_action a where a.action_name = p_action_name) then
        perform wf.wf_raise(20002, format('there is no action %s', left(p_action_name, 200)));
    end if;
    if p_schema_json is null or jsonb_typeof(p_schema_json) <> 'object' then
        perform wf.wf_raise(20004, 'schema_json must be an object');
    end if;
    v_full := v_defaults || p_schema_json;
    -- The same fields as in the graph's own list of actions, where these four stand too.
    v_problem := case when p_schema_json ?| array['name', 'revision', 'capability', 'dispatch']
                      then 'WF601: a schema has no name, revision, capability or dispatch'
                      else coalesce(wf.wf_storable_problem(p_schema_json),
                                    wf.wf_graph_row_problem(array['actions'], array[0], array[
               v_full || '{"name": "", "revision": "", "capability": "", "dispatch": {}}'])) end;
    if v_problem is not null then
        perform wf.wf_raise(20004, 'schema_json: ' || regexp_replace(
            v_problem, '^WF601: | in row 0 of actions', '', 'g'));
    end if;
    if (v_full ->> 'timeout_ms')::bigint < 1 then
        perform wf.wf_raise(20004, 'schema_json: timeout_ms must be at least 1');
    end if;
    v_revision := wf.wf_json_sha256((v_full - 'description')
                                    || jsonb_build_object('name', p_action_name));
    insert into wf.workflow_action_revision (action_name, revision, description, version,
        input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms,
        sensitive_json)
    values (p_action_name, v_revision, v_full ->> 'description', v_full ->> 'version',
            nullif(v_full -> 'input_schema', 'null'), nullif(v_full -> 'output_schema', 'null'),
            v_full -> 'result_codes', (v_full ->> 'idempotent')::boolean,
            (v_full ->> 'timeout_ms')::bigint, v_full -> 'sensitive')
    on conflict (action_name, revision) do nothing;
    return query select p_action_name, v_revision, found;
end
$$;

-- One revision of an action; null: the one that the newest published version with the action has, or
-- when none has it the only one. No row when there is none.
create or replace function wf.wf_repo_get_action_schema(
    p_action_name text, p_revision text default null
) returns table (
    action_name text, revision text, description text, version text, input_schema_json jsonb,
    output_schema_json jsonb, result_codes_json jsonb, idempotent boolean, timeout_ms bigint,
    sensitive_json jsonb
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    select r.action_name, r.revision, r.description, r.version, r.input_schema_json,
           r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms, r.sensitive_json
      from wf.workflow_action_revision r
      left join lateral (
        select max(v.workflow_version_id) as newest_id
          from wf.workflow_version_action c
          join wf.workflow_version v on v.workflow_version_id = c.workflow_version_id
         where c.action_name = r.action_name and c.revision = r.revision
           and v.published_at is not null) u on true
     where r.action_name = p_action_name
       and case when p_revision is not null then r.revision = p_revision
                else u.newest_id is not null or 1 = (
                    select count(*) from wf.workflow_action_revision o
                     where o.action_name = p_action_name) end
     order by u.newest_id desc nulls last limit 1;
end
$$;

-- Every action with its live columns, by name.
create or replace function wf.wf_repo_list_actions()
returns table (
    action_id bigint, action_name text, capability text, max_per_worker integer,
    exclusive_worker boolean, affinity_key_field text, prefer_previous_worker boolean,
    prefer_continue_group boolean, require_previous_worker boolean, max_concurrent integer,
    rate_per_minute integer, max_deliveries integer, paused boolean, revision_count integer
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    select a.action_id, a.action_name, a.capability, a.max_per_worker, a.exclusive_worker,
           a.affinity_key_field, a.prefer_previous_worker, a.prefer_continue_group,
           a.require_previous_worker, a.max_concurrent, a.rate_per_minute, a.max_deliveries,
           a.paused, (select count(*)::integer from wf.workflow_action_revision r
                       where r.action_name = a.action_name)
      from wf.workflow_action a
     order by a.action_name collate "C";
end
$$;

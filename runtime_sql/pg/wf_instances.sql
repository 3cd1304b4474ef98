-- Creating and starting instances. Twin: mssql/wf_instances.sql

-- Creates an instance of a workflow; it starts with sp_start_workflow_instance.
-- p_workflow_version null: the active one. (workflow, p_business_key) is unique until purge: a
-- repeat answers the existing instance with created = false, also when both calls come at once.
-- Errors: 20002 unknown workflow or version; 20004 the context is no object, or a key is out of
-- bounds; 20005 context over 16 MB; 20010 the business key was used with another context.
-- Locks: the workflow_def row FOR KEY SHARE, so that no deletion of the workflow meets it.
create or replace function wf.wf_repo_create_workflow_instance(
    p_workflow_name text, p_context_json jsonb, p_workflow_version integer default null,
    p_business_key text default null, p_priority integer default 0,
    p_tags_json jsonb default null
) returns table (workflow_instance_id bigint, workflow_version_id bigint, created boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_version  wf.workflow_version;
    v_id       bigint;
    v_existing record;
begin
    if p_context_json is null or jsonb_typeof(p_context_json) <> 'object' then
        perform wf.wf_raise(20004, 'the context must be a JSON object');
    end if;
    perform wf.wf_check_tags(p_tags_json);
    if pg_column_size(p_context_json) > 16777216 then
        perform wf.wf_raise(20005, 'the context has more than 16 MB');
    end if;
    if p_business_key is not null then
        perform wf.wf_check_key('business_key', p_business_key);
    end if;
    select v.* into v_version
      from wf.workflow_def d
      join wf.workflow_version v on v.workflow_def_id = d.workflow_def_id
     where d.name = p_workflow_name
       and v.published_at is not null
       and case when p_workflow_version is null then v.is_active
                else v.version_no = p_workflow_version end
       for key share of d;
    if not found then
        perform wf.wf_raise(20002, format('there is no workflow %s%s', left(p_workflow_name, 200),
            coalesce(' of version ' || p_workflow_version, ' with an active version')));
    end if;
    -- Between the insert that finds the key taken and the look at who has it, that one may be purged.
    loop
        insert into wf.workflow_instance as i (workflow_def_id, workflow_version_id, spec_format,
            priority, business_key, tags_json, created_at)
        values (v_version.workflow_def_id, v_version.workflow_version_id, v_version.spec_format,
                coalesce(p_priority, 0), p_business_key, coalesce(p_tags_json, '{}'), wf.wf_now())
        on conflict (workflow_def_id, business_key) where business_key is not null do nothing
        returning i.workflow_instance_id into v_id;
        exit when v_id is not null;
        select i.workflow_instance_id, i.workflow_version_id, x.context_json into v_existing
          from wf.workflow_instance i
          join wf.execution_context x on x.workflow_instance_id = i.workflow_instance_id
         where i.workflow_def_id = v_version.workflow_def_id and i.business_key = p_business_key;
        continue when not found;
        if v_existing.context_json <> p_context_json then
            perform wf.wf_raise(20010, format(
                'business key %s of workflow %s was used with another context', p_business_key,
                p_workflow_name));
        end if;
        return query select v_existing.workflow_instance_id, v_existing.workflow_version_id, false;
        return;
    end loop;
    insert into wf.execution_context (workflow_instance_id, context_json)
    values (v_id, p_context_json);
    if p_tags_json <> '{}' then
        insert into wf.instance_tag (workflow_instance_id, name, value)
        select v_id, t.key, t.value from jsonb_each_text(p_tags_json) t;
    end if;
    return query select v_id, v_version.workflow_version_id, true;
end
$$;

-- Refuses tags that cannot be stored and looked up: 20004.
create or replace function wf.wf_check_tags(p_tags_json jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if p_tags_json is null then
        return;
    end if;
    if jsonb_typeof(p_tags_json) <> 'object' then
        perform wf.wf_raise(20004, 'the tags must be a JSON object');
    end if;
    perform wf.wf_check_key('a tag', t.key) from jsonb_each(p_tags_json) t;
    if exists (select 1 from jsonb_each(p_tags_json) t
                where jsonb_typeof(t.value) in ('object', 'array', 'null')
                   or char_length(t.value #>> '{}') > 200) then
        perform wf.wf_raise(20004, 'the value of a tag must be a string, a number or a boolean, of at '
                                   'most 200 characters');
    end if;
end
$$;

-- Starts a CREATED instance: checks its input, opens its scope, activates its root. Repeated, it
-- answers the same. An input that does not fit is WF015 (10015): nothing has started.
-- Locks: the instance's gate exclusive. Errors: 20002 unknown, 20003 cancelled before its start.
create or replace function wf.sp_start_workflow_instance(p_workflow_instance_id bigint)
returns table (instance_status text, next_ready_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_now    timestamptz;
    v_status text;
    v_root   bigint;
    v_plain  wf.agenda_step[];
begin
    select i.status into v_status
      from wf.workflow_instance i
     where i.workflow_instance_id = p_workflow_instance_id for update;
    if not found then
        perform wf.wf_raise(20002, format('there is no workflow instance %s',
                                          p_workflow_instance_id));
    end if;
    if v_status = 'CANCELLED' and not exists (
        select 1 from wf.workflow_instance i
         where i.workflow_instance_id = p_workflow_instance_id and i.started_at is not null)
    then
        perform wf.wf_raise(20003, format('instance %s was cancelled before its start',
                                          p_workflow_instance_id));
    end if;
    if v_status = 'CREATED' then
        v_now := wf.wf_now();
        v_root := wf.wf_open_instance(p_workflow_instance_id, v_now);
        v_plain := array(
            select row(1, 0, 'START', v_root, p_workflow_instance_id, n.node_id, 0, null, null, null,
                       null, null)::wf.agenda_step
              from wf.workflow_instance i
              join wf.workflow_version v on v.workflow_version_id = i.workflow_version_id
              join wf.workflow_node r on r.node_id = v.root_node_id and r.node_type = 'SEQUENCE'
              join wf.workflow_node n on n.node_id = r.first_child_id
              join wf.workflow_action k on k.action_id = n.action_id
             where i.workflow_instance_id = p_workflow_instance_id and wf.wf_is_plain_action(n, k));
        if cardinality(v_plain) = 0 or not wf.wf_start_plain_actions(v_plain, v_now) then
            perform wf.wf_engine_run(
                array[wf.wf_agenda_entry(1, v_root, p_workflow_instance_id, 'A')],
                array[p_workflow_instance_id], v_now);
        end if;
    end if;
    return query
    select i.status, (select count(*)::integer from wf.task t
                       where t.workflow_instance_id = p_workflow_instance_id
                         and t.worker_id is null)
      from wf.workflow_instance i where i.workflow_instance_id = p_workflow_instance_id;
end
$$;

-- Inserts the root execution and its scope, fills it from the context, and sets the instance
-- RUNNING. Answers the root execution's id. Errors: WF015 (10015), or the error of a default.
create or replace function wf.wf_open_instance(p_workflow_instance_id bigint, p_now timestamptz)
returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_root  bigint := nextval('wf.node_execution_id_seq');
    v_error record;
begin
    with opened as (
        update wf.workflow_instance i
           set status = 'RUNNING', started_at = p_now, root_execution_id = v_root,
               events_after_id = (select case when q.is_called then q.last_value else 0 end
                                    from wf.event_event_id_seq q)
          from wf.workflow_version v
          join wf.workflow_node n on n.node_id = v.root_node_id
         where i.workflow_instance_id = p_workflow_instance_id
           and v.workflow_version_id = i.workflow_version_id
        returning i.workflow_instance_id, n.node_id, n.timeout_ms
    ), timed as (
        insert into wf.timer (node_execution_id, workflow_instance_id, due_at)
        select v_root, o.workflow_instance_id, p_now + o.timeout_ms * interval '1 millisecond'
          from opened o
         where o.timeout_ms is not null
    )
    insert into wf.node_execution (node_execution_id, workflow_instance_id, parent_execution_id,
        node_id, scope_id, status, attempt_no, created_at)
    select v_root, o.workflow_instance_id, 0, o.node_id, v_root, 'RUNNING', 1, p_now
      from opened o;
    select * into v_error
      from wf.wf_init_instance_scope_from_context(p_workflow_instance_id, v_root);
    if v_error.error_code is not null then
        raise exception using
            errcode = 'WF' || lpad((v_error.error_code - 10000)::text, 3, '0'),
            message = v_error.error_message, detail = v_error.error_code::text;
    end if;
    return v_root;
end
$$;

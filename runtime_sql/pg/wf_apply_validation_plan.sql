-- Validation plans: variables that a planning step worked out for a running instance.
-- Twin: mssql/wf_apply_validation_plan.sql

-- Writes the variables of a plan, {"variables": {name: value}}, into the instance's own scope: all of
-- them or none. The names must be inputs or variables of the workflow, the values fit their types. A
-- plan that was applied before (the same canonical hash) changes nothing: applied = false.
-- Locks: the instance's gate exclusive, so that no branch reads half a plan. Errors: 20002 unknown
-- instance; 20003 it is not running; 20004 the plan has another form, a name is not declared, or a
-- value does not fit; 20005 it has more than 16 MB.
create or replace function wf.wf_apply_validation_plan(
    p_workflow_instance_id bigint, p_plan_json jsonb
) returns table (applied boolean, plan_hash text)
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_status  text := wf.wf_lock_instance(p_workflow_instance_id);
    v_root    record;
    v_problem text;
begin
    if v_status <> 'RUNNING' then
        perform wf.wf_raise(20003, format('instance %s is %s, not running', p_workflow_instance_id,
                                          lower(v_status)));
    end if;
    perform wf.wf_check_object('plan', p_plan_json);
    if jsonb_typeof(p_plan_json -> 'variables') is distinct from 'object'
       or p_plan_json - 'variables' <> '{}' then
        perform wf.wf_raise(20004, 'a plan is {"variables": {name: value}} and nothing else');
    end if;
    plan_hash := wf.wf_json_sha256(p_plan_json);
    insert into wf.validation_plan (workflow_instance_id, plan_hash, applied_at)
    values (p_workflow_instance_id, plan_hash, wf.wf_now())
    on conflict on constraint pk_validation_plan do nothing;
    applied := found;
    if applied then
        select i.root_execution_id, i.workflow_version_id, n.node_key into v_root
          from wf.workflow_instance i
          join wf.workflow_version v on v.workflow_version_id = i.workflow_version_id
          join wf.workflow_node n on n.node_id = v.root_node_id
         where i.workflow_instance_id = p_workflow_instance_id;
        v_problem := wf.wf_plan_misfit(v_root.workflow_version_id, v_root.node_key,
                                       p_plan_json -> 'variables');
        if v_problem is not null then
            perform wf.wf_raise(20004, v_problem);
        end if;
        insert into wf.scope_variable (scope_id, name, value_json)
        select v_root.root_execution_id, p.key, p.value
          from jsonb_each(p_plan_json -> 'variables') p
        on conflict on constraint pk_scope_variable do update set value_json = excluded.value_json;
    end if;
    return next;
end
$$;

-- The first name, in order, that the workflow does not declare, or the first value, in the order of
-- the declarations, that does not fit its type; null: the plan fits.
create or replace function wf.wf_plan_misfit(
    p_version_id bigint, p_owner_key text, p_variables jsonb
) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_name text;
begin
    select k.name into v_name
      from jsonb_object_keys(p_variables) k(name)
     where not exists (select 1 from wf.node_scope_default d
                        where d.workflow_version_id = p_version_id
                          and d.owner_key = p_owner_key and d.name = k.name)
     order by k.name collate "C"
     limit 1;
    if found then
        return format('the workflow has no variable %s', left(v_name, 200));
    end if;
    return wf.wf_declared_misfit(p_version_id, p_owner_key, p_variables);
end
$$;

-- The first of some values, in the order of the declarations, that does not fit the type that node
-- p_owner_key declares for its name; null: all fit.
create or replace function wf.wf_declared_misfit(
    p_version_id bigint, p_owner_key text, p_variables jsonb
) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_places   text[];
    v_type_ids integer[];
    v_values   jsonb[];
begin
    select array_agg('var ' || d.name order by d.variable_kind, d.variable_order),
           array_agg(d.type_id order by d.variable_kind, d.variable_order),
           array_agg(p_variables -> d.name order by d.variable_kind, d.variable_order)
      into v_places, v_type_ids, v_values
      from wf.node_scope_default d
     where d.workflow_version_id = p_version_id and d.owner_key = p_owner_key
       and d.type_id is not null and p_variables ? d.name;
    return wf.wf_check_values(p_version_id, v_places, v_type_ids, v_values);
end
$$;

-- Deleting a workflow with all its versions. Twin: mssql/wf_delete_definition.sql

-- Deletes a workflow: its versions, subscriptions, schedules and bundles. Refused while instances of it
-- run, unless p_end_running cancels them, and while ended ones are there, unless p_delete_history
-- removes them, a thousand at a time. Events stay; their deliveries forget the workflow.
-- Locks: the workflow_def row, so that no deploy, create or event that would start one meets it; the
-- gates of its instances exclusive, ascending.
-- Errors: 20002 unknown workflow; 20003 with how many instances stand in the way.
create or replace function wf.sp_delete_workflow_def(
    p_name text, p_end_running boolean default false, p_delete_history boolean default false
) returns table (cancelled_count integer, purged_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_def_id  bigint;
    v_id      bigint;
    v_running bigint[];
    v_all     bigint[];
begin
    select d.workflow_def_id into v_def_id from wf.workflow_def d where d.name = p_name for update;
    if not found then
        perform wf.wf_raise(20002, format('there is no workflow %s', left(p_name, 200)));
    end if;
    -- What runs is asked under the gates: an instance may end, or be retried, while they are waited for.
    perform 1 from wf.workflow_instance i
      where i.workflow_def_id = v_def_id
      order by i.workflow_instance_id
        for update;
    select coalesce(array_agg(i.workflow_instance_id order by i.workflow_instance_id), '{}'),
           coalesce(array_agg(i.workflow_instance_id order by i.workflow_instance_id)
                    filter (where i.status in ('CREATED', 'RUNNING', 'PAUSED')), '{}')
      into v_all, v_running
      from wf.workflow_instance i
     where i.workflow_def_id = v_def_id;
    if cardinality(v_running) > 0 and not coalesce(p_end_running, false) then
        perform wf.wf_raise(20003, format('%s instances of workflow %s have not ended',
                                          cardinality(v_running), p_name));
    end if;
    if cardinality(v_all) > 0 and not coalesce(p_delete_history, false) then
        perform wf.wf_raise(20003, format('%s ended instances of workflow %s are there',
                                          cardinality(v_all), p_name));
    end if;
    foreach v_id in array v_running loop
        perform wf.sp_cancel_workflow_instance(v_id, 'the workflow is deleted');
    end loop;
    for v_first in 1 .. cardinality(v_all) by 1000 loop
        perform wf.wf_remove_instances(v_all[v_first : v_first + 999]);
    end loop;
    perform wf.wf_remove_definition(v_def_id);
    insert into wf.audit_log (at, what, detail_json)
    values (wf.wf_now(), 'delete workflow', jsonb_build_object('workflow', p_name));
    return query select cardinality(v_running), cardinality(v_all);
end
$$;

-- Removes the rows of a workflow that has no instances any more.
create or replace function wf.wf_remove_definition(p_workflow_def_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_versions bigint[] := array(select v.workflow_version_id from wf.workflow_version v
                                  where v.workflow_def_id = p_workflow_def_id);
begin
    update wf.event_delivery d set workflow_def_id = null
     where d.workflow_def_id = p_workflow_def_id;
    delete from wf.foreach_bundle_entry b
     using wf.workflow_def d
     where d.workflow_def_id = p_workflow_def_id and b.workflow_name = d.name;
    delete from wf.schedule s where s.workflow_def_id = p_workflow_def_id;
    delete from wf.event_subscription s where s.workflow_version_id = any (v_versions);
    delete from wf.collection_binding b where b.workflow_version_id = any (v_versions);
    delete from wf.node_scope_default d where d.workflow_version_id = any (v_versions);
    delete from wf.variable_output_binding b where b.workflow_version_id = any (v_versions);
    delete from wf.workflow_input_binding b where b.workflow_version_id = any (v_versions);
    delete from wf.workflow_input_template t where t.workflow_version_id = any (v_versions);
    delete from wf.workflow_edge d where d.workflow_version_id = any (v_versions);
    delete from wf.workflow_node n where n.workflow_version_id = any (v_versions);
    -- A type's parent goes with it in one statement; the check of its key comes at the end of it.
    delete from wf.data_type t where t.workflow_version_id = any (v_versions);
    delete from wf.workflow_version_action a where a.workflow_version_id = any (v_versions);
    delete from wf.workflow_version v where v.workflow_version_id = any (v_versions);
    delete from wf.workflow_def d where d.workflow_def_id = p_workflow_def_id;
end
$$;

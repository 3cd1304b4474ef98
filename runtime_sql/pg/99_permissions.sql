-- Rights: who may do what in schema wf (R22). Twin: mssql/99_permissions.sql
--
-- Nothing is open to PUBLIC. Roles get routines and views; no role but wf_author touches a table, and
-- that one only by reading and adding definition rows, of a version's own columns only those that
-- publishing does not fill in. Routines that write single rows of a run (wf_repo_…), the engine and
-- the test bed are the owner's. Each grant stands in the contract (`roles`), and is checked both ways.
--   wf_author    deploys: adds definition rows and publishes them (R3)
--   wf_gateway   workers and gateways: claims and submits, takes in events, creates, starts
--   wf_operator  looks at everything, cancels, pauses, drains, purges
--   wf_reader    looks: views and the trace, where sensitive values are masked
revoke all on schema wf from public;
revoke all on all routines in schema wf from public;
revoke all on all tables in schema wf from public;
revoke all on all sequences in schema wf from public;

do $$
begin
    if current_user <> 'wf_owner' then
        -- Remembered for the next upgrade.
        insert into wf.wf_setting (name, value) values ('roles', 'none') on conflict do nothing;
        return;
    end if;
    grant usage on schema wf to wf_author, wf_gateway, wf_operator, wf_reader;
    grant execute on function wf.wf_runtime_version, wf.wf_database_id, wf.wf_require_runtime
       to wf_author, wf_gateway, wf_operator, wf_reader;

    -- Deploying.
    grant select on
        wf.workflow_def, wf.workflow_version, wf.workflow_action, wf.workflow_action_revision,
        wf.workflow_version_action, wf.data_type, wf.workflow_node, wf.workflow_edge,
        wf.workflow_input_template, wf.workflow_input_binding, wf.variable_output_binding,
        wf.node_scope_default, wf.collection_binding, wf.event_subscription
       to wf_author;
    grant insert on
        wf.workflow_action_revision, wf.workflow_version_action, wf.data_type, wf.workflow_edge,
        wf.workflow_input_template
       to wf_author;
    grant insert (name, description) on wf.workflow_def to wf_author;
    grant insert (workflow_def_id, content_hash, spec_format, outputs_json, source_map, source_text,
                  labels)
       on wf.workflow_version to wf_author;
    grant insert (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field,
                  prefer_previous_worker, prefer_continue_group, require_previous_worker,
                  max_concurrent, rate_per_minute, max_deliveries)
       on wf.workflow_action to wf_author;
    grant insert (workflow_version_id, node_key, node_type, is_generated, action_name,
                  action_revision, attributes_json)
       on wf.workflow_node to wf_author;
    grant insert (workflow_version_id, node_key, pointer, program_json)
       on wf.workflow_input_binding to wf_author;
    grant insert (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key,
                  program_json)
       on wf.variable_output_binding to wf_author;
    grant insert (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id,
                  is_required, program_json)
       on wf.node_scope_default to wf_author;
    grant insert (workflow_version_id, node_key, binding_kind, program_json)
       on wf.collection_binding to wf_author;
    grant insert (workflow_version_id, subscription_order, event_type, mode, filter_json,
                  inputs_json)
       on wf.event_subscription to wf_author;
    grant execute on function
        wf.wf_publish_workflow_version, wf.wf_set_version_notes, wf.wf_repo_create_workflow_graph
       to wf_author;
    grant execute on function wf.wf_repo_get_action_schema, wf.wf_repo_list_actions
       to wf_author, wf_gateway, wf_operator, wf_reader;

    -- Working.
    grant execute on function
        wf.wf_worker_authenticate, wf.sp_worker_request_task, wf.sp_worker_request_tasks,
        wf.sp_worker_submit_result, wf.sp_worker_submit_results, wf.sp_worker_fail_task,
        wf.sp_worker_heartbeat, wf.sp_worker_release_task,
        wf.sync_execution_scope_action_entry_after_submit, wf.wf_api_key_authenticate,
        wf.sp_enroll_worker, wf.wf_worker_profile, wf.wf_claimable_capabilities
       to wf_gateway;
    grant select on wf.v_api_key to wf_gateway, wf_operator, wf_reader;
    grant execute on function wf.wf_queue_depth to wf_gateway, wf_operator, wf_reader;
    grant execute on function
        wf.sp_ingest_event, wf.sp_signal_wait, wf.wf_repo_create_workflow_instance,
        wf.sp_start_workflow_instance, wf.sp_register_worker, wf.sp_tick
       to wf_gateway, wf_operator;
    grant execute on function
        wf.wf_repo_get_workflow_instance, wf.wf_repo_get_running_instances
       to wf_gateway, wf_operator, wf_reader;
    grant select on wf.v_action, wf.v_workflow, wf.v_instance
       to wf_gateway, wf_operator, wf_reader;

    -- Operating.
    grant execute on function
        wf.sp_create_api_key, wf.sp_revoke_api_key, wf.sp_revoke_worker_token,
        wf.sp_set_worker_token_expiry
       to wf_operator;
    grant execute on function
        wf.sp_set_worker_state, wf.sp_cancel_workflow_instance, wf.sp_pause_workflow_instance,
        wf.sp_resume_workflow_instance, wf.sp_release_affinity, wf.sp_purge_instances,
        wf.sp_delete_workflow_def, wf.sp_retry_failed_node, wf.sp_purge_bundles,
        wf.sp_purge_events, wf.wf_repo_upsert_event_type
       to wf_operator;

    -- Looking. A view calls these routines with the rights of who reads it.
    grant execute on function wf.wf_execution_path, wf.wf_now to wf_gateway, wf_operator, wf_reader;
    grant execute on function
        wf.wf_trace_instance, wf.wf_mask_sensitive,
        wf.wf_repo_try_latest_task_result_code, wf.wf_repo_get_instance_extension
       to wf_operator, wf_reader;
    grant select on
        wf.v_node_execution, wf.v_ready, wf.v_lease, wf.v_worker,
        wf.v_scale_recommendation, wf.v_unclaimable, wf.task_lease, wf.v_open_node, wf.v_attempt,
        wf.v_event, wf.v_event_delivery, wf.v_workflow_node, wf.v_worker_token
       to wf_operator, wf_reader;

    -- Workers vacuum wf.task after many claims (R15); before 17 only its owner may.
    if current_setting('server_version_num')::integer >= 170000 then
        execute 'grant maintain on wf.task to wf_gateway';
    end if;
end
$$;

-- Rights: who may do what in schema wf (R22). Twin: pg/99_permissions.sql
--
-- Roles get EXECUTE on routines and SELECT on views, and nothing on tables: procedures reach those by
-- ownership chaining. Only wf_author reads and adds definition rows, which is what a deploy script
-- does. SQL Server has no right to insert some columns only, so that an author can write what
-- publishing fills in; the triggers of wf_publish_workflow_version.sql keep published versions closed.
-- Each grant stands in the contract (`roles`), and a test compares both ways.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Deploying.
grant select, insert on wf.workflow_def to wf_author;
grant select, insert on wf.workflow_version to wf_author;
grant select, insert on wf.workflow_action to wf_author;
grant select, insert on wf.workflow_action_revision to wf_author;
grant select, insert on wf.workflow_version_action to wf_author;
grant select, insert on wf.data_type to wf_author;
grant select, insert on wf.workflow_node to wf_author;
grant select, insert on wf.workflow_edge to wf_author;
grant select, insert on wf.workflow_input_template to wf_author;
grant select, insert on wf.workflow_input_binding to wf_author;
grant select, insert on wf.variable_output_binding to wf_author;
grant select, insert on wf.node_scope_default to wf_author;
grant select, insert on wf.collection_binding to wf_author;
grant select, insert on wf.event_subscription to wf_author;
grant execute on wf.wf_publish_workflow_version to wf_author;
grant execute on wf.wf_set_version_notes to wf_author;
grant execute on wf.wf_repo_create_workflow_graph to wf_author;
grant execute on wf.wf_repo_get_action_schema to wf_author, wf_gateway, wf_operator, wf_reader;
grant execute on wf.wf_repo_list_actions to wf_author, wf_gateway, wf_operator, wf_reader;
grant execute on wf.wf_require_runtime to wf_author, wf_gateway, wf_operator, wf_reader;
grant execute on wf.wf_runtime_version to wf_author, wf_gateway, wf_operator, wf_reader;
grant execute on wf.wf_database_id to wf_author, wf_gateway, wf_operator, wf_reader;
GO

-- Working.
grant execute on wf.wf_worker_authenticate to wf_gateway;
grant execute on wf.sp_worker_request_task to wf_gateway;
grant execute on wf.sp_worker_request_tasks to wf_gateway;
grant execute on wf.sp_worker_submit_result to wf_gateway;
grant execute on wf.sp_worker_submit_results to wf_gateway;
grant execute on wf.sp_worker_fail_task to wf_gateway;
grant execute on wf.sp_worker_heartbeat to wf_gateway;
grant execute on wf.sp_worker_release_task to wf_gateway;
grant execute on wf.sp_ingest_event to wf_gateway, wf_operator;
grant execute on wf.sp_signal_wait to wf_gateway, wf_operator;
grant execute on wf.wf_repo_create_workflow_instance to wf_gateway, wf_operator;
grant execute on wf.sp_start_workflow_instance to wf_gateway, wf_operator;
grant execute on wf.wf_repo_get_workflow_instance to wf_gateway, wf_operator, wf_reader;
grant execute on wf.wf_repo_get_running_instances to wf_gateway, wf_operator, wf_reader;
grant execute on wf.sync_execution_scope_action_entry_after_submit to wf_gateway;
grant execute on wf.wf_execution_path to wf_gateway, wf_operator, wf_reader;
grant execute on wf.sp_register_worker to wf_gateway, wf_operator;
grant execute on wf.sp_tick to wf_gateway, wf_operator;
grant execute on wf.wf_api_key_authenticate to wf_gateway;
grant execute on wf.sp_enroll_worker to wf_gateway;
grant execute on wf.wf_worker_profile to wf_gateway;
grant execute on wf.wf_claimable_capabilities to wf_gateway;
grant execute on wf.wf_queue_depth to wf_gateway, wf_operator, wf_reader;
GO

-- Operating and looking.
grant execute on wf.wf_repo_try_latest_task_result_code to wf_operator, wf_reader;
grant execute on wf.wf_trace_instance to wf_operator, wf_reader;
grant execute on wf.wf_repo_get_instance_extension to wf_operator, wf_reader;
grant execute on wf.wf_now to wf_gateway, wf_operator, wf_reader;
grant execute on wf.wf_mask_sensitive to wf_operator, wf_reader;
grant execute on wf.sp_set_worker_state to wf_operator;
grant execute on wf.sp_cancel_workflow_instance to wf_operator;
grant execute on wf.sp_pause_workflow_instance to wf_operator;
grant execute on wf.sp_resume_workflow_instance to wf_operator;
grant execute on wf.sp_retry_failed_node to wf_operator;
grant execute on wf.sp_release_affinity to wf_operator;
grant execute on wf.sp_purge_bundles to wf_operator;
grant execute on wf.sp_purge_events to wf_operator;
grant execute on wf.wf_repo_upsert_event_type to wf_operator;
grant execute on wf.sp_purge_instances to wf_operator;
grant execute on wf.sp_delete_workflow_def to wf_operator;
grant execute on wf.sp_create_api_key to wf_operator;
grant execute on wf.sp_revoke_api_key to wf_operator;
grant execute on wf.sp_set_worker_token_expiry to wf_operator;
grant execute on wf.sp_revoke_worker_token to wf_operator;
grant select on wf.task_lease to wf_operator, wf_reader;
grant select on wf.v_instance to wf_gateway, wf_operator, wf_reader;
grant select on wf.v_node_execution to wf_operator, wf_reader;
grant select on wf.v_ready to wf_operator, wf_reader;
grant select on wf.v_lease to wf_operator, wf_reader;
grant select on wf.v_worker to wf_operator, wf_reader;
grant select on wf.v_scale_recommendation to wf_operator, wf_reader;
grant select on wf.v_unclaimable to wf_operator, wf_reader;
grant select on wf.v_open_node to wf_operator, wf_reader;
grant select on wf.v_attempt to wf_operator, wf_reader;
grant select on wf.v_event to wf_operator, wf_reader;
grant select on wf.v_event_delivery to wf_operator, wf_reader;
grant select on wf.v_workflow_node to wf_operator, wf_reader;
grant select on wf.v_api_key to wf_gateway, wf_operator, wf_reader;
grant select on wf.v_worker_token to wf_operator, wf_reader;
grant select on wf.v_action to wf_gateway, wf_operator, wf_reader;
grant select on wf.v_workflow to wf_gateway, wf_operator, wf_reader;
GO

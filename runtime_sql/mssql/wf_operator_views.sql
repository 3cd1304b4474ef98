-- The views that people and clients read. Twin: pg/wf_operator_views.sql
--
-- Views of executions mask what the action's catalog calls sensitive, as the trace does. What a run
-- shows elsewhere (an instance's output, a variable that took a value over) is the author's choice.
-- A worker counts as present when it has claimed or sent a heartbeat within the last five minutes.
-- The twin's v_scale_recommendation and v_unclaimable are still to be written.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

if object_id(N'wf.v_instance', N'V') is not null drop view wf.v_instance;
GO

-- One row per instance.
create view wf.v_instance as
select i.workflow_instance_id, d.name as workflow_name, w.version_no, i.status, i.business_key,
       i.created_at, i.started_at, i.ended_at, i.error_code, i.engine_error_code,
       i.engine_error_message, n.node_key as error_node_key,
       wf.wf_execution_path(i.error_execution_id) as error_path, i.priority, i.tags_json,
       i.cancel_reason, c.output_json
  from wf.workflow_instance as i
  join wf.workflow_def as d on d.workflow_def_id = i.workflow_def_id
  join wf.workflow_version as w on w.workflow_version_id = i.workflow_version_id
  left join wf.execution_context as c on c.workflow_instance_id = i.workflow_instance_id
  left join wf.node_execution as e on e.node_execution_id = i.error_execution_id
  left join wf.workflow_node as n on n.node_id = e.node_id;
GO

if object_id(N'wf.v_node_execution', N'V') is not null drop view wf.v_node_execution;
GO

-- One row per execution, with its path. READY and RUNNING of an ACTION are read from its task.
create view wf.v_node_execution as
select e.node_execution_id, e.workflow_instance_id,
       wf.wf_execution_path(e.node_execution_id) as path,
       n.node_key, n.node_type, e.iteration_no,
       case when t.node_execution_id is null then e.status
            when t.worker_id is null then N'READY'
            else N'RUNNING' end as status,
       coalesce(t.attempt_no, e.attempt_no) as attempt_no,
       e.result_code, e.engine_error_code, e.engine_error_message,
       coalesce(t.worker_id, e.worker_id) as worker_id,
       e.created_at, coalesce(e.started_at, t.claimed_at) as started_at, e.ended_at,
       e.parent_execution_id, n.is_generated, n.is_loop_body, n.action_name,
       coalesce(t.delivery_count, e.delivery_count) as delivery_count,
       wf.wf_mask_sensitive(coalesce(t.input_json, e.input_json), r.sensitive_json, N'input')
           as input_json,
       wf.wf_mask_sensitive(e.output_json, r.sensitive_json, N'output') as output_json
  from wf.node_execution as e
  join wf.workflow_node as n on n.node_id = e.node_id
  left join wf.workflow_action_revision as r
    on r.action_name = n.action_name and r.revision = n.action_revision
  left join wf.task as t on t.node_execution_id = e.node_execution_id;
GO

if object_id(N'wf.v_ready', N'V') is not null drop view wf.v_ready;
GO

-- One row per ACTION that no worker holds. is_due: it may be claimed as far as its time goes and its
-- instance runs.
create view wf.v_ready as
select t.node_execution_id, t.workflow_instance_id, d.name as workflow_name,
       wf.wf_execution_path(t.node_execution_id) as path, n.node_key, a.action_name, a.capability,
       t.priority, t.available_at,
       cast(case when t.available_at <= wf.wf_now() and i.status = N'RUNNING' then 1 else 0 end
            as bit) as is_due,
       t.attempt_no, t.delivery_count, t.pinned_worker_id, t.affinity_key, t.max_per_worker,
       t.is_exclusive
  from wf.task as t
  join wf.workflow_instance as i on i.workflow_instance_id = t.workflow_instance_id
  join wf.workflow_def as d on d.workflow_def_id = i.workflow_def_id
  join wf.workflow_node as n on n.node_id = t.node_id
  join wf.workflow_action as a on a.action_id = t.action_id
 where t.worker_id is null;
GO

if object_id(N'wf.v_lease', N'V') is not null drop view wf.v_lease;
GO

-- One row per ACTION that a worker holds. is_expired: the next claim of any worker takes it back.
create view wf.v_lease as
select t.node_execution_id, t.workflow_instance_id, d.name as workflow_name,
       wf.wf_execution_path(t.node_execution_id) as path, n.node_key, a.action_name, a.capability,
       t.worker_id, t.claimed_at, t.lease_until,
       cast(case when t.lease_until < wf.wf_now() then 1 else 0 end as bit) as is_expired,
       t.deadline_at, t.attempt_no, t.delivery_count, t.is_exclusive
  from wf.task as t
  join wf.workflow_instance as i on i.workflow_instance_id = t.workflow_instance_id
  join wf.workflow_def as d on d.workflow_def_id = i.workflow_def_id
  join wf.workflow_node as n on n.node_id = t.node_id
  join wf.workflow_action as a on a.action_id = t.action_id
 where t.worker_id is not null;
GO

if object_id(N'wf.v_worker', N'V') is not null drop view wf.v_worker;
GO

-- One row per registered worker, with its capabilities, a JSON array, and how many tasks it holds.
create view wf.v_worker as
select w.worker_id, w.desired_state, w.max_concurrency,
       concat(N'[', (select string_agg(wf.wf_json_quote(c.capability), N',')
                                within group (order by c.capability)
                       from wf.worker_capability as c
                      where c.worker_id = w.worker_id), N']') as capabilities,
       (select count(*) from wf.task as t where t.worker_id = w.worker_id) as lease_count,
       cast(case when exists (select 1 from wf.task as t
                               where t.worker_id = w.worker_id and t.is_exclusive = 1)
                 then 1 else 0 end as bit) as holds_exclusive,
       p.last_seen_at,
       cast(case when p.last_seen_at > dateadd(minute, -5, wf.wf_now()) then 1 else 0 end as bit)
           as is_present,
       w.build_id, w.registered_at
  from wf.worker as w
  left join wf.worker_presence as p on p.worker_id = w.worker_id;
GO

-- The catalog, for clients --------------------------------------------------------------------------

if object_id(N'wf.v_action', N'V') is not null drop view wf.v_action;
GO

-- One row per action, with its live dispatch columns.
create view wf.v_action as
select a.action_name, a.capability, a.max_per_worker, a.exclusive_worker, a.affinity_key_field,
       a.prefer_previous_worker, a.prefer_continue_group, a.require_previous_worker,
       a.max_concurrent, a.rate_per_minute, a.max_deliveries, a.paused
  from wf.workflow_action as a;
GO

if object_id(N'wf.v_workflow', N'V') is not null drop view wf.v_workflow;
GO

-- One row per published version: its inputs as [{"name", "required"}], the names of its outputs and
-- the event types that it waits for or starts on, as JSON arrays.
create view wf.v_workflow as
select v.workflow_version_id, d.name as workflow_name, v.version_no, v.is_active, v.published_at,
       v.content_hash, d.description,
       concat(N'[', (select string_agg(concat(N'{"name":', wf.wf_json_quote(x.name),
                                N',"required":', case when x.is_required = 1 then N'true'
                                                      else N'false' end, N'}'), N',')
                                within group (order by x.variable_order)
                       from wf.node_scope_default as x
                      where x.workflow_version_id = v.workflow_version_id
                        and x.variable_kind = N'input'), N']') as inputs_json,
       concat(N'[', (select string_agg(wf.wf_json_member(o.value, N'name'), N',')
                                within group (order by cast(o.[key] as int))
                       from openjson(v.outputs_json) as o), N']') as output_names,
       concat(N'[', (select string_agg(wf.wf_json_quote(y.event_type), N',')
                                within group (order by y.event_type)
                       from (select json_value(n.attributes_json, N'$.event_type')
                                        collate Latin1_General_100_BIN2 as event_type
                               from wf.workflow_node as n
                              where n.workflow_version_id = v.workflow_version_id
                                and n.node_type = N'WAIT_EVENT'
                             union
                             select s.event_type
                               from wf.event_subscription as s
                              where s.workflow_version_id = v.workflow_version_id) as y),
              N']') as event_types
  from wf.workflow_version as v
  join wf.workflow_def as d on d.workflow_def_id = v.workflow_def_id
 where v.published_at is not null;
GO

-- Views of what an instance waits for and has done: open nodes, attempts, events, its graph.
-- Twin: pg/wf_operator_details.sql
--
-- They are meant to be read for one instance or for few events: each has a path, which is worked out
-- row by row. Payloads and inputs do not stand here, so that nothing has to be masked.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

if object_id(N'wf.v_open_node', N'V') is not null drop view wf.v_open_node;
GO

-- One row per open execution, with what it waits for:
--     WORKER    a READY ACTION, until available_at also for its time; v_unclaimable says what is in
--               the way
--     RESULT    an ACTION that a worker holds
--     EVENT     a WAIT_EVENT
--     TIME      a sleep, until due_at
--     CHILDREN  any other composite
-- due_at: a sleep's end, and of anything else its time-out. attempt_limit: the last attempt that the
-- retry policy allows. phase: ON_ERROR or FINALLY is running, or an end waits for others' finallys.
-- Counts are those of the PARALLEL's children or the FOREACH's iterations; of a REPEAT only the total.
create view wf.v_open_node as
select e.node_execution_id, e.workflow_instance_id,
       wf.wf_execution_path(e.node_execution_id) as path, n.node_key, n.node_type,
       case when t.node_execution_id is null then e.status
            when t.worker_id is null then N'READY'
            else N'RUNNING' end as status,
       case when t.worker_id is not null then N'RESULT'
            when t.node_execution_id is not null then N'WORKER'
            when n.node_type = N'ACTION' then N'WORKER'
            when n.node_type = N'WAIT_EVENT' then N'EVENT'
            when n.delay_ms is not null then N'TIME'
            else N'CHILDREN' end as waits_for,
       e.created_at as opened_at, coalesce(t.attempt_no, e.attempt_no) as attempt_no,
       coalesce(t.attempts_before, 0)
           + coalesce(cast(json_value(n.retry_json, N'$.limit') as int), 0) + 1 as attempt_limit,
       coalesce(t.delivery_count, 0) as delivery_count, n.action_name, a.capability,
       t.available_at, t.worker_id, t.claimed_at, t.lease_until, t.deadline_at, w.event_type,
       w.correlation_key, coalesce(w.matches_nothing, cast(0 as bit)) as matches_nothing, r.due_at,
       p.phase, coalesce(j.total_count, l.total_count) as total_count, j.succeeded_count,
       j.failed_count, j.needed_count
  from wf.node_execution as e
  join wf.workflow_node as n on n.node_id = e.node_id
  left join wf.task as t on t.node_execution_id = e.node_execution_id
  left join wf.workflow_action as a on a.action_id = t.action_id
  left join wf.event_wait as w on w.node_execution_id = e.node_execution_id
  left join wf.timer as r on r.node_execution_id = e.node_execution_id
  left join wf.pending_end as p on p.node_execution_id = e.node_execution_id
  left join wf.join_counter as j on j.node_execution_id = e.node_execution_id
  left join wf.loop_state as l on l.node_execution_id = e.node_execution_id
 where e.status in (N'READY', N'RUNNING');
GO

if object_id(N'wf.v_attempt', N'V') is not null drop view wf.v_attempt;
GO

-- One row per attempt at an ACTION: those that were to be made again, the one that ended it, and the
-- one that a worker is at (RUNNING). An ACTION that failed before it could be queued has one row
-- without a worker. A lease that was lost has a row (10014), also where the same attempt is offered
-- again. status is that of the attempt; started_at is when it was claimed.
create view wf.v_attempt as
select a.node_execution_id, e.workflow_instance_id,
       wf.wf_execution_path(a.node_execution_id) as path, n.node_key, n.action_name, a.attempt_no,
       a.lease_token, a.worker_id, N'FAILED' as status, a.result_code, a.engine_error_code,
       a.engine_error_message, a.claimed_at as started_at, a.ended_at
  from wf.node_attempt as a
  join wf.node_execution as e on e.node_execution_id = a.node_execution_id
  join wf.workflow_node as n on n.node_id = e.node_id
union all
select e.node_execution_id, e.workflow_instance_id,
       wf.wf_execution_path(e.node_execution_id), n.node_key, n.action_name, e.attempt_no,
       coalesce(e.last_token, 0), e.worker_id, e.status, coalesce(e.answered_code, e.result_code),
       e.engine_error_code, e.engine_error_message, e.started_at, e.ended_at
  from wf.node_execution as e
  join wf.workflow_node as n on n.node_id = e.node_id and n.node_type = N'ACTION'
 where e.status in (N'SUCCEEDED', N'FAILED') or e.status = N'CANCELLED' and e.started_at is not null
union all
select t.node_execution_id, t.workflow_instance_id,
       wf.wf_execution_path(t.node_execution_id), n.node_key, n.action_name, t.attempt_no,
       t.lease_token, t.worker_id, N'RUNNING', null, null, null, t.claimed_at, null
  from wf.task as t
  join wf.workflow_node as n on n.node_id = t.node_id
 where t.worker_id is not null;
GO

if object_id(N'wf.v_event', N'V') is not null drop view wf.v_event;
GO

-- One row per event that was taken in. workflow_instance_id: of a signal to one instance.
create view wf.v_event as
select e.event_id, e.event_type, e.source, e.idempotency_key, e.correlation_key, e.occurred_at,
       e.ingested_at, e.duplicate_count, e.workflow_instance_id
  from wf.event as e;
GO

if object_id(N'wf.v_event_delivery', N'V') is not null drop view wf.v_event_delivery;
GO

-- One row per wait that an event was given to, or instance that it started or did not start.
create view wf.v_event_delivery as
select v.event_id, v.delivery_no, d.name as workflow_name, v.workflow_instance_id,
       v.node_execution_id, wf.wf_execution_path(v.node_execution_id) as path, v.outcome, v.reason,
       v.delivered_at
  from wf.event_delivery as v
  left join wf.workflow_instance as i on i.workflow_instance_id = v.workflow_instance_id
  left join wf.workflow_def as d
    on d.workflow_def_id = coalesce(v.workflow_def_id, i.workflow_def_id);
GO

if object_id(N'wf.v_workflow_node', N'V') is not null drop view wf.v_workflow_node;
GO

-- One row per node of a published version, with its place: parent_key and branch_kind are null at the
-- root. case_value is what a CASE lists; delay_ms makes a SEQUENCE a sleep.
create view wf.v_workflow_node as
select n.workflow_version_id, d.name as workflow_name, v.version_no, n.node_key, n.node_type,
       g.parent_key, g.branch_kind, g.child_order, g.case_value, n.is_generated, n.is_loop_body,
       n.action_name, json_value(n.attributes_json, N'$.event_type') as event_type, n.delay_ms
  from wf.workflow_node as n
  join wf.workflow_version as v on v.workflow_version_id = n.workflow_version_id
  join wf.workflow_def as d on d.workflow_def_id = v.workflow_def_id
  left join wf.workflow_edge as g
    on g.workflow_version_id = n.workflow_version_id and g.child_key = n.node_key
 where v.published_at is not null;
GO

-- The views that people and clients read. Twin: pg/wf_operator_views.sql
--
-- Views of executions mask what the action's catalog calls sensitive, as the trace does. What a run
-- shows elsewhere (an instance's output, a variable that took a value over) is the author's choice.
-- A worker counts as present when it has claimed or sent a heartbeat within the last five minutes.

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
-- instance runs; v_unclaimable says what else is in the way.
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

if object_id(N'wf.v_scale_recommendation', N'V') is not null drop view wf.v_scale_recommendation;
GO

-- One row per capability: how many workers its work wants. The work of an action is what is due and
-- what is held, at most its max_concurrent; rate_per_minute is left out of account. A worker has
-- `slots` (the mean max_concurrency of the capability's ACTIVE, present workers, rounded down; 1
-- without any), of an action at most its max_per_worker. Wanted are
--     the work of exclusive actions, each a worker of its own
--   + the larger of  all other work / slots  and, of the action that needs most, its work / its slots
-- each rounded up. A worker with `*` counts in every row.
create view wf.v_scale_recommendation as
with tasks as (
    select t.action_id, t.is_exclusive, t.max_per_worker, t.max_concurrent,
           case when t.worker_id is not null then 1 else 0 end as is_leased,
           case when t.worker_id is null and t.available_at <= wf.wf_now()
                 and i.status = N'RUNNING' and a.paused = 0 then 1 else 0 end as is_ready,
           t.available_at
      from wf.task as t
      join wf.workflow_action as a on a.action_id = t.action_id
      left join wf.workflow_instance as i on i.workflow_instance_id = t.workflow_instance_id
), work as (
    select a.capability, a.action_id,
           max(case when t.is_exclusive = 1 then 1 else 0 end) as is_exclusive,
           min(t.max_per_worker) as max_per_worker, min(t.max_concurrent) as max_concurrent,
           coalesce(sum(t.is_leased), 0) as leased_count,
           coalesce(sum(t.is_ready), 0) as ready_count,
           min(case when t.is_ready = 1 then t.available_at end) as oldest_at
      from wf.workflow_action as a
      left join tasks as t on t.action_id = a.action_id
     group by a.capability, a.action_id
), crew as (
    select k.capability, count(w.worker_id) as worker_count,
           coalesce(sum(w.max_concurrency), 0) as slot_count,
           -- Of two ints the mean is rounded down, and nobody works on less than one task.
           coalesce(nullif(sum(w.max_concurrency) / nullif(count(w.worker_id), 0), 0), 1) as slots
      from (select distinct a.capability from wf.workflow_action as a) as k
      left join wf.v_worker as w
        on w.desired_state = N'ACTIVE' and w.is_present = 1
       and exists (select 1 from wf.worker_capability as c
                    where c.worker_id = w.worker_id and c.capability in (k.capability, N'*'))
     group by k.capability
), loads as (
    select o.capability, o.is_exclusive, o.leased_count, o.ready_count, o.oldest_at, c.slots,
           case when o.max_concurrent < o.ready_count + o.leased_count then o.max_concurrent
                else o.ready_count + o.leased_count end as work_count,
           case when o.max_per_worker < c.slots then o.max_per_worker else c.slots end as own_slots
      from work as o
      join crew as c on c.capability = o.capability
), wanted as (
    select l.capability, sum(l.ready_count) as ready_count, sum(l.leased_count) as leased_count,
           min(l.oldest_at) as oldest_ready_at,
           sum(case when l.is_exclusive = 1 then l.work_count else 0 end) as exclusive_count,
           (sum(case when l.is_exclusive = 0 then l.work_count else 0 end) + max(l.slots) - 1)
               / max(l.slots) as shared_count,
           max(case when l.is_exclusive = 0
                    then (l.work_count + l.own_slots - 1) / l.own_slots else 0 end) as most_count
      from loads as l
     group by l.capability
), decided as (
    select w.capability, w.ready_count, w.leased_count, w.oldest_ready_at,
           w.exclusive_count + case when w.shared_count > w.most_count then w.shared_count
                                    else w.most_count end as wanted_worker_count
      from wanted as w
)
select d.capability, d.ready_count, d.leased_count, d.oldest_ready_at, c.worker_count, c.slot_count,
       d.wanted_worker_count, d.wanted_worker_count - c.worker_count as missing_worker_count
  from decided as d
  join crew as c on c.capability = d.capability;
GO

if object_id(N'wf.v_unclaimable', N'V') is not null drop view wf.v_unclaimable;
GO

-- One row per READY action that nobody can take now, with the first reason that holds. It says what a
-- claim would do if the task stood alone; that others are before it in the queue is no reason. Leases
-- that have run out do not count, since a claim takes them back first. Only the last reason, SILENT, is
-- no rule of dispatch: workers could take it and have not been heard of for five minutes.
create view wf.v_unclaimable as
with live as (
    select t.worker_id, t.action_id, count(*) as lease_count,
           max(case when t.is_exclusive = 1 then 1 else 0 end) as is_exclusive
      from wf.task as t
     where t.worker_id is not null and t.lease_until >= wf.wf_now()
     group by t.worker_id, t.action_id
), holding as (
    select l.worker_id, max(l.is_exclusive) as is_exclusive
      from live as l
     group by l.worker_id
), taker as (
    select a.action_id, w.worker_id,
           case when w.desired_state = N'ACTIVE' then 1 else 0 end as is_active,
           coalesce(l.lease_count, 0) as lease_count,
           coalesce(h.is_exclusive, 0) as holds_exclusive,
           case when w.is_present = 1 then 1 else 0 end as is_present
      from wf.workflow_action as a
      join wf.v_worker as w
        on exists (select 1 from wf.worker_capability as c
                    where c.worker_id = w.worker_id and c.capability in (a.capability, N'*'))
      left join live as l on l.worker_id = w.worker_id and l.action_id = a.action_id
      left join holding as h on h.worker_id = w.worker_id
), room as (
    select g.action_id, g.pinned_worker_id, g.max_per_worker, count(k.worker_id) as capable_count,
           coalesce(sum(k.is_active), 0) as active_count,
           coalesce(sum(case when k.is_active = 1 and k.holds_exclusive = 0
                              and k.lease_count < coalesce(g.max_per_worker, 2147483647)
                             then 1 else 0 end), 0) as free_count,
           coalesce(sum(case when k.is_active = 1 and k.holds_exclusive = 0 and k.is_present = 1
                              and k.lease_count < coalesce(g.max_per_worker, 2147483647)
                             then 1 else 0 end), 0) as present_count
      from (select distinct t.action_id, t.pinned_worker_id, t.max_per_worker
              from wf.task as t
             where t.worker_id is null) as g
      left join taker as k
        on k.action_id = g.action_id
       and k.worker_id = coalesce(g.pinned_worker_id, k.worker_id)
     group by g.action_id, g.pinned_worker_id, g.max_per_worker
), spent as (
    -- What counts against max_concurrent and rate_per_minute.
    select a.action_id,
           (select count(*) from wf.task as t
             where t.action_id = a.action_id and t.worker_id is not null
               and t.max_concurrent is not null and t.lease_until >= wf.wf_now()) as lease_count,
           (select count(*) from wf.action_claim as c
             where c.action_id = a.action_id
               and c.claimed_at > dateadd(minute, -1, wf.wf_now())) as claim_count
      from wf.workflow_action as a
), waiting as (
    select t.node_execution_id, t.workflow_instance_id, n.node_key, a.action_name, a.capability,
           t.pinned_worker_id, p.desired_state as pinned_state, t.available_at, t.max_concurrent,
           t.rate_per_minute,
           case when i.status <> N'RUNNING' then N'INSTANCE_PAUSED'
                when t.available_at > wf.wf_now() then N'DELAYED'
                when a.paused = 1 then N'ACTION_PAUSED'
                when s.lease_count >= t.max_concurrent then N'MAX_CONCURRENT'
                when s.claim_count >= t.rate_per_minute then N'RATE'
                when r.capable_count = 0 and t.pinned_worker_id is null then N'NO_WORKER'
                when r.capable_count = 0 and p.worker_id is not null then N'PIN_NOT_CAPABLE'
                when r.capable_count = 0 then N'PIN_GONE'
                when r.active_count = 0 then N'NOT_ACTIVE'
                when r.free_count = 0 then N'BUSY'
                when r.present_count = 0 then N'SILENT' end as reason
      from wf.task as t
      join wf.workflow_instance as i on i.workflow_instance_id = t.workflow_instance_id
      join wf.workflow_node as n on n.node_id = t.node_id
      join wf.workflow_action as a on a.action_id = t.action_id
      join spent as s on s.action_id = t.action_id
      join room as r
        on r.action_id = t.action_id
       and (r.pinned_worker_id = t.pinned_worker_id
            or (r.pinned_worker_id is null and t.pinned_worker_id is null))
       and (r.max_per_worker = t.max_per_worker
            or (r.max_per_worker is null and t.max_per_worker is null))
      left join wf.worker as p on p.worker_id = t.pinned_worker_id
     where t.worker_id is null
)
select q.node_execution_id, q.workflow_instance_id,
       wf.wf_execution_path(q.node_execution_id) as path, q.node_key, q.action_name, q.capability,
       q.reason,
       case q.reason
           when N'INSTANCE_PAUSED' then concat(N'instance ', q.workflow_instance_id, N' is paused')
           when N'DELAYED' then concat(
               N'it is delayed until ', convert(nchar(19), q.available_at, 126), N'.',
               right(concat(N'00', datepart(millisecond, q.available_at)), 3), N'Z')
           when N'ACTION_PAUSED' then concat(N'action ', q.action_name, N' is paused')
           when N'MAX_CONCURRENT' then concat(
               N'as many tasks of action ', q.action_name, N' are in hand as may be at once: ',
               q.max_concurrent)
           when N'RATE' then concat(
               N'action ', q.action_name,
               N' was claimed within the last minute as often as it may be: ', q.rate_per_minute)
           when N'NO_WORKER' then concat(N'no worker has the capability ', q.capability)
           when N'PIN_NOT_CAPABLE' then concat(
               N'it is pinned to worker ', q.pinned_worker_id, N', which has not the capability ',
               q.capability)
           when N'PIN_GONE' then concat(
               N'it is pinned to worker ', q.pinned_worker_id, N', which is not registered')
           when N'NOT_ACTIVE' then case when q.pinned_worker_id is null
               then concat(N'every worker with the capability ', q.capability,
                           N' is draining or stopping')
               else concat(N'it is pinned to worker ', q.pinned_worker_id, N', which is ',
                           q.pinned_state) end
           when N'BUSY' then case when q.pinned_worker_id is null
               then concat(N'every active worker with the capability ', q.capability,
                           N' is at max_per_worker or holds an exclusive task')
               else concat(N'it is pinned to worker ', q.pinned_worker_id,
                           N', which is at max_per_worker or holds an exclusive task') end
           when N'SILENT' then case when q.pinned_worker_id is null
               then concat(N'no free worker with the capability ', q.capability,
                           N' was heard of for five minutes')
               else concat(N'it is pinned to worker ', q.pinned_worker_id,
                           N', which was not heard of for five minutes') end end as message
  from waiting as q
 where q.reason is not null;
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

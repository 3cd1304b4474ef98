-- The views that people and clients read. Twin: mssql/wf_operator_views.sql
--
-- Views of executions mask what the action's catalog calls sensitive, as the trace does. What a run
-- shows elsewhere (an instance's output, a variable that took a value over) is the author's choice.
-- A worker counts as present when it has claimed or sent a heartbeat within the last five minutes.

-- One row per instance.
create view wf.v_instance as
select i.workflow_instance_id, d.name as workflow_name, w.version_no, i.status, i.business_key,
       i.created_at, i.started_at, i.ended_at, i.error_code, i.engine_error_code,
       i.engine_error_message, n.node_key as error_node_key,
       wf.wf_execution_path(i.error_execution_id) as error_path, i.priority, i.tags_json,
       i.cancel_reason, c.output_json
  from wf.workflow_instance i
  join wf.workflow_def d on d.workflow_def_id = i.workflow_def_id
  join wf.workflow_version w on w.workflow_version_id = i.workflow_version_id
  left join wf.execution_context c on c.workflow_instance_id = i.workflow_instance_id
  left join wf.node_execution e on e.node_execution_id = i.error_execution_id
  left join wf.workflow_node n on n.node_id = e.node_id;

-- One row per execution, with its path. READY and RUNNING of an ACTION are read from its task.
create view wf.v_node_execution as
select e.node_execution_id, e.workflow_instance_id,
       wf.wf_execution_path(e.node_execution_id) as path,
       n.node_key, n.node_type, e.iteration_no,
       case when t.node_execution_id is null then e.status
            when t.worker_id is null then 'READY'
            else 'RUNNING' end as status,
       coalesce(t.attempt_no, e.attempt_no) as attempt_no,
       e.result_code, e.engine_error_code, e.engine_error_message,
       coalesce(t.worker_id, e.worker_id) as worker_id,
       e.created_at, coalesce(e.started_at, t.claimed_at) as started_at, e.ended_at,
       e.parent_execution_id, n.is_generated, n.is_loop_body, n.action_name,
       coalesce(t.delivery_count, e.delivery_count) as delivery_count,
       wf.wf_mask_sensitive(coalesce(t.input_json, e.input_json), r.sensitive_json, 'input')
           as input_json,
       wf.wf_mask_sensitive(e.output_json, r.sensitive_json, 'output') as output_json
  from wf.node_execution e
  join wf.workflow_node n on n.node_id = e.node_id
  left join wf.workflow_action_revision r
    on r.action_name = n.action_name and r.revision = n.action_revision
  left join wf.task t on t.node_execution_id = e.node_execution_id;

-- One row per ACTION that no worker holds. is_due: it may be claimed as far as its time goes and its
-- instance runs; v_unclaimable says what else is in the way.
create view wf.v_ready as
select t.node_execution_id, t.workflow_instance_id, d.name as workflow_name,
       wf.wf_execution_path(t.node_execution_id) as path, n.node_key, a.action_name, a.capability,
       t.priority, t.available_at, t.available_at <= wf.wf_now() and i.status = 'RUNNING' as is_due,
       t.attempt_no, t.delivery_count, t.pinned_worker_id, t.affinity_key, t.max_per_worker,
       t.is_exclusive
  from wf.task t
  join wf.workflow_instance i on i.workflow_instance_id = t.workflow_instance_id
  join wf.workflow_def d on d.workflow_def_id = i.workflow_def_id
  join wf.workflow_node n on n.node_id = t.node_id
  join wf.workflow_action a on a.action_id = t.action_id
 where t.worker_id is null;

-- One row per ACTION that a worker holds. is_expired: the next claim of any worker takes it back.
create view wf.v_lease as
select t.node_execution_id, t.workflow_instance_id, d.name as workflow_name,
       wf.wf_execution_path(t.node_execution_id) as path, n.node_key, a.action_name, a.capability,
       t.worker_id, t.claimed_at, t.lease_until, t.lease_until < wf.wf_now() as is_expired,
       t.deadline_at, t.attempt_no, t.delivery_count, t.is_exclusive
  from wf.task t
  join wf.workflow_instance i on i.workflow_instance_id = t.workflow_instance_id
  join wf.workflow_def d on d.workflow_def_id = i.workflow_def_id
  join wf.workflow_node n on n.node_id = t.node_id
  join wf.workflow_action a on a.action_id = t.action_id
 where t.worker_id is not null;

-- The leases alone, with their tokens.
create view wf.task_lease as
select t.node_execution_id, t.workflow_instance_id, t.action_id, t.worker_id, t.lease_token,
       t.lease_until, t.claimed_at, t.attempt_no
  from wf.task t
 where t.worker_id is not null;

-- One row per registered worker, with its capabilities and how many tasks it holds.
create view wf.v_worker as
select w.worker_id, w.desired_state, w.max_concurrency,
       array(select c.capability from wf.worker_capability c
              where c.worker_id = w.worker_id order by c.capability) as capabilities,
       (select count(*)::integer from wf.task t where t.worker_id = w.worker_id) as lease_count,
       exists (select 1 from wf.task t
                where t.worker_id = w.worker_id and t.is_exclusive) as holds_exclusive,
       p.last_seen_at,
       coalesce(p.last_seen_at > wf.wf_now() - interval '5 minutes', false) as is_present,
       w.build_id, w.registered_at
  from wf.worker w
  left join wf.worker_presence p on p.worker_id = w.worker_id;

-- One row per capability: how many workers its work wants. The work of an action is what is due and
-- what is held, at most its max_concurrent; rate_per_minute is left out of account. A worker has `slots` (the mean max_concurrency of the
-- capability's ACTIVE, present workers, rounded down; 1 without any), of an action at most its
-- max_per_worker. Wanted are
--     the work of exclusive actions, each a worker of its own
--   + the larger of  all other work / slots  and, of the action that needs most, its work / its slots
-- each rounded up. A worker with `*` counts in every row.
create view wf.v_scale_recommendation as
with work as (
    select a.capability, a.action_id, coalesce(bool_or(t.is_exclusive), false) as is_exclusive,
           min(t.max_per_worker) as max_per_worker, min(t.max_concurrent) as max_concurrent,
           count(t.worker_id) as leased_count,
           count(t.node_execution_id) filter (
               where t.worker_id is null and t.available_at <= wf.wf_now()
                 and i.status = 'RUNNING' and not a.paused) as ready_count,
           min(t.available_at) filter (
               where t.worker_id is null and t.available_at <= wf.wf_now()
                 and i.status = 'RUNNING' and not a.paused) as oldest_at
      from wf.workflow_action a
      left join wf.task t on t.action_id = a.action_id
      left join wf.workflow_instance i on i.workflow_instance_id = t.workflow_instance_id
     group by a.action_id
), crew as (
    select k.capability, count(w.worker_id)::integer as worker_count,
           coalesce(sum(w.max_concurrency), 0)::integer as slot_count,
           greatest(coalesce(floor(avg(w.max_concurrency)), 1), 1)::integer as slots
      from (select distinct a.capability from wf.workflow_action a) k
      left join wf.v_worker w
        on w.desired_state = 'ACTIVE' and w.is_present
       and w.capabilities && array[k.capability, '*']
     group by k.capability
), load as (
    select o.*, c.slots,
           least(o.ready_count + o.leased_count,
                 coalesce(o.max_concurrent, o.ready_count + o.leased_count)) as work_count
      from work o
      join crew c on c.capability = o.capability
), wanted as (
    select l.capability, sum(l.ready_count)::integer as ready_count,
           sum(l.leased_count)::integer as leased_count, min(l.oldest_at) as oldest_ready_at,
           (coalesce(sum(l.work_count) filter (where l.is_exclusive), 0)
            + greatest(
                coalesce(ceil(sum(l.work_count) filter (where not l.is_exclusive)
                              / max(l.slots)::numeric), 0),
                coalesce(max(ceil(l.work_count / least(l.slots, l.max_per_worker)::numeric))
                         filter (where not l.is_exclusive), 0)))::integer as wanted_worker_count
      from load l
     group by l.capability
)
select w.capability, w.ready_count, w.leased_count, w.oldest_ready_at, c.worker_count, c.slot_count,
       w.wanted_worker_count, w.wanted_worker_count - c.worker_count as missing_worker_count
  from wanted w
  join crew c on c.capability = w.capability;

-- One row per READY action that nobody can take now, with the first reason that holds. It says what a
-- claim would do if the task stood alone; that others are before it in the queue is no reason. Leases
-- that have run out do not count, since a claim takes them back first. Only the last reason, SILENT, is
-- no rule of dispatch: workers could take it and have not been heard of for five minutes.
create view wf.v_unclaimable as
with live as materialized (
    select t.worker_id, t.action_id, count(*) as lease_count, bool_or(t.is_exclusive) as is_exclusive
      from wf.task t
     where t.worker_id is not null and t.lease_until >= wf.wf_now()
     group by t.worker_id, t.action_id
), taker as materialized (
    select a.action_id, w.worker_id, w.desired_state = 'ACTIVE' as is_active,
           coalesce(l.lease_count, 0) as lease_count,
           exists (select 1 from live x
                    where x.worker_id = w.worker_id and x.is_exclusive) as holds_exclusive,
           w.is_present
      from wf.workflow_action a
      join wf.v_worker w on w.capabilities && array[a.capability, '*']
      left join live l on l.worker_id = w.worker_id and l.action_id = a.action_id
), room as materialized (
    -- Of each action the workers that could take it, all together and, for pinned tasks, one by one.
    -- least_free: the fewest leases that an active one without an exclusive task has of it.
    select k.action_id, k.worker_id as pinned_worker_id,
           count(*) filter (where k.is_active) as active_count,
           min(k.lease_count) filter (where k.is_active and not k.holds_exclusive) as least_free,
           min(k.lease_count) filter (where k.is_active and not k.holds_exclusive and k.is_present)
               as least_present
      from taker k
     group by grouping sets ((k.action_id), (k.action_id, k.worker_id))
), spent as materialized (
    -- What counts against max_concurrent and rate_per_minute.
    select a.action_id,
           (select count(*) from wf.task t
             where t.action_id = a.action_id and t.worker_id is not null
               and t.max_concurrent is not null and t.lease_until >= wf.wf_now()) as lease_count,
           (select count(*) from wf.action_claim c
             where c.action_id = a.action_id
               and c.claimed_at > wf.wf_now() - interval '1 minute') as claim_count
      from wf.workflow_action a
), waiting as (
    select t.node_execution_id, t.workflow_instance_id, n.node_key, a.action_name, a.capability,
           t.pinned_worker_id, t.available_at, t.max_concurrent, t.rate_per_minute,
           case when i.status <> 'RUNNING' then 'INSTANCE_PAUSED'
                when t.available_at > wf.wf_now() then 'DELAYED'
                when a.paused then 'ACTION_PAUSED'
                when s.lease_count >= t.max_concurrent then 'MAX_CONCURRENT'
                when s.claim_count >= t.rate_per_minute then 'RATE'
                when r.action_id is null and t.pinned_worker_id is null then 'NO_WORKER'
                when r.action_id is null and exists (
                    select 1 from wf.worker w where w.worker_id = t.pinned_worker_id)
                    then 'PIN_NOT_CAPABLE'
                when r.action_id is null then 'PIN_GONE'
                when r.active_count = 0 then 'NOT_ACTIVE'
                when r.least_free is null or r.least_free >= t.max_per_worker then 'BUSY'
                when r.least_present is null or r.least_present >= t.max_per_worker
                    then 'SILENT' end as reason
      from wf.task t
      join wf.workflow_instance i on i.workflow_instance_id = t.workflow_instance_id
      join wf.workflow_node n on n.node_id = t.node_id
      join wf.workflow_action a on a.action_id = t.action_id
      join spent s on s.action_id = t.action_id
      left join room r
        on r.action_id = t.action_id
       and coalesce(r.pinned_worker_id, '') = coalesce(t.pinned_worker_id, '')
     where t.worker_id is null
)
select q.node_execution_id, q.workflow_instance_id,
       wf.wf_execution_path(q.node_execution_id) as path, q.node_key, q.action_name, q.capability,
       q.reason,
       case q.reason
           when 'INSTANCE_PAUSED' then format('instance %s is paused', q.workflow_instance_id)
           when 'DELAYED' then format('it is delayed until %s', to_char(
               q.available_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
           when 'ACTION_PAUSED' then format('action %s is paused', q.action_name)
           when 'MAX_CONCURRENT' then format(
               'as many tasks of action %s are in hand as may be at once: %s', q.action_name,
               q.max_concurrent)
           when 'RATE' then format(
               'action %s was claimed within the last minute as often as it may be: %s',
               q.action_name, q.rate_per_minute)
           when 'NO_WORKER' then format('no worker has the capability %s', q.capability)
           when 'PIN_NOT_CAPABLE' then format(
               'it is pinned to worker %s, which has not the capability %s', q.pinned_worker_id,
               q.capability)
           when 'PIN_GONE' then format(
               'it is pinned to worker %s, which is not registered', q.pinned_worker_id)
           when 'NOT_ACTIVE' then case when q.pinned_worker_id is null
               then format('every worker with the capability %s is draining or stopping',
                           q.capability)
               else format('it is pinned to worker %s, which is %s', q.pinned_worker_id,
                           (select w.desired_state from wf.worker w
                             where w.worker_id = q.pinned_worker_id)) end
           when 'BUSY' then format(
               case when q.pinned_worker_id is null
                    then 'every active worker with the capability %s is at max_per_worker or holds '
                         'an exclusive task'
                    else 'it is pinned to worker %2$s, which is at max_per_worker or holds an '
                         'exclusive task' end, q.capability, q.pinned_worker_id)
           when 'SILENT' then format(
               case when q.pinned_worker_id is null
                    then 'no free worker with the capability %s was heard of for five minutes'
                    else 'it is pinned to worker %2$s, which was not heard of for five minutes' end,
               q.capability, q.pinned_worker_id) end as message
  from waiting q
 where q.reason is not null;

-- The catalog, for clients --------------------------------------------------------------------------

-- One row per action, with its live dispatch columns.
create view wf.v_action as
select a.action_name, a.capability, a.max_per_worker, a.exclusive_worker, a.affinity_key_field,
       a.prefer_previous_worker, a.prefer_continue_group, a.require_previous_worker,
       a.max_concurrent, a.rate_per_minute, a.max_deliveries, a.paused
  from wf.workflow_action a;

-- One row per published version: its inputs as [{"name", "required"}], the names of its outputs and
-- the event types that it waits for or starts on.
create view wf.v_workflow as
select v.workflow_version_id, d.name as workflow_name, v.version_no, v.is_active, v.published_at,
       v.content_hash, d.description,
       (select coalesce(jsonb_agg(jsonb_build_object('name', x.name, 'required', x.is_required)
                                  order by x.variable_order), '[]')
          from wf.node_scope_default x
         where x.workflow_version_id = v.workflow_version_id
           and x.variable_kind = 'input') as inputs_json,
       array(select o.value ->> 'name'
               from jsonb_array_elements(v.outputs_json) with ordinality o(value, position)
              order by o.position) as output_names,
       array(select n.attributes_json ->> 'event_type'
               from wf.workflow_node n
              where n.workflow_version_id = v.workflow_version_id and n.node_type = 'WAIT_EVENT'
              union
             select s.event_type
               from wf.event_subscription s
              where s.workflow_version_id = v.workflow_version_id) as event_types
  from wf.workflow_version v
  join wf.workflow_def d on d.workflow_def_id = v.workflow_def_id
 where v.published_at is not null;

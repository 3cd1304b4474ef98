-- Dispatch: which worker may take which task, and in what order (semantics §10, R15, R41).
-- Twin: mssql/wf_dispatch.sql
--
-- Order: priority (higher first), then the soft preferences, then the longest available, then id.
-- Hard rules: the worker's capabilities, max_per_worker (live leases of the action, counted under the
-- lock of the worker's row), exclusive_worker (while such a lease lives the worker gets nothing else),
-- max_concurrent (live leases of the action over all workers) and rate_per_minute (claims of it within
-- any minute), both under the lock of the action's wf.action_throttle row, and the pin of
-- require_previous_worker. Preferences and pins hold within an instance.

-- The dispatch columns of a task that is being activated: the catalog's live ones, overridden by the
-- author's, and the affinity key: the named field of the input as text. A text over 200 characters is
-- stood for by its SHA-256, so that the key always fits its column.
create or replace function wf.wf_dispatch_of(
    p_action_id bigint, p_overrides jsonb, p_input_json jsonb,
    out affinity_key text, out max_per_worker integer, out is_exclusive boolean,
    out prefers_previous boolean, out prefers_group boolean, out requires_previous boolean,
    out max_concurrent integer, out rate_per_minute integer
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_field text;
begin
    select coalesce(p_overrides ->> 'affinity_key_field', a.affinity_key_field),
           coalesce((p_overrides ->> 'max_per_worker')::integer, a.max_per_worker),
           coalesce((p_overrides ->> 'exclusive_worker')::boolean, a.exclusive_worker),
           coalesce((p_overrides ->> 'prefer_previous_worker')::boolean, a.prefer_previous_worker),
           coalesce((p_overrides ->> 'prefer_continue_group')::boolean, a.prefer_continue_group),
           coalesce((p_overrides ->> 'require_previous_worker')::boolean, a.require_previous_worker),
           coalesce((p_overrides ->> 'max_concurrent')::integer, a.max_concurrent),
           coalesce((p_overrides ->> 'rate_per_minute')::integer, a.rate_per_minute)
      into v_field, max_per_worker, is_exclusive, prefers_previous, prefers_group,
           requires_previous, max_concurrent, rate_per_minute
      from wf.workflow_action a
     where a.action_id = p_action_id;
    if v_field is not null and jsonb_typeof(p_input_json) = 'object'
       and jsonb_typeof(p_input_json -> v_field) <> 'null' then
        affinity_key := p_input_json ->> v_field;
        if char_length(affinity_key) > 200 then
            affinity_key := encode(sha256(convert_to(affinity_key, 'UTF8')), 'hex');
        end if;
    end if;
end
$$;

-- Plain ACTIONs: the shortest way from one ACTION of a SEQUENCE to the next. Most submits, and most
-- starts, lead to one ACTION each whose inputs are values of variables and which has no rules of
-- dispatch. To activate it can neither fail nor close or decide anything, so nothing is left for the
-- loop to do, which would put the same rows there by two levels. T-SQL always goes by the loop.

-- Whether an ACTION's activation is a row in wf.node_execution and one in wf.task, values permitting.
-- Without a search_path of its own, so that it becomes part of the statement that calls it.
create or replace function wf.wf_is_plain_action(
    p_node wf.workflow_node, p_action wf.workflow_action
) returns boolean
language sql immutable as $$
    select p_node.node_type = 'ACTION' and p_node.has_plain_inputs
       and p_node.parent_type = 'SEQUENCE' and not p_node.opens_scope
       and not p_node.has_scope_defaults
       and p_node.attributes_json -> 'dispatch' is null
       and not p_action.exclusive_worker
       and num_nonnulls(p_action.max_per_worker, p_action.affinity_key_field,
                        p_action.max_concurrent, p_action.rate_per_minute) = 0
$$;

-- Starts the plain ACTIONs of these START steps and queues their tasks; ids rise in the order of the
-- steps. Answers false, and has written nothing, where a variable has no value, an input is large, or
-- the work limit of a call is set and less (R25): the loop knows what to do then. The caller holds the
-- gates.
create or replace function wf.wf_start_plain_actions(
    p_steps wf.agenda_step[], p_now timestamptz
) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_are_started boolean;
begin
    if p_steps is null then
        return true;
    end if;
    with built as materialized (
        select nextval('wf.node_execution_id_seq') as new_id, q.*
          from (select s.workflow_instance_id, s.node_execution_id as parent_execution_id,
                       p.scope_id, p.join_parent_id, n.node_id, n.action_id, n.delay_ms,
                       case when n.priority = 0 and i.priority = 0 then 0
                            else wf.wf_add_priorities(n.priority, i.priority) end as priority,
                       i.status = 'RUNNING' as is_running,
                       coalesce(t.template_json || v.values_json, t.template_json, v.values_json,
                                '{}') as input_json,
                       coalesce(v.are_all_there, true)
                           and coalesce(pg_column_size(v.values_json), 0) <= 800 as is_built
                  from unnest(p_steps) s
                  join wf.node_execution p on p.node_execution_id = s.node_execution_id
                  join wf.workflow_node n on n.node_id = s.node_id
                 cross join lateral (
                    -- By key, whatever the planner thinks (wf_action_activate).
                    select w.priority, w.status
                      from wf.workflow_instance w
                     where w.workflow_instance_id = s.workflow_instance_id
                    offset 0) i
                  left join wf.workflow_input_template t
                    on t.workflow_version_id = n.workflow_version_id and t.node_key = n.node_key
                 cross join lateral (
                    select jsonb_object_agg(b.path[1], x.value_json) as values_json,
                           bool_and(x.value_json is not null) as are_all_there
                      from wf.workflow_input_binding b
                      left join wf.scope o
                        on o.scope_id = p.scope_id and o.owner_key = b.variable_owner
                      left join wf.scope_variable x
                        on x.scope_id = case when o.scope_id is null
                                             then wf.wf_find_scope(p.scope_id, b.variable_owner)
                                             else o.scope_id end
                       and x.name = b.variable_name
                     where b.node_id = n.node_id and n.has_input_bindings) v
                 order by s.ordinal) q
    ), fit as materialized (
        select bool_and(b.is_built)
                   and count(*) <= (select coalesce(min(s.value::bigint), 1000000)
                                      from wf.wf_setting s
                                     where s.name = 'max_activations_per_call') as is_fit
          from built b
    ), executions as (
        insert into wf.node_execution (node_execution_id, workflow_instance_id,
            parent_execution_id, node_id, scope_id, join_parent_id, status, attempt_no, created_at)
        select b.new_id, b.workflow_instance_id, b.parent_execution_id, b.node_id, b.scope_id,
               b.join_parent_id, 'READY', 0, p_now
          from fit f, built b
         where f.is_fit
    ), queued as (
        insert into wf.task (node_execution_id, workflow_instance_id, node_id, action_id, priority,
                             available_at, is_claimable, input_json)
        select b.new_id, b.workflow_instance_id, b.node_id, b.action_id, b.priority,
               p_now + coalesce(b.delay_ms, 0) * interval '1 millisecond',
               coalesce(b.delay_ms, 0) = 0 and b.is_running, b.input_json
          from fit f, built b
         where f.is_fit
    )
    select f.is_fit into v_are_started from fit f;
    return v_are_started;
end
$$;

-- What of a level may take the short way: the steps of instances all of whose entries have one, so that
-- the order within an instance is the loop's; and the other entries. An entry whose `set` has failed
-- has none. Null stands for nothing.
create or replace function wf.wf_split_plain(
    p_level wf.agenda_entry[], p_plain wf.agenda_step[],
    out plain wf.agenda_step[], out others wf.agenda_entry[]
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    select array_agg(q.step order by q.ordinal) filter (where q.is_plain),
           array_agg(q.entry order by q.ordinal) filter (where not q.is_plain)
      into plain, others
      from (select a.ordinal, a::wf.agenda_entry as entry, s::wf.agenda_step as step,
                   bool_and(a.kind = 'S' and s.ordinal is not null)
                       over (partition by a.workflow_instance_id) as is_plain
              from unnest(p_level) a
              left join unnest(p_plain) s on s.ordinal = a.ordinal) q;
end
$$;

-- The worker that a task of this action and key is pinned to, or null: the one that completed the
-- most recent pinned action of the key, unless that was a run of this same action.
create or replace function wf.wf_pinned_worker(
    p_workflow_instance_id bigint, p_action_id bigint, p_affinity_key text
) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
    select f.pinned_worker_id
      from wf.affinity f
     where f.workflow_instance_id = p_workflow_instance_id
       and f.affinity_key = p_affinity_key
       and f.released_at is null
       and f.pinned_action_id <> p_action_id
$$;

-- Remembers who completed these executions, by their affinity keys, and pins the waiting tasks of a
-- key whose pinned action has just succeeded. Locks: affinity rows in key order, then task rows.
create or replace function wf.wf_remember_workers(p_node_execution_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    if cardinality(p_node_execution_ids) = 0 then
        return;
    end if;
    for v_row in
        select e.workflow_instance_id, d.affinity_key, e.worker_id, n.action_id, d.requires_previous
          from unnest(p_node_execution_ids) with ordinality u(id, position)
          join wf.node_execution e on e.node_execution_id = u.id
          join wf.workflow_node n on n.node_id = e.node_id
         cross join lateral wf.wf_dispatch_of(n.action_id, n.attributes_json -> 'dispatch',
                                              e.input_json) d
         where e.status = 'SUCCEEDED' and d.affinity_key is not null
         order by e.workflow_instance_id, d.affinity_key, u.position
    loop
        insert into wf.affinity as f (workflow_instance_id, affinity_key, worker_id,
                                      pinned_worker_id, pinned_action_id)
        values (v_row.workflow_instance_id, v_row.affinity_key, v_row.worker_id,
                case when v_row.requires_previous then v_row.worker_id end,
                case when v_row.requires_previous then v_row.action_id end)
        on conflict (workflow_instance_id, affinity_key) do update
            set worker_id = excluded.worker_id,
                pinned_worker_id = coalesce(excluded.pinned_worker_id, f.pinned_worker_id),
                pinned_action_id = coalesce(excluded.pinned_action_id, f.pinned_action_id),
                released_at = case when excluded.pinned_worker_id is null then f.released_at end;
        if v_row.requires_previous then
            update wf.task t
               set pinned_worker_id = v_row.worker_id
             where t.workflow_instance_id = v_row.workflow_instance_id
               and t.affinity_key = v_row.affinity_key and t.worker_id is null
               and t.requires_previous and not t.is_exclusive
               and t.action_id <> v_row.action_id;
        end if;
    end loop;
end
$$;

-- Locks up to p_max_tasks tasks for a worker and answers their ids, best first. The caller holds the
-- worker's row, so that its live leases cannot change meanwhile.
-- Locks: action_throttle rows and task rows, one by one by primary key, with SKIP LOCKED: no claim
-- waits for another worker's.
create or replace function wf.wf_claim_lock(
    p_worker_id text, p_capability text, p_max_tasks integer, p_now timestamptz
) returns bigint[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_taken bigint[] := '{}';
    v_heads integer := greatest(p_max_tasks + 16, 32);
    v_row   record;
    v_token bigint;
    v_seen  integer;
    v_ends  boolean := false;
    v_held  bigint[] := '{}';
    v_busy  bigint[] := '{}';
    v_is_claimable boolean;
begin
    if exists (select 1 from wf.task t where t.worker_id = p_worker_id and t.is_exclusive) then
        return v_taken;
    end if;
    -- A page of heads that others hold is read on, at most four times (R15).
    for v_page in 1 .. 4 loop
        v_seen := 0;
        for v_row in select * from wf.wf_claim_candidates(p_worker_id, p_capability, v_heads) loop
            exit when v_ends or cardinality(v_taken) >= p_max_tasks;
            v_seen := v_seen + 1;
            continue when v_row.node_execution_id = any (v_taken)
                or v_row.action_id = any (v_busy)
                or v_row.max_per_worker is not null
                and wf.wf_is_at_cap(p_worker_id, v_row.action_id, v_row.max_per_worker, v_taken);
            if v_row.is_limited and v_row.action_id <> all (v_held) then
                if wf.wf_hold_throttle(v_row.action_id) then
                    v_held := v_held || v_row.action_id;
                else
                    v_busy := v_busy || v_row.action_id;
                    continue;
                end if;
            end if;
            continue when v_row.is_limited and wf.wf_is_throttled(
                v_row.action_id, v_row.max_concurrent, v_row.rate_per_minute, v_taken, p_now);
            -- Found by worker_id and pin alone: a condition that repeats the claim index's would make
            -- the planner read that index again. Paused or put off meanwhile, the task is left.
            select t.lease_token, t.is_claimable into v_token, v_is_claimable from wf.task t
              where t.node_execution_id = v_row.node_execution_id and t.worker_id is null
                and coalesce(t.pinned_worker_id, p_worker_id) = p_worker_id
                for update skip locked;
            if found and v_is_claimable then
                v_taken := v_taken || v_row.node_execution_id;
                v_ends := v_row.is_exclusive;
                if v_row.rate_per_minute is not null then
                    insert into wf.action_claim
                    values (v_row.action_id, p_now, v_row.node_execution_id, v_token + 1);
                end if;
            end if;
        end loop;
        exit when v_ends or cardinality(v_taken) >= p_max_tasks or v_seen < v_heads;
        v_heads := v_heads * 4;
    end loop;
    return v_taken;
end
$$;

-- Whether a worker holds as many live leases of an action as it may, those taken in this call among
-- them.
create or replace function wf.wf_is_at_cap(
    p_worker_id text, p_action_id bigint, p_max_per_worker integer, p_taken bigint[]
) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if p_max_per_worker is null then
        return false;
    end if;
    return p_max_per_worker <= (
        select count(*) from wf.task t
         where t.worker_id = p_worker_id and t.action_id = p_action_id) + (
        select count(*) from wf.task t
         where t.node_execution_id = any (p_taken) and t.action_id = p_action_id);
end
$$;

-- Takes the throttle of an action for this claim, or answers false when another claim has it. The row
-- is there since the action's first version was published: to insert it here could wait.
create or replace function wf.wf_hold_throttle(p_action_id bigint) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    update wf.action_throttle t
       set claim_count = t.claim_count + 1
     where t.action_id = (select o.action_id from wf.action_throttle o
                           where o.action_id = p_action_id for update skip locked);
    return found;
end
$$;

-- Whether an action has no room left over all workers: as many live leases, or claims within the last
-- minute, as the task to be claimed allows; those taken in this call count. The caller holds the
-- action's throttle.
create or replace function wf.wf_is_throttled(
    p_action_id bigint, p_max_concurrent integer, p_rate_per_minute integer, p_taken bigint[],
    p_now timestamptz
) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if p_max_concurrent <= (
        select count(*) from wf.task t
         where t.action_id = p_action_id and t.worker_id is not null
           and t.max_concurrent is not null) + (
        select count(*) from wf.task t
         where t.node_execution_id = any (p_taken) and t.action_id = p_action_id)
    then
        return true;
    end if;
    if p_rate_per_minute is null then
        return false;
    end if;
    delete from wf.action_claim c
     where c.action_id = p_action_id and c.claimed_at <= p_now - interval '1 minute';
    return p_rate_per_minute <= (select count(*) from wf.action_claim c
                                  where c.action_id = p_action_id);
end
$$;

-- Candidates of a claim, best first, read without a lock: of each action that the worker may take,
-- the first p_heads rows of the claim index, and of the rows pinned to it (R15). Soft preferences act
-- among these only.
create or replace function wf.wf_claim_candidates(
    p_worker_id text, p_capability text, p_heads integer
) returns table (node_execution_id bigint, action_id bigint, max_per_worker integer,
                 is_exclusive boolean, is_limited boolean, max_concurrent integer,
                 rate_per_minute integer)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
    with mine as materialized (
        select a.action_id
          from wf.workflow_action a
         where not a.paused
           and (p_capability is null or a.capability = p_capability)
           and exists (select 1 from wf.worker_capability c
                        where c.worker_id = p_worker_id and c.capability in (a.capability, '*'))
    ), heads as materialized (
        select h.*
          from mine m
         cross join lateral (
            select t.node_execution_id, t.action_id, t.priority, t.available_at,
                   t.workflow_instance_id, t.affinity_key, t.prefers_previous, t.prefers_group,
                   t.max_per_worker, t.is_exclusive, t.max_concurrent, t.rate_per_minute
              from wf.task t
             where t.action_id = m.action_id
               and t.is_claimable and t.worker_id is null and t.pinned_worker_id is null
             order by t.priority desc, t.available_at, t.node_execution_id
             limit p_heads) h
        union all
        select h.*
          from mine m
         cross join lateral (
            select t.node_execution_id, t.action_id, t.priority, t.available_at,
                   t.workflow_instance_id, t.affinity_key, t.prefers_previous, t.prefers_group,
                   t.max_per_worker, t.is_exclusive, t.max_concurrent, t.rate_per_minute
              from wf.task t
             where t.pinned_worker_id = p_worker_id and t.action_id = m.action_id
               and t.is_claimable and t.worker_id is null
             order by t.priority desc, t.available_at, t.node_execution_id
             limit p_heads) h
    )
    select h.node_execution_id, h.action_id, h.max_per_worker, h.is_exclusive,
           h.max_concurrent is not null or h.rate_per_minute is not null, h.max_concurrent,
           h.rate_per_minute
      from heads h
      left join wf.affinity f
        on (h.prefers_previous or h.prefers_group)
       and f.workflow_instance_id = h.workflow_instance_id and f.affinity_key = h.affinity_key
     order by h.priority desc,
              h.prefers_previous and coalesce(f.worker_id = p_worker_id, false) desc,
              h.prefers_group and f.worker_id is not null desc,
              h.available_at, h.node_execution_id;
end
$$;

-- Frees the tasks of an affinity key that are pinned to a worker, when it is gone. Answers how many.
-- Locks: the gate shared, the affinity row, its task rows. Errors: 20002 the key has no pin in this
-- instance.
create or replace function wf.sp_release_affinity(
    p_workflow_instance_id bigint, p_affinity_key text
) returns table (released_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_count integer;
begin
    perform wf.wf_take_gates(array[p_workflow_instance_id], '{}');
    update wf.affinity f set released_at = wf.wf_now()
     where f.workflow_instance_id = p_workflow_instance_id and f.affinity_key = p_affinity_key
       and f.pinned_worker_id is not null;
    if not found then
        perform wf.wf_raise(20002, format('instance %s has no pinned key %s',
                                          p_workflow_instance_id, p_affinity_key));
    end if;
    update wf.task t set pinned_worker_id = null
     where t.workflow_instance_id = p_workflow_instance_id and t.affinity_key = p_affinity_key
       and t.worker_id is null and t.pinned_worker_id is not null;
    get diagnostics v_count = row_count;
    return query select v_count;
end
$$;

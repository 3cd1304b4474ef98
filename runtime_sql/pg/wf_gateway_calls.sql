-- What a gateway asks on behalf of many waiting workers. Twin: mssql/wf_gateway_calls.sql

-- What a worker may claim and what it is told, when its token is good. Errors: 20001.
create or replace function wf.wf_worker_profile(p_worker_id text, p_worker_token text)
returns table (capabilities text[], desired_state text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform wf.wf_worker_authenticate(p_worker_id, p_worker_token);
    return query
    select array(select c.capability from wf.worker_capability c
                  where c.worker_id = w.worker_id order by c.capability), w.desired_state
      from wf.worker w
     where w.worker_id = p_worker_id;
end
$$;

-- For whom a claim may find something now: one row per capability with tasks that any worker may take
-- (of one action at most 100 are counted), one per capability and worker with tasks pinned to it, and
-- one without a capability per worker that was heard of within five minutes and is told to drain or
-- stop. Limits of actions and workers are left out of account: a claim may come back empty.
-- Reads the heads of the claim indexes; takes no lock.
create or replace function wf.wf_claimable_capabilities()
returns table (capability text, worker_id text, task_count integer)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
begin
    return query
    select a.capability, null::text, sum(h.task_count)::integer
      from wf.workflow_action a
     cross join lateral (
        select count(*) as task_count
          from (select 1 from wf.task t
                 where t.action_id = a.action_id and t.is_claimable and t.worker_id is null
                   and t.pinned_worker_id is null
                 limit 100) o) h
     where not a.paused and h.task_count > 0
     group by a.capability
    union all
    select a.capability, t.pinned_worker_id, count(*)::integer
      from wf.task t
      join wf.workflow_action a on a.action_id = t.action_id
     where t.is_claimable and t.worker_id is null and t.pinned_worker_id is not null
       and not a.paused
     group by a.capability, t.pinned_worker_id
    union all
    select null, w.worker_id, 0
      from wf.worker w
      join wf.worker_presence p on p.worker_id = w.worker_id
     where w.desired_state <> 'ACTIVE' and p.last_seen_at > wf.wf_now() - interval '5 minutes';
end
$$;

-- One row per capability of the catalog, for monitoring: how much waits and could be claimed as far as
-- its time and its instance go, for how long the oldest of it has, how much is in hand, and how much of
-- that has a lease that ran out. Reads all of wf.task; takes no lock.
create or replace function wf.wf_queue_depth()
returns table (capability text, ready_count integer, oldest_ready_ms bigint, leased_count integer,
               expired_count integer)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select a.capability,
           count(*) filter (where t.worker_id is null and t.is_claimable)::integer,
           coalesce((extract(epoch from wf.wf_now() - min(t.available_at)
               filter (where t.worker_id is null and t.is_claimable)) * 1000)::bigint, 0),
           count(t.worker_id)::integer,
           count(*) filter (where t.lease_until < wf.wf_now())::integer
      from wf.workflow_action a
      left join wf.task t on t.action_id = a.action_id
     group by a.capability
$$;

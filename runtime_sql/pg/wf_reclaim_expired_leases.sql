-- Leases whose worker went silent, and the periodic pass. Twin: mssql/wf_reclaim_expired_leases.sql

-- Takes back up to p_limit leases that have ended. The same attempt is offered again, up to the
-- action's max_deliveries; after that, or at the first loss of an action that is not idempotent, the
-- node fails with 10014 (R20). Answers how many leases were taken back.
-- Locks: a task row with SKIP LOCKED; for a node that fails, first its instance's gate exclusive,
-- also with SKIP LOCKED, so that no call ever waits here.
create or replace function wf.wf_reclaim_expired_leases(p_limit integer default 100)
returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_now   timestamptz := wf.wf_now();
    v_row   record;
    v_count integer := 0;
begin
    for v_row in
        select t.node_execution_id, t.workflow_instance_id,
               t.delivery_count >= a.max_deliveries or not coalesce(r.idempotent, true) as is_lost
          from wf.task t
          join wf.workflow_action a on a.action_id = t.action_id
          join wf.workflow_node n on n.node_id = t.node_id
          left join wf.workflow_action_revision r
            on r.action_name = n.action_name and r.revision = n.action_revision
         where t.worker_id is not null and t.lease_until < v_now
         order by t.lease_until, t.node_execution_id
         limit p_limit
    loop
        if v_row.is_lost then
            v_count := v_count + wf.wf_lose_task(v_row.node_execution_id,
                                                 v_row.workflow_instance_id, v_now);
            continue;
        end if;
        update wf.task t
           set worker_id = null, lease_until = null
         where t.node_execution_id = (
            select o.node_execution_id from wf.task o
             where o.node_execution_id = v_row.node_execution_id
               and o.worker_id is not null and o.lease_until < v_now
               for update skip locked);
        if found then
            v_count := v_count + 1;
        end if;
    end loop;
    return v_count;
end
$$;

-- Fails a node whose last delivery was lost (10014). Does nothing when somebody else holds the
-- instance's gate or the lease was extended meanwhile.
create or replace function wf.wf_lose_task(
    p_node_execution_id bigint, p_workflow_instance_id bigint, p_now timestamptz
) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform 1 from wf.workflow_instance i
      where i.workflow_instance_id = p_workflow_instance_id for update skip locked;
    if not found then
        return 0;
    end if;
    with gone as (
        delete from wf.task t
         where t.node_execution_id = p_node_execution_id and t.lease_until < p_now
        returning t.*
    )
    update wf.node_execution e
       set status = 'FAILED', result_code = null, engine_error_code = 10014,
           engine_error_message = wf.wf_execution_path(p_node_execution_id)
               || ': the lease was lost after its last delivery',
           error_execution_id = p_node_execution_id, input_json = g.input_json,
           worker_id = g.worker_id, attempt_no = g.attempt_no, delivery_count = g.delivery_count,
           last_token = g.lease_token, started_at = g.claimed_at, ended_at = p_now
      from gone g
     where e.node_execution_id = g.node_execution_id;
    if not found then
        return 0;
    end if;
    perform wf.wf_engine_run(
        array[row(1, p_node_execution_id, p_workflow_instance_id, 'F')::wf.agenda_entry],
        array[p_workflow_instance_id], p_now);
    return 1;
end
$$;

-- The periodic pass of workers and gateways: expired leases, and tasks that have become due.
-- Bounded: at most 100 of each. Answers what was done.
create or replace function wf.sp_tick()
returns table (reclaimed_count integer, released_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_released integer;
begin
    update wf.task t
       set is_claimable = true
     where t.node_execution_id in (
        select o.node_execution_id
          from wf.task o
          join wf.workflow_instance i on i.workflow_instance_id = o.workflow_instance_id
         where not o.is_claimable and o.available_at <= wf.wf_now() and i.status = 'RUNNING'
         order by o.available_at, o.node_execution_id
         limit 100
           for update of o skip locked);
    get diagnostics v_released = row_count;
    return query select wf.wf_reclaim_expired_leases(100), v_released;
end
$$;

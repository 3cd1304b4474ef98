-- Leases whose worker went silent. Twin: mssql/wf_reclaim_expired_leases.sql

-- Takes back up to p_limit leases that have ended (R20). A loss counts as a failed attempt when the
-- node's retry policy takes it; otherwise the same attempt is offered again, up to the action's
-- max_deliveries, and then, or at the first loss of an action that is not idempotent, the node fails
-- with 10014. Answers how many leases were taken back.
-- Locks: task rows with SKIP LOCKED; where an attempt ends, first its instance's gate exclusive, also
-- with SKIP LOCKED, so that no call ever waits here. What follows from such an end may wait for an
-- event's route, so the rows of those that are offered again are locked after all of it.
create or replace function wf.wf_reclaim_expired_leases(p_limit integer default 100)
returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_now   timestamptz := wf.wf_now();
    v_row   record;
    v_again bigint[] := '{}';
    v_count integer := 0;
begin
    for v_row in
        select t.node_execution_id, t.workflow_instance_id,
               wf.wf_retry_takes(n.retry_json, t.attempt_no - t.attempts_before, 'lease')
               or t.delivery_count >= coalesce(
                    (n.attributes_json #>> '{dispatch,max_deliveries}')::integer, a.max_deliveries)
               or not coalesce((n.attributes_json #>> '{dispatch,idempotent}')::boolean,
                               r.idempotent, true) as is_lost
          from wf.task t
          join wf.workflow_action a on a.action_id = t.action_id
          join wf.workflow_node n on n.node_id = t.node_id
          left join wf.workflow_action_revision r
            on r.action_name = n.action_name and r.revision = n.action_revision
         where t.worker_id is not null and t.lease_until < v_now
         order by t.lease_until, t.node_execution_id
         limit least(greatest(p_limit, 0), 10000)
    loop
        if not v_row.is_lost then
            v_again := v_again || v_row.node_execution_id;
            continue;
        end if;
        -- In a savepoint: whatever one instance makes of its loss, the others are taken back.
        begin
            v_count := v_count + wf.wf_lose_task(v_row.node_execution_id,
                                                 v_row.workflow_instance_id, v_now);
        exception when others then
            raise warning 'instance % could not be told of a lost lease: %',
                v_row.workflow_instance_id, sqlerrm;
        end;
    end loop;
    -- The attempt goes on under its number; who lost it, and when, stays known (R4).
    with lost as (
        select o.node_execution_id, o.lease_token, o.attempt_no, o.worker_id, o.claimed_at
          from wf.task o
         where o.node_execution_id = any (v_again)
           and o.worker_id is not null and o.lease_until < v_now
         order by o.node_execution_id
           for update skip locked
    ), kept as (
        insert into wf.node_attempt (node_execution_id, lease_token, attempt_no, worker_id, answer,
                                     engine_error_code, engine_error_message, claimed_at, ended_at)
        select l.node_execution_id, l.lease_token, l.attempt_no, l.worker_id, 'OK', 10014,
               'the lease was lost; the attempt is offered again', l.claimed_at, v_now
          from lost l
    ), offered as (
        update wf.task t
           set worker_id = null, lease_until = null, deadline_at = null
          from lost l
         where t.node_execution_id = l.node_execution_id
        returning 1
    )
    select v_count + count(*) into v_count from offered;
    return v_count;
end
$$;

-- Ends an attempt whose lease was lost (10014). Does nothing when another call holds the instance's
-- gate or the task, or the lease was extended meanwhile.
create or replace function wf.wf_lose_task(
    p_node_execution_id bigint, p_workflow_instance_id bigint, p_now timestamptz
) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_task  wf.task;
    v_retry jsonb;
begin
    perform 1 from wf.workflow_instance i
      where i.workflow_instance_id = p_workflow_instance_id for update skip locked;
    if not found then
        return 0;
    end if;
    select t.* into v_task from wf.task t
     where t.node_execution_id = p_node_execution_id and t.lease_until < p_now
       for update skip locked;
    if not found then
        return 0;
    end if;
    select n.retry_json into v_retry from wf.workflow_node n where n.node_id = v_task.node_id;
    perform wf.wf_fail_attempt(v_task, v_retry, 'lease', 10014,
                               'the lease was lost after its last delivery', p_now);
    return 1;
end
$$;

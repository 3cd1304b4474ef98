-- What happens by itself at a time: time-outs, sleeps, tasks that become due. Twin: mssql/wf_timers.sql
--
-- No process of its own (R21): the passes run within a claim and in sp_tick, bounded and backed by
-- an index. A deadline counts from the moment it is due: a submit or an event first applies what is
-- due in its instance (wf_apply_due), so it loses against a deadline that no pass has seen yet.

-- Applies every timer of one instance that is due, in due order, and the time-outs of its leased
-- ACTIONs. Answers whether there was one. All of it is within one work limit (R25): a timer that is due
-- may set others that are due at once. Needs the instance's gate exclusive.
create or replace function wf.wf_apply_due(p_workflow_instance_id bigint, p_now timestamptz)
returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_found boolean := false;
begin
    loop
        select q.node_execution_id, q.is_task into v_row
          from (select t.node_execution_id, t.due_at, false as is_task
                  from wf.timer t
                 where t.workflow_instance_id = p_workflow_instance_id and t.due_at <= p_now
                union all
                select k.node_execution_id, k.deadline_at, true
                  from wf.task k
                 where k.workflow_instance_id = p_workflow_instance_id and k.deadline_at <= p_now) q
         order by q.due_at, q.node_execution_id
         limit 1;
        exit when not found;
        if not v_found then
            perform set_config('wf.work_left', wf.wf_work_limit()::text, true);
        end if;
        v_found := true;
        if v_row.is_task then
            perform wf.wf_time_out_task(v_row.node_execution_id, p_workflow_instance_id, p_now);
        else
            delete from wf.timer t where t.node_execution_id = v_row.node_execution_id;
            perform wf.wf_engine_run(wf.wf_timer_entry(v_row.node_execution_id,
                                                       p_workflow_instance_id, p_now),
                                     array[p_workflow_instance_id], p_now);
        end if;
    end loop;
    if v_found then
        perform set_config('wf.work_left', '', true);
    end if;
    return v_found;
end
$$;

-- The agenda of one timer that is due: a sleep has succeeded, anything else has timed out.
create or replace function wf.wf_timer_entry(
    p_node_execution_id bigint, p_workflow_instance_id bigint, p_now timestamptz
) returns wf.agenda_entry[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_node record;
begin
    select n.node_type = 'SEQUENCE' and n.delay_ms is not null as is_sleep, n.success_may_close
      into v_node
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_node_execution_id;
    if v_node.is_sleep then
        update wf.node_execution e set status = 'SUCCEEDED', result_code = 0, ended_at = p_now
         where e.node_execution_id = p_node_execution_id;
    end if;
    return array[wf.wf_agenda_entry(
        1, p_node_execution_id, p_workflow_instance_id,
        case when not v_node.is_sleep then 'T'
             when v_node.success_may_close then 'J' else 'S' end)];
end
$$;

-- An ACTION ran past its timeout: the attempt fails with 10013, and may be made again. Needs the
-- exclusive gate.
create or replace function wf.wf_time_out_task(
    p_node_execution_id bigint, p_workflow_instance_id bigint, p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_task wf.task;
    v_node record;
begin
    select t.* into v_task from wf.task t
     where t.node_execution_id = p_node_execution_id and t.deadline_at <= p_now for update;
    if not found then
        return;
    end if;
    select n.retry_json, n.timeout_ms into v_node
      from wf.workflow_node n where n.node_id = v_task.node_id;
    perform wf.wf_fail_attempt(v_task, v_node.retry_json, '10013', 10013,
        format('timed out after %s ms', v_node.timeout_ms), p_now);
end
$$;

-- An attempt that the engine itself ends with an error: made again when the retry policy takes
-- p_failure, else its node fails. Needs the exclusive gate and the task's row.
create or replace function wf.wf_fail_attempt(
    p_task wf.task, p_retry jsonb, p_failure text, p_engine_error_code integer, p_text text,
    p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_message text := wf.wf_execution_path(p_task.node_execution_id) || ': ' || p_text;
begin
    if wf.wf_retry_takes(p_retry, p_task.attempt_no - p_task.attempts_before, p_failure) then
        perform wf.wf_retry_task(p_task, p_retry, null, p_engine_error_code, v_message, null, p_now);
        return;
    end if;
    delete from wf.task t where t.node_execution_id = p_task.node_execution_id;
    update wf.node_execution e
       set status = 'FAILED', result_code = null, engine_error_code = p_engine_error_code,
           engine_error_message = v_message, error_execution_id = p_task.node_execution_id,
           input_json = p_task.input_json, worker_id = p_task.worker_id,
           attempt_no = p_task.attempt_no, delivery_count = p_task.delivery_count,
           last_token = p_task.lease_token, started_at = p_task.claimed_at, ended_at = p_now
     where e.node_execution_id = p_task.node_execution_id;
    perform wf.wf_engine_run(
        array[wf.wf_agenda_entry(1, p_task.node_execution_id, p_task.workflow_instance_id, 'F')],
        array[p_task.workflow_instance_id], p_now);
end
$$;

-- Makes delayed tasks claimable whose time has come; those of a paused instance wait. Answers how
-- many. Locks: task rows, and their gates shared, so that no pause comes in between; both with SKIP
-- LOCKED.
create or replace function wf.wf_release_due_tasks(p_limit integer, p_now timestamptz)
returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_count integer;
begin
    -- Most calls find nothing, and this alone is cheap.
    if not exists (select 1 from wf.task t where not t.is_claimable and t.available_at <= p_now) then
        return 0;
    end if;
    update wf.task t
       set is_claimable = true
     where t.node_execution_id in (
        select o.node_execution_id
          from wf.task o
          join wf.workflow_instance i on i.workflow_instance_id = o.workflow_instance_id
         where not o.is_claimable and o.available_at <= p_now and i.status = 'RUNNING'
         order by o.available_at, o.node_execution_id
         limit p_limit
           for update of o skip locked
           for key share of i skip locked);
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

-- Applies what is due, instance by instance, in due order; an instance that another call is at, or
-- that is paused, is left for the next pass. Answers how many instances it went through.
-- Locks: gates exclusive with SKIP LOCKED, so no call ever waits here.
create or replace function wf.wf_run_timers(p_limit integer, p_now timestamptz) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_id    bigint;
    v_count integer := 0;
begin
    for v_id in
        select q.workflow_instance_id
          from ((select t.workflow_instance_id, t.due_at from wf.timer t
                  where t.due_at <= p_now order by t.due_at, t.node_execution_id limit p_limit)
                union all
                (select k.workflow_instance_id, k.deadline_at from wf.task k
                  where k.deadline_at <= p_now order by k.deadline_at, k.node_execution_id
                  limit p_limit)) q
         group by q.workflow_instance_id
         order by min(q.due_at), q.workflow_instance_id
    loop
        perform 1 from wf.workflow_instance i
          where i.workflow_instance_id = v_id and i.status = 'RUNNING' for update skip locked;
        continue when not found;
        -- In a savepoint: whatever one instance makes of its timers, the others' act.
        begin
            if wf.wf_apply_due(v_id, p_now) then
                v_count := v_count + 1;
            end if;
        exception when others then
            raise warning 'timers of instance % could not act: %', v_id, sqlerrm;
        end;
    end loop;
    return v_count;
end
$$;

-- The periodic pass of workers and gateways, who call it every few seconds, so that a graph that only
-- waits moves too: expired leases, timers, delayed tasks. Bounded: at most 100 of each.
create or replace function wf.sp_tick()
returns table (reclaimed_count integer, timer_count integer, released_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_now timestamptz := wf.wf_now();
begin
    timer_count := wf.wf_run_timers(100, v_now);
    reclaimed_count := wf.wf_reclaim_expired_leases(100);
    released_count := wf.wf_release_due_tasks(100, v_now);
    return next;
end
$$;

-- Administration: workers and instances. Twin: mssql/04_admin.sql

-- Registers a worker or renews it: its capabilities (`*`: all actions), and its token. A worker has
-- at most two live tokens, so that one can be rotated while the other is in use; the older goes.
-- Errors: 20004 an argument is out of bounds.
create or replace function wf.sp_register_worker(
    p_worker_id text, p_worker_token text, p_capabilities text[], p_max_concurrency integer default 1
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_now      timestamptz := wf.wf_now();
    v_salt     bytea := uuid_send(gen_random_uuid());
    v_token_id text;
begin
    perform wf.wf_check_key('worker_id', p_worker_id);
    if p_worker_token is null or char_length(p_worker_token) not between 20 and 200 then
        perform wf.wf_raise(20004, 'worker_token must have 20 to 200 characters');
    end if;
    perform wf.wf_check_key('capability', c) from unnest(p_capabilities) c;
    if p_max_concurrency is null or p_max_concurrency not between 1 and 1000 then
        perform wf.wf_raise(20004, 'max_concurrency must be between 1 and 1000');
    end if;
    insert into wf.worker as w (worker_id, max_concurrency, registered_at)
    values (p_worker_id, p_max_concurrency, v_now)
    on conflict (worker_id) do update
        set max_concurrency = excluded.max_concurrency, desired_state = 'ACTIVE';
    delete from wf.worker_capability c
     where c.worker_id = p_worker_id and c.capability <> all (coalesce(p_capabilities, '{}'));
    insert into wf.worker_capability (worker_id, capability)
    select distinct p_worker_id, c from unnest(coalesce(p_capabilities, '{}')) c
    on conflict do nothing;
    v_token_id := encode(v_salt, 'hex');
    insert into wf.worker_token (worker_id, token_id, salt, token_hash, created_at)
    values (p_worker_id, v_token_id, v_salt,
            sha256(v_salt || convert_to(p_worker_token, 'UTF8')), v_now);
    delete from wf.worker_token t
     where t.worker_id = p_worker_id
       and t.token_id not in (select o.token_id from wf.worker_token o
                               where o.worker_id = p_worker_id and o.revoked_at is null
                               order by (o.token_id = v_token_id) desc, o.created_at desc limit 2);
    insert into wf.worker_presence (worker_id, last_seen_at) values (p_worker_id, v_now)
        on conflict (worker_id) do update set last_seen_at = excluded.last_seen_at;
end
$$;

-- Sets what a worker is told at its next claim or heartbeat: ACTIVE, DRAINING or STOPPING.
-- Locks: the worker's row. Errors: 20002 unknown worker, 20004 unknown state.
create or replace function wf.sp_set_worker_state(p_worker_id text, p_desired_state text)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if p_desired_state is null or p_desired_state not in ('ACTIVE', 'DRAINING', 'STOPPING') then
        perform wf.wf_raise(20004, 'desired_state must be ACTIVE, DRAINING or STOPPING');
    end if;
    update wf.worker w set desired_state = p_desired_state where w.worker_id = p_worker_id;
    if not found then
        perform wf.wf_raise(20002, format('there is no worker %s', left(p_worker_id, 200)));
    end if;
end
$$;

-- Instances ---------------------------------------------------------------------------------------

-- Refuses, with 40001, to go on with a snapshot that does not show all that was committed before a
-- gate was taken: under REPEATABLE READ and SERIALIZABLE the lock of a row that others only locked is
-- given to a call that cannot see what they have activated. Other calls end what the others ended, too,
-- and are refused by that; a pause is not. Any commit since the snapshot counts, so that under these
-- levels an operator's call is best the first of its transaction.
create or replace function wf.wf_check_snapshot() returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_snapshot pg_snapshot;
    v_from     bigint;
    v_to       bigint;
begin
    if current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
        return;
    end if;
    v_snapshot := pg_current_snapshot();
    v_from := pg_snapshot_xmax(v_snapshot)::text::bigint;
    v_to := pg_current_xact_id()::text::bigint;
    if v_to - v_from > 10000 or exists (
        select 1
          from (select x::text::bigint as id from pg_snapshot_xip(v_snapshot) x
                union all
                select g.id from generate_series(v_from, v_to) g(id)) q
         where pg_xact_status(q.id::text::xid8) = 'committed')
    then
        raise exception 'could not serialize access: the snapshot is older than the gate'
            using errcode = 'serialization_failure';
    end if;
end
$$;

-- Takes an instance's gate exclusive and answers its status. Errors: 20002 unknown instance.
create or replace function wf.wf_lock_instance(p_workflow_instance_id bigint) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_status text;
begin
    select i.status into v_status
      from wf.workflow_instance i
     where i.workflow_instance_id = p_workflow_instance_id for update;
    if not found then
        perform wf.wf_raise(20002, format('there is no workflow instance %s',
                                          p_workflow_instance_id));
    end if;
    perform wf.wf_check_snapshot();
    return v_status;
end
$$;

-- Cancels an instance: everything open ends at once and neither on_error nor finally runs (R13). A
-- worker with a task of it hears CANCEL at its next heartbeat. Cancelling a cancelled one again
-- changes nothing. Locks: the gate exclusive. Errors: 20002; 20003 it has succeeded or failed.
create or replace function wf.sp_cancel_workflow_instance(
    p_workflow_instance_id bigint, p_reason text default null
) returns table (instance_status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_status text := wf.wf_lock_instance(p_workflow_instance_id);
    v_now    timestamptz := wf.wf_now();
    v_root   bigint;
begin
    if v_status in ('SUCCEEDED', 'FAILED') then
        perform wf.wf_raise(20003, format('instance %s has %s', p_workflow_instance_id,
                                          lower(v_status)));
    end if;
    if v_status <> 'CANCELLED' then
        select i.root_execution_id into v_root
          from wf.workflow_instance i where i.workflow_instance_id = p_workflow_instance_id;
        perform wf.wf_cancel_below(1, p_workflow_instance_id, v_root, true, v_now);
        perform wf.wf_cancel_executions(array_remove(array[v_root], null), true, v_now);
        delete from wf.timer t where t.node_execution_id = v_root;
        update wf.workflow_instance i
           set status = 'CANCELLED', ended_at = v_now, cancel_reason = p_reason,
               engine_error_code = 10016,
               engine_error_message = 'cancelled by an operator' || coalesce(': ' || p_reason, ''),
               error_execution_id = v_root
         where i.workflow_instance_id = p_workflow_instance_id;
        insert into wf.audit_log (at, what, detail_json)
        values (v_now, 'cancel', jsonb_build_object('instance', p_workflow_instance_id,
                                                    'reason', p_reason));
    end if;
    return query select 'CANCELLED'::text;
end
$$;

-- Pauses a running instance: nothing of it is claimed and no timer acts until it is resumed; results,
-- heartbeats and events are taken as ever, and what they activate waits (R14).
-- Locks: the gate exclusive. Errors: 20002; 20003 it is not running.
create or replace function wf.sp_pause_workflow_instance(p_workflow_instance_id bigint)
returns table (instance_status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_status text := wf.wf_lock_instance(p_workflow_instance_id);
begin
    if v_status not in ('RUNNING', 'PAUSED') then
        perform wf.wf_raise(20003, format('instance %s is %s, not running',
                                          p_workflow_instance_id, lower(v_status)));
    end if;
    update wf.workflow_instance i set status = 'PAUSED'
     where i.workflow_instance_id = p_workflow_instance_id;
    update wf.task t set is_claimable = false
     where t.workflow_instance_id = p_workflow_instance_id;
    return query select 'PAUSED'::text;
end
$$;

-- Resumes a paused instance; timers that came due meanwhile act now, in due order.
-- Locks: the gate exclusive. Errors: 20002; 20003 it is not paused.
create or replace function wf.sp_resume_workflow_instance(p_workflow_instance_id bigint)
returns table (instance_status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_status text := wf.wf_lock_instance(p_workflow_instance_id);
    v_now    timestamptz := wf.wf_now();
begin
    if v_status not in ('RUNNING', 'PAUSED') then
        perform wf.wf_raise(20003, format('instance %s is %s, not paused',
                                          p_workflow_instance_id, lower(v_status)));
    end if;
    if v_status = 'PAUSED' then
        update wf.workflow_instance i set status = 'RUNNING'
         where i.workflow_instance_id = p_workflow_instance_id;
        update wf.task t set is_claimable = t.available_at <= v_now
         where t.workflow_instance_id = p_workflow_instance_id;
        perform wf.wf_apply_due(p_workflow_instance_id, v_now);
    end if;
    return query select i.status from wf.workflow_instance i
                  where i.workflow_instance_id = p_workflow_instance_id;
end
$$;

-- Removes up to p_limit instances that ended before p_ended_before, with all their rows; events and
-- bundles stay. Call it until it answers 0. Locks: the gates of the instances it removes, with SKIP
-- LOCKED. Errors: 20004 an argument is missing or out of bounds.
create or replace function wf.sp_purge_instances(
    p_ended_before timestamptz, p_limit integer default 1000
) returns table (purged_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_ids bigint[];
begin
    if p_ended_before is null or p_limit is null or p_limit not between 1 and 10000 then
        perform wf.wf_raise(20004, 'ended_before must be a time and limit between 1 and 10000');
    end if;
    v_ids := array(
        select i.workflow_instance_id
          from wf.workflow_instance i
         where i.status in ('SUCCEEDED', 'FAILED', 'CANCELLED') and i.ended_at < p_ended_before
         order by i.workflow_instance_id
         limit p_limit
           for update skip locked);
    perform wf.wf_remove_instances(v_ids);
    return query select coalesce(cardinality(v_ids), 0);
end
$$;

-- Removes instances that have ended, with all their rows; the caller holds their rows locked.
create or replace function wf.wf_remove_instances(p_instances bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    delete from wf.scope_variable v using wf.scope s
     where s.workflow_instance_id = any (p_instances) and v.scope_id = s.scope_id;
    delete from wf.scope s where s.workflow_instance_id = any (p_instances);
    delete from wf.node_attempt a using wf.node_execution e
     where e.workflow_instance_id = any (p_instances) and a.node_execution_id = e.node_execution_id;
    perform wf.wf_forget_progress(array(
        select e.node_execution_id from wf.node_execution e
         where e.workflow_instance_id = any (p_instances) and e.status in ('FAILED', 'CANCELLED')));
    delete from wf.node_execution e where e.workflow_instance_id = any (p_instances);
    delete from wf.execution_context x where x.workflow_instance_id = any (p_instances);
    delete from wf.instance_extension x where x.workflow_instance_id = any (p_instances);
    delete from wf.validation_plan p where p.workflow_instance_id = any (p_instances);
    delete from wf.instance_tag t where t.workflow_instance_id = any (p_instances);
    delete from wf.affinity a where a.workflow_instance_id = any (p_instances);
    delete from wf.workflow_instance i where i.workflow_instance_id = any (p_instances);
end
$$;

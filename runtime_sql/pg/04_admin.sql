-- Administration: workers. Twin: mssql/04_admin.sql

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
        perform wf.wf_raise(20002, format('there is no worker %s', p_worker_id));
    end if;
end
$$;

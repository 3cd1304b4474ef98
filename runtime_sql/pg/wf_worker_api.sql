-- What a worker calls: claim, submit, heartbeat, fail, release. Twin: mssql/wf_worker_api.sql
--
-- Every call names the worker and its token. A claim hands out a lease with a token that only grows
-- per execution; a call under a lease token that is no longer current changes nothing (R4).

-- Checks a worker's token. Raises 20001; says the same whether the worker or the token is unknown.
-- The digest is compared whole, so no prefix leaks.
create or replace function wf.wf_worker_authenticate(p_worker_id text, p_worker_token text)
returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if p_worker_id is null or p_worker_token is null or not exists (
        select 1 from wf.worker_token t
         where t.worker_id = p_worker_id
           and t.revoked_at is null
           and (t.expires_at is null or t.expires_at > wf.wf_now())
           and t.token_hash = sha256(t.salt || convert_to(p_worker_token, 'UTF8')))
    then
        perform wf.wf_raise(20001, 'the worker is not known or its token is not valid');
    end if;
end
$$;

-- What a worker in this state is told with its claims (R28). Without a search_path of its own, so that
-- it becomes part of the statement that calls it.
create or replace function wf.wf_worker_command(p_desired_state text) returns text
language sql immutable as $$
    select case p_desired_state when 'DRAINING' then 'DRAIN' when 'STOPPING' then 'STOP'
                                else 'NONE' end
$$;

-- Takes up to p_max_tasks tasks that this worker may do, best first (wf_dispatch.sql has the rules).
-- p_capability narrows to one of the worker's capabilities; null means all of them. A worker that is to
-- end gets one row without a task, which brings the command (R28).
-- Locks: the worker's row (claims of one worker queue, of different workers never do), then throttles
-- of limited actions and task rows with SKIP LOCKED. Never a gate.
-- Errors: 20001; 20004 p_max_tasks or p_max_lease_seconds out of range.
create or replace function wf.sp_worker_request_tasks(
    p_worker_id text, p_worker_token text, p_capability text default null,
    p_max_lease_seconds integer default 300, p_max_tasks integer default 1
) returns table (
    node_execution_id bigint, workflow_instance_id bigint, node_key text, action_name text,
    capability text, attempt_no integer, input_json jsonb, iteration_no integer,
    desired_state text, command text, lease_token bigint, lease_until_utc timestamptz,
    deadline_utc timestamptz, path text
)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_now   timestamptz;
    v_state text;
    v_seen  timestamptz;
    v_taken bigint[] := '{}';
begin
    perform wf.wf_worker_authenticate(p_worker_id, p_worker_token);
    if p_max_tasks is null or p_max_tasks not between 1 and 1000 then
        perform wf.wf_raise(20004, 'max_tasks must be between 1 and 1000');
    end if;
    if p_max_lease_seconds is null or p_max_lease_seconds not between 1 and 86400 then
        perform wf.wf_raise(20004, 'max_lease_seconds must be between 1 and 86400');
    end if;
    v_now := wf.wf_now();
    -- Timers first: a time-out that is due wins over the loss of the lease (R21), and what they set
    -- going may wait for an event's route, which nobody may do who holds task rows.
    -- Mostly nothing is due, and one look says so.
    if exists (select 1 from wf.timer t where t.due_at <= v_now)
       or exists (select 1 from wf.task t where t.deadline_at <= v_now)
       or exists (select 1 from wf.task t where t.worker_id is not null and t.lease_until < v_now)
       or exists (select 1 from wf.task t where not t.is_claimable and t.available_at <= v_now)
    then
        perform wf.wf_run_timers(100, v_now);
        perform wf.wf_reclaim_expired_leases(100);
        perform wf.wf_release_due_tasks(100, v_now);
    end if;
    select w.desired_state, p.last_seen_at into v_state, v_seen
      from wf.worker w
      left join wf.worker_presence p on p.worker_id = w.worker_id
     where w.worker_id = p_worker_id for update of w;
    -- To the second is enough, and spares most claims a row.
    if v_seen is null or v_seen not between v_now - interval '1 second' and v_now then
        insert into wf.worker_presence (worker_id, last_seen_at) values (p_worker_id, v_now)
            on conflict (worker_id) do update set last_seen_at = excluded.last_seen_at;
    end if;
    if v_state <> 'ACTIVE' then
        return query
        select null::bigint, null::bigint, null::text, null::text, null::text, null::integer,
               null::jsonb, null::integer, v_state, wf.wf_worker_command(v_state),
               null::bigint, null::timestamptz, null::timestamptz, null::text;
        return;
    end if;
    v_taken := wf.wf_claim_lock(p_worker_id, p_capability, p_max_tasks, v_now);
    return query
    with leased as (
        update wf.task t
           set worker_id = p_worker_id, claimed_at = v_now,
               lease_until = v_now + make_interval(secs =>
                   least(p_max_lease_seconds::double precision,
                         coalesce(n.lease_ms / 1000.0, p_max_lease_seconds))),
               lease_token = t.lease_token + 1, delivery_count = t.delivery_count + 1,
               deadline_at = v_now + n.timeout_ms * interval '1 millisecond'
          from unnest(v_taken) k(node_execution_id), wf.workflow_node n
          left join wf.workflow_node r
            -- By key: the index over parents has all roots.
            on r.node_id = n.parent_node_id and coalesce(r.parent_node_id, 0) = 0
           and not (r.is_generated or n.is_generated)
         where t.node_execution_id = k.node_execution_id and n.node_id = t.node_id
        returning t.node_execution_id, t.workflow_instance_id, t.action_id, t.attempt_no,
                  t.input_json, t.lease_token, t.lease_until, t.deadline_at, n.node_key,
                  n.action_name, r.node_key || '/' || n.node_key as path
    )
    select l.node_execution_id, l.workflow_instance_id, l.node_key, l.action_name, a.capability,
           l.attempt_no, l.input_json, coalesce(p.iteration_no, 0),
           v_state, wf.wf_worker_command(v_state),
           l.lease_token, l.lease_until, l.deadline_at, coalesce(l.path, p.path)
      from leased l
      join wf.workflow_action a on a.action_id = l.action_id
      -- What stands right below the root needs no climb to know its place.
      left join wf.wf_execution_places(array(
                    select d.node_execution_id from leased d where d.path is null)) p
        on p.node_execution_id = l.node_execution_id
     order by array_position(v_taken, l.node_execution_id);
end
$$;

-- One task, as exactly one row: the task's columns are null when there is none. See the batch form.
create or replace function wf.sp_worker_request_task(
    p_worker_id text, p_worker_token text, p_capability text default null,
    p_max_lease_seconds integer default 300
) returns table (
    node_execution_id bigint, workflow_instance_id bigint, node_key text, action_name text,
    capability text, attempt_no integer, input_json jsonb, iteration_no integer,
    desired_state text, command text, lease_token bigint, lease_until_utc timestamptz,
    deadline_utc timestamptz, path text
)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
    return query select * from wf.sp_worker_request_tasks(p_worker_id, p_worker_token, p_capability,
                                                          p_max_lease_seconds, 1);
    if not found then
        return query
        select null::bigint, null::bigint, null::text, null::text, null::text, null::integer,
               null::jsonb, null::integer, w.desired_state, wf.wf_worker_command(w.desired_state),
               null::bigint, null::timestamptz, null::timestamptz, null::text
          from wf.worker w
         where w.worker_id = p_worker_id;
    end if;
end
$$;

create type wf.submit_item as (
    position           integer,
    node_execution_id  bigint,
    lease_token        bigint,
    result_code        integer,
    message            text,
    output_json        jsonb
);

-- Completes many tasks of one worker in one transaction. The single calls are this with one item.
-- Locks: gates (ascending), task rows, executions, then what the continuation touches
-- (03_engine_core.sql). Where something may turn out to close other work under a shared gate, the
-- attempt runs in a savepoint and starts over with that gate exclusive.
-- Errors: 20002, 20004, 20005 (wf_check_submit).
create or replace function wf.wf_submit(p_worker_id text, p_items wf.submit_item[])
returns table (item_position integer, accepted boolean, instance_status text,
               next_ready_count integer, reason text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_shared     bigint[];
    v_exclusive  bigint[];
    v_fails_late boolean;
    v_is_doubtful boolean;
    v_detail     text;
begin
    select coalesce(array_agg(distinct t.workflow_instance_id
                              order by t.workflow_instance_id), '{}'),
           coalesce(array_agg(distinct t.workflow_instance_id order by t.workflow_instance_id)
                    filter (where n.may_close
                               or i.result_code < 0 and not wf.wf_retry_takes(
                                    n.retry_json, t.attempt_no - t.attempts_before, i.result_code::text)
                               or v.has_deadlines and wf.wf_has_due(t.workflow_instance_id)), '{}'),
           -- A lowered work limit can fail any activation.
           coalesce(bool_or(v.may_fail_late), false) or exists (
               select 1 from wf.wf_setting s where s.name = 'max_activations_per_call'),
           -- A task that is there belongs to an execution that is known.
           count(*) < cardinality(p_items) or bool_or(
               i.result_code is null or pg_column_size(i.output_json) > 16777216)
      into v_shared, v_exclusive, v_fails_late, v_is_doubtful
      from unnest(p_items) i
      join wf.task t on t.node_execution_id = i.node_execution_id
      join wf.workflow_node n on n.node_id = t.node_id
      join wf.workflow_version v on v.workflow_version_id = n.workflow_version_id;
    if v_is_doubtful then
        perform wf.wf_check_submit(p_items);
    end if;
    loop
        if not v_fails_late or v_shared <@ v_exclusive then
            return query select * from wf.wf_submit_attempt(p_worker_id, p_items, v_shared, v_exclusive);
            return;
        end if;
        begin
            return query select * from wf.wf_submit_attempt(p_worker_id, p_items, v_shared, v_exclusive);
            return;
        exception when sqlstate 'WFX01' then
            get stacked diagnostics v_detail = pg_exception_detail;
            v_exclusive := v_exclusive || v_detail::bigint;
        end;
    end loop;
end
$$;

-- Whether an instance has a deadline that is due.
create or replace function wf.wf_has_due(p_workflow_instance_id bigint) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
    select exists (select 1 from wf.timer t
                    where t.workflow_instance_id = p_workflow_instance_id
                      and t.due_at <= wf.wf_now())
        or exists (select 1 from wf.task k
                    where k.workflow_instance_id = p_workflow_instance_id
                      and k.deadline_at <= wf.wf_now())
$$;

-- Takes the gates of a call in ascending order, each in its strength.
create or replace function wf.wf_take_gates(p_instances bigint[], p_exclusive bigint[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_id bigint;
begin
    if cardinality(p_exclusive) = 0 then
        perform 1 from wf.workflow_instance i
          where i.workflow_instance_id = any (p_instances)
          order by i.workflow_instance_id
            for key share;
        return;
    end if;
    foreach v_id in array array(select distinct u from unnest(p_instances || p_exclusive) u order by u)
    loop
        if v_id = any (p_exclusive) then
            perform 1 from wf.workflow_instance i where i.workflow_instance_id = v_id for update;
        else
            perform 1 from wf.workflow_instance i where i.workflow_instance_id = v_id for key share;
        end if;
    end loop;
end
$$;

-- One attempt at a submit: takes the gates, completes what is under a current lease, runs the
-- continuation, and answers every item.
create or replace function wf.wf_submit_attempt(
    p_worker_id text, p_items wf.submit_item[], p_instances bigint[], p_exclusive bigint[]
)
returns table (item_position integer, accepted boolean, instance_status text,
               next_ready_count integer, reason text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_now   timestamptz;
    v_id    bigint;
    v_done  integer[];
    v_again integer[];
    v_keys  bigint[];
    v_level wf.agenda_entry[];
    v_others wf.agenda_entry[];
    v_plain wf.agenda_step[];
    v_mark  bigint;
    v_sets  boolean;
begin
    perform wf.wf_take_gates(p_instances, p_exclusive);
    v_now := wf.wf_now();
    foreach v_id in array p_exclusive loop
        -- What is due wins over what is submitted now (R21).
        perform wf.wf_apply_due(v_id, v_now)
          from wf.workflow_instance i
         where i.workflow_instance_id = v_id and i.status = 'RUNNING';
    end loop;
    v_again := wf.wf_retry_items(p_worker_id, p_items, v_now);
    -- Every entry is S until its `set`s have run; wf_complete_items turns the failed ones.
    with gone as (
        delete from wf.task t
         using unnest(p_items) i
         where t.node_execution_id = i.node_execution_id
           -- Says nothing, and makes the planner expect one item: else it may read all tasks and join
           -- them with the items, as long as it knows of few.
           and abs(i.position) = i.position
           -- Found by key, not by worker: that index holds all that this worker took since the last
           -- vacuum.
           and coalesce(t.worker_id, '') = p_worker_id
           and t.lease_token = coalesce(i.lease_token, t.lease_token)
        returning t.node_execution_id, t.node_id, t.input_json, t.worker_id, t.attempt_no,
                  t.delivery_count, t.lease_token, t.claimed_at, t.affinity_key,
                  i.position, i.result_code, i.message, i.output_json
    ), ended as (
        update wf.node_execution e
           set status = case when g.result_code >= 0 then 'SUCCEEDED' else 'FAILED' end,
               result_code = g.result_code,
               engine_error_message = case when g.result_code >= 0 then null
                   else coalesce(g.message, 'result code ' || g.result_code) end,
               error_execution_id = case when g.result_code >= 0 then null
                                         else e.node_execution_id end,
               output_json = g.output_json, input_json = g.input_json, worker_id = g.worker_id,
               attempt_no = g.attempt_no, delivery_count = g.delivery_count,
               last_token = g.lease_token, answered_code = g.result_code, answer = 'OK',
               started_at = g.claimed_at, ended_at = v_now
          from gone g
          join wf.workflow_node n on n.node_id = g.node_id
         where e.node_execution_id = g.node_execution_id
        returning g.position, e.node_execution_id, e.workflow_instance_id, e.node_id,
                  e.parent_execution_id, e.scope_id,
                  case when g.result_code < 0 then 'F'
                       when n.success_may_close then 'J' else 'S' end as kind,
                  g.affinity_key, n.has_output_bindings, n.edge_kind, n.next_node_id
    )
    select coalesce(array_agg(row(x.position, x.node_execution_id, x.workflow_instance_id, x.kind,
                                  x.node_id, x.parent_execution_id, x.scope_id)
                              ::wf.agenda_entry order by x.position), '{}'),
           coalesce(array_agg(x.position), '{}'),
           coalesce(array_agg(x.node_execution_id) filter (
               where x.affinity_key is not null and x.kind <> 'F'), '{}'),
           coalesce(bool_or(x.has_output_bindings), false),
           array_agg(row(x.position, 0, 'START', x.parent_execution_id, x.workflow_instance_id,
                         x.next_node_id, 0, null, null, null, null, null)::wf.agenda_step)
               filter (where wf.wf_is_plain_action(n, k))
      into v_level, v_done, v_keys, v_sets, v_plain
      from ended x
      left join wf.workflow_node n
        on x.kind = 'S' and x.edge_kind = 'SEQUENCE' and n.node_id = x.next_node_id
      left join wf.workflow_action k on k.action_id = n.action_id;
    if v_sets then
        v_level := wf.wf_complete_items(v_level);
    end if;
    if cardinality(v_level) > 0 then
        v_mark := nextval('wf.node_execution_id_seq');
        if cardinality(v_keys) > 0 then
            perform wf.wf_remember_workers(v_keys);
        end if;
        if v_plain is null then
            perform wf.wf_engine_run(v_level, p_exclusive, v_now);
        else
            if v_sets or cardinality(v_plain) < cardinality(v_level) then
                select s.plain, s.others into v_plain, v_others
                  from wf.wf_split_plain(v_level, v_plain) s;
            end if;
            if not wf.wf_start_plain_actions(v_plain, v_now) then
                v_others := v_level;
            end if;
            if v_others is not null then
                perform wf.wf_engine_run(v_others, p_exclusive, v_now);
            end if;
        end if;
    end if;
    if cardinality(v_done) = cardinality(p_items) then
        return query
        with made as materialized (
            select t.workflow_instance_id
              from wf.task t
             where t.node_execution_id > v_mark and t.worker_id is null and t.available_at = v_now
        )
        select l.ordinal, true, i.status,
               (select count(*)::integer from made m
                 where m.workflow_instance_id = i.workflow_instance_id), 'OK'
          from unnest(v_level) l
          join wf.workflow_instance i on i.workflow_instance_id = l.workflow_instance_id
         order by l.ordinal;
        return;
    end if;
    return query
    with made as materialized (
        -- By id, not by instance: one with a wide fan-out has many that this call did not make.
        select t.workflow_instance_id
          from wf.task t
         where t.node_execution_id > v_mark and t.worker_id is null and t.available_at = v_now
    )
    select i.position, a.accepted or i.position = any (v_again), a.instance_status,
           case when i.position = any (v_done) then
               (select count(*)::integer from made m
                 where m.workflow_instance_id = a.workflow_instance_id) else 0 end,
           case when i.position = any (v_done || v_again) then 'OK' else a.reason end
      from unnest(p_items) i
     cross join lateral wf.wf_submit_answer(i, p_worker_id) a
     order by i.position;
end
$$;

-- Puts the tasks back to READY whose failure their retry policy takes; answers the positions of those
-- items. Locks: the task rows.
create or replace function wf.wf_retry_items(
    p_worker_id text, p_items wf.submit_item[], p_now timestamptz
) returns integer[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_item wf.submit_item;
    v_task wf.task;
    v_node record;
    v_done integer[] := '{}';
begin
    foreach v_item in array p_items loop
        continue when v_item.result_code >= 0;
        select t.* into v_task from wf.task t
         where t.node_execution_id = v_item.node_execution_id and t.worker_id = p_worker_id
           and t.lease_token = coalesce(v_item.lease_token, t.lease_token) for update;
        continue when not found;
        select n.retry_json into v_node from wf.workflow_node n where n.node_id = v_task.node_id;
        if wf.wf_retry_takes(v_node.retry_json, v_task.attempt_no - v_task.attempts_before, v_item.result_code::text) then
            perform wf.wf_retry_task(v_task, v_node.retry_json, v_item.result_code, null,
                coalesce(v_item.message, 'result code ' || v_item.result_code), v_item.output_json,
                p_now);
            v_done := v_done || v_item.position;
        end if;
    end loop;
    return v_done;
end
$$;

-- Runs the `set`s of completed ACTIONs. One that fails fails its node (R20); the entry becomes F.
create or replace function wf.wf_complete_items(p_level wf.agenda_entry[])
returns wf.agenda_entry[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_level wf.agenda_entry[] := p_level;
    v_row   record;
    v_error record;
begin
    for v_row in
        select l.position, l.node_execution_id, e.output_json, e.result_code
          from unnest(p_level) with ordinality
               l(ordinal, node_execution_id, workflow_instance_id, kind, node_id,
                 parent_execution_id, scope_id, position)
          join wf.node_execution e on e.node_execution_id = l.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         where l.kind in ('S', 'J') and n.has_output_bindings
         order by l.position
    loop
        select * into v_error
          from wf.wf_apply_output_bindings(v_row.node_execution_id, v_row.output_json,
                                           v_row.result_code, null);
        if v_error.error_code is not null then
            v_level[v_row.position].kind := 'F';
            perform wf.wf_fail_completed(v_row.node_execution_id, v_error.error_code,
                                         v_error.error_message);
        end if;
    end loop;
    return v_level;
end
$$;

-- Turns an execution that has just succeeded into one that failed by an engine error; its output
-- stays.
create or replace function wf.wf_fail_completed(
    p_node_execution_id bigint, p_engine_error_code integer, p_text text
) returns void
language sql set search_path = pg_catalog, pg_temp as $$
    update wf.node_execution e
       set status = 'FAILED', result_code = null, engine_error_code = p_engine_error_code,
           engine_error_message = wf.wf_execution_path(p_node_execution_id) || ': ' || p_text,
           error_execution_id = p_node_execution_id
     where e.node_execution_id = p_node_execution_id
$$;

-- What a submit is answered when it completed nothing, and the instance's status in any case:
-- REPEATED the same result again under a token already answered; CANCELLED and ENDED say why there
-- is no lease any more; STALE another token is current, or the execution is not this worker's.
create or replace function wf.wf_submit_answer(
    p_item wf.submit_item, p_worker_id text,
    out accepted boolean, out instance_status text, out reason text,
    out workflow_instance_id bigint
)
language sql stable set search_path = pg_catalog, pg_temp as $$
    select q.answer in ('OK', 'REPEATED'), q.status, q.answer, q.workflow_instance_id
      from (select i.status, i.workflow_instance_id,
                   case when e.worker_id = p_worker_id and e.answer = 'OK'
                             and e.last_token = coalesce(p_item.lease_token, e.last_token)
                             and e.answered_code = p_item.result_code
                             and e.output_json is not distinct from p_item.output_json
                        then 'REPEATED'
                        when exists (
                            select 1 from wf.node_attempt t
                             where t.node_execution_id = e.node_execution_id
                               and t.lease_token = p_item.lease_token
                               and t.worker_id = p_worker_id
                               and t.result_code = p_item.result_code
                               and t.output_hash = wf.wf_output_hash(p_item.output_json))
                        then 'REPEATED'
                        when e.status = 'CANCELLED' then 'CANCELLED'
                        when i.status in ('SUCCEEDED', 'FAILED', 'CANCELLED') then 'ENDED'
                        else 'STALE' end as answer
              from (select 1) one
              left join wf.node_execution e on e.node_execution_id = (p_item).node_execution_id
              left join wf.workflow_instance i on i.workflow_instance_id = e.workflow_instance_id
           ) q
$$;

-- Checks what every submit must hold. Errors: 20002 unknown execution, 20004 no result code,
-- 20005 output over 16 MB.
create or replace function wf.wf_check_submit(p_items wf.submit_item[]) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_item wf.submit_item;
begin
    select i.* into v_item
      from unnest(p_items) i
      -- By key: without the offset the planner may read all executions once instead.
      left join lateral (
        select e.node_execution_id
          from wf.node_execution e
         where e.node_execution_id = i.node_execution_id
        offset 0) e on true
     where i.result_code is null or pg_column_size(i.output_json) > 16777216
        or e.node_execution_id is null
     order by i.position
     limit 1;
    if not found then
        return;
    end if;
    if v_item.result_code is null then
        perform wf.wf_raise(20004, 'result_code must be a number');
    end if;
    if pg_column_size(v_item.output_json) > 16777216 then
        perform wf.wf_raise(20005, 'the output has more than 16 MB');
    end if;
    perform wf.wf_raise(20002, format('there is no node execution %s', v_item.node_execution_id));
end
$$;

-- Submits a result. A negative result_code fails the node, with p_message if there is one.
-- Answers one row; reason is OK, REPEATED, STALE, CANCELLED or ENDED (R4).
-- Errors: 20001, 20002, 20004, 20005.
create or replace function wf.sp_worker_submit_result(
    p_node_execution_id bigint, p_worker_id text, p_worker_token text, p_result_code integer,
    p_output_json jsonb default null, p_lease_token bigint default null,
    p_message text default null
) returns table (accepted boolean, instance_status text, next_ready_count integer, reason text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_items wf.submit_item[] := array[row(1, p_node_execution_id, p_lease_token, p_result_code,
                                          p_message, p_output_json)::wf.submit_item];
begin
    perform wf.wf_worker_authenticate(p_worker_id, p_worker_token);
    return query
    select s.accepted, s.instance_status, s.next_ready_count, s.reason
      from wf.wf_submit(p_worker_id, v_items) s;
end
$$;

-- Whether a value has the shape of one result of a batch submit, its numbers within their columns.
-- Without a search_path of its own it becomes a part of the statement that calls it.
create or replace function wf.wf_is_result(p_value jsonb) returns boolean
language sql immutable as $$
    select coalesce(
        jsonb_typeof(p_value) = 'object'
        and p_value ->> 'node_execution_id' ~ '^-?[0-9]{1,18}$'
        and case when p_value ->> 'result_code' ~ '^-?[0-9]{1,10}$'
                 then (p_value ->> 'result_code')::bigint between -2147483648 and 2147483647 end
        and coalesce(p_value ->> 'lease_token' ~ '^-?[0-9]{1,18}$', true)
        and coalesce(jsonb_typeof(p_value -> 'message') in ('string', 'null'), true), false)
$$;

-- Submits many results, an array of {node_execution_id, lease_token, result_code, output, message};
-- one row per element, in their order. All or nothing: an error refuses the whole batch.
create or replace function wf.sp_worker_submit_results(
    p_worker_id text, p_worker_token text, p_results_json jsonb
) returns table (node_execution_id bigint, accepted boolean, instance_status text,
                 next_ready_count integer, reason text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_items wf.submit_item[];
    v_bad   bigint;
begin
    perform wf.wf_worker_authenticate(p_worker_id, p_worker_token);
    if p_results_json is null or jsonb_typeof(p_results_json) <> 'array' then
        perform wf.wf_raise(20004, 'results_json must be an array');
    end if;
    select r.position into v_bad
      from jsonb_array_elements(p_results_json) with ordinality r(value, position)
     where not wf.wf_is_result(r.value)
     order by r.position limit 1;
    if v_bad is not null then
        perform wf.wf_raise(20004, format('result %s must be an object with the integers '
            'node_execution_id and result_code, and may have lease_token (an integer), output and '
            'message (a string)', v_bad));
    end if;
    select coalesce(array_agg(row(r.position, (r.value ->> 'node_execution_id')::bigint,
                         (r.value ->> 'lease_token')::bigint, (r.value ->> 'result_code')::integer,
                         r.value ->> 'message', r.value -> 'output')::wf.submit_item
                     order by r.position), '{}')
      into v_items
      from jsonb_array_elements(p_results_json) with ordinality r(value, position);
    return query
    select i.node_execution_id, s.accepted, s.instance_status, s.next_ready_count, s.reason
      from wf.wf_submit(p_worker_id, v_items) s
      join unnest(v_items) i on i.position = s.item_position
     order by i.position;
end
$$;

-- Reports that a task failed: a submit with p_error_code if it is negative, else -1.
create or replace function wf.sp_worker_fail_task(
    p_node_execution_id bigint, p_worker_id text, p_worker_token text, p_error_code integer,
    p_error_message text, p_lease_token bigint default null
) returns table (accepted boolean, instance_status text, next_ready_count integer, reason text)
language sql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
    select s.accepted, s.instance_status, s.next_ready_count, s.reason
      from wf.sp_worker_submit_result(p_node_execution_id, p_worker_id, p_worker_token,
               case when p_error_code < 0 then p_error_code else -1 end, null, p_lease_token,
               p_error_message) s
$$;

-- Extends a lease. rows_updated 0 with CANCEL: the lease is gone and the work may stop.
-- Locks: the task's row only.
create or replace function wf.sp_worker_heartbeat(
    p_node_execution_id bigint, p_worker_id text, p_worker_token text,
    p_extend_seconds integer default 300, p_lease_token bigint default null
) returns table (rows_updated integer, desired_state text, command text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_now  timestamptz;
    v_rows integer;
begin
    perform wf.wf_worker_authenticate(p_worker_id, p_worker_token);
    if p_extend_seconds is null or p_extend_seconds not between 1 and 86400 then
        perform wf.wf_raise(20004, 'extend_seconds must be between 1 and 86400');
    end if;
    v_now := wf.wf_now();
    update wf.task t
       set lease_until = greatest(t.lease_until, v_now + make_interval(secs => p_extend_seconds))
     where t.node_execution_id = p_node_execution_id and t.worker_id = p_worker_id
       and t.lease_token = coalesce(p_lease_token, t.lease_token);
    get diagnostics v_rows = row_count;
    update wf.worker_presence p set last_seen_at = v_now where p.worker_id = p_worker_id;
    return query
    select v_rows, w.desired_state,
           case when v_rows = 0 then 'CANCEL'
                when w.desired_state = 'STOPPING' then 'STOP'
                when w.desired_state = 'DRAINING' then 'DRAIN'
                else 'NONE' end
      from wf.worker w where w.worker_id = p_worker_id;
end
$$;

-- Gives a task back unharmed: READY at once, no attempt used (R28).
create or replace function wf.sp_worker_release_task(
    p_node_execution_id bigint, p_worker_id text, p_worker_token text,
    p_lease_token bigint default null
) returns table (rows_updated integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_rows integer;
begin
    perform wf.wf_worker_authenticate(p_worker_id, p_worker_token);
    update wf.task t
       set worker_id = null, lease_until = null, claimed_at = null, deadline_at = null,
           delivery_count = t.delivery_count - 1
     where t.node_execution_id = p_node_execution_id and t.worker_id = p_worker_id
       and t.lease_token = coalesce(p_lease_token, t.lease_token);
    get diagnostics v_rows = row_count;
    return query select v_rows;
end
$$;

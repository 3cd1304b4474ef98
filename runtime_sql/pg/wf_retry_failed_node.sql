-- The way back from FAILED: the node that failed goes on, and all that its failure ended (R14).
-- Twin: mssql/wf_retry_failed_node.sql
--
-- What goes back, worked out as three sets of executions:
--     causes   the ACTION or WAIT_EVENT whose error ended the instance, and others whose failure
--              would fail a restored parent again at once (branches that failed in the same call, or
--              under keep_going); each is tried once more
--     chain    the ancestors that failed by them: RUNNING again
--     back     what those ancestors cancelled when they closed: ACTIONs and WAIT_EVENTs become READY,
--              composites RUNNING
-- Counters, items and counts of loops are kept when a composite fails or is cancelled by a failure
-- (wf_closing.sql), so that nothing is evaluated twice: a FOREACH goes on with the items it had.
-- Time-outs of what goes back count anew, and an ACTION gets a fresh retry budget.

-- The causes that a set of causes leads to: themselves, and the failed children of the composites
-- that would be restored, where those fail the composite again or nobody would ever look at them.
create or replace function wf.wf_retry_causes(p_workflow_instance_id bigint, p_cause_id bigint)
returns bigint[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_causes bigint[] := array[p_cause_id];
    v_more   bigint[];
begin
    loop
        with restored as materialized (
            select r.node_execution_id, r.is_chain
              from wf.wf_retry_restored(p_workflow_instance_id, v_causes) r
        ), failed as (
            select c.error_execution_id, r.node_execution_id, r.is_chain,
                   count(*) over (partition by r.node_execution_id) as failed_count,
                   coalesce(j.allowed_failures, 0) as allowed_failures
              from restored r
              join wf.node_execution c
                on c.workflow_instance_id = p_workflow_instance_id
               and c.parent_execution_id = r.node_execution_id
               and c.status = 'FAILED'
              left join wf.join_counter j on j.node_execution_id = r.node_execution_id
             where c.node_execution_id not in (select x.node_execution_id from restored x)
               and c.node_execution_id <> all (v_causes)
        )
        select array_agg(distinct f.error_execution_id) into v_more
          from failed f
         where f.failed_count > f.allowed_failures and f.error_execution_id <> all (v_causes);
        exit when v_more is null;
        v_causes := v_causes || v_more;
    end loop;
    return v_causes;
end
$$;

-- What a retry of these causes makes open again, the causes apart: their failed ancestors (is_chain)
-- and what those cancelled.
create or replace function wf.wf_retry_restored(p_workflow_instance_id bigint, p_causes bigint[])
returns table (node_execution_id bigint, is_chain boolean)
language sql stable set search_path = pg_catalog, pg_temp as $$
    with recursive chain as (
        select p.node_execution_id, p.parent_execution_id
          from wf.node_execution c
          join wf.node_execution p on p.node_execution_id = c.parent_execution_id
         where c.node_execution_id = any (p_causes)
        union
        select p.node_execution_id, p.parent_execution_id
          from chain c
          join wf.node_execution p on p.node_execution_id = c.parent_execution_id
    ), back as (
        select b.node_execution_id
          from chain c
          join wf.node_execution b
            on b.workflow_instance_id = p_workflow_instance_id
           and b.parent_execution_id = c.node_execution_id and b.status = 'CANCELLED'
        union
        select b.node_execution_id
          from back a
          join wf.node_execution b
            on b.workflow_instance_id = p_workflow_instance_id
           and b.parent_execution_id = a.node_execution_id and b.status = 'CANCELLED'
    )
    select c.node_execution_id, true from chain c
    union all
    select b.node_execution_id, false from back b
     where b.node_execution_id not in (select c.node_execution_id from chain c)
$$;

-- Why these executions cannot go back, or null.
create or replace function wf.wf_retry_problem(
    p_workflow_instance_id bigint, p_causes bigint[], p_restored bigint[]
) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_id bigint;
begin
    select e.node_execution_id into v_id
      from unnest(p_causes) u(id)
      join wf.node_execution e on e.node_execution_id = u.id
      join wf.workflow_node n on n.node_id = e.node_id
     where n.node_type not in ('ACTION', 'WAIT_EVENT') or e.status <> 'FAILED'
     order by e.node_execution_id limit 1;
    if v_id is not null then
        return format('%s failed, which is no action and no wait_event', wf.wf_execution_path(v_id));
    end if;
    select c.parent_execution_id into v_id
      from unnest(p_restored) u(id)
      join wf.node_execution c
        on c.workflow_instance_id = p_workflow_instance_id and c.parent_execution_id = u.id
      join wf.workflow_node n on n.node_id = c.node_id and n.edge_kind in ('ON_ERROR', 'FINALLY')
     order by c.parent_execution_id limit 1;
    if v_id is not null then
        return format('an on_error or finally of %s has run', wf.wf_execution_path(v_id));
    end if;
    select u.id into v_id
      from unnest(p_restored) u(id)
      join wf.node_execution e on e.node_execution_id = u.id
      join wf.workflow_node n on n.node_id = e.node_id
      left join wf.join_counter j on j.node_execution_id = u.id
      left join wf.loop_state l on l.node_execution_id = u.id
     where case when n.node_type in ('PARALLEL', 'FOREACH') then j.node_execution_id is null
                when n.node_type = 'REPEAT' then l.node_execution_id is null else false end
       and exists (select 1 from wf.node_execution c
                    where c.workflow_instance_id = p_workflow_instance_id
                      and c.parent_execution_id = u.id)
     order by u.id limit 1;
    if v_id is not null then
        return format('the state of %s was not kept', wf.wf_execution_path(v_id));
    end if;
    return null;
end
$$;

-- Queues ACTIONs again that have an input, each with its next attempt. What a failed attempt was
-- answered stays known under its token (R4).
create or replace function wf.wf_retry_queue(p_actions bigint[], p_now timestamptz) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into wf.node_attempt (node_execution_id, lease_token, attempt_no, worker_id, result_code,
        output_hash, answer, engine_error_code, engine_error_message, claimed_at, ended_at)
    select e.node_execution_id, e.last_token, e.attempt_no, e.worker_id, e.answered_code,
           wf.wf_output_hash(e.output_json), e.answer, e.engine_error_code, e.engine_error_message,
           e.started_at, e.ended_at
      from wf.node_execution e
     where e.node_execution_id = any (p_actions) and e.answer is not null;
    insert into wf.task (node_execution_id, workflow_instance_id, node_id, action_id, priority,
                         available_at, is_claimable, input_json, affinity_key, max_per_worker,
                         max_concurrent, rate_per_minute, is_exclusive, prefers_previous, prefers_group, requires_previous,
                         pinned_worker_id, attempt_no, attempts_before, lease_token)
    select e.node_execution_id, e.workflow_instance_id, e.node_id, n.action_id,
           wf.wf_add_priorities(n.priority, i.priority), p_now, true, e.input_json, d.affinity_key,
           d.max_per_worker, d.max_concurrent, d.rate_per_minute, d.is_exclusive, d.prefers_previous, d.prefers_group,
           d.requires_previous,
           case when d.requires_previous and not d.is_exclusive
                then wf.wf_pinned_worker(e.workflow_instance_id, n.action_id, d.affinity_key) end,
           e.attempt_no + 1, e.attempt_no, coalesce(e.last_token, 0)
      from unnest(p_actions) u(id)
      join wf.node_execution e on e.node_execution_id = u.id
      join wf.workflow_node n on n.node_id = e.node_id
      join wf.workflow_instance i on i.workflow_instance_id = e.workflow_instance_id
     cross join lateral wf.wf_dispatch_of(n.action_id, n.attributes_json -> 'dispatch',
                                          e.input_json) d
     order by u.id;
end
$$;

-- Counts a restored PARALLEL or FOREACH anew. Where nothing below it is open, one child that has
-- succeeded is left uncounted and answered: looking at it starts the next child or decides.
create or replace function wf.wf_retry_recount(p_workflow_instance_id bigint, p_joins bigint[])
returns bigint[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
    v_kicked bigint[] := '{}';
begin
    for v_row in
        select u.id, count(*) as started_count,
               count(*) filter (where c.status in ('READY', 'RUNNING')) as open_count,
               count(*) filter (where c.status in ('SUCCEEDED', 'SKIPPED')) as succeeded_count,
               count(*) filter (where c.status = 'FAILED') as failed_count,
               (array_agg(c.node_execution_id order by c.ended_at, c.node_execution_id)
                    filter (where c.status = 'FAILED'))[1] as first_failed_id,
               max(c.node_execution_id) filter (where c.status in ('SUCCEEDED', 'SKIPPED'))
                   as last_succeeded_id
          from unnest(p_joins) u(id)
          join wf.node_execution c
            on c.workflow_instance_id = p_workflow_instance_id and c.parent_execution_id = u.id
         group by u.id
         order by u.id
    loop
        if v_row.open_count = 0 then
            v_kicked := v_kicked || v_row.last_succeeded_id;
            v_row.open_count := 1;
            v_row.succeeded_count := v_row.succeeded_count - 1;
        end if;
        update wf.join_counter j
           set next_index = v_row.started_count, open_count = v_row.open_count,
               succeeded_count = v_row.succeeded_count, failed_count = v_row.failed_count,
               first_failed_id = v_row.first_failed_id, last_started = null
         where j.node_execution_id = v_row.id;
    end loop;
    return v_kicked;
end
$$;

-- Brings a FAILED instance back to RUNNING from the node that failed (see the head of this file).
-- Answers its status, and how many failed nodes are tried again; the instance may have ended again
-- by the time the call answers. Locks: the gate exclusive.
-- Errors: 20002 unknown instance; 20003 it has not failed, what failed is no ACTION or WAIT_EVENT, or
-- an on_error or finally has run at or above it.
create or replace function wf.sp_retry_failed_node(p_workflow_instance_id bigint)
returns table (instance_status text, retried_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_status   text := wf.wf_lock_instance(p_workflow_instance_id);
    v_now      timestamptz := wf.wf_now();
    v_causes   bigint[];
    v_restored bigint[];
    v_problem  text;
begin
    if v_status <> 'FAILED' then
        perform wf.wf_raise(20003, format('instance %s is %s, not failed', p_workflow_instance_id,
                                          lower(v_status)));
    end if;
    select wf.wf_retry_causes(p_workflow_instance_id, i.error_execution_id) into v_causes
      from wf.workflow_instance i where i.workflow_instance_id = p_workflow_instance_id;
    v_restored := array(select r.node_execution_id
                          from wf.wf_retry_restored(p_workflow_instance_id, v_causes) r);
    v_problem := wf.wf_retry_problem(p_workflow_instance_id, v_causes, v_restored);
    if v_problem is not null then
        perform wf.wf_raise(20003, format('instance %s cannot be retried: %s',
                                          p_workflow_instance_id, v_problem));
    end if;
    update wf.workflow_instance i
       set status = 'RUNNING', ended_at = null, error_code = null, engine_error_code = null,
           engine_error_message = null, error_execution_id = null
     where i.workflow_instance_id = p_workflow_instance_id;
    insert into wf.audit_log (at, what, detail_json)
    values (v_now, 'retry', jsonb_build_object('instance', p_workflow_instance_id,
                                               'executions', to_jsonb(v_causes)));
    perform wf.wf_engine_run(wf.wf_retry_reopen(p_workflow_instance_id, v_causes || v_restored, v_now),
                             array[p_workflow_instance_id], v_now);
    -- An ACTION that had no input yet was queued by its activation, as a first attempt.
    update wf.task t
       set attempt_no = e.attempt_no + 1, attempts_before = e.attempt_no
      from wf.node_execution e
     where t.node_execution_id = any (v_causes) and e.node_execution_id = t.node_execution_id
       and t.attempts_before = 0;
    return query
    select i.status, cardinality(v_causes) from wf.workflow_instance i
     where i.workflow_instance_id = p_workflow_instance_id;
end
$$;

-- Opens executions again and answers the agenda that sets them going: those that had not begun are
-- activated; composites below which nothing is open look at their last child again.
create or replace function wf.wf_retry_reopen(
    p_workflow_instance_id bigint, p_executions bigint[], p_now timestamptz
) returns wf.agenda_entry[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_queued bigint[];
    v_fresh  bigint[];
    v_joins  bigint[];
    v_kicked bigint[];
begin
    select array_agg(q.id) filter (where q.is_action and q.has_input),
           array_agg(q.id) filter (where not q.has_children and not (q.is_action and q.has_input)),
           array_agg(q.id) filter (where q.has_children and q.node_type in ('PARALLEL', 'FOREACH'))
      into v_queued, v_fresh, v_joins
      from (select u.id, n.node_type, n.node_type = 'ACTION' as is_action,
                   e.input_json is not null as has_input,
                   exists (select 1 from wf.node_execution c
                            where c.workflow_instance_id = p_workflow_instance_id
                              and c.parent_execution_id = u.id) as has_children
              from unnest(p_executions) u(id)
              join wf.node_execution e on e.node_execution_id = u.id
              join wf.workflow_node n on n.node_id = e.node_id) q;
    perform wf.wf_retry_queue(v_queued, p_now);
    update wf.node_execution e
       set status = case when n.node_type = 'ACTION' or e.node_execution_id = any (v_fresh)
                              and n.node_type = 'WAIT_EVENT' then 'READY' else 'RUNNING' end,
           result_code = null, engine_error_code = null, engine_error_message = null,
           error_execution_id = null, last_token = null, answered_code = null, answer = null,
           worker_id = null, started_at = null, ended_at = null, input_json = null,
           output_json = null
      from wf.workflow_node n
     where e.node_execution_id = any (p_executions) and n.node_id = e.node_id;
    insert into wf.timer (node_execution_id, workflow_instance_id, due_at)
    select e.node_execution_id, e.workflow_instance_id,
           p_now + n.timeout_ms * interval '1 millisecond'
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = any (p_executions)
       and n.node_type <> 'ACTION' and n.timeout_ms is not null
       and (n.node_type <> 'WAIT_EVENT' or e.node_execution_id = any (v_fresh));
    v_kicked := wf.wf_retry_recount(p_workflow_instance_id, v_joins);
    return array(
        select wf.wf_agenda_entry((row_number() over (order by q.id))::integer, q.id,
                                  p_workflow_instance_id, q.kind)
          from (select u.id, 'A' as kind from unnest(v_fresh) u(id)
                union all
                select k.id, case when n.success_may_close then 'J' else 'S' end
                  from (select unnest(v_kicked) as id
                        union all
                        select max(c.node_execution_id)
                          from unnest(p_executions) u(id)
                          join wf.node_execution c
                            on c.workflow_instance_id = p_workflow_instance_id
                           and c.parent_execution_id = u.id
                         where u.id <> all (coalesce(v_joins, '{}'))
                         group by u.id
                        having not bool_or(c.status in ('READY', 'RUNNING'))) k
                  join wf.node_execution e on e.node_execution_id = k.id
                  join wf.workflow_node n on n.node_id = e.node_id) q
         order by q.id);
end
$$;

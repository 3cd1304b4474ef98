-- Ends: joins, failures, on_error, finally, cancellation, the end of an instance.
-- Twin: mssql/wf_closing.sql
--
-- Everything here that closes other work needs the instance's gate exclusive. The engine's loop
-- takes such entries alone (kinds F, J and T of 03_engine_core.sql) and has checked the gate.
--
-- What a closing composite waits for (R13): a SEQUENCE with a finally that is cancelled stays
-- RUNNING, runs it, and is CANCELLED then. Rows of wf.pending_end make a tree of those that wait:
-- cancel_parent_id names who is told when a cancelled SEQUENCE is done.

-- Steps ---------------------------------------------------------------------------------------------

-- Lets an execution fail with the error of another, which it copies (R13).
create or replace function wf.wf_fail_by_step(
    p_ordinal integer, p_node_execution_id bigint, p_workflow_instance_id bigint,
    p_failed_execution_id bigint
) returns wf.agenda_step
language sql stable set search_path = pg_catalog, pg_temp as $$
    select row(p_ordinal, 0, 'FAIL', p_node_execution_id, p_workflow_instance_id, null, null, null,
               e.result_code, e.engine_error_code, e.engine_error_message, e.error_execution_id
              )::wf.agenda_step
      from wf.node_execution e
     where e.node_execution_id = p_failed_execution_id
$$;

-- Lets an execution take the verdict that stands on its row of wf.pending_end, which goes.
create or replace function wf.wf_take_verdict(
    p_ordinal integer, p_node_execution_id bigint
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_end wf.pending_end;
begin
    update wf.pending_end p set verdict = 'FAIL', phase = 'ON_ERROR'
     where p.node_execution_id = p_node_execution_id and p.verdict = 'HANDLER_FAILED';
    if found then
        return query select * from wf.wf_sequence_finally(p_ordinal, p_node_execution_id);
        return;
    end if;
    delete from wf.pending_end p where p.node_execution_id = p_node_execution_id
    returning p.* into v_end;
    if v_end.verdict = 'BODY_FAILED' then
        return query select * from wf.wf_sequence_body_failed(p_ordinal, v_end);
    elsif v_end.verdict = 'SUCCEED' then
        return next wf.wf_succeed_step(p_ordinal, p_node_execution_id, v_end.workflow_instance_id);
    else
        return next row(p_ordinal, 0, 'FAIL', p_node_execution_id, v_end.workflow_instance_id, null,
                        null, null, v_end.result_code, v_end.engine_error_code,
                        v_end.engine_error_message, v_end.error_execution_id)::wf.agenda_step;
    end if;
end
$$;

-- Joins ---------------------------------------------------------------------------------------------

-- One child of a PARALLEL or FOREACH has ended. Closes the join when it is decided (N successes, or
-- one failure too many), unless it keeps going; else starts the next child while there is one, and
-- decides when none is open (S6.3, S6.8, R31, R32).
-- Locks: the counter's row.
create or replace function wf.wf_join_ended(
    p_ordinal integer, p_child_execution_id bigint, p_has_succeeded boolean, p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_child   record;
    v_counter wf.join_counter;
begin
    select e.workflow_instance_id, e.parent_execution_id, n.parent_node_id, n.parent_type
      into v_child
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_child_execution_id;
    update wf.join_counter c
       set open_count = c.open_count - case when c.next_index < c.total_count then 0 else 1 end,
           last_started = case when c.next_index < c.total_count then c.next_index end,
           next_index = least(c.next_index + 1, c.total_count),
           succeeded_count = c.succeeded_count + p_has_succeeded::integer,
           failed_count = c.failed_count + (not p_has_succeeded)::integer,
           first_failed_id = case when p_has_succeeded then c.first_failed_id
                                  else coalesce(c.first_failed_id, p_child_execution_id) end
     where c.node_execution_id = v_child.parent_execution_id
    returning c.* into v_counter;
    if not found then
        return;
    end if;
    if v_counter.skips_known and v_counter.last_started is not null
       and (v_counter.keeps_going or v_counter.failed_count <= v_counter.allowed_failures) then
        v_counter := wf.wf_foreach_skip_ahead(v_counter, p_now);
    end if;
    if not v_counter.keeps_going and v_counter.failed_count > v_counter.allowed_failures then
        return query select * from wf.wf_close(p_ordinal, v_child.workflow_instance_id,
            v_child.parent_execution_id, 'FAIL', v_counter.first_failed_id, p_now);
    elsif not v_counter.keeps_going and v_counter.succeeded_count = v_counter.needed_count
          and v_counter.needed_count < v_counter.total_count then
        return query select * from wf.wf_close(p_ordinal, v_child.workflow_instance_id,
            v_child.parent_execution_id, 'SUCCEED', null, p_now);
    elsif v_counter.last_started is not null then
        return query select * from wf.wf_join_start_next(
            p_ordinal, v_child.parent_execution_id, v_child.workflow_instance_id,
            v_child.parent_node_id, v_child.parent_type, v_counter.last_started);
    elsif v_counter.open_count > 0 then
        return;
    elsif v_counter.failed_count <= v_counter.allowed_failures then
        return next wf.wf_succeed_step(p_ordinal, v_child.parent_execution_id,
                                       v_child.workflow_instance_id);
    else
        return next wf.wf_fail_by_step(p_ordinal, v_child.parent_execution_id,
                                       v_child.workflow_instance_id, v_counter.first_failed_id);
    end if;
end
$$;

-- The child or iteration number p_index of a PARALLEL or FOREACH, as a START step.
create or replace function wf.wf_join_start_next(
    p_ordinal integer, p_parent_execution_id bigint, p_workflow_instance_id bigint,
    p_parent_node_id bigint, p_parent_type text, p_index integer
) returns setof wf.agenda_step
language sql stable set search_path = pg_catalog, pg_temp as $$
    select row(p_ordinal, 0, 'START', p_parent_execution_id, p_workflow_instance_id, c.node_id,
               case when p_parent_type = 'FOREACH' then p_index else 0 end, f.item_json,
               null, null, null, null)::wf.agenda_step
      from wf.workflow_node c
      left join wf.foreach_item f
        on f.node_execution_id = p_parent_execution_id and f.iteration_no = p_index
     where c.parent_node_id = p_parent_node_id
       and c.child_order = case when p_parent_type = 'FOREACH' then 0 else p_index end
$$;

-- Cancelling ----------------------------------------------------------------------------------------

-- Closes what is open below a composite and gives it its verdict: at once when nothing is left open,
-- else when the finallys of the SEQUENCEs it cancelled are done.
-- p_failed_execution_id: whose error a FAIL copies.
create or replace function wf.wf_close(
    p_ordinal integer, p_workflow_instance_id bigint, p_node_execution_id bigint, p_verdict text,
    p_failed_execution_id bigint, p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into wf.pending_end (node_execution_id, workflow_instance_id, phase, verdict,
        result_code, engine_error_code, engine_error_message, error_execution_id)
    select p_node_execution_id, p_workflow_instance_id, 'WAITING', p_verdict, e.result_code,
           e.engine_error_code, e.engine_error_message, e.error_execution_id
      from (select 1) one
      left join wf.node_execution e on e.node_execution_id = p_failed_execution_id;
    return query
    select * from wf.wf_close_below(p_ordinal, p_workflow_instance_id, p_node_execution_id, p_now);
end
$$;

-- The second half of wf_close, for a composite that has its row in wf.pending_end.
create or replace function wf.wf_close_below(
    p_ordinal integer, p_workflow_instance_id bigint, p_node_execution_id bigint, p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return query select * from wf.wf_cancel_below(p_ordinal, p_workflow_instance_id,
                                                  p_node_execution_id, false, p_now);
    delete from wf.timer t where t.node_execution_id = p_node_execution_id;
    if not exists (select 1 from wf.pending_end p where p.cancel_parent_id = p_node_execution_id) then
        return query select * from wf.wf_take_verdict(p_ordinal, p_node_execution_id);
    end if;
end
$$;

-- Cancels every open execution below one, level by level: READY and leased tasks go, waits, timers
-- and counters go, the rows become CANCELLED. SEQUENCEs with a finally are kept: they get a row in
-- wf.pending_end, and the finallys of those with nothing kept below them start (the steps answered,
-- in the order in which the SEQUENCEs were activated).
-- p_operator: an operator cancels; nothing is kept, and finallys that are running end too.
-- The caller holds the gate exclusive, so no other call completes them meanwhile; a claim that just
-- took such a task has its row deleted under it and hears CANCEL at the next heartbeat.
create or replace function wf.wf_cancel_below(
    p_ordinal integer, p_workflow_instance_id bigint, p_node_execution_id bigint,
    p_operator boolean, p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row     record;
    v_ids     bigint[] := array[p_node_execution_id];
    v_tells   bigint[] := array[p_node_execution_id];
    v_next    bigint[];
    v_telling bigint[];
    v_open    bigint[] := '{}';
    v_kept    bigint[] := '{}';
begin
    while cardinality(v_ids) > 0 loop
        v_next := '{}';
        v_telling := '{}';
        for v_row in
            select c.node_execution_id, n.finally_node_id, q.phase, q.is_cancelled, u.tells
              from unnest(v_ids, v_tells) u(id, tells)
             cross join lateral (
                -- Parent by parent, whatever the planner makes of how many there are.
                select o.node_execution_id, o.node_id
                  from wf.node_execution o
                 where o.workflow_instance_id = p_workflow_instance_id
                   and o.parent_execution_id = u.id
                   and o.status in ('READY', 'RUNNING')
                union
                -- What an earlier close kept lies below what it cancelled; we look for it by whom
                -- it tells.
                select o.node_execution_id, o.node_id
                  from wf.pending_end k
                  join wf.node_execution o on o.node_execution_id = k.node_execution_id
                 where p_operator and k.cancel_parent_id = u.id and k.cancel_parent_id <> 0
                offset 0) c
              join wf.workflow_node n on n.node_id = c.node_id
              left join wf.pending_end q on q.node_execution_id = c.node_execution_id
             order by c.node_execution_id
        loop
            if not p_operator and (v_row.phase = 'FINALLY' or v_row.is_cancelled) then
                -- Its finally goes on, or it waits for those below it: it only has to tell us now.
                update wf.pending_end q
                   set is_cancelled = true, cancel_parent_id = v_row.tells
                 where q.node_execution_id = v_row.node_execution_id;
            elsif not p_operator and v_row.finally_node_id is not null then
                insert into wf.pending_end as q (node_execution_id, workflow_instance_id, phase,
                                                 is_cancelled, cancel_parent_id)
                values (v_row.node_execution_id, p_workflow_instance_id, 'WAITING', true,
                        v_row.tells)
                on conflict (node_execution_id) do update
                    set phase = 'WAITING', is_cancelled = true,
                        cancel_parent_id = excluded.cancel_parent_id, verdict = null,
                        result_code = null, engine_error_code = null, engine_error_message = null,
                        error_execution_id = null;
                v_kept := v_kept || v_row.node_execution_id;
                v_next := v_next || v_row.node_execution_id;
                v_telling := v_telling || v_row.node_execution_id;
            else
                -- Whom it was waiting for tells the one above it from now on, or ends, too.
                update wf.pending_end q set cancel_parent_id = v_row.tells
                 where not p_operator and q.cancel_parent_id = v_row.node_execution_id;
                v_open := v_open || v_row.node_execution_id;
                v_next := v_next || v_row.node_execution_id;
                v_telling := v_telling || v_row.tells;
            end if;
        end loop;
        v_ids := v_next;
        v_tells := v_telling;
    end loop;
    delete from wf.timer t where t.node_execution_id = any (v_open || v_kept);
    perform wf.wf_cancel_executions(v_open, p_operator, p_now);
    return query
    select s.ordinal, (row_number() over (order by k))::integer, s.step, s.node_execution_id,
           s.workflow_instance_id, s.node_id, s.iteration_no, s.item_json, s.result_code,
           s.engine_error_code, s.message, s.error_execution_id
      from unnest(v_kept) k
     cross join lateral wf.wf_start_finally(p_ordinal, k) s
     order by k;
end
$$;

-- Starts the finally of a cancelled SEQUENCE when no other one is left below it.
create or replace function wf.wf_start_finally(p_ordinal integer, p_node_execution_id bigint)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select 1 from wf.pending_end p where p.cancel_parent_id = p_node_execution_id) then
        return;
    end if;
    update wf.pending_end p set phase = 'FINALLY' where p.node_execution_id = p_node_execution_id;
    return query
    select wf_s.*
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     cross join lateral wf.wf_start_step(p_ordinal, e.node_execution_id, e.workflow_instance_id,
                                         n.finally_node_id) wf_s
     where e.node_execution_id = p_node_execution_id;
end
$$;

-- Makes open executions CANCELLED and removes what only open ones have. What a retry of the failure
-- that cancelled them would go on from stays (R14), unless it is for good.
create or replace function wf.wf_cancel_executions(
    p_open bigint[], p_is_for_good boolean, p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if cardinality(p_open) = 0 then
        return;
    end if;
    with gone as (
        delete from wf.task t where t.node_execution_id = any (p_open) returning t.*
    )
    update wf.node_execution e
       set status = 'CANCELLED', ended_at = p_now,
           input_json = g.input_json, worker_id = g.worker_id, started_at = g.claimed_at,
           attempt_no = g.attempt_no - case when g.claimed_at is null then 1 else 0 end,
           delivery_count = g.delivery_count, last_token = nullif(g.lease_token, 0)
      from gone g
     where e.node_execution_id = g.node_execution_id;
    update wf.node_execution e
       set status = 'CANCELLED', ended_at = p_now
     where e.node_execution_id = any (p_open) and e.status in ('READY', 'RUNNING');
    delete from wf.event_wait w where w.node_execution_id = any (p_open);
    delete from wf.pending_end p where p.node_execution_id = any (p_open);
    if p_is_for_good then
        perform wf.wf_forget_progress(p_open);
    end if;
end
$$;

-- Removes the counters, items and counts of composites that will not go on.
create or replace function wf.wf_forget_progress(p_executions bigint[]) returns void
language sql set search_path = pg_catalog, pg_temp as $$
    delete from wf.join_counter c where c.node_execution_id = any (p_executions);
    delete from wf.loop_state l where l.node_execution_id = any (p_executions);
    delete from wf.foreach_item f where f.node_execution_id = any (p_executions);
$$;

-- SEQUENCEs with on_error and finally -----------------------------------------------------------------

-- The body of a SEQUENCE has failed with the error on p_end: on_error runs if there is one, else
-- finally, else the SEQUENCE fails.
create or replace function wf.wf_sequence_body_failed(p_ordinal integer, p_end wf.pending_end)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_node record;
begin
    select n.on_error_node_id, n.finally_node_id into v_node
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_end.node_execution_id;
    p_end.verdict := 'FAIL';
    if v_node.on_error_node_id is not null then
        p_end.phase := 'ON_ERROR';
    elsif v_node.finally_node_id is not null then
        p_end.phase := 'FINALLY';
    else
        return next row(p_ordinal, 0, 'FAIL', p_end.node_execution_id, p_end.workflow_instance_id,
                        null, null, null, p_end.result_code, p_end.engine_error_code,
                        p_end.engine_error_message, p_end.error_execution_id)::wf.agenda_step;
        return;
    end if;
    if p_end.phase = 'FINALLY' then
        delete from wf.timer t where t.node_execution_id = p_end.node_execution_id;
    end if;
    insert into wf.pending_end values (p_end.*);
    return next wf.wf_start_step(p_ordinal, p_end.node_execution_id, p_end.workflow_instance_id,
                                 coalesce(v_node.on_error_node_id, v_node.finally_node_id));
end
$$;

-- The error of a failed execution as the verdict of its parent.
create or replace function wf.wf_verdict_of(p_failed_execution_id bigint) returns wf.pending_end
language sql stable set search_path = pg_catalog, pg_temp as $$
    select row(e.parent_execution_id, e.workflow_instance_id, 'WAITING', false, 0, 'FAIL',
               e.result_code, e.engine_error_code, e.engine_error_message, e.error_execution_id
              )::wf.pending_end
      from wf.node_execution e
     where e.node_execution_id = p_failed_execution_id
$$;

-- A child of a SEQUENCE has failed: its body, its on_error or its finally.
create or replace function wf.wf_sequence_failed(
    p_ordinal integer, p_child_execution_id bigint, p_edge_kind text, p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_new wf.pending_end := wf.wf_verdict_of(p_child_execution_id);
    v_old wf.pending_end;
begin
    if p_edge_kind = 'SEQUENCE' then
        return query select * from wf.wf_sequence_body_failed(p_ordinal, v_new);
        return;
    end if;
    select p.* into v_old from wf.pending_end p where p.node_execution_id = v_new.node_execution_id;
    if p_edge_kind = 'ON_ERROR' then
        update wf.pending_end p
           set result_code = v_new.result_code, engine_error_code = v_new.engine_error_code,
               engine_error_message = v_new.engine_error_message,
               error_execution_id = v_new.error_execution_id
         where p.node_execution_id = v_new.node_execution_id;
        return query select * from wf.wf_sequence_finally(p_ordinal, v_new.node_execution_id);
    elsif v_old.is_cancelled then
        return query select * from wf.wf_cancelled_done(p_ordinal, v_old, p_now);
    elsif v_old.verdict = 'SUCCEED' then
        delete from wf.pending_end p where p.node_execution_id = v_old.node_execution_id;
        return next wf.wf_fail_by_step(p_ordinal, v_old.node_execution_id,
                                       v_old.workflow_instance_id, p_child_execution_id);
    else
        update wf.pending_end p
           set engine_error_message = concat(p.engine_error_message, ' (and in finally: ',
                                             v_new.engine_error_message, ')')
         where p.node_execution_id = v_old.node_execution_id;
        return query select * from wf.wf_take_verdict(p_ordinal, v_old.node_execution_id);
    end if;
end
$$;

-- Goes on from on_error, or from a body that succeeded, with the verdict on the row: to the finally,
-- if there is one, else to the end.
create or replace function wf.wf_sequence_finally(p_ordinal integer, p_node_execution_id bigint)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    select e.workflow_instance_id, n.finally_node_id into v_row
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_node_execution_id;
    if v_row.finally_node_id is null then
        return query select * from wf.wf_take_verdict(p_ordinal, p_node_execution_id);
        return;
    end if;
    -- Once the finally has begun, the time-out no longer applies.
    delete from wf.timer t where t.node_execution_id = p_node_execution_id;
    update wf.pending_end p set phase = 'FINALLY' where p.node_execution_id = p_node_execution_id;
    return next wf.wf_start_step(p_ordinal, p_node_execution_id, v_row.workflow_instance_id,
                                 v_row.finally_node_id);
end
$$;

-- The last child of a body, an on_error or a finally has succeeded.
create or replace function wf.wf_sequence_done(
    p_ordinal integer, p_child_execution_id bigint, p_edge_kind text, p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
    v_end wf.pending_end;
begin
    select e.parent_execution_id as node_execution_id, e.workflow_instance_id into v_row
      from wf.node_execution e where e.node_execution_id = p_child_execution_id;
    if p_edge_kind = 'SEQUENCE' then
        insert into wf.pending_end (node_execution_id, workflow_instance_id, phase, verdict)
        values (v_row.node_execution_id, v_row.workflow_instance_id, 'FINALLY', 'SUCCEED');
        return query select * from wf.wf_sequence_finally(p_ordinal, v_row.node_execution_id);
        return;
    end if;
    select p.* into v_end from wf.pending_end p where p.node_execution_id = v_row.node_execution_id;
    if p_edge_kind = 'ON_ERROR' then
        update wf.pending_end p
           set verdict = 'SUCCEED', result_code = null, engine_error_code = null,
               engine_error_message = null, error_execution_id = null
         where p.node_execution_id = v_row.node_execution_id;
        return query select * from wf.wf_sequence_finally(p_ordinal, v_row.node_execution_id);
    elsif v_end.is_cancelled then
        return query select * from wf.wf_cancelled_done(p_ordinal, v_end, p_now);
    else
        return query select * from wf.wf_take_verdict(p_ordinal, v_row.node_execution_id);
    end if;
end
$$;

-- The finally of a cancelled SEQUENCE has ended, whatever it gave: the SEQUENCE is CANCELLED, and the
-- one it tells goes on when this was the last it waited for.
create or replace function wf.wf_cancelled_done(
    p_ordinal integer, p_end wf.pending_end, p_now timestamptz
)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_above wf.pending_end;
begin
    delete from wf.pending_end p where p.node_execution_id = p_end.node_execution_id;
    update wf.node_execution e
       set status = 'CANCELLED', ended_at = p_now
     where e.node_execution_id = p_end.node_execution_id;
    if exists (select 1 from wf.pending_end p where p.cancel_parent_id = p_end.cancel_parent_id) then
        return;
    end if;
    select p.* into v_above from wf.pending_end p
     where p.node_execution_id = p_end.cancel_parent_id;
    if v_above.is_cancelled then
        return query select * from wf.wf_start_finally(p_ordinal, v_above.node_execution_id);
    else
        return query select * from wf.wf_take_verdict(p_ordinal, v_above.node_execution_id);
    end if;
end
$$;

-- Closing entries -------------------------------------------------------------------------------------

-- One entry that may close other work: a failure (F), a success that may decide its parent (J), a
-- time that is up (T). Needs the exclusive gate.
create or replace function wf.wf_engine_close(p_entry wf.agenda_entry, p_now timestamptz)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    select e.parent_execution_id, n.parent_type, n.edge_kind into v_row
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_entry.node_execution_id;
    if p_entry.kind = 'T' then
        return query select * from wf.wf_time_is_up(p_entry, p_now);
    elsif v_row.parent_execution_id = 0 then
        perform wf.wf_end_instance(p_entry.workflow_instance_id, 'FAILED',
                                   p_entry.node_execution_id, p_now);
    elsif v_row.parent_type in ('PARALLEL', 'FOREACH') then
        return query select * from wf.wf_join_ended(p_entry.ordinal, p_entry.node_execution_id,
                                                    p_entry.kind = 'J', p_now);
    elsif p_entry.kind = 'J' then
        return query select * from wf.wf_sequence_done(p_entry.ordinal, p_entry.node_execution_id,
                                                       v_row.edge_kind, p_now);
    elsif v_row.parent_type = 'SEQUENCE' then
        return query select * from wf.wf_sequence_failed(p_entry.ordinal, p_entry.node_execution_id,
                                                         v_row.edge_kind, p_now);
    else
        return next wf.wf_fail_by_step(p_entry.ordinal, v_row.parent_execution_id,
                                       p_entry.workflow_instance_id, p_entry.node_execution_id);
    end if;
end
$$;

-- The time of a composite or a WAIT_EVENT is up (S7.3, S8.5): what is open below a composite is
-- cancelled and it fails with 10013, a SEQUENCE by way of its on_error and finally; a WAIT_EVENT runs
-- its timeout body, or fails.
create or replace function wf.wf_time_is_up(p_entry wf.agenda_entry, p_now timestamptz)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row     record;
    v_message text;
begin
    select n.node_type, n.timeout_ms, n.timeout_node_id into v_row
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_entry.node_execution_id;
    delete from wf.event_wait w where w.node_execution_id = p_entry.node_execution_id;
    if v_row.timeout_node_id is not null then
        update wf.node_execution e set status = 'RUNNING'
         where e.node_execution_id = p_entry.node_execution_id;
        return next wf.wf_start_step(p_entry.ordinal, p_entry.node_execution_id,
                                     p_entry.workflow_instance_id, v_row.timeout_node_id);
        return;
    end if;
    v_message := format('%s: timed out after %s ms',
                        wf.wf_execution_path(p_entry.node_execution_id), v_row.timeout_ms);
    insert into wf.pending_end (node_execution_id, workflow_instance_id, phase, verdict,
        engine_error_code, engine_error_message, error_execution_id)
    values (p_entry.node_execution_id, p_entry.workflow_instance_id, 'WAITING',
            case v_row.node_type when 'SEQUENCE' then 'BODY_FAILED' else 'FAIL' end,
            10013, v_message, p_entry.node_execution_id)
    -- The time of a SEQUENCE is up in its on_error, which ends and is not tried again.
    on conflict (node_execution_id) do update
        set phase = 'WAITING', verdict = 'HANDLER_FAILED', result_code = null,
            engine_error_code = excluded.engine_error_code,
            engine_error_message = excluded.engine_error_message,
            error_execution_id = excluded.error_execution_id;
    return query select * from wf.wf_close_below(p_entry.ordinal, p_entry.workflow_instance_id,
                                                 p_entry.node_execution_id, p_now);
end
$$;

-- Instances -------------------------------------------------------------------------------------------

-- Ends an instance whose root has ended; its error is the root's.
create or replace function wf.wf_end_instance(
    p_workflow_instance_id bigint, p_status text, p_root_execution_id bigint, p_now timestamptz
) returns void
language sql set search_path = pg_catalog, pg_temp as $$
    update wf.workflow_instance i
       set status = p_status, ended_at = p_now,
           error_code = case when p_status = 'FAILED' then e.result_code end,
           engine_error_code = case when p_status = 'FAILED' then e.engine_error_code end,
           engine_error_message = case when p_status = 'FAILED' then e.engine_error_message end,
           error_execution_id = case when p_status = 'FAILED' then e.error_execution_id end
      from wf.node_execution e
     where i.workflow_instance_id = p_workflow_instance_id
       and e.node_execution_id = p_root_execution_id
$$;
-- Ends the instances whose roots have succeeded: those without `output` in one statement.
create or replace function wf.wf_finish_instances(p_roots wf.agenda_entry[], p_now timestamptz)
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_plain integer;
begin
    update wf.workflow_instance i
       set status = 'SUCCEEDED', ended_at = p_now, error_code = null, engine_error_code = null,
           engine_error_message = null, error_execution_id = null
      from unnest(p_roots) r, wf.workflow_version v
     where i.workflow_instance_id = r.workflow_instance_id
       and v.workflow_version_id = i.workflow_version_id and v.outputs_json = '[]';
    get diagnostics v_plain = row_count;
    if v_plain < cardinality(p_roots) then
        perform wf.wf_finish_instance(r.workflow_instance_id, r.node_execution_id, p_now)
           from unnest(p_roots) r
           join wf.workflow_instance i on i.workflow_instance_id = r.workflow_instance_id
           join wf.workflow_version v on v.workflow_version_id = i.workflow_version_id
          where v.outputs_json <> '[]';
    end if;
end
$$;

-- The root has succeeded: evaluates `output` in the root's scope and ends the instance. A name that
-- only a `set` would have brought into being, and none has, gives null; any other error fails the
-- instance at the root (R16).
create or replace function wf.wf_finish_instance(
    p_workflow_instance_id bigint, p_root_execution_id bigint, p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_output record;
    v_value  record;
    v_result jsonb;
    v_code   integer;
    v_text   text;
begin
    for v_output in
        select o.value ->> 'name' as name, o.value -> 'program' as program_json
          from wf.workflow_instance i
          join wf.workflow_version v on v.workflow_version_id = i.workflow_version_id
         cross join lateral jsonb_array_elements(v.outputs_json) with ordinality o(value, position)
         where i.workflow_instance_id = p_workflow_instance_id
         order by o.position
    loop
        select * into v_value
          from wf.wf_eval_expression(v_output.program_json, p_root_execution_id,
                                     p_unset_is_null => true);
        v_code := v_value.error_code;
        v_text := v_value.error_message;
        exit when v_code is not null;
        v_result := coalesce(v_result, '{}')
            || jsonb_build_object(v_output.name, v_value.value_json);
    end loop;
    if v_code is null and v_result is not null then
        v_text := wf.wf_storable_problem(v_result);
        v_code := case when v_text is not null then 10018 end;
    end if;
    if v_code is not null then
        update wf.node_execution e
           set status = 'FAILED', result_code = null, error_execution_id = p_root_execution_id,
               engine_error_code = v_code,
               engine_error_message = wf.wf_execution_path(p_root_execution_id) || ': ' || v_text
         where e.node_execution_id = p_root_execution_id;
        perform wf.wf_end_instance(p_workflow_instance_id, 'FAILED', p_root_execution_id, p_now);
        return;
    end if;
    if v_result is not null then
        update wf.execution_context x set output_json = v_result
         where x.workflow_instance_id = p_workflow_instance_id;
    end if;
    perform wf.wf_end_instance(p_workflow_instance_id, 'SUCCEEDED', p_root_execution_id, p_now);
end
$$;

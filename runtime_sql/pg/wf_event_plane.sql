-- Events and the WAIT_EVENTs that take them. Twin: mssql/wf_event_plane.sql
--
-- No lost wake-up (R2): a wait and an event that match both update the row of wf.event_route for
-- their type and correlation key before they look for the other; whoever comes second sees the
-- first. The key '' stands for waits without `correlate`.

-- WAIT_EVENT: evaluates `correlate` and opens the wait. It meets its events at the end of the call
-- (wf_wait_register).
create or replace function wf.wf_wait_activate(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    for v_row in
        select a.*, n.attributes_json ->> 'event_type' as event_type,
               n.attributes_json ? 'correlate' as has_correlate,
               c.value_json, c.error_code, c.error_message
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         cross join lateral wf.wf_eval_expression(
                coalesce(n.attributes_json -> 'correlate', '[["lit",null]]'),
                a.node_execution_id) c
         order by a.ordinal
    loop
        if v_row.error_code is null and v_row.has_correlate
           and wf.wf_type_word(v_row.value_json) not in ('string', 'integer', 'null') then
            v_row.error_code := 10010;
            v_row.error_message := 'correlate takes a string or an integer, not '
                || wf.wf_type_word(v_row.value_json);
        end if;
        if v_row.error_code is not null then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, v_row.error_code, v_row.error_message);
            continue;
        end if;
        insert into wf.event_wait (node_execution_id, workflow_instance_id, event_type,
                                   correlation_key, matches_nothing)
        values (v_row.node_execution_id, v_row.workflow_instance_id, v_row.event_type,
                v_row.value_json #>> '{}',
                v_row.has_correlate and jsonb_typeof(v_row.value_json) = 'null');
    end loop;
end
$$;

-- Lets the waits that this call opened meet the events that came before them: takes their routes in
-- key order, then gives each the oldest event since the instance's start that the instance has not
-- consumed (S8.4) and that is not older than its type is kept for (R33). Answers the entries of waits
-- that completed by it. Locks: routes; the events it takes, which a purge may be about to remove.
-- Raises WFX01 when an instance held shared has such an event: to consume it is for the exclusive gate.
create or replace function wf.wf_wait_register(
    p_waits wf.agenda_entry[], p_exclusive bigint[], p_now timestamptz
) returns wf.agenda_entry[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_event bigint;
    v_level wf.agenda_entry[] := '{}';
begin
    for v_row in
        select distinct w.event_type, coalesce(w.correlation_key, '') as correlation_key
          from unnest(p_waits) a
          join wf.event_wait w on w.node_execution_id = a.node_execution_id
         where not w.matches_nothing
         order by 1, 2
    loop
        insert into wf.event_route as r (event_type, correlation_key)
        values (v_row.event_type, v_row.correlation_key)
        on conflict (event_type, correlation_key) do update set touched = r.touched + 1;
    end loop;
    for v_row in
        select w.*, i.events_after_id, i.workflow_version_id, row_number() over (order by w.node_execution_id) as position
          from unnest(p_waits) a
          join wf.event_wait w on w.node_execution_id = a.node_execution_id
          join wf.workflow_instance i on i.workflow_instance_id = w.workflow_instance_id
         where not w.matches_nothing
         order by w.node_execution_id
    loop
        select v.event_id into v_event
          from wf.event v
         where v.event_type = v_row.event_type
           and (v_row.correlation_key is null or v.correlation_key = v_row.correlation_key)
           and v.event_id > v_row.events_after_id
           and coalesce(v.workflow_instance_id, v_row.workflow_instance_id)
               = v_row.workflow_instance_id
           and v.ingested_at > p_now - wf.wf_event_keep_for(v.event_type)
           and wf.wf_event_fits_version(v_row.workflow_version_id, v.event_type, v.payload_json)
           and not exists (select 1 from wf.event_delivery d
                            where d.workflow_instance_id = v_row.workflow_instance_id
                              and d.event_id = v.event_id and d.outcome = 'applied')
         order by v.event_id
         limit 1
           for key share of v;
        continue when v_event is null;
        if v_row.workflow_instance_id <> all (p_exclusive) then
            raise exception 'the gate of instance % is needed exclusive', v_row.workflow_instance_id
                using errcode = 'WFX01', detail = v_row.workflow_instance_id::text;
        end if;
        v_level := v_level || wf.wf_wait_complete(v_row.node_execution_id, v_event,
                                                  v_row.position::integer, p_now);
    end loop;
    return v_level;
end
$$;

-- What programs see of an event.
create or replace function wf.wf_event_document(p_event_id bigint) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
    select jsonb_build_object(
        'id', v.event_id, 'type', v.event_type, 'source', v.source,
        'correlation_key', v.correlation_key, 'payload', v.payload_json,
        'occurred_at', to_char(v.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
      from wf.event v where v.event_id = p_event_id
$$;

-- Completes one wait with one event: result code 0, the payload as output, ctx.event set, its
-- `set`s run, a delivery row. Needs the exclusive gate. Answers the agenda entry, S or F.
create or replace function wf.wf_wait_complete(
    p_node_execution_id bigint, p_event_id bigint, p_ordinal integer, p_now timestamptz
) returns wf.agenda_entry
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_wait  wf.event_wait;
    v_event jsonb := wf.wf_event_document(p_event_id);
    v_error record;
    v_kind  text;
begin
    delete from wf.event_wait w where w.node_execution_id = p_node_execution_id returning w.* into v_wait;
    delete from wf.timer t where t.node_execution_id = p_node_execution_id;
    select case when n.success_may_close then 'J' else 'S' end into v_kind
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_node_execution_id;
    update wf.node_execution e
       set status = 'SUCCEEDED', result_code = 0, output_json = v_event -> 'payload', ended_at = p_now
     where e.node_execution_id = p_node_execution_id;
    update wf.execution_context x set event_json = v_event
     where x.workflow_instance_id = v_wait.workflow_instance_id;
    perform wf.wf_add_delivery(p_event_id, i.workflow_def_id, i.workflow_instance_id,
                               p_node_execution_id, 'applied', null, p_now)
       from wf.workflow_instance i
      where i.workflow_instance_id = v_wait.workflow_instance_id;
    select * into v_error
      from wf.wf_apply_output_bindings(p_node_execution_id, v_event -> 'payload', 0, v_event);
    if v_error.error_code is not null then
        perform wf.wf_fail_completed(p_node_execution_id, v_error.error_code, v_error.error_message);
        v_kind := 'F';
    end if;
    return wf.wf_agenda_entry(p_ordinal, p_node_execution_id, v_wait.workflow_instance_id, v_kind);
end
$$;

-- Whether a payload has every field that a filter names, with an equal value (S3.1); a field that is
-- not there is unequal. A filter is an array of {path, value}.
create or replace function wf.wf_filter_fits(p_filter jsonb, p_payload jsonb) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select not exists (
        select 1 from jsonb_array_elements(p_filter) f
         where (p_payload #> array(select jsonb_array_elements_text(f.value -> 'path')))
               is distinct from f.value -> 'value')
$$;

-- Whether the waits of a version take an event: one of its signal subscriptions of the type fits, or
-- it has none (R18).
create or replace function wf.wf_event_fits_version(
    p_workflow_version_id bigint, p_event_type text, p_payload jsonb
) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(bool_or(wf.wf_filter_fits(s.filter_json, p_payload)), true)
      from wf.event_subscription s
     where s.workflow_version_id = p_workflow_version_id and s.event_type = p_event_type
       and s.enabled and s.mode in ('signal_wait', 'start_or_signal')
$$;

-- The open waits that an event matches, one per instance: the one that was activated first (R33).
create or replace function wf.wf_event_waits(
    p_event_type text, p_correlation_key text, p_payload jsonb, p_workflow_instance_id bigint
) returns table (node_execution_id bigint, workflow_instance_id bigint)
language sql stable set search_path = pg_catalog, pg_temp as $$
    select min(w.node_execution_id), w.workflow_instance_id
      from wf.event_wait w
      join wf.workflow_instance i on i.workflow_instance_id = w.workflow_instance_id
     where w.event_type = p_event_type
       and wf.wf_event_fits_version(i.workflow_version_id, p_event_type, p_payload)
       and not w.matches_nothing
       and (w.correlation_key is null or w.correlation_key = p_correlation_key)
       and (p_workflow_instance_id is null or w.workflow_instance_id = p_workflow_instance_id)
     group by w.workflow_instance_id
     order by w.workflow_instance_id
$$;

-- One outcome of an event.
create or replace function wf.wf_add_delivery(
    p_event_id bigint, p_workflow_def_id bigint, p_workflow_instance_id bigint,
    p_node_execution_id bigint, p_outcome text, p_reason text, p_now timestamptz
) returns void
language sql set search_path = pg_catalog, pg_temp as $$
    insert into wf.event_delivery (event_id, delivery_no, workflow_def_id, workflow_instance_id,
                                   node_execution_id, outcome, reason, delivered_at)
    select p_event_id, 1 + count(*), p_workflow_def_id, p_workflow_instance_id,
           p_node_execution_id, p_outcome, p_reason, p_now
      from wf.event_delivery d
     where d.event_id = p_event_id
$$;

-- What an event does beyond completing waits, for each subscription of an active version that it
-- fits: `start_instance` starts an instance, `start_or_signal` does so when nothing of that workflow
-- was waiting, and a signal that met no wait is ignored (S8.2). An instance whose input does not fit
-- is not started, and the delivery says why (R19).
create or replace function wf.wf_deliver_to_subscriptions(p_event_id bigint, p_now timestamptz)
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row     record;
    v_applied boolean;
begin
    for v_row in
        select s.mode, s.inputs_json, v.workflow_def_id, v.workflow_version_id
          from wf.event e
          join wf.event_subscription s on s.event_type = e.event_type
          join wf.workflow_version v on v.workflow_version_id = s.workflow_version_id
         where e.event_id = p_event_id and s.enabled and v.is_active
           and wf.wf_filter_fits(s.filter_json, e.payload_json)
         order by v.workflow_def_id, s.subscription_order
    loop
        -- One that is being deleted is waited for, and then is none (wf_delete_definition.sql).
        perform 1 from wf.workflow_def d
          where d.workflow_def_id = v_row.workflow_def_id for key share;
        continue when not found;
        v_applied := exists (
            select 1 from wf.event_delivery d
             where d.event_id = p_event_id and d.workflow_def_id = v_row.workflow_def_id
               and d.outcome = 'applied');
        if v_row.mode = 'start_instance' or v_row.mode = 'start_or_signal' and not v_applied then
            perform wf.wf_start_by_event(p_event_id, v_row.workflow_def_id,
                                         v_row.workflow_version_id, v_row.inputs_json, p_now);
        elsif not v_applied and not exists (
            select 1 from wf.event_delivery d
             where d.event_id = p_event_id and d.workflow_def_id = v_row.workflow_def_id) then
            perform wf.wf_add_delivery(p_event_id, v_row.workflow_def_id, null, null, 'ignored',
                                       'nothing was waiting', p_now);
        end if;
    end loop;
end
$$;

-- Starts an instance by an event, which it has consumed (R33).
create or replace function wf.wf_start_by_event(
    p_event_id bigint, p_workflow_def_id bigint, p_workflow_version_id bigint, p_inputs jsonb,
    p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_event   jsonb := wf.wf_event_document(p_event_id);
    v_context jsonb := '{}';
    v_row     record;
    v_id      bigint;
begin
    for v_row in
        select i.value ->> 'name' as name, x.value_json, x.error_code, x.error_message
          from jsonb_array_elements(p_inputs) i
         cross join lateral wf.wf_eval_expression(i.value -> 'program', 0, null, null, v_event) x
    loop
        -- What the event does not have is left to the input's default, or to the check of inputs.
        continue when v_row.error_code = 10001;
        if v_row.error_code is not null then
            perform wf.wf_add_delivery(p_event_id, p_workflow_def_id, null, null, 'ignored',
                format('input %s: %s', v_row.name, v_row.error_message), p_now);
            return;
        end if;
        v_context := v_context || jsonb_build_object(v_row.name, v_row.value_json);
    end loop;
    begin
        insert into wf.workflow_instance as i (workflow_def_id, workflow_version_id, spec_format,
                                               created_at)
        select p_workflow_def_id, v.workflow_version_id, v.spec_format, p_now
          from wf.workflow_version v where v.workflow_version_id = p_workflow_version_id
        returning i.workflow_instance_id into v_id;
        insert into wf.execution_context (workflow_instance_id, context_json, event_json)
        values (v_id, v_context, v_event);
        perform wf.wf_add_delivery(p_event_id, p_workflow_def_id, v_id, null, 'applied', null, p_now);
        perform wf.sp_start_workflow_instance(v_id);
    exception when others then
        -- The engine's own refusals (10015, or a variable that cannot be computed) are an outcome of
        -- the delivery; anything else is none.
        if sqlstate not like 'WF___' or sqlstate = 'WFX01' then
            raise;
        end if;
        perform wf.wf_add_delivery(p_event_id, p_workflow_def_id, null, null, 'ignored', sqlerrm,
                                   p_now);
    end;
end
$$;

-- Completes the waits of one instance, or of all, that an event of this type and key would: an event
-- without a source, which starts nothing. Like an event it is kept for waits that open later; one to
-- an instance, for those of that instance. Answers how many waits it completed. Locks and errors as sp_ingest_event; 20002 unknown instance.
create or replace function wf.sp_signal_wait(
    p_event_type text, p_correlation_key text, p_payload_json jsonb default null,
    p_workflow_instance_id bigint default null
) returns table (applied_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_payload jsonb := coalesce(p_payload_json, '{}');
    v_gates   bigint[];
    v_detail  text;
begin
    perform wf.wf_check_key('event_type', p_event_type);
    if p_correlation_key is not null then
        perform wf.wf_check_key('correlation_key', p_correlation_key);
    end if;
    if pg_column_size(p_payload_json) > 16777216 then
        perform wf.wf_raise(20005, 'the payload has more than 16 MB');
    end if;
    if p_workflow_instance_id is not null
       and wf.wf_lock_instance(p_workflow_instance_id) in ('SUCCEEDED', 'FAILED', 'CANCELLED') then
        return query select 0;
        return;
    end if;
    v_gates := array(select w.workflow_instance_id
                       from wf.wf_event_waits(p_event_type, p_correlation_key, v_payload,
                                              p_workflow_instance_id) w);
    for v_try in 1 .. 5 loop
        begin
            return query
            select wf.wf_signal_attempt(p_event_type, p_correlation_key, v_payload,
                                        p_workflow_instance_id, v_gates);
            return;
        exception
            when sqlstate 'WFX01' then
                get stacked diagnostics v_detail = pg_exception_detail;
                v_gates := v_gates || v_detail::bigint;
            when deadlock_detected then
                perform pg_sleep(0.05 * v_try);  -- as in sp_ingest_event
        end;
    end loop;
    perform wf.wf_raise(20009, 'the waiting instances keep changing; try again');
end
$$;

-- One attempt at a signal with the gates of p_gates. Raises WFX01 for a wait of another instance.
create or replace function wf.wf_signal_attempt(
    p_event_type text, p_correlation_key text, p_payload_json jsonb,
    p_workflow_instance_id bigint, p_gates bigint[]
) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_gates record;
    v_now   timestamptz;
    v_id    bigint;
begin
    v_gates := wf.wf_event_gates(p_event_type, p_correlation_key, p_payload_json,
                                 p_workflow_instance_id, p_gates);
    v_now := v_gates.at;
    perform wf.wf_take_route(p_event_type, p_correlation_key);
    insert into wf.event as v (event_type, source, idempotency_key, correlation_key, payload_json,
                               occurred_at, ingested_at, workflow_instance_id)
    values (p_event_type, 'wf.sp_signal_wait', gen_random_uuid()::text, p_correlation_key,
            p_payload_json, v_now, v_now, p_workflow_instance_id)
    returning v.event_id into v_id;
    perform wf.wf_add_timeouts(v_id, v_gates.timed_out, v_now);
    return wf.wf_apply_event(v_id, p_workflow_instance_id, p_gates, v_now);
end
$$;

-- Takes the gates of an event exclusive and applies what is due there: a time-out that is due wins
-- over the event (R21). Answers the time of the call, and the waits that the event would have
-- completed but for a time-out.
create or replace function wf.wf_event_gates(
    p_event_type text, p_correlation_key text, p_payload_json jsonb,
    p_workflow_instance_id bigint, p_gates bigint[], out at timestamptz, out timed_out bigint[]
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_due bigint[];
begin
    perform wf.wf_take_gates(p_gates, p_gates);
    at := wf.wf_now();
    v_due := array(
        select i.workflow_instance_id from wf.workflow_instance i
         where i.workflow_instance_id = any (p_gates) and i.status = 'RUNNING'
         order by i.workflow_instance_id);
    timed_out := array(
        select w.node_execution_id
          from wf.wf_event_waits(p_event_type, p_correlation_key, p_payload_json,
                                 p_workflow_instance_id) w
         where w.workflow_instance_id = any (v_due));
    perform wf.wf_apply_due(q.id, at) from unnest(v_due) with ordinality q(id, position)
      order by q.position;
    timed_out := array(
        select q.id from unnest(timed_out) with ordinality q(id, position)
         where not exists (select 1 from wf.event_wait w where w.node_execution_id = q.id)
         order by q.position);
end
$$;

-- Writes down that an event came too late for waits.
create or replace function wf.wf_add_timeouts(
    p_event_id bigint, p_timed_out bigint[], p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform wf.wf_add_delivery(p_event_id, i.workflow_def_id, i.workflow_instance_id,
                               e.node_execution_id, 'ignored', 'timeout', p_now)
       from wf.node_execution e
       join wf.workflow_instance i on i.workflow_instance_id = e.workflow_instance_id
      where e.node_execution_id = any (p_timed_out);
end
$$;

-- Completes the waits that an event matches, of one instance or of all, and runs what follows.
-- Answers how many. Needs the route; raises WFX01 for a wait of an instance whose gate is not held.
create or replace function wf.wf_apply_event(
    p_event_id bigint, p_workflow_instance_id bigint, p_gates bigint[], p_now timestamptz
) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_wait  record;
    v_level wf.agenda_entry[] := '{}';
begin
    for v_wait in
        select w.*
          from wf.event v
         cross join lateral wf.wf_event_waits(v.event_type, v.correlation_key, v.payload_json,
                                              p_workflow_instance_id) w
         where v.event_id = p_event_id
    loop
        if v_wait.workflow_instance_id <> all (p_gates) then
            raise exception 'the gate of instance % is needed exclusive',
                v_wait.workflow_instance_id
                using errcode = 'WFX01', detail = v_wait.workflow_instance_id::text;
        end if;
        v_level := v_level || wf.wf_wait_complete(v_wait.node_execution_id, p_event_id,
                                                  cardinality(v_level) + 1, p_now);
    end loop;
    if cardinality(v_level) > 0 then
        perform wf.wf_engine_run(v_level, p_gates, p_now);
    end if;
    return cardinality(v_level);
end
$$;

-- Takes in an event and completes the waits that match it, one per instance. The second of two with
-- equal source and idempotency_key is a duplicate and has no effect, also when both come at once.
-- Answers one row: event_id, duplicate, applied_count, ignored_count, and differs: of a duplicate,
-- whether the first one had another type, correlation key or payload.
-- Locks: gates of the candidate instances exclusive, ascending; the route row ('' shared); the event.
-- Errors: 20004 an argument is missing or out of bounds; 20005 payload over 16 MB; 20009 the
-- candidates changed five times meanwhile, try again.
create or replace function wf.sp_ingest_event(
    p_event_type text, p_source text, p_idempotency_key text, p_payload_json jsonb default null,
    p_correlation_key text default null, p_occurred_at_utc timestamptz default null
) returns table (event_id bigint, duplicate boolean, applied_count integer, ignored_count integer,
                 differs boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_gates bigint[] := '{}';
    v_detail text;
begin
    perform wf.wf_check_key('event_type', p_event_type);
    perform wf.wf_check_key('source', p_source);
    perform wf.wf_check_key('idempotency_key', p_idempotency_key);
    if p_correlation_key is not null then
        perform wf.wf_check_key('correlation_key', p_correlation_key);
    end if;
    if pg_column_size(p_payload_json) > 16777216 then
        perform wf.wf_raise(20005, 'the payload has more than 16 MB');
    end if;
    select coalesce(array_agg(w.workflow_instance_id), '{}') into v_gates
      from wf.wf_event_waits(p_event_type, p_correlation_key, coalesce(p_payload_json, '{}'),
                             null) w;
    for v_try in 1 .. 5 loop
        begin
            return query
            select * from wf.wf_ingest_attempt(p_event_type, p_source, p_idempotency_key,
                coalesce(p_payload_json, '{}'), p_correlation_key, p_occurred_at_utc, v_gates);
            return;
        exception
            when sqlstate 'WFX01' then
                get stacked diagnostics v_detail = pg_exception_detail;
                v_gates := v_gates || v_detail::bigint;
            when deadlock_detected then
                -- What follows from this event opens waits on other routes, in no order that could be
                -- known before; two such events may need each other's. One starts over, and lets the
                -- other have what it waited for.
                perform pg_sleep(0.05 * v_try);
        end;
    end loop;
    perform wf.wf_raise(20009, 'the waiting instances keep changing; try again');
end
$$;

-- One attempt at an ingest with the gates of p_gates. Raises WFX01 for a wait of another instance.
create or replace function wf.wf_ingest_attempt(
    p_event_type text, p_source text, p_idempotency_key text, p_payload_json jsonb,
    p_correlation_key text, p_occurred_at timestamptz, p_gates bigint[]
) returns table (event_id bigint, duplicate boolean, applied_count integer, ignored_count integer,
                 differs boolean)
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_gates record;
    v_now   timestamptz;
    v_id    bigint;
    v_other boolean;
begin
    v_gates := wf.wf_event_gates(p_event_type, p_correlation_key, p_payload_json, null, p_gates);
    v_now := v_gates.at;
    perform wf.wf_take_route(p_event_type, p_correlation_key);
    insert into wf.event as v (event_type, source, idempotency_key, correlation_key, payload_json,
                               occurred_at, ingested_at)
    values (p_event_type, p_source, p_idempotency_key, p_correlation_key, p_payload_json,
            coalesce(p_occurred_at, v_now), v_now)
    on conflict (source, idempotency_key) do nothing
    returning v.event_id into v_id;
    if v_id is null then
        update wf.event v set duplicate_count = v.duplicate_count + 1
         where v.source = p_source and v.idempotency_key = p_idempotency_key
        returning v.event_id,
                  v.event_type <> p_event_type or v.payload_json <> p_payload_json
                  or v.correlation_key is distinct from p_correlation_key
             into v_id, v_other;
        return query select v_id, true, 0, 0, v_other;
        return;
    end if;
    perform wf.wf_add_timeouts(v_id, v_gates.timed_out, v_now);
    perform wf.wf_apply_event(v_id, null, p_gates, v_now);
    perform wf.wf_deliver_to_subscriptions(v_id, v_now);
    return query
    select v_id, false, count(*) filter (where d.outcome = 'applied')::integer,
           count(*) filter (where d.outcome = 'ignored')::integer, false
      from wf.event_delivery d where d.event_id = v_id;
end
$$;

-- Locks the route of an event: its own key by an update, the key '' shared, since an event of the
-- type matches waits without `correlate` too.
create or replace function wf.wf_take_route(p_event_type text, p_correlation_key text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into wf.event_route (event_type, correlation_key) values (p_event_type, '')
        on conflict (event_type, correlation_key) do nothing;
    perform 1 from wf.event_route r
      where r.event_type = p_event_type and r.correlation_key = '' for share;
    if p_correlation_key is not null then
        insert into wf.event_route as r (event_type, correlation_key)
        values (p_event_type, p_correlation_key)
        on conflict (event_type, correlation_key) do update set touched = r.touched + 1;
    end if;
end
$$;

-- Refuses a key that not every engine could hold and compare alike (R7): 20004.
create or replace function wf.wf_check_key(p_what text, p_value text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if p_value is null or char_length(p_value) not between 1 and 200
       or p_value ~ '^ | $|[\x01-\x1f\x7f-\x9f]' then
        perform wf.wf_raise(20004, format('%s must have 1 to 200 characters, none of them a control '
            'character, and no space at either end', p_what));
    end if;
end
$$;

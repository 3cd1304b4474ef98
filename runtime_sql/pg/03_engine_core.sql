-- The engine's loop: a work list, never recursion. Twin: mssql/03_engine_core.sql
--
-- A call that changes instances makes AGENDA ENTRIES and hands them to wf.wf_engine_run, which
-- works them off level by level (rules S1.6, R12). An entry is one execution and what is to be
-- looked at:
--     A  it was activated just now         S  it has succeeded        F  it has failed
--     J  it has succeeded, which may decide a join or end a cancelled SEQUENCE
--     T  its time is up                    C  it has succeeded, and the counter of its join may be
--                                             touched now
-- An entry carries what is known of its execution, so that no handler looks it up again: node, parent
-- and scope. Callers leave these out (wf.wf_agenda_entry), and the run starts by filling them in.
-- A handler takes the entries of one kind and answers STEPS: START a child, or let an execution
-- SUCCEED or FAIL. wf.wf_engine_apply carries the steps out in set-based statements and answers the
-- entries of the next level. One handler per node type stands in this file, FOREACH's in
-- 08_foreach_support.sql, WAIT_EVENT's in wf_event_plane.sql.
--
-- Gate (R1). Every caller holds the gate of each instance it hands in: the workflow_instance row,
-- FOR KEY SHARE when it can only extend its own branch, FOR UPDATE when it may close other work.
-- A failure that turns up under a shared gate raises WFX01 with the instance id in DETAIL; the
-- caller rolls back to its savepoint and starts over with that gate exclusive.
--
-- Lock order: gates by instance id, tasks, own executions, affinity, join counters, event routes.

create type wf.agenda_entry as (
    ordinal               integer,
    node_execution_id     bigint,
    workflow_instance_id  bigint,
    kind                  text,
    node_id               bigint,
    parent_execution_id   bigint,
    scope_id              bigint
);

-- step START: node_execution_id is the parent, node_id and iteration_no the child's, item_json a
-- FOREACH's item. SUCCEED and FAIL: node_execution_id is what ends; item_json is its output.
create type wf.agenda_step as (
    ordinal               integer,
    seq                   integer,
    step                  text,
    node_execution_id     bigint,
    workflow_instance_id  bigint,
    node_id               bigint,
    iteration_no          integer,
    item_json             jsonb,
    result_code           integer,
    engine_error_code     integer,
    message               text,
    error_execution_id    bigint
);

-- The only clock of the engine: UTC, whole milliseconds. A row `now` in wf.wf_setting, which only
-- the owner can write and only in a test database, moves it. Views call it with their reader's rights.
create or replace function wf.wf_now() returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select date_trunc('milliseconds', coalesce(
        (select s.value::timestamptz from wf.wf_setting s where s.name = 'now'),
        clock_timestamp()))
$$;

-- Raises an API error: errcode WA001 for 20001 and so on, the code in DETAIL (R23).
create or replace function wf.wf_raise(p_code integer, p_message text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception using
        errcode = 'WA' || lpad((p_code - 20000)::text, 3, '0'),
        message = p_message,
        detail = p_code::text;
end
$$;

-- An entry of which only this is known.
create or replace function wf.wf_agenda_entry(
    p_ordinal integer, p_node_execution_id bigint, p_workflow_instance_id bigint, p_kind text
) returns wf.agenda_entry
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select row(p_ordinal, p_node_execution_id, p_workflow_instance_id, p_kind, null, null,
               null)::wf.agenda_entry
$$;

-- The steps that handlers answer most.
create or replace function wf.wf_start_step(
    p_ordinal integer, p_parent_execution_id bigint, p_workflow_instance_id bigint, p_node_id bigint
) returns wf.agenda_step
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select row(p_ordinal, 0, 'START', p_parent_execution_id, p_workflow_instance_id, p_node_id, 0,
               null, null, null, null, null)::wf.agenda_step
$$;

create or replace function wf.wf_succeed_step(
    p_ordinal integer, p_node_execution_id bigint, p_workflow_instance_id bigint,
    p_result_code integer default 0
) returns wf.agenda_step
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select row(p_ordinal, 0, 'SUCCEED', p_node_execution_id, p_workflow_instance_id, null, null,
               null, p_result_code, null, null, null)::wf.agenda_step
$$;

-- A FAIL step of an execution that the engine itself fails; the message gets the node's path.
create or replace function wf.wf_fail_step(
    p_ordinal integer, p_node_execution_id bigint, p_workflow_instance_id bigint,
    p_engine_error_code integer, p_text text
) returns wf.agenda_step
language sql stable set search_path = pg_catalog, pg_temp as $$
    select row(p_ordinal, 0, 'FAIL', p_node_execution_id, p_workflow_instance_id,
               null, null, null, null, p_engine_error_code,
               wf.wf_execution_path(p_node_execution_id) || ': ' || p_text,
               p_node_execution_id)::wf.agenda_step
$$;

-- Whether a value is true (S3.4); null: it is no truth value and the caller fails with 10010.
create or replace function wf.wf_truth(p_value jsonb) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case jsonb_typeof(p_value)
        when 'boolean' then p_value = 'true'::jsonb
        when 'null' then false
        when 'number' then case when scale((p_value #>> '{}')::numeric) = 0
                                then (p_value #>> '{}')::numeric <> 0 end
        end
$$;

-- The word that messages use for the type of a value.
create or replace function wf.wf_type_word(p_value jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case when jsonb_typeof(p_value) <> 'number' then jsonb_typeof(p_value)
                when scale((p_value #>> '{}')::numeric) = 0 then 'integer'
                else 'decimal' end
$$;

-- Evaluates a condition in the place of an execution: its truth, or an engine error.
create or replace function wf.wf_eval_condition(
    p_program jsonb, p_node_execution_id bigint,
    out is_true boolean, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_value jsonb;
begin
    select x.value_json, x.error_code, x.error_message into v_value, error_code, error_message
      from wf.wf_eval_expression(p_program, p_node_execution_id) x;
    if error_code is null then
        is_true := wf.wf_truth(v_value);
        if is_true is null then
            error_code := 10010;
            error_message := 'a condition takes a boolean, an integer or null, not '
                || wf.wf_type_word(v_value);
        end if;
    end if;
end
$$;

-- Carrying out steps ------------------------------------------------------------------------------

-- Carries out the steps of one level: ends executions, starts children, and answers the entries of
-- the next level in the order of the entries that caused them. Ids rise in that order too.
create or replace function wf.wf_engine_apply(p_steps wf.agenda_step[], p_now timestamptz)
returns wf.agenda_entry[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_starts integer;
    v_steps  wf.agenda_step[];
    v_ended  wf.agenda_entry[];
begin
    if cardinality(p_steps) = 0 then
        return '{}';
    end if;
    if cardinality(p_steps) = 1 then
        v_starts := (p_steps[1].step = 'START')::integer;
    else
        select count(*) into v_starts from unnest(p_steps) s where s.step = 'START';
    end if;
    if v_starts = cardinality(p_steps) then
        return wf.wf_engine_start(p_steps, p_now);
    elsif v_starts = 0 then
        return wf.wf_engine_end(p_steps, p_now);
    end if;
    -- Both: the numbers that the steps get here are those of the entries.
    v_steps := array(
        select row(row_number() over (order by s.ordinal, s.seq), 0, s.step, s.node_execution_id,
                   s.workflow_instance_id, s.node_id, s.iteration_no, s.item_json, s.result_code,
                   s.engine_error_code, s.message, s.error_execution_id)::wf.agenda_step
          from unnest(p_steps) s);
    v_ended := wf.wf_engine_end(
        array(select s from unnest(v_steps) s where s.step <> 'START'), p_now, true);
    return array(
        select a
          from unnest(v_ended || wf.wf_engine_start(
                   array(select s from unnest(v_steps) s where s.step = 'START'), p_now, true)) a
         order by a.ordinal);
end
$$;

-- Ends executions: lets FOREACHs collect, writes the rows, and forgets what a PARALLEL, FOREACH or
-- REPEAT that has succeeded needs no more; one that failed may be retried (R14). Answers the entries
-- of the next level: J are the successes that may close other work, those that may decide a join and
-- finallys of cancelled SEQUENCEs.
-- p_keeps_ordinals: an entry gets its step's ordinal, else its place among the steps.
create or replace function wf.wf_engine_end(
    p_steps wf.agenda_step[], p_now timestamptz, p_keeps_ordinals boolean default false
) returns wf.agenda_entry[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_steps    wf.agenda_step[] := p_steps;
    v_entries  wf.agenda_entry[];
    v_collects boolean;
    v_deciding bigint[];
    v_joins    bigint[];
    v_timed    bigint[];
begin
    select bool_or(n.collect_node_id is not null and s.step = 'SUCCEED'),
           array_agg(s.node_execution_id)
               filter (where n.node_type in ('PARALLEL', 'FOREACH', 'REPEAT')),
           array_agg(s.node_execution_id) filter (where n.timeout_ms is not null),
           coalesce(array_agg(s.node_execution_id) filter (where n.success_may_close
               or n.edge_kind = 'FINALLY' and exists (
                    select 1 from wf.pending_end q
                     where q.node_execution_id = e.parent_execution_id and q.is_cancelled)), '{}')
      into v_collects, v_joins, v_timed, v_deciding
      from unnest(p_steps) s
      join wf.node_execution e on e.node_execution_id = s.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id;
    if v_collects then
        v_steps := wf.wf_foreach_collect(v_steps, p_now);
    end if;
    with ended as (
        update wf.node_execution e
           set status = case s.step when 'SUCCEED' then 'SUCCEEDED' else 'FAILED' end,
               attempt_no = greatest(e.attempt_no, 1),
               result_code = s.result_code, output_json = s.item_json, ended_at = p_now,
               engine_error_code = s.engine_error_code, engine_error_message = s.message,
               error_execution_id = s.error_execution_id
          from unnest(v_steps) s
         where e.node_execution_id = s.node_execution_id
        returning s.ordinal, s.seq, e.node_execution_id, e.workflow_instance_id,
                  case when s.step = 'FAIL' then 'F'
                       when e.node_execution_id = any (v_deciding) then 'J'
                       else 'S' end as kind, e.node_id, e.parent_execution_id, e.scope_id
    )
    select array_agg(row(case when p_keeps_ordinals then x.ordinal else x.position end,
                         x.node_execution_id, x.workflow_instance_id, x.kind, x.node_id,
                         x.parent_execution_id, x.scope_id)::wf.agenda_entry order by x.position)
      into v_entries
      from (select row_number() over (order by d.ordinal, d.seq)::integer as position, d.*
              from ended d) x;
    if v_joins is not null then
        v_joins := array(select s.node_execution_id from unnest(v_steps) s
                          where s.step = 'SUCCEED' and s.node_execution_id = any (v_joins));
        delete from wf.join_counter c where c.node_execution_id = any (v_joins);
        delete from wf.foreach_item f where f.node_execution_id = any (v_joins);
        delete from wf.loop_state l where l.node_execution_id = any (v_joins);
    end if;
    if v_timed is not null then
        delete from wf.timer t where t.node_execution_id = any (v_timed);
    end if;
    return coalesce(v_entries, '{}');
end
$$;

-- Inserts the executions, scopes and loop variables of START steps in one statement and answers them
-- as entries. p_keeps_ordinals as in wf_engine_end.
create or replace function wf.wf_engine_start(
    p_steps wf.agenda_step[], p_now timestamptz, p_keeps_ordinals boolean default false
) returns wf.agenda_entry[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_entries wf.agenda_entry[];
begin
    with started as materialized (
        select nextval('wf.node_execution_id_seq') as new_id, q.*
          from (select case when p_keeps_ordinals then s.ordinal
                            else row_number() over (order by s.ordinal, s.seq) end as ordinal,
                       s.workflow_instance_id, s.iteration_no, s.item_json,
                       s.node_execution_id as parent_execution_id, n.node_id, n.node_key,
                       n.node_type, n.opens_scope, n.loop_item_name, n.loop_index_name,
                       case when n.node_type <> 'ACTION' then n.timeout_ms end as timeout_ms,
                       p.scope_id as parent_scope_id,
                       case when n.parent_type in ('PARALLEL', 'FOREACH')
                            then p.node_execution_id else p.join_parent_id end as join_parent_id
                  from unnest(p_steps) s
                  join wf.node_execution p on p.node_execution_id = s.node_execution_id
                  join wf.workflow_node n on n.node_id = s.node_id
                 order by s.ordinal, s.seq) q
    ), executions as (
        insert into wf.node_execution (node_execution_id, workflow_instance_id,
            parent_execution_id, node_id, iteration_no, scope_id, join_parent_id, status,
            attempt_no, created_at)
        select x.new_id, x.workflow_instance_id, x.parent_execution_id, x.node_id, x.iteration_no,
               case when x.opens_scope then x.new_id else x.parent_scope_id end, x.join_parent_id,
               case when x.node_type in ('ACTION', 'WAIT_EVENT') then 'READY' else 'RUNNING' end,
               case x.node_type when 'ACTION' then 0 else 1 end, p_now
          from started x
    ), scopes as (
        insert into wf.scope (scope_id, parent_scope_id, workflow_instance_id, owner_key)
        select x.new_id, x.parent_scope_id, x.workflow_instance_id, x.node_key
          from started x
         where x.opens_scope
    ), timers as (
        insert into wf.timer (node_execution_id, workflow_instance_id, due_at)
        select x.new_id, x.workflow_instance_id, p_now + x.timeout_ms * interval '1 millisecond'
          from started x
         where x.timeout_ms is not null
    ), variables as (
        insert into wf.scope_variable (scope_id, name, value_json)
        select x.new_id, x.loop_item_name, x.item_json
          from started x
         where x.loop_item_name is not null
        union all
        select x.new_id, x.loop_index_name, to_jsonb(x.iteration_no)
          from started x
         where x.loop_index_name is not null
    )
    select array_agg(row(x.ordinal, x.new_id, x.workflow_instance_id, 'A', x.node_id,
                         x.parent_execution_id,
                         case when x.opens_scope then x.new_id else x.parent_scope_id end
                        )::wf.agenda_entry order by x.new_id)
      into v_entries
      from started x;
    return coalesce(v_entries, '{}');
end
$$;

-- The loop ----------------------------------------------------------------------------------------

-- Answers the steps of entries that cannot close other work, handler by handler, and what must wait:
-- joins whose counters may not be touched yet (held), and waits, which meet their events last.
create or replace function wf.wf_engine_steps(
    p_entries wf.agenda_entry[], p_first_new_id bigint, p_exclusive bigint[], p_now timestamptz,
    out steps wf.agenda_step[], out held wf.agenda_entry[], out waits wf.agenda_entry[]
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_part record;
    v_done record;
begin
    steps := '{}';
    held := '{}';
    waits := '{}';
    for v_part in
        select wf.wf_engine_handler(a.kind, n.node_type, n.parent_type) as handler,
               bool_or(a.kind = 'A' and n.has_scope_defaults and n.parent_node_id is not null)
                   as opens_scopes,
               array_agg(a::wf.agenda_entry order by a.ordinal) as entries
          from unnest(p_entries) a
          join wf.workflow_node n on n.node_id = a.node_id
         group by 1
    loop
        v_done := wf.wf_engine_part(v_part.handler, v_part.opens_scopes, v_part.entries,
                                    p_first_new_id, p_exclusive, p_now);
        steps := steps || v_done.steps;
        held := held || v_done.held;
        waits := waits || v_done.waits;
    end loop;
end
$$;

-- The name under which wf_engine_handle knows what to do with an entry.
create or replace function wf.wf_engine_handler(p_kind text, p_node_type text, p_parent_type text)
returns text
language sql immutable as $$
    select case p_kind when 'A' then p_node_type when 'C' then 'JOIN'
                       else 'IN_' || coalesce(p_parent_type, 'INSTANCE') end
$$;

-- The same for entries of one handler.
create or replace function wf.wf_engine_part(
    p_handler text, p_opens_scopes boolean, p_entries wf.agenda_entry[], p_first_new_id bigint,
    p_exclusive bigint[], p_now timestamptz,
    out steps wf.agenda_step[], out held wf.agenda_entry[], out waits wf.agenda_entry[]
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_entries wf.agenda_entry[] := p_entries;
begin
    steps := '{}';
    held := '{}';
    waits := '{}';
    if p_opens_scopes then
        select o.failed, o.opened into steps, v_entries from wf.wf_engine_open_scopes(v_entries) o;
    end if;
    if p_handler in ('IN_PARALLEL', 'IN_FOREACH') then
        select h.held, h.kept into held, v_entries
          from wf.wf_engine_hold_back(v_entries, p_first_new_id, p_exclusive) h;
    elsif p_handler = 'WAIT_EVENT' then
        waits := v_entries;
    end if;
    if cardinality(v_entries) > 0 then
        steps := steps || wf.wf_engine_handle(p_handler, v_entries, p_now);
    end if;
end
$$;

-- Evaluates the variables of the scopes that open with these activations (S2.3); an execution whose
-- variable cannot be computed fails.
create or replace function wf.wf_engine_open_scopes(
    p_entries wf.agenda_entry[], out opened wf.agenda_entry[], out failed wf.agenda_step[]
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    failed := array(
        select wf.wf_fail_step(a.ordinal, a.node_execution_id, a.workflow_instance_id,
                               o.error_code, o.error_message)
          from wf.wf_open_scopes(array(
                select a.node_execution_id
                  from unnest(p_entries) a
                  join wf.workflow_node n on n.node_id = a.node_id
                 where n.has_scope_defaults
                 order by a.ordinal)) o
          join unnest(p_entries) a on a.node_execution_id = o.node_execution_id
         where o.error_code is not null);
    opened := array(
        select a from unnest(p_entries) a
         where a.node_execution_id <> all (
            array(select s.node_execution_id from unnest(failed) s))
         order by a.ordinal);
end
$$;

-- The table of handlers. A new node type gets a line here.
create or replace function wf.wf_engine_handle(
    p_handler text, p_entries wf.agenda_entry[], p_now timestamptz
) returns wf.agenda_step[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    case p_handler
        when 'ACTION' then
            return wf.wf_action_activate(p_entries, p_now);
        when 'SEQUENCE' then
            return wf.wf_sequence_activate(p_entries, p_now);
        when 'PARALLEL' then
            return array(select s from wf.wf_parallel_activate(p_entries) s);
        when 'IF' then
            return array(select s from wf.wf_if_activate(p_entries) s);
        when 'SWITCH' then
            return array(select s from wf.wf_switch_activate(p_entries) s);
        when 'REPEAT' then
            return array(select s from wf.wf_repeat_activate(p_entries) s);
        when 'WHILE' then
            return array(select wf.wf_while_test(a.ordinal, a.node_execution_id,
                                                 a.workflow_instance_id, 0)
                           from unnest(p_entries) a);
        when 'FOREACH' then
            return array(select s from wf.wf_foreach_activate(p_entries, p_now) s);
        when 'WAIT_EVENT' then
            return array(select s from wf.wf_wait_activate(p_entries) s);
        when 'IN_SEQUENCE' then
            return wf.wf_sequence_continue(p_entries, p_now);
        when 'IN_IF', 'IN_SWITCH' then
            return wf.wf_branch_continue(p_entries);
        when 'IN_REPEAT' then
            return wf.wf_repeat_continue(p_entries);
        when 'IN_WHILE' then
            return wf.wf_while_continue(p_entries);
        when 'IN_PARALLEL', 'IN_FOREACH', 'JOIN' then
            return wf.wf_join_continue(p_entries, p_now);
        when 'IN_WAIT_EVENT' then
            return wf.wf_wait_continue(p_entries);
        when 'IN_INSTANCE' then
            perform wf.wf_finish_instances(p_entries, p_now);
            return '{}';
    end case;
end
$$;

-- Entries that still count: an execution that is open and was not cancelled for its finally to run,
-- or one that ended under a parent that listens to it: not closing, and a SEQUENCE to its on_error or
-- its finally alone once that has begun. A time that is up counts while nothing else has decided.
create or replace function wf.wf_engine_alive(p_entries wf.agenda_entry[])
returns wf.agenda_entry[]
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(array_agg(a::wf.agenda_entry order by a.ordinal), '{}')
      from unnest(p_entries) a
      join wf.node_execution e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id
      left join wf.node_execution p on p.node_execution_id = e.parent_execution_id
     where case when a.kind = 'A' then e.status in ('READY', 'RUNNING') and not exists (
                    select 1 from wf.pending_end q
                     where q.node_execution_id = e.node_execution_id)
                when a.kind = 'T' then e.status in ('READY', 'RUNNING') and not exists (
                    select 1 from wf.pending_end q
                     where q.node_execution_id = e.node_execution_id and q.phase <> 'ON_ERROR')
                when e.parent_execution_id = 0 then true
                else p.status = 'RUNNING' and not exists (
                    select 1 from wf.pending_end q
                     where q.node_execution_id = e.parent_execution_id
                       and q.phase <> n.edge_kind) end
$$;

-- Splits the ended children of joins: held are those whose counter existed before this call and
-- whose instance is held shared (R1); they come back as C entries.
create or replace function wf.wf_engine_hold_back(
    p_entries wf.agenda_entry[], p_first_new_id bigint, p_exclusive bigint[],
    out kept wf.agenda_entry[], out held wf.agenda_entry[]
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    select coalesce(array_agg(q.entry order by q.ordinal) filter (where not q.is_held), '{}'),
           coalesce(array_agg(row(q.ordinal, q.node_execution_id, q.workflow_instance_id, 'C',
                                  q.node_id, q.parent_execution_id, q.scope_id)
                              ::wf.agenda_entry order by q.ordinal) filter (where q.is_held), '{}')
      into kept, held
      from (select a::wf.agenda_entry as entry, a.*,
                   a.parent_execution_id < p_first_new_id
                       and a.workflow_instance_id <> all (p_exclusive) as is_held
              from unnest(p_entries) a) q;
end
$$;

-- The counters that may be touched now: all above the highest counter that still may follow, in
-- descending order; the rest stay held (R1).
create or replace function wf.wf_engine_release(
    p_held wf.agenda_entry[], out released wf.agenda_entry[], out held wf.agenda_entry[]
)
language sql stable set search_path = pg_catalog, pg_temp as $$
    with h as (
        select a.*, a.parent_execution_id as counter_id, p.join_parent_id
          from unnest(p_held) a
          join wf.node_execution p on p.node_execution_id = a.parent_execution_id
    ), ranked as (
        select h.*, h.counter_id > (select max(x.join_parent_id) from h x) as is_free,
               row_number() over (order by h.counter_id desc, h.ordinal) as position
          from h
    )
    select coalesce(array_agg(e.entry order by r.position) filter (where r.is_free), '{}'),
           coalesce(array_agg(e.entry order by r.position) filter (where not r.is_free), '{}')
      from ranked r
     cross join lateral (
        select row(r.position, r.node_execution_id, r.workflow_instance_id, 'C', r.node_id,
                   r.parent_execution_id, r.scope_id)::wf.agenda_entry as entry) e
$$;

-- The work limit of one call (R25): the activations of a level that would go past it, as steps that
-- fail them with 10019. Every test of a loop that goes on activates a body, so loops count too.
create or replace function wf.wf_engine_over_limit(
    p_entries wf.agenda_entry[], p_left bigint, p_limit bigint,
    out within_limit wf.agenda_entry[], out refused wf.agenda_step[]
)
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(array_agg(q.entry order by q.ordinal) filter (where q.so_far <= p_left), '{}'),
           coalesce(array_agg(wf.wf_fail_step(q.ordinal, q.node_execution_id,
                        q.workflow_instance_id, 10019,
                        format('more than %s activations in one call', p_limit))
                    order by q.ordinal) filter (where q.so_far > p_left), '{}')
      from (select a::wf.agenda_entry as entry, a.ordinal, a.node_execution_id,
                   a.workflow_instance_id,
                   case when a.kind = 'A'
                        then count(*) filter (where a.kind = 'A') over (order by a.ordinal)
                        else 0 end as so_far
              from unnest(p_entries) a) q
$$;

-- How many activations one call may make (R25).
create or replace function wf.wf_work_limit() returns bigint
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce((select s.value::bigint from wf.wf_setting s
                      where s.name = 'max_activations_per_call'), 1000000)
$$;

-- Fills in what entries from outside do not say.
create or replace function wf.wf_engine_known(p_entries wf.agenda_entry[])
returns wf.agenda_entry[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select row(a.ordinal, a.node_execution_id, a.workflow_instance_id, a.kind, e.node_id,
                   e.parent_execution_id, e.scope_id)::wf.agenda_entry
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
         order by a.ordinal);
end
$$;

-- Works off an agenda until nothing is left to do in this call. A caller that runs it many times over
-- keeps what is left of the work limit in the setting wf.work_left of its transaction (wf_apply_due).
-- p_exclusive: the instances whose gate the caller holds FOR UPDATE.
-- work_mem: a level of 100 000 entries takes 20 MB, which the usual 4 MB would send through files.
-- Raises WFX01 (DETAIL: instance id) when an instance held shared needs its gate exclusive.
create or replace function wf.wf_engine_run(
    p_entries wf.agenda_entry[], p_exclusive bigint[], p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp set work_mem = '64MB' as $$
declare
    v_first_new_id bigint := nextval('wf.node_execution_id_seq');
    v_level        wf.agenda_entry[] := p_entries;
    v_held         wf.agenda_entry[] := '{}';
    v_waits        wf.agenda_entry[] := '{}';
    v_done         record;
    v_has_closed   boolean := false;
    v_work_limit   bigint := wf.wf_work_limit();
    v_shared_left  text := current_setting('wf.work_left', true);
    v_work_left    bigint := coalesce(nullif(v_shared_left, '')::bigint, v_work_limit);
begin
    loop
        if v_level[1].node_id is null and cardinality(v_level) > 0 then
            v_level := wf.wf_engine_known(v_level);
        end if;
        if v_has_closed then
            v_level := wf.wf_engine_alive(v_level);
        end if;
        if cardinality(v_level) = 0 and cardinality(v_held) > 0 then
            if v_has_closed then
                v_held := wf.wf_engine_alive(v_held);
            end if;
            select r.released, r.held into v_level, v_held from wf.wf_engine_release(v_held) r;
        end if;
        if cardinality(v_level) = 0 then
            -- Waits meet their events last, after every counter of this call (R1, R2).
            exit when cardinality(v_waits) = 0;
            v_level := wf.wf_wait_register(v_waits, p_exclusive, p_now);
            v_waits := '{}';
            continue;
        end if;
        v_done := wf.wf_engine_level(v_level, v_first_new_id, p_exclusive, v_work_left, v_work_limit,
                                     p_now);
        v_level := v_done.next_level;
        v_held := v_held || v_done.held;
        v_waits := v_waits || v_done.waits;
        v_work_left := v_done.work_left;
        v_has_closed := v_has_closed or v_done.has_closed;
    end loop;
    if v_shared_left <> '' then
        perform set_config('wf.work_left', v_work_left::text, true);
    end if;
end
$$;

-- One level. Entries that cannot close other work are taken as one set; one that may (F, J, T) is
-- taken alone, after the earlier and before the later entries, and what it closed is dropped from the
-- later ones (R12).
create or replace function wf.wf_engine_level(
    p_level wf.agenda_entry[], p_first_new_id bigint, p_exclusive bigint[], p_work_left bigint,
    p_work_limit bigint, p_now timestamptz,
    out next_level wf.agenda_entry[], out held wf.agenda_entry[], out waits wf.agenda_entry[],
    out work_left bigint, out has_closed boolean
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_level  wf.agenda_entry[] := p_level;
    v_set    wf.agenda_entry[];
    v_closer wf.agenda_entry;
    v_done   record;
    v_closers       integer;
    v_activations   integer;
    v_first_handler text;
    v_last_handler  text;
    v_opens_scopes  boolean;
begin
    has_closed := false;
    select coalesce(sum(a.entries) filter (where a.kind in ('F', 'J', 'T')), 0), min(h.handler),
           max(h.handler), coalesce(sum(a.entries) filter (where a.kind = 'A'), 0),
           bool_or(a.kind = 'A' and n.has_scope_defaults and n.parent_node_id is not null)
      into v_closers, v_first_handler, v_last_handler, v_activations, v_opens_scopes
      from (select x.kind, x.node_id, count(*) as entries
              from unnest(p_level) x group by x.kind, x.node_id) a
      join wf.workflow_node n on n.node_id = a.node_id
     cross join lateral (
        select wf.wf_engine_handler(a.kind, n.node_type, n.parent_type) as handler) h;
    if v_closers = 0 and v_first_handler = v_last_handler and v_activations <= p_work_left then
        -- Most levels are for one handler, and are as they have to be.
        v_done := wf.wf_engine_part(v_first_handler, v_opens_scopes, p_level, p_first_new_id,
                                    p_exclusive, p_now);
        next_level := wf.wf_engine_apply(v_done.steps, p_now);
        held := v_done.held;
        waits := v_done.waits;
        work_left := p_work_left - v_activations;
        return;
    end if;
    next_level := '{}';
    held := '{}';
    waits := '{}';
    work_left := p_work_left;
    loop
        select a.* into v_closer
          from unnest(v_level) a where a.kind in ('F', 'J', 'T') order by a.ordinal limit 1;
        v_set := v_level;
        if v_closer.ordinal is not null then
            v_set := array(select a from unnest(v_level) a
                            where a.ordinal < v_closer.ordinal order by a.ordinal);
        end if;
        if cardinality(v_set) > 0 then
            v_done := wf.wf_engine_set(v_set, p_first_new_id, p_exclusive, work_left, p_work_limit,
                                       p_now);
            next_level := next_level || v_done.next_level;
            held := held || v_done.held;
            waits := waits || v_done.waits;
            work_left := v_done.work_left;
        end if;
        exit when v_closer.ordinal is null;
        if v_closer.workflow_instance_id <> all (p_exclusive) then
            raise exception 'the gate of instance % is needed exclusive',
                v_closer.workflow_instance_id
                using errcode = 'WFX01', detail = v_closer.workflow_instance_id::text;
        end if;
        next_level := next_level || wf.wf_engine_apply(
            array(select s from wf.wf_engine_close(v_closer, p_now) s), p_now);
        has_closed := true;
        v_level := wf.wf_engine_alive(
            array(select a from unnest(v_level) a where a.ordinal > v_closer.ordinal));
        exit when cardinality(v_level) = 0;
    end loop;
    if has_closed then
        -- Several sets made this level; number its entries in the order in which they came to be.
        next_level := array(
            select row(x.position, x.node_execution_id, x.workflow_instance_id, x.kind, x.node_id,
                       x.parent_execution_id, x.scope_id)::wf.agenda_entry
              from unnest(next_level) with ordinality
                   x(ordinal, node_execution_id, workflow_instance_id, kind, node_id,
                     parent_execution_id, scope_id, position)
             order by x.position);
    end if;
end
$$;

-- Entries that cannot close other work, as one set, within the work limit.
create or replace function wf.wf_engine_set(
    p_set wf.agenda_entry[], p_first_new_id bigint, p_exclusive bigint[], p_work_left bigint,
    p_work_limit bigint, p_now timestamptz,
    out next_level wf.agenda_entry[], out held wf.agenda_entry[], out waits wf.agenda_entry[],
    out work_left bigint
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_set     wf.agenda_entry[] := p_set;
    v_refused wf.agenda_step[] := '{}';
    v_done    record;
begin
    work_left := p_work_left - (select count(*) from unnest(p_set) a where a.kind = 'A');
    if work_left < 0 then
        select w.within_limit, w.refused into v_set, v_refused
          from wf.wf_engine_over_limit(p_set, p_work_left, p_work_limit) w;
        work_left := 0;
    end if;
    v_done := wf.wf_engine_steps(v_set, p_first_new_id, p_exclusive, p_now);
    next_level := wf.wf_engine_apply(v_done.steps || v_refused, p_now);
    held := v_done.held;
    waits := v_done.waits;
end
$$;

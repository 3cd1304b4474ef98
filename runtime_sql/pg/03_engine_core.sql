-- The engine's loop: a work list, never recursion. Twin: mssql/03_engine_core.sql
--
-- A call that changes instances makes AGENDA ENTRIES and hands them to wf.wf_engine_run, which
-- works them off level by level (rules S1.6, R12). An entry is one execution and what is to be
-- looked at:
--     A  it was activated just now         S  it has succeeded        F  it has failed
--     C  a child of a join has succeeded, and its counter may be touched now
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
    kind                  text
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
-- the owner can write, moves it in tests.
create or replace function wf.wf_now() returns timestamptz
language sql stable set search_path = pg_catalog, pg_temp as $$
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

-- Activation: one handler per node type ---------------------------------------------------------

-- ACTION: builds the input and queues the task. A failure to build fails the node (S4.1).
create or replace function wf.wf_action_activate(p_entries wf.agenda_entry[], p_now timestamptz)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return query
    with built as materialized (
        select a.ordinal, a.node_execution_id, a.workflow_instance_id, e.node_id, n.action_id,
               coalesce(n.priority, 0) + i.priority as priority,
               b.value_json, b.error_code, b.error_message
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
          join wf.workflow_instance i on i.workflow_instance_id = a.workflow_instance_id
         cross join lateral wf.wf_build_input_json_for_action(a.node_execution_id) b
    ), queued as (
        insert into wf.task (node_execution_id, workflow_instance_id, node_id, action_id, priority,
                             available_at, is_claimable, input_json)
        select b.node_execution_id, b.workflow_instance_id, b.node_id, b.action_id, b.priority,
               p_now, true, b.value_json
          from built b
         where b.error_code is null
         order by b.ordinal
    )
    select f.*
      from built b
     cross join lateral wf.wf_fail_step(b.ordinal, b.node_execution_id, b.workflow_instance_id,
                                        b.error_code, b.error_message) f
     where b.error_code is not null;
end
$$;

-- SEQUENCE: its first child; without children it ends at once, after the `set` or `fail` that it
-- carries.
create or replace function wf.wf_sequence_activate(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_error record;
begin
    for v_row in
        select a.*, n.node_id, n.first_child_id, n.has_output_bindings,
               n.attributes_json -> 'fail' as fail_json
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         order by a.ordinal
    loop
        if v_row.first_child_id is not null then
            return next row(v_row.ordinal, 0, 'START', v_row.node_execution_id,
                            v_row.workflow_instance_id, v_row.first_child_id, 0,
                            null, null, null, null, null)::wf.agenda_step;
            continue;
        end if;
        if v_row.fail_json is not null then
            return next wf.wf_fail_statement(v_row.ordinal, v_row.node_execution_id,
                                             v_row.workflow_instance_id, v_row.fail_json);
            continue;
        end if;
        if v_row.has_output_bindings then
            select * into v_error
              from wf.wf_apply_output_bindings(v_row.node_execution_id, null, null, null);
            if v_error.error_code is not null then
                return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                    v_row.workflow_instance_id, v_error.error_code, v_error.error_message);
                continue;
            end if;
        end if;
        return next row(v_row.ordinal, 0, 'SUCCEED', v_row.node_execution_id,
                        v_row.workflow_instance_id, null, null, null, 0, null, null, null
                       )::wf.agenda_step;
    end loop;
end
$$;

-- `fail CODE "message"`: builds the message, then fails with the code and no engine code (R32).
create or replace function wf.wf_fail_statement(
    p_ordinal integer, p_node_execution_id bigint, p_workflow_instance_id bigint, p_fail jsonb
) returns wf.agenda_step
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_message record;
begin
    select * into v_message
      from wf.wf_eval_expression(p_fail -> 'message', p_node_execution_id);
    if v_message.error_code is null and jsonb_typeof(v_message.value_json) <> 'string' then
        v_message.error_code := 10017;
        v_message.error_message :=
            wf.wf_type_word(v_message.value_json) || ' cannot stand inside a string';
    end if;
    if v_message.error_code is not null then
        return wf.wf_fail_step(p_ordinal, p_node_execution_id, p_workflow_instance_id,
                               v_message.error_code, v_message.error_message);
    end if;
    return row(p_ordinal, 0, 'FAIL', p_node_execution_id, p_workflow_instance_id, null, null, null,
               (p_fail ->> 'code')::integer, null, v_message.value_json #>> '{}',
               p_node_execution_id)::wf.agenda_step;
end
$$;

-- PARALLEL: all children, or the first `limit`; the counter knows how many are open.
create or replace function wf.wf_parallel_activate(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into wf.join_counter (node_execution_id, workflow_instance_id, join_parent_id,
                                 total_count, next_index, open_count)
    select a.node_execution_id, a.workflow_instance_id, e.join_parent_id, n.child_count,
           least(n.child_count, coalesce(n.branch_limit, n.child_count)),
           least(n.child_count, coalesce(n.branch_limit, n.child_count))
      from unnest(p_entries) a
      join wf.node_execution e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id
     where n.child_count > 0;

    return query
    select a.ordinal, c.child_order, 'START', a.node_execution_id, a.workflow_instance_id,
           c.node_id, 0, null::jsonb, null::integer, null::integer, null::text, null::bigint
      from unnest(p_entries) a
      join wf.node_execution e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id
      join wf.workflow_node c on c.parent_node_id = n.node_id
     where c.child_order < coalesce(n.branch_limit, n.child_count)
    union all
    select a.ordinal, 0, 'SUCCEED', a.node_execution_id, a.workflow_instance_id,
           null, null, null, 0, null, null, null
      from unnest(p_entries) a
      join wf.node_execution e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id
     where n.child_count = 0;
end
$$;

-- IF: the branch that the condition chooses; false without an else succeeds (S6.4).
create or replace function wf.wf_if_activate(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    for v_row in
        select a.*, c.is_true, c.error_code, c.error_message, b.node_id as branch_node_id
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         cross join lateral wf.wf_eval_condition(n.attributes_json -> 'condition',
                                                 a.node_execution_id) c
          left join wf.workflow_node b
            on b.parent_node_id = n.node_id
           and b.edge_kind = case when c.is_true then 'THEN' else 'ELSE' end
         order by a.ordinal
    loop
        if v_row.error_code is not null then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, v_row.error_code, v_row.error_message);
        elsif v_row.branch_node_id is not null then
            return next row(v_row.ordinal, 0, 'START', v_row.node_execution_id,
                            v_row.workflow_instance_id, v_row.branch_node_id, 0,
                            null, null, null, null, null)::wf.agenda_step;
        elsif v_row.is_true then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, 10003, 'the if has no branch to take');
        else
            return next row(v_row.ordinal, 0, 'SUCCEED', v_row.node_execution_id,
                            v_row.workflow_instance_id, null, null, null, 0, null, null, null
                           )::wf.agenda_step;
        end if;
    end loop;
end
$$;

-- SWITCH: the first case that holds an equal value (S3.1), else default, else 10004.
create or replace function wf.wf_switch_activate(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row    record;
    v_branch bigint;
begin
    for v_row in
        select a.*, n.node_id, n.workflow_version_id, n.node_key,
               s.value_json, s.error_code, s.error_message
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         cross join lateral wf.wf_eval_expression(n.attributes_json -> 'subject',
                                                  a.node_execution_id) s
         order by a.ordinal
    loop
        if v_row.error_code is null and jsonb_typeof(v_row.value_json) in ('object', 'array') then
            -- Only null may be compared with an object or an array (S3.1).
            select 10010, 'cannot compare ' || jsonb_typeof(v_row.value_json) || ' with '
                          || wf.wf_type_word(v.value)
              into v_row.error_code, v_row.error_message
              from wf.workflow_edge d
             cross join lateral jsonb_array_elements(d.case_value) with ordinality v(value, position)
             where d.workflow_version_id = v_row.workflow_version_id
               and d.parent_key = v_row.node_key and v.value <> 'null'
             order by d.child_order, v.position
             limit 1;
        end if;
        if v_row.error_code is not null then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, v_row.error_code, v_row.error_message);
            continue;
        end if;
        -- jsonb equality is S3.1's for scalars: numbers by value, strings exactly.
        select b.node_id into v_branch
          from wf.workflow_edge d
          join wf.workflow_node b
            on b.workflow_version_id = d.workflow_version_id and b.node_key = d.child_key
         where d.workflow_version_id = v_row.workflow_version_id
           and d.parent_key = v_row.node_key
           and (d.branch_kind = 'DEFAULT'
                or exists (select 1 from jsonb_array_elements(d.case_value) v
                            where v.value = v_row.value_json))
         order by d.branch_kind = 'DEFAULT', d.child_order
         limit 1;
        if v_branch is null then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, 10004, 'no case fits and there is no default');
        else
            return next row(v_row.ordinal, 0, 'START', v_row.node_execution_id,
                            v_row.workflow_instance_id, v_branch, 0,
                            null, null, null, null, null)::wf.agenda_step;
        end if;
    end loop;
end
$$;

-- REPEAT: evaluates the count once and starts iteration 0; n <= 0 succeeds at once (S6.6).
create or replace function wf.wf_repeat_activate(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_count numeric;
begin
    for v_row in
        select a.*, n.first_child_id, c.value_json, c.error_code, c.error_message
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         cross join lateral wf.wf_eval_expression(n.attributes_json -> 'count',
                                                  a.node_execution_id) c
         order by a.ordinal
    loop
        if v_row.error_code is null and wf.wf_type_word(v_row.value_json) <> 'integer' then
            v_row.error_code := 10010;
            v_row.error_message := 'repeat takes an integer, not '
                || wf.wf_type_word(v_row.value_json);
        end if;
        if v_row.error_code is null and v_row.first_child_id is null then
            v_row.error_code := 10005;
            v_row.error_message := 'the repeat has no body';
        end if;
        if v_row.error_code is not null then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, v_row.error_code, v_row.error_message);
            continue;
        end if;
        v_count := (v_row.value_json #>> '{}')::numeric;
        if v_count <= 0 then
            return next row(v_row.ordinal, 0, 'SUCCEED', v_row.node_execution_id,
                            v_row.workflow_instance_id, null, null, null, 0, null, null, null
                           )::wf.agenda_step;
            continue;
        end if;
        insert into wf.loop_state (node_execution_id, workflow_instance_id, total_count)
        values (v_row.node_execution_id, v_row.workflow_instance_id,
                least(v_count, 9223372036854775807)::bigint);
        return next row(v_row.ordinal, 0, 'START', v_row.node_execution_id,
                        v_row.workflow_instance_id, v_row.first_child_id, 0,
                        null, null, null, null, null)::wf.agenda_step;
    end loop;
end
$$;

-- WHILE: the test before iteration p_iteration_no of each entry's loop; shared by activation and
-- continuation. Passing `max` with the condition still true is 10012.
create or replace function wf.wf_while_test(
    p_ordinal integer, p_node_execution_id bigint, p_workflow_instance_id bigint,
    p_iteration_no integer
) returns wf.agenda_step
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_node  record;
    v_test  record;
    v_max   bigint;
begin
    select n.first_child_id, n.attributes_json into v_node
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_node_execution_id;
    if v_node.first_child_id is null then
        return wf.wf_fail_step(p_ordinal, p_node_execution_id, p_workflow_instance_id,
                               10006, 'the while has no body');
    end if;
    select * into v_test
      from wf.wf_eval_condition(v_node.attributes_json -> 'condition', p_node_execution_id);
    if v_test.error_code is not null then
        return wf.wf_fail_step(p_ordinal, p_node_execution_id, p_workflow_instance_id,
                               v_test.error_code, v_test.error_message);
    end if;
    if not v_test.is_true then
        return row(p_ordinal, 0, 'SUCCEED', p_node_execution_id, p_workflow_instance_id,
                   null, null, null, 0, null, null, null)::wf.agenda_step;
    end if;
    v_max := coalesce((v_node.attributes_json ->> 'max')::bigint, 10000);
    if p_iteration_no >= v_max then
        return wf.wf_fail_step(p_ordinal, p_node_execution_id, p_workflow_instance_id,
                               10012, 'while passed its max of ' || v_max);
    end if;
    return row(p_ordinal, 0, 'START', p_node_execution_id, p_workflow_instance_id,
               v_node.first_child_id, p_iteration_no, null, null, null, null, null
              )::wf.agenda_step;
end
$$;

-- Continuation: what follows when a child has succeeded -------------------------------------------

-- The next child of the SEQUENCE, or its end.
create or replace function wf.wf_sequence_continue(p_entries wf.agenda_entry[])
returns wf.agenda_step[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select row(s.ordinal, 0, case when n.next_node_id is null then 'SUCCEED' else 'START' end,
                   e.parent_execution_id, s.workflow_instance_id, n.next_node_id, 0, null,
                   case when n.next_node_id is null then 0 end, null, null, null)::wf.agenda_step
          from unnest(p_entries) s
          join wf.node_execution e on e.node_execution_id = s.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id);
end
$$;

-- An IF or a SWITCH ends with its branch.
create or replace function wf.wf_branch_continue(p_entries wf.agenda_entry[])
returns wf.agenda_step[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select row(s.ordinal, 0, 'SUCCEED', e.parent_execution_id, s.workflow_instance_id,
                   null, null, null, 0, null, null, null)::wf.agenda_step
          from unnest(p_entries) s
          join wf.node_execution e on e.node_execution_id = s.node_execution_id);
end
$$;

-- The next iteration of a REPEAT, or its end.
create or replace function wf.wf_repeat_continue(p_entries wf.agenda_entry[])
returns wf.agenda_step[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select row(s.ordinal, 0, case when e.iteration_no + 1 < l.total_count then 'START' else 'SUCCEED' end,
                   e.parent_execution_id, s.workflow_instance_id,
                   e.node_id, e.iteration_no + 1, null,
                   case when e.iteration_no + 1 < l.total_count then null else 0 end,
                   null, null, null)::wf.agenda_step
          from unnest(p_entries) s
          join wf.node_execution e on e.node_execution_id = s.node_execution_id
          join wf.loop_state l on l.node_execution_id = e.parent_execution_id);
end
$$;

-- The next test of a WHILE.
create or replace function wf.wf_while_continue(p_entries wf.agenda_entry[])
returns wf.agenda_step[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select wf.wf_while_test(s.ordinal, e.parent_execution_id, s.workflow_instance_id,
                                e.iteration_no + 1)
          from unnest(p_entries) s
          join wf.node_execution e on e.node_execution_id = s.node_execution_id);
end
$$;

-- PARALLEL and FOREACH: takes the ended children off the counters. For each child a next one starts
-- while there are any; the join ends when none is open and none is left to start.
-- Locks: one counter row after the other, in the order of p_entries; wf.wf_engine_run hands
-- counters of instances held shared in descending order (R1).
create or replace function wf.wf_join_continue(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row     record;
    v_counter wf.join_counter;
begin
    for v_row in
        select s.ordinal, s.workflow_instance_id, e.parent_execution_id, n.parent_node_id,
               n.parent_type, n.node_id
          from unnest(p_entries) s
          join wf.node_execution e on e.node_execution_id = s.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         order by s.ordinal
    loop
        update wf.join_counter c
           set open_count = c.open_count - case when c.next_index < c.total_count then 0 else 1 end,
               last_started = case when c.next_index < c.total_count then c.next_index end,
               next_index = least(c.next_index + 1, c.total_count),
               succeeded_count = c.succeeded_count + 1
         where c.node_execution_id = v_row.parent_execution_id
        returning c.* into v_counter;
        if v_counter.last_started is not null then
            return query select * from wf.wf_join_start_next(
                v_row.ordinal, v_row.parent_execution_id, v_row.workflow_instance_id,
                v_row.parent_node_id, v_row.parent_type, v_counter.last_started);
        elsif v_counter.open_count = 0 then
            return next row(v_row.ordinal, 0, 'SUCCEED', v_row.parent_execution_id,
                            v_row.workflow_instance_id, null, null, null, 0, null, null, null
                           )::wf.agenda_step;
        end if;
    end loop;
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

-- Closing -----------------------------------------------------------------------------------------

-- Cancels every open execution below one, level by level: READY and leased tasks go, waits and
-- counters go, the rows become CANCELLED. The caller holds the instance's gate exclusive, so no
-- other call can complete them meanwhile; a claim that just took such a task has its row deleted
-- under it and hears CANCEL at the next heartbeat.
create or replace function wf.wf_cancel_below(
    p_workflow_instance_id bigint, p_node_execution_id bigint, p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_frontier bigint[] := array[p_node_execution_id];
    v_open     bigint[] := '{}';
begin
    loop
        select array_agg(c.node_execution_id order by c.node_execution_id) into v_frontier
          from wf.node_execution c
         where c.workflow_instance_id = p_workflow_instance_id
           and c.parent_execution_id = any (v_frontier)
           and c.status in ('READY', 'RUNNING');
        exit when v_frontier is null;
        v_open := v_open || v_frontier;
    end loop;
    if cardinality(v_open) = 0 then
        return;
    end if;
    with gone as (
        delete from wf.task t where t.node_execution_id = any (v_open) returning t.*
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
     where e.node_execution_id = any (v_open) and e.status in ('READY', 'RUNNING');
    delete from wf.event_wait w where w.node_execution_id = any (v_open);
    delete from wf.join_counter c where c.node_execution_id = any (v_open);
    delete from wf.loop_state l where l.node_execution_id = any (v_open);
    delete from wf.foreach_item f where f.node_execution_id = any (v_open);
end
$$;

-- One failed execution: what is open beside it is cancelled and its parent fails by it (S1.5), or
-- the instance does. Needs the exclusive gate.
create or replace function wf.wf_close_failed(p_entry wf.agenda_entry, p_now timestamptz)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_failed record;
begin
    select e.parent_execution_id, e.result_code, e.engine_error_code, e.engine_error_message,
           e.error_execution_id, n.parent_type
      into v_failed
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_entry.node_execution_id;
    if v_failed.parent_execution_id = 0 then
        perform wf.wf_end_instance(p_entry.workflow_instance_id, 'FAILED', p_entry.node_execution_id,
                                   p_now);
        return;
    end if;
    if v_failed.parent_type in ('PARALLEL', 'FOREACH') then
        perform wf.wf_cancel_below(p_entry.workflow_instance_id, v_failed.parent_execution_id, p_now);
    end if;
    return next row(p_entry.ordinal, 0, 'FAIL', v_failed.parent_execution_id,
                    p_entry.workflow_instance_id, null, null, null, v_failed.result_code,
                    v_failed.engine_error_code, v_failed.engine_error_message,
                    v_failed.error_execution_id)::wf.agenda_step;
end
$$;

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
        if v_value.error_code is not null then
            update wf.node_execution e
               set status = 'FAILED', result_code = null, error_execution_id = p_root_execution_id,
                   engine_error_code = v_value.error_code,
                   engine_error_message = wf.wf_execution_path(p_root_execution_id) || ': '
                       || v_value.error_message
             where e.node_execution_id = p_root_execution_id;
            perform wf.wf_end_instance(p_workflow_instance_id, 'FAILED', p_root_execution_id, p_now);
            return;
        end if;
        v_result := coalesce(v_result, '{}')
            || jsonb_build_object(v_output.name, v_value.value_json);
    end loop;
    if v_result is not null then
        update wf.execution_context x set output_json = v_result
         where x.workflow_instance_id = p_workflow_instance_id;
    end if;
    perform wf.wf_end_instance(p_workflow_instance_id, 'SUCCEEDED', p_root_execution_id, p_now);
end
$$;

-- Completion --------------------------------------------------------------------------------------

-- Runs the `set`s of a node that has succeeded, in order, each seeing those before it (S2.4). The
-- first error ends it and is answered.
create or replace function wf.wf_apply_output_bindings(
    p_node_execution_id bigint, p_output_json jsonb, p_result_code integer, p_event_json jsonb,
    out error_code integer, out error_message text
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_binding record;
    v_value   record;
begin
    for v_binding in
        select b.name, b.owner_key, b.program_json, e.scope_id
          from wf.node_execution e
          join wf.variable_output_binding b on b.node_id = e.node_id
         where e.node_execution_id = p_node_execution_id and b.binding_kind = 'var'
         order by b.binding_order
    loop
        select * into v_value
          from wf.wf_eval_expression(v_binding.program_json, p_node_execution_id, p_output_json,
                                     p_result_code, p_event_json);
        if v_value.error_code is not null then
            error_code := v_value.error_code;
            error_message := v_value.error_message;
            return;
        end if;
        perform wf.wf_set_scope_variable(v_binding.scope_id, v_binding.owner_key, v_binding.name,
                                         v_value.value_json);
    end loop;
end
$$;

-- Carrying out steps ------------------------------------------------------------------------------

-- Carries out the steps of one level: ends executions, starts children, and answers the entries of
-- the next level in the order of the entries that caused them. Ids rise in that order too.
create or replace function wf.wf_engine_apply(p_steps wf.agenda_step[], p_now timestamptz)
returns wf.agenda_entry[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_ended   wf.agenda_step[] := array(select s from unnest(p_steps) s where s.step <> 'START');
    v_started wf.agenda_step[] := array(select s from unnest(p_steps) s where s.step = 'START');
begin
    if cardinality(v_ended) > 0 then
        v_ended := wf.wf_engine_end(v_ended, p_now);
    end if;
    return array(
        select row(row_number() over (order by x.ordinal, x.seq), x.node_execution_id,
                   x.workflow_instance_id, x.kind)::wf.agenda_entry
          from (select s.ordinal, s.seq, s.node_execution_id, s.workflow_instance_id,
                       case s.step when 'SUCCEED' then 'S' else 'F' end as kind
                  from unnest(v_ended) s
                union all
                select * from wf.wf_engine_start(v_started, p_now)) x
         order by x.ordinal, x.seq);
end
$$;

-- Ends executions: lets FOREACHs collect, writes the rows, and forgets what only an open PARALLEL,
-- FOREACH or REPEAT needs. Answers the steps as they turned out.
create or replace function wf.wf_engine_end(p_ended wf.agenda_step[], p_now timestamptz)
returns wf.agenda_step[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_ended    wf.agenda_step[] := p_ended;
    v_collects boolean;
    v_joins    bigint[];
    v_loops    bigint[];
begin
    select bool_or(n.collect_node_id is not null and s.step = 'SUCCEED'),
           array_agg(e.node_execution_id) filter (where n.node_type in ('PARALLEL', 'FOREACH')),
           array_agg(e.node_execution_id) filter (where n.node_type = 'REPEAT')
      into v_collects, v_joins, v_loops
      from unnest(p_ended) s
      join wf.node_execution e on e.node_execution_id = s.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id;
    if v_collects then
        v_ended := wf.wf_foreach_collect(v_ended);
    end if;
    update wf.node_execution e
       set status = case s.step when 'SUCCEED' then 'SUCCEEDED' else 'FAILED' end,
           attempt_no = greatest(e.attempt_no, 1),
           result_code = s.result_code, output_json = s.item_json, ended_at = p_now,
           engine_error_code = s.engine_error_code, engine_error_message = s.message,
           error_execution_id = s.error_execution_id
      from unnest(v_ended) s
     where e.node_execution_id = s.node_execution_id;
    if v_joins is not null then
        delete from wf.join_counter c where c.node_execution_id = any (v_joins);
        delete from wf.foreach_item f where f.node_execution_id = any (v_joins);
    end if;
    if v_loops is not null then
        delete from wf.loop_state l where l.node_execution_id = any (v_loops);
    end if;
    return v_ended;
end
$$;

-- Inserts the executions, scopes and loop variables of all START steps in one statement.
create or replace function wf.wf_engine_start(p_steps wf.agenda_step[], p_now timestamptz)
returns table (ordinal integer, seq integer, node_execution_id bigint,
               workflow_instance_id bigint, kind text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    if cardinality(p_steps) = 0 then
        return;
    end if;
    return query
    with started as materialized (
        select nextval('wf.node_execution_id_seq') as new_id, q.*
          from (select s.ordinal, s.seq, s.workflow_instance_id, s.iteration_no, s.item_json,
                       s.node_execution_id as parent_execution_id, n.node_id, n.node_key,
                       n.node_type, n.opens_scope, n.loop_item_name, n.loop_index_name,
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
    ), items as (
        insert into wf.scope_variable (scope_id, name, value_json)
        select x.new_id, x.loop_item_name, x.item_json
          from started x
         where x.loop_item_name is not null
    ), indexes as (
        insert into wf.scope_variable (scope_id, name, value_json)
        select x.new_id, x.loop_index_name, to_jsonb(x.iteration_no)
          from started x
         where x.loop_index_name is not null
    )
    select x.ordinal, x.seq, x.new_id, x.workflow_instance_id, 'A'
      from started x;
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
    v_part   record;
    v_scopes record;
    v_joins  record;
begin
    steps := '{}';
    held := '{}';
    waits := '{}';
    for v_part in
        select case a.kind when 'A' then n.node_type when 'C' then 'JOIN'
                           else 'IN_' || coalesce(n.parent_type, 'INSTANCE') end as handler,
               bool_or(a.kind = 'A' and n.has_scope_defaults and n.parent_node_id is not null)
                   as opens_scopes,
               array_agg(a::wf.agenda_entry order by a.ordinal) as entries
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         group by 1
    loop
        if v_part.opens_scopes then
            select * into v_scopes from wf.wf_engine_open_scopes(v_part.entries);
            steps := steps || v_scopes.failed;
            v_part.entries := v_scopes.opened;
        end if;
        if v_part.handler in ('IN_PARALLEL', 'IN_FOREACH') then
            select * into v_joins
              from wf.wf_engine_hold_back(v_part.entries, p_first_new_id, p_exclusive);
            held := held || v_joins.held;
            v_part.entries := v_joins.kept;
        elsif v_part.handler = 'WAIT_EVENT' then
            waits := waits || v_part.entries;
        end if;
        if cardinality(v_part.entries) > 0 then
            steps := steps || wf.wf_engine_handle(v_part.handler, v_part.entries, p_now);
        end if;
    end loop;
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
                select e.node_execution_id
                  from unnest(p_entries) a
                  join wf.node_execution e on e.node_execution_id = a.node_execution_id
                  join wf.workflow_node n on n.node_id = e.node_id
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
            return array(select s from wf.wf_action_activate(p_entries, p_now) s);
        when 'SEQUENCE' then
            return array(select s from wf.wf_sequence_activate(p_entries) s);
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
            return array(select s from wf.wf_foreach_activate(p_entries) s);
        when 'WAIT_EVENT' then
            return array(select s from wf.wf_wait_activate(p_entries) s);
        when 'IN_SEQUENCE' then
            return wf.wf_sequence_continue(p_entries);
        when 'IN_IF', 'IN_SWITCH' then
            return wf.wf_branch_continue(p_entries);
        when 'IN_REPEAT' then
            return wf.wf_repeat_continue(p_entries);
        when 'IN_WHILE' then
            return wf.wf_while_continue(p_entries);
        when 'IN_PARALLEL', 'IN_FOREACH', 'JOIN' then
            return array(select s from wf.wf_join_continue(p_entries) s);
        when 'IN_INSTANCE' then
            perform wf.wf_finish_instance(a.workflow_instance_id, a.node_execution_id, p_now)
               from unnest(p_entries) a;
            return '{}';
    end case;
end
$$;

-- Entries that still count: an execution that is open, or one that ended under a parent that is.
create or replace function wf.wf_engine_alive(p_entries wf.agenda_entry[])
returns wf.agenda_entry[]
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(array_agg(a::wf.agenda_entry order by a.ordinal), '{}')
      from unnest(p_entries) a
      join wf.node_execution e on e.node_execution_id = a.node_execution_id
      left join wf.node_execution p on p.node_execution_id = e.parent_execution_id
     where case when a.kind = 'A' then e.status in ('READY', 'RUNNING')
                when e.parent_execution_id = 0 then true
                else p.status = 'RUNNING' end
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
           coalesce(array_agg(row(q.ordinal, q.node_execution_id, q.workflow_instance_id, 'C')
                              ::wf.agenda_entry order by q.ordinal) filter (where q.is_held), '{}')
      into kept, held
      from (select a::wf.agenda_entry as entry, a.ordinal, a.node_execution_id,
                   a.workflow_instance_id,
                   e.parent_execution_id < p_first_new_id
                       and a.workflow_instance_id <> all (p_exclusive) as is_held
              from unnest(p_entries) a
              join wf.node_execution e on e.node_execution_id = a.node_execution_id) q;
end
$$;

-- The counters that may be touched now: all above the highest counter that still may follow, in
-- descending order; the rest stay held (R1).
create or replace function wf.wf_engine_release(
    p_held wf.agenda_entry[], out released wf.agenda_entry[], out held wf.agenda_entry[]
)
language sql stable set search_path = pg_catalog, pg_temp as $$
    with h as (
        select a.ordinal, a.node_execution_id, a.workflow_instance_id,
               e.parent_execution_id as counter_id, p.join_parent_id
          from unnest(p_held) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.node_execution p on p.node_execution_id = e.parent_execution_id
    ), ranked as (
        select h.*, h.counter_id > (select max(x.join_parent_id) from h x) as is_free,
               row_number() over (order by h.counter_id desc, h.ordinal) as position
          from h
    )
    select coalesce(array_agg(row(r.position, r.node_execution_id, r.workflow_instance_id, 'C')
                              ::wf.agenda_entry order by r.position) filter (where r.is_free), '{}'),
           coalesce(array_agg(row(r.position, r.node_execution_id, r.workflow_instance_id, 'C')
                              ::wf.agenda_entry order by r.position)
                    filter (where not r.is_free), '{}')
      from ranked r
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

-- Works off an agenda until nothing is left to do in this call.
-- p_exclusive: the instances whose gate the caller holds FOR UPDATE.
-- Raises WFX01 (DETAIL: instance id) when an instance held shared needs its gate exclusive.
create or replace function wf.wf_engine_run(
    p_entries wf.agenda_entry[], p_exclusive bigint[], p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_first_new_id bigint := nextval('wf.node_execution_id_seq');
    v_level        wf.agenda_entry[] := p_entries;
    v_held         wf.agenda_entry[] := '{}';
    v_waits        wf.agenda_entry[] := '{}';
    v_done         record;
    v_has_closed   boolean := false;
    v_work_limit   bigint := coalesce((select s.value::bigint from wf.wf_setting s
                                        where s.name = 'max_activations_per_call'), 1000000);
    v_work_left    bigint := v_work_limit;
begin
    loop
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
        select * into v_done
          from wf.wf_engine_level(v_level, v_first_new_id, p_exclusive, v_work_left, v_work_limit,
                                  p_now);
        v_level := v_done.next_level;
        v_held := v_held || v_done.held;
        v_waits := v_waits || v_done.waits;
        v_work_left := v_done.work_left;
        v_has_closed := v_has_closed or v_done.has_closed;
    end loop;
end
$$;

-- One level. Entries that cannot close other work are taken as one set; a failure is taken alone,
-- after the earlier and before the later entries, and what it closed is dropped from the later ones
-- (R12).
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
    v_failed wf.agenda_entry;
    v_done   record;
begin
    next_level := '{}';
    held := '{}';
    waits := '{}';
    work_left := p_work_left;
    has_closed := false;
    loop
        select a.* into v_failed
          from unnest(v_level) a where a.kind = 'F' order by a.ordinal limit 1;
        v_set := v_level;
        if v_failed.ordinal is not null then
            v_set := array(select a from unnest(v_level) a
                            where a.ordinal < v_failed.ordinal order by a.ordinal);
        end if;
        if cardinality(v_set) > 0 then
            select * into v_done
              from wf.wf_engine_set(v_set, p_first_new_id, p_exclusive, work_left, p_work_limit,
                                    p_now);
            next_level := next_level || v_done.next_level;
            held := held || v_done.held;
            waits := waits || v_done.waits;
            work_left := v_done.work_left;
        end if;
        exit when v_failed.ordinal is null;
        if v_failed.workflow_instance_id <> all (p_exclusive) then
            raise exception 'the gate of instance % is needed exclusive',
                v_failed.workflow_instance_id
                using errcode = 'WFX01', detail = v_failed.workflow_instance_id::text;
        end if;
        next_level := next_level || wf.wf_engine_apply(
            array(select s from wf.wf_close_failed(v_failed, p_now) s), p_now);
        has_closed := true;
        v_level := wf.wf_engine_alive(
            array(select a from unnest(v_level) a where a.ordinal > v_failed.ordinal));
        exit when cardinality(v_level) = 0;
    end loop;
    if has_closed then
        -- Several sets made this level; number its entries in the order in which they came to be.
        next_level := array(
            select row(x.position, x.node_execution_id, x.workflow_instance_id, x.kind)
                   ::wf.agenda_entry
              from unnest(next_level) with ordinality
                   x(ordinal, node_execution_id, workflow_instance_id, kind, position)
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
    select * into v_done from wf.wf_engine_steps(v_set, p_first_new_id, p_exclusive, p_now);
    next_level := wf.wf_engine_apply(v_done.steps || v_refused, p_now);
    held := v_done.held;
    waits := v_done.waits;
end
$$;

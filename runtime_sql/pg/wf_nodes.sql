-- The handlers of the node types: what activating a node, or the success of a child, leads to.
-- Twin: mssql/wf_nodes.sql
--
-- A handler takes agenda entries and answers steps (03_engine_core.sql). FOREACH's stand in
-- 08_foreach_support.sql, WAIT_EVENT's in wf_event_plane.sql.

-- Activation: one handler per node type ---------------------------------------------------------

-- The priority of a task: its node's and its instance's, within the column's bounds.
create or replace function wf.wf_add_priorities(p_one integer, p_other integer) returns integer
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select greatest(least(coalesce(p_one, 0)::bigint + coalesce(p_other, 0), 2147483647),
                    -2147483648)::integer
$$;

-- ACTION: builds the input and queues the task, with its dispatch columns (wf_dispatch.sql). A failure
-- to build fails the node (S4.1). Where every binding is one variable the values are read in place;
-- for the others, and where a variable has no value or what came of it is large, each input is built
-- by wf_build_input_json_for_action.
create or replace function wf.wf_action_activate(p_entries wf.agenda_entry[], p_now timestamptz)
returns wf.agenda_step[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_failed wf.agenda_step[];
begin
    with kinds as materialized (
        -- What entries of one node in one instance have in common, read once; their scopes have one
        -- owner too. By key, whatever the planner thinks: in a young database it would read all nodes
        -- and all instances.
        select d.entries, n.node_id, n.action_id, n.has_plain_inputs, n.has_input_bindings,
               case when n.priority = 0 and i.priority = 0 then 0
                    else wf.wf_add_priorities(n.priority, i.priority) end as priority,
               coalesce(n.delay_ms, 0) as delay_ms, i.status = 'RUNNING' as is_running,
               n.attributes_json -> 'dispatch' as overrides_json,
               n.attributes_json ? 'dispatch' or k.exclusive_worker
                   or num_nonnulls(k.max_per_worker, k.affinity_key_field, k.max_concurrent,
                                   k.rate_per_minute) > 0 as has_dispatch,
               t.template_json,
               (select s.owner_key from wf.scope s where s.scope_id = d.a_scope_id) as scope_owner
          from (select a.node_id, a.workflow_instance_id, min(a.scope_id) as a_scope_id,
                       array_agg(a::wf.agenda_entry) as entries
                  from unnest(p_entries) a
                 group by a.node_id, a.workflow_instance_id) d
         cross join lateral (
            select w.* from wf.workflow_node w where w.node_id = d.node_id offset 0) n
         cross join lateral (
            select w.priority, w.status
              from wf.workflow_instance w
             where w.workflow_instance_id = d.workflow_instance_id
            offset 0) i
          join wf.workflow_action k on k.action_id = n.action_id
          left join wf.workflow_input_template t
            on t.workflow_version_id = n.workflow_version_id and t.node_key = n.node_key
    ), built as materialized (
        select a.ordinal, a.node_execution_id, a.workflow_instance_id, n.node_id, n.action_id,
               n.priority, n.delay_ms, n.is_running, n.overrides_json, n.has_dispatch,
               b.value_json, b.error_code, b.error_message
          from kinds n
         cross join lateral unnest(n.entries) a
         cross join lateral (
            select jsonb_object_agg(b.path[1], v.value_json) as values_json,
                   bool_and(v.value_json is not null) as are_all_there
              from wf.workflow_input_binding b
              left join wf.scope_variable v
                on v.scope_id = case when b.variable_owner = n.scope_owner then a.scope_id
                                     else wf.wf_find_scope(a.scope_id, b.variable_owner) end
               and v.name = b.variable_name
             where b.node_id = n.node_id and n.has_plain_inputs and n.has_input_bindings) v
         cross join lateral (
            select n.has_plain_inputs and coalesce(v.are_all_there, true)
                       and coalesce(pg_column_size(v.values_json), 0) <= 800 as is_built) q
         cross join lateral (
            select coalesce(n.template_json || v.values_json, n.template_json, v.values_json, '{}')
                       as value_json,
                   null::integer as error_code, null::text as error_message
             where q.is_built
            union all
            select f.value_json, f.error_code, f.error_message
              from wf.wf_build_input_json_for_action(a.node_execution_id) f
             where not q.is_built) b
    ), queued as (
        insert into wf.task (node_execution_id, workflow_instance_id, node_id, action_id, priority,
                             available_at, is_claimable, input_json, affinity_key, max_per_worker,
                             max_concurrent, rate_per_minute, is_exclusive, prefers_previous,
                             prefers_group, requires_previous, pinned_worker_id)
        select b.node_execution_id, b.workflow_instance_id, b.node_id, b.action_id, b.priority,
               p_now + b.delay_ms * interval '1 millisecond', b.delay_ms = 0 and b.is_running,
               b.value_json, d.affinity_key, d.max_per_worker, d.max_concurrent, d.rate_per_minute,
               coalesce(d.is_exclusive, false), coalesce(d.prefers_previous, false),
               coalesce(d.prefers_group, false), coalesce(d.requires_previous, false),
               case when d.requires_previous and not d.is_exclusive
                    then wf.wf_pinned_worker(b.workflow_instance_id, b.action_id, d.affinity_key)
               end
          from built b
          left join lateral (
            -- Most actions have no rules of dispatch, and their tasks need no look at them. Without the
            -- offset the condition would be one of the join, and the call made for every row.
            select r.* from wf.wf_dispatch_of(b.action_id, b.overrides_json, b.value_json) r
             where b.has_dispatch
            offset 0) d on true
         where b.error_code is null
    )
    select array_agg(wf.wf_fail_step(b.ordinal, b.node_execution_id, b.workflow_instance_id,
                                     b.error_code, b.error_message) order by b.ordinal)
      into v_failed
      from built b
     where b.error_code is not null;
    return coalesce(v_failed, '{}');
end
$$;

-- SEQUENCE: its first child; without children it ends at once, after the `set` or `fail` that it
-- carries, or when its `sleep` is over (wf_timers.sql).
create or replace function wf.wf_sequence_activate(
    p_entries wf.agenda_entry[], p_now timestamptz
) returns wf.agenda_step[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_steps wf.agenda_step[];
    v_row   record;
    v_error record;
begin
    -- The bodies of a wide FOREACH come here all at once.
    v_steps := array(
        select row(a.ordinal, 0, 'START', a.node_execution_id, a.workflow_instance_id,
                   n.first_child_id, 0, null, null, null, null, null)::wf.agenda_step
          from unnest(p_entries) a
          join wf.workflow_node n on n.node_id = a.node_id
         where n.first_child_id is not null);
    if cardinality(v_steps) = cardinality(p_entries) then
        return v_steps;
    end if;
    for v_row in
        select a.*, n.has_output_bindings, n.delay_ms, n.attributes_json -> 'fail' as fail_json
          from unnest(p_entries) a
          join wf.workflow_node n on n.node_id = a.node_id
         where n.first_child_id is null
         order by a.ordinal
    loop
        if v_row.fail_json is not null then
            v_steps := v_steps || wf.wf_fail_statement(
                v_row.ordinal, v_row.node_execution_id, v_row.workflow_instance_id, v_row.fail_json);
            continue;
        end if;
        if v_row.delay_ms > 0 then
            insert into wf.timer (node_execution_id, workflow_instance_id, due_at)
            values (v_row.node_execution_id, v_row.workflow_instance_id,
                    p_now + v_row.delay_ms * interval '1 millisecond');
            continue;
        end if;
        if v_row.has_output_bindings then
            select * into v_error
              from wf.wf_apply_output_bindings(v_row.node_execution_id, null, null, null);
            if v_error.error_code is not null then
                v_steps := v_steps || wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                    v_row.workflow_instance_id, v_error.error_code, v_error.error_message);
                continue;
            end if;
        end if;
        v_steps := v_steps || wf.wf_succeed_step(v_row.ordinal, v_row.node_execution_id,
                                                 v_row.workflow_instance_id);
    end loop;
    return v_steps;
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
                                 total_count, next_index, open_count, needed_count,
                                 allowed_failures, keeps_going)
    select a.node_execution_id, a.workflow_instance_id, e.join_parent_id, n.child_count,
           least(n.child_count, coalesce(n.branch_limit, n.child_count)),
           least(n.child_count, coalesce(n.branch_limit, n.child_count)),
           n.needed_count, n.child_count - least(n.child_count, coalesce(n.needed_count, n.child_count)),
           n.attributes_json ? 'keep_going'
      from unnest(p_entries) a
      join wf.node_execution e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id
     where n.child_count > 0;

    return query
    select a.ordinal, c.child_order, 'START', a.node_execution_id, a.workflow_instance_id,
           c.node_id, 0, null::jsonb, null::integer, null::integer, null::text, null::bigint
      from unnest(p_entries) a
      join wf.workflow_node n on n.node_id = a.node_id
      join wf.workflow_node c on c.parent_node_id = n.node_id
     where c.child_order < coalesce(n.branch_limit, n.child_count)
    union all
    select a.ordinal, 0, 'SUCCEED', a.node_execution_id, a.workflow_instance_id,
           null, null, null, 0, null, null, null
      from unnest(p_entries) a
      join wf.workflow_node n on n.node_id = a.node_id
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
          join wf.workflow_node n on n.node_id = a.node_id
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
            return next wf.wf_start_step(v_row.ordinal, v_row.node_execution_id,
                                         v_row.workflow_instance_id, v_row.branch_node_id);
        elsif v_row.is_true then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, 10003, 'the if has no branch to take');
        else
            return next wf.wf_succeed_step(v_row.ordinal, v_row.node_execution_id,
                                           v_row.workflow_instance_id);
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
          join wf.workflow_node n on n.node_id = a.node_id
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
            return next wf.wf_start_step(v_row.ordinal, v_row.node_execution_id,
                                         v_row.workflow_instance_id, v_branch);
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
          join wf.workflow_node n on n.node_id = a.node_id
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
            return next wf.wf_succeed_step(v_row.ordinal, v_row.node_execution_id,
                                           v_row.workflow_instance_id);
            continue;
        end if;
        insert into wf.loop_state (node_execution_id, workflow_instance_id, total_count)
        values (v_row.node_execution_id, v_row.workflow_instance_id,
                least(v_count, 9223372036854775807)::bigint);
        return next wf.wf_start_step(v_row.ordinal, v_row.node_execution_id,
                                         v_row.workflow_instance_id, v_row.first_child_id);
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
        return wf.wf_succeed_step(p_ordinal, p_node_execution_id, p_workflow_instance_id);
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

-- The next child of the SEQUENCE, or its end; by way of its finally, if it has one.
create or replace function wf.wf_sequence_continue(
    p_entries wf.agenda_entry[], p_now timestamptz
) returns wf.agenda_step[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_steps wf.agenda_step[];
    v_done  wf.agenda_entry[];
begin
    select array_agg(row(s.ordinal, 0, case when n.next_node_id is null then 'SUCCEED' else 'START' end,
                         s.parent_execution_id, s.workflow_instance_id, n.next_node_id, 0, null,
                         case when n.next_node_id is null then 0 end, null, null, null
                        )::wf.agenda_step) filter (where c.is_plain),
           array_agg(s::wf.agenda_entry order by s.ordinal) filter (where not c.is_plain)
      into v_steps, v_done
      from unnest(p_entries) s
      join wf.workflow_node n on n.node_id = s.node_id
      join wf.workflow_node p on p.node_id = n.parent_node_id
     cross join lateral (select n.edge_kind = 'SEQUENCE'
        and (n.next_node_id is not null or p.finally_node_id is null) as is_plain) c;
    if v_done is not null then
        v_steps := v_steps || array(
            select d
              from unnest(v_done) s
              join wf.workflow_node n on n.node_id = s.node_id
             cross join lateral wf.wf_sequence_done(s.ordinal, s.node_execution_id,
                                                    n.edge_kind, p_now) d
             order by s.ordinal);
    end if;
    return v_steps;
end
$$;

-- An IF or a SWITCH ends with its branch.
create or replace function wf.wf_branch_continue(p_entries wf.agenda_entry[])
returns wf.agenda_step[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select wf.wf_succeed_step(s.ordinal, s.parent_execution_id, s.workflow_instance_id)
          from unnest(p_entries) s);
end
$$;

-- `keep N` of a WHILE or REPEAT (R31): of the iterations that have succeeded only the newest N stay.
-- Removes what is older with everything below it, one generation after the other; all of it has
-- ended, so no other call is at these rows.
create or replace function wf.wf_drop_iterations(p_entries wf.agenda_entry[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_gone bigint[];
begin
    if not exists (select 1
                     from unnest(p_entries) s
                     join wf.workflow_node n on n.node_id = s.node_id
                     join wf.workflow_node p on p.node_id = n.parent_node_id
                    where p.attributes_json ? 'keep') then
        return;
    end if;
    v_gone := array(
        with recursive gone as (
            select o.node_execution_id, o.workflow_instance_id
              from unnest(p_entries) s
              join wf.node_execution e on e.node_execution_id = s.node_execution_id
              join wf.workflow_node n on n.node_id = e.node_id
              join wf.workflow_node p on p.node_id = n.parent_node_id
              join wf.node_execution o
                on o.workflow_instance_id = e.workflow_instance_id
               and o.parent_execution_id = e.parent_execution_id and o.node_id = e.node_id
               and o.iteration_no <= e.iteration_no - (p.attributes_json ->> 'keep')::integer
            union all
            select c.node_execution_id, c.workflow_instance_id
              from gone g
              join wf.node_execution c
                on c.workflow_instance_id = g.workflow_instance_id
               and c.parent_execution_id = g.node_execution_id
        )
        select g.node_execution_id from gone g);
    if cardinality(v_gone) > 0 then
        delete from wf.scope_variable v where v.scope_id = any (v_gone);
        delete from wf.scope s where s.scope_id = any (v_gone);
        delete from wf.node_attempt a where a.node_execution_id = any (v_gone);
        perform wf.wf_forget_progress(v_gone);
        delete from wf.node_execution e where e.node_execution_id = any (v_gone);
    end if;
end
$$;

-- The next iteration of a REPEAT, or its end.
create or replace function wf.wf_repeat_continue(p_entries wf.agenda_entry[])
returns wf.agenda_step[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform wf.wf_drop_iterations(p_entries);
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
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform wf.wf_drop_iterations(p_entries);
    return array(
        select wf.wf_while_test(s.ordinal, e.parent_execution_id, s.workflow_instance_id,
                                e.iteration_no + 1)
          from unnest(p_entries) s
          join wf.node_execution e on e.node_execution_id = s.node_execution_id);
end
$$;

-- A WAIT_EVENT ends with its timeout body, with result code 1 (S8.5).
create or replace function wf.wf_wait_continue(p_entries wf.agenda_entry[])
returns wf.agenda_step[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select wf.wf_succeed_step(s.ordinal, s.parent_execution_id, s.workflow_instance_id, 1)
          from unnest(p_entries) s);
end
$$;

-- PARALLEL and FOREACH: takes the ended children off their counters, one counter after the other in the
-- order of p_entries; wf.wf_engine_run hands counters of instances held shared in descending order (R1).
-- Where all children have started, only the last of several can decide anything, so the others are
-- counted in one update: a row that one transaction updates over and over gets slower each time.
create or replace function wf.wf_join_continue(p_entries wf.agenda_entry[], p_now timestamptz)
returns wf.agenda_step[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_join  record;
    v_steps wf.agenda_step[] := '{}';
begin
    for v_join in
        select a.parent_execution_id, array_agg(a::wf.agenda_entry order by a.ordinal) as entries,
               count(*)::integer - 1 as earlier_count
          from unnest(p_entries) a
         group by a.parent_execution_id
         order by min(a.ordinal)
    loop
        if v_join.earlier_count > 0 then
            update wf.join_counter c
               set open_count = c.open_count - v_join.earlier_count,
                   succeeded_count = c.succeeded_count + v_join.earlier_count,
                   last_started = null
             where c.node_execution_id = v_join.parent_execution_id
               and c.next_index = c.total_count;
            if found then
                v_join.entries := v_join.entries[v_join.earlier_count + 1:];
            end if;
        end if;
        v_steps := v_steps || array(
            select s
              from unnest(v_join.entries) with ordinality
                   a(ordinal, node_execution_id, workflow_instance_id, kind, node_id,
                     parent_execution_id, scope_id, position)
             cross join lateral wf.wf_join_ended(a.ordinal, a.node_execution_id, true, p_now) s
             order by a.position, s.seq);
    end loop;
    return v_steps;
end
$$;

-- Completion --------------------------------------------------------------------------------------

-- Runs the `set`s of a node that has succeeded, in order, each seeing those before it (S2.4). The
-- first error, or value that does not fit its variable's type (R5), ends it and is answered.
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
        select b.name, b.owner_key, b.program_json, b.workflow_version_id, b.type_id, e.scope_id
          from wf.node_execution e
          join wf.variable_output_binding b on b.node_id = e.node_id
         where e.node_execution_id = p_node_execution_id and b.binding_kind = 'var'
         order by b.binding_order
    loop
        select * into v_value
          from wf.wf_eval_expression(v_binding.program_json, p_node_execution_id, p_output_json,
                                     p_result_code, p_event_json);
        error_code := v_value.error_code;
        error_message := v_value.error_message;
        if error_code is null and v_binding.type_id is not null then
            select c.error_code, c.error_message into error_code, error_message
              from wf.wf_check_variable(v_binding.workflow_version_id, v_binding.type_id,
                                        v_binding.name, v_value.value_json) c;
        end if;
        if error_code is not null then
            return;
        end if;
        perform wf.wf_set_scope_variable(v_binding.scope_id, v_binding.owner_key, v_binding.name,
                                         v_value.value_json);
    end loop;
end
$$;


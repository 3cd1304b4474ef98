-- References: what `var`, `ctx`, `out`, `code` and `event` name. Twin: mssql/05_runtime_parity.sql
--
-- A program (compiler/spec.py) is a postfix list of instructions; wf.wf_eval_expression runs it
-- with one loop over a stack. wf.wf_resolve_reference finds what `var`, `ctx`, `out`, `code` and
-- `event` name. Nothing here changes a row, takes a lock, runs text from a row or calls itself.
--
-- None of these routines raises: they answer value_json, or error_code with error_message (rule
-- S5's codes; the text has no path, the engine puts it before). A JSON null is jsonb 'null'; SQL
-- null is "nothing there". The place of an evaluation is an execution: its scope chain holds the
-- variables, the executions above it are what `ctx` looks at.
--
-- The evaluator is in every step's path, so types and truth are worked out in place there rather
-- than through wf.wf_type_word and wf.wf_truth, which cost more than the comparison they serve.

-- References --------------------------------------------------------------------------------------

-- A reference as an author writes it, for messages: var.items[3], var.a["odd key"], var.a[var.i].
create or replace function wf.wf_reference_text(p_ref jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v_todo  jsonb[] := array[p_ref];  -- what is still to be written, last first; a string is text
    v_count integer := 1;
    v_item  jsonb;
    v_path  jsonb;
    v_step  jsonb;
    v_text  text := '';
begin
    while v_count > 0 loop
        v_item := v_todo[v_count];
        v_count := v_count - 1;
        if jsonb_typeof(v_item) = 'string' then
            v_text := v_text || (v_item #>> '{}');
            continue;
        end if;
        v_text := v_text || (v_item ->> 0)
            || case when v_item ->> 0 in ('var', 'ctx') then '.' || (v_item ->> 1) else '' end;
        v_path := case v_item ->> 0 when 'code' then '[]'::jsonb else v_item -> -1 end;
        for v_index in reverse jsonb_array_length(v_path) - 1 .. 0 loop
            v_step := v_path -> v_index;
            case jsonb_typeof(v_step)
                when 'array' then
                    v_todo[v_count + 1] := to_jsonb(']'::text);
                    v_todo[v_count + 2] := v_step;
                    v_todo[v_count + 3] := to_jsonb('['::text);
                    v_count := v_count + 3;
                when 'number' then
                    v_count := v_count + 1;
                    v_todo[v_count] := to_jsonb('[' || (v_step #>> '{}') || ']');
                else
                    v_count := v_count + 1;
                    v_todo[v_count] := to_jsonb(
                        case when v_step #>> '{}' ~ '^[A-Za-z_][A-Za-z0-9_]*$'
                             then '.' || (v_step #>> '{}')
                             else '[' || v_step::text || ']' end);
            end case;
        end loop;
    end loop;
    return v_text;
end
$$;

-- The execution of node p_task_key that a reader at p_execution_id sees (R27), or null: from the
-- deepest execution around the reader that is above that node, down its static chain, in loops by
-- the latest iteration; into a parallel FOREACH nothing is seen from outside.
-- Reader and node climb by turns until they meet, so that a sibling costs one step.
create or replace function wf.wf_find_task_execution(p_execution_id bigint, p_task_key text)
returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_reader       record;
    v_node         record;
    v_down         bigint[] := '{}';  -- from the task's node upwards
    v_execution_id bigint;
begin
    select e.node_execution_id, e.workflow_instance_id, e.parent_execution_id, e.node_id,
           n.workflow_version_id, n.depth
      into v_reader
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_execution_id;
    if not found then
        return null;
    end if;
    select k.node_id, k.parent_node_id, k.depth, k.is_loop_body into v_node
      from wf.workflow_node k
     where k.workflow_version_id = v_reader.workflow_version_id and k.node_key = p_task_key;
    if not found then
        return null;
    end if;

    loop
        if v_reader.depth >= v_node.depth then
            select e.node_execution_id, e.workflow_instance_id, e.parent_execution_id, e.node_id,
                   n.workflow_version_id, n.depth
              into v_reader
              from wf.node_execution e
              join wf.workflow_node n on n.node_id = e.node_id
             where e.node_execution_id = v_reader.parent_execution_id;
            if not found then
                return null;
            end if;
            continue;
        end if;
        v_down := v_down || v_node.node_id;
        if v_node.is_loop_body and exists (
            select 1
              from wf.workflow_node p
             where p.node_id = v_node.parent_node_id and p.node_type = 'FOREACH'
               and coalesce(p.attributes_json ->> 'parallel', '1') <> '1')
        then
            return null;
        end if;
        exit when v_node.parent_node_id = v_reader.node_id;
        select k.node_id, k.parent_node_id, k.depth, k.is_loop_body into v_node
          from wf.workflow_node k
         where k.node_id = v_node.parent_node_id;
    end loop;

    v_execution_id := v_reader.node_execution_id;
    for v_at in reverse cardinality(v_down) .. 1 loop
        select e.node_execution_id into v_execution_id
          from wf.node_execution e
         where e.workflow_instance_id = v_reader.workflow_instance_id
           and e.parent_execution_id = v_execution_id
           and e.node_id = v_down[v_at]
         order by e.iteration_no desc
         limit 1;
        if not found then
            return null;
        end if;
    end loop;
    return v_execution_id;
end
$$;

-- `ctx.task.K.resultCode`: the code of the ended execution of K that the reader sees, else 10001.
create or replace function wf.wf_try_task_result_code(
    p_execution_id bigint, p_task_key text,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    select to_jsonb(e.result_code) into value_json
      from wf.node_execution e
     where e.node_execution_id = wf.wf_find_task_execution(p_execution_id, p_task_key)
       and e.status not in ('READY', 'RUNNING');
    if value_json is null then
        error_code := 10001;
        error_message := wf.wf_reference_text(jsonb_build_array('ctx', 'task',
            jsonb_build_array(p_task_key, 'resultCode'))) || ' is not there';
    end if;
end
$$;

-- `ctx.task.K.output`: the output of the succeeded execution of K that the reader sees, else 10001.
create or replace function wf.wf_try_task_output_json(
    p_execution_id bigint, p_task_key text,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    select coalesce(e.output_json, 'null') into value_json
      from wf.node_execution e
     where e.node_execution_id = wf.wf_find_task_execution(p_execution_id, p_task_key)
       and e.status = 'SUCCEEDED';
    if value_json is null then
        error_code := 10001;
        error_message := wf.wf_reference_text(jsonb_build_array('ctx', 'task',
            jsonb_build_array(p_task_key, 'output'))) || ' is not there';
    end if;
end
$$;

-- `ctx.item`, `index`, `iterationNo`: of the nearest iteration around the execution, itself
-- included; null outside of loops, and for the item of a loop that has none.
create or replace function wf.wf_loop_entry(p_execution_id bigint, p_root text) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_execution_id bigint := p_execution_id;
    v_row          record;
begin
    loop
        select e.parent_execution_id, e.iteration_no, n.is_loop_body, n.parent_node_id into v_row
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
         where e.node_execution_id = v_execution_id;
        if not found then
            return null;
        end if;
        exit when v_row.is_loop_body;
        v_execution_id := v_row.parent_execution_id;
    end loop;
    return case p_root
        when 'index' then to_jsonb(v_row.iteration_no)
        when 'iterationNo' then to_jsonb(v_row.iteration_no + 1)
        else (select v.value_json
                from wf.workflow_node p
                join wf.scope_variable v
                  on v.scope_id = v_execution_id and v.name = p.attributes_json ->> 'item'
               where p.node_id = v_row.parent_node_id and p.node_type = 'FOREACH')
        end;
end
$$;

-- `ctx.sequenceIndex` and `parallelIndex`: the child order of the nearest execution, itself
-- included, that hangs on such an edge.
create or replace function wf.wf_nearest_child_order(p_execution_id bigint, p_edge_kind text)
returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_execution_id bigint := p_execution_id;
    v_row          record;
begin
    loop
        select e.parent_execution_id, n.edge_kind, n.child_order into v_row
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
         where e.node_execution_id = v_execution_id;
        if not found then
            return null;
        end if;
        exit when v_row.edge_kind = p_edge_kind;
        v_execution_id := v_row.parent_execution_id;
    end loop;
    return to_jsonb(v_row.child_order);
end
$$;

-- `ctx.parent.resultCode`: from the nearest execution, itself included, whose parent is a SEQUENCE,
-- the code of the sibling before it.
create or replace function wf.wf_previous_result_code(p_execution_id bigint) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_execution_id bigint := p_execution_id;
    v_row          record;
begin
    loop
        select e.workflow_instance_id, e.parent_execution_id, n.parent_node_id, n.parent_type,
               n.child_order
          into v_row
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
         where e.node_execution_id = v_execution_id;
        if not found then
            return null;
        end if;
        exit when v_row.parent_type = 'SEQUENCE';
        v_execution_id := v_row.parent_execution_id;
    end loop;
    return (select to_jsonb(e.result_code)
              from wf.workflow_node n
              join wf.node_execution e
                on e.workflow_instance_id = v_row.workflow_instance_id
               and e.parent_execution_id = v_row.parent_execution_id
               and e.node_id = n.node_id
               and e.iteration_no = 0
             where n.parent_node_id = v_row.parent_node_id
               and n.child_order = v_row.child_order - 1);
end
$$;

-- `ctx.error` (S6.9): the error that the nearest on_error or finally around the reader handles, as it
-- was when that began; null outside of one, and in a finally after success or cancellation.
create or replace function wf.wf_error_entry(p_execution_id bigint) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
    v_id  bigint := p_execution_id;
begin
    loop
        select e.parent_execution_id, e.workflow_instance_id, n.edge_kind into v_row
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
         where e.node_execution_id = v_id;
        if not found then
            return null;
        end if;
        exit when v_row.edge_kind in ('ON_ERROR', 'FINALLY');
        v_id := v_row.parent_execution_id;
    end loop;
    return (
        select jsonb_build_object('code', p.result_code, 'engine_code', p.engine_error_code,
                   'message', coalesce(p.engine_error_message, ''), 'node', n.node_key,
                   'path', wf.wf_execution_path(p.error_execution_id))
          from wf.pending_end p
          join wf.node_execution o on o.node_execution_id = p.error_execution_id
          join wf.workflow_node n on n.node_id = o.node_id
         where p.node_execution_id = v_row.parent_execution_id
           and p.verdict = 'FAIL');
end
$$;

-- What a `ctx` reference starts from (R27): value_json, null when it is not there, and how many of
-- its steps that took (`task` takes key and field, `parent` its field).
create or replace function wf.wf_context_entry(
    p_execution_id bigint, p_root text, p_steps jsonb, p_result_code integer,
    out value_json jsonb, out steps_taken integer
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    steps_taken := case p_root when 'task' then 2 when 'parent' then 1 else 0 end;
    if jsonb_array_length(p_steps) < steps_taken then
        return;
    end if;
    case p_root
        when 'task' then
            if jsonb_typeof(p_steps -> 0) = 'string' and p_steps -> 1 = '"output"' then
                select t.value_json into value_json
                  from wf.wf_try_task_output_json(p_execution_id, p_steps ->> 0) t;
            elsif jsonb_typeof(p_steps -> 0) = 'string' and p_steps -> 1 = '"resultCode"' then
                select t.value_json into value_json
                  from wf.wf_try_task_result_code(p_execution_id, p_steps ->> 0) t;
            end if;
        when 'error' then
            value_json := wf.wf_error_entry(p_execution_id);
        when 'item', 'index', 'iterationNo' then
            value_json := wf.wf_loop_entry(p_execution_id, p_root);
        when 'parent' then
            if p_steps -> 0 = '"resultCode"' then
                value_json := wf.wf_previous_result_code(p_execution_id);
            end if;
        when 'sequenceIndex' then
            value_json := wf.wf_nearest_child_order(p_execution_id, 'SEQUENCE');
        when 'parallelIndex' then
            value_json := wf.wf_nearest_child_order(p_execution_id, 'PARALLEL');
        when 'attempt' then
            -- Only in a `set`, which is where there is a result code (R27).
            if p_result_code is not null then
                select to_jsonb(greatest(coalesce(t.attempt_no, e.attempt_no), 1)) into value_json
                  from wf.node_execution e
                  left join wf.task t on t.node_execution_id = e.node_execution_id
                 where e.node_execution_id = p_execution_id;
            end if;
        when 'node' then
            select to_jsonb(n.node_key) into value_json
              from wf.node_execution e
              join wf.workflow_node n on n.node_id = e.node_id
             where e.node_execution_id = p_execution_id;
        when 'workflow', 'version', 'instance_id' then
            select to_jsonb(case p_root when 'workflow' then d.name
                                        when 'version' then left(w.content_hash, 12)
                                        else i.workflow_instance_id::text end)
              into value_json
              from wf.workflow_instance i
              join wf.workflow_version w on w.workflow_version_id = i.workflow_version_id
              join wf.workflow_def d on d.workflow_def_id = w.workflow_def_id
             where i.workflow_instance_id = wf.wf_instance_of_execution(p_execution_id);
        when 'context', 'forceRerun', 'event' then
            select case p_root
                       when 'context' then c.context_json
                       when 'event' then c.event_json
                       else coalesce(c.context_json -> 'forceRerun', 'false') end
              into value_json
              from wf.execution_context c
             where c.workflow_instance_id = wf.wf_instance_of_execution(p_execution_id);
        else
            null;
    end case;
end
$$;

-- The instance of an execution. While inputs are checked the root has a scope and no row yet.
create or replace function wf.wf_instance_of_execution(p_execution_id bigint) returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return coalesce(
        (select e.workflow_instance_id from wf.node_execution e
          where e.node_execution_id = p_execution_id),
        (select s.workflow_instance_id from wf.scope s where s.scope_id = p_execution_id));
end
$$;

-- What a reference names (S3.6). A step that is itself a reference is resolved by setting the outer
-- one aside: entry i of the v_outer arrays waits for the index that entry i + 1 is to give.
-- p_unset_is_null: variables that only a `set` brings into being read as null until then; the
-- workflow's `output` reads so (R16). p_scope_id: the execution's innermost scope, if the caller
-- knows it; an execution without a row (the root, while its inputs are read) is its own scope.
create or replace function wf.wf_resolve_reference(
    p_ref jsonb, p_execution_id bigint, p_output_json jsonb default null,
    p_result_code integer default null, p_event_json jsonb default null,
    p_unset_is_null boolean default false, p_scope_id bigint default null,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_ref         jsonb := p_ref;
    v_value       jsonb;
    v_steps       jsonb;
    v_step        jsonb;
    v_at          integer;
    v_count       integer;
    v_index       numeric;
    v_scope_id    bigint;
    v_owner       text;
    v_parent      bigint;
    v_entry       record;
    v_depth       integer := 0;
    v_outer_ref   jsonb[];
    v_outer_value jsonb[];
    v_outer_at    integer[];
begin
    <<reference>>
    loop
        v_at := 0;
        case v_ref ->> 0
            when 'var' then
                v_steps := v_ref -> 3;
                -- Single reads by primary key: as quick as a join, and so under every plan.
                v_scope_id := p_scope_id;
                if v_scope_id is null then
                    select e.scope_id into v_scope_id
                      from wf.node_execution e
                     where e.node_execution_id = p_execution_id;
                    if not found then
                        v_scope_id := p_execution_id;
                    end if;
                end if;
                loop
                    select s.owner_key, s.parent_scope_id into v_owner, v_parent
                      from wf.scope s
                     where s.scope_id = v_scope_id;
                    exit when not found or v_owner = v_ref ->> 2;
                    v_scope_id := v_parent;
                end loop;
                select v.value_json into v_value
                  from wf.scope_variable v
                 where v.scope_id = v_scope_id and v.name = v_ref ->> 1;
                if v_value is null and p_unset_is_null and v_depth = 0
                   and wf.wf_is_set_only_variable(p_execution_id, v_ref ->> 2, v_ref ->> 1) then
                    v_value := 'null';
                end if;
            when 'ctx' then
                v_steps := v_ref -> 2;
                v_entry := wf.wf_context_entry(p_execution_id, v_ref ->> 1, v_steps, p_result_code);
                v_value := v_entry.value_json;
                v_at := v_entry.steps_taken;
            when 'out' then
                v_steps := v_ref -> 1;
                v_value := coalesce(p_output_json, 'null');
            when 'code' then
                v_steps := '[]';
                v_value := to_jsonb(p_result_code);
            else
                v_steps := v_ref -> 1;
                v_value := p_event_json;
        end case;
        v_count := jsonb_array_length(v_steps);

        loop
            if v_value is null then
                error_code := 10001;
                error_message := wf.wf_reference_text(v_ref) || ' is not there';
                return;
            end if;
            if v_at < v_count then
                v_step := v_steps -> v_at;
                v_at := v_at + 1;
                if jsonb_typeof(v_step) = 'array' then
                    v_depth := v_depth + 1;
                    v_outer_ref[v_depth] := v_ref;
                    v_outer_value[v_depth] := v_value;
                    v_outer_at[v_depth] := v_at;
                    v_ref := v_step;
                    continue reference;
                end if;
            elsif v_depth = 0 then
                value_json := v_value;
                return;
            else
                -- An index is complete: back to the reference that it stands in.
                v_step := v_value;
                v_ref := v_outer_ref[v_depth];
                v_value := v_outer_value[v_depth];
                v_at := v_outer_at[v_depth];
                v_depth := v_depth - 1;
                v_steps := v_ref -> -1;
                v_count := jsonb_array_length(v_steps);
                if not (case jsonb_typeof(v_step) when 'number' then scale(v_step::numeric) = 0
                        else false end) then
                    error_code := 10010;
                    error_message := 'an index takes an integer, not ' || wf.wf_type_word(v_step);
                    return;
                end if;
            end if;
            if jsonb_typeof(v_step) = 'string' then
                v_value := case when jsonb_typeof(v_value) = 'object'
                                then v_value -> (v_step #>> '{}') end;
            elsif jsonb_typeof(v_value) = 'array' then
                -- A negative index would count from the end.
                v_index := v_step::numeric;
                v_value := case when v_index >= 0 and v_index < jsonb_array_length(v_value)
                                then v_value -> v_index::integer end;
            else
                v_value := null;
            end if;
        end loop;
    end loop;
end
$$;

-- The value of variable p_name of the nearest scope, from p_scope_id outwards, that node
-- p_owner_key opened; 10001 when it has none.
create or replace function wf.wf_get_scope_variable_json(
    p_scope_id bigint, p_owner_key text, p_name text,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    select r.value_json, r.error_code, r.error_message into value_json, error_code, error_message
      from wf.wf_resolve_reference(jsonb_build_array('var', p_name, p_owner_key, '[]'::jsonb), 0,
                                   p_scope_id => p_scope_id) r;
end
$$;

-- Whether the variable is one that only a `set` or `collect` brings into being (R16).
create or replace function wf.wf_is_set_only_variable(
    p_execution_id bigint, p_owner_key text, p_name text
) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return exists (
        select 1
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
          join wf.node_scope_default d
            on d.workflow_version_id = n.workflow_version_id
           and d.owner_key = p_owner_key and d.name = p_name
         where e.node_execution_id = p_execution_id
           and d.variable_kind = 'set');
end
$$;


-- Expressions, references and templates. Twin: mssql/05_runtime_parity.sql
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

-- Programs ----------------------------------------------------------------------------------------

-- Evaluates a program (S3) in the place of an execution. p_output_json, p_result_code and
-- p_event_json are what `out`, `code` and `event` read; p_unset_is_null as in wf_resolve_reference.
create or replace function wf.wf_eval_expression(
    p_program jsonb, p_execution_id bigint, p_output_json jsonb default null,
    p_result_code integer default null, p_event_json jsonb default null,
    p_unset_is_null boolean default false,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_size       integer := jsonb_array_length(p_program);
    v_program    jsonb := p_program;
    v_at         integer := 0;
    v_top        integer := 0;
    v_stack      jsonb[];        -- an SQL null in it is the mark "missing" that only `alt` meets
    v_step       jsonb;
    v_op         text;
    v_left       jsonb;
    v_right      jsonb;
    v_left_type  text;
    v_right_type text;
    v_truth      boolean;
    v_sign       text;
    v_text       text;
    v_found      record;
    v_scope_id   bigint;
begin
    if v_size = 1 then
        v_step := p_program -> 0;
        v_op := v_step ->> 0;
        if v_op = 'lit' then
            value_json := v_step -> 1;
            return;
        elsif v_op in ('var', 'ctx', 'out', 'code', 'event') then
            v_found := wf.wf_resolve_reference(v_step, p_execution_id, p_output_json,
                p_result_code, p_event_json, p_unset_is_null);
            value_json := v_found.value_json;
            error_code := v_found.error_code;
            error_message := v_found.error_message;
            return;
        end if;
    end if;

    if v_size > 50 then
        -- A stored program may be compressed; this unpacks it once instead of at every step.
        v_program := p_program || '[]';
    end if;
    while v_at < v_size loop
        v_step := v_program -> v_at;
        v_op := v_step ->> 0;
        v_at := v_at + 1;

        if v_op = 'lit' then
            v_top := v_top + 1;
            v_stack[v_top] := v_step -> 1;

        elsif v_op in ('var', 'ctx', 'out', 'code', 'event') then
            if v_scope_id is null and v_op = 'var' then
                select e.scope_id into v_scope_id
                  from wf.node_execution e
                 where e.node_execution_id = p_execution_id;
            end if;
            v_found := wf.wf_resolve_reference(v_step, p_execution_id, p_output_json,
                p_result_code, p_event_json, p_unset_is_null, v_scope_id);
            if v_found.error_code is not null and not coalesce(
                   v_found.error_code = 10001 and v_program -> v_at ->> 0 = 'alt', false) then
                error_code := v_found.error_code;
                error_message := v_found.error_message;
                return;
            end if;
            v_top := v_top + 1;
            v_stack[v_top] := v_found.value_json;

        elsif v_op in ('eq', 'ne', 'lt', 'le', 'gt', 'ge') then
            v_right := v_stack[v_top];
            v_top := v_top - 1;
            v_left := v_stack[v_top];
            v_left_type := jsonb_typeof(v_left);
            v_right_type := jsonb_typeof(v_right);
            if (case when v_op in ('eq', 'ne')
                     then (v_left_type in ('object', 'array')
                           or v_right_type in ('object', 'array'))
                          and v_left_type <> 'null' and v_right_type <> 'null'
                     else v_left_type <> v_right_type
                          or v_left_type not in ('number', 'string') end) then
                error_code := 10010;
                error_message := 'cannot compare ' || wf.wf_type_word(v_left)
                    || ' with ' || wf.wf_type_word(v_right);
                return;
            end if;
            if v_op = 'eq' then
                -- jsonb equality is S3.1's for scalars: numbers by value, strings by their bytes.
                v_truth := v_left = v_right;
            elsif v_op = 'ne' then
                v_truth := v_left <> v_right;
            elsif v_left_type = 'number' then
                v_truth := case v_op when 'lt' then v_left::numeric < v_right::numeric
                                     when 'le' then v_left::numeric <= v_right::numeric
                                     when 'gt' then v_left::numeric > v_right::numeric
                                     else v_left::numeric >= v_right::numeric end;
            else
                -- Under "C" UTF-8 sorts by code point (R34).
                v_truth := case v_op
                    when 'lt' then (v_left #>> '{}') collate "C" < (v_right #>> '{}')
                    when 'le' then (v_left #>> '{}') collate "C" <= (v_right #>> '{}')
                    when 'gt' then (v_left #>> '{}') collate "C" > (v_right #>> '{}')
                    else (v_left #>> '{}') collate "C" >= (v_right #>> '{}') end;
            end if;
            v_stack[v_top] := case when v_truth then 'true'::jsonb else 'false'::jsonb end;

        elsif v_op in ('not', 'bool', 'jf', 'jt') then
            v_left := v_stack[v_top];
            v_left_type := jsonb_typeof(v_left);
            v_truth := case v_left_type
                when 'boolean' then v_left = 'true'
                when 'null' then false
                when 'number' then case when scale(v_left::numeric) = 0
                                        then v_left::numeric <> 0 end
                end;
            if v_truth is null then
                error_code := 10010;
                error_message := 'a condition takes a boolean, an integer or null, not '
                    || wf.wf_type_word(v_left);
                return;
            end if;
            if v_op = 'jf' or v_op = 'jt' then
                if v_truth = (v_op = 'jt') then
                    v_at := v_at + (v_step ->> 1)::integer;
                else
                    v_top := v_top - 1;
                    continue;
                end if;
            elsif v_op = 'not' then
                v_truth := not v_truth;
            end if;
            v_stack[v_top] := case when v_truth then 'true'::jsonb else 'false'::jsonb end;

        elsif v_op in ('add', 'sub', 'mul', 'div', 'mod', 'neg') then
            if v_op = 'neg' then
                v_left := '0';
                v_right := v_stack[v_top];
            else
                v_right := v_stack[v_top];
                v_top := v_top - 1;
                v_left := v_stack[v_top];
            end if;
            v_sign := case v_op when 'add' then '+' when 'mul' then '*' when 'div' then '//'
                                when 'mod' then '%' else '-' end;
            v_truth := case jsonb_typeof(v_left) when 'number' then scale(v_left::numeric) = 0
                       else false end;
            if not v_truth
               or not (case jsonb_typeof(v_right) when 'number' then scale(v_right::numeric) = 0
                       else false end) then
                error_code := 10011;
                error_message := v_sign || ' takes integers, not '
                    || wf.wf_type_word(case when v_truth then v_right else v_left end);
                return;
            end if;
            v_found := wf.wf_integer_result(v_sign, v_left::numeric, v_right::numeric);
            if v_found.error_message is not null then
                error_code := 10011;
                error_message := v_found.error_message;
                return;
            end if;
            v_stack[v_top] := to_jsonb(v_found.result);

        elsif v_op = 'alt' then
            v_left := v_stack[v_top];
            if v_left is null or v_left = 'null' then
                v_top := v_top - 1;
            else
                v_at := v_at + (v_step ->> 1)::integer;
            end if;

        elsif v_op = 'cat' then
            v_top := v_top - (v_step ->> 1)::integer;
            v_text := '';
            for v_index in 1 .. (v_step ->> 1)::integer loop
                v_left := v_stack[v_top + v_index];
                if jsonb_typeof(v_left) in ('null', 'array', 'object') then
                    error_code := 10017;
                    error_message := jsonb_typeof(v_left) || ' cannot stand inside a string';
                    return;
                end if;
                -- jsonb writes numbers in normal form (R6).
                v_text := v_text || (v_left #>> '{}');
            end loop;
            v_top := v_top + 1;
            v_stack[v_top] := to_jsonb(v_text);

        elsif v_op = 'in' then
            v_right := v_stack[v_top];
            v_top := v_top - 1;
            v_left := v_stack[v_top];
            if jsonb_typeof(v_left) in ('object', 'array') then
                error_code := 10010;
                error_message := 'in takes a scalar on the left, not ' || jsonb_typeof(v_left);
                return;
            elsif jsonb_typeof(v_right) <> 'array' then
                error_code := 10010;
                error_message := 'in takes an array on the right, not '
                    || wf.wf_type_word(v_right);
                return;
            end if;
            -- An array contains a scalar when one of its elements equals it.
            v_stack[v_top] := to_jsonb(v_right @> v_left);

        elsif v_op = 'len' then
            v_left := v_stack[v_top];
            case jsonb_typeof(v_left)
                when 'string' then
                    v_stack[v_top] := to_jsonb(char_length(v_left #>> '{}'));
                when 'array' then
                    v_stack[v_top] := to_jsonb(jsonb_array_length(v_left));
                when 'object' then
                    v_stack[v_top] := to_jsonb((select count(*) from jsonb_object_keys(v_left)));
                else
                    error_code := 10010;
                    error_message := 'len takes a string, an array or an object, not '
                        || wf.wf_type_word(v_left);
                    return;
            end case;

        elsif v_op = 'defined' then
            v_found := wf.wf_resolve_reference(v_step -> 1, p_execution_id, p_output_json,
                p_result_code, p_event_json);
            if v_found.error_code <> 10001 then
                error_code := v_found.error_code;
                error_message := v_found.error_message;
                return;
            end if;
            v_top := v_top + 1;
            v_stack[v_top] := to_jsonb(v_found.error_code is null);

        elsif v_op = 'arr' then
            v_top := v_top - (v_step ->> 1)::integer + 1;
            v_stack[v_top] := case when v_step ->> 1 = '0' then '[]'::jsonb
                else to_jsonb(v_stack[v_top : v_top - 1 + (v_step ->> 1)::integer]) end;

        elsif v_op = 'obj' then
            v_top := v_top - jsonb_array_length(v_step -> 1) + 1;
            v_stack[v_top] := coalesce(
                (select jsonb_object_agg(k.key, v_stack[v_top - 1 + k.ordinal::integer])
                   from jsonb_array_elements_text(v_step -> 1) with ordinality k(key, ordinal)),
                '{}');

        elsif v_op = 'fault' then
            error_code := (v_step ->> 1)::integer;
            error_message := v_step ->> 2;
            return;

        else
            error_code := 10002;
            error_message := 'unknown instruction ' || coalesce(v_op, 'null');
            return;
        end if;
    end loop;
    value_json := v_stack[v_top];
end
$$;

-- 64-bit arithmetic (S3.5): floor division, modulo with the sign of the divisor.
create or replace function wf.wf_integer_result(
    p_sign text, p_left numeric, p_right numeric, out result numeric, out error_message text
)
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    c_min constant numeric := -9223372036854775808;
    c_max constant numeric := 9223372036854775807;
begin
    if p_left not between c_min and c_max or p_right not between c_min and c_max then
        error_message := 'integer overflow in ' || p_sign;
    elsif p_right = 0 and p_sign in ('//', '%') then
        error_message := 'division by zero';
    else
        result := case p_sign
            when '+' then p_left + p_right
            when '-' then p_left - p_right
            when '*' then p_left * p_right
            -- div and % truncate towards zero; the correction makes them floor.
            when '//' then div(p_left, p_right)
                - case when p_left % p_right <> 0 and (p_left < 0) <> (p_right < 0)
                       then 1 else 0 end
            else p_left % p_right
                + case when p_left % p_right <> 0 and (p_left < 0) <> (p_right < 0)
                       then p_right else 0 end
            end;
        if result not between c_min and c_max then
            result := null;
            error_message := 'integer overflow in ' || p_sign;
        end if;
    end if;
end
$$;

-- Templates ---------------------------------------------------------------------------------------

-- The strings of a template that hold `${` (so also `$${`), with where they stand: `pointer` is
-- the JSON pointer, `path` the same for jsonb_set. Keys are never expanded.
create or replace function wf.wf_template_bindings(p_template jsonb)
returns table (pointer text, path text[], text_value text)
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v_pointers text[] := array[''];
    v_paths    jsonb[] := array['[]'::jsonb];  -- text[] of differing lengths do not make one array
    v_values   jsonb[] := array[p_template];
begin
    if strpos(p_template::text, '${') = 0 then
        return;
    end if;
    while v_values is not null loop
        return query
        select u.pointer, array(select jsonb_array_elements_text(u.path)), u.value #>> '{}'
          from unnest(v_pointers, v_paths, v_values) u(pointer, path, value)
         where jsonb_typeof(u.value) = 'string' and strpos(u.value #>> '{}', '${') > 0;

        select array_agg(u.pointer || '/' || replace(replace(c.key, '~', '~0'), '/', '~1')),
               array_agg(u.path || to_jsonb(c.key)),
               array_agg(c.value)
          into v_pointers, v_paths, v_values
          from unnest(v_pointers, v_paths, v_values) u(pointer, path, value)
         cross join lateral (
            select o.key, o.value
              from jsonb_each(case jsonb_typeof(u.value) when 'object' then u.value end) o
            union all
            select (a.ordinal - 1)::text, a.value
              from jsonb_array_elements(case jsonb_typeof(u.value) when 'array' then u.value end)
                   with ordinality a(value, ordinal)
         ) c;
    end loop;
end
$$;

-- The key of the node whose scope has variable p_name for node p_node_id: the nearest one upwards,
-- itself included, that declares it; null when none does.
create or replace function wf.wf_owner_of_variable(p_node_id bigint, p_name text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_node_id bigint := p_node_id;
    v_row     record;
begin
    while v_node_id is not null loop
        select n.node_key, n.parent_node_id, d.name into v_row
          from wf.workflow_node n
          left join wf.node_scope_default d
            on d.workflow_version_id = n.workflow_version_id
           and d.owner_key = n.node_key and d.name = p_name
         where n.node_id = v_node_id;
        exit when not found;
        if v_row.name is not null then
            return v_row.node_key;
        end if;
        v_node_id := v_row.parent_node_id;
    end loop;
    return null;
end
$$;

-- Reads one `${…}` at the head of p_text, which starts after the `${`. Answers the instruction and
-- how many characters it took with its `}`; a null instruction: it is no reference.
-- An index that is a reference sets the outer one aside, as in wf_resolve_reference.
create or replace function wf.wf_parse_placeholder(
    p_text text, p_node_id bigint, out instruction jsonb, out length integer
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_rest   text := regexp_replace(p_text, '^[ \t]+', '');
    v_refs   jsonb[];
    v_steps  jsonb[];
    v_depth  integer := 0;
    v_match  text[];
    v_owner  text;
    v_step   jsonb;
begin
    <<reference>>
    loop
        v_match := regexp_match(v_rest, '^(var|ctx)\.([A-Za-z_][A-Za-z0-9_]*)');
        if v_match is null then
            return;
        end if;
        v_rest := substr(v_rest, char_length(v_match[1] || v_match[2]) + 2);
        v_depth := v_depth + 1;
        v_steps[v_depth] := '[]';
        v_refs[v_depth] := jsonb_build_array(v_match[1], v_match[2]);
        if v_match[1] = 'var' then
            v_owner := wf.wf_owner_of_variable(p_node_id, v_match[2]);
            if v_owner is null then
                return;
            end if;
            v_refs[v_depth] := v_refs[v_depth] || to_jsonb(v_owner);
        end if;

        loop
            v_step := null;
            if v_rest ~ '^\.[A-Za-z_]' then
                v_match := regexp_match(v_rest, '^\.([A-Za-z_][A-Za-z0-9_]*)');
                v_step := to_jsonb(v_match[1]);
                v_rest := substr(v_rest, char_length(v_match[1]) + 2);
            elsif v_rest ~ '^\[[0-9]{1,18}\]' then
                v_match := regexp_match(v_rest, '^\[([0-9]+)\]');
                v_step := to_jsonb(v_match[1]::bigint);
                v_rest := substr(v_rest, char_length(v_match[1]) + 3);
            elsif v_rest ~ '^\["' then
                v_match := regexp_match(v_rest, '^\[("(?:[^"\\]|\\.)*")\]');
                if v_match is null then
                    return;
                end if;
                begin
                    v_step := v_match[1]::jsonb;
                exception when data_exception or invalid_text_representation then
                    return;
                end;
                v_rest := substr(v_rest, char_length(v_match[1]) + 3);
            elsif v_rest ~ '^\[(var|ctx)\.' then
                v_rest := substr(v_rest, 2);
                continue reference;
            elsif v_depth > 1 and v_rest ~ '^\]' then
                v_step := v_refs[v_depth] || jsonb_build_array(v_steps[v_depth]);
                v_depth := v_depth - 1;
                v_rest := substr(v_rest, 2);
            elsif v_depth = 1 and v_rest ~ '^[ \t]*\}' then
                instruction := v_refs[1] || jsonb_build_array(v_steps[1]);
                length := char_length(p_text) - char_length(v_rest) + strpos(v_rest, '}');
                return;
            else
                return;
            end if;
            v_steps[v_depth] := v_steps[v_depth] || jsonb_build_array(v_step);
        end loop;
    end loop;
end
$$;

-- The program of one template string of node p_node_id: a string that is exactly one placeholder
-- keeps the type of what it names; `$${` stands for `${`. 10002: a placeholder that is none.
create or replace function wf.wf_compile_template_string(
    p_text text, p_version_id bigint, p_node_id bigint,
    out program_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_rest    text := p_text;
    v_literal text := '';
    v_parts   jsonb := '[]';
    v_at      integer;
    v_found   record;
begin
    loop
        v_at := strpos(v_rest, '${');
        if v_at = 0 then
            v_literal := v_literal || v_rest;
            exit;
        end if;
        if v_at > 1 and substr(v_rest, v_at - 1, 1) = '$' then
            v_literal := v_literal || left(v_rest, v_at - 2) || '${';
            v_rest := substr(v_rest, v_at + 2);
            continue;
        end if;
        v_literal := v_literal || left(v_rest, v_at - 1);
        v_rest := substr(v_rest, v_at + 2);
        v_found := wf.wf_parse_placeholder(v_rest, p_node_id);
        if v_found.instruction is null then
            error_code := 10002;
            error_message := 'unsupported placeholder ${' || case when strpos(v_rest, '}') > 0
                then left(v_rest, strpos(v_rest, '}')) else v_rest end;
            return;
        end if;
        if v_literal <> '' then
            v_parts := v_parts || jsonb_build_array(jsonb_build_array('lit', v_literal));
            v_literal := '';
        end if;
        v_parts := v_parts || jsonb_build_array(v_found.instruction);
        v_rest := substr(v_rest, v_found.length + 1);
    end loop;
    if v_literal <> '' or v_parts = '[]' then
        v_parts := v_parts || jsonb_build_array(jsonb_build_array('lit', v_literal));
    end if;
    program_json := case when jsonb_array_length(v_parts) = 1 then v_parts
        else v_parts || jsonb_build_array(
            jsonb_build_array('cat', jsonb_array_length(v_parts))) end;
end
$$;

-- Puts p_value at p_path of a document; an empty path is the whole document, which jsonb_set would
-- leave as it is.
create or replace function wf.wf_json_put(p_document jsonb, p_path text[], p_value jsonb)
returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    return case when p_path = '{}' then p_value else jsonb_set(p_document, p_path, p_value) end;
end
$$;

-- The order in which the places of a template are filled, and so which error is met first: by path,
-- keys by code point, array indexes by number. A path without digits is its own key.
create or replace function wf.wf_path_order(p_path text[]) returns text[]
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select case when u.step ~ '^[0-9]{1,9}$' then lpad(u.step, 10, '0') else u.step end
          from unnest(p_path) with ordinality u(step, ordinal)
         order by u.ordinal);
end
$$;

-- Fills any template in the place of an execution: each string with placeholders is compiled and
-- evaluated. Values are never expanded a second time.
create or replace function wf.wf_resolve_placeholders(
    p_template jsonb, p_execution_id bigint,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_node   record;
    v_row    record;
    v_value  record;
    v_result jsonb := p_template;
begin
    select n.node_id, n.workflow_version_id into v_node
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_execution_id;
    for v_row in
        select b.pointer, b.path, c.program_json, c.error_code, c.error_message
          from wf.wf_template_bindings(p_template) b
         cross join lateral wf.wf_compile_template_string(
             b.text_value, v_node.workflow_version_id, v_node.node_id) c
         order by (case when b.pointer ~ '/[0-9]' then wf.wf_path_order(b.path)
                        else b.path end) collate "C"
    loop
        error_code := v_row.error_code;
        error_message := v_row.error_message;
        if error_code is null then
            v_value := wf.wf_eval_expression(v_row.program_json, p_execution_id);
            error_code := v_value.error_code;
            error_message := v_value.error_message;
        end if;
        if error_code is not null then
            return;
        end if;
        v_result := wf.wf_json_put(v_result, v_row.path, v_value.value_json);
    end loop;
    value_json := v_result;
end
$$;

-- The input of an ACTION (S4.1): its node's template with every binding put in. The bindings of
-- strings with placeholders were derived when the version was published.
create or replace function wf.wf_build_input_json_for_action(
    p_execution_id bigint,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_node_id bigint;
    v_result  jsonb;
    v_row     record;
    v_value   record;
begin
    select n.node_id, coalesce(t.template_json, '{}') into v_node_id, v_result
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
      left join wf.workflow_input_template t
        on t.workflow_version_id = n.workflow_version_id and t.node_key = n.node_key
     where e.node_execution_id = p_execution_id;
    for v_row in
        select b.path, b.program_json
          from wf.workflow_input_binding b
         where b.node_id = v_node_id
         order by (case when b.pointer ~ '/[0-9]' then wf.wf_path_order(b.path)
                        else b.path end) collate "C"
    loop
        v_value := wf.wf_eval_expression(v_row.program_json, p_execution_id);
        if v_value.error_code is not null then
            error_code := v_value.error_code;
            error_message := v_value.error_message;
            return;
        end if;
        v_result := wf.wf_json_put(v_result, v_row.path, v_value.value_json);
    end loop;
    value_json := v_result;
end
$$;

-- Checks that the programs of a version can be run: known instructions, a stack that ends at one value,
-- jumps that go forward and stay inside (R10). Twin: mssql/wf_verify_programs.sql
--
-- The compiler's verify_spec finds the same and more; this is for graphs that came without it.

-- Whether a value is a reference instruction: ["var", name, owner, steps], ["ctx", root, steps],
-- ["out", steps], ["event", steps] or ["code"]. A step is a string, an integer or a reference.
create or replace function wf.wf_is_reference(p_value jsonb) returns boolean
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v_pending jsonb[] := array[p_value];
    v_ref     jsonb;
    v_steps   jsonb;
    v_nested  jsonb[];
begin
    while cardinality(v_pending) > 0 loop
        v_ref := v_pending[1];
        v_pending := v_pending[2:];
        if jsonb_typeof(v_ref) <> 'array' or jsonb_typeof(v_ref -> 0) <> 'string' then
            return false;
        end if;
        continue when v_ref = '["code"]';
        if v_ref ->> 0 = 'var' then
            if jsonb_array_length(v_ref) <> 4 or jsonb_typeof(v_ref -> 1) <> 'string'
               or jsonb_typeof(v_ref -> 2) <> 'string' then
                return false;
            end if;
        elsif v_ref ->> 0 = 'ctx' then
            if jsonb_array_length(v_ref) <> 3 or jsonb_typeof(v_ref -> 1) <> 'string' then
                return false;
            end if;
        elsif v_ref ->> 0 not in ('out', 'event') or jsonb_array_length(v_ref) <> 2 then
            return false;
        end if;
        v_steps := v_ref -> -1;
        if jsonb_typeof(v_steps) <> 'array' or exists (
            select 1 from jsonb_array_elements(v_steps) s
             where jsonb_typeof(s.value) not in ('string', 'array')
               and not (jsonb_typeof(s.value) = 'number' and s.value::text ~ '^[0-9]+$')) then
            return false;
        end if;
        select array_agg(s.value) into v_nested
          from jsonb_array_elements(v_steps) s where jsonb_typeof(s.value) = 'array';
        v_pending := v_pending || v_nested;
    end loop;
    return true;
end
$$;

-- What is wrong with a program, or null.
create or replace function wf.wf_program_problem(p_program jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v_step  jsonb;
    v_op    text;
    v_count integer;
    v_size  integer;
    v_depth integer := 0;
    v_at    integer := 0;
    v_ways  integer[] := '{}';  -- the stack that a jump brings to an instruction
begin
    if jsonb_typeof(p_program) is distinct from 'array' or jsonb_array_length(p_program) = 0 then
        return 'a program is an array of instructions';
    end if;
    v_size := jsonb_array_length(p_program);
    for v_step in select s.value from jsonb_array_elements(p_program) s loop
        v_at := v_at + 1;
        if v_ways[v_at] <> v_depth then
            return format('the ways to instruction %s leave different stacks', v_at);
        end if;
        if jsonb_typeof(v_step) <> 'array' or jsonb_typeof(v_step -> 0) is distinct from 'string' then
            return format('instruction %s is no array that begins with a name', v_at);
        end if;
        v_op := v_step ->> 0;
        if v_op in ('var', 'ctx', 'out', 'code', 'event') then
            if not wf.wf_is_reference(v_step) then
                return format('instruction %s is no reference', v_at);
            end if;
            v_depth := v_depth + 1;
        elsif v_op = 'defined' then
            if jsonb_array_length(v_step) <> 2 or not wf.wf_is_reference(v_step -> 1) then
                return format('instruction %s (defined) has no reference', v_at);
            end if;
            v_depth := v_depth + 1;
        elsif v_op = 'lit' and jsonb_array_length(v_step) = 2 then
            v_depth := v_depth + 1;
        elsif v_op in ('not', 'neg', 'len', 'bool') and jsonb_array_length(v_step) = 1 then
            if v_depth < 1 then
                return format('instruction %s (%s) has no operand', v_at, v_op);
            end if;
        elsif v_op in ('eq', 'ne', 'lt', 'le', 'gt', 'ge', 'in', 'add', 'sub', 'mul', 'div', 'mod')
              and jsonb_array_length(v_step) = 1 then
            if v_depth < 2 then
                return format('instruction %s (%s) has no two operands', v_at, v_op);
            end if;
            v_depth := v_depth - 1;
        elsif v_op in ('jf', 'jt', 'alt') and jsonb_array_length(v_step) = 2
              and jsonb_typeof(v_step -> 1) = 'number' and v_step ->> 1 ~ '^[0-9]{1,6}$' then
            v_count := (v_step ->> 1)::integer;
            if v_depth < 1 or v_count < 1 or v_at + v_count > v_size then
                return format('instruction %s (%s) jumps out of the program', v_at, v_op);
            end if;
            if v_ways[v_at + v_count + 1] <> v_depth then
                return format('the ways to instruction %s leave different stacks',
                              v_at + v_count + 1);
            end if;
            v_ways[v_at + v_count + 1] := v_depth;
            v_depth := v_depth - 1;
        elsif v_op in ('arr', 'cat') and jsonb_array_length(v_step) = 2
              and jsonb_typeof(v_step -> 1) = 'number' and v_step ->> 1 ~ '^[0-9]{1,6}$' then
            v_count := (v_step ->> 1)::integer;
            if v_depth < v_count then
                return format('instruction %s (%s) takes more than there is', v_at, v_op);
            end if;
            v_depth := v_depth - v_count + 1;
        elsif v_op = 'obj' and jsonb_array_length(v_step) = 2
              and jsonb_typeof(v_step -> 1) = 'array' then
            v_count := jsonb_array_length(v_step -> 1);
            if jsonb_path_exists(v_step -> 1, 'strict $[*] ? (@.type() != "string")')
               or v_count <> (select count(distinct k.value)
                                from jsonb_array_elements(v_step -> 1) k) then
                return format('instruction %s (obj) has keys that are no texts, or one twice', v_at);
            end if;
            if v_depth < v_count then
                return format('instruction %s (obj) takes more than there is', v_at);
            end if;
            v_depth := v_depth - v_count + 1;
        else
            return format('instruction %s (%s) is not known', v_at, left(v_op, 40));
        end if;
    end loop;
    if v_ways[v_size + 1] <> v_depth then
        return format('the ways to instruction %s leave different stacks', v_size + 1);
    end if;
    if v_depth <> 1 then
        return format('it leaves %s values', v_depth);
    end if;
    return null;
end
$$;

-- The first program of a version that cannot be run, as text for a refusal, or null.
create or replace function wf.wf_verify_programs(p_workflow_version_id bigint) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
    select format('the program of %s (%s): %s', p.node_key, p.place, x.problem)
      from (select b.node_key, 'set or collect ' || b.name as place, b.program_json
              from wf.variable_output_binding b
             where b.workflow_version_id = p_workflow_version_id
            union all
            select b.node_key, 'input ' || b.pointer, b.program_json
              from wf.workflow_input_binding b
             where b.workflow_version_id = p_workflow_version_id
            union all
            select d.owner_key, 'variable ' || d.name, d.program_json
              from wf.node_scope_default d
             where d.workflow_version_id = p_workflow_version_id and d.program_json is not null
            union all
            select c.node_key, 'collection', c.program_json
              from wf.collection_binding c
             where c.workflow_version_id = p_workflow_version_id
            union all
            select n.node_key, a.key, a.value
              from wf.workflow_node n
             cross join lateral jsonb_each(n.attributes_json) a
             where n.workflow_version_id = p_workflow_version_id
               and a.key in ('condition', 'subject', 'count', 'correlate')
            union all
            select n.node_key, 'fail', n.attributes_json -> 'fail' -> 'message'
              from wf.workflow_node n
             where n.workflow_version_id = p_workflow_version_id and n.attributes_json ? 'fail'
            union all
            select 'output', o.value ->> 'name', o.value -> 'program'
              from wf.workflow_version v
             cross join lateral jsonb_array_elements(v.outputs_json) o
             where v.workflow_version_id = p_workflow_version_id
            union all
            select 'subscription to ' || e.event_type, 'event input ' || (i.value ->> 'name'),
                   i.value -> 'program'
              from wf.event_subscription e
             cross join lateral jsonb_array_elements(e.inputs_json) i
             where e.workflow_version_id = p_workflow_version_id) p
     cross join lateral (select wf.wf_program_problem(p.program_json) as problem) x
     where x.problem is not null
     limit 1
$$;

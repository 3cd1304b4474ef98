-- The evaluator of programs (S3): a loop over a stack, never recursion. Twin: mssql/wf_expressions.sql

-- Why a value that an instance has built cannot be stored (R7), or null: deeper than 100 levels, or
-- more than 16 MB as text. A small value can be neither.
create or replace function wf.wf_storable_problem(p_value jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if pg_column_size(p_value) <= 800 then
        return null;
    elsif pg_column_size(p_value) > 4194304 and octet_length(p_value::text) > 16777216 then
        return 'a value of more than 16 MB cannot be stored';
    elsif jsonb_path_exists(p_value, 'strict $.**{100 to last} ? (@.type() == "array"'
                                     ' || @.type() == "object")', '{}', true) then
        return 'a value nested deeper than 100 levels cannot be stored';
    end if;
    return null;
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
    v_grows      boolean := false;
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
                if octet_length(v_text) > 16777216 then
                    error_code := 10018;
                    error_message := 'a value of more than 16 MB cannot be stored';
                    return;
                end if;
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
            v_grows := true;

        elsif v_op = 'obj' then
            v_top := v_top - jsonb_array_length(v_step -> 1) + 1;
            v_stack[v_top] := coalesce(
                (select jsonb_object_agg(k.key, v_stack[v_top - 1 + k.ordinal::integer])
                   from jsonb_array_elements_text(v_step -> 1) with ordinality k(key, ordinal)),
                '{}');
            v_grows := true;

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
    if v_grows then
        error_message := wf.wf_storable_problem(v_stack[v_top]);
        if error_message is not null then
            error_code := 10018;
            return;
        end if;
    end if;
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


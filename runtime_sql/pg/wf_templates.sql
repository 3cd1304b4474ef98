-- Templates: placeholders compiled to programs, and the inputs of ACTIONs. Twin: mssql/wf_templates.sql

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
    v_grows   boolean := false;
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
        v_grows := true;
    end loop;
    if v_grows then
        error_message := wf.wf_storable_problem(v_result);
    end if;
    if error_message is not null then
        error_code := 10018;
    else
        value_json := v_result;
    end if;
end
$$;

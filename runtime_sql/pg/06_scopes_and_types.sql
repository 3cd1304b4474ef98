-- Scopes, the start context and the type table (R5). Twin: mssql/06_scopes_and_types.sql
--
-- A scope row is one activation of a node that has variables. The engine inserts it with the
-- execution; what stands here fills it: the instance's inputs and variables at start, the
-- initialisers of a body when it opens (S2.3), `set` afterwards. Errors are values, as in
-- 05_runtime_parity.sql. No locks beyond the rows written, which belong to the caller's own
-- executions.

-- Checks values against the type table, level by level: the values, then their fields and items,
-- and so on, leaving out scalars that fit, which a long list mostly holds. Answers the text of the
-- first misfit (level, then declaration order and index), or null. A value that is SQL null is missing.
create or replace function wf.wf_check_values(
    p_version_id bigint, p_places text[], p_type_ids integer[], p_values jsonb[]
) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_places   text[] := p_places;
    v_type_ids integer[] := p_type_ids;
    v_values   jsonb[] := p_values;
    v_misfit   text;
begin
    while v_type_ids is not null loop
        select u.place || ': ' || m.misfit into v_misfit
          from unnest(v_places, v_type_ids, v_values)
               with ordinality u(place, type_id, value, ordinal)
          join wf.data_type t
            on t.workflow_version_id = p_version_id and t.type_id = u.type_id
         cross join lateral wf.wf_type_misfit(u.value, t.base_type, t.is_required, t.is_nullable,
                                              t.enum_json) m(misfit)
         where m.misfit is not null
         order by u.ordinal
         limit 1;
        if v_misfit is not null then
            return v_misfit;
        end if;
        -- Plain values have nothing inside.
        exit when not exists (select 1 from unnest(v_values) u(value)
                               where jsonb_typeof(u.value) in ('object', 'array'));

        select array_agg(b.place order by b.ordinal, b.index, b.type_id),
               array_agg(b.type_id order by b.ordinal, b.index, b.type_id),
               array_agg(b.value order by b.ordinal, b.index, b.type_id)
          into v_places, v_type_ids, v_values
          from (select u.ordinal, 0 as index, f.type_id, u.value -> f.name as value,
                       u.place || case when f.name ~ '^[A-Za-z_][A-Za-z0-9_]*$' then '.' || f.name
                                       else '[' || to_jsonb(f.name)::text || ']' end as place
                  from unnest(v_places, v_type_ids, v_values)
                       with ordinality u(place, type_id, value, ordinal)
                  join wf.data_type f
                    on f.workflow_version_id = p_version_id
                   and f.parent_type_id = u.type_id and f.path_kind = 'field'
                 where jsonb_typeof(u.value) = 'object'
                   and not wf.wf_is_fitting_scalar(u.value -> f.name, f.base_type, f.enum_json)
                union all
                select u.ordinal, i.ordinal, f.type_id, i.value,
                       u.place || '[' || (i.ordinal - 1)::text || ']'
                  from unnest(v_places, v_type_ids, v_values)
                       with ordinality u(place, type_id, value, ordinal)
                  join wf.data_type f
                    on f.workflow_version_id = p_version_id
                   and f.parent_type_id = u.type_id and f.path_kind = 'item'
                 cross join lateral jsonb_array_elements(
                     case jsonb_typeof(u.value) when 'array' then u.value end)
                     with ordinality i(value, ordinal)
                 where not wf.wf_is_fitting_scalar(i.value, f.base_type, f.enum_json)) b;
    end loop;
    return null;
end
$$;

-- Whether this alone says that a value fits a row of the type table: it is a scalar of the type.
create or replace function wf.wf_is_fitting_scalar(p_value jsonb, p_base_type text, p_enum jsonb)
returns boolean
language sql immutable as $$
    select p_enum is null
       and case jsonb_typeof(p_value)
               when 'string' then p_base_type = 'string'
               when 'number' then p_base_type = 'number'
                   or p_base_type = 'int' and scale(p_value::numeric) = 0
               when 'boolean' then p_base_type = 'bool'
               else false end
$$;

-- What is wrong with one value by one row of the type table, not looking inside; null: nothing.
create or replace function wf.wf_type_misfit(
    p_value jsonb, p_base_type text, p_is_required boolean, p_is_nullable boolean, p_enum jsonb
) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v_type text := jsonb_typeof(p_value);
    v_fits boolean;
    v_null text := case when p_is_nullable then ' or null' else '' end;
begin
    if p_value is null then
        return case when p_is_required then 'is missing' end;
    end if;
    if p_base_type = 'any' or (v_type = 'null' and p_is_nullable) then
        return null;
    end if;
    v_fits := case p_base_type
        when 'string' then v_type = 'string'
        when 'bool' then v_type = 'boolean'
        when 'number' then v_type = 'number'
        when 'int' then case v_type when 'number' then scale(p_value::numeric) = 0 else false end
        when 'object' then v_type = 'object'
        else v_type = 'array' end;
    if jsonb_typeof(p_enum) = 'array' and p_enum <> '[]' then
        if v_fits and p_enum @> p_value then
            return null;
        end if;
        return 'must be one of '
            || (select string_agg(e.value::text, ', ' order by e.ordinal)
                  from jsonb_array_elements(p_enum) with ordinality e(value, ordinal))
            || v_null;
    end if;
    if v_fits then
        return null;
    end if;
    return 'must be '
        || case p_base_type when 'string' then 'string' when 'int' then 'an integer'
                            when 'number' then 'a number' when 'bool' then 'a boolean'
                            when 'object' then 'an object' else 'a list' end
        || v_null || ', not ' || wf.wf_type_word(p_value);
end
$$;

-- The first misfit of one value, called `input <p_name>` in the text, or null.
create or replace function wf.wf_check_value_type(
    p_version_id bigint, p_type_id integer, p_value jsonb, p_name text
) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return wf.wf_check_values(p_version_id, array['input ' || p_name], array[p_type_id],
                              array[p_value]);
end
$$;

-- The error of writing a value to variable p_name whose declared type is p_type_id (R5), or nothing;
-- without a type everything fits.
create or replace function wf.wf_check_variable(
    p_version_id bigint, p_type_id integer, p_name text, p_value jsonb,
    out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if p_type_id is not null then
        error_message := wf.wf_check_values(p_version_id, array['var ' || p_name],
                                            array[p_type_id], array[p_value]);
        error_code := case when error_message is not null then 10015 end;
    end if;
end
$$;

-- Opens the instance's scope: each input from the start context, its default or the execution scope's
-- parameters, in this order, then the check of their types (10015), then the other parameters, then
-- the workflow's variables, each seeing those before it. After an error nothing of the scope is left.
create or replace function wf.wf_init_instance_scope_from_context(
    p_instance_id bigint, p_root_execution_id bigint,
    out error_code integer, out error_message text
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_root       record;
    v_context    jsonb;
    v_parameters jsonb := wf.wf_scope_parameters(p_instance_id);
    v_row        record;
    v_value      record;
    v_places     text[];
    v_type_ids   integer[];
    v_values     jsonb[];
begin
    select n.node_id, n.node_key, n.workflow_version_id,
           case jsonb_typeof(c.context_json) when 'object' then c.context_json
                                             else '{}'::jsonb end as context_json
      into v_root
      from wf.workflow_instance i
      join wf.workflow_version w on w.workflow_version_id = i.workflow_version_id
      join wf.workflow_node n on n.node_id = w.root_node_id
      left join wf.execution_context c on c.workflow_instance_id = i.workflow_instance_id
     where i.workflow_instance_id = p_instance_id;
    v_context := coalesce(v_root.context_json, '{}');

    insert into wf.scope (scope_id, parent_scope_id, workflow_instance_id, owner_key)
    values (p_root_execution_id, 0, p_instance_id, v_root.node_key)
    on conflict on constraint pk_scope do nothing;

    for v_row in
        select d.name, d.type_id, d.program_json, d.is_required,
               v_context -> d.name as value_json
          from wf.node_scope_default d
         where d.workflow_version_id = v_root.workflow_version_id
           and d.owner_key = v_root.node_key and d.variable_kind = 'input'
         order by d.variable_order
    loop
        if v_row.value_json is null and v_row.program_json is not null then
            v_value := wf.wf_eval_expression(v_row.program_json, p_root_execution_id);
            error_code := v_value.error_code;
            error_message := v_value.error_message;
            exit when error_code is not null;
            v_row.value_json := v_value.value_json;
        end if;
        v_row.value_json := coalesce(v_row.value_json, v_parameters -> v_row.name);
        if v_row.value_json is not null then
            insert into wf.scope_variable (scope_id, name, value_json)
            values (p_root_execution_id, v_row.name, v_row.value_json);
        end if;
        v_places := v_places || ('input ' || v_row.name);
        v_type_ids := v_type_ids || v_row.type_id;
        v_values := array_append(v_values, v_row.value_json);
        if v_row.value_json is null and v_row.is_required and v_row.type_id is null then
            error_code := 10015;
            error_message := 'input ' || v_row.name || ': is missing';
            exit;
        end if;
    end loop;

    if error_code is null then
        error_message := wf.wf_check_values(v_root.workflow_version_id, v_places, v_type_ids,
                                            v_values);
        if error_message is null and v_parameters <> '{}' then
            v_parameters := wf.wf_parameters_for_variables(v_root.workflow_version_id,
                                                           v_root.node_key, v_parameters);
            error_message := wf.wf_declared_misfit(v_root.workflow_version_id, v_root.node_key,
                                                   v_parameters);
        end if;
        if error_message is not null then
            error_code := 10015;
        else
            if v_parameters <> '{}' then
                insert into wf.scope_variable (scope_id, name, value_json)
                select p_root_execution_id, p.key, p.value from jsonb_each(v_parameters) p;
            end if;
            v_value := wf.wf_fill_scope(p_root_execution_id, v_root.workflow_version_id,
                                        v_root.node_key);
            error_code := v_value.error_code;
            error_message := v_value.error_message;
        end if;
    end if;
    if error_code is not null then
        delete from wf.scope_variable v where v.scope_id = p_root_execution_id;
        delete from wf.scope s where s.scope_id = p_root_execution_id;
    end if;
end
$$;

-- Evaluates the initialisers of the variables that node p_owner_key declares, in order, into the
-- scope of execution p_execution_id; each sees those before it and must fit its type (10015, R5).
create or replace function wf.wf_fill_scope(
    p_execution_id bigint, p_version_id bigint, p_owner_key text,
    out error_code integer, out error_message text
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_value record;
begin
    for v_row in
        select d.name, d.program_json, d.is_constant, d.type_id
          from wf.node_scope_default d
         where d.workflow_version_id = p_version_id and d.owner_key = p_owner_key
           and d.variable_kind = 'var' and d.program_json is not null
         order by d.variable_order
    loop
        v_value := wf.wf_eval_expression(v_row.program_json, p_execution_id);
        error_code := v_value.error_code;
        error_message := v_value.error_message;
        if error_code is null and not v_row.is_constant then
            select c.error_code, c.error_message into error_code, error_message
              from wf.wf_check_variable(p_version_id, v_row.type_id, v_row.name,
                                        v_value.value_json) c;
        end if;
        if error_code is not null then
            return;
        end if;
        insert into wf.scope_variable (scope_id, name, value_json)
        values (p_execution_id, v_row.name, v_value.value_json)
        on conflict on constraint pk_scope_variable
            do update set value_json = excluded.value_json;
    end loop;
end
$$;

-- Fills the scopes of executions whose node declares variables (not the root; the scope rows are
-- there). Answers a row for each execution whose initialisers failed, in the order given. Nodes
-- whose initialisers are all literals are filled in one statement.
create or replace function wf.wf_open_scopes(p_execution_ids bigint[])
returns table (node_execution_id bigint, error_code integer, error_message text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_value record;
begin
    insert into wf.scope_variable (scope_id, name, value_json)
    select u.execution_id, d.name, d.program_json -> 0 -> 1
      from unnest(p_execution_ids) u(execution_id)
      join wf.node_execution e on e.node_execution_id = u.execution_id
      join wf.workflow_node n on n.node_id = e.node_id
      join wf.node_scope_default d
        on d.workflow_version_id = n.workflow_version_id and d.owner_key = n.node_key
     where d.variable_kind = 'var' and d.program_json is not null
       and not wf.wf_has_computed_variable(n.workflow_version_id, n.node_key)
    on conflict on constraint pk_scope_variable do update set value_json = excluded.value_json;

    for v_row in
        select u.execution_id, n.workflow_version_id, n.node_key
          from unnest(p_execution_ids) with ordinality u(execution_id, ordinal)
          join wf.node_execution e on e.node_execution_id = u.execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         where wf.wf_has_computed_variable(n.workflow_version_id, n.node_key)
         order by u.ordinal
    loop
        v_value := wf.wf_fill_scope(v_row.execution_id, v_row.workflow_version_id,
                                    v_row.node_key);
        if v_value.error_code is not null then
            node_execution_id := v_row.execution_id;
            error_code := v_value.error_code;
            error_message := v_value.error_message;
            return next;
        end if;
    end loop;
end
$$;

-- Whether some variable that a node declares has an initialiser that must be evaluated or checked.
create or replace function wf.wf_has_computed_variable(p_version_id bigint, p_owner_key text)
returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return exists (
        select 1
          from wf.node_scope_default d
         where d.workflow_version_id = p_version_id and d.owner_key = p_owner_key
           and d.variable_kind = 'var' and d.program_json is not null
           and not d.is_constant);
end
$$;

-- The nearest scope, from p_scope_id outwards, that node p_owner_key opened, or null.
create or replace function wf.wf_find_scope(p_scope_id bigint, p_owner_key text) returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_scope_id bigint := p_scope_id;
    v_owner    text;
    v_parent   bigint;
begin
    loop
        select s.owner_key, s.parent_scope_id into v_owner, v_parent
          from wf.scope s
         where s.scope_id = v_scope_id;
        if not found then
            return null;
        elsif v_owner = p_owner_key then
            return v_scope_id;
        end if;
        v_scope_id := v_parent;
    end loop;
end
$$;

-- Writes variable p_name of the nearest scope, from p_scope_id outwards, that node p_owner_key
-- opened. Answers whether there is such a scope. The caller holds the instance's gate; parallel
-- branches never write one variable (S2.5).
create or replace function wf.wf_set_scope_variable(
    p_scope_id bigint, p_owner_key text, p_name text, p_value jsonb
) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_scope_id bigint := wf.wf_find_scope(p_scope_id, p_owner_key);
begin
    if v_scope_id is null then
        return false;
    end if;
    insert into wf.scope_variable (scope_id, name, value_json)
    values (v_scope_id, p_name, p_value)
    on conflict on constraint pk_scope_variable do update set value_json = excluded.value_json;
    return true;
end
$$;

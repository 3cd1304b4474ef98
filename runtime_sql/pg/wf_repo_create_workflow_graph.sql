-- Deploying a GraphSpec as one JSON document. Twin: mssql/wf_repo_create_workflow_graph.sql
--
-- It writes the rows that a deploy script writes and publishes them with the same routine (R3), so a
-- version is the same whichever way it came. The constraints of the tables are checks too: what one
-- of them refuses is a fault of the graph, and wf.graph_constraint says which code it has.

-- The fields of a GraphSpec: list '' is the document itself. A kind with ? may be null. What is not
-- here is refused, so that nothing a newer compiler says is silently dropped.
create or replace view wf.graph_field as
select l.list, f.field, rtrim(f.kind, '?') as kind, f.kind like '%?' as is_nullable,
       l.list <> 'dispatch' as is_needed
  from (values
    ('', 'spec_format integer, name text, description text?, types array, inputs array, vars array,'
         'outputs array, nodes array, edges array, templates array, input_bindings array,'
         'output_bindings array, collection_bindings array, actions array, subscriptions array,'
         'source_map object?'),
    ('types', 'id integer, parent integer?, kind text, name text?, base text, required boolean,'
              'nullable boolean, enum texts?'),
    ('inputs', 'order integer, name text, type integer, required boolean, program array?'),
    ('vars', 'owner text, order integer, name text, kind text, type integer?, program array?'),
    ('outputs', 'order integer, name text, program array'),
    ('nodes', 'key text, type text, generated boolean, attributes object'),
    ('edges', 'parent text, child text, kind text, order integer, case array?'),
    ('templates', 'node text, json any?'),
    ('input_bindings', 'node text, pointer text, program array'),
    ('output_bindings', 'node text, order integer, kind text, name text, owner text, program array'),
    ('collection_bindings', 'node text, kind text, program array'),
    ('actions', 'name text, revision text, description text?, version text?, capability text,'
                'input_schema object?, output_schema object?, result_codes object,'
                'idempotent boolean, timeout_ms bigint?, sensitive texts, dispatch object'),
    ('dispatch', 'max_per_worker integer?, exclusive_worker boolean, affinity_key_field text?,'
                 'prefer_previous_worker boolean, prefer_continue_group boolean,'
                 'require_previous_worker boolean, max_concurrent integer?,'
                 'rate_per_minute integer?, max_deliveries integer'),
    ('subscriptions', 'event_type text, mode text, filter array, inputs array')) l(list, fields)
 cross join lateral (
    select split_part(trim(w.pair), ' ', 1), split_part(trim(w.pair), ' ', 2)
      from string_to_table(l.fields, ',') w(pair)) f(field, kind);

-- What a constraint of the definition tables says of a graph, by code; others are WF601.
create or replace view wf.graph_constraint as
select c.code, n.name
  from (values
    ('WF604', 'uq_workflow_edge_child'),
    ('WF606', 'uq_workflow_node_key ck_workflow_node_key ck_workflow_def_name pk_node_scope_default'),
    ('WF607', 'fk_workflow_edge_parent fk_workflow_edge_child fk_workflow_input_template_node '
              'fk_workflow_input_binding_node fk_variable_output_binding_node '
              'fk_node_scope_default_owner fk_collection_binding_node'),
    ('WF610', 'pk_workflow_edge ck_workflow_edge_order pk_variable_output_binding '
              'uq_node_scope_default_order'),
    ('WF611', 'ck_workflow_edge_case'),
    ('WF614', 'ck_workflow_node_action'),
    ('WF615', 'pk_workflow_input_template pk_workflow_input_binding pk_collection_binding'),
    ('WF616', 'fk_workflow_node_revision pk_workflow_version_action ck_workflow_action_name '
              'ck_workflow_action_revision_hash ck_workflow_action_max_per_worker '
              'ck_workflow_action_max_deliveries'),
    ('WF617', 'pk_data_type fk_data_type_parent ck_data_type_parent fk_node_scope_default_type'))
    c(code, names)
 cross join lateral string_to_table(c.names, ' ') n(name);

-- Whether a value is of a kind of wf.graph_field.
create or replace function wf.wf_is_graph_value(p_value jsonb, p_kind text) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case p_kind
        when 'any' then true
        when 'text' then jsonb_typeof(p_value) = 'string'
        when 'texts' then jsonb_typeof(p_value) = 'array' and not jsonb_path_exists(
            p_value, 'strict $[*] ? (@.type() != "string")')
        when 'integer' then jsonb_typeof(p_value) = 'number'
            and case when p_value::text ~ '^-?[0-9]{1,18}$'
                     then p_value::numeric between -2147483647 and 2147483647 else false end
        when 'bigint' then jsonb_typeof(p_value) = 'number' and p_value::text ~ '^-?[0-9]{1,18}$'
        else jsonb_typeof(p_value) = p_kind end
$$;

-- What keeps a document from being a GraphSpec, with its code, or null. Everything after it may
-- take every field for granted.
create or replace function wf.wf_graph_problem(p_spec jsonb) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_found text;
begin
    if p_spec is null or jsonb_typeof(p_spec) <> 'object' then
        return 'WF601: a graph is an object';
    end if;
    v_found := wf.wf_storable_problem(p_spec);
    if v_found is not null then
        return 'WF601: ' || v_found;
    end if;
    if jsonb_typeof(p_spec -> 'spec_format') = 'number' and p_spec -> 'spec_format' <> '1' then
        return format('WF602: this runtime does not know spec_format %s',
                      left(p_spec ->> 'spec_format', 20));
    end if;
    v_found := wf.wf_graph_row_problem(array['']::text[], array[0], array[p_spec]);
    if v_found is not null then
        return v_found;
    end if;
    for v_found in
        select wf.wf_graph_row_problem(
                   array_agg(f.field), array_agg(r.position::integer - 1), array_agg(r.value))
          from wf.graph_field f
         cross join lateral jsonb_array_elements(p_spec -> f.field)
               with ordinality r(value, position)
         where f.list = '' and f.kind = 'array'
         group by f.field
    loop
        if v_found is not null then
            return v_found;
        end if;
    end loop;
    return (select wf.wf_graph_row_problem(
                       array_agg('dispatch'::text), array_agg(a.position::integer - 1),
                       array_agg(a.value -> 'dispatch'))
              from jsonb_array_elements(p_spec -> 'actions') with ordinality a(value, position));
end
$$;

-- The first thing that is wrong with rows of lists, or null: lists, indexes and values side by side.
create or replace function wf.wf_graph_row_problem(
    p_lists text[], p_indexes integer[], p_values jsonb[]
) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_found record;
begin
    select u.list, u.ordinal into v_found
      from unnest(p_lists, p_indexes, p_values) u(list, ordinal, value)
     where jsonb_typeof(u.value) <> 'object' limit 1;
    if found then
        return format('WF601: row %s of %s is no object', v_found.ordinal, v_found.list);
    end if;
    select u.list, u.ordinal, e.field, e.problem into v_found
      from unnest(p_lists, p_indexes, p_values) u(list, ordinal, value)
     cross join lateral (
        select f.field, case when u.value -> f.field is null then 'is missing'
                             else 'has another type' end as problem
          from wf.graph_field f
         where f.list = u.list
           and case when u.value -> f.field is null then f.is_needed
                    when u.value -> f.field = 'null' then not f.is_nullable and f.kind <> 'any'
                    else not wf.wf_is_graph_value(u.value -> f.field, f.kind) end
        union all
        select left(k.key, 40), 'is not known'
          from jsonb_object_keys(u.value) k(key)
         where not exists (select 1 from wf.graph_field f
                            where f.list = u.list and f.field = k.key)) e
     order by u.ordinal, e.field limit 1;
    return case when found then format('WF601: %s%s %s', v_found.field,
        case when v_found.list <> '' then format(' in row %s of %s', v_found.ordinal, v_found.list)
             else '' end, v_found.problem) end;
end
$$;

-- The hash of what a graph says (R11): without positions and descriptions, dispatch columns that
-- are left out at their defaults. Equal to GraphSpec.content_hash() in Python.
create or replace function wf.wf_graph_hash(p_spec jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select wf.wf_json_sha256((p_spec - array['source_map', 'description']) || jsonb_build_object(
        'actions', coalesce((
            select jsonb_agg((a.value - 'description') || jsonb_build_object(
                       'dispatch', wf.wf_graph_dispatch(a.value)) order by a.position)
              from jsonb_array_elements(p_spec -> 'actions') with ordinality a(value, position)),
            '[]')), true)
$$;

create or replace function wf.wf_graph_dispatch(p_action jsonb) returns jsonb
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select jsonb_build_object('max_per_worker', null, 'exclusive_worker', false,
        'affinity_key_field', null, 'prefer_previous_worker', false,
        'prefer_continue_group', false, 'require_previous_worker', false,
        'max_concurrent', null, 'rate_per_minute', null, 'max_deliveries', 5)
        || (p_action -> 'dispatch')
$$;

-- Deploys a workflow from its GraphSpec (compiler/graphspec.schema.json) and makes it the active
-- version unless told not to. Known content adds no rows and becomes active again, as with a script.
--
-- Answers one row. Locks: the lock of all deploys, then the workflow_def row.
-- Errors: 20005 more than 16 MB; 20006 unknown spec_format; 20007 the graph is refused, its text
-- begins with the code; 20010 a name that differs from another in case only, or dispatch columns
-- that differ from the stored ones (R24). After an error nothing has changed.
create or replace function wf.wf_repo_create_workflow_graph(
    p_spec jsonb, p_activate boolean default true, p_update_actions boolean default false
) returns table (
    workflow_def_id bigint, workflow_version_id bigint, root_node_id bigint, name text
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_problem    text;
    v_name       text := p_spec ->> 'name';
    v_hash       text;
    v_constraint text;
    v_detail     text;
begin
    if pg_column_size(p_spec) > 16777216 then
        perform wf.wf_raise(20005, 'the graph has more than 16 MB');
    end if;
    v_problem := wf.wf_graph_problem(p_spec);
    if v_problem is not null then
        perform wf.wf_raise(case when v_problem like 'WF602%' then 20006 else 20007 end, v_problem);
    end if;
    perform pg_advisory_xact_lock(hashtextextended('wf.deploy', 0));
    v_hash := wf.wf_graph_hash(p_spec);
    begin
        perform wf.wf_insert_graph(p_spec, v_hash);
        perform wf.wf_set_version_notes(v_name, v_hash, nullif(p_spec -> 'source_map', 'null'),
                                        p_spec ->> 'description');
        perform wf.wf_publish_workflow_version(v_name, v_hash, p_activate, p_update_actions);
    exception when integrity_constraint_violation or data_exception then
        get stacked diagnostics v_constraint = constraint_name, v_detail = pg_exception_detail;
        perform wf.wf_raise(20007, format('%s: %s', coalesce(
            (select c.code from wf.graph_constraint c where c.name = v_constraint), 'WF601'),
            case when coalesce(v_constraint, '') = '' then sqlerrm
                 else format('the rows break %s: %s', v_constraint, left(v_detail, 400)) end));
    end;
    return query
    select v.workflow_def_id, v.workflow_version_id, v.root_node_id, d.name
      from wf.workflow_def d
      join wf.workflow_version v on v.workflow_def_id = d.workflow_def_id
     where d.name = v_name and v.content_hash = v_hash;
end
$$;

-- Inserts what is not there yet of a graph: the rows of compiler/emit/plan.py, in its order.
create or replace function wf.wf_insert_graph(p_spec jsonb, p_hash text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_version_id bigint;
    v_published  boolean;
begin
    insert into wf.workflow_def (name) values (p_spec ->> 'name') on conflict (name) do nothing;
    insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
    select d.workflow_def_id, p_hash, 1, p_spec -> 'outputs'
      from wf.workflow_def d where d.name = p_spec ->> 'name'
    on conflict (workflow_def_id, content_hash) do nothing;
    select v.workflow_version_id, v.published_at is not null into v_version_id, v_published
      from wf.workflow_def d
      join wf.workflow_version v on v.workflow_def_id = d.workflow_def_id
     where d.name = p_spec ->> 'name' and v.content_hash = p_hash;
    perform wf.wf_insert_graph_actions(p_spec, v_version_id, v_published);
    if not v_published then
        perform wf.wf_insert_graph_nodes(p_spec, v_version_id);
        perform wf.wf_insert_graph_data(p_spec, v_version_id);
    end if;
end
$$;

-- Actions and their revisions, which versions share, and the dispatch columns of this version.
create or replace function wf.wf_insert_graph_actions(
    p_spec jsonb, p_version_id bigint, p_published boolean
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker,
        affinity_key_field, prefer_previous_worker, prefer_continue_group,
        require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
    select a.value ->> 'name', a.value ->> 'capability', d.max_per_worker, d.exclusive_worker,
           d.affinity_key_field, d.prefer_previous_worker, d.prefer_continue_group,
           d.require_previous_worker, d.max_concurrent, d.rate_per_minute, d.max_deliveries
      from jsonb_array_elements(p_spec -> 'actions') a
     cross join lateral jsonb_populate_record(
         null::wf.workflow_version_action, wf.wf_graph_dispatch(a.value)) d
     order by a.value ->> 'name' collate "C"
    on conflict (action_name) do nothing;
    insert into wf.workflow_action_revision (action_name, revision, description, version,
        input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms,
        sensitive_json)
    select a.value ->> 'name', a.value ->> 'revision', a.value ->> 'description',
           a.value ->> 'version', nullif(a.value -> 'input_schema', 'null'),
           nullif(a.value -> 'output_schema', 'null'), a.value -> 'result_codes',
           (a.value ->> 'idempotent')::boolean, (a.value ->> 'timeout_ms')::bigint,
           a.value -> 'sensitive'
      from jsonb_array_elements(p_spec -> 'actions') a
     order by a.value ->> 'name' collate "C", a.value ->> 'revision' collate "C"
    on conflict (action_name, revision) do nothing;
    if p_published then
        return;
    end if;
    insert into wf.workflow_version_action (workflow_version_id, action_name, revision,
        capability, max_per_worker, exclusive_worker, affinity_key_field,
        prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent,
        rate_per_minute, max_deliveries)
    select p_version_id, a.value ->> 'name', a.value ->> 'revision', a.value ->> 'capability',
           d.max_per_worker, d.exclusive_worker, d.affinity_key_field, d.prefer_previous_worker,
           d.prefer_continue_group, d.require_previous_worker, d.max_concurrent,
           d.rate_per_minute, d.max_deliveries
      from jsonb_array_elements(p_spec -> 'actions') a
     cross join lateral jsonb_populate_record(
         null::wf.workflow_version_action, wf.wf_graph_dispatch(a.value)) d;
end
$$;

-- Types, nodes and edges.
create or replace function wf.wf_insert_graph_nodes(p_spec jsonb, p_version_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name,
                              base_type, is_required, is_nullable, enum_json)
    select p_version_id, (t.value ->> 'id')::integer, (t.value ->> 'parent')::integer,
           t.value ->> 'kind', t.value ->> 'name', t.value ->> 'base',
           (t.value ->> 'required')::boolean, (t.value ->> 'nullable')::boolean,
           nullif(t.value -> 'enum', 'null')
      from jsonb_array_elements(p_spec -> 'types') t;
    insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated,
                                  action_name, action_revision, attributes_json)
    select p_version_id, n.value ->> 'key', n.value ->> 'type',
           (n.value ->> 'generated')::boolean, n.value -> 'attributes' ->> 'action',
           n.value -> 'attributes' ->> 'revision',
           (n.value -> 'attributes') - array['action', 'revision']
      from jsonb_array_elements(p_spec -> 'nodes') with ordinality n(value, position)
     order by n.position;
    insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind,
                                  child_order, case_value)
    select p_version_id, e.value ->> 'parent', e.value ->> 'child', e.value ->> 'kind',
           (e.value ->> 'order')::integer, nullif(e.value -> 'case', 'null')
      from jsonb_array_elements(p_spec -> 'edges') e;
end
$$;

-- What hangs on nodes: templates, bindings, variables, subscriptions.
create or replace function wf.wf_insert_graph_data(p_spec jsonb, p_version_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
    select p_version_id, t.value ->> 'node', t.value -> 'json'
      from jsonb_array_elements(p_spec -> 'templates') t;
    insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
    select p_version_id, b.value ->> 'node', b.value ->> 'pointer', b.value -> 'program'
      from jsonb_array_elements(p_spec -> 'input_bindings') b;
    insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order,
                                            binding_kind, name, owner_key, program_json)
    select p_version_id, b.value ->> 'node', (b.value ->> 'order')::integer, b.value ->> 'kind',
           b.value ->> 'name', b.value ->> 'owner', b.value -> 'program'
      from jsonb_array_elements(p_spec -> 'output_bindings') b;
    -- The inputs are variables of the root, the first node that is nobody's child.
    insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name,
                                       variable_kind, type_id, is_required, program_json)
    select p_version_id, r.node_key, (i.value ->> 'order')::integer,
           i.value ->> 'name', 'input', (i.value ->> 'type')::integer,
           (i.value ->> 'required')::boolean, nullif(i.value -> 'program', 'null')
      from jsonb_array_elements(p_spec -> 'inputs') i
     cross join lateral (
        select n.node_key from wf.workflow_node n
         where n.workflow_version_id = p_version_id
           and not exists (select 1 from wf.workflow_edge e
                            where e.workflow_version_id = p_version_id
                              and e.child_key = n.node_key)
         order by n.node_id limit 1) r
    union all
    select p_version_id, v.value ->> 'owner', (v.value ->> 'order')::integer, v.value ->> 'name',
           v.value ->> 'kind', (v.value ->> 'type')::integer, false,
           nullif(v.value -> 'program', 'null')
      from jsonb_array_elements(p_spec -> 'vars') v;
    insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
    select p_version_id, b.value ->> 'node', b.value ->> 'kind', b.value -> 'program'
      from jsonb_array_elements(p_spec -> 'collection_bindings') b;
    insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode,
                                       filter_json, inputs_json)
    select p_version_id, s.position - 1, s.value ->> 'event_type', s.value ->> 'mode',
           s.value -> 'filter', s.value -> 'inputs'
      from jsonb_array_elements(p_spec -> 'subscriptions') with ordinality s(value, position);
end
$$;

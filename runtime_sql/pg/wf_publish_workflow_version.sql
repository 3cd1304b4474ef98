-- Publishing a version: the last step of every deploy. Twin: mssql/wf_publish_workflow_version.sql

-- Refuses rows for a version that is published already (R3). Triggers run with the owner's rights, so
-- that an author needs none for what they read and raise.
create or replace function wf.wf_refuse_published() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select 1 from wf.workflow_version v
                where v.workflow_version_id = new.workflow_version_id
                  and v.published_at is not null) then
        perform wf.wf_raise(20003, 'the version is published; its rows never change');
    end if;
    return new;
end
$$;

-- Refuses a name that differs from another only in case (R19): on a case-insensitive SQL Server the
-- two would be one. Deploys follow one another, so none slips in between.
create or replace function wf.wf_refuse_folded_name() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_other text;
begin
    select d.name into v_other
      from wf.workflow_def d where lower(d.name) = lower(new.name) and d.name <> new.name;
    if found then
        perform wf.wf_raise(20010, format('workflow %s differs from workflow %s only in case',
                                          new.name, v_other));
    end if;
    return new;
end
$$;

create or replace trigger tr_workflow_def_name before insert on wf.workflow_def
    for each row execute function wf.wf_refuse_folded_name();
create or replace trigger tr_workflow_node_published before insert on wf.workflow_node
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_workflow_edge_published before insert on wf.workflow_edge
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_data_type_published before insert on wf.data_type
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_workflow_input_template_published before insert on wf.workflow_input_template
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_workflow_input_binding_published before insert on wf.workflow_input_binding
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_variable_output_binding_published before insert on wf.variable_output_binding
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_node_scope_default_published before insert on wf.node_scope_default
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_collection_binding_published before insert on wf.collection_binding
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_event_subscription_published before insert on wf.event_subscription
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_workflow_version_action_published before insert on wf.workflow_version_action
    for each row execute function wf.wf_refuse_published();

-- Source positions, source text and description are no part of a version's content (R11), so a
-- deploy of known content refreshes them. Errors: 20002 no such version.
create or replace function wf.wf_set_version_notes(
    p_name text, p_content_hash text, p_source_map jsonb, p_description text
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update wf.workflow_version v
       set source_map = p_source_map
      from wf.workflow_def d
     where d.name = p_name and v.workflow_def_id = d.workflow_def_id
       and v.content_hash = p_content_hash;
    if not found then
        perform wf.wf_raise(20002, format('workflow %s has no version %s',
                                          left(p_name, 200), left(p_content_hash, 64)));
    end if;
    update wf.workflow_def d set description = p_description
     where d.name = p_name and d.description is distinct from p_description;
end
$$;

-- Makes the version with this content visible: verifies its graph, fills the derived columns, takes
-- the next version number and activates it (p_activate). For a version that is published already it
-- only activates: that is how a deploy of known content rolls back.
--
-- Answers one row: workflow_version_id, version_no, was_new.
-- Locks: the workflow_def row FOR NO KEY UPDATE, so that two deploys of one workflow follow one
-- another and creating instances goes on.
-- Errors: 20002 no such version; 20006 unknown spec_format; 20007 the graph is refused; 20010 the
-- catalog's dispatch columns differ from the stored ones and p_update_actions is false (R24).
create or replace function wf.wf_publish_workflow_version(
    p_name text, p_content_hash text, p_activate boolean default true,
    p_update_actions boolean default false
) returns table (workflow_version_id bigint, version_no integer, was_new boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_def_id  bigint;
    v_version wf.workflow_version;
    v_is_new  boolean;
begin
    select d.workflow_def_id into v_def_id
      from wf.workflow_def d where d.name = p_name for no key update;
    select v.* into v_version
      from wf.workflow_version v
     where v.workflow_def_id = v_def_id and v.content_hash = p_content_hash;
    if not found then
        perform wf.wf_raise(20002, format('workflow %s has no version %s',
                                          left(p_name, 200), left(p_content_hash, 64)));
    end if;
    perform wf.wf_publish_actions(v_version.workflow_version_id, p_update_actions);
    v_is_new := v_version.published_at is null;
    if v_is_new then
        if v_version.spec_format <> 1 then
            perform wf.wf_raise(20006, format('WF602: this runtime does not know spec_format %s',
                                              v_version.spec_format));
        end if;
        perform wf.wf_verify_graph(v_version.workflow_version_id);
        perform wf.wf_derive_version(v_version.workflow_version_id);
        update wf.workflow_version v
           set published_at = wf.wf_now(),
               version_no = 1 + coalesce((select max(o.version_no) from wf.workflow_version o
                                           where o.workflow_def_id = v_def_id), 0)
         where v.workflow_version_id = v_version.workflow_version_id
        returning v.* into v_version;
    end if;
    if p_activate and not v_version.is_active then
        update wf.workflow_version v set is_active = false
         where v.workflow_def_id = v_def_id and v.is_active;
        update wf.workflow_version v set is_active = true
         where v.workflow_version_id = v_version.workflow_version_id;
        insert into wf.audit_log (at, what, detail_json)
        values (wf.wf_now(), 'activate', jsonb_build_object(
            'workflow', p_name, 'version_no', v_version.version_no));
    end if;
    return query select v_version.workflow_version_id, v_version.version_no, v_is_new;
end
$$;

-- Compares the dispatch columns of the version's catalog with the live ones of each action.
-- A difference is refused with 20010, or taken over with a row in wf.audit_log for each action.
create or replace function wf.wf_publish_actions(p_workflow_version_id bigint, p_update boolean)
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    for v_row in
        select c.action_name, to_jsonb(c) - '{workflow_version_id,revision}'::text[] as catalog_json,
               to_jsonb(a) - '{action_id,paused}'::text[] as stored_json
          from wf.workflow_version_action c
          join wf.workflow_action a on a.action_name = c.action_name
         where c.workflow_version_id = p_workflow_version_id
           and to_jsonb(c) - '{workflow_version_id,revision}'::text[]
               <> to_jsonb(a) - '{action_id,paused}'::text[]
         order by c.action_name
    loop
        if not p_update then
            perform wf.wf_raise(20010, format(
                'the catalog says of action %s: %s; this database has: %s', v_row.action_name,
                wf.wf_json_difference(v_row.catalog_json, v_row.stored_json),
                wf.wf_json_difference(v_row.stored_json, v_row.catalog_json)));
        end if;
        update wf.workflow_action a
           set capability = c.capability, max_per_worker = c.max_per_worker,
               exclusive_worker = c.exclusive_worker, affinity_key_field = c.affinity_key_field,
               prefer_previous_worker = c.prefer_previous_worker,
               prefer_continue_group = c.prefer_continue_group,
               require_previous_worker = c.require_previous_worker,
               max_concurrent = c.max_concurrent, rate_per_minute = c.rate_per_minute,
               max_deliveries = c.max_deliveries
          from wf.workflow_version_action c
         where c.workflow_version_id = p_workflow_version_id
           and c.action_name = v_row.action_name and a.action_name = v_row.action_name;
        insert into wf.audit_log (at, what, detail_json)
        values (wf.wf_now(), 'update action', jsonb_build_object(
            'action', v_row.action_name, 'from', v_row.stored_json, 'to', v_row.catalog_json));
    end loop;
    insert into wf.action_throttle (action_id)
    select a.action_id
      from wf.workflow_version_action u
      join wf.workflow_action a on a.action_name = u.action_name
     where u.workflow_version_id = p_workflow_version_id
     order by a.action_id
    on conflict do nothing;
end
$$;

-- The entries of p_one that p_other has not, or has otherwise, as text for a message.
create or replace function wf.wf_json_difference(p_one jsonb, p_other jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select coalesce(string_agg(format('%s %s', e.key, e.value), ', ' order by e.key), 'nothing')
      from jsonb_each(p_one) e
     where p_other -> e.key is distinct from e.value
$$;

-- Fills what the engine reads instead of working it out: links between nodes, what a node opens and
-- carries, and the bindings that the placeholders of templates stand for.
create or replace function wf.wf_derive_version(p_workflow_version_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
begin
    update wf.workflow_input_binding b
       set node_id = n.node_id, path = wf.wf_pointer_path(b.pointer)
      from wf.workflow_node n
     where b.workflow_version_id = p_workflow_version_id
       and n.workflow_version_id = b.workflow_version_id and n.node_key = b.node_key;
    update wf.variable_output_binding b set node_id = n.node_id
      from wf.workflow_node n
     where b.workflow_version_id = p_workflow_version_id
       and n.workflow_version_id = b.workflow_version_id and n.node_key = b.node_key;
    update wf.node_scope_default b set node_id = n.node_id
      from wf.workflow_node n
     where b.workflow_version_id = p_workflow_version_id
       and n.workflow_version_id = b.workflow_version_id and n.node_key = b.owner_key;
    update wf.collection_binding b set node_id = n.node_id
      from wf.workflow_node n
     where b.workflow_version_id = p_workflow_version_id
       and n.workflow_version_id = b.workflow_version_id and n.node_key = b.node_key;
    perform wf.wf_derive_template_bindings(p_workflow_version_id);
    update wf.workflow_input_binding b
       set variable_name = b.program_json -> 0 ->> 1, variable_owner = b.program_json -> 0 ->> 2
     where b.workflow_version_id = p_workflow_version_id
       and jsonb_array_length(b.program_json) = 1 and b.program_json -> 0 ->> 0 = 'var'
       and b.program_json -> 0 -> 3 = '[]' and cardinality(b.path) = 1;
    perform wf.wf_derive_variable_types(p_workflow_version_id);

    with nodes as materialized (
        select n.* from wf.workflow_node n where n.workflow_version_id = p_workflow_version_id
    ), siblings as (
        select n.node_id, lead(n.node_id) over (partition by n.parent_node_id
                                                order by n.child_order) as next_node_id
          from nodes n
         where n.edge_kind = 'SEQUENCE'
    ), children as (
        select n.parent_node_id as node_id, count(*) as child_count,
               (array_agg(n.node_id order by n.child_order)
                    filter (where n.edge_kind in ('SEQUENCE', 'PARALLEL', 'BODY')))[1]
                   as first_child_id,
               max(n.node_id) filter (where n.edge_kind = 'ON_ERROR') as on_error_node_id,
               max(n.node_id) filter (where n.edge_kind = 'FINALLY') as finally_node_id,
               max(n.node_id) filter (where n.edge_kind = 'TIMEOUT') as timeout_node_id
          from nodes n
         where n.parent_node_id is not null
         group by n.parent_node_id
    ), scopes as (
        select d.node_id, bool_or(d.variable_kind = 'var' and d.program_json is not null)
                   as has_defaults
          from wf.node_scope_default d
         where d.workflow_version_id = p_workflow_version_id
         group by d.node_id
    ), inputs as (
        select b.node_id, bool_and(b.variable_name is not null) as are_plain
          from wf.workflow_input_binding b
         where b.workflow_version_id = p_workflow_version_id
         group by b.node_id
    ), outputs as (
        select b.node_id, bool_or(b.binding_kind = 'var') as has_sets,
               bool_or(b.binding_kind = 'collect') as collects
          from wf.variable_output_binding b
         where b.workflow_version_id = p_workflow_version_id
         group by b.node_id
    )
    update wf.workflow_node n
       set action_id = a.action_id,
           child_count = coalesce(c.child_count, 0),
           first_child_id = c.first_child_id,
           next_node_id = s.next_node_id,
           is_loop_body = coalesce(o.edge_kind = 'BODY', false),
           opens_scope = o.parent_node_id is null or d.node_id is not null,
           has_scope_defaults = coalesce(d.has_defaults, false),
           has_input_bindings = i.node_id is not null,
           has_plain_inputs = coalesce(i.are_plain, true)
               and coalesce(jsonb_typeof(t.template_json), 'object') = 'object',
           has_output_bindings = coalesce(b.has_sets, false),
           collect_node_id = case when b.collects then o.node_id
                                  when o.edge_kind = 'BODY' and (p.collects or q.reuses)
                                  then o.parent_node_id end,
           branch_limit = case o.node_type
               when 'PARALLEL' then (o.attributes_json ->> 'limit')::integer
               when 'FOREACH' then coalesce((o.attributes_json ->> 'parallel')::integer, 1) end,
           needed_count = case when o.node_type = 'PARALLEL'
               then (o.attributes_json ->> 'join')::integer end,
           on_error_node_id = c.on_error_node_id,
           finally_node_id = c.finally_node_id,
           timeout_node_id = c.timeout_node_id,
           priority = coalesce((o.attributes_json ->> 'priority')::integer, 0),
           lease_ms = (o.attributes_json ->> 'lease_ms')::bigint,
           delay_ms = coalesce((o.attributes_json ->> 'delay_ms')::bigint,
                               (o.attributes_json ->> 'sleep_ms')::bigint),
           timeout_ms = coalesce((o.attributes_json ->> 'timeout_ms')::bigint, r.timeout_ms),
           retry_json = o.attributes_json -> 'retry'
      from nodes o
      left join siblings s on s.node_id = o.node_id
      left join children c on c.node_id = o.node_id
      left join scopes d on d.node_id = o.node_id
      left join inputs i on i.node_id = o.node_id
      left join wf.workflow_input_template t
        on t.workflow_version_id = o.workflow_version_id and t.node_key = o.node_key
      left join outputs b on b.node_id = o.node_id
      left join outputs p on p.node_id = o.parent_node_id
      left join lateral (select t.attributes_json ? 'reuse' as reuses from wf.workflow_node t
                          where t.node_id = o.parent_node_id) q on true
      left join wf.workflow_action a on a.action_name = o.action_name
      left join wf.workflow_action_revision r
        on r.action_name = o.action_name and r.revision = o.action_revision
     where n.node_id = o.node_id;

    -- The loop variables of a body stand in the attributes of its loop.
    update wf.workflow_node b
       set loop_item_name = p.attributes_json ->> 'item',
           loop_index_name = coalesce(p.attributes_json ->> 'index', p.attributes_json ->> 'counter')
      from wf.workflow_node p
     where b.workflow_version_id = p_workflow_version_id and b.edge_kind = 'BODY'
       and p.node_id = b.parent_node_id;

    perform wf.wf_derive_closing(p_workflow_version_id);

    update wf.workflow_version v
       set root_node_id = (select n.node_id from wf.workflow_node n
                            where n.workflow_version_id = v.workflow_version_id
                              and n.parent_node_id is null),
           has_deadlines = exists (select 1 from wf.workflow_node n
                                    where n.workflow_version_id = v.workflow_version_id
                                      and n.timeout_ms is not null),
           -- Where no expression is evaluated after a submit, none can fail late, and the submit
           -- needs no savepoint.
           may_fail_late = v.outputs_json <> '[]'
               or exists (select 1 from wf.workflow_node n
                           where n.workflow_version_id = v.workflow_version_id
                             and (n.has_input_bindings or n.has_output_bindings
                                  or n.has_scope_defaults or n.collect_node_id is not null
                                  or n.node_type not in ('ACTION', 'SEQUENCE', 'PARALLEL')
                                  or n.attributes_json ?| array['fail', 'keep_going']
                                  or n.needed_count is not null
                                  or n.on_error_node_id is not null
                                  or n.finally_node_id is not null or n.timeout_ms is not null))
     where v.workflow_version_id = p_workflow_version_id;
end
$$;

-- Which writes are checked against a type, and which initialisers need no check because they are one
-- literal that fits (R5).
create or replace function wf.wf_derive_variable_types(p_workflow_version_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    update wf.variable_output_binding b set type_id = d.type_id
      from wf.node_scope_default d
      join wf.data_type t
        on t.workflow_version_id = d.workflow_version_id and t.type_id = d.type_id
     where b.workflow_version_id = p_workflow_version_id
       and d.workflow_version_id = b.workflow_version_id and d.owner_key = b.owner_key
       and d.name = b.name and t.base_type <> 'any';
    update wf.node_scope_default d set is_constant = true
     where d.workflow_version_id = p_workflow_version_id and d.variable_kind = 'var'
       and jsonb_array_length(d.program_json) = 1 and d.program_json -> 0 ->> 0 = 'lit'
       and (d.type_id is null or wf.wf_check_values(p_workflow_version_id, array[''],
                array[d.type_id], array[d.program_json -> 0 -> 1]) is null);
end
$$;

-- Which successes may close other work: those of a PARALLEL's branches when fewer than all are
-- needed and it does not keep going, and so every completion below such a branch (R1).
create or replace function wf.wf_derive_closing(p_workflow_version_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
    v_frontier bigint[];
begin
    with children as (
        select c.node_id, coalesce(p.node_type = 'PARALLEL' and p.needed_count < p.child_count
                                   and not p.attributes_json ? 'keep_going', false) as decides
          from wf.workflow_node c
          left join wf.workflow_node p
            on p.workflow_version_id = p_workflow_version_id and p.node_id = c.parent_node_id
         where c.workflow_version_id = p_workflow_version_id
    )
    update wf.workflow_node n set success_may_close = c.decides, may_close = c.decides
      from children c where n.node_id = c.node_id;
    v_frontier := array(select n.node_id from wf.workflow_node n
                         where n.workflow_version_id = p_workflow_version_id and n.may_close);
    while cardinality(v_frontier) > 0 loop
        with below as (
            update wf.workflow_node n set may_close = true
             where n.parent_node_id = any (v_frontier)
               and n.workflow_version_id = p_workflow_version_id and not n.may_close
            returning n.node_id
        )
        select coalesce(array_agg(b.node_id), '{}') into v_frontier from below b;
    end loop;
end
$$;

-- The steps of a JSON pointer, unescaped; '' names the whole document.
create or replace function wf.wf_pointer_path(p_pointer text) returns text[]
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case when p_pointer = '' then '{}'::text[]
                else array(select replace(replace(s.step, '~1', '/'), '~0', '~')
                             from unnest(string_to_array(substr(p_pointer, 2), '/'))
                                  with ordinality s(step, position)
                            order by s.position) end
$$;

-- Makes a binding of every string of a template that holds a placeholder. Errors: 20007 naming the
-- node and the placeholder that is not understood.
create or replace function wf.wf_derive_template_bindings(p_workflow_version_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row     record;
    v_program record;
begin
    for v_row in
        select n.node_id, n.node_key, b.pointer, b.path, b.text_value
          from wf.workflow_input_template t
          join wf.workflow_node n
            on n.workflow_version_id = t.workflow_version_id and n.node_key = t.node_key
         cross join lateral wf.wf_template_bindings(t.template_json) b
         where t.workflow_version_id = p_workflow_version_id
           and t.template_json::text like '%${%'
         order by n.node_id, b.pointer
    loop
        select * into v_program
          from wf.wf_compile_template_string(v_row.text_value, p_workflow_version_id, v_row.node_id);
        if v_program.error_code is not null then
            perform wf.wf_raise(20007, format('WF615: input of %s at "%s": %s',
                v_row.node_key, v_row.pointer, v_program.error_message));
        end if;
        insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json,
                                               is_derived, path, node_id)
        values (p_workflow_version_id, v_row.node_key, v_row.pointer, v_program.program_json,
                true, v_row.path, v_row.node_id);
    end loop;
end
$$;

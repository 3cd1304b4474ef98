-- What the rows of a version must be for the engine to run them. Twin: mssql/wf_verify_graph.sql
--
-- Every refusal is 20007, and its text begins with the code that the compiler's own check
-- (compiler/verify.py, docs/diagnostics.md) gives for the same fault: "WF608: …". That check finds
-- more: whether variables are visible, whether bindings fit their templates, types, subscriptions.

-- Which kinds of edge a node may have to its children, how many of each, and which it must have.
create or replace view wf.edge_rule as
select r.node_type, r.branch_kind, r.max_count, r.branch_kind in ('THEN', 'BODY', 'PARALLEL') as is_needed
  from (values ('SEQUENCE', 'SEQUENCE', null::integer), ('SEQUENCE', 'ON_ERROR', 1),
               ('SEQUENCE', 'FINALLY', 1), ('PARALLEL', 'PARALLEL', null), ('IF', 'THEN', 1),
               ('IF', 'ELSE', 1), ('SWITCH', 'CASE', null), ('SWITCH', 'DEFAULT', 1),
               ('REPEAT', 'BODY', 1), ('WHILE', 'BODY', 1), ('FOREACH', 'BODY', 1),
               ('WAIT_EVENT', 'TIMEOUT', 1)) r(node_type, branch_kind, max_count);

-- The attributes of nodes: which a type of node may have or must have, of which kind, in which range.
-- Kinds: integer, text, flag (true, or left out), program, object. What action and revision say stands
-- in columns. A row of type `retry` is a field of that attribute.
create or replace view wf.attribute_rule as
select t.node_type, a.name as attribute, a.kind, n.is_needed, a.least,
       case when a.name like '%\_ms' then 3162240000000 else 2147483647 end as most
  from (values ('ACTION', '', 'priority lease_ms timeout_ms delay_ms retry dispatch branch_variable'),
               ('SEQUENCE', '', 'fail sleep_ms timeout_ms'),
               ('PARALLEL', '', 'limit join keep_going timeout_ms'),
               ('IF', 'condition', ''),
               ('SWITCH', 'subject', ''),
               ('REPEAT', 'count', 'counter keep timeout_ms'),
               ('WHILE', 'condition max', 'keep timeout_ms'),
               ('FOREACH', 'item parallel', 'index batch tolerate keep_going reuse timeout_ms'),
               ('WAIT_EVENT', 'event_type', 'correlate timeout_ms'),
               ('retry', 'limit backoff_ms factor_hundredths max_ms', '')) t(node_type, needed, allowed)
 cross join lateral (
    select u.name, true from regexp_split_to_table(t.needed, ' ') u(name)
    union all
    select u.name, false from regexp_split_to_table(t.allowed, ' ') u(name)) n(name, is_needed)
  join (values ('limit', 'integer', 1), ('join', 'integer', 1), ('max', 'integer', 1),
               ('keep', 'integer', 1), ('batch', 'integer', 1), ('parallel', 'integer', 0),
               ('lease_ms', 'integer', 1), ('timeout_ms', 'integer', 1), ('delay_ms', 'integer', 0),
               ('sleep_ms', 'integer', 0), ('backoff_ms', 'integer', 0), ('max_ms', 'integer', 0),
               ('factor_hundredths', 'integer', 100), ('priority', 'integer', -2147483647),
               ('keep_going', 'flag', null), ('reuse', 'object', null), ('item', 'text', null),
               ('index', 'text', null), ('counter', 'text', null), ('branch_variable', 'text', null),
               ('event_type', 'text', null), ('condition', 'program', null),
               ('subject', 'program', null), ('count', 'program', null),
               ('correlate', 'program', null), ('retry', 'object', null),
               ('dispatch', 'object', null), ('fail', 'object', null),
               ('tolerate', 'object', null)) a(name, kind, least) on a.name = n.name;

-- Verifies the rows of a version. Errors: 20007 with the first fault that was found.
create or replace function wf.wf_verify_graph(p_workflow_version_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_found text;
begin
    v_found := wf.wf_verify_root(p_workflow_version_id);
    if v_found is null then
        v_found := wf.wf_verify_edges(p_workflow_version_id);
    end if;
    if v_found is null then
        v_found := wf.wf_verify_cases(p_workflow_version_id);
    end if;
    if v_found is null then
        v_found := wf.wf_verify_reachable(p_workflow_version_id);
    end if;
    if v_found is null then
        v_found := wf.wf_verify_attributes(p_workflow_version_id);
    end if;
    if v_found is null then
        v_found := 'WF612: ' || wf.wf_verify_programs(p_workflow_version_id);
    end if;
    if v_found is null then
        select format('WF615: FOREACH %s has no collection binding', n.node_key) into v_found
          from wf.workflow_node n
         where n.workflow_version_id = p_workflow_version_id and n.node_type = 'FOREACH'
           and not exists (select 1 from wf.collection_binding b
                            where b.workflow_version_id = n.workflow_version_id
                              and b.node_key = n.node_key)
         order by n.node_id limit 1;
    end if;
    if v_found is not null then
        perform wf.wf_raise(20007, v_found);
    end if;
end
$$;

-- What is wrong with the root, or null.
create or replace function wf.wf_verify_root(p_workflow_version_id bigint) returns text
language sql stable set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
    select case when count(*) = 0 then 'WF603: there is no root'
                when count(*) > 1 then 'WF603: there are several roots: '
                     || string_agg(n.node_key, ', ' order by n.node_id)
                when max(n.node_type) <> 'SEQUENCE' then 'WF603: the root must be a SEQUENCE' end
      from wf.workflow_node n
     where n.workflow_version_id = p_workflow_version_id
       and not exists (select 1 from wf.workflow_edge d
                        where d.workflow_version_id = n.workflow_version_id
                          and d.child_key = n.node_key)
$$;

-- The first edge or node that breaks wf.edge_rule, or the numbering of children; or null.
create or replace function wf.wf_verify_edges(p_workflow_version_id bigint) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
    v_found text;
begin
    select case when r.node_type is null
                then format('WF608: node %s, of type %s, has an edge of kind %s', p.node_key,
                            p.node_type, d.branch_kind)
                else format('WF608: the %s edge of %s leads to %s, which is no generated SEQUENCE',
                            d.branch_kind, p.node_key, c.node_key) end
      into v_found
      from wf.workflow_edge d
      join wf.workflow_node p
        on p.workflow_version_id = d.workflow_version_id and p.node_key = d.parent_key
      join wf.workflow_node c
        on c.workflow_version_id = d.workflow_version_id and c.node_key = d.child_key
      left join wf.edge_rule r on r.node_type = p.node_type and r.branch_kind = d.branch_kind
     where d.workflow_version_id = p_workflow_version_id
       and (r.node_type is null
            or d.branch_kind not in ('SEQUENCE', 'PARALLEL')
               and not (c.node_type = 'SEQUENCE' and c.is_generated))
     order by p.node_id, d.child_order limit 1;
    if v_found is null then
        select case when r.max_count is null or count(d.child_key) = 0
                    then format('WF609: node %s has no %s edge', n.node_key, r.branch_kind)
                    else format('WF608: node %s has %s edges of kind %s', n.node_key,
                                count(d.child_key), r.branch_kind) end
          into v_found
          from wf.workflow_node n
          join wf.edge_rule r on r.node_type = n.node_type
          left join wf.workflow_edge d
            on d.workflow_version_id = n.workflow_version_id and d.parent_key = n.node_key
           and d.branch_kind = r.branch_kind
         where n.workflow_version_id = p_workflow_version_id
         group by n.node_key, n.node_id, r.branch_kind, r.max_count, r.is_needed
        having count(d.child_key) > r.max_count or r.is_needed and count(d.child_key) = 0
         order by n.node_id limit 1;
    end if;
    if v_found is null then
        select format('WF610: the edges of %s are not numbered from 0 without a gap', d.parent_key)
          into v_found
          from wf.workflow_edge d
         where d.workflow_version_id = p_workflow_version_id
         group by d.parent_key
        having max(d.child_order) <> count(*) - 1 or min(d.child_order) <> 0
         order by d.parent_key limit 1;
    end if;
    return v_found;
end
$$;

-- The first case value that is no scalar, or stands twice in its SWITCH; or null.
create or replace function wf.wf_verify_cases(p_workflow_version_id bigint) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_found text;
begin
    select format('WF611: the values of %s are no list of scalars', d.child_key) into v_found
      from wf.workflow_edge d
     where d.workflow_version_id = p_workflow_version_id and d.branch_kind = 'CASE'
       and (jsonb_typeof(d.case_value) <> 'array' or d.case_value = '[]'
            or jsonb_path_exists(d.case_value,
                                 'strict $[*] ? (@.type() == "object" || @.type() == "array")'))
     limit 1;
    if v_found is null then
        select format('WF611: %s has the case value %s twice', d.parent_key, c.value)
          into v_found
          from wf.workflow_edge d
         cross join lateral jsonb_array_elements(d.case_value) c
         where d.workflow_version_id = p_workflow_version_id and d.branch_kind = 'CASE'
         group by d.parent_key, c.value
        having count(*) > 1
         order by d.parent_key limit 1;
    end if;
    return v_found;
end
$$;

-- The first attribute that is missing, does not belong to its node or cannot be; or null.
create or replace function wf.wf_verify_attributes(p_workflow_version_id bigint) returns text
language sql stable set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
    with owners as (
        select n.node_key, n.node_id, n.node_type as rules, n.attributes_json as given
          from wf.workflow_node n
         where n.workflow_version_id = p_workflow_version_id
        union all
        select n.node_key, n.node_id, 'retry', n.attributes_json -> 'retry'
          from wf.workflow_node n
         where n.workflow_version_id = p_workflow_version_id
           and jsonb_typeof(n.attributes_json -> 'retry') = 'object'
    ), problems as (
        select o.node_key, o.node_id, format('needs attribute %s', r.attribute) as problem
          from owners o
          join wf.attribute_rule r on r.node_type = o.rules and r.is_needed
         where not o.given ? r.attribute
        union all
        select o.node_key, o.node_id, format('has no attribute %s', left(g.key, 40))
          from owners o
         cross join lateral jsonb_object_keys(o.given) g(key)
          left join wf.attribute_rule r on r.node_type = o.rules and r.attribute = g.key
         where r.attribute is null and o.rules <> 'retry'
        union all
        select o.node_key, o.node_id, format('has a bad value of %s', r.attribute)
          from owners o
         cross join lateral jsonb_each(o.given) g
          join wf.attribute_rule r on r.node_type = o.rules and r.attribute = g.key
         where not case r.kind
               when 'integer' then
                   case when jsonb_typeof(g.value) = 'number' and g.value::text ~ '^-?[0-9]{1,18}$'
                        then g.value::numeric between r.least and r.most else false end
               when 'flag' then g.value = 'true'
               when 'text' then jsonb_typeof(g.value) = 'string' and g.value <> '""'
               when 'program' then true
               else jsonb_typeof(g.value) = 'object' end
        union all
        select n.node_key, n.node_id, 'has a bad code of fail'
          from wf.workflow_node n
         where n.workflow_version_id = p_workflow_version_id and n.attributes_json ? 'fail'
           and not case
               when jsonb_typeof(n.attributes_json -> 'fail' -> 'code') is distinct from 'number'
                    or n.attributes_json -> 'fail' ->> 'code' !~ '^-[0-9]{1,10}$' then false
               else (n.attributes_json -> 'fail' ->> 'code')::bigint
                    between -2147483648 and -1 end
    )
    select format('WF614: node %s %s', p.node_key, p.problem)
      from problems p order by p.node_id, p.problem limit 1
$$;

-- Sets depth and parent of every node that the root reaches and says which it does not reach (a
-- cycle beside the tree), or null. Every node has at most one parent, so the walk ends.
create or replace function wf.wf_verify_reachable(p_workflow_version_id bigint) returns text
language plpgsql set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
    v_found text;
begin
    with recursive tree as (
        select n.node_id, n.node_key, n.node_type, 0 as depth, null::bigint as parent_node_id,
               null::text as parent_type, null::text as branch_kind, null::integer as child_order
          from wf.workflow_node n
         where n.workflow_version_id = p_workflow_version_id
           and not exists (select 1 from wf.workflow_edge d
                            where d.workflow_version_id = n.workflow_version_id
                              and d.child_key = n.node_key)
        union all
        select c.node_id, c.node_key, c.node_type, t.depth + 1, t.node_id, t.node_type,
               d.branch_kind, d.child_order
          from tree t
          join wf.workflow_edge d
            on d.workflow_version_id = p_workflow_version_id and d.parent_key = t.node_key
          join wf.workflow_node c
            on c.workflow_version_id = p_workflow_version_id and c.node_key = d.child_key
    )
    update wf.workflow_node n
       set depth = t.depth, parent_node_id = t.parent_node_id, parent_type = t.parent_type,
           edge_kind = t.branch_kind, child_order = t.child_order
      from tree t
     where n.node_id = t.node_id;
    select format('WF605: node %s is not reached from the root', n.node_key) into v_found
      from wf.workflow_node n
     where n.workflow_version_id = p_workflow_version_id and n.depth is null
     order by n.node_id limit 1;
    return v_found;
end
$$;


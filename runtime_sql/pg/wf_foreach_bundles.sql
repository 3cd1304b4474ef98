-- Reuse of iterations (S9): keys, hits, entries. Twin: mssql/wf_foreach_bundles.sql
--
-- A FOREACH with `reuse` works out the keys of all its iterations when it is activated, in one
-- statement, and looks them up at once. So what counts as a hit is settled there and then: every
-- entry that the activation's snapshot sees, which is every one committed before, and no entry of
-- the call itself (its writer_id is the transaction's own). No clock and no stored snapshot takes
-- part, a long FOREACH never picks up what others add while it runs, and the iterations that start
-- later read a column of wf.foreach_item. A hit is SKIPPED when its turn comes and takes no place
-- among those that run at once, so a run of hits is passed over in one step however long it is.
--
-- Entries are written in the transaction in which the iteration succeeds, and never wait: the primary
-- key holds the writing transaction, so two that write one key at once leave two entries, of which
-- the lower counts. A unique key alone would make the second wait for the first, and two batches of
-- results with the same items in another order deadlock. No rule of R1 has to know of these rows.

-- The items of the FOREACHs around one, outermost first, as canonical JSON with commas between.
create or replace function wf.wf_foreach_enclosing_items(p_node_execution_id bigint) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_id    bigint := p_node_execution_id;
    v_items text[] := '{}';
begin
    loop
        select e.parent_execution_id, n.is_loop_body and n.parent_type = 'FOREACH' as is_iteration,
               v.value_json
          into v_row
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
          left join wf.scope_variable v
            on v.scope_id = e.node_execution_id and v.name = n.loop_item_name
         where e.node_execution_id = v_id;
        exit when not found;
        if v_row.is_iteration then
            v_items := wf.wf_canonical_json(v_row.value_json) || v_items;
        end if;
        v_id := v_row.parent_execution_id;
    end loop;
    return array_to_string(v_items, ',');
end
$$;

-- What the iterations of a FOREACH read from outside (S9.1) as canonical JSON with commas between: [value]
-- for what is there, [] for what is not. All of it is the same in every iteration but the index,
-- for which chr(1) stands, and ctx.iterationNo, chr(2): neither can be part of canonical JSON.
create or replace function wf.wf_foreach_outer_reads(
    p_node_execution_id bigint, p_reads jsonb, p_body_key text, p_index_name text
) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_read  jsonb;
    v_found record;
    v_texts text[] := '{}';
begin
    for v_read in
        select r.value
          from jsonb_array_elements(p_reads) with ordinality r(value, position)
         order by r.position
    loop
        if v_read = '["ctx", "index", []]'
           or v_read = jsonb_build_array('var', p_index_name, p_body_key, '[]'::jsonb) then
            v_texts := v_texts || ('[' || chr(1) || ']');
        elsif v_read = '["ctx", "iterationNo", []]' then
            v_texts := v_texts || ('[' || chr(2) || ']');
        else
            v_found := wf.wf_resolve_reference(v_read, p_node_execution_id);
            v_texts := v_texts || case when v_found.error_code is null
                then '[' || wf.wf_canonical_json(v_found.value_json) || ']' else '[]' end;
        end if;
    end loop;
    return array_to_string(v_texts, ',');
end
$$;

-- Canonical JSON of the items of an array, by position from 0. Scalars, the most of them, are
-- written in place.
create or replace function wf.wf_canonical_items(p_items jsonb)
returns table (iteration_no integer, item_json jsonb, item_text text)
language sql stable set search_path = pg_catalog, pg_temp as $$
    select (i.position - 1)::integer, i.value,
           case jsonb_typeof(i.value)
               when 'number' then trim_scale(i.value::numeric)::text
               when 'string' then wf.wf_ascii_json(i.value::text)
               when 'object' then wf.wf_canonical_json(i.value)
               when 'array' then wf.wf_canonical_json(i.value)
               else i.value::text end
      from jsonb_array_elements(p_items) with ordinality i(value, position)
$$;

-- Keeps every item of a FOREACH with its content key (S9.1) and, on a hit, what the iteration exported
-- before. `forceRerun` in the context knows no hits (S9.3).
create or replace function wf.wf_foreach_look_up(p_node_execution_id bigint, p_items jsonb)
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_self   bigint := wf.wf_transaction_id();
    v_row    record;
    v_before text;
    v_after  text;
begin
    select d.name, n.node_key, n.attributes_json -> 'reuse' as reuse_json, b.node_key as body_key,
           b.loop_index_name, wf.wf_is_forced_rerun(e.workflow_instance_id) as is_forced
      into v_row
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
      join wf.workflow_node b on b.node_id = n.first_child_id
      join wf.workflow_version w on w.workflow_version_id = n.workflow_version_id
      join wf.workflow_def d on d.workflow_def_id = w.workflow_def_id
     where e.node_execution_id = p_node_execution_id;
    v_before := wf.wf_canonical_json(jsonb_build_array(
        v_row.name, v_row.reuse_json ->> 'fingerprint', v_row.node_key));
    v_before := left(v_before, -1) || ',';
    v_after := ',[' || wf.wf_foreach_enclosing_items(p_node_execution_id) || '],['
        || wf.wf_foreach_outer_reads(p_node_execution_id, v_row.reuse_json -> 'reads',
                                     v_row.body_key, v_row.loop_index_name) || ']]';
    insert into wf.foreach_item (node_execution_id, iteration_no, item_json, content_key, known_json)
    select p_node_execution_id, i.iteration_no, i.item_json, k.content_key,
           case when not v_row.is_forced then (
               select b.exported_json
                 from wf.foreach_bundle_entry b
                where b.content_key = k.content_key and b.writer_id <> v_self
                order by b.writer_id limit 1) end
      from wf.wf_canonical_items(p_items) i
     cross join lateral (
        select encode(sha256(convert_to(
                   v_before || i.item_text || replace(replace(
                       v_after, chr(1), i.iteration_no::text), chr(2), (i.iteration_no + 1)::text),
                   'UTF8')), 'hex') as content_key offset 0) k;
end
$$;

-- The number of the current transaction, which no other one of this server ever has.
create or replace function wf.wf_transaction_id() returns bigint
language sql stable set search_path = pg_catalog, pg_temp as $$
    select pg_current_xact_id()::text::bigint
$$;

-- Whether the instance's context says to run again what was run before.
create or replace function wf.wf_is_forced_rerun(p_workflow_instance_id bigint) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce((select c.context_json -> 'forceRerun' = 'true'
                       from wf.execution_context c
                      where c.workflow_instance_id = p_workflow_instance_id), false)
$$;

-- Goes on from iteration p_from of a FOREACH with `reuse`: skips those that are known, until p_slots
-- others have been found, which are to start, or there are no more. Answers the numbers of those to
-- start, how many were skipped, and the first iteration not looked at. A skipped iteration is an
-- execution that has ended as SKIPPED, with its loop variables and the output it had (S9.3); nothing
-- below it is activated. Locks: none; the caller holds the gate, and the counter's row if there is one.
create or replace function wf.wf_foreach_caas_try_skip_body(
    p_node_execution_id bigint, p_from integer, p_slots integer, p_now timestamptz,
    out started integer[], out skipped_count integer, out next_index integer
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    started := array(
        select f.iteration_no from wf.foreach_item f
         where f.node_execution_id = p_node_execution_id and f.iteration_no >= p_from
           and f.known_json is null
         order by f.iteration_no
         limit p_slots);
    if cardinality(started) = p_slots then
        next_index := started[p_slots] + 1;
    else
        select max(f.iteration_no) + 1 into next_index
          from wf.foreach_item f where f.node_execution_id = p_node_execution_id;
    end if;
    with skipped as materialized (
        select nextval('wf.node_execution_id_seq') as new_id, q.*
          from (select f.iteration_no, f.item_json, nullif(f.known_json, '{}') as known_json,
                       e.workflow_instance_id, e.scope_id as parent_scope_id, b.node_id, b.node_key,
                       b.loop_item_name, b.loop_index_name
                  from wf.foreach_item f
                  join wf.node_execution e on e.node_execution_id = f.node_execution_id
                  join wf.workflow_node n on n.node_id = e.node_id
                  join wf.workflow_node b on b.node_id = n.first_child_id
                 where f.node_execution_id = p_node_execution_id
                   and f.iteration_no >= p_from and f.iteration_no < next_index
                   and f.known_json is not null
                 order by f.iteration_no) q
    ), executions as (
        insert into wf.node_execution (node_execution_id, workflow_instance_id,
            parent_execution_id, node_id, iteration_no, scope_id, join_parent_id, status,
            attempt_no, result_code, output_json, created_at, ended_at)
        select x.new_id, x.workflow_instance_id, p_node_execution_id, x.node_id, x.iteration_no,
               x.new_id, p_node_execution_id, 'SKIPPED', 1, 0, x.known_json, p_now, p_now
          from skipped x
    ), scopes as (
        insert into wf.scope (scope_id, parent_scope_id, workflow_instance_id, owner_key)
        select x.new_id, x.parent_scope_id, x.workflow_instance_id, x.node_key
          from skipped x
    ), items as (
        insert into wf.scope_variable (scope_id, name, value_json)
        select x.new_id, x.loop_item_name, x.item_json
          from skipped x
    ), indexes as (
        insert into wf.scope_variable (scope_id, name, value_json)
        select x.new_id, x.loop_index_name, to_jsonb(x.iteration_no)
          from skipped x
         where x.loop_index_name is not null
    )
    select count(*) into skipped_count from skipped;
end
$$;

-- The first iterations of a FOREACH with `reuse` whose counter is there: p_width that are not known, as
-- START steps; when all are known, its own SUCCEED step.
create or replace function wf.wf_foreach_start_unknown(
    p_ordinal integer, p_node_execution_id bigint, p_items jsonb, p_width integer,
    p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_first   record;
    v_counter wf.join_counter;
begin
    perform wf.wf_foreach_look_up(p_node_execution_id, p_items);
    select * into v_first
      from wf.wf_foreach_caas_try_skip_body(p_node_execution_id, 0, p_width, p_now);
    update wf.join_counter c
       set open_count = cardinality(v_first.started), next_index = v_first.next_index,
           succeeded_count = v_first.skipped_count
     where c.node_execution_id = p_node_execution_id
    returning c.* into v_counter;
    if v_counter.open_count = 0 then
        return next wf.wf_succeed_step(p_ordinal, p_node_execution_id,
                                       v_counter.workflow_instance_id);
        return;
    end if;
    return query
    select p_ordinal, f.iteration_no, 'START', p_node_execution_id, v_counter.workflow_instance_id,
           n.first_child_id, f.iteration_no, f.item_json,
           null::integer, null::integer, null::text, null::bigint
      from unnest(v_first.started) u(iteration_no)
      join wf.foreach_item f
        on f.node_execution_id = p_node_execution_id and f.iteration_no = u.iteration_no
      join wf.node_execution e on e.node_execution_id = p_node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id;
end
$$;

-- Lets the counter of a FOREACH with `reuse`, whose row the caller has locked and which has just given
-- out iteration last_started, pass over those that are known. Answers the row as it is then:
-- last_started is null when there is nothing left to start.
create or replace function wf.wf_foreach_skip_ahead(p_counter wf.join_counter, p_now timestamptz)
returns wf.join_counter
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_ahead   record;
    v_counter wf.join_counter;
begin
    select * into v_ahead
      from wf.wf_foreach_caas_try_skip_body(p_counter.node_execution_id, p_counter.last_started, 1,
                                            p_now);
    update wf.join_counter c
       set last_started = v_ahead.started[1], next_index = v_ahead.next_index,
           open_count = c.open_count - (1 - cardinality(v_ahead.started)),
           succeeded_count = c.succeeded_count + v_ahead.skipped_count
     where c.node_execution_id = p_counter.node_execution_id
    returning c.* into v_counter;
    return v_counter;
end
$$;

-- Keeps what iterations that have just succeeded export, for later FOREACHs (S9.2). The first writer
-- wins, unless `forceRerun` replaces what is there. Locks: entries that it replaces, with SKIP LOCKED.
create or replace function wf.wf_foreach_keep_bundles(
    p_iterations bigint[], p_exported jsonb[], p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_self   bigint := wf.wf_transaction_id();
    v_forced bigint[] := array(
        select i.workflow_instance_id
          from (select distinct e.workflow_instance_id
                  from unnest(p_iterations) u
                  join wf.node_execution e on e.node_execution_id = u offset 0) i
         where wf.wf_is_forced_rerun(i.workflow_instance_id));
begin
    if cardinality(v_forced) > 0 then
        delete from wf.foreach_bundle_entry o
         where o.ctid in (
            select b.ctid
              from unnest(p_iterations) u
              join wf.node_execution e on e.node_execution_id = u
              join wf.foreach_item f
                on f.node_execution_id = e.parent_execution_id and f.iteration_no = e.iteration_no
              join wf.foreach_bundle_entry b on b.content_key = f.content_key
             where e.workflow_instance_id = any (v_forced) and b.writer_id <> v_self
               for update of b skip locked);
    end if;
    insert into wf.foreach_bundle_entry (content_key, writer_id, workflow_name, node_key,
        exported_json, created_by_instance_id, created_at)
    select f.content_key, v_self, d.name, n.node_key, u.exported_json, e.workflow_instance_id, p_now
      from unnest(p_iterations, p_exported) with ordinality
           u(node_execution_id, exported_json, position)
      join wf.node_execution e on e.node_execution_id = u.node_execution_id
      join wf.foreach_item f
        on f.node_execution_id = e.parent_execution_id and f.iteration_no = e.iteration_no
      join wf.node_execution p on p.node_execution_id = e.parent_execution_id
      join wf.workflow_node n on n.node_id = p.node_id
      join wf.workflow_version w on w.workflow_version_id = n.workflow_version_id
      join wf.workflow_def d on d.workflow_def_id = w.workflow_def_id
     where e.workflow_instance_id = any (v_forced)
        or not exists (select 1 from wf.foreach_bundle_entry b where b.content_key = f.content_key)
     order by u.position
    on conflict on constraint pk_foreach_bundle_entry do nothing;
end
$$;

-- Removes up to p_limit entries that were written before p_created_before, of one workflow or of all.
-- Call it until it answers 0. Locks: the entries, with SKIP LOCKED. Errors: 20004 an argument is
-- missing or out of bounds.
create or replace function wf.sp_purge_bundles(
    p_created_before timestamptz, p_workflow_name text default null, p_limit integer default 1000
) returns table (
    purged_count integer
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if p_created_before is null or p_limit is null or p_limit not between 1 and 10000 then
        perform wf.wf_raise(20004, 'created_before must be a time and limit between 1 and 10000');
    end if;
    delete from wf.foreach_bundle_entry o
     where o.ctid in (
        select b.ctid
          from wf.foreach_bundle_entry b
         where b.created_at < p_created_before
           and b.workflow_name = coalesce(p_workflow_name, b.workflow_name)
         order by b.created_at
         limit p_limit
           for update skip locked);
    get diagnostics purged_count = row_count;
    return next;
end
$$;

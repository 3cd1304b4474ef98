-- How long events are kept, and the removal of those whose time is over (R33).
-- Twin: mssql/wf_event_retention.sql
--
-- An event is kept for waits that open after it came, for as long as its type says. After that no
-- wait takes it, whether it has been removed or not, so that what an instance does never depends on
-- when somebody purges.

-- How long events of a type are kept: 30 days when nobody has said otherwise.
create or replace function wf.wf_event_keep_for(p_event_type text) returns interval
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce((select t.keep_for_ms from wf.event_type t where t.event_type = p_event_type),
                    2592000000) * interval '1 millisecond'
$$;

-- Says for how long events of a type are kept; 0: only waits that are open when one comes take it.
-- Errors: 20004 an argument is missing or out of bounds.
create or replace function wf.wf_repo_upsert_event_type(
    p_event_type text, p_keep_for_seconds bigint
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform wf.wf_check_key('event_type', p_event_type);
    if p_keep_for_seconds is null or p_keep_for_seconds not between 0 and 3153600000 then
        perform wf.wf_raise(20004, 'keep_for_seconds must be between 0 and 3153600000');
    end if;
    insert into wf.event_type (event_type, keep_for_ms)
    values (p_event_type, p_keep_for_seconds * 1000)
    on conflict (event_type) do update set keep_for_ms = excluded.keep_for_ms;
end
$$;

-- Removes up to p_limit events, with their deliveries, that are older than their type is kept for and
-- that no instance which is still there has taken; the oldest first. Call it until it answers 0. An
-- event that was removed is forgotten: the same source and idempotency key are a new event then.
-- Locks: the events, with SKIP LOCKED. Errors: 20004 limit is out of bounds.
create or replace function wf.sp_purge_events(p_limit integer default 1000)
returns table (purged_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    v_now timestamptz := wf.wf_now();
    v_ids bigint[];
begin
    if p_limit is null or p_limit not between 1 and 10000 then
        perform wf.wf_raise(20004, 'limit must be between 1 and 10000');
    end if;
    v_ids := array(
        select v.event_id
          from wf.event v
         where v.ingested_at <= v_now - wf.wf_event_keep_for(v.event_type)
           -- For the index: no event that comes after the shortest time can be due.
           and v.ingested_at <= v_now - least(
                   (select min(t.keep_for_ms) from wf.event_type t), 2592000000)
                   * interval '1 millisecond'
           and not exists (
               select 1
                 from wf.event_delivery d
                 join wf.workflow_instance i on i.workflow_instance_id = d.workflow_instance_id
                where d.event_id = v.event_id and d.outcome = 'applied')
         order by v.ingested_at
         limit p_limit
           for update of v skip locked);
    delete from wf.event_delivery d where d.event_id = any (v_ids);
    delete from wf.event v where v.event_id = any (v_ids);
    return query select cardinality(v_ids);
end
$$;

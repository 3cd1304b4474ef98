-- The first step of every upgrade: routines, views, triggers and composite types go, and the files of
-- the new version bring theirs. Tables and their rows stay; a migration changes those.
--
-- Calls wait meanwhile, and those in hand are waited for, ten seconds at most: then 55P03 and nothing
-- has changed. What stands outside of schema wf and depends on its code is never dropped with it: 2BP01.
set local lock_timeout = '10s';
lock table wf.worker, wf.workflow_instance, wf.task, wf.workflow_def in access exclusive mode;
set local lock_timeout = 0;
do $$
declare
    v_name   record;
    v_things text;
begin
    for v_name in
        select t.tgname, t.tgrelid::regclass as relation
          from pg_catalog.pg_trigger t
          join pg_catalog.pg_class c on c.oid = t.tgrelid
         where c.relnamespace = 'wf'::regnamespace and not t.tgisinternal
    loop
        execute format('drop trigger %I on %s', v_name.tgname, v_name.relation);
    end loop;
    -- Each kind in one statement, so that they may depend on each other.
    select string_agg(c.oid::regclass::text, ', ') into v_things
      from pg_catalog.pg_class c
     where c.relnamespace = 'wf'::regnamespace and c.relkind = 'v';
    if v_things is not null then
        execute 'drop view ' || v_things;
    end if;
    select string_agg(p.oid::regprocedure::text, ', ') into v_things
      from pg_catalog.pg_proc p
     where p.pronamespace = 'wf'::regnamespace;
    if v_things is not null then
        execute 'drop routine ' || v_things;
    end if;
    select string_agg(c.oid::regclass::text, ', ') into v_things
      from pg_catalog.pg_class c
     where c.relnamespace = 'wf'::regnamespace and c.relkind = 'c';
    if v_things is not null then
        execute 'drop type ' || v_things;
    end if;
end
$$;

-- The runtime's version, and what guards its settings. Twin: mssql/wf_settings.sql

-- The version of the runtime in this database. Clients ask when they connect.
create or replace function wf.wf_runtime_version() returns integer
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select max(v.version) from wf.schema_version v
$$;

-- A name of this database that it keeps for good, also in a backup: when it was first installed.
-- Trace ids are made of it and the instance's id, so that those of two databases differ.
create or replace function wf.wf_database_id() returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select to_char(min(v.installed_at) at time zone 'UTC', 'YYYYMMDD"T"HH24MISSUS')
      from wf.schema_version v
$$;

-- Refuses a runtime older than p_version; every deploy script calls it first. Errors: 20006.
create or replace function wf.wf_require_runtime(p_version integer) returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if p_version is null or wf.wf_runtime_version() < p_version then
        perform wf.wf_raise(20006, format(
            'this script needs runtime version %s, the database has %s', p_version,
            wf.wf_runtime_version()));
    end if;
end
$$;

-- Refuses to move the clock outside of a test database (R22): one that was installed as such has the
-- row `test_database`. Errors: 20008.
create or replace function wf.wf_guard_setting() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if new.name = 'now' and not exists (
        select 1 from wf.wf_setting s where s.name = 'test_database')
    then
        perform wf.wf_raise(20008, 'the clock moves in a test database only');
    end if;
    return new;
end
$$;

create or replace trigger tr_wf_setting_guard before insert or update on wf.wf_setting
    for each row execute function wf.wf_guard_setting();

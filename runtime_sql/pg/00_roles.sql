-- The roles, the schema, and as whom the rest is installed. Twin: mssql/00_roles.sql
--
-- Roles belong to the whole server, so they are made when they are missing and never dropped. All
-- objects belong to wf_owner, which nobody can log in as; the installing login becomes a member of
-- it. With the setting `wf.roles` at 'none', or the row `roles` of wf.wf_setting from an earlier
-- installation, no role is used and everything belongs to the installing login. What version 1 left
-- to the installing login is handed over to wf_owner.
-- Errors: 42501 the login may not make a role that is missing, or may not act as wf_owner.
do $$
declare
    v_role  text;
    v_table regclass;
    v_mode  text := case when current_setting('server_version_num')::integer >= 160000
                         then 'SET' else 'MEMBER' end;
    v_found boolean := false;
begin
    if coalesce(current_setting('wf.roles', true), '') = ''
       and to_regclass('wf.wf_setting') is not null
    then
        execute 'select exists (select 1 from wf.wf_setting s where s.name = ''roles'''
                ' and s.value = ''none'')' into v_found;
        if v_found then
            perform set_config('wf.roles', 'none', true);
        end if;
    end if;
    if current_setting('wf.roles', true) = 'none' and not exists (
        select 1
          from pg_catalog.pg_namespace n
          join pg_catalog.pg_roles r on r.oid = n.nspowner
         where n.nspname = 'wf' and r.rolname = 'wf_owner')
    then
        create schema if not exists wf;
        return;
    end if;
    foreach v_role in array '{wf_owner,wf_author,wf_gateway,wf_operator,wf_reader}'::text[] loop
        continue when exists (select 1 from pg_catalog.pg_roles r where r.rolname = v_role);
        begin
            execute format('create role %I nologin', v_role);
        exception
            -- An installation into another database of this server was quicker.
            when duplicate_object or unique_violation then null;
            when insufficient_privilege then
                raise exception using errcode = '42501',
                    message = format('this login may not create the role %s', v_role),
                    hint = 'let an administrator create it, or install without roles';
        end;
    end loop;
    if not pg_has_role('wf_owner', v_mode) then
        begin
            execute format('grant wf_owner to %I', current_user);
        exception
            when duplicate_object or unique_violation then null;
            when insufficient_privilege then
                raise exception using errcode = '42501',
                    message = 'this login may not act as the role wf_owner',
                    hint = format('let an administrator run: grant wf_owner to %I', current_user);
        end;
    end if;
    create schema if not exists wf authorization wf_owner;
    if not exists (select 1 from pg_catalog.pg_namespace n
                    where n.nspname = 'wf' and n.nspowner = 'wf_owner'::regrole) then
        -- The new owner of a schema must be allowed to create one.
        v_found := has_database_privilege('wf_owner', current_database(), 'create');
        if not v_found then
            execute format('grant create on database %I to wf_owner', current_database());
        end if;
        alter schema wf owner to wf_owner;
        if not v_found then
            execute format('revoke create on database %I from wf_owner', current_database());
        end if;
        for v_table in
            select c.oid::regclass from pg_catalog.pg_class c
             where c.relnamespace = 'wf'::regnamespace and c.relkind in ('r', 'p')
        loop
            execute format('alter table %s owner to wf_owner', v_table);
        end loop;
    end if;
    perform set_config('role', 'wf_owner', true);
end
$$;

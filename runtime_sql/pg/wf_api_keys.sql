-- Keys for those who are no workers, enrolment with such a key, and the life of workers' tokens (R26).
-- Twin: mssql/wf_api_keys.sql
--
-- A key is `wf_<id>_<43 base64url characters>`, made by the client. Its 256 random bits need no slow
-- hash: what is kept is SHA-256 over a salt and the whole key. It is found by its id and compared over
-- the whole digest, so no prefix leaks. The text of a key is in no row, view or message.

-- Adds a key. p_roles is a list of author, operator, reader, event_source and enroll. event_source
-- needs the one source and the event types that it may send; enroll needs the capabilities that it may
-- give to workers (`*`: any). p_name is for people: one live key has it.
-- Locks: the key's row. Errors: 20004 an argument is out of bounds, or a role lacks what it needs;
-- 20010 the id or the name is in use.
create or replace function wf.sp_create_api_key(
    p_key text, p_name text, p_roles text[], p_source text default null,
    p_event_types text[] default null, p_capabilities text[] default null,
    p_expires_at timestamptz default null
) returns table (key_id text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_now  timestamptz := wf.wf_now();
    v_salt bytea := uuid_send(gen_random_uuid());
    v_id   text := wf.wf_api_key_id(p_key);
begin
    if v_id is null then
        perform wf.wf_raise(20004,
            'key must be wf_, 8 to 40 lower-case letters or digits, _ and 43 base64url characters');
    end if;
    perform wf.wf_check_key('name', p_name);
    perform wf.wf_check_key_scope(p_roles, p_source, p_event_types, p_capabilities);
    if p_expires_at <= v_now then
        perform wf.wf_raise(20004, 'expires_at must be in the future');
    end if;
    insert into wf.api_key (key_id, name, roles, source, event_types, capabilities, salt, key_hash,
                            created_at, expires_at)
    values (v_id, p_name, wf.wf_sorted(p_roles), p_source, wf.wf_sorted(p_event_types),
            wf.wf_sorted(p_capabilities), v_salt, sha256(v_salt || convert_to(p_key, 'UTF8')), v_now,
            p_expires_at)
    on conflict do nothing;
    if not found then
        perform wf.wf_raise(20010, 'a key with this id, or a live one with this name, is there');
    end if;
    return query select v_id;
end
$$;

-- The id within a key; null when the text has not the form of one.
create or replace function wf.wf_api_key_id(p_key text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select substring(p_key from '^wf_([a-z0-9]{8,40})_[A-Za-z0-9_-]{43}$')
$$;

-- A list without repeats, in order; a list that is missing is empty.
create or replace function wf.wf_sorted(p_list text[]) returns text[]
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select array(select distinct u from unnest(p_list) u order by u)
$$;

-- Refuses, with 20004, roles that are unknown and what does not go with them.
create or replace function wf.wf_check_key_scope(
    p_roles text[], p_source text, p_event_types text[], p_capabilities text[]
) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if p_roles is null or cardinality(p_roles) = 0
       or not p_roles <@ '{author,operator,reader,event_source,enroll}'::text[] then
        perform wf.wf_raise(20004,
            'roles must be one or more of author, operator, reader, event_source and enroll');
    end if;
    if ('event_source' = any (p_roles)) is distinct from (p_source is not null)
       or ('event_source' = any (p_roles))
          is distinct from (coalesce(cardinality(p_event_types), 0) > 0) then
        perform wf.wf_raise(20004, 'the role event_source, and no other, has a source and event types');
    end if;
    if ('enroll' = any (p_roles)) is distinct from (coalesce(cardinality(p_capabilities), 0) > 0) then
        perform wf.wf_raise(20004, 'the role enroll, and no other, has capabilities');
    end if;
    if p_source is not null then
        perform wf.wf_check_key('source', p_source);
    end if;
    perform wf.wf_check_key('event_type', u) from unnest(p_event_types) u;
    perform wf.wf_check_key('capability', u) from unnest(p_capabilities) u;
end
$$;

-- Ends a key for good. Revoking it again changes nothing. A gateway may remember for 30 seconds that
-- the key was good. Locks: the key's row. Errors: 20002 unknown key.
create or replace function wf.sp_revoke_api_key(p_key_id text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update wf.api_key k set revoked_at = coalesce(k.revoked_at, wf.wf_now())
     where k.key_id = p_key_id;
    if not found then
        perform wf.wf_raise(20002, format('there is no key %s', left(p_key_id, 200)));
    end if;
end
$$;

-- What the owner of a key may do. Says the same whether the key is unknown, expired or revoked.
-- Errors: 20001.
create or replace function wf.wf_api_key_authenticate(p_key text)
returns table (key_id text, name text, roles text[], source text, event_types text[],
               capabilities text[], expires_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
    select k.key_id, k.name, k.roles, k.source, k.event_types, k.capabilities, k.expires_at
      from wf.api_key k
     where k.key_id = wf.wf_api_key_id(p_key)
       and k.revoked_at is null
       and (k.expires_at is null or k.expires_at > wf.wf_now())
       and k.key_hash = sha256(k.salt || convert_to(p_key, 'UTF8'));
    if not found then
        perform wf.wf_raise(20001, 'the key is not known or not valid any more');
    end if;
end
$$;

-- Registers a worker, or renews it, on behalf of the owner of an enrolment key. Neither what the
-- worker asks for nor what it had may go beyond the key's capabilities, so that nobody takes over a
-- worker of another kind. Locks: the worker's row, then as sp_register_worker.
-- Errors: 20001; 20004 an argument is out of bounds; 20008 the key may not do that.
create or replace function wf.sp_enroll_worker(
    p_key text, p_worker_id text, p_worker_token text, p_capabilities text[],
    p_max_concurrency integer default 1
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_key record;
    v_had text[];
begin
    select a.roles, a.capabilities into v_key from wf.wf_api_key_authenticate(p_key) a;
    if 'enroll' <> all (v_key.roles) then
        perform wf.wf_raise(20008, 'the key may not enroll workers');
    end if;
    if coalesce(cardinality(p_capabilities), 0) = 0 then
        perform wf.wf_raise(20004, 'capabilities must name at least one');
    end if;
    perform 1 from wf.worker w where w.worker_id = p_worker_id for update;
    v_had := array(select c.capability from wf.worker_capability c where c.worker_id = p_worker_id);
    if '*' <> all (v_key.capabilities) and not p_capabilities <@ v_key.capabilities then
        perform wf.wf_raise(20008, 'the key may not give these capabilities');
    end if;
    if '*' <> all (v_key.capabilities) and not v_had <@ v_key.capabilities then
        perform wf.wf_raise(20008, 'a worker of this name has capabilities that the key may not give');
    end if;
    perform wf.sp_register_worker(p_worker_id, p_worker_token, p_capabilities, p_max_concurrency);
end
$$;

-- Says when the tokens of a worker end; null: never. With p_token_id that one alone.
-- Locks: the tokens' rows. Errors: 20002 unknown worker, or it has no such live token.
create or replace function wf.sp_set_worker_token_expiry(
    p_worker_id text, p_expires_at timestamptz, p_token_id text default null
) returns table (token_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update wf.worker_token t set expires_at = p_expires_at
     where t.worker_id = p_worker_id and t.token_id = coalesce(p_token_id, t.token_id)
       and t.revoked_at is null;
    get diagnostics token_count = row_count;
    if token_count = 0 then
        perform wf.wf_raise(20002, format('there is no such live token of worker %s',
                                          left(p_worker_id, 200)));
    end if;
    return next;
end
$$;

-- Ends the tokens of a worker for good; with p_token_id that one alone. What the worker has in hand
-- stays leased until its time runs out. Locks: the tokens' rows. Errors: as sp_set_worker_token_expiry.
create or replace function wf.sp_revoke_worker_token(
    p_worker_id text, p_token_id text default null
) returns table (token_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update wf.worker_token t set revoked_at = wf.wf_now()
     where t.worker_id = p_worker_id and t.token_id = coalesce(p_token_id, t.token_id)
       and t.revoked_at is null;
    get diagnostics token_count = row_count;
    if token_count = 0 then
        perform wf.wf_raise(20002, format('there is no such live token of worker %s',
                                          left(p_worker_id, 200)));
    end if;
    return next;
end
$$;

-- One row per key, without what would let anybody use it.
create view wf.v_api_key as
select k.key_id, k.name, k.roles, k.source, k.event_types, k.capabilities, k.created_at, k.expires_at,
       k.revoked_at,
       k.revoked_at is null and (k.expires_at is null or k.expires_at > wf.wf_now()) as is_live
  from wf.api_key k;

-- One row per token of a worker, by its id.
create view wf.v_worker_token as
select t.worker_id, t.token_id, t.created_at, t.expires_at, t.revoked_at,
       t.revoked_at is null and (t.expires_at is null or t.expires_at > wf.wf_now()) as is_live
  from wf.worker_token t;

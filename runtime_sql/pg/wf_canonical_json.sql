-- Canonical JSON (R35): one text for one value, so that a hash over it means the same in SQL and in
-- Python. Twin: mssql/wf_canonical_json.sql
--
-- The text is ASCII: no blanks, every other character as \uXXXX (lower case, two of them above
-- U+FFFF), the two-character escapes only for " \ \b \f \n \r \t. The keys of an object are sorted by
-- the bytes of their escaped form, quotes included. Numbers are plain decimals without trailing zeros
-- of a fraction; these stay where 1 and 1.0 must not be one text (p_is_exact).
-- compiler/json_values.py (`canonical`) writes the same.

-- Replaces what is not ASCII in a JSON text by escapes; outside of its strings there is nothing to
-- replace. Most texts have nothing and are answered as they are.
create or replace function wf.wf_ascii_json(p_json text) returns text
language sql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
    select case when p_json ~ '[^\x01-\x7e]' then (
        select string_agg(case
                   when c.point < 127 then c.letter
                   when c.point < 65536 then '\u' || lpad(to_hex(c.point), 4, '0')
                   else '\u' || to_hex(55296 + ((c.point - 65536) >> 10))
                        || '\u' || to_hex(56320 + ((c.point - 65536) & 1023)) end,
                   '' order by c.position)
          from (select l.letter, l.position, ascii(l.letter) as point
                  from unnest(string_to_array(p_json, null)) with ordinality l(letter, position)) c)
        else p_json end
$$;

-- The canonical JSON of a value; null (SQL) for null. Pure, and never raises.
--
-- Every value gets a sort key, the ranks on the way to it, four bytes each; a container that is not
-- empty gets a second one after all of its content, for its closing bracket. The text is then all
-- pieces in the order of their keys: no step of it works on one value at a time.
create or replace function wf.wf_canonical_json(
    p_value jsonb, p_is_exact boolean default false
) returns text
language sql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
    with recursive walk(place, lead, kind, value) as (
        select ''::bytea, ''::text, jsonb_typeof(p_value), p_value
        union all
        select w.place || int4send(c.rank), case when c.rank > 1 then ',' || c.lead else c.lead end,
               jsonb_typeof(c.value), c.value
          from walk w
         cross join lateral (
            select (row_number() over (order by k.name collate "C"))::integer as rank,
                   k.name || ':' as lead, e.value
              from jsonb_each(case when w.kind = 'object' then w.value end) e
             cross join lateral (
                select wf.wf_ascii_json(to_jsonb(e.key)::text) as name offset 0) k
            union all
            select e.position::integer, '', e.value
              from jsonb_array_elements(case when w.kind = 'array' then w.value end)
                   with ordinality e(value, position)) c
         where w.kind in ('object', 'array')
    ), pieces(place, piece) as (
        select w.place, w.lead || case
                   when w.value = '{}' then '{}'
                   when w.value = '[]' then '[]'
                   when w.kind = 'object' then '{'
                   when w.kind = 'array' then '['
                   when w.kind = 'number' and not p_is_exact then trim_scale(w.value::numeric)::text
                   else w.value::text end
          from walk w
        union all
        select w.place || '\xff'::bytea, case w.kind when 'object' then '}' else ']' end
          from walk w
         where w.kind in ('object', 'array') and w.value not in ('{}', '[]')
    )
    select wf.wf_ascii_json(string_agg(p.piece, '' order by p.place)) from pieces p
$$;

-- SHA-256 of the canonical JSON of a value, as 64 lower-case hex digits.
create or replace function wf.wf_json_sha256(
    p_value jsonb, p_is_exact boolean default false
) returns text
language sql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
    select encode(sha256(convert_to(wf.wf_canonical_json(p_value, p_is_exact), 'UTF8')), 'hex')
$$;

"""Reads what a live PostgreSQL database has in schema wf.

Two queries for routines (a row for each, a row for each argument), one for relations, and others
for rights and owners. The connection is the caller's, and so is its transaction.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from runtime_sql.contract.model import ROLES, Field, Relation, Routine, Schema
from runtime_sql.contract.sql_files import plain_default, plain_type

if TYPE_CHECKING:
    import psycopg

_ROUTINES = """
select p.oid::bigint, p.proname::text,
       case p.prokind when 'p' then 'procedure' when 'f' then 'function' else 'aggregate' end,
       case when p.proretset then 'setof ' else '' end
           || pg_catalog.format_type(p.prorettype, null)
  from pg_catalog.pg_proc as p
 where p.pronamespace = to_regnamespace('wf')
 order by p.proname, p.oid
"""
_ARGUMENTS = """
select p.oid::bigint, coalesce(p.proargmodes[a.position], 'i')::text,
       coalesce(p.proargnames[a.position], ''), pg_catalog.format_type(a.type, null),
       case when coalesce(p.proargmodes[a.position], 'i') in ('i', 'b', 'v')
            then pg_catalog.pg_get_function_arg_default(p.oid, a.position::integer) end
  from pg_catalog.pg_proc as p
 cross join lateral unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]))
       with ordinality as a (type, position)
 where p.pronamespace = to_regnamespace('wf')
 order by p.oid, a.position
"""
_RELATIONS = """
select c.relname::text, case c.relkind when 'v' then 'view' when 'm' then 'materialized view'
                                       when 'f' then 'foreign table' else 'table' end,
       a.attname::text, pg_catalog.format_type(a.atttypid, null), not a.attnotnull
  from pg_catalog.pg_class as c
  left join pg_catalog.pg_attribute as a
    on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
 where c.relnamespace = to_regnamespace('wf') and c.relkind in ('r', 'p', 'v', 'm', 'f')
 order by c.relname, a.attnum
"""
# Owners need no grant. MAINTAIN (from 17 on) is for vacuum and reads nothing.
_RIGHTS = """
select x.grantee, x.name, lower(x.word)
  from (
    select case a.grantee when 0 then 'PUBLIC' else a.grantee::regrole::text end as grantee,
           p.proname::text as name, a.privilege_type as word
      from pg_catalog.pg_proc as p
     cross join lateral pg_catalog.aclexplode(
           coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) as a
     where p.pronamespace = to_regnamespace('wf') and a.grantee <> p.proowner
    union all
    select case a.grantee when 0 then 'PUBLIC' else a.grantee::regrole::text end,
           c.relname::text, a.privilege_type
      from pg_catalog.pg_class as c
      left join pg_catalog.pg_attribute as t
        on t.attrelid = c.oid and t.attacl is not null and not t.attisdropped
     cross join lateral (
        select (pg_catalog.aclexplode(c.relacl)).*
        union all
        select (pg_catalog.aclexplode(t.attacl)).*) as a
     where c.relnamespace = to_regnamespace('wf') and a.grantee <> c.relowner
  ) as x
 where x.grantee = any (%s) and x.word <> 'MAINTAIN'
"""
_USES_ROLES = """
select exists (select 1 from pg_catalog.pg_namespace as n
                where n.nspname = 'wf' and n.nspowner::regrole::text = 'wf_owner')
"""
_FAULTS = """
select 'wf', 'schema wf: PUBLIC has ' || lower(a.privilege_type)
  from pg_catalog.pg_namespace as n
 cross join lateral pg_catalog.aclexplode(n.nspacl) as a
 where n.nspname = 'wf' and a.grantee = 0
union all
select p.proname::text, 'function ' || p.proname || ': security definer without a search_path'
  from pg_catalog.pg_proc as p
 where p.pronamespace = to_regnamespace('wf') and p.prosecdef
   and not exists (select 1 from unnest(p.proconfig) as s (setting)
                    where s.setting in ('search_path=pg_catalog, pg_temp', 'search_path=""'))
union all
select o.name, o.name || ': belongs to ' || o.owner || ', not to ' || n.nspowner::regrole::text
  from pg_catalog.pg_namespace as n
  join (select p.pronamespace as namespace, p.proname::text as name, p.proowner as owner_id,
               p.proowner::regrole::text as owner
          from pg_catalog.pg_proc as p
        union all
        select c.relnamespace, c.relname::text, c.relowner, c.relowner::regrole::text
          from pg_catalog.pg_class as c
         where c.relkind in ('r', 'p', 'v', 'S')) as o
    on o.namespace = n.oid and o.owner_id <> n.nspowner
 where n.nspname = 'wf'
 order by 1, 2
"""
_INPUT = frozenset("ibv")
_OUTPUT = frozenset("obt")


def read_catalogue(connection: psycopg.Connection[Any]) -> Schema:
    """Returns what schema wf of a database holds; an empty schema when there is none."""
    arguments = defaultdict(list)
    for oid, *argument in connection.execute(_ARGUMENTS).fetchall():
        arguments[oid].append(argument)
    routines: dict[str, tuple[Routine, ...]] = {}
    for oid, name, kind, returns in connection.execute(_ROUTINES).fetchall():
        routine = _routine(kind, plain_type(returns), arguments[oid])
        routines[name] = (*routines.get(name, ()), routine)
    faults = tuple(connection.execute(_FAULTS).fetchall())
    uses_roles = connection.execute(_USES_ROLES).fetchone() == (True,)
    return Schema(routines, _relations(connection), _rights(connection), uses_roles, faults)


def _rights(connection: psycopg.Connection[Any]) -> dict[tuple[str, str], frozenset[str]]:
    """Returns what PUBLIC and the runtime's roles were granted."""
    rights: dict[tuple[str, str], frozenset[str]] = {}
    for role, name, word in connection.execute(_RIGHTS, ([*ROLES, "PUBLIC"],)).fetchall():
        rights[role, name] = rights.get((role, name), frozenset()) | {word}
    return rights


def _routine(kind: str, returns: str, arguments: list[list[Any]]) -> Routine:
    parameters = tuple(
        Field(
            name.removeprefix("p_"),
            plain_type(type_),
            default=None if default is None else plain_default(default),
        )
        for mode, name, type_, default in arguments
        if mode in _INPUT
    )
    columns = tuple(
        Field(name, plain_type(type_)) for mode, name, type_, _ in arguments if mode in _OUTPUT
    )
    return Routine(kind, parameters, columns, None if columns or returns == "void" else returns)


def _relations(connection: psycopg.Connection[Any]) -> dict[str, Relation]:
    kinds: dict[str, str] = {}
    columns = defaultdict(list)
    for name, kind, column, type_, nullable in connection.execute(_RELATIONS).fetchall():
        kinds[name] = kind
        if column is not None:
            known = nullable if kind == "table" else None
            columns[name].append(Field(column, plain_type(type_), known))
    return {name: Relation(kind, tuple(columns[name])) for name, kind in kinds.items()}

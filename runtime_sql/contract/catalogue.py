"""Reads what a live PostgreSQL database has in schema wf.

Two queries for routines (a row for each, a row for each argument) and one for relations. The
connection is the caller's, and so is its transaction.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from runtime_sql.contract.model import Field, Relation, Routine, Schema
from runtime_sql.contract.sql_files import plain_default, plain_type

if TYPE_CHECKING:
    import psycopg

_ROUTINES = """
select p.oid::bigint, p.proname::text,
       case p.prokind when 'p' then 'procedure' when 'f' then 'function' else 'aggregate' end,
       case when p.proretset then 'setof ' else '' end
           || pg_catalog.format_type(p.prorettype, null),
       exists (select 1
                 from pg_catalog.aclexplode(
                          coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) as x
                where x.grantee = 0 and x.privilege_type = 'EXECUTE')
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
_INPUT = frozenset("ibv")
_OUTPUT = frozenset("obt")


def read_catalogue(connection: psycopg.Connection[Any]) -> Schema:
    """Returns what schema wf of a database holds; an empty schema when there is none."""
    arguments = defaultdict(list)
    for oid, *argument in connection.execute(_ARGUMENTS).fetchall():
        arguments[oid].append(argument)
    routines: dict[str, tuple[Routine, ...]] = {}
    open_to_public = set()
    for oid, name, kind, returns, is_open in connection.execute(_ROUTINES).fetchall():
        routine = _routine(kind, plain_type(returns), arguments[oid])
        routines[name] = (*routines.get(name, ()), routine)
        if is_open:
            open_to_public.add(name)
    return Schema(routines, _relations(connection), frozenset(open_to_public))


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

"""Reads what a live SQL Server database has in schema wf.

What a procedure's result set looks like is not in the catalogue; parameters and columns are.
"""

from __future__ import annotations

from collections import defaultdict

from runtime_sql.contract.model import Field, Relation, Routine, Schema
from runtime_sql.mssql_driver import MssqlConnection

_OBJECTS = """
select o.name, case rtrim(o.type) when 'P' then 'procedure' when 'V' then 'view'
                                  when 'U' then 'table' else 'function' end
  from sys.objects as o
 where o.schema_id = schema_id(N'wf') and o.type in ('P', 'V', 'U', 'FN', 'IF', 'TF')
 order by o.name;"""
_PARAMETERS = """
select o.name, p.name, t.name, cast(p.is_output as int)
  from sys.objects as o
  join sys.parameters as p on p.object_id = o.object_id
  join sys.types as t on t.user_type_id = p.user_type_id
 where o.schema_id = schema_id(N'wf') and p.parameter_id > 0
 order by o.name, p.parameter_id;"""
_COLUMNS = """
select o.name, c.name, t.name, cast(c.is_nullable as int), cast(c.is_computed as int)
  from sys.objects as o
  join sys.columns as c on c.object_id = o.object_id
  join sys.types as t on t.user_type_id = c.user_type_id
 where o.schema_id = schema_id(N'wf') and o.type in ('V', 'U')
 order by o.name, c.column_id;"""


def read_mssql_catalogue(connection: MssqlConnection) -> Schema:
    """Returns what schema wf of a database holds; an empty schema when there is none."""
    given: dict[str, list[Field]] = defaultdict(list)
    answered: dict[str, list[Field]] = defaultdict(list)
    for name, parameter, type_, is_output in connection.rows(_PARAMETERS):
        into = answered if is_output else given
        into[name].append(Field(parameter.removeprefix("@"), type_))
    columns: dict[str, list[Field]] = defaultdict(list)
    for name, column, type_, is_nullable, is_computed in connection.rows(_COLUMNS):
        columns[name].append(Field(column, None if is_computed else type_, bool(is_nullable)))
    routines: dict[str, tuple[Routine, ...]] = {}
    relations: dict[str, Relation] = {}
    for name, kind in connection.rows(_OBJECTS):
        if kind == "table":
            relations[name] = Relation(kind, tuple(columns[name]))
        elif kind == "view":
            # Whether a view's column may be null follows from its tables.
            plain = tuple(Field(column.name, None) for column in columns[name])
            relations[name] = Relation(kind, plain)
        else:
            routines[name] = (Routine(kind, tuple(given[name]), tuple(answered[name]), None),)
    return Schema(routines, relations)

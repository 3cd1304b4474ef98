"""What the dialects of a deploy script have in common, and where they differ.

A dialect is one frozen value: two names, two literal makers and a few choices. The statements
themselves are sqlglot trees built here once:

    insert into wf.<table> (…)
    select …, r.<column>, …
    from (values …) as r(…)
    <the definition or version that the rows belong to>
    <only what is not there yet>
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from compiler.emit.plan import Cell, Column, DeployPlan, Row, Table

# Characters that a reader or an editor does not see as they are: controls, line ends, direction
# marks, zero-width ones. None of them ever stands in a script; all lie below U+10000.
INVISIBLE = re.compile(
    "([\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """`cast_types` gives the SQL type by column kind of columns whose rows do not tell it (text
    and untyped nulls); `has_on_conflict` says how a row that is there already is passed over."""

    name: str
    sqlglot_name: str
    text: Callable[[str], exp.Expr]
    json: Callable[[str], exp.Expr]
    boolean: Callable[[bool], exp.Expr]
    cast_types: dict[str, str]
    has_on_conflict: bool
    max_rows: int | None


def cell_literal(dialect: Dialect, column: Column, cell: Cell) -> exp.Expr:
    """Returns the literal of one cell."""
    if cell is None:
        return exp.null()
    if isinstance(cell, bool):
        return dialect.boolean(cell)
    if isinstance(cell, int):
        return exp.Literal.number(cell)
    return dialect.json(cell) if column.kind == "json" else dialect.text(cell)


def row_tuple(dialect: Dialect, table: Table, row: Row) -> exp.Tuple:
    """Returns `(literal, literal, …)`."""
    pairs = zip(table.columns, row, strict=True)
    return exp.Tuple(expressions=[cell_literal(dialect, column, cell) for column, cell in pairs])


def _typed(dialect: Dialect, column: Column) -> exp.Expr:
    reference = exp.column(column.name, table="r")
    to = dialect.cast_types.get(column.kind)
    return reference if to is None else exp.cast(reference, to, dialect=dialect.sqlglot_name)


def _owner_id(table: Table) -> list[exp.Expr]:
    match table.owner:
        case "shared":
            return []
        case "definition":
            return [exp.column("workflow_def_id", table="d")]
        case "version":
            return [exp.column("workflow_version_id", table="v")]


def _alias(table: str, alias: str) -> exp.Table:
    return exp.table_(table, db="wf", alias=alias)


def _join_owner(select: exp.Select, dialect: Dialect, table: Table, plan: DeployPlan) -> exp.Select:
    if table.owner == "shared":
        return select
    name = dialect.text(plan.name)
    select = select.join(
        _alias("workflow_def", "d"), on=exp.column("name", table="d").eq(name), copy=False
    )
    if table.owner == "definition":
        return select
    version = exp.and_(
        exp.column("workflow_def_id", table="v").eq(exp.column("workflow_def_id", table="d")),
        exp.column("content_hash", table="v").eq(dialect.text(plan.content_hash)),
    )
    select = select.join(_alias("workflow_version", "v"), on=version, copy=False)
    return select.where(exp.column("published_at", table="v").is_(exp.null()), copy=False)


def _absent(table: Table) -> exp.Expr:
    """`not exists (…)`: no row with this key is there."""
    source = {c.name: "r" for c in table.columns}
    same = exp.and_(
        *(
            exp.column(name, table="x").eq(exp.column(name, table=source.get(name, "d")))
            for name in table.key
        )
    )
    found = exp.select("1").from_(_alias(table.name, "x")).where(same)
    return exp.not_(exp.Exists(this=found))


def build_insert(
    dialect: Dialect, plan: DeployPlan, table: Table, rows: Sequence[Row]
) -> exp.Insert:
    """Builds the statement that inserts `rows`, or none of them on a second run."""
    names = [column.name for column in table.columns]
    values = exp.Values(
        expressions=[row_tuple(dialect, table, row) for row in rows],
        alias=exp.TableAlias(
            this=exp.to_identifier("r"), columns=[exp.to_identifier(name) for name in names]
        ),
    )
    owner = _owner_id(table)
    select = exp.select(*owner, *(_typed(dialect, column) for column in table.columns))
    select = _join_owner(select.from_(values, copy=False), dialect, table, plan)
    conflict = None
    if table.key and dialect.has_on_conflict:
        keys = [exp.to_identifier(name) for name in table.key]
        conflict = exp.OnConflict(conflict_keys=keys, action=exp.var("DO NOTHING"))
    elif table.key:
        select = select.where(_absent(table), copy=False)
    if table.order_by is not None:
        select = select.order_by(exp.column(table.order_by, table="r"), copy=False)
    target = exp.Schema(
        this=exp.to_table(f"wf.{table.name}"),
        expressions=[exp.to_identifier(c.name) for c in owner]
        + [exp.to_identifier(n) for n in names],
    )
    return exp.Insert(this=target, expression=select, conflict=conflict)


__all__ = ["INVISIBLE", "Dialect", "build_insert", "cell_literal", "row_tuple"]

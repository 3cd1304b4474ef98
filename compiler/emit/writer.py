"""The text of a deploy script: sqlglot trees written in the house format.

Keywords are lower case, each clause starts a line, each row of VALUES has a line of its own, so
that a diff of two scripts is a diff of rows. sqlglot's generator writes every literal and every
name; this module only chooses where lines end. It relies on two things that the literal makers of
the dialects hold to: no string literal contains a line end, and no name needs quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as SqlglotDialect

from compiler.emit.base import Dialect, build_insert
from compiler.emit.plan import DeployPlan, TableRows

_LITERAL = re.compile(r"(N?'[^']*(?:''[^']*)*')")
_ONE_LINE = re.compile(r"(N?'[^']*(?:''[^']*)*'|exists\([^()]*\))")
_CLAUSE = re.compile(r" (?=(?:select|from|join|where|order by|on conflict)\b)")
_COMMENT_UNSAFE = re.compile(r"[^A-Za-z0-9_./-]")


def comment(label: str, value: str) -> str:
    """Returns a comment line; no character of `value` can end it or look like anything else."""
    return f"-- {label}: {_COMMENT_UNSAFE.sub('_', value)}"


def to_sql(tree: exp.Expr, sqlglot_name: str) -> str:
    """Writes a tree on one line, keywords in lower case, literals untouched."""
    generator = SqlglotDialect.get_or_raise(sqlglot_name).generator()
    parts = _LITERAL.split(generator.generate(tree, copy=False))
    return "".join(part if index % 2 else part.lower() for index, part in enumerate(parts))


def _broken(sql: str) -> str:
    """Starts a line at each clause outside literals and subqueries."""
    parts = _ONE_LINE.split(sql)
    return "".join(
        part if index % 2 else _CLAUSE.sub("\n", part) for index, part in enumerate(parts)
    )


def write_insert(insert: exp.Insert, sqlglot_name: str) -> str:
    """Writes `insert … select … from (values …)`, one row per line. Consumes the tree."""
    values = insert.find(exp.Values)
    assert values is not None
    rows = [to_sql(row, sqlglot_name) for row in values.expressions]
    # The rows are written apart from the frame around them; a mark holds their place.
    values.set("expressions", [exp.Tuple(expressions=[exp.Literal.string("rows")])])
    head, tail = to_sql(insert, sqlglot_name).split("('rows')")
    lines = ",\n".join(f"  {row}" for row in rows)
    return f"{_broken(head).rstrip()}\n{lines}\n{_broken(tail)};"


def write_inserts(dialect: Dialect, plan: DeployPlan) -> Iterator[str]:
    """Writes every insert of a plan, in more than one statement where the dialect limits rows."""
    for insert in plan.inserts:
        for part in _parts(insert, dialect.max_rows):
            tree = build_insert(dialect, plan, insert.table, part.rows)
            yield write_insert(tree, dialect.sqlglot_name)


def _parts(insert: TableRows, max_rows: int | None) -> Iterator[TableRows]:
    step = max_rows or len(insert.rows)
    for start in range(0, len(insert.rows), step):
        yield TableRows(table=insert.table, rows=insert.rows[start : start + step])


def header(dialect: Dialect, plan: DeployPlan) -> str:
    """Returns the comment lines that a script starts with."""
    return "\n".join(
        (
            comment("workflow", plan.name),
            comment("content", plan.content_hash),
            comment("dialect", dialect.name),
            comment("spec_format", str(plan.spec_format)),
        )
    )


__all__ = ["comment", "header", "to_sql", "write_insert", "write_inserts"]

"""Reads an emitted script back: statements by line ends, rows by sqlglot's parser."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp

from compiler import json_values
from compiler.emit.plan import DeployPlan

Rows = dict[str, list[dict[str, Any]]]


def statements(script: str) -> list[str]:
    """Splits a script where a line ends in a semicolon: no literal contains a line end."""
    lines = [line for line in script.split("\n") if line != "GO" and not line.startswith("-- ")]
    parts = ("\n".join(lines) + "\n").split(";\n")
    return [part.strip() for part in parts if part.strip()]


def parsed_inserts(script: str, dialect: str) -> list[exp.Insert]:
    """Parses every insert of a script; anything sqlglot only half understands is an error."""
    found = []
    for statement in statements(script):
        if statement.startswith("insert into"):
            tree = sqlglot.parse_one(statement, read=dialect)
            assert isinstance(tree, exp.Insert), statement
            assert tree.find(exp.Command) is None
            found.append(tree)
    return found


def value(tree: exp.Expr) -> Any:
    """Evaluates a literal."""
    texts: list[str] = []
    pending = [tree]
    while pending:
        item = pending.pop()
        match item:
            case exp.Add() | exp.DPipe():
                pending.extend((item.expression, item.this))
            case exp.Cast():
                pending.append(item.this)
            case exp.Chr():
                texts.append(chr(int(item.expressions[0].this)))
            case exp.Anonymous():
                assert item.name.lower() == "nchar"
                texts.append(chr(int(item.expressions[0].this)))
            case exp.National():
                texts.append(item.this)
            case exp.Literal() if item.is_string:
                texts.append(item.this)
            case exp.Literal():
                return int(item.this)
            case exp.Boolean():
                return bool(item.this)
            case exp.Null():
                return None
            case _:
                raise AssertionError(f"no literal: {item!r}")
    return "".join(texts)


def rows_of(script: str, dialect: str) -> Rows:
    """Returns the rows that a script inserts, by table."""
    result: Rows = {}
    for insert in parsed_inserts(script, dialect):
        values = insert.find(exp.Values)
        assert values is not None
        names = [column.name for column in values.args["alias"].args["columns"]]
        rows = result.setdefault(insert.this.this.name, [])
        for row in values.expressions:
            rows.append(dict(zip(names, (value(cell) for cell in row.expressions), strict=True)))
    return result


def planned_rows(plan: DeployPlan) -> Rows:
    """Returns the rows of a plan in the same shape."""
    return {
        insert.table.name: [
            dict(zip((c.name for c in insert.table.columns), row, strict=True))
            for row in insert.rows
        ]
        for insert in plan.inserts
    }


def comparable(rows: Rows) -> Rows:
    """JSON cells become their value, so that only the spelling of escapes may differ."""
    return {
        table: [{name: _plain(name, cell) for name, cell in row.items()} for row in found]
        for table, found in rows.items()
    }


def _plain(name: str, cell: Any) -> Any:
    if isinstance(cell, str) and (name.endswith("_json") or name == "case_value"):
        return json_values.loads(cell)
    return int(cell) if isinstance(cell, bool) else cell

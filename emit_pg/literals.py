"""String literals of PostgreSQL.

Plain `'…'` with doubled quotes, which is complete when standard_conforming_strings is on (the
script sets it). Characters that a reader or an editor cannot see as they are (controls, line ends,
direction marks) never stand in the script: text writes them as `chr(n)`, JSON as `\\uXXXX`.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from compiler.emit.base import INVISIBLE


def text(value: str) -> exp.Expr:
    """Returns the literal of a text: `'a' || chr(10) || 'b'` where it has a line end."""
    pieces: list[exp.Expr] = []
    for index, piece in enumerate(INVISIBLE.split(value)):
        if index % 2:
            pieces.append(exp.Chr(expressions=[exp.Literal.number(ord(piece))]))
        elif piece or value == "":
            pieces.append(exp.Literal.string(piece))
    return reduce(lambda left, right: exp.DPipe(this=left, expression=right, safe=True), pieces)


def json(document: str) -> exp.Expr:
    """Returns the literal of a JSON text. What is invisible can only stand inside its strings."""
    return exp.Literal.string(INVISIBLE.sub(lambda m: f"\\u{ord(m.group()):04x}", document))


def boolean(value: bool) -> exp.Expr:
    return exp.Boolean(this=value)

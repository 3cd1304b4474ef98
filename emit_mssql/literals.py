"""String literals of T-SQL.

`N'…'` with doubled quotes, in pieces joined by `+` where the text would be read otherwise:

    line ends, controls, direction marks   nchar(n), so that no line of a literal can be GO or end
                                           in a backslash (which joins lines)
    $(                                     N'$' + N'(', or sqlcmd puts a variable there
    more than 4 000 UTF-16 units           pieces of 4 000 after cast(N'' as nvarchar(max)), or
                                           the sum is cut at 4 000

JSON is written in ASCII: what is not, is `\\uXXXX` inside its strings.
"""

from __future__ import annotations

import re
from functools import reduce

from sqlglot import exp

from compiler.emit.base import INVISIBLE

MAX_UNITS = 4_000
_BEFORE_PAREN = re.compile(r"(?<=\$)(?=\()")
_NOT_ASCII = re.compile("[^\x20-\x7e]")


def _units(value: str) -> int:
    return len(value) + sum(1 for char in value if ord(char) > 0xFFFF)


def _cut(value: str) -> list[str]:
    """Cuts a text into pieces of at most MAX_UNITS; a surrogate pair stays whole."""
    if _units(value) <= MAX_UNITS:
        return [value]
    pieces, start, units = [], 0, 0
    for position, char in enumerate(value):
        width = 2 if ord(char) > 0xFFFF else 1
        if units + width > MAX_UNITS:
            pieces.append(value[start:position])
            start, units = position, 0
        units += width
    pieces.append(value[start:])
    return pieces


def _visible(value: str) -> list[exp.Expr]:
    parts = (cut for part in _BEFORE_PAREN.split(value) for cut in _cut(part))
    return [exp.National(this=part) for part in parts]


def text(value: str) -> exp.Expr:
    """Returns the literal of a text."""
    pieces: list[exp.Expr] = []
    for index, part in enumerate(INVISIBLE.split(value)):
        if index % 2:
            pieces.append(exp.Anonymous(this="nchar", expressions=[exp.Literal.number(ord(part))]))
        elif part or value == "":
            pieces.extend(_visible(part))
    if len(pieces) > 1 and _units(value) > MAX_UNITS:
        pieces.insert(0, exp.cast(exp.National(this=""), "nvarchar(max)", dialect="tsql"))
    return reduce(lambda left, right: exp.Add(this=left, expression=right), pieces)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def json(document: str) -> exp.Expr:
    """Returns the literal of a JSON text, in ASCII."""
    return text(_NOT_ASCII.sub(_escape, document))


def boolean(value: bool) -> exp.Expr:
    return exp.Literal.number(int(value))

"""Splits a T-SQL script where `sqlcmd` does: at lines that are only GO.

GO is no T-SQL: it is the tool's word for "send what you have". A line inside a string, a quoted
name or a comment is none of the tool's; block comments nest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# What a line end, a string, a quoted name and a comment look like; the first that matches counts.
_TOKEN = re.compile(
    r"""(?P<go>^[ \t]*go[ \t]*(?:--[^\n]*)?\r?$)
    | --[^\n]*
    | (?P<open>/\*)
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | \[(?:[^\]]|\]\])*\]""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_COMMENT_PART = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Batch:
    """What stands between two lines GO; `line` is the number of its first line in the script."""

    text: str
    line: int


def split_batches(script: str) -> tuple[Batch, ...]:
    """Returns the batches of a script in their order, without those that are blank."""
    batches: list[Batch] = []
    start = position = 0
    while True:
        found = _TOKEN.search(script, position)
        if found is None:
            break
        if found["open"]:
            position = _end_of_comment(script, found.end())
            continue
        position = found.end()
        if found["go"] is not None:
            _add(batches, script, start, found.start())
            start = position
    _add(batches, script, start, len(script))
    return tuple(batches)


def _end_of_comment(script: str, position: int) -> int:
    depth = 1
    for part in _COMMENT_PART.finditer(script, position):
        depth += 1 if part[0] == "/*" else -1
        if depth == 0:
            return part.end()
    return len(script)


def _add(batches: list[Batch], script: str, start: int, end: int) -> None:
    text = script[start:end]
    body = text.lstrip("\n")
    if body.strip():
        line = script.count("\n", 0, start) + len(text) - len(body) + 1
        batches.append(Batch(body.rstrip(), line))

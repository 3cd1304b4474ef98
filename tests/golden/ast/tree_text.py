"""The AST of a file as text to be read and compared: one line per node, with its place.

    workflow: Workflow 1:1-8:2
      name: Name 1:10-1:15 text='words'

A line has the field's name, the class, the span as `line:column-line:column` (from 1, the end is
behind the last sign), then every field that holds a plain value. Nodes below come on lines of their
own, and so do the texts between the placeholders of a string. Spans other than the node's own stand
among the values, as `name_span=2:3-2:6`. Empty tuples and fields that are None are left out.
Nothing here recurses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from dsl import nodes
from dsl.source import SourceFile, Span


def tree_text(file: nodes.File, source: SourceFile) -> str:
    """Returns the lines of all nodes of `file`, each line ended."""
    lines: list[str] = []
    pending: list[tuple[int, str, Any]] = [(0, "file", file)]
    while pending:
        depth, role, node = pending.pop()
        lines.append("  " * depth + f"{role}: {_line(node, source)}\n")
        below = [(depth + 1, name, child) for name, child in _children(node)]
        pending.extend(reversed(below))
    return "".join(lines)


def _line(node: Any, source: SourceFile) -> str:
    if not is_dataclass(node):
        return repr(node)
    words = [type(node).__name__]
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name == "span":
            words.insert(1, _place(value, source))
        elif isinstance(value, Span):
            words.append(f"{field.name}={_place(value, source)}")
        elif value is None and not isinstance(node, nodes.LiteralExpr):
            continue
        elif not _holds_nodes(value) and value != ():
            words.append(f"{field.name}={value!r}")
    return " ".join(words)


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    if not is_dataclass(node):
        return
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Span) or not _holds_nodes(value):
            continue
        if not isinstance(value, tuple):
            yield field.name, value
            continue
        for index, item in enumerate(value):
            yield f"{field.name}[{index}]", item


def _holds_nodes(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(is_dataclass(item) for item in value)
    return is_dataclass(value)


def _place(span: Span, source: SourceFile) -> str:
    start, end = source.position(span.start), source.position(span.end)
    return f"{start.line}:{start.column}-{end.line}:{end.column}"

"""Checks of what no engine can store (R7); the parser refuses bad characters in strings itself."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from compiler import codes
from compiler.checks.finding import finding
from compiler.expressions import children
from compiler.json_values import MAX_DEPTH, MAX_KEY_LENGTH
from compiler.model import Model
from dsl.diagnostics import Diagnostic
from dsl.nodes import BareKey, Expr, ListExpr, LiteralExpr, ObjectExpr, WaitEvent

MAX_IDENTIFIER = 200
IDENTIFIER_RULE = (
    f"the type of an event has 1 to {MAX_IDENTIFIER} characters, none of them a control character, "
    "and no space at either end"
)


def check_values_can_be_stored(model: Model) -> Iterator[Diagnostic]:
    for site in model.sites:
        if any(type(part) in (ListExpr, ObjectExpr) for part in site.parts):
            assert not isinstance(site.expr, BareKey)  # that has no parts
            # The arguments of an action stand in one object.
            yield from _check_value(model, site.expr, 1 if site.use == "argument" else 0)


def _check_value(model: Model, expr: Expr, outside: int) -> Iterator[Diagnostic]:
    pending = [(expr, outside)]
    too_deep: Expr | None = None
    while pending:
        current, depth = pending.pop()
        if isinstance(current, ListExpr | ObjectExpr):
            depth += 1
            if depth > MAX_DEPTH and too_deep is None:
                too_deep = current
        if isinstance(current, ObjectExpr):
            yield from _check_keys(model, current)
        pending += [(c, depth) for c in children(current) if type(c) is not LiteralExpr]
    if too_deep is not None:
        message = f"a value nested deeper than {MAX_DEPTH} levels cannot be stored"
        yield finding(model, codes.NOT_STORABLE, too_deep.span, message)


def _check_keys(model: Model, expr: ObjectExpr) -> Iterator[Diagnostic]:
    for entry in expr.entries:
        if len(entry.key) > MAX_KEY_LENGTH:
            message = f"this key has {len(entry.key)} characters; {MAX_KEY_LENGTH} are allowed"
            yield finding(model, codes.NOT_STORABLE, entry.key_span, message)


def check_event_types(model: Model) -> Iterator[Diagnostic]:
    for node in model.nodes:
        if isinstance(node.statement, WaitEvent) and not is_identifier(node.statement.event_type):
            yield finding(model, codes.BAD_NAME, node.span, IDENTIFIER_RULE)


def is_identifier(text: str) -> bool:
    if not 1 <= len(text) <= MAX_IDENTIFIER or text != text.strip():
        return False
    return not any(unicodedata.category(char) == "Cc" for char in text)

"""Walks and small facts about expressions, shared by the checks and by the lowering.

Nothing here recurses: an expression may be as deep as the parser lets it be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, assert_never

from dsl.nodes import (
    BareKey,
    Binary,
    Call,
    Expr,
    IndexStep,
    KeyStep,
    ListExpr,
    LiteralExpr,
    ObjectExpr,
    Reference,
    TemplateString,
    Unary,
)

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
NOT_LITERAL: Any = object()
"""What `literal_value` answers for an expression that is no literal (null is one)."""


def children(expr: Expr) -> tuple[Expr, ...]:
    """Returns the parts of an expression from left to right, indexes of references too."""
    # Nearly every expression is one of these two, and every check walks all of them.
    if type(expr) is LiteralExpr:
        return ()
    if type(expr) is Reference:
        return tuple(step.index for step in expr.steps if type(step) is IndexStep)
    match expr:
        case LiteralExpr():
            return ()
        case Reference(steps=steps):
            return tuple(step.index for step in steps if isinstance(step, IndexStep))
        case TemplateString(parts=parts):
            return tuple(part for part in parts if not isinstance(part, str))
        case ListExpr(items=items):
            return items
        case ObjectExpr(entries=entries):
            return tuple(entry.value for entry in entries)
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Call(arguments=arguments):
            return arguments
        case _:
            assert_never(expr)


def post_order(expr: Expr) -> Iterator[Expr]:
    """Yields every part of an expression, parts before the whole, left before right."""
    if not children(expr):
        yield expr
        return
    pending: list[tuple[Expr, bool]] = [(expr, False)]
    while pending:
        current, opened = pending.pop()
        parts = () if opened else children(current)
        if not parts:
            yield current
            continue
        pending.append((current, True))
        pending.extend((part, False) for part in reversed(parts))


def references(expr: Expr | BareKey) -> tuple[Reference, ...]:
    """Returns every reference of an expression, those inside an index before the one they index."""
    if isinstance(expr, BareKey):
        return ()
    return tuple(part for part in post_order(expr) if isinstance(part, Reference))


def literal_value(expr: Expr) -> Any:
    """Returns the JSON scalar an expression is, or `NOT_LITERAL`; `-5` is a literal."""
    if isinstance(expr, LiteralExpr):
        return expr.value
    if (
        isinstance(expr, Unary)
        and expr.operator == "-"
        and isinstance(expr.operand, LiteralExpr)
        and is_number(expr.operand.value)
    ):
        value: Any = expr.operand.value
        return -value
    if isinstance(expr, TemplateString) and all(isinstance(part, str) for part in expr.parts):
        return "".join(part for part in expr.parts if isinstance(part, str))
    return NOT_LITERAL


def is_number(value: object) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def lone_reference(expr: Expr) -> Reference | None:
    """Returns the reference an expression is, written bare or as a string of one placeholder."""
    if isinstance(expr, Reference):
        return expr
    if isinstance(expr, TemplateString) and len(expr.parts) == 1:
        part = expr.parts[0]
        return part if isinstance(part, Reference) else None
    return None


def step_key(reference: Reference, position: int) -> str | None:
    """Returns the key of a step, or None when there is no such step or it is an index."""
    if position >= len(reference.steps):
        return None
    step = reference.steps[position]
    return step.key if isinstance(step, KeyStep) else None


def task_key(reference: Reference) -> str | None:
    """Returns K of `ctx.task.K…`."""
    if reference.root == "ctx" and step_key(reference, 0) == "task":
        return step_key(reference, 1)
    return None


def is_plain(reference: Reference) -> bool:
    """Whether a reference can stand in a template: identifiers and literal indexes only."""
    for step in reference.steps:
        match step:
            case KeyStep(key=key):
                if not IDENTIFIER.match(key):
                    return False
            case IndexStep(index=index):
                if isinstance(index, Reference):
                    return False
    return True


def reference_text(reference: Reference) -> str:
    """Writes a plain reference as `var.item.sku` or `var.items[3].name`."""
    text: list[str] = [reference.root]
    for step in reference.steps:
        match step:
            case KeyStep(key=key):
                text.append(f".{key}" if IDENTIFIER.match(key) else f"[{json.dumps(key)}]")
            case IndexStep(index=LiteralExpr(value=value)):
                text.append(f"[{value}]")
            case IndexStep():
                text.append("[…]")
    return "".join(text)

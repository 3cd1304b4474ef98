"""Checks of values that may be null, or absent, where the other side takes neither.

A value is settled by `??`, or by standing under an `if` that has asked: `var.x != null`,
`defined(var.x)`. What a task gives is settled where an `if` or `switch` has asked how it ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler import codes
from compiler.checks.finding import finding
from compiler.expressions import literal_value, lone_reference, step_key, task_key
from compiler.model import Model, Node, Site
from compiler.type_model import Type
from dsl.diagnostics import Diagnostic
from dsl.nodes import (
    BareKey,
    Binary,
    Call,
    Expr,
    If,
    IndexStep,
    KeyStep,
    Reference,
    Statement,
    Switch,
    Unary,
    While,
)


def check_null(
    model: Model, site: Site, expr: Expr, actual: Type, what: str
) -> Iterator[Diagnostic]:
    """Warns when `expr` may be null; `what` takes none."""
    reference = lone_reference(expr)
    if reference is None or not actual.nullable or _is_settled(site.node, reference):
        return
    message = f"{what} takes no null, and this may be null"
    hint = "say what to take instead with `??`, or ask before: `if … != null`"
    yield finding(model, codes.MAYBE_NULL, expr.span, message, hint)


def _is_settled(node: Node, reference: Reference) -> bool:
    wanted, task = _identity(reference), task_key(reference)
    current: Node | None = node
    while current is not None and current.parent is not None:
        statement = current.parent.statement
        if task is not None and _asked_task(statement) == task:
            return True
        if isinstance(statement, If) and current.edge in ("THEN", "ELSE"):
            if _says(statement.condition, wanted, current.edge == "THEN"):
                return True
        elif isinstance(statement, While) and _says(statement.condition, wanted, True):
            return True
        current = current.parent
    return False


def _asked_task(statement: Statement | None) -> str | None:
    """Returns the key of the task whose result code an IF or SWITCH is over."""
    asked: Expr | BareKey | None = None
    if isinstance(statement, If):
        asked = statement.condition
    elif isinstance(statement, Switch):
        asked = statement.subject
    if isinstance(asked, BareKey):
        return asked.name
    reference = None if asked is None else lone_reference(asked)
    if reference is None or step_key(reference, 2) != "resultCode":
        return None
    return task_key(reference)


def _says(condition: Expr | BareKey, wanted: object, holds: bool) -> bool:
    """Whether a condition, being true or false, says that a reference is there and not null."""
    if isinstance(condition, BareKey):
        return False
    pending: list[tuple[Expr, bool]] = [(condition, holds)]
    while pending:
        current, is_true = pending.pop()
        match current:
            case Unary(operator="not", operand=operand):
                pending.append((operand, not is_true))
            case Binary(operator="and" | "or" as operator, left=left, right=right):
                if (operator == "and") is is_true:
                    pending += [(left, is_true), (right, is_true)]
            case Binary(operator="!=" | "==" as operator, left=left, right=right):
                if (operator == "!=") is is_true and _compares(left, right, wanted):
                    return True
            case Call(arguments=(argument,)) if is_true and current.function.text == "defined":
                asked = lone_reference(argument)
                if asked is not None and _identity(asked) == wanted:
                    return True
            case _:
                pass
    return False


def _compares(left: Expr, right: Expr, wanted: object) -> bool:
    for one, other in ((left, right), (right, left)):
        reference = lone_reference(one)
        if reference is not None and literal_value(other) is None:
            return _identity(reference) == wanted
    return False


def _identity(reference: Reference) -> tuple[object, ...]:
    steps: list[object] = [reference.root]
    for step in reference.steps:
        match step:
            case KeyStep(key=key):
                steps.append(key)
            case IndexStep(index=index):
                steps.append(_identity(index) if isinstance(index, Reference) else index.value)
    return tuple(steps)

"""Checks of values that may be null, or absent, where the other side takes neither.

A value is settled by `??`, and wherever `compiler/settled.py` knows it not to be null: under an
`if` that has asked (`var.x != null`, `defined(var.x)`, `var.x == 3`), after one whose other branch
fails, after a `set` of something else. What a task gives is settled once something has asked how it
ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler import codes
from compiler.checks.finding import finding
from compiler.expressions import lone_reference
from compiler.flow import analyse
from compiler.model import Model, Site
from compiler.type_model import Type
from dsl.diagnostics import Diagnostic
from dsl.nodes import Expr


def check_null(
    model: Model, site: Site, expr: Expr, actual: Type, what: str
) -> Iterator[Diagnostic]:
    """Warns when `expr` may be null; `what` takes none."""
    if not actual.nullable:
        return
    reference, flow = lone_reference(expr), analyse(model)
    if reference is None or id(reference) in flow.settled or id(site.expr) not in flow.evaluated:
        return
    message = f"{what} takes no null, and this may be null"
    hint = "say what to take instead with `??`, or ask before: `if … != null`"
    yield finding(model, codes.MAYBE_NULL, expr.span, message, hint)

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
from dsl.source import Span


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


def check_parts(model: Model) -> Iterator[Diagnostic]:
    """Warns of a step into what may be null, for null has no parts."""
    for reference, count, _site in analyse(model).missing_parts:
        step = reference.steps[count]
        whole = Span(reference.span.start, reference.steps[count - 1].span.end if count else 0)
        what = model.source.text[whole.start : whole.end]
        message = f"`{what}` may be null, and null has no parts"
        instead = "say what to take instead with `??`"
        hint = (
            instead if reference.root == "out" else f"ask before: `if {what} != null`, or {instead}"
        )
        yield finding(model, codes.MAYBE_NULL, step.span, message, hint)

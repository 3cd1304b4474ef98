"""What the language has and the engines do not run yet: refused by name, from one table."""

from __future__ import annotations

from collections.abc import Iterator

from compiler import codes
from compiler.checks.finding import finding
from compiler.model import Model, Node
from compiler.supported import NOT_YET
from dsl.diagnostics import Diagnostic
from dsl.nodes import Attribute, Sequence, Sleep, WaitEvent
from dsl.source import SourceFile, Span


def attributes_of(model: Model) -> Iterator[tuple[str, Node, tuple[Attribute, ...]]]:
    """Yields the kind of statement, its node and its attributes, for all that may have some."""
    yield "workflow", model.root, model.workflow.attributes
    for node in model.nodes:
        attributes = getattr(node.statement, "attributes", ())
        if attributes:
            yield node.type.lower(), node, attributes


def check_supported(model: Model) -> Iterator[Diagnostic]:
    for kind, _node, attributes in attributes_of(model):
        for attribute in attributes:
            what = NOT_YET.get((kind, attribute.name.text))
            if what is not None:
                yield not_yet(model, what, attribute.name.span)
    for node in model.nodes:
        yield from _check_forms(model, node)
    for subscription in model.workflow.subscriptions:
        what = NOT_YET.get(("workflow", "on event"))
        if what is not None:
            yield not_yet(model, what, subscription.span)


def _check_forms(model: Model, node: Node) -> Iterator[Diagnostic]:
    statement = node.statement
    found: list[tuple[tuple[str, str], Span]] = []
    if isinstance(statement, Sequence):
        if statement.on_error is not None:
            found.append((("sequence", "on_error"), statement.on_error.span))
        if statement.finally_ is not None:
            found.append((("sequence", "finally"), statement.finally_.span))
    elif isinstance(statement, WaitEvent) and statement.timeout is not None:
        found.append((("wait_event", "timeout"), statement.timeout.span))
    elif isinstance(statement, Sleep):
        found.append((("statement", "sleep"), statement.span))
    for form, span in found:
        what = NOT_YET.get(form)
        if what is not None:
            yield not_yet(model, what, span)


def not_yet(place: Model | SourceFile, what: str, span: Span) -> Diagnostic:
    hint = "remove it; it comes with a later version"
    return finding(place, codes.NOT_YET, span, f"{what} is not supported yet", hint)

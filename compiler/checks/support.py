"""Checks of attributes: known ones only, with sound values, and those that the engines run yet."""

from __future__ import annotations

from collections.abc import Iterator

from compiler import codes
from compiler.checks.finding import finding
from compiler.expressions import NOT_LITERAL, literal_value
from compiler.suggest import did_you_mean
from compiler.supported import ATTRIBUTES, NOT_YET
from compiler.symbols import Model, Node
from dsl.diagnostics import Diagnostic
from dsl.nodes import Attribute, Duration, Name, Sequence, Sleep, WaitEvent
from dsl.source import Span

_LEAST = {"limit": 1, "parallel": 1, "max": 1, "priority": -(2**31)}
_MOST = {"limit": 2**31 - 1, "parallel": 2**31 - 1, "max": 2**63 - 1, "priority": 2**31 - 1}


def _attributes(model: Model) -> Iterator[tuple[str, tuple[Attribute, ...]]]:
    """Yields the kind of statement and its attributes, for everything that may have some."""
    yield "workflow", model.workflow.attributes
    for node in model.nodes:
        attributes = getattr(node.statement, "attributes", ())
        if attributes:
            yield node.type.lower(), attributes


def check_attributes(model: Model) -> Iterator[Diagnostic]:
    for kind, attributes in _attributes(model):
        for attribute in attributes:
            if attribute.name.text in ATTRIBUTES.get(kind, ()):
                yield from _check_value(model, kind, attribute)
            else:
                yield _unknown(model, kind, attribute)


def _unknown(model: Model, kind: str, attribute: Attribute) -> Diagnostic:
    name, known = attribute.name.text, ATTRIBUTES.get(kind, ())
    message = f"`{name}` is no attribute of {kind.replace('_', ' ')}s"
    hint = did_you_mean(name, known) if known else "it has none"
    return finding(model, codes.UNKNOWN_ATTRIBUTE, attribute.name.span, message, hint)


def _check_value(model: Model, kind: str, attribute: Attribute) -> Iterator[Diagnostic]:
    name = attribute.name.text
    if (kind, name) in NOT_YET:
        return
    value = attribute.values[0] if attribute.values else None
    if name in _LEAST and value is not None:
        number = NOT_LITERAL if isinstance(value, Duration | Name) else literal_value(value)
        if not isinstance(number, int) or isinstance(number, bool):
            message = f"`{name}` takes an integer, written out"
            yield finding(model, codes.BAD_ATTRIBUTE, value.span, message)
        elif not _LEAST[name] <= number <= _MOST[name]:
            message = f"`{name} {number}` is out of range: {_LEAST[name]} to {_MOST[name]}"
            yield finding(model, codes.BAD_ATTRIBUTE, value.span, message)
    elif isinstance(value, Duration) and value.milliseconds <= 0:
        message = f"`{name}` takes a duration longer than nothing"
        yield finding(model, codes.BAD_ATTRIBUTE, value.span, message)


def check_supported(model: Model) -> Iterator[Diagnostic]:
    for kind, attributes in _attributes(model):
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


def not_yet(model: Model, what: str, span: Span) -> Diagnostic:
    hint = "remove it; it comes with a later version"
    return finding(model, codes.NOT_YET, span, f"{what} is not supported yet", hint)

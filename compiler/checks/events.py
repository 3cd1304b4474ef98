"""Checks of `on event`: an event that starts an instance must give it all the input it needs."""

from __future__ import annotations

from collections.abc import Iterator

from compiler import codes
from compiler.checks.finding import finding
from compiler.checks.storable import IDENTIFIER_RULE, is_identifier
from compiler.model import Model, Variable
from compiler.suggest import did_you_mean
from dsl.diagnostics import Diagnostic
from dsl.nodes import Subscription
from dsl.source import Span


def check_subscriptions(model: Model) -> Iterator[Diagnostic]:
    inputs = {v.name: v for v in model.root.variables.values() if v.kind == "input"}
    for subscription in model.workflow.subscriptions:
        if not is_identifier(subscription.event_type):
            yield finding(model, codes.BAD_NAME, _head(model, subscription), IDENTIFIER_RULE)
        yield from _check_inputs(model, subscription, inputs)


def _check_inputs(
    model: Model, subscription: Subscription, inputs: dict[str, Variable]
) -> Iterator[Diagnostic]:
    seen: dict[str, Span] = {}
    for given in subscription.inputs:
        name = given.name
        if name.text not in inputs:
            message = f'the workflow has no input "{name.text}"'
            hint = did_you_mean(name.text, inputs)
            yield finding(model, codes.BAD_SUBSCRIPTION, name.span, message, hint)
        if name.text in seen:
            message = f'input "{name.text}" is given twice'
            first = seen[name.text]
            yield finding(model, codes.DUPLICATE_NAME, name.span, message, "remove one", first)
        seen.setdefault(name.text, name.span)
    if subscription.mode == "signal":
        if subscription.inputs:
            message = "an event that only signals gives no input"
            span = subscription.inputs[0].name.span
            hint = "read it where it is awaited: `set x = event.payload.x`"
            yield finding(model, codes.BAD_SUBSCRIPTION, span, message, hint)
        return
    if not subscription.inputs:
        return  # the fields of the payload are the input
    missing = [name for name, v in inputs.items() if v.initial is None and name not in seen]
    if missing:
        message = f"this event cannot start the workflow: it gives no input {', '.join(missing)}"
        hint = f"add `input {{ {missing[0]} = event.payload.{missing[0]} }}`"
        yield finding(model, codes.BAD_SUBSCRIPTION, _head(model, subscription), message, hint)


def _head(model: Model, subscription: Subscription) -> Span:
    """The words before the braces: the whole of it may be many lines."""
    start, end = subscription.span.start, subscription.span.end
    text = model.source.text[start:end]
    quoted = text.find(subscription.mode, text.rfind('"', 0, text.find("{") + 1 or None))
    return Span(start, start + quoted + len(subscription.mode)) if quoted > 0 else subscription.span

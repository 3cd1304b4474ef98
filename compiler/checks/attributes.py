"""Checks of attributes: known ones only, each with a value that makes sense."""

from __future__ import annotations

from collections.abc import Iterator

from compiler import attributes as written
from compiler import codes
from compiler.checks.finding import finding
from compiler.checks.support import attributes_of
from compiler.expressions import literal_value
from compiler.model import Model, Node
from compiler.suggest import did_you_mean
from compiler.supported import ATTRIBUTES, NOT_YET
from dsl.diagnostics import Diagnostic
from dsl.nodes import Action, Attribute, Duration, Expr, Name, Parallel, Sleep, WaitEvent

_MOST = 2**31 - 1
RANGES: dict[str, tuple[int, int]] = {
    "limit": (1, _MOST),
    "join": (1, _MOST),
    "parallel": (1, _MOST),
    "batch": (1, _MOST),
    "keep": (1, _MOST),
    "tolerate": (0, _MOST),
    "retry": (0, _MOST),
    "max": (1, 2**63 - 1),
    "max_per_worker": (1, _MOST),
    "max_concurrent": (1, _MOST),
    "rate_per_minute": (1, _MOST),
    "max_deliveries": (1, _MOST),
    "priority": (-(2**31), _MOST),
}

# What to write for an attribute on a node that has none of that name.
_INSTEAD = {
    ("foreach", "limit"): "write `parallel N`: at most N iterations at a time",
    ("foreach", "max"): "write `parallel N`: at most N iterations at a time",
    ("parallel", "parallel"): "write `limit N`: at most N branches at a time",
    ("parallel", "max"): "write `limit N`: at most N branches at a time",
    ("parallel", "tolerate"): "write `join N`: so many branches must succeed",
    ("repeat", "max"): "the count says how often",
    ("repeat", "parallel"): "write `foreach item in … parallel { … }`",
    ("while", "parallel"): "write `foreach item in … parallel { … }`",
    ("while", "limit"): "write `max N`: at most N iterations",
    ("wait_event", "retry"): "what to do when the time is up stands in `timeout D { … }`",
}
_TIME_OUTS = frozenset(("timeout", "timed_out", "timedout", "time_out"))
_ANYTHING = frozenset(("all", "error", "errors", "failure", "fail", "failed"))


def check_attributes(model: Model) -> Iterator[Diagnostic]:
    for kind, node, attributes in attributes_of(model):
        for attribute in attributes:
            name = attribute.name.text
            if name not in ATTRIBUTES.get(kind, ()):
                yield _unknown(model, kind, attribute)
            elif (kind, name) not in NOT_YET:
                yield from _check_value(model, node, attribute)
    yield from _check_durations(model)


def _unknown(model: Model, kind: str, attribute: Attribute) -> Diagnostic:
    name, known = attribute.name.text, ATTRIBUTES.get(kind, ())
    message = f"{'an' if kind == 'action' else 'a'} `{kind}` has no `{name}`"
    hint = _INSTEAD.get((kind, name)) or (did_you_mean(name, known) if known else "it has none")
    return finding(model, codes.UNKNOWN_ATTRIBUTE, attribute.name.span, message, hint)


def _check_value(model: Model, node: Node, attribute: Attribute) -> Iterator[Diagnostic]:
    name = attribute.name.text
    value = attribute.values[0] if attribute.values else None
    if name == "join" and isinstance(value, Name):
        if value.text not in ("all", "any"):
            message = f"`join` takes `all`, `any` or an integer, not `{value.text}`"
            hint = did_you_mean(value.text, ("all", "any"))
            yield finding(model, codes.BAD_ATTRIBUTE, value.span, message, hint)
    elif name in RANGES and value is not None:
        most = 100 if name == "tolerate" and written.is_percent(attribute) else RANGES[name][1]
        yield from _check_number(model, name, value, RANGES[name][0], most)
    elif isinstance(value, Duration):
        yield from _check_duration(model, name, value)
    if name == "join" and isinstance(node.statement, Parallel):
        yield from _check_join(model, node.statement, attribute)
    if name == "retry":
        yield from _check_retry(model, node, attribute)
    elif name == "affinity_key_field" and isinstance(node.statement, Action):
        yield from _check_affinity(model, node.statement, attribute)


def _check_number(
    model: Model, name: str, value: Duration | Expr | Name, least: int, most: int
) -> Iterator[Diagnostic]:
    number = written.literal_integer(value)
    if number is None:
        message = f"`{name}` takes an integer, written out"
        yield finding(model, codes.BAD_ATTRIBUTE, value.span, message)
    elif not least <= number <= most:
        message = f"`{name} {number}` is out of range: {least} to {most}"
        yield finding(model, codes.BAD_ATTRIBUTE, value.span, message)


def _check_duration(model: Model, name: str, value: Duration) -> Iterator[Diagnostic]:
    if value.milliseconds <= 0:
        message = f"`{name}` takes a duration longer than nothing"
        yield finding(model, codes.BAD_ATTRIBUTE, value.span, message)


def _check_durations(model: Model) -> Iterator[Diagnostic]:
    """Durations that are no attribute: of a `sleep`, and the `timeout` of a WAIT_EVENT."""
    for node in model.nodes:
        if isinstance(node.statement, Sleep):
            yield from _check_duration(model, "sleep", node.statement.duration)
        elif isinstance(node.statement, WaitEvent) and node.statement.timeout is not None:
            yield from _check_duration(model, "timeout", node.statement.timeout)


def _check_join(model: Model, parallel: Parallel, attribute: Attribute) -> Iterator[Diagnostic]:
    needed, branches = written.join_count(parallel.attributes), len(parallel.branches.statements)
    if needed is not None and 0 < branches < needed:
        message = f"`join {needed}` can never be: this parallel has {branches} branches"
        hint = "`join all` waits for every one"
        yield finding(model, codes.BAD_ATTRIBUTE, attribute.values[0].span, message, hint)


def _check_affinity(model: Model, action: Action, attribute: Attribute) -> Iterator[Diagnostic]:
    """The key is taken from the input, so the input must have the field."""
    described, value = model.actions.get(action.action.text), attribute.values[0]
    field = None if isinstance(value, Duration | Name) else literal_value(value)
    if described is None or not isinstance(field, str) or described.input_type.fields is None:
        return
    known = [known.name for known in described.input_type.fields]
    if field not in known:
        message = f'the input of {described.name} has no field "{field}", so there is no key'
        yield finding(model, codes.BAD_ATTRIBUTE, value.span, message, did_you_mean(field, known))


# --- retry -------------------------------------------------------------------------------------


def _check_retry(model: Model, node: Node, attribute: Attribute) -> Iterator[Diagnostic]:
    retry = written.read_retry(attribute, model.source.text)
    for clause in retry.repeated:
        message = f"`{clause.text}` is given twice in this `retry`"
        yield finding(model, codes.BAD_ATTRIBUTE, clause.span, message, "remove one")
    for name, duration in (("backoff", retry.backoff), ("max", retry.max)):
        if duration is not None:
            yield from _check_duration(model, name, duration)
    if retry.factor is not None:
        factor = literal_value(retry.factor)
        if written.factor_hundredths(factor) is None:
            message = "`factor` takes a number from 1 to 100 with at most two decimal places"
            yield finding(model, codes.BAD_ATTRIBUTE, retry.factor.span, message)
    longest = None if retry.max is None else retry.max.milliseconds
    if retry.backoff is not None and longest is not None and longest < retry.backoff.milliseconds:
        message = "`max` is shorter than `backoff`, so every delay is `max`"
        hint, first = "make it longer", retry.backoff.span
        assert retry.max is not None
        yield finding(model, codes.BAD_ATTRIBUTE, retry.max.span, message, hint, first)
    for code in retry.on:
        yield from _check_code(model, node, code)
    if retry.backoff is None:
        yield from _check_delay(model, node, attribute)


def _check_delay(model: Model, node: Node, retry: Attribute) -> Iterator[Diagnostic]:
    """`retry 3 delay 5s` on one line reads as if the delay were that between the attempts."""
    found = written.find(getattr(node.statement, "attributes", ()), "delay")
    if found is None or found.span.start < retry.span.end:
        return
    if model.source.text[retry.span.end : found.span.start].strip(" \t") == "":
        message = "this delay comes before the first attempt, not between attempts"
        hint = "write `backoff` for the pause between attempts, or put `delay` on a line of its own"
        yield finding(model, codes.DELAY_AFTER_RETRY, found.name.span, message, hint)


def _check_code(model: Model, node: Node, code: Name | Expr) -> Iterator[Diagnostic]:
    if not isinstance(code, Name):
        number = literal_value(code)
        if not (isinstance(number, int) and (number < 0 or number == written.ENGINE_TIMEOUT)):
            message = f"a retry is on a negative result code or {written.ENGINE_TIMEOUT}"
            hint = f"{written.ENGINE_TIMEOUT} is the action's own time-out"
            yield finding(model, codes.BAD_ATTRIBUTE, code.span, message, hint)
        return
    if code.text in ("any", "lease") or not isinstance(node.statement, Action):
        return
    described = model.actions.get(node.statement.action.text)
    if described is None:
        return
    number = described.code_of(code.text)
    if number is None:
        known = [name for value, name in described.result_codes.items() if int(value) < 0]
        message = f'{described.name} has no result code "{code.text}"'
        hint_text = did_you_mean(code.text, ["any", "lease", *known])
        if code.text.lower() in _TIME_OUTS:
            hint_text = f"the action's own time-out is `on {written.ENGINE_TIMEOUT}`"
        elif code.text.lower() in _ANYTHING:
            hint_text = "every failure is `on any`, the default"
        yield finding(model, codes.UNKNOWN_RESULT_CODE, code.span, message, hint_text)
    elif number >= 0:
        message = f'"{code.text}" is a success, and only failures are tried again'
        yield finding(model, codes.BAD_ATTRIBUTE, code.span, message)

"""Checks of time-outs: one that another cuts short, waits without one, waits that share events."""

from __future__ import annotations

from collections.abc import Iterator

from compiler import attributes as written
from compiler import codes
from compiler.checks.finding import finding
from compiler.model import Model, Node, is_parallel_foreach
from compiler.supported import NOT_YET
from dsl.diagnostics import Diagnostic
from dsl.nodes import Action, Duration, Sleep, WaitEvent


def check_timeouts(model: Model) -> Iterator[Diagnostic]:
    """The nodes are in pre-order, so that what surrounds a node is known before it."""
    around: dict[int, Duration | None] = {}
    for node in model.nodes:
        outer = None if node.parent is None else around[node.parent.index]
        own = _timeout(model, node)
        yield from _check_pause(model, node, outer)
        if own is not None and outer is not None and own.milliseconds > outer.milliseconds:
            message = "this timeout is longer than the one around it, so it is never reached"
            yield finding(model, codes.LONG_TIMEOUT, own.span, message, "shorten it", outer.span)
            own = outer
        around[node.index] = own or outer


def _check_pause(model: Model, node: Node, outer: Duration | None) -> Iterator[Diagnostic]:
    """A `sleep` or `delay` that the time-out around it always cuts short."""
    pause, what = None, "sleep"
    if isinstance(node.statement, Sleep):
        pause = node.statement.duration
    elif isinstance(node.statement, Action):
        found, what = written.find(node.statement.attributes, "delay"), "delay"
        value = found.values[0] if found is not None and found.values else None
        pause = value if isinstance(value, Duration) else None
    if pause is not None and outer is not None and pause.milliseconds >= outer.milliseconds:
        message = f"this {what} is as long as the timeout around it, which ends it"
        if pause.milliseconds > outer.milliseconds:
            message = f"this {what} is longer than the timeout around it, which ends it"
        yield finding(model, codes.LONG_TIMEOUT, pause.span, message, "shorten it", outer.span)


def _timeout(model: Model, node: Node) -> Duration | None:
    if node.parent is None:
        attributes = model.workflow.attributes
    elif isinstance(node.statement, WaitEvent):
        return node.statement.timeout
    else:
        attributes = getattr(node.statement, "attributes", ())
    found = written.find(attributes, "timeout")
    value = found.values[0] if found is not None and found.values else None
    return value if isinstance(value, Duration) else None


def check_waits(model: Model) -> Iterator[Diagnostic]:
    for node in model.nodes:
        wait = node.statement
        if not isinstance(wait, WaitEvent):
            continue
        if wait.timeout is None and ("wait_event", "timeout") not in NOT_YET:
            message = "this waits for ever when the event does not come"
            yield finding(model, codes.NO_TIMEOUT, node.span, message, "add `timeout 3d`")
        if wait.correlate is None and _runs_many_times_at_once(node):
            message = "each event of this type ends only one of these waits, and any of them"
            hint = "add `correlate` with something of the item"
            yield finding(model, codes.SHARED_WAIT, node.span, message, hint)


def _runs_many_times_at_once(node: Node) -> bool:
    fork = node.fork
    while fork is not None:
        if is_parallel_foreach(fork.parent):
            return True
        fork = None if fork.parent is None else fork.parent.fork
    return False

"""Checks along the ways a workflow can take.

What is read before it is there, what is never reached, loops that cannot end.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler import codes
from compiler.checks.finding import finding
from compiler.checks.references import LOOP_NAMES, beside, inside_loop
from compiler.expressions import references, step_key, task_key
from compiler.flow import FlowResult, Reading, analyse
from compiler.model import Model, Node, Variable
from dsl.diagnostics import Diagnostic
from dsl.nodes import Action, BareKey, Fail, Foreach, LiteralExpr, Sleep, WaitEvent, While


def check_flow(model: Model) -> Iterator[Diagnostic]:
    result = analyse(model)
    for reading in result.readings:
        if isinstance(reading.what, Variable):
            yield _check_variable(model, reading, reading.what)
        elif beside(reading.site.node, reading.what) is None:
            yield _check_task(model, reading, reading.what)
    yield from _check_unreachable(model, result)


def _check_variable(model: Model, reading: Reading, variable: Variable) -> Diagnostic:
    span, name = reading.reference.span, variable.name
    if reading.site.use == "output" and variable.kind == "set":
        message = f'"{name}" is not set on every path, so this output may be null'
        hint = f"give it a first value: `var {name} : type = …`"
        return finding(model, codes.UNSET_OUTPUT, span, message, hint, variable.span)
    if reading.never:
        message = f'"{name}" has no value here: nothing before this sets it'
        hint = "set it before, or give it a first value"
        return finding(model, codes.NEVER_SET, span, message, hint, variable.span)
    message = f'"{name}" may have no value here: not every path before this sets it'
    hint = f"give it a first value, or say what to take instead: `var.{name} ?? …`"
    return finding(model, codes.MAYBE_UNSET, span, message, hint, variable.span)


def _check_task(model: Model, reading: Reading, task: Node) -> Diagnostic:
    span = reading.reference.span
    if reading.timed_out:
        message = f'"{task.key}" has no output when its time is over'
        hint = f"ask before: `if ctx.task.{task.key}.resultCode == 0`, or add `?? …`"
        return finding(model, codes.MAYBE_UNRUN, span, message, hint, task.span)
    if reading.never:
        message = f'"{task.key}" cannot have run yet when this is evaluated'
        return finding(model, codes.UNREACHABLE_TASK, span, message, "move this after it")
    message = f'"{task.key}" may not have run when this is evaluated'
    hint = "say what to take instead with `??`"
    if isinstance(reading.reference, BareKey):
        hint = f"write `(ctx.task.{task.key}.resultCode ?? 0) != 0`"
    return finding(model, codes.MAYBE_UNRUN, span, message, hint, task.span)


def _check_unreachable(model: Model, result: FlowResult) -> Iterator[Diagnostic]:
    for node, after in result.unreachable:
        if node.generated and not node.children:
            continue
        if after is None:
            message = "this is never reached: the condition before it never changes"
            if node.parent is not None and isinstance(node.parent.statement, Foreach):
                message = "this is never reached: the list of the loop is empty"
            yield finding(model, codes.UNREACHABLE, _head(node).span, message, "remove it")
        else:
            message = f"this is never reached: {_named(after)} before it always fails"
            yield finding(model, codes.UNREACHABLE, node.span, message, "remove it", after.span)


def _head(node: Node) -> Node:
    """A body is shown by its first statement: the whole of it would be many lines."""
    return node.children[0] if node.generated else node


def _named(node: Node) -> str:
    return "the `fail`" if isinstance(node.statement, Fail) else f"the {node.type.lower()}"


def check_whiles(model: Model) -> Iterator[Diagnostic]:
    """A WHILE that only `max` or a failure ends, or that keeps the engine busy on its own."""
    waits = [n.index for n in model.nodes if isinstance(n.statement, Action | WaitEvent | Sleep)]
    fails = [n.index for n in model.nodes if isinstance(n.statement, Fail)]
    for node in model.nodes:
        statement = node.statement
        if not isinstance(statement, While) or not node.children or not node.children[0].children:
            continue
        if not _any_inside(waits, node):
            message = "nothing in this loop takes time: it has no action, wait_event or sleep"
            yield finding(model, codes.IDLE_LOOP, node.span, message)
        if _never_changes(model, node, statement) and not _any_inside(fails, node):
            message = "this loop never ends: nothing in its body changes what the condition reads"
            hint = "set a variable of the condition in the body, or use `repeat`"
            yield finding(model, codes.ENDLESS_LOOP, statement.condition.span, message, hint)


def _any_inside(indexes: list[int], node: Node) -> bool:
    from bisect import bisect_left

    first = bisect_left(indexes, node.index)
    return first < len(indexes) and indexes[first] <= node.last


def _never_changes(model: Model, node: Node, statement: While) -> bool:
    condition = statement.condition
    if isinstance(condition, BareKey):
        return not _runs_inside(model, node, condition.name)
    if isinstance(condition, LiteralExpr) and condition.value in (False, 0, None):
        return False
    for reference in references(condition):
        if reference.root == "var":
            variable = model.resolved.get(id(reference))
            if variable is None or variable.is_written_in(node):
                return False
        elif reference.root == "ctx" and step_key(reference, 0) == "task":
            if _runs_inside(model, node, task_key(reference) or ""):
                return False
        elif step_key(reference, 0) in LOOP_NAMES and not inside_loop(node):
            return False  # that it cannot stand here is said
        elif reference.root != "ctx" or step_key(reference, 0) == "event":
            return False
    return True


def _runs_inside(model: Model, node: Node, key: str) -> bool:
    task = model.by_key.get(key)
    return task is None or node.holds(task)

"""The node types: what happens when an execution is looked at, and when a child has ended.

`LOOK_AT` and `CHILD_ENDED` are the two tables by node type; a machine calls the first for an
execution that was activated just now, the second for a composite one of whose children has
succeeded or failed. Each function takes one step and leaves the rest to the machine's agenda.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from local_runner.closing import body_failed, close, release, run_finally, settle
from local_runner.execution import FAILED, Execution, Failure
from local_runner.operators import equal
from local_runner.type_table import check_variable
from local_runner.values import MISSING, EngineError, JsonValue, storable_problem, type_word

if TYPE_CHECKING:
    from local_runner.machine import Machine

Step = Callable[["Machine", Execution], None]
ChildStep = Callable[["Machine", Execution, Execution], None]

# -- when an execution is looked at


def look_at_action(machine: Machine, execution: Execution) -> None:
    """Builds the input once (S4.1) and offers the action."""
    value = machine.evaluate(execution, execution.node.program)
    if value is not MISSING:
        execution.input = value
        machine.offer(execution)


def look_at_sequence(machine: Machine, execution: Execution) -> None:
    node = execution.node
    if node.fail_code is not None:
        _fail_as_written(machine, execution, node.fail_code)
    elif node.sleep_ms is not None:
        machine.sleep(execution, node.sleep_ms)
    elif node.steps:
        machine.activate(execution, node.steps[0])
    else:
        continue_sequence(machine, execution)


def _fail_as_written(machine: Machine, execution: Execution, code: int) -> None:
    message = machine.evaluate(execution, execution.node.program)
    if message is MISSING:
        return
    if isinstance(message, str):
        machine.fail_with_code(execution, code, message)
    else:
        text = f"{type_word(message)} cannot stand inside a string"
        machine.fail_by_engine(execution, EngineError(10017, text))


def look_at_parallel(machine: Machine, execution: Execution) -> None:
    children = execution.node.children
    if not children:
        machine.succeed(execution)
    for child in children[: execution.node.parallel or len(children)]:
        machine.activate(execution, child)


def look_at_if(machine: Machine, execution: Execution) -> None:
    holds = machine.test(execution)
    if holds is None:
        return
    branch = execution.node.then if holds else execution.node.otherwise
    if branch is not None:
        machine.activate(execution, branch)
    elif holds:
        machine.fail_by_engine(execution, EngineError(10003, "the if has no branch to take"))
    else:
        machine.succeed(execution)


def look_at_switch(machine: Machine, execution: Execution) -> None:
    subject = machine.evaluate(execution, execution.node.program)
    if subject is MISSING:
        return
    for values, branch in execution.node.cases:
        for value in values:
            fits = equal(subject, value)
            if isinstance(fits, EngineError):
                machine.fail_by_engine(execution, fits)
                return
            if fits:
                machine.activate(execution, branch)
                return
    if execution.node.otherwise is not None:
        machine.activate(execution, execution.node.otherwise)
    else:
        text = "no case fits and there is no default"
        machine.fail_by_engine(execution, EngineError(10004, text))


def look_at_repeat(machine: Machine, execution: Execution) -> None:
    count = machine.evaluate(execution, execution.node.program)
    if count is MISSING:
        return
    if type(count) is not int:
        text = f"repeat takes an integer, not {type_word(count)}"
        machine.fail_by_engine(execution, EngineError(10010, text))
        return
    execution.total_count = count
    continue_repeat(machine, execution)


def look_at_foreach(machine: Machine, execution: Execution) -> None:
    items = machine.evaluate(execution, execution.node.program)
    if items is MISSING:
        return
    if items is None:
        machine.fail_by_engine(execution, EngineError(10001, "the collection is null"))
    elif type(items) is not list:
        text = f"the collection is an array or nothing else, not {type_word(items)}"
        machine.fail_by_engine(execution, EngineError(10009, text))
    elif not items:
        _succeed_foreach(machine, execution)
    elif execution.node.body is None:
        machine.fail_by_engine(execution, EngineError(10007, "the foreach has no body"))
    else:
        _start_foreach(machine, execution, items)


def _start_foreach(machine: Machine, execution: Execution, items: list[JsonValue]) -> None:
    size = execution.node.batch
    if size is not None:
        items = [items[start : start + size] for start in range(0, len(items), size)]
    execution.items = items
    execution.total_count = len(items)
    if execution.node.reuse is not None:
        machine.look_up(execution)
    for _ in range(min(execution.node.parallel or len(items), len(items))):
        _start_next(machine, execution)
    if execution.finished_count == execution.total_count:
        _succeed_foreach(machine, execution)


def _start_next(machine: Machine, execution: Execution) -> None:
    """Starts the next iteration of a FOREACH that has to run, and skips those before it."""
    while execution.started_count < execution.total_count:
        known = execution.known
        exported = known.pop(execution.started_count, None) if known else None
        if exported is None:
            body = execution.node.body
            assert body is not None, "a FOREACH without a body has failed before"
            machine.activate(execution, body, execution.started_count)
            return
        machine.skip(execution, exported)
        execution.finished_count += 1


# -- when a child has ended


def child_of_sequence(machine: Machine, execution: Execution, child: Execution) -> None:
    edge = child.node.edge
    if edge == "SEQUENCE" and child.status != FAILED:
        continue_sequence(machine, execution)
    elif edge == "FINALLY":
        _after_finally(machine, execution, child)
    elif child.status == FAILED:
        body_failed(machine, execution, _failure_of(child))
    else:
        execution.failure = None
        run_finally(machine, execution)


def _after_finally(machine: Machine, execution: Execution, child: Execution) -> None:
    if execution.is_cancelled:
        release(machine, execution)
        return
    if child.status == FAILED:
        execution.failure = _joined(execution.failure, _failure_of(child))
    settle(machine, execution)


def _joined(before: Failure | None, of_finally: Failure) -> Failure:
    """The error of the body stays; that of the `finally` is added to its message (R13)."""
    if before is None:
        return of_finally
    message = f"{before.error.message} (and in finally: {of_finally.error.message})"
    return replace(before, error=replace(before.error, message=message))


def _failure_of(child: Execution) -> Failure:
    assert child.error is not None, "a FAILED execution has an error"
    return Failure(child.result_code, child.error)


def continue_sequence(machine: Machine, execution: Execution) -> None:
    node = execution.node
    if execution.started_count < len(node.steps):
        machine.activate(execution, node.steps[execution.started_count])
    elif node.final is None and execution.failure is None:
        machine.succeed(execution)
    else:
        run_finally(machine, execution)


def _count(execution: Execution, child: Execution) -> None:
    execution.finished_count += 1
    if child.status == FAILED:
        execution.failed_count += 1
        if execution.failure is None:
            execution.failure = _failure_of(child)


def child_of_parallel(machine: Machine, execution: Execution, child: Execution) -> None:
    _count(execution, child)
    node, children = execution.node, execution.node.children
    has_failed = execution.failed_count > len(children) - node.needed
    succeeded_count = execution.finished_count - execution.failed_count
    has_joined = node.needed < len(children) and succeeded_count == node.needed
    is_over = execution.finished_count == len(children)
    if is_over or ((has_failed or has_joined) and not node.keep_going):
        close(machine, execution, execution.failure if has_failed else None)
    elif execution.started_count < len(children):
        machine.activate(execution, children[execution.started_count])


def child_of_foreach(machine: Machine, execution: Execution, child: Execution) -> None:
    _count(execution, child)
    has_failed = execution.failed_count > 0 and _is_past_tolerance(execution)
    if not has_failed or execution.node.keep_going:
        _start_next(machine, execution)
    is_over = execution.finished_count == execution.total_count
    if has_failed and (is_over or not execution.node.keep_going):
        close(machine, execution, execution.failure)
    elif is_over:
        _succeed_foreach(machine, execution)


def _is_past_tolerance(execution: Execution) -> bool:
    percent = execution.node.tolerated_percent
    if percent is not None:
        return execution.failed_count * 100 > percent * execution.total_count
    return execution.failed_count > execution.node.tolerated_count


def continue_repeat(machine: Machine, execution: Execution) -> None:
    if execution.started_count < execution.total_count:
        _iterate(machine, execution)
    else:
        machine.succeed(execution)


def continue_while(machine: Machine, execution: Execution) -> None:
    holds = machine.test(execution)
    if holds is None:
        return
    limit = execution.node.max_iterations
    if not holds:
        machine.succeed(execution)
    elif execution.started_count >= limit:
        text = f"while passed its max of {limit}"
        machine.fail_by_engine(execution, EngineError(10012, text))
    else:
        _iterate(machine, execution)


def _iterate(machine: Machine, execution: Execution) -> None:
    node = execution.node
    if node.body is None:
        code = 10005 if node.type == "REPEAT" else 10006
        text = f"the {node.type.lower()} has no body"
        machine.fail_by_engine(execution, EngineError(code, text))
    else:
        machine.activate(execution, node.body, execution.started_count)


def _succeed_foreach(machine: Machine, execution: Execution) -> None:
    for binding in execution.node.collects:
        gathered = [
            child.output[binding.name] if child.output is not None else None
            for child in execution.children
        ]
        problem = storable_problem(gathered)
        if problem is None and binding.type is not None:
            problem = check_variable(binding.name, binding.type, gathered)
        if problem is not None:
            machine.fail_by_engine(execution, problem)
            return
        machine.write(execution, binding.owner, binding.name, gathered)
    machine.succeed(execution)


def _unless_failed(go_on: Step) -> ChildStep:
    """Makes the step of a composite that fails by any child, with nothing else open then."""

    def child_ended(machine: Machine, execution: Execution, child: Execution) -> None:
        if child.status == FAILED:
            machine.fail(execution, _failure_of(child))
            return
        keep = execution.node.keep
        if keep is not None and len(execution.children) > keep:
            machine.drop(execution.children.pop(0))
        go_on(machine, execution)

    return child_ended


def _succeed(machine: Machine, execution: Execution) -> None:
    machine.succeed(execution)


LOOK_AT: Final[dict[str, Step]] = {
    "ACTION": look_at_action,
    "SEQUENCE": look_at_sequence,
    "PARALLEL": look_at_parallel,
    "IF": look_at_if,
    "SWITCH": look_at_switch,
    "REPEAT": look_at_repeat,
    "WHILE": continue_while,
    "FOREACH": look_at_foreach,
}
CHILD_ENDED: Final[dict[str, ChildStep]] = {
    "SEQUENCE": child_of_sequence,
    "PARALLEL": child_of_parallel,
    "IF": _unless_failed(_succeed),
    "SWITCH": _unless_failed(_succeed),
    "REPEAT": _unless_failed(continue_repeat),
    "WHILE": _unless_failed(continue_while),
    "FOREACH": child_of_foreach,
}

"""The node types: what happens when an execution is looked at, and when a child has succeeded.

`LOOK_AT` and `CONTINUE` are the two tables by node type; a machine calls the first for an execution
that was activated just now, the second for a composite one of whose children has succeeded. Each
function takes one step and leaves the rest to the machine's agenda.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from local_runner.commands import RunAction
from local_runner.execution import Execution
from local_runner.expressions import equal
from local_runner.values import MISSING, EngineError, type_word

if TYPE_CHECKING:
    from local_runner.machine import Machine

Step = Callable[["Machine", Execution], None]

# -- when an execution is looked at


def look_at_action(machine: Machine, execution: Execution) -> None:
    """Builds the input once (S4.1) and offers the action."""
    node = execution.node
    value = machine.evaluate(execution, node.program)
    if value is MISSING:
        return
    execution.input = value
    loop: Execution | None = execution
    while loop is not None and not loop.node.is_iteration:
        loop = loop.parent
    machine.command(
        RunAction(
            execution_id=execution.id,
            path=execution.path,
            node_key=node.key,
            action=node.action,
            input=value,
            attempt=execution.attempts + 1,
            iteration_no=0 if loop is None else loop.iteration + 1,
            priority=node.priority,
        )
    )


def look_at_sequence(machine: Machine, execution: Execution) -> None:
    node = execution.node
    if node.fail_code is not None:
        _fail_as_written(machine, execution, node.fail_code)
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
        execution.items = items
        execution.total_count = len(items)
        for _ in range(min(execution.node.parallel or len(items), len(items))):
            _iterate(machine, execution)


# -- when a child has succeeded


def continue_sequence(machine: Machine, execution: Execution) -> None:
    children = execution.node.children
    if execution.started_count < len(children):
        machine.activate(execution, children[execution.started_count])
    else:
        machine.succeed(execution)


def continue_parallel(machine: Machine, execution: Execution) -> None:
    children = execution.node.children
    execution.finished_count += 1
    if execution.finished_count == len(children):
        machine.succeed(execution)
    elif execution.started_count < len(children):
        machine.activate(execution, children[execution.started_count])


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


def continue_foreach(machine: Machine, execution: Execution) -> None:
    execution.finished_count += 1
    if execution.finished_count == execution.total_count:
        _succeed_foreach(machine, execution)
    elif execution.started_count < execution.total_count:
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
        machine.write(execution, binding.owner, binding.name, gathered)
    machine.succeed(execution)


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
CONTINUE: Final[dict[str, Step]] = {
    "SEQUENCE": continue_sequence,
    "PARALLEL": continue_parallel,
    "IF": _succeed,
    "SWITCH": _succeed,
    "REPEAT": continue_repeat,
    "WHILE": continue_while,
    "FOREACH": continue_foreach,
}

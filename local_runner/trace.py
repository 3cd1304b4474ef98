"""The trace document of an instance (semantics §11), equal as JSON between the engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from local_runner.execution import Execution, NodeError
from local_runner.values import JsonValue, holds_scalars, map_strings

if TYPE_CHECKING:
    from local_runner.machine import Machine

TRACE_FORMAT = 1
MASK = "***"

Change = Callable[[JsonValue], JsonValue]


def trace_document(machine: Machine) -> dict[str, JsonValue]:
    """Returns what an instance has left: its result, its variables and a row per execution."""
    root = machine.root
    hidden = _hiding(machine.instance_id)
    return {
        "trace_format": TRACE_FORMAT,
        "workflow": machine.graph.name,
        "status": machine.status,
        "error": _error(machine.error, hidden),
        "output": hidden(machine.output),
        "variables": {} if root is None else hidden(root.scope.values),
        "nodes": [] if root is None else _rows(root, hidden),
    }


def _hiding(own_id: str) -> Change:
    """Returns the function that copies a value with the instance's own id written as a name."""

    def change(text: str) -> str:
        return "$instance_id" if text == own_id else text

    def hidden(value: JsonValue) -> JsonValue:
        if value is None or type(value) is int:
            return value
        if holds_scalars(value) and own_id not in value.values():
            return dict(value)
        return map_strings(value, change)

    return hidden


def _rows(root: Execution, hidden: Change) -> list[JsonValue]:
    """Walks in pre-order by (edge order, iteration), without recursion."""
    rows: list[JsonValue] = []
    pending = [root]
    while pending:
        execution = pending.pop()
        node = execution.node
        if execution is root or node.is_iteration or not node.generated:
            rows.append(_row(execution, hidden))
        # Children were made in order already, of edges and of iterations alike.
        if execution.children:
            pending.extend(reversed(execution.children))
    return rows


def _row(execution: Execution, hidden: Change) -> dict[str, JsonValue]:
    node, given, gave = execution.node, execution.input, execution.output
    error = execution.error
    row: dict[str, JsonValue] = {
        "path": execution.path,
        "type": node.type,
        "status": execution.status,
        "attempts": execution.attempts,
        "result_code": execution.result_code,
        "input": None if given is None else _masked(hidden(given), node.sensitive, "input"),
        "output": None if gave is None else _masked(hidden(gave), node.sensitive, "output"),
        "error": None if error is None else _error(error, hidden),
    }
    if node.opens_scope and execution.parent is not None:
        row["variables"] = hidden(execution.scope.values)
    return row


def _masked(value: JsonValue, pointers: tuple[str, ...], part: str) -> JsonValue:
    """Puts "***" where a pointer of this part leads; `value` is changed in place.

    What no pointer meets stays, and so does None, which stands for no value at all.
    """
    if value is None:
        return None
    for pointer in pointers:
        _root, first, *path = (s.replace("~1", "/").replace("~0", "~") for s in pointer.split("/"))
        if first != part:
            continue
        if not path:
            return MASK
        holder: Any = value
        for step in path[:-1]:
            holder = _inner(holder, step)
        if _inner(holder, path[-1]) is not _NOTHING:
            holder[int(path[-1]) if isinstance(holder, list) else path[-1]] = MASK
    return value


_NOTHING = object()


def _inner(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step, _NOTHING)
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return value[int(step)]
    return _NOTHING


def _error(error: NodeError | None, hidden: Change) -> JsonValue:
    return None if error is None else hidden(error.to_json_value())

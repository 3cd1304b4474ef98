"""The trace document of an instance (semantics §11), equal as JSON between the engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from local_runner.execution import Execution, NodeError
from local_runner.values import JsonValue, map_strings

if TYPE_CHECKING:
    from local_runner.machine import Machine

TRACE_FORMAT = 1

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
        pending.extend(reversed(execution.children))
    return rows


def _row(execution: Execution, hidden: Change) -> dict[str, JsonValue]:
    row: dict[str, JsonValue] = {
        "path": execution.path,
        "type": execution.node.type,
        "status": execution.status,
        "attempts": execution.attempts,
        "result_code": execution.result_code,
        "input": hidden(execution.input),
        "output": hidden(execution.output),
        "error": _error(execution.error, hidden),
    }
    if execution.node.opens_scope and execution.parent is not None:
        row["variables"] = hidden(execution.scope.values)
    return row


def _error(error: NodeError | None, hidden: Change) -> JsonValue:
    return None if error is None else hidden(error.to_json_value())

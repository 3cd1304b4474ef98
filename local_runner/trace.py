"""The trace document of an instance (semantics §11), equal as JSON between the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from local_runner.execution import Execution, NodeError
from local_runner.values import JsonValue, map_strings

if TYPE_CHECKING:
    from local_runner.machine import Machine

TRACE_FORMAT = 1


def trace_document(machine: Machine) -> dict[str, JsonValue]:
    """Returns what an instance has left: its result, its variables and a row per execution."""
    root = machine.executions[0] if machine.executions else None
    document = {
        "trace_format": TRACE_FORMAT,
        "workflow": machine.graph.name,
        "status": machine.status,
        "error": _error(machine.error),
        "output": machine.output,
        "variables": {} if root is None else root.scope.values,
        "nodes": [] if root is None else _rows(root),
    }
    own_id = machine.instance_id
    changed: dict[str, JsonValue] = map_strings(
        document, lambda text: "$instance_id" if text == own_id else text
    )
    return changed


def _rows(root: Execution) -> list[JsonValue]:
    """Walks in pre-order by (edge order, iteration), without recursion."""
    rows: list[JsonValue] = []
    pending = [root]
    while pending:
        execution = pending.pop()
        node = execution.node
        if execution is root or node.is_iteration or not node.generated:
            rows.append(_row(execution))
        # Children were made in order already, of edges and of iterations alike.
        pending.extend(reversed(execution.children))
    return rows


def _row(execution: Execution) -> dict[str, JsonValue]:
    row: dict[str, JsonValue] = {
        "path": execution.path,
        "type": execution.node.type,
        "status": execution.status,
        "attempts": execution.attempts,
        "result_code": execution.result_code,
        "input": execution.input,
        "output": execution.output,
        "error": _error(execution.error),
    }
    if execution.node.opens_scope and execution.parent is not None:
        row["variables"] = execution.scope.values
    return row


def _error(error: NodeError | None) -> JsonValue:
    return None if error is None else error.to_json_value()

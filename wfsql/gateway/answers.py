"""Writing answers: values to JSON bytes, stored documents passed through as the text they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from runtime_sql.connection import Instance, Task

_text: Callable[[str], str] = json.JSONEncoder(ensure_ascii=False).encode
_WORDS = {None: "null", True: "true", False: "false"}


class RawJson(str):
    """JSON text that stands in an answer as it is, so that its numbers keep their digits."""

    __slots__ = ()


def write(value: Any) -> bytes:
    """Returns the JSON of dicts, lists, texts, integers, booleans, None, times and `RawJson`.

    Keys are the API's own names, which need no escapes.
    """
    out: list[str] = []
    _add(value, out)
    return "".join(out).encode("utf-8", "replace")


def _add(value: Any, out: list[str]) -> None:
    match value:
        case RawJson():
            out.append(value)
        case str():
            out.append(_text(value))
        case None | bool():
            out.append(_WORDS[value])
        case int():
            out.append(str(value))
        case dict():
            mark = "{"
            for key, child in value.items():
                out.append(f'{mark}"{key}":')
                _add(child, out)
                mark = ","
            out.append("}" if value else "{}")
        case list() | tuple():
            mark = "["
            for child in value:
                out.append(mark)
                _add(child, out)
                mark = ","
            out.append("]" if value else "[]")
        case datetime():
            out.append(f'"{utc_text(value)}"')
        case _:
            raise TypeError(f"an answer holds no {type(value).__name__}")


def utc_text(at: datetime) -> str:
    """Returns a time as RFC 3339 in UTC, to the millisecond."""
    moved = at.astimezone(UTC)
    return f"{moved.strftime('%Y-%m-%dT%H:%M:%S')}.{moved.microsecond // 1000:03d}Z"


def task_answer(task: Task) -> dict[str, Any]:
    """Returns a claimed task as it goes to its worker."""
    return {
        "task_id": task.execution_id,
        "instance_id": task.instance_id,
        "node_key": task.node_key,
        "action": task.action,
        "capability": task.capability,
        "attempt": task.attempt,
        "input": RawJson(task.input_json),
        "iteration_no": task.iteration_no,
        "lease_token": task.lease_token,
        "lease_until": task.lease_until,
        "deadline": task.deadline,
        "path": task.path,
        "trace_parent": task.trace_parent,
    }


def instance_answer(found: Instance) -> dict[str, Any]:
    """Returns an instance without its output."""
    return {
        "instance_id": found.instance_id,
        "workflow": found.workflow,
        "version": found.version,
        "status": found.status,
        "business_key": found.business_key,
        "created_at": found.created_at,
        "started_at": found.started_at,
        "ended_at": found.ended_at,
        "error_code": found.error_code,
        "engine_error_code": found.engine_error_code,
        "error_message": found.error_message,
        "error_node": found.error_node,
        "error_path": found.error_path,
    }


def instance_with_output(found: Instance) -> dict[str, Any]:
    """Returns an instance with its output, null while it has none."""
    output = "null" if found.output_json is None else found.output_json
    return instance_answer(found) | {"output": RawJson(output)}

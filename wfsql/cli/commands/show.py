"""`wf show`: one instance and its nodes."""

from __future__ import annotations

from compiler import json_values
from runtime_sql.connection import ExecutionRow
from wfsql.cli.database import (
    INSTANCES_HINT,
    InstanceArgument,
    JsonOption,
    UrlOption,
    good,
    open_client,
)
from wfsql.cli.output import write, write_table
from wfsql.cli.views import instance_json, say_outcome, write_instances


def command(
    instance_id: InstanceArgument,
    url: UrlOption = None,
    json: JsonOption = False,
) -> int:
    """Show one instance: its state, its output or error, and every node it has reached.

    Example:  wf show 17
    """
    client = open_client(url)
    found = good(client.get_instance(instance_id), INSTANCES_HINT)
    rows = good(client.executions(instance_id))
    if json:
        nodes = [{"path": r.path, "type": r.type, "status": r.status} for r in rows]
        write(json_values.dumps(instance_json(found) | {"nodes": nodes}))
        return 0
    write_instances([found])
    write("")
    write_table(("PATH", "TYPE", "STATUS", "TOOK", "WORKER"), [_cells(row) for row in rows])
    if found.ended_at is not None:
        say_outcome(found)
    return 0


def _cells(row: ExecutionRow) -> tuple[str, ...]:
    return (row.path, row.type, row.status, _took(row), row.worker_id or "")


def _took(row: ExecutionRow) -> str:
    if row.started_at is None or row.ended_at is None:
        return ""
    return f"{(row.ended_at - row.started_at).total_seconds() * 1000:.0f} ms"

"""`wf show`: one instance and its nodes."""

from __future__ import annotations

from runtime_sql.connection import ExecutionRow
from wfsql.cli.database import (
    INSTANCES_HINT,
    InstanceArgument,
    JsonOption,
    UrlOption,
    good,
    open_client,
)
from wfsql.cli.output import Crop, write, write_json, write_table
from wfsql.cli.views import instance_json, node_json, say_outcome, took_ms, write_instances

_CROPS = {
    "WORKER": Crop(8, keep="end"),
    "ACTION": Crop(10),
    "PATH": Crop(20, keep="end"),
}


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
    names = good(client.output_names(instance_id))
    if json:
        nodes = [node_json(row) for row in rows]
        write_json(instance_json(found, names) | {"nodes": nodes})
        return 0
    write_instances([found])
    write("")
    columns = ("PATH", "TYPE", "STATUS", "CODE", "TOOK", "ACTION", "WORKER")
    write_table(columns, [_cells(row) for row in rows], _CROPS)
    if found.ended_at is not None:
        say_outcome(found, names)
    return 0


def _cells(row: ExecutionRow) -> tuple[str, ...]:
    took = took_ms(row)
    code = row.engine_error_code if row.result_code is None else row.result_code
    return (
        row.path,
        row.type,
        row.status,
        "" if code is None else str(code),
        "" if took is None else f"{took} ms",
        row.action or "",
        row.worker_id or "",
    )

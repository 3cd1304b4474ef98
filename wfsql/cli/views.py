"""How instances look: as JSON for programs, as lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from compiler import json_values
from runtime_sql.connection import ExecutionRow, Instance
from wfsql.cli.output import (
    Crop,
    say,
    short_time,
    table_width,
    terminal_width,
    write_json,
    write_table,
)

_CROPS = {"KEY": Crop(8), "WORKFLOW": Crop(12), "AT": Crop(12, keep="end")}
_DROPS = ("ENDED", "VERSION")

ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})


def instance_json(found: Instance, output_names: Sequence[str] = ()) -> dict[str, Any]:
    """Returns an instance as JSON values; times are RFC 3339 in UTC.

    Args:
      output_names: the order of the output's entries; jsonb does not keep the author's.
    """
    return {
        "instance_id": found.instance_id,
        "workflow": found.workflow,
        "version": found.version,
        "status": found.status,
        "business_key": found.business_key,
        "created_at": timestamp(found.created_at),
        "started_at": timestamp(found.started_at),
        "ended_at": timestamp(found.ended_at),
        "output": output_value(found, output_names),
        "error": error_json(found),
    }


def error_json(found: Instance) -> dict[str, Any] | None:
    if found.error_code is None and found.engine_error_code is None:
        return None
    return {
        "code": found.error_code,
        "engine_code": found.engine_error_code,
        "message": found.error_message,
        "node": found.error_node,
        "path": found.error_path,
    }


def output_value(found: Instance, names: Sequence[str]) -> Any:
    """Returns the output document, its entries in the order of `names`."""
    if found.output_json is None:
        return None
    document = json_values.read_stored(found.output_json)
    if not isinstance(document, dict):
        return document
    order = [name for name in names if name in document]
    return {name: document[name] for name in dict.fromkeys([*order, *document])}


def node_json(row: ExecutionRow) -> dict[str, Any]:
    """Returns an execution as JSON values."""
    return {
        "path": row.path,
        "type": row.type,
        "status": row.status,
        "action": row.action,
        "attempt": row.attempt,
        "code": row.result_code,
        "engine_code": row.engine_error_code,
        "message": row.message,
        "started_at": timestamp(row.started_at),
        "ended_at": timestamp(row.ended_at),
        "took_ms": took_ms(row),
        "worker": row.worker_id,
    }


def took_ms(row: ExecutionRow) -> int | None:
    """Returns how long an execution took; None before its end."""
    if row.started_at is None or row.ended_at is None:
        return None
    return round((row.ended_at - row.started_at).total_seconds() * 1000)


def timestamp(at: datetime | None) -> str | None:
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _error_code(found: Instance) -> int | None:
    return found.engine_error_code if found.error_code is None else found.error_code


def say_outcome(found: Instance, output_names: Sequence[str] = ()) -> None:
    """Writes how an instance ended: a line to stderr, its output to stdout."""
    say(f"{found.workflow} {found.instance_id}: {found.status}")
    if found.error_message is not None:
        say(f"error {_error_code(found)}: {found.error_message}")
        # The engine's own messages begin with the path.
        if found.error_path and not found.error_message.startswith(f"{found.error_path}: "):
            say(f"  at {found.error_path}")
    if found.output_json is not None:
        write_json(output_value(found, output_names), indent=2)


def write_instances(found: Sequence[Instance]) -> None:
    """Writes a table with a row per instance, and columns for errors when there are any."""
    table = _table(found, narrow=False)
    width = terminal_width()
    if width is not None and table_width(table) > width:
        table = _table(found, narrow=True)
    crops = {name: crop for name, crop in _CROPS.items() if name in table[0]}
    write_table(table[0], table[1:], crops, _DROPS)


def _table(found: Sequence[Instance], narrow: bool) -> list[list[str]]:
    """Returns the names and the rows; a narrow table has short times and no empty KEY."""
    columns: dict[str, list[str]] = {
        "ID": [str(each.instance_id) for each in found],
        "WORKFLOW": [each.workflow for each in found],
        "VERSION": [str(each.version) for each in found],
        "STATUS": [each.status for each in found],
        "KEY": [each.business_key or "" for each in found],
        "STARTED": [short_time(each.started_at, narrow=narrow) for each in found],
        "ENDED": [short_time(each.ended_at, narrow=narrow) for each in found],
    }
    if any(_error_code(each) is not None for each in found):
        codes = (_error_code(each) for each in found)
        columns["CODE"] = ["" if code is None else str(code) for code in codes]
        columns["AT"] = [each.error_path or "" for each in found]
    if narrow and not any(columns["KEY"]):
        del columns["KEY"]
    return [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]

"""How instances look: as JSON for programs, as lines for people."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from compiler import json_values
from runtime_sql.connection import Instance
from wfsql.cli.output import say, short_time, write, write_table

ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})


def instance_json(found: Instance) -> dict[str, Any]:
    """Returns an instance as JSON values; times are RFC 3339 in UTC."""
    return {
        "instance_id": found.instance_id,
        "workflow": found.workflow,
        "version": found.version,
        "status": found.status,
        "business_key": found.business_key,
        "created_at": _timestamp(found.created_at),
        "started_at": _timestamp(found.started_at),
        "ended_at": _timestamp(found.ended_at),
        "output": None if found.output_json is None else json_values.loads(found.output_json),
        "error": error_json(found),
    }


def error_json(found: Instance) -> dict[str, Any] | None:
    if found.error_code is None and found.engine_error_code is None:
        return None
    return {
        "code": found.error_code,
        "engine_code": found.engine_error_code,
        "message": found.error_message,
    }


def _timestamp(at: datetime | None) -> str | None:
    return None if at is None else short_time(at).replace(" ", "T")


def say_outcome(found: Instance) -> None:
    """Writes how an instance ended: a line to stderr, its output to stdout."""
    say(f"{found.workflow} {found.instance_id}: {found.status}")
    if found.error_message is not None:
        code = found.engine_error_code if found.error_code is None else found.error_code
        say(f"error {code}: {found.error_message}")
    if found.output_json is not None:
        write(json_values.dumps(json_values.loads(found.output_json), indent=2))


def write_instances(found: list[Instance]) -> None:
    """Writes a table with a row per instance."""
    rows = [
        (
            str(each.instance_id),
            each.workflow,
            str(each.version),
            each.status,
            each.business_key or "",
            short_time(each.started_at),
            short_time(each.ended_at),
        )
        for each in found
    ]
    write_table(("ID", "WORKFLOW", "VERSION", "STATUS", "KEY", "STARTED", "ENDED"), rows)

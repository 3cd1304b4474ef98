"""`wf workers`: who works, on what, and how much more each could take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime_sql.operator_rows import WorkerRow
from wfsql.cli.database import good, open_client
from wfsql.cli.operating import add_limit, operator_parser, timestamp, watch_seconds
from wfsql.cli.output import (
    Crop,
    say,
    short_time,
    table_width,
    terminal_width,
    write_json,
    write_table,
)
from wfsql.cli.watching import show

_CROPS = {"CAPABILITIES": Crop(12), "WORKER": Crop(16, keep="ends"), "BUILD": Crop(8)}
_DROPS = ("BUILD",)


def run(arguments: Sequence[str]) -> int:
    """Lists the registered workers by name."""
    parser = operator_parser(
        "workers",
        "",
        "List the workers: their state, when they were last heard of, how many tasks\n"
        "they have in hand and may have, and what they can do. SILENT are those that\n"
        "were not heard of for five minutes.",
        "wf workers --watch",
        watch=True,
    )
    add_limit(parser, 1000, "workers")
    options = parser.parse_args(arguments)
    seconds = watch_seconds(options)
    client = open_client(options.url)

    def draw() -> bool:
        rows = good(client.list_workers(options.limit))
        if options.json:
            write_json([_json(row) for row in rows])
        elif rows:
            _write(rows)
        else:
            say("no worker is registered; start one with: wf worker --handlers MODULE")
        return True

    return show(draw, seconds)


def _write(rows: Sequence[WorkerRow]) -> None:
    table = _table(rows, narrow=False)
    width = terminal_width()
    if width is not None and table_width(table) > width:
        table = _table(rows, narrow=True)
    crops = {name: crop for name, crop in _CROPS.items() if name in table[0]}
    write_table(table[0], table[1:], crops, [name for name in _DROPS if name in table[0]])


def _table(rows: Sequence[WorkerRow], narrow: bool) -> list[list[str]]:
    columns: dict[str, list[str]] = {
        "WORKER": [row.worker_id for row in rows],
        "STATE": [_state(row) for row in rows],
        "LAST SEEN": [short_time(row.last_seen_at, narrow=narrow) or "never" for row in rows],
        "IN HAND": [f"{row.lease_count} of {row.max_concurrency}" for row in rows],
        "CAPABILITIES": [" ".join(row.capabilities) for row in rows],
    }
    if any(row.build_id for row in rows):
        columns["BUILD"] = [row.build_id or "" for row in rows]
    return [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]


def _state(row: WorkerRow) -> str:
    """A worker that nobody hears of is silent, whatever it was told to do."""
    return row.state if row.is_present else "SILENT"


def _json(row: WorkerRow) -> dict[str, Any]:
    return {
        "worker_id": row.worker_id,
        "state": row.state,
        "is_present": row.is_present,
        "last_seen_at": timestamp(row.last_seen_at),
        "registered_at": timestamp(row.registered_at),
        "lease_count": row.lease_count,
        "max_concurrency": row.max_concurrency,
        "holds_exclusive": row.holds_exclusive,
        "capabilities": list(row.capabilities),
        "build_id": row.build_id,
    }

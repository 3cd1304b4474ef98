"""`wf workers`: who works, on what, and how much more each could take.

A worker that has ended stays registered. It is listed only with `--all`, or while it holds tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime_sql.operator_rows import WorkerRow
from wfsql.cli.database import good, open_client
from wfsql.cli.operating import (
    MOST_ROWS,
    add_limit,
    operator_parser,
    timestamp,
    watch_seconds,
)
from wfsql.cli.output import (
    Crop,
    counted,
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
    """Lists the workers by name: those that were heard of, or all."""
    parser = operator_parser(
        "workers",
        "",
        "List the workers: their state, when they were last heard of, how many tasks\n"
        "they have in hand and may have, and what they can do. SILENT are those that\n"
        "were not heard of for five minutes: they are listed while they have tasks in\n"
        "hand, the others only with --all.",
        "wf workers --watch",
        watch=True,
    )
    parser.add_argument("--all", action="store_true", help="List also those that are gone.")
    add_limit(parser, 1000, "workers")
    options = parser.parse_args(arguments)
    seconds = watch_seconds(options)
    client = open_client(options.url)

    def draw() -> bool:
        known = good(client.list_workers(MOST_ROWS))
        rows = [row for row in known if options.all or row.is_present or row.lease_count]
        if options.json:
            write_json([_json(row) for row in rows[: options.limit]])
        elif rows:
            _write(rows[: options.limit])
        else:
            say(f"{_nobody(bool(known))}; start one with: wf worker --handlers MODULE")
        if gone := len(known) - len(rows):
            say(f"note: {counted(gone, 'worker')} not heard of for five minutes; --all shows more")
        if len(rows) > options.limit:
            say(f"note: these are {options.limit} of {len(rows)}; --limit shows more")
        return True

    return show(draw, seconds)


def _nobody(is_anybody_known: bool) -> str:
    return "no worker is there" if is_anybody_known else "no worker is registered"


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

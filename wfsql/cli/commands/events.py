"""`wf events`: the events that were taken in, and what came of each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from runtime_sql.connection import RuntimeClient
from runtime_sql.operator_rows import DeliveryRow, EventRow
from wfsql.cli.database import INSTANCES_HINT, good, open_client
from wfsql.cli.operating import (
    MOST_ID,
    add_limit,
    integer,
    operator_parser,
    timestamp,
    watch_seconds,
)
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

_CROPS = {
    "REASON": Crop(8),
    "SOURCE": Crop(8, keep="ends"),
    "PATH": Crop(10, keep="end"),
    "KEY": Crop(8, keep="ends"),
    "TYPE": Crop(12, keep="ends"),
}
_DROPS = ("SOURCE", "REASON")

Found = list[tuple[EventRow, list[DeliveryRow]]]


def run(arguments: Sequence[str]) -> int:
    """Lists events, the newest first."""
    parser = operator_parser(
        "events",
        "[ID]",
        "List events, the newest first, with what came of each: the waits that took\n"
        "it, the instances that it started. With ID, only those that were given to\n"
        "that instance. One that nothing has taken yet is kept.\n\n"
        '"wf events send" hands one in.',
        "wf events 17",
        watch=True,
    )
    parser.add_argument(
        "id", nargs="?", type=integer(1, MOST_ID), metavar="ID", help="An instance's id."
    )
    parser.add_argument("--type", metavar="TYPE", help="Only events of this type.")
    parser.add_argument(
        "--before", type=integer(1, MOST_ID), metavar="EVENT", help="Only events older than this."
    )
    add_limit(parser, 100, "events")
    options = parser.parse_args(arguments)
    seconds = watch_seconds(options)
    client = open_client(options.url)
    if options.id is not None:
        good(client.get_instance(options.id), INSTANCES_HINT)

    def draw() -> bool:
        found = _look(client, options)
        if options.json:
            write_json([_json(event, deliveries) for event, deliveries in found])
        elif found:
            _write(found)
        else:
            say("no events" if options.id is None else f"no event was given to {options.id}")
        return True

    return show(draw, seconds)


def _look(client: RuntimeClient, options: argparse.Namespace) -> Found:
    events = good(
        client.events(
            instance_id=options.id,
            event_type=options.type,
            before_id=options.before,
            limit=options.limit,
        )
    )
    ids = [event.event_id for event in events]
    rows = good(client.deliveries(ids, options.id, options.limit * 10))
    given: dict[int, list[DeliveryRow]] = {event_id: [] for event_id in ids}
    for row in rows:
        given[row.event_id].append(row)
    return [(event, given[event.event_id]) for event in events]


def _write(found: Found) -> None:
    table = _table(found, narrow=False)
    width = terminal_width()
    if width is not None and table_width(table) > width:
        table = _table(found, narrow=True)
    crops = {name: crop for name, crop in _CROPS.items() if name in table[0]}
    write_table(table[0], table[1:], crops, [name for name in _DROPS if name in table[0]])


def _table(found: Found, narrow: bool) -> list[list[str]]:
    """A row for each delivery, or one for an event without any; empty columns are left out."""
    rows: list[dict[str, str]] = []
    for event, deliveries in found:
        head = {
            "EVENT": str(event.event_id),
            "TYPE": event.event_type,
            "KEY": event.correlation_key or "",
            "SOURCE": event.source,
            "TAKEN IN": short_time(event.ingested_at, narrow=narrow),
        }
        rows += [head | _given(row) for row in deliveries] or [head | _given(None)]
    names = [name for name in rows[0] if name != "REASON" or any(row[name] for row in rows)]
    return [names, *([row[name] for name in names] for row in rows)]


def _given(row: DeliveryRow | None) -> dict[str, str]:
    if row is None:
        return {"OUTCOME": "kept", "INSTANCE": "", "PATH": "", "REASON": ""}
    return {
        "OUTCOME": row.outcome,
        "INSTANCE": "" if row.instance_id is None else str(row.instance_id),
        "PATH": row.path or row.workflow or "",
        "REASON": row.reason or "",
    }


def _json(event: EventRow, deliveries: list[DeliveryRow]) -> dict[str, Any]:
    return {
        "event_id": event.event_id,
        "event_type": event.event_type,
        "source": event.source,
        "idempotency_key": event.idempotency_key,
        "correlation_key": event.correlation_key,
        "occurred_at": timestamp(event.occurred_at),
        "ingested_at": timestamp(event.ingested_at),
        "duplicate_count": event.duplicate_count,
        "instance_id": event.instance_id,
        "deliveries": [
            {
                "outcome": row.outcome,
                "reason": row.reason,
                "workflow": row.workflow,
                "instance_id": row.instance_id,
                "path": row.path,
                "delivered_at": timestamp(row.delivered_at),
            }
            for row in deliveries
        ],
    }

"""`wf events send`: hands one event to the workflows of a database."""

from __future__ import annotations

from typing import Annotated

import typer

from compiler import json_values
from runtime_sql.connection import Ingested
from wfsql.cli.context import parse_json
from wfsql.cli.database import JsonOption, UrlOption, good, open_client
from wfsql.cli.output import counted, did_you_mean, say, write_json


def command(
    event_type: Annotated[
        str, typer.Argument(metavar="TYPE", help="The event's type.", show_default=False)
    ],
    url: UrlOption = None,
    payload: Annotated[
        str, typer.Option(metavar="JSON", help="The event's payload: what happened.")
    ] = "{}",
    correlate: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The correlation key: which of the waits it is for."),
    ] = None,
    source: Annotated[str, typer.Option(metavar="NAME", help="Who sends it.")] = "wf",
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="A name of this event, by which a repeat is known as one."
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Hand an event to the workflows that wait for it.

    Example:  wf events send courier.delivered --correlate A1 --payload '{"at": 12}'
    """
    from uuid import uuid4

    document = json_values.dumps(parse_json(payload, "--payload"))
    client = open_client(url)
    sent = good(client.ingest_event(event_type, source, key or str(uuid4()), document, correlate))
    if json:
        report = {
            "event_id": sent.event_id,
            "duplicate": sent.duplicate,
            "applied_count": sent.applied_count,
            "ignored_count": sent.ignored_count,
            "differs": sent.differs,
        }
        write_json(report)
    else:
        say(f"event {sent.event_id}: {_outcome(sent)}")
    if not sent.applied_count and not sent.duplicate:
        _hint_at_types(event_type, good(client.event_types()))
    return 0


def _outcome(sent: Ingested) -> str:
    """Says what became of the event. Applied to is a wait, or a workflow that it starts."""
    if sent.duplicate:
        return "a duplicate, and without effect" + (
            "; its type, key or payload differs from the first one's" if sent.differs else ""
        )
    ignored = f", ignored by {sent.ignored_count}" if sent.ignored_count else ""
    if sent.applied_count:
        return f"delivered to {counted(sent.applied_count, 'instance')}{ignored}"
    if sent.ignored_count:
        return f"delivered to nobody{ignored}: wf events says why"
    return "kept; nothing waits for it yet"


def _hint_at_types(sent: str, known: list[str]) -> None:
    """Says so when no deployed workflow takes events of this type: it may be misspelt."""
    if sent in known:
        return
    near = did_you_mean(sent, known) or "an early event is kept for workflows still to come"
    say(f'hint: no deployed workflow takes events of type "{sent}"; {near}')

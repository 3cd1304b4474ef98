"""`wf events send`: hands one event to the workflows of a database."""

from __future__ import annotations

from typing import Annotated

import typer

from compiler import json_values
from wfsql.cli.context import parse_json
from wfsql.cli.database import JsonOption, UrlOption, good, open_client
from wfsql.cli.output import say, write


def command(
    event_type: Annotated[str, typer.Argument(metavar="TYPE", show_default=False)],
    url: UrlOption = None,
    payload: Annotated[str, typer.Option(metavar="JSON", help="What happened.")] = "{}",
    correlate: Annotated[str | None, typer.Option(metavar="KEY", help="Whom it is for.")] = None,
    source: Annotated[str, typer.Option(help="Who sends it.")] = "wf",
    key: Annotated[
        str | None, typer.Option(help="Makes a repeat of this event known as one.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Hand an event to the workflows that wait for it.

    Example:  wf events send courier.delivered --correlate A1 --payload '{"at": "12:00"}'
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
        }
        write(json_values.dumps(report))
    else:
        again = ", seen before" if sent.duplicate else ""
        say(f"event {sent.event_id}{again}: applied to {sent.applied_count} waits")
    return 0

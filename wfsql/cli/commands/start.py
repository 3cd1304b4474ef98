"""`wf start`: makes an instance of a deployed workflow and starts it."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from compiler import json_values
from runtime_sql.connection import Instance, PostgresClient
from wfsql.cli.context import ContextFileOption, ContextOption, read_context
from wfsql.cli.database import JsonOption, UrlOption, good, open_client
from wfsql.cli.output import say, write
from wfsql.cli.views import ENDED, instance_json, say_outcome

_MAX_INT = 2**31 - 1
_FIRST_LOOK_SECONDS = 0.02
_LAST_LOOK_SECONDS = 1.0


def command(
    workflow: Annotated[str, typer.Argument(help="The workflow's name.", show_default=False)],
    url: UrlOption = None,
    context: ContextOption = None,
    context_file: ContextFileOption = None,
    business_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Your own name for it; a repeat finds the first."),
    ] = None,
    version: Annotated[
        int | None, typer.Option(min=1, max=2**31 - 1, help="Not the active version.")
    ] = None,
    priority: Annotated[
        int, typer.Option(min=-(2**31), max=2**31 - 1, help="Higher is claimed first.")
    ] = 0,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")] = False,
    json: JsonOption = False,
) -> int:
    """Start an instance of a deployed workflow and write its id.

    With --wait the exit code is 1 when the instance did not succeed.

    Example:  wf start order_fulfilment --context '{"order_id": "A1"}' --wait
    """
    document = json_values.dumps(read_context(context, context_file))
    client = open_client(url)
    made = good(
        client.create_instance(
            workflow, document, version=version, business_key=business_key, priority=priority
        ),
        'put it there with "wf deploy FILE"; names are exact',
    )
    good(client.start_instance(made.instance_id))
    if wait:
        return _report(_wait(client, made.instance_id), json)
    if json:
        found = good(client.get_instance(made.instance_id))
        write(json_values.dumps(instance_json(found) | {"created": made.created}))
    else:
        write(str(made.instance_id))
        if not made.created:
            say("an instance with this business key was there already")
    return 0


def _wait(client: PostgresClient, instance_id: int) -> Instance:
    pause = _FIRST_LOOK_SECONDS
    while True:
        found = good(client.get_instance(instance_id))
        if found.status in ENDED:
            return found
        time.sleep(pause)
        pause = min(pause * 1.5, _LAST_LOOK_SECONDS)


def _report(found: Instance, as_json: bool) -> int:
    if as_json:
        write(json_values.dumps(instance_json(found)))
    else:
        say_outcome(found)
    return 0 if found.status == "SUCCEEDED" else 1

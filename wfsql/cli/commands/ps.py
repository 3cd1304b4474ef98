"""`wf ps`: lists instances."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime_sql.operator_rows import InstanceFilter
from wfsql.cli.database import JsonOption, UrlOption, good, open_client
from wfsql.cli.output import say, write_json
from wfsql.cli.views import instance_json, write_instances


def command(
    url: UrlOption = None,
    all_: Annotated[
        bool,
        typer.Option(
            "--all", "-a", help="List also the instances that have ended or never started."
        ),
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=100_000, metavar="N", help="List at most this many.")
    ] = 100,
    json: JsonOption = False,
) -> int:
    """List running instances, the newest first.

    Example:  wf ps --all --limit 20
    """
    statuses = () if all_ else ("RUNNING", "PAUSED")
    found = good(open_client(url).list_instances(InstanceFilter(statuses=statuses), limit))
    if json:
        rows = [instance_json(each) for each in found]
        for row in rows:
            del row["output"]  # a list does not carry documents; "wf show" does
        write_json(rows)
    elif found:
        write_instances(found)
    else:
        say("no instances" if all_ else "nothing is running; --all shows what has ended")
    return 0

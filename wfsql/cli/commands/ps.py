"""`wf ps`: lists instances."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from runtime_sql.operator_rows import InstanceFilter
from wfsql.cli.database import good, open_client
from wfsql.cli.operating import MOST_ID, add_limit, integer, operator_parser, watch_seconds
from wfsql.cli.output import say, write_json
from wfsql.cli.views import instance_json, write_instances
from wfsql.cli.watching import show

_STATUSES = ("CREATED", "RUNNING", "PAUSED", "SUCCEEDED", "FAILED", "CANCELLED")
_ALIVE = ("RUNNING", "PAUSED")


def run(arguments: Sequence[str]) -> int:
    """Lists instances, the newest first."""
    parser = operator_parser(
        "ps",
        "",
        "List running instances, the newest first.",
        "wf ps --all --limit 20\n          wf ps --status FAILED --workflow order --watch",
        watch=True,
    )
    parser.add_argument(
        "-a", "--all", action="store_true", help="Also those that have ended or never started."
    )
    parser.add_argument(
        "--status",
        action="append",
        type=str.upper,
        choices=_STATUSES,
        metavar="STATUS",
        help="Only those of this status; may be repeated.",
    )
    parser.add_argument("--workflow", metavar="NAME", help="Only those of this workflow.")
    parser.add_argument("--key", metavar="KEY", help="Only those with this business key.")
    parser.add_argument(
        "--before", type=integer(1, MOST_ID), metavar="ID", help="Only those older than this one."
    )
    add_limit(parser, 100, "instances")
    options = parser.parse_args(arguments)
    seconds = watch_seconds(options)
    wanted = _wanted(options)
    client = open_client(options.url)

    def draw() -> bool:
        found = good(client.list_instances(wanted, options.limit))
        if options.json:
            rows = [instance_json(each) for each in found]
            for row in rows:
                del row["output"]  # a list does not carry documents; "wf show" does
            write_json(rows)
        elif found:
            write_instances(found)
        else:
            say(_nothing(wanted))
        return True

    return show(draw, seconds)


def _wanted(options: argparse.Namespace) -> InstanceFilter:
    """A status or a business key that is asked for is looked for among the ended, too."""
    statuses = tuple(options.status or ())
    if not (statuses or options.all or options.key is not None):
        statuses = _ALIVE
    return InstanceFilter(
        statuses=statuses,
        workflow=options.workflow,
        business_key=options.key,
        before_id=options.before,
    )


def _nothing(wanted: InstanceFilter) -> str:
    if wanted == InstanceFilter(statuses=_ALIVE):
        return "nothing is running; --all shows what has ended"
    return "no instances" if wanted == InstanceFilter() else "no such instances"

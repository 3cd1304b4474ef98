"""`wf cancel`: ends instances."""

from __future__ import annotations

from collections.abc import Sequence

from wfsql.cli.instance_changes import change_all, change_parser


def run(arguments: Sequence[str]) -> int:
    """Cancels every instance that is named."""
    parser = change_parser(
        "cancel",
        "Cancel instances: all that is open in them ends at once, and no finally runs.\n"
        "A worker that is at a task of one is told so at its next heartbeat.",
        'wf cancel 17 18 --reason "ordered twice"',
    )
    parser.add_argument("--reason", metavar="TEXT", help="Why; it is kept with the instance.")
    return change_all(
        parser,
        arguments,
        lambda client, instance_id, options: client.cancel_instance(instance_id, options.reason),
    )

"""`wf pause`: keeps instances from going on."""

from __future__ import annotations

from collections.abc import Sequence

from wfsql.cli.instance_changes import change_all, change_parser


def run(arguments: Sequence[str]) -> int:
    """Pauses every instance that is named."""
    parser = change_parser(
        "pause",
        "Pause running instances: nothing of them is claimed and no timer acts until\n"
        "they are resumed. What a worker is at goes on, and its result is taken.",
        "wf pause 17",
    )
    return change_all(
        parser, arguments, lambda client, instance_id, _: client.pause_instance(instance_id)
    )

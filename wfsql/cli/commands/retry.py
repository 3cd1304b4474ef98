"""`wf retry`: tries again what failed instances."""

from __future__ import annotations

from collections.abc import Sequence

from wfsql.cli.instance_changes import change_all, change_parser


def run(arguments: Sequence[str]) -> int:
    """Retries every instance that is named."""
    parser = change_parser(
        "retry",
        "Try again, with a fresh number of attempts, the actions and waits that failed\n"
        "these instances. What had succeeded is not done again.",
        "wf retry 17",
    )
    return change_all(
        parser, arguments, lambda client, instance_id, _: client.retry_instance(instance_id)
    )

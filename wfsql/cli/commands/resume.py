"""`wf resume`: lets paused instances go on."""

from __future__ import annotations

from collections.abc import Sequence

from wfsql.cli.instance_changes import change_all, change_parser


def run(arguments: Sequence[str]) -> int:
    """Resumes every instance that is named."""
    parser = change_parser(
        "resume",
        "Resume paused instances; timers that came due meanwhile act now.",
        "wf resume 17",
    )
    return change_all(
        parser, arguments, lambda client, instance_id, _: client.resume_instance(instance_id)
    )

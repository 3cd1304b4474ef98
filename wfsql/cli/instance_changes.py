"""What `wf cancel`, `pause`, `resume` and `retry` share: one change for each of several instances.

Each instance is a call, and a line, of its own; one that is refused stops none of the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from runtime_sql.connection import RuntimeClient
from runtime_sql.failures import ApiError, Failure
from runtime_sql.operator_rows import Retried
from wfsql.cli.arguments import Parser
from wfsql.cli.database import INSTANCES_HINT, open_client, stop_with
from wfsql.cli.operating import MOST_ID, integer, operator_parser
from wfsql.cli.output import say, say_error, write, write_json

Change = Callable[[RuntimeClient, int, argparse.Namespace], str | Retried | Failure]


def change_parser(name: str, description: str, example: str) -> Parser:
    """Returns the parser of a command that takes several ids."""
    parser = operator_parser(name, "ID...", description, example)
    parser.add_argument(
        "ids", nargs="+", type=integer(1, MOST_ID), metavar="ID", help="The instances' ids."
    )
    return parser


def change_all(parser: Parser, arguments: Sequence[str], change: Change) -> int:
    """Makes the change to every instance; returns 1 if one was refused."""
    options = parser.parse_args(arguments)
    client = open_client(options.url)
    report: list[dict[str, Any]] = []
    for instance_id in dict.fromkeys(options.ids):
        answer = change(client, instance_id, options)
        report.append(_entry(instance_id, answer))
        if not options.json:
            _tell(instance_id, answer)
    if options.json:
        write_json(report)
    elif any(each["error"] and each["error"]["code"] == 20002 for each in report):
        say(f"hint: {INSTANCES_HINT}")
    return 1 if any(each["error"] for each in report) else 0


def _entry(instance_id: int, answer: str | Retried | Failure) -> dict[str, Any]:
    entry: dict[str, Any] = {"instance_id": instance_id, "status": None, "error": None}
    match answer:
        case ApiError():
            entry["error"] = {"code": answer.code, "message": answer.message}
        case Retried():
            entry |= {"status": answer.status, "retried_count": answer.retried_count}
        case str():
            entry["status"] = answer
        case _:
            # Not this instance is the matter: the others would fare no better.
            stop_with(answer)
    return entry


def _tell(instance_id: int, answer: str | Retried | Failure) -> None:
    match answer:
        case ApiError():
            say_error(f"{instance_id}: {answer.message} ({answer.code})")
        case Retried(status=status, retried_count=count):
            nodes = "1 failed node is" if count == 1 else f"{count} failed nodes are"
            write(f"{instance_id} {status}; {nodes} tried again")
        case str():
            write(f"{instance_id} {answer}")
        case _:
            raise AssertionError("ended the command before")

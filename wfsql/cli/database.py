"""What the database commands share: the --url option, connecting, failures as command errors."""

from __future__ import annotations

from typing import Annotated, NoReturn, TypeVar

import typer

from runtime_sql.connection import RuntimeClient, connect
from runtime_sql.failures import ApiError, DatabaseProblem
from wfsql.cli.main import CommandError, wrong_use

T = TypeVar("T")

UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="WF_URL",
        show_envvar=False,
        metavar="URL",
        help="The database, as postgresql://user@host/name or mssql://user@host/name; WF_URL is the"
        " default.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]

InstanceArgument = Annotated[
    int, typer.Argument(min=1, max=2**63 - 1, metavar="ID", help="The instance's id.")
]

INSTANCES_HINT = 'see "wf ps --all" for the instances that are there'

_HINTS = {
    20001: "the worker's token is not accepted; start it again",
}


def need_url(url: str | None) -> str:
    """Returns the URL, or ends the command when there is none."""
    if not url:
        raise wrong_use(
            "no database is named",
            "give --url postgresql://user@host/name or mssql://user@host/name, or set WF_URL",
        )
    return url


def open_client(url: str | None) -> RuntimeClient:
    """Connects to a database whose runtime fits, or ends the command."""
    return good(connect(need_url(url)))


def good(answer: T | ApiError | DatabaseProblem, unknown: str | None = None) -> T:
    """Returns the answer of a call, or ends the command with what went wrong.

    Args:
      unknown: the hint when the runtime does not know what was named.
    """
    if isinstance(answer, ApiError | DatabaseProblem):
        stop_with(answer, unknown)
    return answer


def stop_with(failure: ApiError | DatabaseProblem, unknown: str | None = None) -> NoReturn:
    """Ends the command with a failure's own words."""
    if isinstance(failure, ApiError):
        hint = unknown if failure.code == 20002 else _HINTS.get(failure.code)
        raise CommandError(f"{failure.message} ({failure.code})", hint)
    code = 2 if failure.kind == "bad_url" else 1
    raise CommandError(failure.message, failure.hint, code)

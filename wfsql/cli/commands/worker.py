"""`wf worker`: claims tasks and runs Python handlers for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from wfsql.cli.commands.worker_setup import Options, run_worker
from wfsql.cli.database import UrlOption
from wfsql.cli.handlers import HandlersOption
from wfsql.cli.main import wrong_use

_FOLDER_HELP = (
    "Where its token and the results stay that nobody has accepted yet; by default in the"
    " user's state folder. Without --gateway nothing is kept unless this is given."
)


def command(
    gateway: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The gateway to ask for tasks, as https://host:port; WF_GATEWAY is the default.",
        ),
    ] = None,
    url: UrlOption = None,
    handlers: HandlersOption = None,
    capability: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A capability to claim, may be repeated; by default those of its handlers.",
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="How many tasks to work on at a time.")
    ] = 1,
    worker_id: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Its own name; by default made up, and kept in its folder."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The worker's token at the gateway; or set WF_WORKER_TOKEN."
        ),
    ] = None,
    enroll_key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="An API key of role enroll, with which it gets a token; or set WF_API_KEY.",
        ),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Certificates to trust at the gateway, beside the system's."
        ),
    ] = None,
    state: Annotated[Path | None, typer.Option(metavar="FOLDER", help=_FOLDER_HELP)] = None,
    lease: Annotated[
        int,
        typer.Option(
            min=3,
            max=86400,
            metavar="SECONDS",
            help="How long a task is held; extended while its handler runs.",
        ),
    ] = 60,
    idle_exit: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="End after this long without work."),
    ] = None,
    log_format: Annotated[
        str, typer.Option(metavar="FORMAT", help="What lines look like: text or json.")
    ] = "text",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Write no line per task.")] = False,
    otlp: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="An OpenTelemetry collector for traces; or set OTEL_EXPORTER_OTLP_ENDPOINT.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve metrics for Prometheus there, to anybody."),
    ] = None,
    end_with_stdin: Annotated[
        bool,
        typer.Option(
            "--end-with-stdin",
            help="End when stdin is closed, as it is when the program that started it dies.",
        ),
    ] = False,
) -> int:
    """Claim tasks from a gateway or a database, run their handlers, hand in the results.

    SIGTERM or Ctrl-C ends the claiming; the task in hand is finished first, and the exit code is 0.
    A second one gives it back and ends. At a gateway the worker enrols under an API key; in a
    database it registers itself, for which the login needs the rights of the runtime's owner.

    Example:  wf worker --gateway https://flows.example:8443 --handlers handlers.py
    """
    if not handlers:
        raise wrong_use("no handlers are named", "give --handlers MODULE, or a path to a .py file")
    if log_format not in {"text", "json"}:
        raise wrong_use(f'there is no log format "{log_format}"', "write text or json")
    return run_worker(
        Options(
            gateway=_chosen(gateway, url),
            url=url,
            handlers=tuple(handlers),
            capabilities=tuple(capability or ()),
            concurrency=concurrency,
            worker_id=worker_id,
            token_file=token_file,
            enroll_key_file=enroll_key_file,
            ca_file=ca_file,
            state=state,
            lease_seconds=lease,
            idle_exit_seconds=idle_exit,
            writes_json=log_format == "json",
            is_quiet=quiet,
            ends_with_stdin=end_with_stdin,
            otlp=otlp,
            metrics=metrics,
        )
    )


def _chosen(gateway: str | None, url: str | None) -> str | None:
    """Returns the gateway to ask, None for a database; what is typed beats the environment."""
    is_url_typed = url is not None and url != os.environ.get("WF_URL")
    if gateway and is_url_typed:
        raise wrong_use("tasks come from a gateway or from a database", "give --gateway or --url")
    return gateway or (None if is_url_typed else os.environ.get("WF_GATEWAY") or None)

"""`wf dev`: a database, a gateway and workers on this machine, following a folder's files."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from wfsql.cli.main import CommandError, wrong_use
from wfsql.gateway.settings import parse_address


def command(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Where the workflows are.", show_default=False)
    ] = ".",
    handlers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE",
            help="A module of handlers, may be repeated; by default every handlers.py that stands"
            " beside a workflow.",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=0, max=64, metavar="N", help="How many worker processes.")
    ] = 1,
    concurrency: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Tasks at a time, of each worker.")
    ] = 4,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the gateway listens.")
    ] = "127.0.0.1:8470",
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Where the database lives; by default below ~/.local/state/wfsql/dev.",
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin with an empty database.")] = False,
) -> int:
    """Run a whole wfsql on this machine, and follow the files of a folder.

    Starts a PostgreSQL of its own, installs the runtime, deploys every workflow, starts the gateway
    and the workers. A workflow or catalog that changes becomes a new version; when handlers change,
    new workers take over, and the old ones finish what they have in hand. The database is there
    again the next time.

    Example:  wf dev examples --workers 2
    """
    from wfsql.dev.log import DevLog
    from wfsql.dev.session import DevFailed, DevSession, DevSettings, default_data
    from wfsql.embedded import EmbeddedUnavailable

    root = Path(folder)
    if not root.is_dir():
        raise wrong_use(f"{folder}: is not a folder", "name the folder of the workflows")
    if parse_address(listen) is None:
        raise wrong_use(f'"{listen}" is no address to listen on', "write it as 127.0.0.1:8470")
    root = root.resolve()
    settings = DevSettings(
        folder=root,
        data=Path(data).resolve() if data else default_data(root),
        listen=listen,
        handlers=tuple(handlers or ()),
        worker_count=workers,
        concurrency=concurrency,
        fresh=fresh,
    )
    session = DevSession(settings, DevLog())
    _stop_on_signals(session.stop)
    try:
        session.run()
    except (DevFailed, EmbeddedUnavailable) as error:
        raise CommandError(str(error)) from error
    return 0


def _stop_on_signals(stop: Callable[[], None]) -> None:
    def note(_number: int, _frame: FrameType | None) -> None:
        stop()

    signal.signal(signal.SIGINT, note)
    signal.signal(signal.SIGTERM, note)

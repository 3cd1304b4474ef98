"""The --handlers option of `wf run` and `wf worker`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wfsql.cli.main import wrong_use

if TYPE_CHECKING:
    from local_runner.handlers import Handlers

HandlersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--handlers",
        metavar="MODULE",
        help="Python functions marked with @action: a dotted name or a .py file; may be repeated.",
    ),
]


def load(references: list[str] | None) -> Handlers:
    """Returns the handlers of all modules, or ends the command."""
    from local_runner.handlers import HandlerError
    from wfsql.handler_modules import load_all

    found = load_all(references or [])
    if isinstance(found, HandlerError):
        raise wrong_use(found.message, "check the argument of --handlers")
    return found

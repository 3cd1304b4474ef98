"""The project that a workflow belongs to (ruling R40)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wfsql.cli.main import wrong_use

_MARKS = ("wf.toml", "pyproject.toml", ".git")

ProjectRootOption = Annotated[
    str | None,
    typer.Option(
        "--project-root",
        metavar="DIR",
        help="The folder of .caas; without it the nearest one above with wf.toml, pyproject.toml"
        " or .git.",
    ),
]


def find_project_root(start: Path, given: str | None) -> Path:
    """Returns the folder named, else the nearest marked one from `start` up, else `start`."""
    if given is not None:
        if not Path(given).is_dir():
            raise wrong_use(f"{given}: there is no such folder", "check --project-root")
        return Path(given)
    folder = start.resolve()
    for above in (folder, *folder.parents):
        if any((above / mark).exists() for mark in _MARKS):
            return above
    return folder

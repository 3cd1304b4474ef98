"""Writes files whole or not at all, and never over what the command has read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from wfsql.cli.main import CommandError, wrong_use


def check_writable(name: str, *, inputs: Iterable[str | Path] = ()) -> None:
    """Ends the command when `save` could not write a file, before long work is done for it."""
    path = Path(name)
    _refuse_inputs(path, inputs)
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        reason = "is a directory" if path.is_dir() else "its folder is not there or not writable"
        raise wrong_use(f"{name}: cannot be written: {reason}", "choose another file")


def save(name: str, text: str, *, inputs: Iterable[str | Path] = ()) -> None:
    """Writes a UTF-8 file through a draft beside it, or ends the command.

    Args:
      inputs: the files that the command has read (`sources.files_read`); they are not written.
    """
    path = Path(name)
    _refuse_inputs(path, inputs)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "is a directory")
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        reason = (error.strerror or str(error)).lower()
        raise CommandError(f"{name}: cannot be written: {reason}", "choose another file") from error


def _refuse_inputs(path: Path, inputs: Iterable[str | Path]) -> None:
    if any(_is_same(path, Path(read)) for read in inputs):
        raise wrong_use(
            f"{path}: this file was read to make the output, and would be lost",
            "choose another file for the output",
        )


def _is_same(path: Path, other: Path) -> bool:
    """Whether both name one file, also through links."""
    try:
        return path.samefile(other)
    except OSError:  # one of them is not there
        return os.path.realpath(path) == os.path.realpath(other)

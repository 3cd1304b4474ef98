"""Writes files whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from wfsql.cli.main import CommandError


def save(name: str, text: str) -> None:
    """Writes a UTF-8 file through a draft beside it, or ends the command."""
    path = Path(name)
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

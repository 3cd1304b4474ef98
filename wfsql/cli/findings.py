"""Shows what is wrong with workflow files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wfsql.cli.output import counted

if TYPE_CHECKING:
    from dsl.diagnostics import Diagnostic


_MOST_LINES = 10  # warnings that are shown by commands that are not about them


def show_diagnostics(found: Sequence[Diagnostic]) -> None:
    """Writes findings to stderr, as text."""
    if found:
        from dsl.render import render_text

        sys.stderr.write(render_text(found, width=_width()).rstrip("\n") + "\n")


def show_briefly(found: Sequence[Diagnostic], file: str) -> None:
    """Writes errors to stderr as text; when there are none, a line for each warning.

    For commands that do something with a workflow: what `wf check` says at length is there told
    in a few lines.
    """
    from dsl.diagnostics import has_errors
    from dsl.render import render_line

    if has_errors(list(found)):
        show_diagnostics([one for one in found if one.severity == "error"])
        return
    for warning in found[:_MOST_LINES]:
        sys.stderr.write(render_line(warning) + "\n")
    if found:
        from dsl.plain import plain

        name = "FILE" if file == "-" else plain(file)
        sys.stderr.write(f"{count_text(found)}; `wf check {name}` shows more\n")


def _width() -> int | None:
    """The columns of the terminal that stderr is; None when it is none."""
    if not sys.stderr.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def count_text(found: Sequence[Diagnostic]) -> str:
    """Returns `2 errors, 1 warning`; empty when nothing was found."""
    counts = {"error": 0, "warning": 0}
    for diagnostic in found:
        counts[diagnostic.severity] += 1
    return ", ".join(counted(n, word) for word, n in counts.items() if n)

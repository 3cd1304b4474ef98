"""Shows what is wrong with workflow files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wfsql.cli.output import counted

if TYPE_CHECKING:
    from dsl.diagnostics import Diagnostic


def show_diagnostics(found: Sequence[Diagnostic]) -> None:
    """Writes findings to stderr, as text."""
    if found:
        from dsl.render import render_text

        sys.stderr.write(render_text(found).rstrip("\n") + "\n")


def count_text(found: Sequence[Diagnostic]) -> str:
    """Returns `2 errors, 1 warning`; empty when nothing was found."""
    counts = {"error": 0, "warning": 0}
    for diagnostic in found:
        counts[diagnostic.severity] += 1
    return ", ".join(counted(n, word) for word, n in counts.items() if n)

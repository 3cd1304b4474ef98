"""What commands print: data made safe for a terminal, tables, JSON, errors.

Results go to stdout, everything else to stderr. A table is drawn by Rich on a terminal and is
plain, aligned text otherwise. All data passes `dsl.plain.plain`, and reaches Rich as `Text`, which
does not read markup.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime

from dsl.plain import plain

STATUS_STYLES = {
    "SUCCEEDED": "green",
    "FAILED": "bold red",
    "RUNNING": "cyan",
    "CANCELLED": "yellow",
    "PAUSED": "yellow",
}


def say(text: str) -> None:
    """Writes one line of progress or advice to stderr."""
    sys.stderr.write(one_line(text) + "\n")
    sys.stderr.flush()


def say_error(message: str, hint: str | None = None) -> None:
    """Writes an error, one line, and what to do about it."""
    sys.stdout.flush()
    say(f"error: {message}")
    if hint:
        say(f"hint: {hint}")


def write(text: str) -> None:
    """Writes a document to stdout, ending in a newline."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def one_line(text: str) -> str:
    """Returns text safe for a terminal, on one line."""
    return plain(text)


def write_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes rows under column names; a column called STATUS is coloured on a terminal."""
    safe = [[plain(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _rich_table(columns, safe)
        return
    widths = [max(map(len, column)) for column in zip(columns, *safe, strict=True)]
    for row in [list(columns), *safe]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell, style=STATUS_STYLES.get(cell, "")) for cell in row))
    # A path cut off in the middle is of no use, so a narrow terminal has to fold the line itself.
    console = Console()
    wide = console.options.update(width=10_000)
    console.width = max(console.width, console.measure(table, options=wide).maximum)
    console.print(table)


def short_time(at: datetime | None) -> str:
    """Returns a time for people, in UTC to the second; empty when there is none."""
    if at is None:
        return ""
    from datetime import UTC

    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")

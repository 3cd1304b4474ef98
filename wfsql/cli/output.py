"""What commands print: data made safe for a terminal, tables, JSON, errors.

Results go to stdout, everything else to stderr. A table is coloured by Rich on a terminal, and
fitted to its width; otherwise it is plain, aligned text. All data passes `dsl.plain.plain`, and
reaches Rich as `Text`, which does not read markup.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from dsl.plain import UNSAFE, plain
from dsl.quick_class import dataclass

Keep = Literal["start", "end", "ends"]
"""What stays of a text that is too long; `ends`: its beginning and its end."""

STATUS_STYLES = {
    "SUCCEEDED": "green",
    "FAILED": "bold red",
    "LOST": "bold red",
    "RUNNING": "cyan",
    "CANCELLED": "yellow",
    "PAUSED": "yellow",
    "ACTIVE": "green",
    "DRAINING": "yellow",
    "STOPPING": "yellow",
    "SILENT": "bold red",
}


def say(text: str) -> None:
    """Writes one line of progress or advice to stderr; on a terminal it is wrapped at blanks."""
    line = one_line(text)
    sys.stderr.write((_wrapped(line) if sys.stderr.isatty() else line) + "\n")
    sys.stderr.flush()


def _wrapped(line: str) -> str:
    """Breaks a line where there is a blank: a path or an id, longer or not, stays whole."""
    from shutil import get_terminal_size

    width = get_terminal_size().columns
    if len(line) <= width:
        return line
    from textwrap import wrap

    indent = "  " if not line.startswith(" ") else "    "
    pieces = wrap(
        line,
        max(width, 20),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(pieces)


def say_error(message: str, hint: str | None = None) -> None:
    """Writes an error, one line, and what to do about it."""
    sys.stdout.flush()
    say(f"error: {message}")
    if hint:
        say(f"hint: {hint}")


def write(text: str) -> None:
    """Writes a document to stdout, ending in a newline."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def write_json(value: object, *, indent: int | None = None) -> None:
    """Writes a value to stdout as JSON whose strings no terminal acts upon.

    What would reorder or hide text, or begin a control sequence, is written as `\\u202e`: the value
    is the same for a program.
    """
    from compiler import json_values

    write(safe_json(json_values.dumps(value, indent=indent)))


def safe_json(text: str) -> str:
    """Returns JSON text with every character that is unsafe on a terminal escaped."""
    # A line end stands between values; inside a string JSON has escaped it already.
    return "\n".join(
        UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", line) for line in text.split("\n")
    )


def one_line(text: str) -> str:
    """Returns text safe for a terminal, on one line."""
    return plain(text)


def counted(count: int, word: str) -> str:
    """Returns `1 task`, `2 tasks`."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def did_you_mean(wrong: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Returns `did you mean "x"?` for the nearest of `known`; None when none is near.

    `cutoff`: how much alike they have to be, 1 being the same.
    """
    from difflib import get_close_matches

    close = get_close_matches(wrong, list(known), n=1, cutoff=cutoff)
    return f'did you mean "{close[0]}"?' if close else None


def terminal_width() -> int | None:
    """Returns the columns of the terminal that stdout is; None when it is none."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


@dataclass(frozen=True, slots=True)
class Crop:
    """How a column gives way on a narrow terminal: to `least` cells, the part kept."""

    least: int
    keep: Keep = "start"


def write_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    crops: Mapping[str, Crop] | None = None,
    drops: Sequence[str] = (),
) -> None:
    """Writes rows under column names; cells that hold a status are coloured on a terminal.

    A terminal too narrow for them gets the columns of `crops` cropped, the first one first, and
    where that is not enough loses those of `drops`. What is read by a program is all there.
    """
    safe = [list(columns), *([plain(cell) for cell in row] for row in rows)]
    width = terminal_width()
    if width is None:
        for line in _aligned(safe):
            sys.stdout.write("  ".join(line).rstrip() + "\n")
        return
    _draw(_aligned(fit(safe, crops or {}, width, drops)), width)


def table_width(table: Sequence[Sequence[str]]) -> int:
    """Returns how many columns of a terminal a table takes, names first."""
    widths = _widths(table)
    return sum(widths) + 2 * (len(widths) - 1)


def fit(
    table: Sequence[Sequence[str]],
    crops: Mapping[str, Crop],
    width: int,
    drops: Sequence[str] = (),
) -> list[list[str]]:
    """Returns the table, names first, so that its lines fit into `width` if they can."""
    fitted = _cropped_table(table, crops, width)
    for name in drops:
        if table_width(fitted) <= width:
            break
        index = list(table[0]).index(name)
        table = [[*row[:index], *row[index + 1 :]] for row in table]
        fitted = _cropped_table(table, crops, width)
    return fitted


def _cropped_table(
    table: Sequence[Sequence[str]], crops: Mapping[str, Crop], width: int
) -> list[list[str]]:
    fitted = [list(row) for row in table]
    for name, crop in crops.items():
        if name not in fitted[0]:
            continue  # it was dropped
        excess = table_width(fitted) - width
        if excess <= 0:
            break
        index = fitted[0].index(name)
        room = max(_widths(fitted)[index] - excess, crop.least, _cells(name))
        for row in fitted:
            row[index] = cropped(row[index], room, crop.keep)
    return fitted


def cropped(text: str, room: int, keep: Keep = "start") -> str:
    """Returns text in at most `room` cells, `…` standing for what is left out."""
    if _cells(text) <= room:
        return text
    if keep == "ends":
        left = _start_of(text, room // 2)
        return f"{left}…{_start_of(text[::-1], room - 1 - _cells(left))[::-1]}"
    if keep == "start":
        return f"{_start_of(text, room - 1)}…"
    return f"…{_start_of(text[::-1], room - 1)[::-1]}"


def _start_of(text: str, room: int) -> str:
    """Returns as much of the beginning as fits."""
    kept = text[: max(room, 0)]
    while _cells(kept) > room:
        kept = kept[:-1]
    return kept


def _aligned(table: Sequence[Sequence[str]]) -> list[list[str]]:
    widths = _widths(table)
    return [
        [cell + " " * (width - _cells(cell)) for cell, width in zip(row, widths, strict=True)]
        for row in table
    ]


def _widths(table: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(_cells, column)) for column in zip(*table, strict=True)]


def _cells(text: str) -> int:
    """Returns how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _draw(table: Sequence[Sequence[str]], width: int) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(width=width)
    names, *rows = table
    console.print(Text("  ".join(names).rstrip(), style="bold"), soft_wrap=True)
    total = sum(map(_cells, names)) + 2 * (len(names) - 1)
    console.print(Text("─" * min(total, width), style="dim"), soft_wrap=True)
    for row in rows:
        line = Text()
        for cell in row:
            line.append(cell, style=STATUS_STYLES.get(cell.strip(), ""))
            line.append("  ")
        line.rstrip()
        console.print(line, soft_wrap=True)


def write_lines(lines: Iterable[str]) -> None:
    """Writes lines; on a terminal a status is coloured, and what is too long is cropped."""
    width = terminal_width()
    if width is None:
        for line in lines:
            write(plain(line))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(width=width)
    for line in lines:
        text = Text(cropped(plain(line), width))
        # Where a name reads like a status, there is a dot before the status but none before it.
        _, _, state = text.plain.rpartition(" · ")
        start = len(text.plain) - len(state)
        for status, style in STATUS_STYLES.items():
            if (at := state.find(status)) >= 0:
                text.stylize(style, start + at, start + at + len(status))
        console.print(text, soft_wrap=True)


def short_time(at: datetime | None, *, narrow: bool = False) -> str:
    """Returns a time for people, in UTC; empty when there is none.

    `narrow`: without the year and the seconds.
    """
    if at is None:
        return ""
    from datetime import UTC

    return at.astimezone(UTC).strftime("%m-%d %H:%MZ" if narrow else "%Y-%m-%d %H:%M:%SZ")

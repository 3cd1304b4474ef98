"""Diagnostics as text for people and as data for programs.

All text that comes from a file passes through `plain()`. Tabs are shown as spaces, and carets are
placed by the width of what stands before them, so that they stay under the place also after wide
characters and tabs. Long lines of a file are cut around the place, to the width of the terminal;
messages are not.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from dsl.diagnostics import Diagnostic, Label
from dsl.plain import plain
from dsl.source import SourceFile, Span

MOST_SHOWN = 20  # findings of one text rendering
_TAB = 4
_WIDEST = 120  # columns of a source line that are shown where no terminal is narrower
_NARROWEST = 24  # columns of it that are shown at least
_WINDOW = 400  # characters looked at on either side of a place; some have no width


def render_text(
    diagnostics: Iterable[Diagnostic], most: int = MOST_SHOWN, width: int | None = None
) -> str:
    """Returns the findings, each ending in a newline; empty when there are none.

    Of more than `most`, the first errors are shown, then the first warnings, and how many more
    there are is said. Lines of the file are cut to fit into `width` columns.
    """
    given = list(diagnostics)
    shown = set(sorted(range(len(given)), key=lambda k: given[k].severity != "error")[:most])
    text = "".join(_one(found, width) for k, found in enumerate(given) if k in shown)
    hidden = len(given) - len(shown)
    if hidden:
        text += f"{hidden} more finding{'s' if hidden > 1 else ''} not shown\n"
    return text


def render_line(found: Diagnostic) -> str:
    """Returns a finding as one line, without a line end: place, code and message."""
    head = f"{found.severity}[{found.code}]: {plain(found.message)}"
    name = plain(found.source.name)
    if not found.source.text:
        return f"{name}: {head}"
    place = found.source.position(found.span.start)
    return f"{name}:{place.line}:{place.column}: {head}"


def render_data(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Returns the findings as JSON values; text is given as it is, JSON makes it safe."""
    return [
        {
            "file": found.source.name,
            "code": found.code,
            "severity": found.severity,
            "message": found.message,
            "hint": found.hint,
            "span": _span_data(found.source, found.span),
            "labels": [
                {"message": label.message, "span": _span_data(found.source, label.span)}
                for label in found.labels
            ],
        }
        for found in diagnostics
    ]


def _span_data(source: SourceFile, span: Span) -> dict[str, Any]:
    return {"start": _place(source, span.start), "end": _place(source, span.end)}


def _place(source: SourceFile, offset: int) -> dict[str, int]:
    place = source.position(offset)
    return {
        "line": place.line,
        "column": place.column,
        "utf16_column": place.utf16_column,
        "offset": place.offset,
    }


def _one(found: Diagnostic, width: int | None) -> str:
    lines = [render_line(found)]
    if found.source.text:
        lines += _excerpts(found, width)
    if found.hint:
        lines.append(f"  hint: {plain(found.hint)}")
    return "\n".join(lines) + "\n"


def _excerpts(found: Diagnostic, columns: int | None) -> list[str]:
    """The line of the finding, then one for each label, with one width of line numbers."""
    source = found.source
    marks = [Label(span=found.span, message=""), *found.labels]
    numbers = [source.position(mark.span.start).line for mark in marks]
    width = len(str(max(numbers)))
    gutter = len(f"  {'':>{width}} | ")
    room = _WIDEST if columns is None else max(_NARROWEST, min(_WIDEST, columns - gutter))
    lines: list[str] = []
    for mark, number in zip(marks, numbers, strict=True):
        sign = "^" if mark is marks[0] else "-"
        shown, under = _excerpt(source, mark.span, sign, room)
        lines.append(f"  {number:>{width}} | {shown}".rstrip())
        message = f" {plain(mark.message)}" if mark.message else ""
        lines.append(f"  {'':>{width}} | {under}{message}")
    return lines


def _excerpt(source: SourceFile, span: Span, sign: str, widest: int) -> tuple[str, str]:
    """The shown line and the carets under it; a span over several lines is marked to its end.

    A line wider than `widest` is cut around the place, which gets the middle, and more than that
    when little is before or behind it.

    Only a window of the line around the place is looked at, whatever the length of the line: what
    lies farther off than `_WINDOW` characters could not be shown anyway.
    """
    place = source.position(span.start)
    line_start, span_start = place.offset - place.column + 1, place.offset
    line_end = source.line_end(place.line)
    span_end = max(span_start, min(span.end, line_end))
    low, high = max(line_start, span_start - _WINDOW), min(line_end, span_start + _WINDOW)
    text = source.text
    before = _shown(text[low:span_start])
    middle = _shown(text[span_start : min(span_end, high)])
    after = _shown(text[span_end:high])
    width, marked, rest = _width(before), _width(middle), _width(after)
    is_cut = low > line_start or high < line_end
    if is_cut or width + marked + rest > widest:
        # What stands before the place gets half of the room, and what the rest does not need.
        most = max(widest // 2, widest - marked - rest - (high < line_end))
        if width > most or low > line_start:
            before = "…" + _cut_left(before, max(0, width - most))
            width = _width(before)
        room = widest - width
        if marked > room:
            middle, after = _cut_right(middle, room - 1), "…"
        elif marked + rest > room or (high < line_end and after):
            after = _cut_right(after, room - marked - 1) + "…"
    return before + middle + after, " " * width + sign * max(1, _width(middle))


def _shown(text: str) -> str:
    return plain(text.replace("\t", " " * _TAB))


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def _cut_left(text: str, excess: int) -> str:
    """Returns the text without a little more than `excess` columns at its beginning."""
    for i, char in enumerate(text):
        if excess < 0:
            return text[i:]
        excess -= _char_width(char)
    return ""


def _cut_right(text: str, room: int) -> str:
    kept = 0
    for i, char in enumerate(text):
        kept += _char_width(char)
        if kept > max(0, room):
            return text[:i]
    return text

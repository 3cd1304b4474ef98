"""Lines of a canonical text: runs of like items lined up, comments lined up, joined to a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dsl.quick_class import dataclass, field

MAX_WIDTH = 100
_COMMENT_GAP = 2


@dataclass(slots=True)
class Line:
    """`kind` is that of the one item the line holds whole, else empty; `columns` are where its
    signs stand, of the text without its indentation. `blank` asks for a blank line before it."""

    indent: int
    text: str = ""
    comment: str = ""
    kind: str = ""
    columns: dict[str, int] = field(default_factory=dict)
    blank: bool = False

    @property
    def width(self) -> int:
        """The columns up to the end of its last line, without the comment."""
        before, tall, last = self.text.rpartition("\n")
        return len(last) if tall else self.indent + len(before + last)


def join_lines(lines: list[Line]) -> str:
    """Returns the text, ending in one line end."""
    for run in _runs(lines, lambda a, b: bool(a.kind) and a.kind == b.kind):
        _align_items(run)
    for run in _runs(lines, lambda a, b: bool(a.text and a.comment and b.text and b.comment)):
        _align_comments(run)
    return "".join(map(_written, lines))


def _written(line: Line) -> str:
    start = "\n" if line.blank else ""
    shown = line.text if not line.comment else line.text + line.comment
    return f"{start}{' ' * line.indent}{shown}\n"


def _runs(lines: list[Line], together: Callable[[Line, Line], bool]) -> Iterator[list[Line]]:
    """Stretches of at least one line in which each goes together with the one before."""
    run: list[Line] = []
    for line in lines:
        if run and (line.blank or line.indent != run[-1].indent or not together(run[-1], line)):
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _align_items(run: list[Line]) -> None:
    for sign in (":", "="):
        for part in _runs(run, _both_have(sign)):
            if len(part) > 1:
                _align_sign(part, sign)


def _both_have(sign: str) -> Callable[[Line, Line], bool]:
    return lambda a, b: sign in a.columns and sign in b.columns


def _align_sign(run: list[Line], sign: str) -> None:
    column = max(line.columns[sign] for line in run)
    shifts = [column - line.columns[sign] for line in run]
    if any(line.width + shift > MAX_WIDTH for line, shift in zip(run, shifts, strict=True)):
        return
    for line, shift in zip(run, shifts, strict=True):
        at = line.columns[sign]
        line.text = line.text[:at] + " " * shift + line.text[at:]
        for other, place in line.columns.items():
            if place >= at:
                line.columns[other] = place + shift


def _align_comments(run: list[Line]) -> None:
    column = max(line.width for line in run)
    for line in run:
        if line.text and line.comment:
            line.text += " " * (column - line.width + _COMMENT_GAP)

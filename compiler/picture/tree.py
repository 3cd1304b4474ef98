"""A workflow as a tree of lines, for terminals."""

from __future__ import annotations

from compiler.picture.model import Box, Picture


def render_tree(picture: Picture) -> str:
    """Returns one line per box, and one per labelled lane; the workflow's name comes first."""
    lines: list[str] = []
    # What is still to be written, next last: the lines' start, whether it is the last of its
    # level, and a box, or a lane's label with the boxes in it.
    pending: list[tuple[str, bool, int | tuple[str, tuple[int, ...]]]] = []
    _push(pending, "", _inside(picture.boxes[0]))
    lines.append(" · ".join(picture.boxes[0].lines))
    while pending:
        start, last, what = pending.pop()
        fork, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if isinstance(what, int):
            lines.append(start + fork + _line(picture.boxes[what]))
            _push(pending, start + below, _inside(picture.boxes[what]))
        else:
            lines.append(start + fork + what[0])
            _push(pending, start + below, list(what[1]))
    return "\n".join(lines) + "\n"


def _inside(box: Box) -> list[int | tuple[str, tuple[int, ...]]]:
    found: list[int | tuple[str, tuple[int, ...]]] = []
    for lane in box.lanes:
        if lane.label:
            found.append((lane.label, lane.boxes))
        else:
            found += lane.boxes
    return found


def _push(
    pending: list[tuple[str, bool, int | tuple[str, tuple[int, ...]]]],
    start: str,
    parts: list[int] | list[int | tuple[str, tuple[int, ...]]],
) -> None:
    count = len(parts)
    pending += [(start, n == count - 1, parts[n]) for n in range(count - 1, -1, -1)]


def _line(box: Box) -> str:
    details = "".join(f" · {detail}" for detail in box.details)
    return box.headline + details

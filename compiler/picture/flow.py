"""What dot and Mermaid share: points, the arrows between them, and the frames around them.

A box without lanes is one point. A box with lanes is a frame that holds its head, all its boxes
and its tail; lanes lead from head to tail, and a loop's tail leads back. So there are at most two
points per box, and one arrow per box and lane, and one per loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compiler.picture.model import Box, Picture

LOOPS = frozenset(("repeat", "while", "foreach"))
CHOICES = frozenset(("if", "switch", "while"))


@dataclass(frozen=True, slots=True)
class Arrow:
    start: str
    end: str
    label: str = ""
    back: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to write: a point, or the begin or end of the frame around box `number`."""

    what: Literal["point", "tail", "open", "close"]
    number: int


def steps(picture: Picture) -> list[Step]:
    """All points and frames, each once, nested as the boxes are."""
    found: list[Step] = []
    pending = [Step("point", 0)]
    while pending:
        step = pending.pop()
        box = picture.boxes[step.number]
        if step.what != "point" or not box.lanes:
            found.append(step)
            continue
        found += [Step("open", step.number), step]
        pending += [Step("close", step.number), Step("tail", step.number)]
        inside = [number for lane in box.lanes for number in lane.boxes]
        pending += [Step("point", number) for number in reversed(inside)]
    return found


def head(number: int) -> str:
    return f"n{number}"


def tail(picture: Picture, number: int) -> str:
    """Where what follows a box goes on from."""
    return f"n{number}_end" if picture.boxes[number].lanes else f"n{number}"


def arrows(picture: Picture) -> list[Arrow]:
    """All arrows, in tree order."""
    found: list[Arrow] = []
    for number, box in enumerate(picture.boxes):
        for lane in box.lanes:
            found += _lane_arrows(picture, number, lane.label, lane.boxes)
        if (skip := _skip_label(box)) is not None:
            found.append(Arrow(head(number), tail(picture, number), skip))
        if box.kind in LOOPS:
            found.append(Arrow(tail(picture, number), head(number), "next", back=True))
    return found


def _skip_label(box: Box) -> str | None:
    """What leads past all lanes of a box, when something does."""
    if box.kind == "if" and box.lanes[-1].label != "else":
        return "else"
    return "event" if box.kind == "wait_event" and box.lanes else None


def _lane_arrows(picture: Picture, number: int, label: str, boxes: tuple[int, ...]) -> list[Arrow]:
    found: list[Arrow] = []
    start = head(number)
    for inner in boxes:
        if start:
            found.append(Arrow(start, head(inner), label))
        start, label = ("" if picture.boxes[inner].ends else tail(picture, inner)), ""
    if start:
        found.append(Arrow(start, tail(picture, number), label))
    return found


def frame_text(box: Box) -> str:
    return f"{box.kind} {box.name}".rstrip()

"""Where everything stands in an SVG: sizes from the inside out, then places from the outside in.

A box without lanes is a card. A box with lanes is a frame: its text on top, its lanes side by side
below, in rows when there are many; in a lane the boxes stand under one another, arrows between
them. Boxes come in tree order, so both passes are one loop each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compiler.picture.flow import LOOPS
from compiler.picture.model import Box, Lane, Picture
from compiler.picture.text_size import text_width, wrap

TITLE_SIZE, DETAIL_SIZE = 13, 11
TITLE_LINE, DETAIL_LINE = 18, 15
PAD = 12  # inside of cards and frames
ARROW = 24  # between boxes of a lane
LANE_PAD = 12
LANE_GAP = 12
MARK = 10  # the size of the marks where a workflow begins and ends
ROW_WIDTH = 1_400
LOOP_SIGN = 36  # what the sign of a loop takes from both sides of its title
_CHARACTERS = 46
_MIN_WIDTH = 96


@dataclass(slots=True)
class PlacedLane:
    """A lane with a label is a panel; without one it is only a place."""

    label: list[str]
    boxes: tuple[int, ...]
    x: int = 0
    y: int = 0
    width: int = 0
    height: int = 0
    first_row: bool = True

    @property
    def head(self) -> int:
        """The height of its label."""
        return len(self.label) * DETAIL_LINE + 6 if self.label else 0

    @property
    def centre(self) -> int:
        return self.x + self.width // 2


@dataclass(slots=True)
class Placed:
    """A box with its lines and its place."""

    title: list[str]
    details: list[str]
    lanes: list[PlacedLane] = field(default_factory=list)
    x: int = 0
    y: int = 0
    width: int = 0
    height: int = 0
    lane_top: int = 0
    depth: int = 0

    @property
    def head(self) -> int:
        """The height of its text."""
        return len(self.title) * TITLE_LINE + len(self.details) * DETAIL_LINE + 2 * (PAD - 4)

    @property
    def centre(self) -> int:
        return self.x + self.width // 2


def place(picture: Picture) -> list[Placed]:
    """Returns the places of all boxes, in the same order; the first fills the picture."""
    placed = [_with_text(box) for box in picture.boxes]
    for number in range(len(placed) - 1, -1, -1):
        _measure(placed, number, picture.boxes[number])
    for box in placed:
        _put_inside(placed, box)
    return placed


def title_of(box: Box) -> str:
    """What is written large: the key where there is one, otherwise what the box is about."""
    if box.kind in ("action", "wait_event", "workflow"):
        return box.name
    return box.headline


def _with_text(box: Box) -> Placed:
    about = box.text if box.kind in ("action", "wait_event") else ""
    details = [about, box.description, " · ".join(box.details)]
    lines = [line for detail in details for line in wrap(detail, _CHARACTERS + 8, 4)]
    return Placed(wrap(title_of(box), _CHARACTERS, 3), lines)


def _measure(placed: list[Placed], number: int, picture_box: Box) -> None:
    """Sizes of a box and its lanes, when all inside it have theirs."""
    box = placed[number]
    sign = LOOP_SIGN if picture_box.kind in LOOPS else 0
    widths = [text_width(line, TITLE_SIZE, bold=True) + sign for line in box.title]
    widths += [text_width(line, DETAIL_SIZE) for line in box.details]
    box.width, box.height = max([_MIN_WIDTH, *widths]) + 2 * PAD, box.head
    filled = [lane for lane in picture_box.lanes if lane.boxes or lane.label]
    if not filled:
        return
    box.lanes = [_measured_lane(placed, lane, number == 0) for lane in filled]
    rows = list(_rows(box.lanes))
    inside = max(_row_width(row) for row in rows)
    box.width = max(box.width, inside + 2 * PAD)
    box.lane_top = box.head + (ARROW if box.lanes[0].label else 0)
    box.height = box.lane_top + PAD
    for n, row in enumerate(rows):
        height = max(lane.height for lane in row)
        for lane in row:
            lane.height, lane.first_row = height, n == 0
        box.height += height + (LANE_GAP if n else 0)


def _measured_lane(placed: list[Placed], lane: Lane, outermost: bool) -> PlacedLane:
    found = PlacedLane(wrap(lane.label, _CHARACTERS - 10, 2), lane.boxes)
    inner = [placed[number] for number in lane.boxes]
    widths = [box.width for box in inner]
    widths += [text_width(line, DETAIL_SIZE) + 8 for line in found.label]
    pad = LANE_PAD if found.label else 0
    found.width = max(widths, default=_MIN_WIDTH) + 2 * pad
    found.height = found.head + sum(box.height + ARROW for box in inner) + pad
    if outermost:
        found.height += MARK + ARROW + MARK
    return found


def _rows(lanes: list[PlacedLane]) -> Iterator[list[PlacedLane]]:
    """Lanes that stand side by side: as many as fit, and at least one."""
    row: list[PlacedLane] = []
    width = 0
    for lane in lanes:
        if row and width + LANE_GAP + lane.width > ROW_WIDTH:
            yield row
            row, width = [], 0
        width += lane.width + (LANE_GAP if row else 0)
        row.append(lane)
    yield row


def _row_width(row: list[PlacedLane]) -> int:
    return sum(lane.width for lane in row) + LANE_GAP * (len(row) - 1)


def _put_inside(placed: list[Placed], box: Placed) -> None:
    """Places of the lanes of a box that has its own, and of the boxes in them."""
    y = box.y + box.lane_top
    for row in _rows(box.lanes) if box.lanes else ():
        x = box.centre - _row_width(row) // 2
        for lane in row:
            lane.x, lane.y = x, y
            x += lane.width + LANE_GAP
            _put_in_lane(placed, box, lane)
        y += row[0].height + LANE_GAP


def _put_in_lane(placed: list[Placed], box: Placed, lane: PlacedLane) -> None:
    y = lane.y + lane.head
    if box is placed[0]:
        y += MARK
    for number in lane.boxes:
        inner = placed[number]
        y += ARROW
        inner.depth = box.depth + 1
        inner.x, inner.y = lane.centre - inner.width // 2, y
        y += inner.height

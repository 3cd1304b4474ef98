"""A workflow as an SVG that stands alone: no program, font, script or link is needed to show it.

All text is escaped, and there is none that has not passed `plain`. Colours are attributes, so that
viewers which know no style sheets show them; where one is known, it follows the reader's preference
for the dark.
"""

from __future__ import annotations

from functools import cache
from xml.sax.saxutils import escape

from compiler.picture.flow import LOOPS
from compiler.picture.model import Box, Picture
from compiler.picture.svg_layout import (
    ARROW,
    DETAIL_LINE,
    DETAIL_SIZE,
    MARK,
    PAD,
    TITLE_LINE,
    TITLE_SIZE,
    Placed,
    PlacedLane,
    place,
)

_MARGIN = 16
# What each class of an element looks like; a later class of the element stands over an earlier one.
_LOOKS: dict[str, dict[str, str]] = {
    "t": {"fill": "#1f2733", "font-size": str(TITLE_SIZE), "font-weight": "600"},
    "d": {"fill": "#566273", "font-size": str(DETAIL_SIZE)},
    "c": {"text-anchor": "middle"},
    "page": {"fill": "#ffffff"},
    "box": {"fill": "#f4f6f9", "stroke": "#97a3b4"},
    "frame": {"fill": "#f6f8fa", "stroke": "#97a3b4"},
    "odd": {"fill": "#eaeef3"},
    "lane": {"fill": "#7f8ea3", "fill-opacity": ".12"},
    "action": {"fill": "#dcebff", "stroke": "#3f7fd6"},
    "wait_event": {"stroke": "#c98a12"},
    "box wait_event": {"fill": "#fff1cf"},
    "fail": {"fill": "#ffe1e1", "stroke": "#cf3e3e"},
    "if": {"stroke": "#8b62c9"},
    "switch": {"stroke": "#8b62c9"},
    "repeat": {"stroke": "#2f9461"},
    "while": {"stroke": "#2f9461"},
    "foreach": {"stroke": "#2f9461"},
    "parallel": {"stroke": "#1d8f9e"},
    "SUCCEEDED": {"stroke": "#2f9461", "stroke-width": "2.5"},
    "RUNNING": {"stroke": "#3f7fd6", "stroke-width": "2.5", "stroke-dasharray": "7 4"},
    "READY": {"stroke": "#c98a12", "stroke-width": "2.5"},
    "FAILED": {"stroke": "#cf3e3e", "stroke-width": "3.5"},
    "CANCELLED": {"stroke": "#75829a", "stroke-width": "2.5", "stroke-dasharray": "2 3"},
    "handler": {"stroke": "#97a3b4", "stroke-dasharray": "4 3"},
    "line": {"fill": "none", "stroke": "#75829a", "stroke-width": "1.4"},
    "tip": {"fill": "#75829a"},
}
_STYLE = """\
<style>
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e9f1 }
    .d { fill: #a5b0c0 }
    .page { fill: #171b22 }
    .box { fill: #2b333f }
    .frame { fill: #1b2028 }
    .odd { fill: #222832 }
    .action { fill: #1d3558 }
    .box.wait_event { fill: #473813 }
    .fail { fill: #4f2224 }
  }
</style>
"""
_FONTS = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"


@cache
def _look(classes: str) -> str:
    """Returns the attributes of an element of these classes."""
    looks: dict[str, str] = {}
    shape_and_kind, state = classes.split()[:2], classes.split()[2:]
    for name in (*shape_and_kind, " ".join(shape_and_kind), *state):
        looks |= _LOOKS.get(name, {})
    return f'class="{classes}"' + "".join(f' {key}="{value}"' for key, value in looks.items())


def render_svg(picture: Picture) -> str:
    """Returns an SVG document; every box is drawn once."""
    placed = place(picture)
    root = placed[0]
    width, height = root.width + 2 * _MARGIN, root.height + 2 * _MARGIN
    name = _escaped(picture.boxes[0].name)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="{-_MARGIN} {-_MARGIN} {width} {height}" font-family="{_FONTS}" '
        f'role="img" aria-label="{name}">\n',
        f"<title>{name}</title>\n",
        _STYLE,
        f'<rect {_look("page")} x="{-_MARGIN}" y="{-_MARGIN}" '
        f'width="{width}" height="{height}"/>\n',
    ]
    for number, box in enumerate(picture.boxes):
        _draw_box(parts, box, placed[number])
        for lane in placed[number].lanes:
            _draw_lane(parts, picture, placed, number, lane)
    return "".join(parts) + "</svg>\n"


def _draw_box(parts: list[str], box: Box, at: Placed) -> None:
    shape = ("frame odd" if at.depth % 2 else "frame") if at.lanes else "box"
    title = _escaped(" · ".join(box.lines))
    classes = f"{shape} {box.kind} {box.state}".rstrip()
    parts.append(
        f'<rect {_look(classes)} x="{at.x}" y="{at.y}" width="{at.width}" '
        f'height="{at.height}" rx="{8 if at.lanes else 6}"><title>{title}</title></rect>\n'
    )
    y = at.y + PAD - 4
    for line in at.title:
        parts.append(_text("t c", at.centre, y + TITLE_LINE - 5, line))
        y += TITLE_LINE
    for line in at.details:
        parts.append(_text("d c", at.centre, y + DETAIL_LINE - 4, line))
        y += DETAIL_LINE
    if box.kind in LOOPS:
        parts.append(_loop_sign(at.x + at.width - 17, at.y + 8))


def _draw_lane(
    parts: list[str], picture: Picture, placed: list[Placed], number: int, lane: PlacedLane
) -> None:
    around, at = picture.boxes[number], placed[number]
    y = lane.y
    if around.kind == "parallel" and lane.boxes:
        first = placed[lane.boxes[0]]
        if lane.first_row:
            parts.append(_branch(at.centre, at.y + at.head, first.centre, first.y))
        return
    if lane.label:
        handler = " handler" if around.kind in ("sequence", "wait_event") else ""
        parts.append(
            f'<rect {_look(f"lane{handler}")} x="{lane.x}" y="{lane.y}" width="{lane.width}" '
            f'height="{lane.height}" rx="6"/>\n'
        )
        if lane.first_row and not handler:
            parts.append(_branch(at.centre, at.y + at.head, lane.centre, lane.y))
        for line in lane.label:
            y += DETAIL_LINE
            parts.append(_text("d c", lane.centre, y, line))
        y = lane.y + lane.head
    if number == 0:
        y += MARK
        parts.append(f'<circle {_look("tip")} cx="{lane.centre}" cy="{y - MARK // 2}" r="5"/>\n')
    _draw_boxes(parts, picture, placed, lane, y, ends=number == 0)


def _draw_boxes(
    parts: list[str],
    picture: Picture,
    placed: list[Placed],
    lane: PlacedLane,
    y: int,
    *,
    ends: bool,
) -> None:
    """The arrows of a lane, from `y` to its first box and on; a workflow's ends in a mark."""
    goes_on = True
    for inner in lane.boxes:
        if goes_on:
            parts.append(_arrow(lane.centre, y, placed[inner].y))
        y = placed[inner].y + placed[inner].height
        goes_on = not picture.boxes[inner].ends
    if ends:
        end = y + ARROW
        if goes_on:
            parts.append(_arrow(lane.centre, y, end))
        parts.append(f'<circle {_look("line")} cx="{lane.centre}" cy="{end + 5}" r="5"/>\n')
        parts.append(f'<circle {_look("tip")} cx="{lane.centre}" cy="{end + 5}" r="2.5"/>\n')


def _branch(x: int, y: int, to_x: int, to_y: int) -> str:
    """From below the text of a frame to one of its lanes, by way of a line they share."""
    middle = y + 6
    return f'<path {_look("line")} d="M{x} {y}V{middle}H{to_x}"/>' + _arrow(to_x, middle, to_y)


def _arrow(x: int, start: int, end: int) -> str:
    return (
        f'<path {_look("line")} d="M{x} {start}V{end - 5}"/>'
        f'<path {_look("tip")} d="M{x - 4} {end - 6}h8l-4 6z"/>\n'
    )


def _loop_sign(x: int, y: int) -> str:
    return (
        f'<path {_look("line")} d="M{x + 8} {y + 2}a5 5 0 1 0 2 4"/>'
        f'<path {_look("tip")} d="M{x + 6} {y - 1}l5 2l-3 4z"/>\n'
    )


def _text(classes: str, x: int, y: int, text: str) -> str:
    return f'<text {_look(classes)} x="{x}" y="{y}">{_escaped(text)}</text>\n'


def _escaped(text: str) -> str:
    return escape(text, {'"': "&quot;"})

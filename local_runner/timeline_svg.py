"""The timeline of a run as an SVG picture: one lane per worker, one bar per call of a handler.

All text is escaped; there are no links and no scripts. A bar's title (what a viewer shows when it
is pointed at) names the path, the action and the time it took.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Final

from local_runner.events import TimelineEntry

_WIDTH: Final = 960
_MARGIN: Final = 90
_LANE: Final = 28
_TOP: Final = 24
_TICKS: Final = 6
_COLOURS: Final = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#e15759", "#9c755f")

# XML 1.0 has no place for these, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def timeline_svg(entries: Sequence[TimelineEntry]) -> str:
    """Returns the picture as an SVG document; without any call it says so."""
    workers = sorted({entry.worker for entry in entries})
    start = min((entry.started_at for entry in entries), default=0.0)
    end = max((entry.ended_at for entry in entries), default=0.0)
    height = _TOP + _LANE * max(len(workers), 1) + 30
    scale = (_WIDTH - _MARGIN - 20) / max(end - start, 1e-6)
    lanes = {worker: _TOP + _LANE * lane for lane, worker in enumerate(workers)}
    colours = _colours(entries)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}"'
        f' width="{_WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    if not entries:
        parts.append(f'<text x="10" y="{_TOP}">no action was run</text>')
    parts += [
        f'<text x="10" y="{y + 17}">worker {worker + 1}</text>' for worker, y in lanes.items()
    ]
    parts += _axis(end - start, scale, height) if entries else []
    for entry in entries:
        x = _MARGIN + (entry.started_at - start) * scale
        width = max((entry.ended_at - entry.started_at) * scale, 1.0)
        parts.append(_bar(entry, x, lanes[entry.worker], width, colours[entry.action]))
    return "\n".join([*parts, "</svg>", ""])


def _colours(entries: Sequence[TimelineEntry]) -> dict[str, str]:
    actions = dict.fromkeys(entry.action for entry in entries)
    return {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(actions)}


def _axis(total: float, scale: float, height: int) -> list[str]:
    lines = []
    for tick in range(_TICKS + 1):
        seconds = total * tick / _TICKS
        x = _MARGIN + seconds * scale
        lines.append(
            f'<line x1="{x:.1f}" y1="{_TOP - 4}" x2="{x:.1f}" y2="{height - 26}" stroke="#dddddd"/>'
        )
        lines.append(
            f'<text x="{x:.1f}" y="{height - 10}" text-anchor="middle" fill="#666666">'
            f"{seconds:.3g} s</text>"
        )
    return lines


def _bar(entry: TimelineEntry, x: float, y: int, width: float, colour: str) -> str:
    took = (entry.ended_at - entry.started_at) * 1000
    title = f"{entry.path}  {entry.action}  {took:.1f} ms"
    return (
        f'<rect x="{x:.2f}" y="{y + 3}" width="{width:.2f}" height="{_LANE - 6}" rx="2"'
        f' fill="{colour}"><title>{_text(title)}</title></rect>'
    )


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))

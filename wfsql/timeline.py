"""Draws when each worker was busy, as text: one line per worker, time from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from wfsql.cli.output import counted

_BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A task that a worker did, from `began_at` to `ended_at`."""

    worker: str
    path: str
    began_at: datetime
    ended_at: datetime


def draw(stretches: Sequence[Stretch], width: int = 60) -> list[str]:
    """Returns the lines of the chart; the height of a mark is how much of its slot was busy."""
    if not stretches:
        return []
    start = min(s.began_at for s in stretches)
    total = max((max(s.ended_at for s in stretches) - start).total_seconds(), 0.001)
    workers = sorted({s.worker for s in stretches})
    margin = max(map(len, workers))
    lines = []
    for worker in workers:
        own = [s for s in stretches if s.worker == worker]
        spans = [
            ((s.began_at - start).total_seconds(), (s.ended_at - start).total_seconds())
            for s in own
        ]
        busy = sum(end - begin for begin, end in spans)
        marks = _marks(spans, total, width)
        lines.append(
            f"{worker:<{margin}} |{marks}| {counted(len(own), 'task'):>9}, {busy:.2f} s busy"
        )
    scale = f"0{'':{width - 1}}{total:.2f} s"
    return [*lines, f"{'':{margin}}  {scale}"]


def _marks(spans: Sequence[tuple[float, float]], total: float, width: int) -> str:
    slot = total / width
    filled = [0.0] * width
    for begin, end in spans:
        first = min(int(begin / slot), width - 1)
        last = min(max(ceil(end / slot) - 1, first), width - 1)
        for i in range(first, last + 1):
            overlap = min(end, (i + 1) * slot) - max(begin, i * slot)
            # A task too short to see is still a task.
            filled[i] += max(overlap / slot, 0.05)
    top = len(_BLOCKS) - 1
    return "".join(_BLOCKS[0 if f == 0 else max(1, min(top, round(f * top)))] for f in filled)

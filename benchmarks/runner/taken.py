"""Measures one run in its own process; imported by all subjects, so it needs nothing but Python."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable


def taken_by(run: Callable[[], None], count: int) -> dict[str, float]:
    """Runs once and returns seconds, by the clock and of the processor, and the peak of memory."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.perf_counter()
    run()
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "count": count,
        "wall_seconds": wall,
        "cpu_seconds": used,
        "peak_bytes": after.ru_maxrss * unit,
    }


def print_sample(sample: dict[str, float]) -> None:
    """Prints what a run took, as the last line of its output."""
    print(json.dumps(sample))

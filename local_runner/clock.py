"""The clocks of a driver: the real one, and a virtual one that moves only when nothing can be done.

Times are whole milliseconds since the instance's start; a run that goes on after a kill says how
late it is.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int: ...

    def patience(self, due_ms: int | None, is_idle: bool) -> float | None:
        """Returns how many seconds to wait for results, None for as long as it takes.

        Args:
          due_ms: when something happens by itself.
          is_idle: no handler runs, so that only time can bring anything.
        """
        ...


class RealClock:
    """Counts from its making, or from `offset_ms` before it."""

    def __init__(self, offset_ms: int = 0) -> None:
        self._zero = time.monotonic_ns() - offset_ms * 1_000_000

    def now_ms(self) -> int:
        return (time.monotonic_ns() - self._zero) // 1_000_000

    def patience(self, due_ms: int | None, is_idle: bool) -> float | None:
        if due_ms is None:
            return None
        # A millisecond more: the clock cuts off what is less than one.
        return max(0, due_ms - self.now_ms() + 1) / 1000


class VirtualClock:
    """Jumps to what is due next, but only when nothing can be claimed and nothing runs (R12)."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now = now_ms

    def now_ms(self) -> int:
        return self._now

    def move_to(self, now_ms: int) -> None:
        """Moves forward; a time that has passed changes nothing."""
        self._now = max(self._now, now_ms)

    def patience(self, due_ms: int | None, is_idle: bool) -> float | None:
        if due_ms is None or not is_idle:
            return None
        self.move_to(due_ms)
        return 0

"""Repeats calls while repeating can help.

Pauses double from 20 ms to 30 s, with jitter, so that many workers do not come back at the same
moment after their gateway or database was away.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import TypeVar

from wfsql.worker.source import Trouble

T = TypeVar("T")

_FIRST_PAUSE_SECONDS = 0.02
_LAST_PAUSE_SECONDS = 30.0
# A shorter absence than this is not worth a line.
_QUIET_SECONDS = 1.0


@dataclass(slots=True)
class Backoff:
    """The pauses of one series of attempts."""

    first_seconds: float = _FIRST_PAUSE_SECONDS
    last_seconds: float = _LAST_PAUSE_SECONDS
    draw: Callable[[], float] = random.random
    _next_seconds: float = field(init=False)

    def __post_init__(self) -> None:
        self._next_seconds = self.first_seconds

    def reset(self) -> None:
        self._next_seconds = self.first_seconds

    def next(self, at_least: float = 0.0) -> float:
        """Returns how long to pause now; between half of the step and all of it."""
        step = self._next_seconds
        self._next_seconds = min(step * 2, self.last_seconds)
        return max(step * (0.5 + self.draw() / 2), at_least)


def repeat(
    call: Callable[[], T | Trouble],
    stop: Event,
    log: Callable[[str], None],
    *,
    patience_seconds: float = float("inf"),
    backoff: Backoff | None = None,
) -> T | Trouble:
    """Returns the answer, or the trouble that did not pass in time or before `stop` was set."""
    give_up_at = time.monotonic() + patience_seconds
    steps = backoff or Backoff()
    while True:
        answer = call()
        if not isinstance(answer, Trouble) or not answer.passing or stop.is_set():
            return answer
        pause = steps.next(answer.after_seconds)
        if time.monotonic() + pause > give_up_at:
            return answer
        if pause >= _QUIET_SECONDS:
            log(f"{answer.message}; trying again in {pause:.0f} s")
        if stop.wait(pause):
            return answer

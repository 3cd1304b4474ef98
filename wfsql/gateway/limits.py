"""Who calls how often: token buckets by caller, in bounded memory."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

_MOST_BUCKETS = 20_000


class RateLimit:
    """`per_second` calls of each caller on average, twice that many at once; 0: no limit."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._burst = max(per_second * 2, 1.0)
        self._clock = clock
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def take(self, caller: bytes) -> int:
        """Counts a call; returns 0, or after how many seconds to come back."""
        if self._rate <= 0:
            return 0
        now = self._clock()
        level, at = self._buckets.pop(caller, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._rate)
        allowed = level >= 1.0
        self._buckets[caller] = (level - 1.0 if allowed else level, now)
        if len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return 0 if allowed else max(1, math.ceil((1.0 - level) / self._rate))

"""How many tasks a worker asks for.

As many as it has free threads. When there was more work than it could take and its tasks are short,
it also claims a little ahead, so that the threads need not wait for the next claim: at most what is
done in 20 ms, because an idle worker elsewhere could do it, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from wfsql.worker.source import BATCH_LIMIT

_AHEAD_SECONDS = 0.02
# Shorter than that, the worker's own work counts and not the handler's.
_SHORTEST_SECONDS = 0.0002
_NEWEST_SHARE = 0.1


@dataclass(slots=True)
class Pace:
    """`mean_seconds` is a moving mean of what handlers took; None before the first."""

    concurrency: int
    mean_seconds: float | None = None
    has_backlog: bool = False

    def took(self, seconds: float) -> None:
        if self.mean_seconds is None:
            self.mean_seconds = seconds
        else:
            self.mean_seconds += (seconds - self.mean_seconds) * _NEWEST_SHARE

    def claimed(self, count: int, asked: int) -> None:
        """Notes a claim; one that brought all that was asked for left more behind, probably."""
        self.has_backlog = count >= asked

    def was_wrong(self, seconds: float) -> None:
        """What was claimed ahead waited for so long."""
        self.has_backlog = False
        self.mean_seconds = max(self.mean_seconds or 0.0, seconds)

    def room(self, in_hand: int) -> int:
        """Returns how many tasks to ask for; with tasks ahead, not before half of them are done."""
        ahead = self._ahead()
        if in_hand > self.concurrency + ahead // 2 - (0 if ahead else 1):
            return 0
        return min(self.concurrency + ahead - in_hand, BATCH_LIMIT)

    def _ahead(self) -> int:
        if not self.has_backlog or self.mean_seconds is None:
            return 0
        mean = max(self.mean_seconds, _SHORTEST_SECONDS)
        return min(int(self.concurrency * _AHEAD_SECONDS / mean), BATCH_LIMIT)

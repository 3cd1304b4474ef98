"""A connection that mends itself: calls are repeated while repeating can help.

A deadlock victim or a serialization failure is called again on the same connection; after a lost
connection a new one is made. Pauses double from 20 ms to 5 s, with jitter, so that many workers do
not come back at the same moment.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from threading import Event
from typing import TypeVar

from runtime_sql.connection import RuntimeClient
from runtime_sql.failures import ApiError, DatabaseProblem, Failure

T = TypeVar("T")
Connect = Callable[[], RuntimeClient | Failure]

_FIRST_PAUSE_SECONDS = 0.02
_LAST_PAUSE_SECONDS = 5.0


class Link:
    """Belongs to one thread. `stop` cuts the pauses short and ends the repeating."""

    def __init__(self, connect: Connect, stop: Event, log: Callable[[str], None]) -> None:
        self._connect = connect
        self._stop = stop
        self._log = log
        self._client: RuntimeClient | None = None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def call(
        self,
        action: Callable[[RuntimeClient], T | Failure],
        *,
        patience_seconds: float = 60.0,
        insist: bool = False,
    ) -> T | Failure:
        """Returns the answer, or the failure that repeating for `patience_seconds` did not mend.

        `insist` goes on repeating after `stop`: a result in hand is worth it, a claim is not.
        """
        give_up_at = time.monotonic() + patience_seconds
        pause = _FIRST_PAUSE_SECONDS
        while True:
            answer = self._once(action)
            if not isinstance(answer, DatabaseProblem) or not answer.retryable:
                return answer
            if time.monotonic() + pause > give_up_at:
                return answer
            if pause >= 1.0:
                self._log(f"{answer.message}; trying again")
            if self._pause(pause * random.uniform(0.5, 1.0), insist):
                return answer
            pause = min(pause * 2, _LAST_PAUSE_SECONDS)

    def _pause(self, seconds: float, insist: bool) -> bool:
        """Waits; returns whether to give up because of `stop`."""
        if insist:
            time.sleep(seconds)
            return False
        return self._stop.wait(seconds)

    def _once(self, action: Callable[[RuntimeClient], T | Failure]) -> T | Failure:
        if self._client is None:
            client = self._connect()
            if isinstance(client, ApiError | DatabaseProblem):
                return client
            self._client = client
        answer = action(self._client)
        if isinstance(answer, DatabaseProblem) and answer.kind == "unreachable":
            self.close()
        return answer

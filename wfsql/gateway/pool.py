"""A pool of database clients, used from as many threads.

Flow: `run(call)` waits for a free client, at most `wait_seconds`, and makes the call in a thread. A
connection that is lost is made anew and the call repeated once; a call that must not be made twice
(`repeatable=False`) is repeated only when the lost connection was known to be dead before it.
Failures are raised as `Refusal`, but `ask` returns them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from runtime_sql.failures import ApiError, DatabaseProblem, Failure
from runtime_sql.gateway_client import GatewayClient
from wfsql.gateway.problems import RETRY_AFTER_SECONDS, Refusal, of_failure

T = TypeVar("T")
Connect = Callable[[], GatewayClient | Failure]
Call = Callable[[GatewayClient], T | Failure]

_TRUSTED_SECONDS = 5.0
"""A client that answered within this time is taken to be alive."""
_PASSING_PAUSES = (0.01, 0.05)
"""Pauses before a call that lost against another transaction is made again."""
_WAITING_PER_CLIENT = 200
"""So many calls may wait for each client; more are refused at once."""


class _Slot:
    """One client, or the place for one, and when it last answered."""

    def __init__(self) -> None:
        self.client: GatewayClient | None = None
        self.answered_at = 0.0

    def drop(self) -> None:
        if self.client is not None:
            self.client.close()
            self.client = None


class Pool:
    """Belongs to one event loop. `in_use` and `exhausted_count` are for the metrics."""

    def __init__(self, connect: Connect, size: int, wait_seconds: float = 2.0) -> None:
        self.size = size
        self.exhausted_count = 0
        self.lost_count = 0
        self._connect = connect
        self.wait_seconds = wait_seconds
        self._idle = [_Slot() for _ in range(size)]
        self._free = asyncio.Semaphore(size)
        self._waiting = 0
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="database")

    @property
    def in_use(self) -> int:
        return self.size - len(self._idle)

    async def run(self, call: Call[T], *, repeatable: bool = True) -> T:
        """Returns the answer of a call.

        Raises:
          Refusal: the runtime refused it, the database is away, or no client came free in time.
        """
        answer = await self.ask(call, repeatable=repeatable)
        if isinstance(answer, ApiError | DatabaseProblem):
            raise of_failure(answer)
        return answer

    async def ask(self, call: Call[T], *, repeatable: bool = True) -> T | Failure:
        """Does so with failures as values.

        Raises:
          Refusal: no client came free in time.
        """
        await self._acquire()
        slot = self._idle.pop()
        loop = asyncio.get_running_loop()
        work: asyncio.Future[T | Failure] = loop.run_in_executor(
            self._threads, partial(self._make, slot, call, repeatable)
        )
        # The thread goes on when its caller is cancelled, so the slot is given back by the work.
        work.add_done_callback(lambda _done: self._give_back(slot))
        return await asyncio.shield(work)

    async def _acquire(self) -> None:
        if self._free.locked():
            if self._waiting >= self.size * _WAITING_PER_CLIENT:
                raise self.exhausted()
            self._waiting += 1
            try:
                await asyncio.wait_for(self._free.acquire(), self.wait_seconds)
            except TimeoutError:
                raise self.exhausted() from None
            finally:
                self._waiting -= 1
        else:
            await self._free.acquire()

    def exhausted(self) -> Refusal:
        """Counts a call that no client came free for, and returns what it is answered."""
        self.exhausted_count += 1
        return Refusal(
            503,
            "pool_exhausted",
            "all connections to the database are in use",
            retry_after=RETRY_AFTER_SECONDS,
        )

    def _give_back(self, slot: _Slot) -> None:
        self._idle.append(slot)
        self._free.release()

    # In a thread ------------------------------------------------------------------------------

    def _make(self, slot: _Slot, call: Call[T], repeatable: bool) -> T | Failure:
        if not repeatable and not self._is_alive(slot):
            slot.drop()
        answer = self._once(slot, call)
        if _is_lost(answer):
            self.lost_count += 1
            if repeatable:
                answer = self._once(slot, call)
        for pause in _PASSING_PAUSES:
            if not _is_passing(answer):
                break
            time.sleep(pause)
            answer = self._once(slot, call)
        return answer

    def _is_alive(self, slot: _Slot) -> bool:
        if slot.client is None or time.monotonic() - slot.answered_at < _TRUSTED_SECONDS:
            return True
        return slot.client.ping() is None

    def _once(self, slot: _Slot, call: Call[T]) -> T | Failure:
        if slot.client is None:
            client = self._connect()
            if isinstance(client, ApiError | DatabaseProblem):
                return client
            slot.client = client
        try:
            answer = call(slot.client)
        except BaseException:
            slot.drop()
            raise
        if _is_lost(answer):
            slot.drop()
        else:
            slot.answered_at = time.monotonic()
        return answer

    async def close(self) -> None:
        """Closes the idle clients; calls that still run are left to themselves."""
        self._threads.shutdown(wait=False)
        for slot in self._idle:
            slot.drop()


def _is_lost(answer: object) -> bool:
    return isinstance(answer, DatabaseProblem) and answer.kind == "unreachable"


def _is_passing(answer: object) -> bool:
    """Whether a call lost against another transaction, and left nothing behind."""
    return isinstance(answer, DatabaseProblem) and answer.retryable and answer.kind == "server"

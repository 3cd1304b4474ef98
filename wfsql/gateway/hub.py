"""The hub: where polls that found nothing wait, however many, at the cost of one query for all.

Flow: a poll claims once; when that was in vain it waits here with what its worker may claim. While
anybody waits, the hub asks the database for whom there is something (`wf_claimable_capabilities`),
every 50 ms while things happen and ever more seldom, up to 500 ms, while nothing does. It wakes no
more polls than there is work, those first that wait the longest; a woken poll claims and waits
again if others were quicker. `kick` (a submit, start or event made something ready) asks at once.

A claim that came back empty though there was work (limits of an action or worker, another gateway)
makes the hub leave that work alone for a while, so that it does not wake in vain for ever.

The hub also calls `sp_tick`, so that times move while nobody claims, and vacuums the queue when it
needs it, as a worker with a connection of its own does.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from runtime_sql.failures import ApiError, DatabaseProblem, Failure
from runtime_sql.gateway_client import Claimable, GatewayClient
from wfsql.gateway.pool import Pool
from wfsql.gateway.problems import Refusal

SHORTEST_SECONDS = 0.05
LONGEST_SECONDS = 0.5
TICK_SECONDS = 0.5
IDLE_TICK_SECONDS = 5.0
CLEAN_SECONDS = 10.0
DEAD_ROWS_LIMIT = 20_000
FAULT_PAUSE_SECONDS = 1.0
ALL = "*"

Work = tuple[str, str | None]
"""A capability, and the worker that the work is pinned to, if any."""


@dataclass(eq=False, slots=True)
class Waiter:
    """A poll that waits. `given`: the work it was woken for, None for a command or the end."""

    worker_id: str
    capabilities: frozenset[str]
    wanted: str | None
    max_tasks: int
    number: int
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    given: Work | None = None

    def lanes(self) -> Iterator[str]:
        """The capabilities under which it is looked for; `*` alone when it takes all."""
        takes_all = ALL in self.capabilities
        if self.wanted is not None:
            if takes_all or self.wanted in self.capabilities:
                yield self.wanted
        elif takes_all:
            yield ALL
        else:
            yield from self.capabilities


class Hub:
    """Belongs to one event loop. `poll_count` says how often the database was asked."""

    def __init__(self, pool: Pool, log: Any) -> None:
        self.poll_count = 0
        self.stopping = False
        self._pool = pool
        self._log = log
        self._numbers = count()
        self._lanes: dict[str, dict[int, Waiter]] = {}
        self._by_worker: dict[str, dict[int, Waiter]] = {}
        self._waiting = 0
        self._kicked = asyncio.Event()
        self._in_vain: dict[Work, tuple[float, float]] = {}
        self._in_hand: dict[Work, int] = {}
        self._ticked_at = float("-inf")
        self._cleaned_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting_count(self) -> int:
        return self._waiting

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Ends all waiting, now and from now on."""
        self.stopping = True
        for waiters in self._by_worker.values():
            for waiter in waiters.values():
                waiter.woken.set()
        self._kicked.set()

    async def close(self) -> None:
        self.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def kick(self) -> None:
        """Says that something has become ready: the hub looks at once."""
        self._in_vain.clear()
        if self._waiting:
            self._kicked.set()

    # Waiting ----------------------------------------------------------------------------------

    def enter(
        self, worker_id: str, capabilities: frozenset[str], wanted: str | None, max_tasks: int
    ) -> Waiter:
        """Begins the waiting of a poll; `leave` must end it."""
        waiter = Waiter(worker_id, capabilities, wanted, max_tasks, next(self._numbers))
        for lane in waiter.lanes():
            self._lanes.setdefault(lane, {})[waiter.number] = waiter
        self._by_worker.setdefault(worker_id, {})[waiter.number] = waiter
        self._waiting += 1
        if self._waiting == 1:
            self._kicked.set()
        return waiter

    def leave(self, waiter: Waiter) -> None:
        """Ends the waiting; work that it was woken for and did not claim is looked at again."""
        if waiter.given is not None:
            self._put_down(waiter)
            self._kicked.set()
        self._waiting -= 1
        for lane in waiter.lanes():
            _remove(self._lanes, lane, waiter.number)
        _remove(self._by_worker, waiter.worker_id, waiter.number)

    async def wait(self, waiter: Waiter, seconds: float) -> bool:
        """Waits until the poll should claim; False when its time is over or the gateway ends."""
        if self.stopping:
            return False
        try:
            await asyncio.wait_for(waiter.woken.wait(), seconds)
        except TimeoutError:
            return False
        waiter.woken.clear()
        return not self.stopping

    def claimed(self, waiter: Waiter, task_count: int) -> None:
        """Says what the claim of a woken poll gave."""
        work = self._put_down(waiter)
        if work is None:
            return
        if task_count:
            self._in_vain.pop(work, None)
            return
        _until, pause = self._in_vain.get(work, (0.0, SHORTEST_SECONDS / 2))
        pause = min(pause * 2, LONGEST_SECONDS)
        self._in_vain[work] = (asyncio.get_running_loop().time() + pause, pause)

    def _put_down(self, waiter: Waiter) -> Work | None:
        """Ends what a waiter was woken for, and returns it."""
        work, waiter.given = waiter.given, None
        if work is not None:
            left = self._in_hand.get(work, 0) - waiter.max_tasks
            if left > 0:
                self._in_hand[work] = left
            else:
                self._in_hand.pop(work, None)
        return work

    # Looking ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        pause = SHORTEST_SECONDS
        while not self.stopping:
            woken = await self._go_round()
            pause = SHORTEST_SECONDS if woken else min(pause * 1.5, LONGEST_SECONDS)
            if await self._rest(pause if self._waiting else IDLE_TICK_SECONDS):
                pause = SHORTEST_SECONDS

    async def _go_round(self) -> int:
        """Does what is due; returns how many were woken. Whatever fails, polls go on waiting."""
        try:
            await self._tick_if_due()
            return await self._look() if self._waiting else 0
        except Refusal:
            return 0
        except Exception:
            self._log.exception("hub_fault")
            await asyncio.sleep(FAULT_PAUSE_SECONDS)
            return 0

    async def _rest(self, seconds: float) -> bool:
        """Waits; returns whether it was kicked."""
        try:
            await asyncio.wait_for(self._kicked.wait(), seconds)
        except TimeoutError:
            return False
        self._kicked.clear()
        return True

    async def _tick_if_due(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._ticked_at >= (TICK_SECONDS if self._waiting else IDLE_TICK_SECONDS):
            self._ticked_at = now
            await self._pool.ask(lambda client: client.tick())
        if now - self._cleaned_at >= CLEAN_SECONDS:
            self._cleaned_at = now
            await self._pool.ask(_clean)

    async def _look(self) -> int:
        """Asks for whom there is work and wakes them; returns how many were woken."""
        self.poll_count += 1
        found = await self._pool.ask(lambda client: client.claimable())
        if isinstance(found, ApiError | DatabaseProblem):
            return 0
        return sum(self._wake(row) for row in found)

    def _wake(self, row: Claimable) -> int:
        if row.capability is None:
            told = self._by_worker.get(row.worker_id or "", {}).values()
            return sum(_rouse(waiter, None) for waiter in list(told))
        work = (row.capability, row.worker_id)
        until, _pause = self._in_vain.get(work, (0.0, 0.0))
        if until > asyncio.get_running_loop().time():
            return 0
        left = row.task_count - self._in_hand.get(work, 0)
        woken = 0
        for waiter in self._candidates(row.capability, row.worker_id):
            if left <= 0:
                break
            if _rouse(waiter, work):
                left -= waiter.max_tasks
                woken += 1
                self._in_hand[work] = self._in_hand.get(work, 0) + waiter.max_tasks
        return woken

    def _candidates(self, capability: str, worker_id: str | None) -> list[Waiter]:
        """Those that may take the work, the longest waiting first."""
        lanes = [self._lanes.get(lane, {}).values() for lane in {capability, ALL}]
        found: Iterable[Waiter] = heapq.merge(*lanes, key=lambda waiter: waiter.number)
        return [w for w in found if worker_id is None or w.worker_id == worker_id]


def _clean(client: GatewayClient) -> Failure | None:
    dead = client.dead_task_rows()
    return client.vacuum_tasks() if isinstance(dead, int) and dead >= DEAD_ROWS_LIMIT else None


def _rouse(waiter: Waiter, work: Work | None) -> bool:
    """Wakes a waiter, unless somebody has."""
    if waiter.woken.is_set() or waiter.given is not None:
        return False
    waiter.given = work
    waiter.woken.set()
    return True


def _remove(index: dict[str, dict[int, Waiter]], key: str, number: int) -> None:
    waiters = index.get(key)
    if waiters is not None:
        waiters.pop(number, None)
        if not waiters:
            del index[key]

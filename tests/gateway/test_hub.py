"""Which polls the hub wakes, and what their waiting costs; without a database."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from runtime_sql.gateway_client import Claimable
from wfsql.gateway.hub import Hub, Waiter
from wfsql.gateway.log import new_logger
from wfsql.gateway.pool import Pool


@dataclass
class FakeClient:
    """Answers what the test put into it, and counts."""

    rows: list[Claimable] = field(default_factory=list)
    looks: int = 0
    ticks: int = 0
    dead_rows: int = 0
    vacuums: int = 0
    fault: Exception | None = None

    def dead_task_rows(self) -> int:
        return self.dead_rows

    def vacuum_tasks(self) -> None:
        self.vacuums += 1

    def claimable(self) -> list[Claimable]:
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        return self.rows

    def tick(self) -> None:
        self.ticks += 1

    def close(self) -> None:
        pass


def with_hub(test: Callable[[Hub, FakeClient], Awaitable[None]]) -> FakeClient:
    client = FakeClient()

    async def run() -> None:
        pool = Pool(lambda: client, 1)  # type: ignore[arg-type, return-value]
        hub = Hub(pool, new_logger(io.StringIO()))
        hub.start()
        try:
            await asyncio.wait_for(test(hub, client), 20)
        finally:
            await hub.close()
            await pool.close()

    asyncio.run(run())
    return client


def enter(hub: Hub, name: str, *capabilities: str, wanted: str | None = None, n: int = 1) -> Waiter:
    return hub.enter(name, frozenset(capabilities), wanted, n)


async def woken(hub: Hub, *waiters: Waiter, seconds: float = 0.4) -> list[str]:
    """The names of those that are woken within a time."""
    answers = await asyncio.gather(*(hub.wait(waiter, seconds) for waiter in waiters))
    return [w.worker_id for w, answer in zip(waiters, answers, strict=True) if answer]


def test_a_thousand_idle_polls_cost_one_question_each_half_second() -> None:
    async def test(hub: Hub, client: FakeClient) -> None:
        waiters = [enter(hub, f"w{n}", "a") for n in range(1000)]
        await asyncio.sleep(2.0)
        before = client.looks
        await asyncio.gather(*(hub.wait(waiter, 2.0) for waiter in waiters))
        assert 2 <= client.looks - before <= 6

    with_hub(test)


def test_nobody_asks_while_nobody_waits() -> None:
    async def test(hub: Hub, client: FakeClient) -> None:
        await asyncio.sleep(0.5)
        assert client.looks == 0

    client = with_hub(test)
    assert client.ticks == 1


def test_no_more_are_woken_than_there_is_work_and_the_first_come_first() -> None:
    async def test(hub: Hub, client: FakeClient) -> None:
        waiters = [enter(hub, f"w{n}", "a") for n in range(5)]
        client.rows = [Claimable("a", None, 2)]
        assert await woken(hub, *waiters) == ["w0", "w1"]

    with_hub(test)


def test_a_poll_for_many_tasks_counts_for_as_many() -> None:
    async def test(hub: Hub, client: FakeClient) -> None:
        waiters = [enter(hub, f"w{n}", "a", n=10) for n in range(3)]
        client.rows = [Claimable("a", None, 15)]
        assert await woken(hub, *waiters) == ["w0", "w1"]

    with_hub(test)


def test_only_those_are_woken_who_may_take_the_work() -> None:
    async def test(hub: Hub, client: FakeClient) -> None:
        other = enter(hub, "other", "b")
        narrow = enter(hub, "narrow", "a", "b", wanted="b")
        able = enter(hub, "able", "a", "b")
        all_ = enter(hub, "all", "*")
        wants = enter(hub, "wants", "*", wanted="a")
        client.rows = [Claimable("a", None, 9)]
        found = await woken(hub, other, narrow, able, all_, wants)
        assert found == ["able", "all", "wants"]

    with_hub(test)


def test_pinned_work_wakes_its_worker_alone() -> None:
    async def test(hub: Hub, client: FakeClient) -> None:
        first, second = enter(hub, "first", "a"), enter(hub, "second", "a")
        client.rows = [Claimable("a", "second", 1)]
        assert await woken(hub, first, second) == ["second"]

    with_hub(test)


def test_a_worker_that_is_told_something_is_woken() -> None:
    async def test(hub: Hub, client: FakeClient) -> None:
        first, second = enter(hub, "first", "a"), enter(hub, "second", "a")
        client.rows = [Claimable(None, "second", 0)]
        assert await woken(hub, first, second) == ["second"]

    with_hub(test)


def test_work_in_the_hands_of_a_woken_poll_wakes_nobody_else() -> None:
    async def test(hub: Hub, client: FakeClient) -> None:
        first, second = enter(hub, "first", "a"), enter(hub, "second", "a")
        client.rows = [Claimable("a", None, 1)]
        assert await woken(hub, first, second) == ["first"]
        assert await woken(hub, second) == []
        hub.leave(first)
        assert await woken(hub, second) == ["second"]

    with_hub(test)


def test_work_that_was_claimed_for_in_vain_is_left_alone_ever_longer() -> None:
    async def test(hub: Hub, client: FakeClient) -> None:
        waiter = enter(hub, "w", "a")
        client.rows = [Claimable("a", None, 1)]
        count = 0
        give_up_at = asyncio.get_running_loop().time() + 2.0
        while (left := give_up_at - asyncio.get_running_loop().time()) > 0:
            if await hub.wait(waiter, left):
                count += 1
                hub.claimed(waiter, 0)
        assert 2 <= count <= 9

    with_hub(test)


def test_a_kick_makes_the_hub_look_at_once() -> None:
    async def test(hub: Hub, client: FakeClient) -> None:
        waiter = enter(hub, "w", "a")
        await asyncio.sleep(2.0)
        client.rows = [Claimable("a", None, 1)]
        began = asyncio.get_running_loop().time()
        hub.kick()
        assert await hub.wait(waiter, 2.0)
        assert asyncio.get_running_loop().time() - began < 0.2

    with_hub(test)


def test_the_end_lets_everybody_go() -> None:
    async def test(hub: Hub, client: FakeClient) -> None:
        waiters: list[Any] = [enter(hub, f"w{n}", "a") for n in range(3)]
        waiting = [asyncio.ensure_future(hub.wait(waiter, 20)) for waiter in waiters]
        await asyncio.sleep(0)
        hub.stop()
        assert await asyncio.gather(*waiting) == [False, False, False]
        assert await hub.wait(waiters[0], 20) is False

    with_hub(test)


def test_a_fault_does_not_end_the_hub() -> None:
    async def test(hub: Hub, client: FakeClient) -> None:
        client.fault = ValueError("nobody expected this")
        waiter = enter(hub, "w", "a")
        assert not await hub.wait(waiter, 0.3)
        client.fault = None
        client.rows = [Claimable("a", None, 1)]
        assert await hub.wait(waiter, 5.0)

    with_hub(test)


def test_the_queue_is_vacuumed_when_many_of_its_rows_are_dead() -> None:
    for dead, vacuums in ((19_999, 0), (20_000, 1)):

        async def test(hub: Hub, client: FakeClient, dead: int = dead) -> None:
            client.dead_rows = dead
            hub._cleaned_at = float("-inf")
            enter(hub, "w", "a")
            await asyncio.sleep(0.2)

        assert with_hub(test).vacuums == vacuums

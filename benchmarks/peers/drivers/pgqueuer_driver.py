"""PgQueuer: jobs alone, over asyncpg and uvloop.

Batches of 50 are its fast setting; what is done is written down 50 at a time, too, so a crash
repeats up to 50 jobs of a process.
"""

from __future__ import annotations

import asyncio
import os
import time
from datetime import timedelta

import asyncpg
import protocol
import psycopg
import uvloop
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver

told = protocol.orders()
AT_ONCE = 1 if told.workload == "idle" else 50
_ENQUEUED_AT_ONCE = 1000


async def work() -> None:
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(told.url)))

    @queuer.entrypoint("leaf")
    async def leaf(_job: object) -> None:
        return None

    asyncio.get_running_loop().call_later(0.2, protocol.get_ready)
    await queuer.run(dequeue_timeout=timedelta(seconds=1), batch_size=AT_ONCE)


async def main() -> None:
    database = psycopg.connect(told.url, autocommit=True)
    queries = Queries(AsyncpgDriver(await asyncpg.connect(told.url)))
    await queries.install()

    def count(statement: str) -> int:
        ((found,),) = database.execute(statement).fetchall()
        return int(found)

    def done() -> int:
        return count("select count(*) from pgqueuer_log where status = 'successful'")

    async def enqueue(jobs: int) -> None:
        for begin in range(0, jobs, _ENQUEUED_AT_ONCE):
            size = min(_ENQUEUED_AT_ONCE, jobs - begin)
            await queries.enqueue(["leaf"] * size, [b"{}"] * size, [0] * size)

    async def fan() -> None:
        with protocol.team(__file__, told, told.processes):
            time.sleep(0.5)
            with protocol.load() as taken:
                await enqueue(told.fan)
                protocol.until(lambda: done() == told.fan, 0.02)
        protocol.require(count("select count(*) from pgqueuer"), 0)
        protocol.answer(told.fan, taken.seconds)

    async def idle() -> None:
        with protocol.team(__file__, told, 1):
            time.sleep(0.5)
            found = []
            with protocol.load() as taken:
                for _number in range(told.samples):
                    await asyncio.sleep(0.05)
                    began = time.perf_counter()
                    (job,) = await queries.enqueue("leaf", b"{}")
                    left = f"select count(*) from pgqueuer where id = {int(job)}"
                    protocol.until(lambda left=left: count(left) == 0, 0.0005)
                    found.append(1000 * (time.perf_counter() - began))
        protocol.answer(told.samples, taken.seconds, found)

    async def drain() -> None:
        await enqueue(told.jobs)
        database.execute("vacuum analyze")
        with protocol.team(__file__, told, told.processes):
            protocol.drain(told, done)

    await {"fan": fan, "idle": idle, "drain": drain}[told.workload]()
    os._exit(0)


if __name__ == "__main__":
    if told.role != "main":
        protocol.end_with_parent()
    uvloop.run(main() if told.role == "main" else work())

"""Five actions in a row: steps and workflows per second, by size of batch."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg

from benchmarks.throughput.bench import (
    MODULE,
    WORKERS,
    Bench,
    Run,
    await_all,
    measured,
    orders,
    scratch,
)
from benchmarks.throughput.crew import crew, wf_workers
from benchmarks.throughput.workflows import ACTIONS, start_many

BATCHES = (1, 5, 20, 50)


def steps(bench: Bench, batches: tuple[int, ...] = BATCHES) -> Iterator[Run]:
    """All instances are started before; then the workers claim and submit until none is left."""
    for batch in batches:
        count = bench.sizes.chains if batch > 1 else max(bench.sizes.chains // 4, 1)
        with bench.database() as url, psycopg.connect(url, autocommit=True) as connection:
            start_many(connection, "chain", [{"n": n} for n in range(count)], 50)
            connection.execute("vacuum analyze")
            with crew(MODULE, orders(url, WORKERS, batch)) as workers:
                before, began = bench.server.reading(workers.pids), time.time()
                workers.go()
                await_all(connection)
                after = bench.server.reading(workers.pids)
                reports = workers.stop()
            yield measured(
                f"five actions, batch {batch}",
                "step",
                sum(report["steps"] for report in reports),
                max(report["last_at"] for report in reports) - began,
                (before, after),
            )


def sustained(bench: Bench) -> Iterator[Run]:
    """Workers that start what they run: workflows per second from the start to the end of each."""
    for batch in (1, 20, 50):
        with bench.database() as url:
            yield feed(bench, url, batch, bench.sizes.feed_seconds, f"start to end, batch {batch}")


def feed(bench: Bench, url: str, batch: int, seconds: float, row: str) -> Run:
    """A closed loop: whoever finds less than a batch to claim starts a batch of instances. Warms up
    for a tenth of the time, then measures."""
    with (
        crew(MODULE, orders(url, WORKERS, batch, feed="chain")) as workers,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        workers.go()
        time.sleep(seconds / 10)
        first, before = _ended(connection), bench.server.reading(workers.pids)
        time.sleep(seconds)
        last, after = _ended(connection), bench.server.reading(workers.pids)
        workers.stop()
    return measured(row, "workflow", last - first, after.at - before.at, (before, after))


def real_workers(bench: Bench) -> Iterator[Run]:
    """The same with `wf worker` as it comes."""
    count = max(bench.sizes.chains // 4, 1)
    with (
        bench.database() as url,
        psycopg.connect(url, autocommit=True) as connection,
        scratch() as folder,
        wf_workers(WORKERS, url, folder, concurrency=10) as workers,
    ):
        before, began = bench.server.reading(workers.pids), time.time()
        start_many(connection, "chain", [{"n": n} for n in range(count)], 50)
        ended = await_all(connection)
        after = bench.server.reading(workers.pids)
    yield measured(
        f"wf worker, {WORKERS} × 10", "step", count * ACTIONS, ended - began, (before, after)
    )


def _ended(connection: psycopg.Connection[tuple[int]]) -> int:
    row = connection.execute(
        "select count(*) from wf.workflow_instance as i where i.status = 'SUCCEEDED'"
    ).fetchone()
    assert row is not None
    return int(row[0])

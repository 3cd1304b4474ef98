"""A fan-out with its join, a single action when nothing else is going on, and starts alone."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import psycopg

from benchmarks.measure import BenchmarkError
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
from benchmarks.throughput.crew import Crew, crew, wf_workers
from benchmarks.throughput.workflows import start_many

_LOOK_SECONDS = 0.0005


def fan_out(bench: Bench) -> Iterator[Run]:
    """One FOREACH, all items at once: from before its start until the join has ended it."""
    items = bench.sizes.fan
    for batch in (1, 50):
        with (
            bench.database() as url,
            psycopg.connect(url, autocommit=True) as connection,
            crew(MODULE, orders(url, WORKERS, batch)) as workers,
        ):
            before, began = bench.server.reading(workers.pids), time.time()
            workers.go()
            start_many(connection, "fan", [{"xs": list(range(items))}], 1)
            started = time.time()
            await_all(connection)
            after = bench.server.reading(workers.pids)
            reports = workers.stop()
        yield measured(
            f"fan-out and join of {items:,}, batch {batch}",
            "task",
            sum(report["steps"] for report in reports),
            max(report["last_at"] for report in reports) - began,
            (before, after),
            more={"start_seconds": round(started - began, 3)},
        )


def idle(bench: Bench) -> Iterator[Run]:
    """One workflow of one action at a time, the pauses between them random: from before the call
    that starts it until another connection sees that it has succeeded."""
    with bench.database() as url:
        looking = {"pause_seconds": 0.002, "longest_pause_seconds": 0.002}
        with crew(MODULE, orders(url, 1, 1, **looking)) as workers:
            workers.go()
            yield _latencies(bench, url, workers, "one action when idle, looking every 2 ms")
        with scratch() as folder, wf_workers(1, url, folder, concurrency=1) as workers:
            yield _latencies(bench, url, workers, "one action when idle, wf worker")


def _latencies(bench: Bench, url: str, workers: Crew, row: str) -> Run:
    random.seed(8)  # every round has the same pauses
    found = []
    with psycopg.connect(url, autocommit=True) as connection:
        before, began = bench.server.reading(workers.pids), time.time()
        for number in range(bench.sizes.samples):
            time.sleep(random.uniform(0.03, 0.08))
            found.append(1000 * one_when_idle(connection, number))
        after, ended = bench.server.reading(workers.pids), time.time()
    return measured(
        row, "workflow", len(found), ended - began, (before, after), latencies_ms=tuple(found)
    )


def one_when_idle(connection: psycopg.Connection[Any], number: int) -> float:
    """Seconds from before the start of an instance until it is seen to have succeeded."""
    began = time.perf_counter()
    row = connection.execute(
        "select i.workflow_instance_id from wf.wf_repo_create_workflow_instance('one', %s) as i"
        " cross join lateral wf.sp_start_workflow_instance(i.workflow_instance_id) as s",
        (json.dumps({"n": number}),),
    ).fetchone()
    while not connection.execute(
        "select 1 from wf.workflow_instance as i"
        " where i.workflow_instance_id = %s and i.status = 'SUCCEEDED'",
        row,
    ).fetchone():
        if time.perf_counter() - began > 30:
            raise BenchmarkError("a workflow of one action did not end")
        time.sleep(_LOOK_SECONDS)
    return time.perf_counter() - began


def starts(bench: Bench) -> Iterator[Run]:
    """Creating and starting instances of five actions, from one connection."""
    for at_once in (1, 50):
        with bench.database() as url, psycopg.connect(url, autocommit=True) as connection:
            contexts = [{"n": n} for n in range(bench.sizes.starts)]
            start_many(connection, "chain", contexts[:10], at_once)  # plans are made once
            before = bench.server.reading()
            start_many(connection, "chain", contexts, at_once)
            after = bench.server.reading()
            yield measured(
                f"create and start, {at_once} in a transaction",
                "workflow",
                len(contexts),
                after.at - before.at,
                (before, after),
            )

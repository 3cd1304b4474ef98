"""Our own engine under the workloads of the peers, with as many processes of workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from benchmarks.durable import Durable
from benchmarks.engine.server import Backend, fill
from benchmarks.measure import BenchmarkError
from benchmarks.peers.trials import Load
from benchmarks.throughput.bench import (
    MODULE,
    Run,
    await_all,
    measured,
    orders,
    scratch,
)
from benchmarks.throughput.crew import Crew, crew, wf_workers
from benchmarks.throughput.shapes import one_when_idle
from benchmarks.throughput.workflows import ACTIONS, start_many

BATCHED = ("wfsql, batch 20", "wfsql, batch 50")
SINGLE = "wfsql, one by one"
BEFORE = ", started before"
_BATCH = {
    "wfsql, batch 20": 20,
    "wfsql, batch 50": 50,
    "wfsql, one by one": 1,
    f"wfsql, batch 20{BEFORE}": 20,
    f"wfsql, batch 50{BEFORE}": 50,
    f"wfsql, one by one{BEFORE}": 1,
}
WORKLOADS = {
    "wfsql, batch 20": ("steps", "fan"),
    "wfsql, batch 50": ("steps", "fan", "drain"),
    "wfsql, one by one": ("steps", "fan", "idle", "drain"),
    "wfsql, wf worker": ("steps", "fan", "idle"),
    f"wfsql, batch 20{BEFORE}": ("steps",),
    f"wfsql, batch 50{BEFORE}": ("steps",),
    f"wfsql, one by one{BEFORE}": ("steps",),
}
_BENCH_WORKER = "bench workers that claim and submit {} at a time; every step dispatched"
_WITH_STARTS = "started 50 in a transaction meanwhile (drain: READY already)"
_LIKE_THE_FLOOR = "all started before the clock, as the floor's rows are there before"
HOW = {
    row: f"{_BENCH_WORKER.format(batch)}; "
    + (_LIKE_THE_FLOOR if row.endswith(BEFORE) else _WITH_STARTS)
    for row, batch in _BATCH.items()
} | {"wfsql, wf worker": "`wf worker --concurrency 10` (idle: 1), its own defaults"}


def run_ours(server: Durable, template: str, load: Load, row: str, workload: str) -> Run:
    name = server.fresh(template)
    try:
        return _ASKED[workload](server, server.url(name), load, row)
    finally:
        server.drop(name)


@contextmanager
def _workers(url: str, count: int, row: str, *, idle: bool = False) -> Iterator[Crew]:
    """The workers of a row; the bench workers wait for `go`, `wf worker` is at it already."""
    if row in _BATCH:
        pauses = {"pause_seconds": 0.002, "longest_pause_seconds": 0.002} if idle else {}
        with crew(MODULE, orders(url, count, _BATCH[row], **pauses)) as made:
            yield made
    else:
        with scratch() as folder, wf_workers(count, url, folder, 1 if idle else 10) as made:
            yield made


def _all_at_once(server: Durable, url: str, load: Load, row: str, workload: str) -> Run:
    """From before the first start until nothing is left."""
    contexts: list[dict[str, object]]
    if workload == "steps":
        name, contexts = "chain", [{"n": n} for n in range(load.workflows)]
        units = load.workflows * ACTIONS
    else:
        name, contexts, units = "fan", [{"xs": list(range(load.fan))}], load.fan
    with (
        psycopg.connect(url, autocommit=True) as connection,
        _workers(url, load.processes, row) as workers,
    ):
        if row.endswith(BEFORE):
            start_many(connection, name, contexts, 50)
        before, began = server.reading(workers.pids), time.time()
        if row in _BATCH:
            workers.go()
        if not row.endswith(BEFORE):
            start_many(connection, name, contexts, 50)
        ended = await_all(connection)
        after = server.reading(workers.pids)
        if row in _BATCH:
            ended = max(report["last_at"] for report in workers.stop())
    return measured(
        row, "step" if workload == "steps" else "task", units, ended - began, (before, after)
    )


def _steps(server: Durable, url: str, load: Load, row: str) -> Run:
    return _all_at_once(server, url, load, row, "steps")


def _fan(server: Durable, url: str, load: Load, row: str) -> Run:
    return _all_at_once(server, url, load, row, "fan")


def _idle(server: Durable, url: str, load: Load, row: str) -> Run:
    found = []
    with (
        psycopg.connect(url, autocommit=True) as connection,
        _workers(url, 1, row, idle=True) as workers,
    ):
        if row in _BATCH:
            workers.go()
        time.sleep(0.5)
        before, began = server.reading(workers.pids), time.time()
        for number in range(load.samples):
            time.sleep(0.03 + 0.05 * (number * 7 % 10) / 10)
            found.append(1000 * one_when_idle(connection, number))
        after, ended = server.reading(workers.pids), time.time()
    return measured(
        row, "job", len(found), ended - began, (before, after), latencies_ms=tuple(found)
    )


def _drain(server: Durable, url: str, load: Load, row: str) -> Run:
    """Instances of one action that are READY already, copied in SQL."""
    backend = Backend(url)
    start_many(backend.connection, "one", [{"n": 1}], 1)
    fill(backend, "one", load.jobs - 1, 0)
    with crew(MODULE, orders(url, load.processes, _BATCH[row])) as workers:
        workers.go()
        give_up_at = time.monotonic() + 60
        while _ended(backend) < load.jobs // 100:
            if time.monotonic() > give_up_at:
                raise BenchmarkError("nothing is drained")
            time.sleep(0.02)
        before, first, began = server.reading(workers.pids), _ended(backend), time.time()
        last, now = first, began
        while now - began < load.drain_seconds and last < load.jobs * 0.9:
            time.sleep(0.1)
            last, now = _ended(backend), time.time()
        after = server.reading(workers.pids)
    backend.connection.close()
    return measured(row, "job", last - first, now - began, (before, after))


def _ended(backend: Backend) -> int:
    ((found,),) = backend.execute(
        "select count(*) from wf.workflow_instance as i where i.status = 'SUCCEEDED'"
    )
    return int(found)


_ASKED: dict[str, Callable[[Durable, str, Load, str], Run]] = {
    "steps": _steps,
    "fan": _fan,
    "idle": _idle,
    "drain": _drain,
}

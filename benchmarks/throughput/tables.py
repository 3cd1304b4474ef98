"""Claims beside many tasks, events to many waits, the load while a snapshot is held open."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg

from benchmarks.engine.server import TOKEN, WORKER, Backend, fill
from benchmarks.measure import BenchmarkError
from benchmarks.throughput.bench import WORKERS, Bench, Run, measured
from benchmarks.throughput.chains import feed
from benchmarks.throughput.crew import crew
from benchmarks.throughput.workflows import start_many

_CLAIMS = 50
_BATCH = 50
_WATCHED = ("task", "node_execution", "workflow_instance", "scope_variable")


def claims(bench: Bench) -> Iterator[Run]:
    """Claims of one and of fifty beside few and many READY tasks, many instances having ended.

    All rounds are made in one database, since filling it takes minutes.
    """
    ready = 0
    with bench.database() as url:
        backend = Backend(url)
        start_many(backend.connection, "one", [{"n": 1}], 1)
        fill(backend, "one", 0, bench.sizes.ended)
        for size in bench.sizes.ready:
            fill(backend, "one", size - ready, 0)
            ready = size
            for at_once in (1, _BATCH) * bench.rounds:
                yield _claim_run(bench, backend, at_once, ready)
        backend.connection.close()


def _claim_run(bench: Bench, backend: Backend, at_once: int, ready: int) -> Run:
    """Claims, timed by the clock; every claim is rolled back, so that each finds the same."""
    call = "select * from wf.sp_worker_request_tasks(%s, %s, null, 300, %s)"
    found: list[float] = []
    pages = []
    backend.execute("vacuum wf.task, wf.worker, wf.worker_presence")  # of what was rolled back
    for _number in range(4):  # the first makes the session's plans
        with backend.connection.transaction(force_rollback=True):
            pages.append(backend.explained(call, WORKER, TOKEN, at_once).buffers)
    before, began = bench.server.reading(), time.time()
    for _number in range(_CLAIMS):
        at = time.perf_counter()
        with backend.connection.transaction(force_rollback=True):
            rows = backend.execute(call, WORKER, TOKEN, at_once)
        found.append(1000 * (time.perf_counter() - at))
        if not rows:
            raise BenchmarkError("there was nothing to claim")
    after, ended = bench.server.reading(), time.time()
    return measured(
        f"claim {at_once} beside {ready:,} READY, {bench.sizes.ended:,} ended",
        "claim",
        _CLAIMS,
        ended - began,
        (before, after),
        latencies_ms=tuple(found),
        more={"pages": sorted(pages[1:])[1]},
    )


def events(bench: Bench) -> Iterator[Run]:
    """Events from four senders, each for one of many instances that wait for their own key."""
    count = bench.sizes.waiting
    with bench.database() as url, psycopg.connect(url, autocommit=True) as connection:
        start_many(connection, "waiting", [{"key": f"key-{n}"} for n in range(count)], 50)
        connection.execute("vacuum analyze")
        shares = [
            {
                "url": url,
                "worker": f"w{k}",
                "first": count * k // WORKERS,
                "last": count * (k + 1) // WORKERS,
            }
            for k in range(WORKERS)
        ]
        with crew("benchmarks.throughput.ingest", shares) as senders:
            before, began = bench.server.reading(senders.pids), time.time()
            senders.go()
            reports = senders.stop()
            after = bench.server.reading(senders.pids)
    applied = sum(report["applied"] for report in reports)
    if applied != count:
        raise BenchmarkError(f"{applied} of {count} events were applied")
    ended = max(report["ended_at"] for report in reports)
    yield measured(
        f"events to {count:,} waiting instances", "event", count, ended - began, (before, after)
    )


def snapshot(bench: Bench) -> Iterator[Run]:
    """The same load, first alone, then while another connection holds a snapshot open."""
    seconds = bench.sizes.snapshot_seconds
    for held in (False, True):
        with (
            bench.database() as url,
            psycopg.connect(url) as holder,
            psycopg.connect(url, autocommit=True) as connection,
        ):
            if held:
                holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                holder.execute("select count(*) from wf.task")
            name = "with a snapshot held open" if held else "without a snapshot"
            run = feed(bench, url, 20, seconds, f"{seconds:g} s {name}, batch 20")
            run.more.update(_tables_now(connection))
            holder.rollback()
        yield run


def _tables_now(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    """Dead rows as the server's statistics have them, and sizes with indexes."""
    connection.execute("select pg_stat_force_next_flush()")
    found = connection.execute(
        "select s.relname, s.n_dead_tup, pg_total_relation_size(s.relid)"
        " from pg_stat_user_tables as s where s.schemaname = 'wf' and s.relname = any(%s)",
        (list(_WATCHED),),
    ).fetchall()
    return {
        "dead_rows": {name: dead for name, dead, _size in found},
        "megabytes": {name: round(size / 2**20, 1) for name, _dead, size in found},
    }

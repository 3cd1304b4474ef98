"""Through the gateway: steps per second beside the same without it, claims at half load, and what
many idle long polls cost the database."""

from __future__ import annotations

import resource
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
)
from benchmarks.throughput.crew import Crew, await_presence, crew, serving
from benchmarks.throughput.steps import TOKEN
from benchmarks.throughput.workflows import start_many

_HOST = "127.0.0.1"
_STEPS = "benchmarks.throughput.gateway_steps"
_POLLS = "benchmarks.throughput.polls"
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running `wf gateway`."""

    port: int
    pids: tuple[int, ...]

    def orders(self, count: int, batch: int, **more: Any) -> list[dict[str, Any]]:
        return [
            {"host": _HOST, "port": self.port, "worker": f"w{k}", "batch": batch, **more}
            for k in range(count)
        ]


def throughput(bench: Bench) -> Iterator[Run]:
    """Five actions in a row, by the same number of workers directly and through the gateway; then
    claims while the gateway has half the load that it can take."""
    for batch in (1, 20):
        with (
            _filled(bench, batch) as (url, connection),
            crew(MODULE, orders(url, WORKERS, batch)) as workers,
        ):
            yield _drained(bench, connection, workers, (), f"direct, batch {batch}")
        with _filled(bench, batch) as (url, connection), running_gateway(url) as gateway:
            _register(connection, [f"w{k}" for k in range(WORKERS)], batch)
            with crew(_STEPS, gateway.orders(WORKERS, batch)) as workers:
                row = f"through the gateway, batch {batch}"
                run = _drained(bench, connection, workers, gateway.pids, row)
            yield run
            if batch == 1:
                yield _half_load(bench, connection, gateway, run.rate)


def _half_load(
    bench: Bench, connection: psycopg.Connection[Any], gateway: Gateway, full_rate: float
) -> Run:
    """Workers that start a step at fixed times, together at half the rate."""
    pace = WORKERS / (full_rate / 2)
    with crew(_STEPS, gateway.orders(WORKERS, 1, pace_seconds=pace)) as workers:
        start_many(connection, "chain", [{"n": n} for n in range(_count(bench, 1))], 50)
        before, began = bench.server.reading((*workers.pids, *gateway.pids)), time.time()
        workers.go()
        await_all(connection)
        after, ended = bench.server.reading((*workers.pids, *gateway.pids)), time.time()
        found = [ms for report in workers.stop() for ms in report["claims_ms"]]
    return measured(
        "a claim with work at half load",
        "claim",
        len(found),
        ended - began,
        (before, after),
        latencies_ms=tuple(found),
    )


def polls(bench: Bench) -> Iterator[Run]:
    """Transactions of the whole database in a second while long polls wait for nothing."""
    names = [f"idle{k}" for k in range(bench.sizes.polls)]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 16_384), most))
    with (
        bench.database() as url,
        psycopg.connect(url, autocommit=True) as connection,
        running_gateway(url) as gateway,
    ):
        _register(connection, names, 1)
        ((since,),) = connection.execute("select wf.wf_now()").fetchall()
        told = {"host": _HOST, "port": gateway.port, "workers": names}
        with crew(_POLLS, [told]) as waiting:
            await_presence(connection, names, waiting, since)
            time.sleep(1)  # the last of them have come to wait
            waiting.go()
            pids = (*waiting.pids, *gateway.pids)
            first, before = _transactions(connection), bench.server.reading(pids)
            time.sleep(bench.sizes.poll_seconds)
            last, after = _transactions(connection), bench.server.reading(pids)
            (report,) = waiting.stop()
    yield measured(
        f"{len(names):,} idle long polls",
        "transaction",
        last - first,
        after.at - before.at,
        (before, after),
        more={name: report[name] for name in ("answered", "refused")},
    )


def _drained(
    bench: Bench,
    connection: psycopg.Connection[Any],
    workers: Crew,
    others: tuple[int, ...],
    row: str,
) -> Run:
    pids = (*workers.pids, *others)
    before, began = bench.server.reading(pids), time.time()
    workers.go()
    await_all(connection)
    after = bench.server.reading(pids)
    reports = workers.stop()
    steps = sum(report["steps"] for report in reports)
    ended = max(report["last_at"] for report in reports)
    return measured(row, "step", steps, ended - began, (before, after))


@contextmanager
def _filled(bench: Bench, batch: int) -> Iterator[tuple[str, psycopg.Connection[Any]]]:
    with bench.database() as url, psycopg.connect(url, autocommit=True) as connection:
        start_many(connection, "chain", [{"n": n} for n in range(_count(bench, batch))], 50)
        connection.execute("vacuum analyze")
        yield url, connection


def _count(bench: Bench, batch: int) -> int:
    return max(bench.sizes.chains // (4 if batch == 1 else 1), 1)


def _register(connection: psycopg.Connection[Any], names: list[str], batch: int) -> None:
    connection.execute(
        "select count(*) from unnest(%s::text[]) as n(name)"
        " cross join lateral wf.sp_register_worker(n.name, %s, array['*'], %s)",
        (names, TOKEN, batch),
    )


def _transactions(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(
        "select d.xact_commit from pg_stat_database as d where d.datname = current_database()"
    ).fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def running_gateway(url: str) -> Iterator[Gateway]:
    """`wf gateway` on a free port of this machine, ready to answer."""
    with socket.socket() as taken:
        taken.bind((_HOST, 0))
        port = int(taken.getsockname()[1])
    arguments = ["gateway", "--url", url, "--listen", f"{_HOST}:{port}", "--quiet"]
    with serving([*arguments, "--end-with-stdin"]) as process:
        give_up_at = time.monotonic() + _START_SECONDS
        while not _is_ready(port):
            if time.monotonic() > give_up_at or process.poll() is not None:
                raise BenchmarkError("wf gateway did not start")
            time.sleep(0.05)
        yield Gateway(port, (process.pid,))


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{_HOST}:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False

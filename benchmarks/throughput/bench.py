"""What a question of the load benchmark is given, and what it answers: runs in fresh databases."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.durable import Durable, Reading, spent, wait_for_quiet
from benchmarks.measure import BenchmarkError
from benchmarks.throughput.workflows import unfinished

WORKERS = 4
MODULE = "benchmarks.throughput.steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is done. Counts are of instances where nothing else is said."""

    chains: int
    fan: int
    samples: int
    waiting: int
    starts: int
    ready: tuple[int, ...]
    ended: int
    feed_seconds: float
    snapshot_seconds: float
    polls: int
    poll_seconds: float
    quiet_seconds: float


FULL = Sizes(
    chains=6_000,
    fan=10_000,
    samples=300,
    waiting=10_000,
    starts=2_000,
    ready=(1_000, 100_000, 1_000_000),
    ended=1_000_000,
    feed_seconds=20,
    snapshot_seconds=60,
    polls=1_000,
    poll_seconds=20,
    quiet_seconds=25,
)
QUICK = Sizes(
    chains=200,
    fan=500,
    samples=30,
    waiting=200,
    starts=200,
    ready=(100, 1_000),
    ended=1_000,
    feed_seconds=3,
    snapshot_seconds=10,
    polls=100,
    poll_seconds=3,
    quiet_seconds=0,
)
TINY = Sizes(
    chains=8,
    fan=20,
    samples=3,
    waiting=5,
    starts=10,
    ready=(10, 20),
    ended=10,
    feed_seconds=0.3,
    snapshot_seconds=0.3,
    polls=4,
    poll_seconds=0.5,
    quiet_seconds=0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured run. `spent` is for each unit; `more` is what only this question asks for."""

    row: str
    unit: str
    units: int
    seconds: float
    spent: dict[str, float]
    latencies_ms: tuple[float, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return self.units / max(self.seconds, 1e-9)

    def as_data(self) -> dict[str, Any]:
        data = asdict(self) | {"seconds": round(self.seconds, 4), "rate": round(self.rate, 1)}
        if self.latencies_ms:
            data["p50_ms"], data["p95_ms"], data["p99_ms"] = (
                round(percentile(self.latencies_ms, share), 2) for share in (0.5, 0.95, 0.99)
            )
        del data["latencies_ms"]
        return data


@dataclass(frozen=True, slots=True)
class Bench:
    """The server of the run, and the template that fresh databases are made from. `rounds`: for a
    question that makes its rounds itself."""

    server: Durable
    template: str
    sizes: Sizes
    rounds: int = 1

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a fresh database with the workflows; waits for a quiet machine first."""
        wait_for_quiet(self.sizes.quiet_seconds, 0.12)
        name = self.server.fresh(self.template)
        try:
            yield self.server.url(name)
        finally:
            self.server.drop(name)


def orders(url: str, count: int, batch: int, **more: Any) -> list[dict[str, Any]]:
    """What `count` workers are told."""
    return [{"url": url, "worker": f"w{k}", "batch": batch, **more} for k in range(count)]


def measured(
    row: str,
    unit: str,
    units: int,
    seconds: float,
    readings: tuple[Reading, Reading],
    **more: Any,
) -> Run:
    return Run(
        row=row,
        unit=unit,
        units=units,
        seconds=seconds,
        spent=spent(*readings, units),
        **more,
    )


def await_all(connection: psycopg.Connection[Any], at_most_seconds: float = 600) -> float:
    """Waits until every instance has succeeded; when that was seen.

    Looking costs the server something, so it takes a small part of the time.
    """
    give_up_at = time.monotonic() + at_most_seconds
    while True:
        began = time.monotonic()
        if not unfinished(connection):
            return time.time()
        if began > give_up_at:
            raise BenchmarkError("the workflows do not end")
        time.sleep(min(0.1, max(0.02, 30 * (time.monotonic() - began))))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="wfsql-bench-") as folder:
        yield Path(folder)

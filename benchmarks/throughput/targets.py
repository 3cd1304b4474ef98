"""What was wanted of the engine, and what a run found: on two processors, all on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.throughput.report import Runs, middle, number

Measure = Callable[[list[dict[str, Any]]], float]


@dataclass(frozen=True, slots=True)
class Target:
    """`wanted` is the least, or with `at_most` the most."""

    what: str
    wanted: float
    found: float
    at_most: bool = False
    digits: int = 0

    @property
    def is_reached(self) -> bool:
        return self.found <= self.wanted if self.at_most else self.found >= self.wanted

    def line(self) -> str:
        bound = "at most" if self.at_most else "at least"
        shown = number(self.found, self.digits)
        verdict = "" if self.is_reached else "**not reached**"
        return f"| {self.what} | {bound} {self.wanted:,g} | {shown} | {verdict} |"


def rate(runs: list[dict[str, Any]]) -> float:
    return middle(run["rate"] for run in runs)


def of(name: str) -> Measure:
    """A latency of the runs, as `p50_ms`."""
    return lambda runs: middle(run[name] for run in runs)


def each(name: str) -> Measure:
    """What a unit took, as `wal_bytes`."""
    return lambda runs: middle(run["spent"][name] for run in runs)


_ALONE: tuple[tuple[str, str, Measure, float, bool, int], ...] = (
    ("actions/s, batch 20", "five actions, batch 20", rate, 10_000, False, 0),
    ("actions/s, one by one", "five actions, batch 1", rate, 1_500, False, 0),
    ("write transactions of an action, batch 20", "five actions, batch 20",
     each("write_transactions"), 0.2, True, 3),
    ("bytes of WAL of an action, batch 20", "five actions, batch 20", each("wal_bytes"), 2_500,
     True, 0),
    ("workflows of five actions/s from start to end, batch 20", "start to end, batch 20", rate,
     2_000, False, 0),
    ("one action when idle, p50 ms", "one action when idle, looking every 2 ms", of("p50_ms"), 3,
     True, 1),
    ("one action when idle, p95 ms", "one action when idle, looking every 2 ms", of("p95_ms"), 5,
     True, 1),
    ("a claim with work through the gateway at half load, p99 ms",
     "a claim with work at half load", of("p99_ms"), 20, True, 1),
)  # fmt: skip


def targets(rows: Runs) -> Iterator[Target]:
    """The targets whose rows are there."""
    for what, row, measure, wanted, at_most, digits in _ALONE:
        if row in rows:
            yield Target(what, wanted, measure(rows[row]), at_most, digits)
    for row, runs in rows.items():
        if row.startswith("fan-out") and row.endswith("batch 50"):
            yield Target("tasks/s of a fan-out with its join", 10_000, rate(runs))
    yield from _ratios(rows)


def _ratios(rows: Runs) -> Iterator[Target]:
    """One row held against another of the same run."""
    held, free = (
        next((runs for row, runs in rows.items() if word in row), None)
        for word in ("with a snapshot held open", "without a snapshot")
    )
    if held and free:
        what = "throughput while a snapshot is held, part of that without"
        yield Target(what, 0.7, rate(held) / rate(free), digits=2)
    for batch in (1, 20):
        through, direct = (
            rows.get(f"{way}, batch {batch}") for way in ("through the gateway", "direct")
        )
        if through and direct:
            what = f"through the gateway, batch {batch}, part of that without"
            yield Target(what, 0.6, rate(through) / rate(direct), digits=2)
    claims = [runs for row, runs in rows.items() if row.startswith("claim 1 beside")]
    if len(claims) > 1:
        for what, measure in (("p50 ms", of("p50_ms")), ("pages", _pages)):
            grown = measure(claims[-1]) / measure(claims[0])
            what = f"a claim beside the most READY, times that beside the fewest, {what}"
            yield Target(what, 1.2, grown, at_most=True, digits=2)


def _pages(runs: list[dict[str, Any]]) -> float:
    return middle(run["more"]["pages"] for run in runs)


def table(found: Iterator[Target]) -> str:
    lines = [target.line() for target in found]
    return "\n".join(("| what | wanted | found | |", "| --- | ---: | ---: | --- |", *lines))

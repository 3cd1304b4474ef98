"""The tables of a run beside others: one for each workload, rates also as parts of the floor."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from benchmarks.peers.ours import BATCHED, BEFORE, SINGLE
from benchmarks.peers.subjects import CHECKPOINTS, DISPATCHES
from benchmarks.throughput.report import by_row, foreign, middle, number, spread
from benchmarks.throughput.targets import Target, rate, table

TITLES = {
    "floor": "The floor: pgbench",
    "steps": "Workflows of five steps, all started at once: steps/s",
    "fan": "Fan-out, and join where there is one: tasks/s",
    "idle": "One action or job when idle: ms",
    "drain": "Jobs that are queued already: jobs/s",
}
_ENDS = ("write txns", "WAL bytes", "server CPU ms", "load CPU ms", "foreign")


def tables(data: dict[str, Any]) -> str:
    floors = by_row(run for run in data["runs"] if run["workload"] == "floor")
    parts = []
    for workload, title in TITLES.items():
        rows = by_row(run for run in data["runs"] if run["workload"] == workload)
        if not rows:
            continue
        timed = [row for row, runs in rows.items() if "p50_ms" in runs[0]]
        rated = {row: runs for row, runs in rows.items() if row not in timed}
        body = _rates(rated, floors, data["how"], workload) if rated else ""
        late = _latencies({row: rows[row] for row in timed}, data["how"]) if timed else ""
        parts.append("\n\n".join(x for x in (f"### {title}", body, late) if x))
    wanted = list(_targets(data["runs"]))
    if wanted:
        parts.append(f"### What was wanted\n\n{table(iter(wanted))}")
    if data["not_run"]:
        lines = [f"- {who}: {why}" for who, why in data["not_run"].items()]
        parts.append("\n".join(("### Not run", "", *lines)))
    return "\n\n".join(parts)


def _targets(runs: list[dict[str, Any]]) -> Iterator[Target]:
    """Ours against the floor of four connections, and against the best peer that dispatches."""
    floors = by_row(run for run in runs if run["workload"] == "floor")
    steps = by_row(run for run in runs if run["workload"] == "steps")
    batched = [rate(steps[row]) for row in BATCHED if row in steps]
    if "floor, one by one" in floors:
        floor = rate(floors["floor, one by one"])
        before = [rate(steps[row + BEFORE]) for row in BATCHED if row + BEFORE in steps]
        if before:
            what = f"steps/s batched{BEFORE}, times the floor one by one"
            yield Target(what, 1.5, max(before) / floor, digits=2)
        if SINGLE + BEFORE in steps:
            what = f"steps/s one by one{BEFORE}, part of the floor one by one"
            yield Target(what, 0.25, rate(steps[SINGLE + BEFORE]) / floor, digits=2)
    for other, wanted in ((DISPATCHES, 8), (CHECKPOINTS, 1)):
        if batched and other in steps:
            what = f"steps/s batched, times {other}"
            yield Target(what, wanted, max(batched) / rate(steps[other]), digits=1)


def _rates(rows: dict[str, Any], floors: dict[str, Any], how: dict[str, str], workload: str) -> str:
    compared = [name for name in floors if "p50_ms" not in floors[name][0]]
    if workload == "floor":
        compared = []
    elif workload != "steps":
        compared = [name for name in compared if "step" not in name]
    head = ("who", "units/s", "range", *(f"÷ {name}" for name in compared), *_ENDS, "how")
    lines = [_line(head), _line(("---", *("---:" for _ in head[1:-1]), "---"))]
    for row, runs in rows.items():
        rate = middle(run["rate"] for run in runs)
        parts = (f"{rate / middle(run['rate'] for run in floors[name]):.3f}" for name in compared)
        lines.append(
            _line(
                (
                    row,
                    number(rate),
                    spread([run["rate"] for run in runs]),
                    *parts,
                    *_spent(runs),
                    how.get(row, ""),
                )
            )
        )
    return "\n".join(lines)


def _latencies(rows: dict[str, Any], how: dict[str, str]) -> str:
    head = ("who", "p50", "range", "p95", "range", *_ENDS, "how")
    lines = [_line(head), _line(("---", *("---:" for _ in head[1:-1]), "---"))]
    for row, runs in rows.items():
        p50, p95 = ([run[name] for run in runs] for name in ("p50_ms", "p95_ms"))
        cells = (f"{median(p50):.2f}", spread(p50, 2), f"{median(p95):.2f}", spread(p95, 2))
        lines.append(_line((row, *cells, *_spent(runs), how.get(row, ""))))
    return "\n".join(lines)


def _spent(runs: list[dict[str, Any]]) -> tuple[str, ...]:
    of = {name: middle(run["spent"][name] for run in runs) for name in runs[0]["spent"]}
    return (
        f"{of['write_transactions']:.3f}",
        f"{of['wal_bytes']:,.0f}",
        f"{of['server_cpu_ms']:.3f}",
        f"{of['load_cpu_ms']:.3f}",
        foreign(runs),
    )


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"

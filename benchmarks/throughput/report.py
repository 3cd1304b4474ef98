"""The tables of a run: for each row the median of the rounds, with the lowest and the highest."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

HEAD = (
    "| run | unit | units/s | range | server CPU ms | load CPU ms | write txns | WAL bytes"
    " | foreign |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)
LATENCY_HEAD = (
    "| run | p50 ms | range | p95 ms | range | p99 ms | pages |"
    "\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
)

Runs = dict[str, list[dict[str, Any]]]


def by_row(runs: Iterable[dict[str, Any]]) -> Runs:
    """Groups the rounds of each row, in the order of their first round."""
    rows: Runs = {}
    for run in runs:
        rows.setdefault(run["row"], []).append(run)
    return rows


def rate_table(rows: Runs) -> str:
    lines = [HEAD]
    for row, runs in rows.items():
        spent = {name: middle(run["spent"][name] for run in runs) for name in runs[0]["spent"]}
        lines.append(
            f"| {row} | {runs[0]['unit']} | {number(middle(run['rate'] for run in runs))}"
            f" | {spread([run['rate'] for run in runs])} | {spent['server_cpu_ms']:.3f}"
            f" | {spent['load_cpu_ms']:.3f} | {spent['write_transactions']:.3f}"
            f" | {spent['wal_bytes']:,.0f} | {foreign(runs)} |"
        )
    return "\n".join(lines)


def latency_table(rows: Runs) -> str:
    lines = [LATENCY_HEAD]
    for row, runs in rows.items():
        p50, p95 = ([run[name] for run in runs] for name in ("p50_ms", "p95_ms"))
        pages = [run["more"]["pages"] for run in runs if "pages" in run["more"]]
        lines.append(
            f"| {row} | {median(p50):.2f} | {spread(p50, 2)} | {median(p95):.2f}"
            f" | {spread(p95, 2)} | {middle(run['p99_ms'] for run in runs):.2f}"
            f" | {f'{median(pages):.0f}' if pages else ''} |"
        )
    return "\n".join(lines)


def more_lines(rows: Runs) -> str:
    """What only one row has, of its last round."""
    return "\n".join(
        f"- {row}: {name.replace('_', ' ')} {_shown(value)}"
        for row, runs in rows.items()
        for name, value in runs[-1]["more"].items()
        if name != "pages"
    )


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {found:,}" for name, found in value.items())
    return f"{value:,}"


def tables(runs: list[dict[str, Any]]) -> str:
    rows = by_row(runs)
    timed = {row: found for row, found in rows.items() if "p50_ms" in found[0]}
    rated = {row: found for row, found in rows.items() if row not in timed}
    parts = [rate_table(rated) if rated else "", latency_table(timed) if timed else ""]
    return "\n\n".join(part for part in (*parts, more_lines(rows)) if part)


def middle(values: Iterable[float]) -> float:
    return median(list(values))


def spread(values: list[float], digits: int | None = None) -> str:
    if len(values) == 1:
        return ""
    return f"{number(min(values), digits)}–{number(max(values), digits)}"


def number(value: float, digits: int | None = None) -> str:
    """Three figures that mean something; no more are repeatable."""
    if digits is None:
        digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def foreign(runs: list[dict[str, Any]]) -> str:
    """The share of the machine that went elsewhere, the highest of the rounds."""
    return f"{max(run['spent']['foreign'] for run in runs):.0%}"

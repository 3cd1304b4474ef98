"""The other benchmarks of the project, run after the load, and their figures in one table."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median
from typing import Any

from benchmarks.measure import ROOT

RESULTS = ROOT / "benchmarks" / "results"
NAMES = ("engine", "compiler", "runner")


def run_all() -> dict[str, Any]:
    """Runs each and reads what it wrote; one that fails is named, and the others go on."""
    found: dict[str, Any] = {}
    for name in NAMES:
        print(f"running benchmarks.{name}", file=sys.stderr)
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}"], cwd=ROOT, stdout=subprocess.DEVNULL
        )
        if done.returncode:
            found[name] = {"failed": f"it ended with {done.returncode}"}
        else:
            found[name] = figures(name, json.loads((RESULTS / f"{name}.json").read_text("utf-8")))
    return found


def figures(name: str, data: dict[str, Any]) -> dict[str, str]:
    """The few figures of a result that the one table shows."""
    return {"engine": _engine, "compiler": _compiler, "runner": _runner}[name](data)


def table(found: dict[str, Any] | None) -> str:
    if not found:
        return ""
    lines = ["| benchmark | figure | found |", "| --- | --- | ---: |"]
    for name, rows in found.items():
        lines += [f"| {name} | {what} | {value} |" for what, value in rows.items()]
    return "\n".join(lines)


def _engine(data: dict[str, Any]) -> dict[str, str]:
    found = {}
    for question, beside in (("loop", "iteration"), ("tables", "READY")):
        for size, calls in data.get(question, {}).items():
            for call in ("claim", "submit"):
                cost = calls[call]
                what = f"{call}, {beside} {int(size):,}"
                found[what] = f"{cost['buffers']} pages, {cost['milliseconds']} ms"
    if "wide" in data:
        wide = data["wide"]
        found[f"start of a FOREACH of {wide['items']:,}"] = f"{wide['start_cpu_seconds']} s CPU"
    return found


def _compiler(data: dict[str, Any]) -> dict[str, str]:
    found = {}
    for size, commands in data["sizes"].items():
        for command in ("wf check", "lark alone"):
            if command in commands:
                runs = commands[command]
                found[f"{command}, {int(size):,} nodes"] = (
                    f"{median(runs['wall_seconds']):.2f} s, CPU {median(runs['cpu_seconds']):.2f} s"
                )
    return found


def _runner(data: dict[str, Any]) -> dict[str, str]:
    found = {}
    for sample in data["samples"]:
        runs = [run for run in sample["runs"] if "failed" not in run]
        if sample["subject"] == "wf" and runs:
            each = median([run["cpu_seconds"] for run in runs]) / sample["count"]
            what = f"local {sample['shape']} of {sample['count']:,}"
            found[what] = f"{each * 1e6:.0f} µs CPU per action"
    return found

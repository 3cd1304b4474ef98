"""`python -m benchmarks.runner`: shapes of growing size through three interpreters, and a table.

Flow: install the others → run all in turn, shape by shape and size by size, each run in a process
of its own that measures only the run → print the table, write the JSON beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import signal
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import machine
from benchmarks.runner.peers import REQUIREMENTS, python

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
RESULT = ROOT / "benchmarks" / "results" / "runner.json"
SHAPES = ("chain", "foreach", "map")
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
# Chains are text or states one by one, so that the largest would measure the reading of them.
LARGEST = {"chain": 10_000, "foreach": 1_000_000, "map": 100_000}
# What the others take grows faster than the count; ours alone goes on from here.
LARGEST_OF_OTHERS = 1_000
# A size from which one round says enough.
ONE_ROUND_FROM = 1_000_000
# How many times its limit of CPU a run may take by the clock.
_PATIENCE = 5
Cell = tuple[str, int, str]
Samples = dict[Cell, list[dict[str, Any]]]


def main() -> int:
    options = _options()
    samples: Samples = {}
    before = machine()
    commands = _commands(options.sizes, python())
    for number in range(options.rounds):
        for cell, command in commands.items():
            if not _is_wanted(cell, samples.get(cell, [])):
                continue
            # The largest takes longer than any that is past its limit would be worth.
            factor = 5 if cell[1] >= ONE_ROUND_FROM else 1
            sample = _run(command, options.timeout * factor)
            samples.setdefault(cell, []).append(sample)
            print(f"round {number + 1}: {' '.join(map(str, cell))}", file=sys.stderr)
            # After each one, so that a benchmark that is broken off leaves what it has.
            _save(options, before, samples)
    print(_table(samples))
    return 0


def _is_wanted(cell: Cell, runs: list[dict[str, Any]]) -> bool:
    """Whether a cell runs in a further round; one that was past its limit does not."""
    if not runs:
        return True
    return cell[1] < ONE_ROUND_FROM and "failed" not in runs[-1]


def _save(options: argparse.Namespace, before: dict[str, Any], samples: Samples) -> None:
    result = {
        "machine": before,
        "load_after": [round(load, 2) for load in os.getloadavg()],
        "others": list(REQUIREMENTS),
        "settings": {"rounds": options.rounds, "timeout_seconds": options.timeout},
        "samples": [
            {"shape": shape, "count": count, "subject": subject, "runs": runs}
            for (shape, count, subject), runs in samples.items()
        ],
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runner", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=60.0, help="CPU seconds for one run")
    parser.add_argument("--json", type=Path, default=RESULT)
    return parser.parse_args()


def _commands(sizes: list[int], others: Path | None) -> dict[Cell, list[str]]:
    """Returns the command of each cell, the subjects of one shape and size by turns."""
    found: dict[Cell, list[str]] = {}
    for shape in SHAPES:
        for size in sizes:
            if size > LARGEST[shape]:
                continue
            arguments = [shape, str(size)]
            found[shape, size, "wf"] = [
                sys.executable,
                "-m",
                "benchmarks.runner.ours",
                *arguments,
            ]
            if others is not None and size <= LARGEST_OF_OTHERS:
                for name, file in (("moto", "moto_states.py"), ("SpiffWorkflow", "spiff.py")):
                    found[shape, size, name] = [str(others), str(HERE / file), *arguments]
    return found


def _run(command: list[str], timeout: float) -> dict[str, Any]:
    """Returns what a run took, or why it gave nothing."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    limits = (math.ceil(timeout), math.ceil(timeout) + 1)
    late = {"failed": f"more than {limits[0]} s"}
    try:
        # Of the processor, because the clock goes on while others have it; one that sleeps or
        # waits is ended all the same.
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limits[0] * _PATIENCE,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limits),
        )
    except subprocess.TimeoutExpired:
        return late
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return late
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return {"failed": lines[-1] if lines else f"exit code {done.returncode}"}
    sample: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return sample


def _table(samples: Samples) -> str:
    lines = [
        "| shape | actions | interpreter | engine | per node | per action | range | s | MB |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [_line(cell, runs) for cell, runs in samples.items()]
    return "\n".join([*lines, "", _LEGEND])


_LEGEND = """engine: CPU µs of the state machine alone, per node; per node, per action: CPU µs of
the whole run, with the graph, the driver, the timeline and the trace; s: seconds by the clock."""


def _line(cell: Cell, runs: list[dict[str, Any]]) -> str:
    shape, count, subject = cell
    start = f"| {shape} | {count:,} | {subject} |"
    good = [run for run in runs if "failed" not in run]
    if not good:
        return f"{start} {runs[0]['failed']} | | | | | |"
    each = sorted(run["cpu_seconds"] / count * 1e6 for run in good)
    spread = f"{statistics.median(each):.1f} | {each[0]:.1f}–{each[-1]:.1f}"
    wall = statistics.median(run["wall_seconds"] for run in good)
    peak = max(run["peak_bytes"] for run in good) / 1e6
    by_node = " | "
    if "nodes" in good[0]:
        engine, whole = (_by_node(good, name) for name in ("engine_cpu_seconds", "cpu_seconds"))
        by_node = f"{engine:.1f} | {whole:.1f}"
    return f"{start} {by_node} | {spread} | {wall:.2f} | {peak:.0f} |"


def _by_node(runs: list[dict[str, Any]], name: str) -> float:
    """Returns the median of µs per node."""
    return statistics.median(run[name] / run["nodes"] * 1e6 for run in runs)


if __name__ == "__main__":
    sys.exit(main())

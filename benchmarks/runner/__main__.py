"""`python -m benchmarks.runner`: shapes of growing size through three interpreters, and a table.

Flow: install the others → run all in turn, shape by shape and size by size, each run in a process
of its own that measures only the run → print the table, write the JSON beside it.
"""

from __future__ import annotations

import argparse
import json
import os
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
# Chains are text or states one by one, so that the largest would measure the reading of them.
LARGEST_CHAIN = 10_000
# What the others take grows faster than the count; ours alone goes on from here.
LARGEST_OF_OTHERS = 1_000
Cell = tuple[str, int, str]


def main() -> int:
    options = _options()
    samples: dict[Cell, list[dict[str, Any]]] = {}
    before = machine()
    commands = _commands(options.sizes, python())
    for number in range(options.rounds):
        for cell, command in commands.items():
            sample = _run(command, options.timeout)
            samples.setdefault(cell, []).append(sample)
            print(f"round {number + 1}: {' '.join(map(str, cell))}", file=sys.stderr)
            # After each one, so that a benchmark that is broken off leaves what it has.
            _save(options, before, samples)
    print(_table(samples))
    return 0


def _save(
    options: argparse.Namespace, before: dict[str, Any], samples: dict[Cell, list[dict[str, Any]]]
) -> None:
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
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one run")
    parser.add_argument("--json", type=Path, default=RESULT)
    return parser.parse_args()


def _commands(sizes: list[int], others: Path | None) -> dict[Cell, list[str]]:
    """Returns the command of each cell, the subjects of one shape and size by turns."""
    found: dict[Cell, list[str]] = {}
    for shape in SHAPES:
        for size in sizes:
            if shape == "chain" and size > LARGEST_CHAIN:
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
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {timeout:g} s"}
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return {"failed": lines[-1] if lines else f"exit code {done.returncode}"}
    sample: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return sample


def _table(samples: dict[Cell, list[dict[str, Any]]]) -> str:
    lines = [
        "| shape | actions | interpreter | CPU µs per action (range) | seconds by the clock | MB |",
        "| --- | ---: | --- | ---: | ---: | ---: |",
    ]
    for (shape, count, subject), runs in samples.items():
        good = [run for run in runs if "failed" not in run]
        if not good:
            lines.append(f"| {shape} | {count} | {subject} | {runs[0]['failed']} | | |")
            continue
        each = sorted(run["cpu_seconds"] / count * 1e6 for run in good)
        wall = statistics.median(run["wall_seconds"] for run in good)
        peak = max(run["peak_bytes"] for run in good) / 1e6
        spread = f"{statistics.median(each):.1f} ({each[0]:.1f}–{each[-1]:.1f})"
        lines.append(f"| {shape} | {count} | {subject} | {spread} | {wall:.2f} | {peak:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

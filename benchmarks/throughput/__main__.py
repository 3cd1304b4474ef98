"""`python -m benchmarks.throughput`: what the engine in PostgreSQL does under load (`make bench`).

Flow: a durable server → a database with the runtime as a template → rounds in which each question
is asked once, each run in a fresh copy → the other benchmarks, run once → tables, and the JSON
beside them, written after every run. Workers and server share the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.durable import running
from benchmarks.measure import ROOT, BenchmarkError, machine
from benchmarks.throughput import beside, chains, gateway, shapes, tables, targets
from benchmarks.throughput.bench import FULL, QUICK, TINY, Bench, Run
from benchmarks.throughput.report import by_row
from benchmarks.throughput.report import tables as printed
from benchmarks.throughput.workflows import make_template

RESULT = ROOT / "benchmarks" / "results" / "throughput.json"
QUESTIONS: dict[str, Callable[[Bench], Iterator[Run]]] = {
    "steps": chains.steps,
    "sustained": chains.sustained,
    "workers": chains.real_workers,
    "fan": shapes.fan_out,
    "idle": shapes.idle,
    "starts": shapes.starts,
    "events": tables.events,
    "snapshot": tables.snapshot,
    "gateway": gateway.throughput,
    "polls": gateway.polls,
    "claims": tables.claims,
}
ASKED_ONCE = frozenset({"claims"})
SIZES = {"full": FULL, "quick": QUICK, "tiny": TINY}


def main() -> int:
    options = _options()
    if options.table:
        print(_tables(json.loads(options.json.read_text(encoding="utf-8"))))
        return 0
    rounds = options.rounds or (3 if options.size == "full" else 1)
    data: dict[str, Any] = {
        "machine": machine(),
        "size": options.size,
        "rounds": rounds,
        "not_run": {},
        "runs": [],
    }
    with running() as server:
        data["server_at_the_start"], data["settings"] = server.version(), server.settings()
        bench = Bench(server, make_template(server), SIZES[options.size], rounds)
        try:
            for number in range(1, rounds + 1):
                for name in options.only:
                    if number == 1 or name not in ASKED_ONCE:
                        _ask(data, number, name, bench, options.json)
        except KeyboardInterrupt:
            data["broken_off"] = True
        data["server_at_the_end"] = server.version()
    data["load_after"] = [round(load, 2) for load in os.getloadavg()]
    if options.size == "full" and not options.alone and "broken_off" not in data:
        data["beside"] = beside.run_all()
    _write(data, options.json)
    print(_tables(data))
    return 1 if data["not_run"] else 0


def _ask(data: dict[str, Any], number: int, question: str, bench: Bench, path: Path) -> None:
    """Asks one question; one that cannot be answered is named, and the others go on."""
    try:
        for run in QUESTIONS[question](bench):
            _keep(data, number, question, run, path)
    except BenchmarkError as error:
        data["not_run"][f"{question}, round {number}"] = str(error)
        print(f"round {number}, {question}: {error}", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_const", dest="size", const="quick")
    size.add_argument("--tiny", action="store_const", dest="size", const="tiny")
    parser.add_argument("--rounds", type=int, help="three, or one with --quick")
    parser.add_argument("--only", nargs="+", choices=list(QUESTIONS), default=list(QUESTIONS))
    parser.add_argument("--alone", action="store_true", help="do not run the other benchmarks")
    parser.add_argument("--table", action="store_true", help="print the tables of the last run")
    parser.add_argument("--json", type=Path)
    parser.set_defaults(size="full")
    options = parser.parse_args()
    if options.json is None:
        named = "" if options.size == "full" else f"-{options.size}"
        options.json = RESULT.with_name(f"throughput{named}.json")
    return options


def _keep(data: dict[str, Any], number: int, question: str, run: Run, path: Path) -> None:
    data["runs"].append({"round": number, "question": question, **run.as_data()})
    _write(data, path)
    print(
        f"round {number}, {run.row}: {run.rate:.1f} {run.unit}s/s,"
        f" foreign {run.spent['foreign']:.0%}",
        file=sys.stderr,
    )


def _write(data: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _tables(data: dict[str, Any]) -> str:
    found = data["machine"]
    head = (
        f"{data['server_at_the_start'].split(' on ')[0]}, {found['processors']} processors"
        f" ({found['processor']}), {found['system']}, Python {found['python']},"
        f" commit {found['commit']}, {found['measured_at']}, {data['rounds']} round(s);"
        f" {', '.join(f'{name} {value}' for name, value in data['settings'].items())}"
    )
    left_out = "\n".join(f"not run: {name}: {why}" for name, why in data["not_run"].items())
    wanted = targets.table(targets.targets(by_row(data["runs"])))
    parts = [head, printed(data["runs"]), wanted, left_out, beside.table(data.get("beside"))]
    return "\n\n".join(part for part in parts if part)


if __name__ == "__main__":
    sys.exit(main())

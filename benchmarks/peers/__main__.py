"""`python -m benchmarks.peers`: our engine, others and the floor in one run (`make bench-peers`).

Flow: what the peers need is installed below `--work` → a durable server → rounds in which the
floor, ours and every peer run once, each in a fresh database → tables, and the JSON beside them,
written after every run. A run that somebody disturbed is made again, and the quieter one kept.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import IO, Any

from benchmarks.compiler.peers import cache_folder
from benchmarks.durable import Durable, running, wait_for_quiet
from benchmarks.measure import ROOT, BenchmarkError, machine
from benchmarks.peers.floor import FLOORS, run_floor
from benchmarks.peers.installs import (
    NotRun,
    Program,
    install_node,
    install_python,
    read_snapshot,
)
from benchmarks.peers.ours import HOW, run_ours
from benchmarks.peers.ours import WORKLOADS as OUR_WORKLOADS
from benchmarks.peers.report import tables
from benchmarks.peers.subjects import PEERS, WORKLOADS, Peer
from benchmarks.peers.trials import FULL, QUICK, Load, Trial, run_trial
from benchmarks.throughput.bench import Run
from benchmarks.throughput.workflows import make_template

RESULT = ROOT / "benchmarks" / "results" / "peers.json"
_DISTURBED = 0.12
_TRIES = 3
Attempt = tuple[str, str, Callable[[], Run]]


def main() -> int:
    options = _options()
    if options.table:
        print(_printed(json.loads(options.json.read_text(encoding="utf-8"))))
        return 0
    load = QUICK if options.quick else FULL
    data: dict[str, Any] = {
        "machine": machine(),
        "load": asdict(load),
        "rounds": options.rounds or (1 if options.quick else 3),
        "packages": {peer.name: peer.packages for peer in PEERS},
        "how": HOW | {_row(p, v.name): v.how for p in PEERS for v in p.variants},
        "not_run": {},
        "runs": [],
    }
    options.work.mkdir(parents=True, exist_ok=True)
    trials = _prepare(options, data["not_run"])
    with running() as server, (options.work / "drivers.log").open("a") as log:
        data["server_at_the_start"], data["settings"] = server.version(), server.settings()
        template = make_template(server)
        try:
            for number in range(1, data["rounds"] + 1):
                for row, work, attempt in _attempts(server, template, load, trials, options, log):
                    _keep(data, number, row, work, attempt, load, options.json)
        except KeyboardInterrupt:
            data["broken_off"] = True
        data["server_at_the_end"] = server.version()
    data["load_after"] = [round(share, 2) for share in os.getloadavg()]
    _write(data, options.json)
    print(_printed(data))
    return 0


def _options() -> argparse.Namespace:
    names = ["floor", "wfsql", *(peer.name for peer in PEERS)]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--work", type=Path, default=cache_folder() / "peers")
    parser.add_argument("--snapshots", type=Path, help="git directories of repositories (absurd)")
    parser.add_argument("--quick", action="store_true", help="small loads, one round")
    parser.add_argument("--rounds", type=int, help="three, or one with --quick")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    parser.add_argument("--table", action="store_true", help="print the tables of the last run")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.json is None:
        options.json = RESULT.with_name("peers-quick.json") if options.quick else RESULT
    return options


def _prepare(options: argparse.Namespace, not_run: dict[str, str]) -> list[Trial]:
    """Installs everything before anything is timed; what cannot be is left out, and why is said."""
    trials: list[Trial] = []
    for peer in PEERS:
        if peer.name not in options.only:
            continue
        sql = options.work / f"{peer.name}.sql" if peer.sql else None
        problem = read_snapshot(options.snapshots, peer.sql, sql) if peer.sql and sql else None
        install = install_node if peer.in_node else install_python
        program = problem or install(options.work, peer.name, peer.packages)
        if isinstance(program, NotRun):
            not_run[peer.name] = program.reason
            continue
        trials += _trials(peer, program, sql, options.workloads)
    return trials


def _trials(peer: Peer, program: Program, sql: Path | None, wanted: list[str]) -> Iterator[Trial]:
    for variant in peer.variants:
        for workload in variant.workloads:
            if workload in wanted:
                row = _row(peer, variant.name)
                yield Trial(row, peer.driver, variant.name, workload, program, sql)


def _row(peer: Peer, variant: str) -> str:
    return f"{peer.name}, {variant}" if variant else peer.name


def _attempts(
    server: Durable,
    template: str,
    load: Load,
    trials: list[Trial],
    options: argparse.Namespace,
    log: IO[str],
) -> Iterator[Attempt]:
    """Everything of a round, in order."""
    if "floor" in options.only:
        for floor in FLOORS:
            yield floor.name, "floor", partial(run_floor, server, floor, load.floor_seconds)
    if "wfsql" in options.only:
        for row, workloads in OUR_WORKLOADS.items():
            for work in workloads:
                if work in options.workloads:
                    yield row, work, partial(run_ours, server, template, load, row, work)
    for trial in trials:
        yield trial.row, trial.workload, partial(run_trial, server, load, trial, log)


def _keep(
    data: dict[str, Any],
    number: int,
    row: str,
    workload: str,
    attempt: Callable[[], Run],
    load: Load,
    path: Path,
) -> None:
    try:
        run, tries = _quietest(attempt, load)
    except BenchmarkError as error:
        data["not_run"][f"{row}, {workload}, round {number}"] = str(error)
        print(f"round {number}, {row}, {workload}: {error}", file=sys.stderr)
        return
    data["runs"].append({"round": number, "workload": workload, "tries": tries, **run.as_data()})
    _write(data, path)
    print(
        f"{time.strftime('%H:%M:%S')} round {number}, {row}, {workload}: {run.rate:.1f}"
        f" {run.unit}s/s, foreign {run.spent['foreign']:.0%}",
        file=sys.stderr,
    )


def _quietest(attempt: Callable[[], Run], load: Load) -> tuple[Run, int]:
    """Runs once, or again while others disturb and time is given for that."""
    runs: list[Run] = []
    while len(runs) < (_TRIES if load.quiet_seconds else 1):
        wait_for_quiet(load.quiet_seconds, _DISTURBED)
        runs.append(attempt())
        if runs[-1].spent["foreign"] <= _DISTURBED:
            break
    return min(runs, key=lambda run: run.spent["foreign"]), len(runs)


def _write(data: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _printed(data: dict[str, Any]) -> str:
    found = data["machine"]
    head = (
        f"{data['server_at_the_start'].split(' on ')[0]}, {found['processors']} processors"
        f" ({found['processor']}), {found['system']}, Python {found['python']},"
        f" commit {found['commit']}, {found['measured_at']}, {data['rounds']} round(s);"
        f" {', '.join(f'{name} {value}' for name, value in data['settings'].items())}"
    )
    return f"{head}\n\n{tables(data)}"


if __name__ == "__main__":
    sys.exit(main())

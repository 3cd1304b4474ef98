"""`python -m benchmarks.throughput`: actions per second and what each costs the server.

Flow: a fresh durable server → for each size of batch by turns, as often as there are rounds:
instances are started, then worker processes, each with one connection, claim and submit until all
is done → a table, and the JSON beside it. A step is one ACTION, claimed and submitted. Workers and
server share the machine; the server's processor time is that of all its processes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.engine.server import Backend, fresh_database
from benchmarks.measure import ROOT, BenchmarkError, machine, median

RESULT = ROOT / "benchmarks" / "results" / "throughput.json"
ACTIONS = 5
SHAPES = {
    "sequence": "workflow sequence5 { input { n : int }\n"
    + "\n".join(f"action a{k} = t.do(n: var.n)" for k in range(ACTIONS))
    + "}",
    "fanout": "workflow fanout5 { input { n : int }\nparallel {\n"
    + "\n".join(f"action a{k} = t.do(n: var.n)" for k in range(ACTIONS))
    + "} }",
}
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Round:
    """One run: steps made, seconds on the clock, and per step the server's processor time in ms,
    write transactions and bytes of WAL."""

    steps: int
    seconds: float
    steps_per_second: float
    cpu_ms: float
    write_transactions: float
    wal_bytes: float


def main() -> int:
    options = _options()
    result: dict[str, Any] = {
        "machine": machine(),
        "shape": options.shape,
        "workers": options.workers,
        "instances": options.instances,
    }
    rounds: dict[int, list[Round]] = {batch: [] for batch in options.batch}
    with fresh_database() as (url, settings):
        result["settings"] = settings
        backend = Backend(url)
        backend.deploy(SHAPES[options.shape])
        name = f"{options.shape}{ACTIONS}"
        result["start_cpu_ms"] = _start(backend, name, 20)
        _run(backend, url, options.workers, min(options.batch))  # plans and caches
        for _round in range(options.rounds):
            for batch in options.batch:
                count = options.instances if batch > 1 else max(options.instances // 4, 1)
                result["start_cpu_ms"] = _start(backend, name, count)
                rounds[batch].append(_run(backend, url, options.workers, batch))
        _all_done(backend)
        backend.connection.close()
    result["rounds"] = {str(batch): [asdict(run) for run in runs] for batch, runs in rounds.items()}
    print(_table(rounds))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 5, 20, 50])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--instances", type=int, default=2_000, help="a quarter of it one by one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="sequence")
    parser.add_argument("--json", type=Path, default=RESULT)
    return parser.parse_args()


def _start(backend: Backend, name: str, count: int) -> float:
    """Creates and starts instances, one by one in one transaction; ms of CPU for each."""
    before = backend.cpu_seconds()
    backend.execute(
        "do $$ begin for k in 1 .. " + str(count) + " loop"
        " perform wf.sp_start_workflow_instance((select workflow_instance_id from"
        f" wf.wf_repo_create_workflow_instance('{name}', jsonb_build_object('n', k))));"
        " end loop; end $$"
    )
    cost = (backend.cpu_seconds() - before) / count * 1000
    backend.execute("vacuum analyze")
    return round(cost, 3)


def _run(backend: Backend, url: str, workers: int, batch: int) -> Round:
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.throughput.steps", url, f"w{k}", str(batch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for k in range(workers)
    ]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    postmaster = _parent(backend.connection.info.backend_pid)
    before, cpu, start = _server_counts(backend), _tree_cpu(postmaster), time.perf_counter()
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    steps = 0
    for child in children:
        assert child.stdout is not None
        steps += int(child.stdout.readline())
    seconds = time.perf_counter() - start
    cpu, after = _tree_cpu(postmaster) - cpu, _server_counts(backend)
    for child in children:
        child.communicate()
    return Round(
        steps=steps,
        seconds=round(seconds, 3),
        steps_per_second=round(steps / seconds, 1),
        cpu_ms=round(cpu / steps * 1000, 4),
        write_transactions=round((after[0] - before[0]) / steps, 3),
        wal_bytes=round((after[1] - before[1]) / steps, 1),
    )


def _server_counts(backend: Backend) -> tuple[int, int]:
    """Transactions that wrote, and bytes of WAL, so far."""
    ((transactions, wal),) = backend.execute(
        "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint,"
        " pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
    )
    return int(transactions), int(wal)


def _all_done(backend: Backend) -> None:
    ((left,),) = backend.execute(
        "select count(*) from wf.workflow_instance where status <> 'SUCCEEDED'"
    )
    if left:
        raise BenchmarkError(f"{left} instances have not ended")


def _stat(pid: str) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()


def _parent(pid: int) -> str:
    return _stat(str(pid))[1]


def _tree_cpu(postmaster: str) -> float:
    """Processor seconds of a server's processes, those that have ended among them; Linux alone
    says it."""
    total = sum(int(field) for field in _stat(postmaster)[11:15])
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = _stat(entry.name)
            except (FileNotFoundError, ProcessLookupError):
                continue
            if fields[1] == postmaster:
                total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def _table(rounds: dict[int, list[Round]]) -> str:
    lines = ["batch  steps/s (range)          CPU ms/step  write txns  WAL bytes"]
    for batch, runs in rounds.items():
        rates = [run.steps_per_second for run in runs]
        lines.append(
            f"{batch:5}  {median(rates):7.0f} ({min(rates):.0f}-{max(rates):.0f})"
            f"  {median([r.cpu_ms for r in runs]):.3f}"
            f"  {median([r.write_transactions for r in runs]):.3f}"
            f"  {median([r.wal_bytes for r in runs]):.0f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

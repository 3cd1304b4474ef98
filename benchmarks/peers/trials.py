"""One run of a peer's driver in a fresh database, its marks turned into readings of the meters."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.durable import Durable, Reading
from benchmarks.measure import BenchmarkError
from benchmarks.peers.installs import Program
from benchmarks.throughput.bench import Run, measured

DRIVERS = Path(__file__).with_name("drivers")
UNITS = {"steps": "step", "fan": "task", "idle": "job", "drain": "job"}
_TIMEOUT_SECONDS = 400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The sizes of the workloads."""

    processes: int = 4
    workflows: int
    steps: int = 5
    fan: int
    samples: int
    jobs: int
    drain_seconds: float
    floor_seconds: int
    quiet_seconds: float


FULL = Load(
    workflows=1_000,
    fan=5_000,
    samples=100,
    jobs=200_000,
    drain_seconds=8,
    floor_seconds=6,
    quiet_seconds=25,
)
QUICK = Load(
    workflows=100,
    fan=300,
    samples=20,
    jobs=5_000,
    drain_seconds=3,
    floor_seconds=2,
    quiet_seconds=0,
)


@dataclass(frozen=True, slots=True)
class Trial:
    """What a driver is asked."""

    row: str
    driver: str
    variant: str
    workload: str
    program: Program
    sql: Path | None


def run_trial(server: Durable, load: Load, trial: Trial, log: IO[str]) -> Run:
    """Raises BenchmarkError when the driver fails or finds that its work was not done."""
    database = server.fresh()
    told = {
        "url": server.url(database),
        "workload": trial.workload,
        "variant": trial.variant,
        "packages": str(trial.program.packages),
        "sql": str(trial.sql) if trial.sql else None,
        **{name: getattr(load, name) for name in load.__slots__},
    }
    log.write(f"--- {trial.row}, {trial.workload}\n")
    log.flush()
    command = [str(trial.program.interpreter), str(DRIVERS / trial.driver), json.dumps(told)]
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env=_environment(),
        start_new_session=True,
    )
    timer = threading.Timer(_TIMEOUT_SECONDS, _kill, (child,))
    timer.start()
    try:
        readings, result = _listen(server, child)
        code = child.wait()
    finally:
        timer.cancel()
        _kill(child)
        server.drop(database)
    if result is None or len(readings) != 2:
        raise BenchmarkError(f"its driver ended with {code}; see the log of the drivers")
    return measured(
        trial.row,
        UNITS[trial.workload],
        result["units"],
        result["seconds"],
        (readings[0], readings[1]),
        latencies_ms=tuple(result["latencies_ms"]),
    )


def _listen(
    server: Durable, child: subprocess.Popen[str]
) -> tuple[list[Reading], dict[str, Any] | None]:
    readings: list[Reading] = []
    result = None
    assert child.stdout is not None
    assert child.stdin is not None
    for line in child.stdout:
        try:
            said = json.loads(line)
        except ValueError:
            continue  # a peer's own word on standard output
        if not isinstance(said, dict):
            continue
        if "mark" in said:
            readings.append(server.reading([child.pid]))
            child.stdin.write("\n")
            child.stdin.flush()
        elif "result" in said:
            result = said["result"]
    return readings, result


def _kill(child: subprocess.Popen[str]) -> None:
    """Ends the session that the driver was started in: itself and its workers."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    child.wait()


def _environment() -> dict[str, str]:
    """Nothing of this process's Python or server leaks into a peer's."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PG", "PYTHON", "DBOS", "VIRTUAL_ENV"))
    }
    return kept | {"PYTHONUNBUFFERED": "1"}

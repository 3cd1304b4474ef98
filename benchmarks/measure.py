"""Runs commands as a person would, each in a new process, and says what they took.

Flow: every command once to warm caches up → rounds in which each command runs once, in turn → the
samples of each. A command that runs out of time is killed and not run again.
"""

from __future__ import annotations

import os
import platform
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: seconds on the clock and of the processor, bytes at the peak, how it ended."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    exit_code: int
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """`expected` are the exit codes of a run that did what it was meant to."""

    name: str
    arguments: tuple[str, ...]
    expected: tuple[int, ...] = (0,)


class BenchmarkError(Exception):
    """A command failed, so that its time says nothing."""


def run_once(command: Command, timeout_seconds: float) -> Sample:
    """Runs a command in a process group of its own; its output is thrown away.

    Raises:
      BenchmarkError: it ended with another exit code than expected.
    """
    began = time.perf_counter()
    child = subprocess.Popen(
        command.arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        cwd=ROOT,
        start_new_session=True,
    )
    expired = threading.Event()

    def kill() -> None:
        expired.set()
        os.killpg(child.pid, signal.SIGKILL)

    timer = threading.Timer(timeout_seconds, kill)
    timer.start()
    _pid, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - began
    timer.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in command.expected and not expired.is_set():
        shown = " ".join(command.arguments)
        raise BenchmarkError(f"{command.name} ended with {child.returncode}: {shown}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Sample(
        wall_seconds=wall,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * unit,
        exit_code=child.returncode,
        timed_out=expired.is_set(),
    )


def _environment() -> dict[str, str]:
    """Compiled Python files are kept, as on any machine where a command is installed."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": str(ROOT)}


def in_turn(
    commands: Sequence[Command], rounds: int, timeout_seconds: float
) -> dict[str, list[Sample]]:
    """Runs all commands `rounds` times, A B C A B C …, after one round that does not count."""
    samples: dict[str, list[Sample]] = {command.name: [] for command in commands}
    expired: set[str] = set()
    for number in range(rounds + 1):
        for command in commands:
            if command.name in expired:
                continue
            sample = run_once(command, timeout_seconds)
            if sample.timed_out:
                expired.add(command.name)
                samples[command.name] = [sample]
            elif number > 0:
                samples[command.name].append(sample)
    return samples


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def machine() -> dict[str, Any]:
    """What a number depends on: processor, system, interpreter, commit, day, how busy it was."""
    return {
        "processor": _processor(),
        "processors": os.cpu_count(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "commit": _commit(),
        "measured_at": datetime.now(UTC).strftime("%Y-%m-%d %H:%MZ"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip()


def as_data(samples: Mapping[str, list[Sample]]) -> dict[str, Any]:
    """Every round, for the JSON beside a table."""
    return {
        name: {
            "wall_seconds": [round(s.wall_seconds, 4) for s in runs],
            "cpu_seconds": [round(s.cpu_seconds, 4) for s in runs],
            "peak_bytes": [s.peak_bytes for s in runs],
            "timed_out": any(s.timed_out for s in runs),
        }
        for name, runs in samples.items()
    }

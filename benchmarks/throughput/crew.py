"""Processes that make the load: started together, let go together, stopped together.

A process of a crew prints `ready`, waits for a line, works, and prints one line of JSON after the
next line (or the end of its input). The real `wf worker` prints nothing and ends with its input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.measure import ROOT, BenchmarkError

_START_SECONDS = 120.0
HANDLERS = '''"""The handler of the load: it does nothing."""

from wfsql import action


@action("t.do")
def do(n=None, x=None):
    return {"ok": True}
'''


@dataclass(frozen=True, slots=True)
class Crew:
    """Running processes of one kind."""

    processes: tuple[subprocess.Popen[str], ...]

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(process.pid for process in self.processes)

    def go(self) -> None:
        for process in self.processes:
            _say(process, "go")

    def stop(self) -> list[dict[str, Any]]:
        """Tells all to stop, then waits; what each reports."""
        for process in self.processes:
            _say(process, "stop")
        return [json.loads(_line(process)) for process in self.processes]


@contextmanager
def crew(module: str, orders: Sequence[dict[str, Any]]) -> Iterator[Crew]:
    """One process `python -m MODULE JSON` for each of `orders`, all of them ready."""
    with _started([[sys.executable, "-m", module, json.dumps(each)] for each in orders]) as made:
        for process in made.processes:
            if _line(process).strip() != "ready":
                raise BenchmarkError(f"{module} did not get ready")
        yield made


@contextmanager
def wf_workers(
    count: int, url: str, folder: Path, concurrency: int, arguments: Sequence[str] = ()
) -> Iterator[Crew]:
    """`wf worker` as it comes, `count` processes of it, each of which has claimed once."""
    handlers = folder / "handlers.py"
    handlers.write_text(HANDLERS, encoding="utf-8")
    command = [sys.executable, "-m", "wfsql", "worker", "--handlers", str(handlers), "--quiet"]
    command += ["--concurrency", str(concurrency), "--end-with-stdin", *arguments]
    names = [f"wf{number}" for number in range(count)]
    commands = [[*command, "--url", url, "--worker-id", name] for name in names]
    with _started(commands, subprocess.DEVNULL) as made:
        with psycopg.connect(url, autocommit=True) as connection:
            await_presence(connection, names, made)
        yield made


@contextmanager
def serving(arguments: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A `wf` command that runs until its input ends."""
    command = [sys.executable, "-m", "wfsql", *arguments]
    with _started([command], subprocess.DEVNULL) as made:
        yield made.processes[0]


def await_presence(
    connection: psycopg.Connection[Any], names: list[str], made: Crew, since: Any = None
) -> None:
    """Waits until each of the workers has been heard of, after `since` if that is given."""
    give_up_at = time.monotonic() + _START_SECONDS
    while True:
        row = connection.execute(
            "select count(*) from wf.worker_presence as p where p.worker_id = any(%s)"
            " and p.last_seen_at > coalesce(%s, '-infinity'::timestamptz)",
            (names, since),
        ).fetchone()
        if row is not None and row[0] == len(names):
            return
        if time.monotonic() > give_up_at or any(p.poll() is not None for p in made.processes):
            raise BenchmarkError("not all workers claim")
        time.sleep(0.05)


@contextmanager
def _started(commands: list[list[str]], errors: int | None = None) -> Iterator[Crew]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    processes = tuple(
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        for command in commands
    )
    try:
        yield Crew(processes)
    finally:
        for process in processes:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _say(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise BenchmarkError(f"process {process.pid} of the load ended with {process.wait()}")
    return line

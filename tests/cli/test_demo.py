"""`make demo` as a process: it agrees, and it leaves nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from psutil import Process, process_iter, wait_procs


@pytest.fixture
def temporary() -> Iterator[Path]:
    """The folder that the demo takes for temporary files; short, since a socket goes there."""
    folder = Path(tempfile.mkdtemp(prefix="d-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def start_demo(temporary: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "wfsql.demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"},
    )


def leftovers(temporary: Path) -> list[str]:
    return [path.name for path in temporary.iterdir()]


def processes(temporary: Path) -> list[str]:
    """The command lines of processes that were started on the folder, or by one that was."""
    found = []
    for process in process_iter(["cmdline", "environ"]):
        line = " ".join(process.info["cmdline"] or ())
        if str(temporary) in line or (process.info["environ"] or {}).get("TMPDIR") == str(
            temporary
        ):
            found.append(line)
    return found


def read_until(stream: IO[str] | None, text: str) -> None:
    assert stream is not None
    seen = ""
    while text not in seen:
        char = stream.read(1)
        assert char, seen
        seen += char


def test_every_example_leaves_the_same_trace_in_both_engines(temporary: Path) -> None:
    process = start_demo(temporary)
    out, _err = process.communicate(timeout=180)
    assert process.returncode == 0, out
    assert "PostgreSQL and the local runner agree: " in out
    assert "database only" in out
    assert "worker-4 |" in out
    assert re.search(r"-- worker-1 is killed \(kill -9\) with \S+ in hand\n", out)
    assert "-- gateway-1 is stopped, and worker-2 has none now\n" in out
    assert "in spite of a worker that was killed and a gateway that was stopped." in out
    assert "order_fulfilment (short): FAILED, as expected" in out
    assert "order_fulfilment (happy): SUCCEEDED" in out
    assert leftovers(temporary) == []
    assert processes(temporary) == []


@pytest.mark.parametrize(
    ("moment", "numbers"),
    [
        ("start PostgreSQL", [signal.SIGTERM]),
        ("worker processes", [signal.SIGHUP]),
        # Someone impatient: what comes after the first is ignored.
        ("worker processes", [signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGINT]),
    ],
)
def test_an_interrupted_demo_stops_and_removes_everything(
    temporary: Path, moment: str, numbers: list[signal.Signals]
) -> None:
    process = start_demo(temporary)
    read_until(process.stdout, moment)
    for number in numbers:
        process.send_signal(number)
    out, _err = process.communicate(timeout=60)
    assert process.returncode == 130, out
    assert "interrupted; everything is stopped and removed" in out
    assert leftovers(temporary) == []
    assert processes(temporary) == []


@pytest.mark.parametrize("file", ["pg/PG_VERSION", "pg/postmaster.pid"])
def test_a_demo_interrupted_while_the_server_starts_leaves_nothing(
    temporary: Path, file: str
) -> None:
    process = start_demo(temporary)
    give_up_at = time.monotonic() + 60
    while not list(temporary.glob(f"*/{file}")) and time.monotonic() < give_up_at:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, _err = process.communicate(timeout=60)
    assert process.returncode == 130, out
    assert leftovers(temporary) == []
    assert processes(temporary) == []


def test_the_children_of_a_demo_that_is_killed_end_too(temporary: Path) -> None:
    process = start_demo(temporary)
    read_until(process.stdout, "worker processes")
    children = [
        child
        for child in Process(process.pid).children()
        if {"worker", "gateway"} & set(child.cmdline())
    ]
    server = int((next(temporary.glob("*/pg")) / "postmaster.pid").read_text().split()[0])
    try:
        process.kill()
        process.communicate(timeout=60)
        assert len(children) == 6
        assert wait_procs(children, timeout=60)[1] == []
    finally:
        Process(server).terminate()
        wait_procs([Process(server)], timeout=60)

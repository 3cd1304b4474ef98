"""`make demo` as a process: it agrees, and it leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from psutil import process_iter


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
    return [path.name for path in temporary.iterdir() if path.name.startswith("wfsql")]


def processes(temporary: Path) -> list[str]:
    """The command lines of processes that were started on the folder."""
    lines = [" ".join(process.info["cmdline"] or ()) for process in process_iter(["cmdline"])]
    return [line for line in lines if str(temporary) in line]


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
    assert leftovers(temporary) == []
    assert processes(temporary) == []


@pytest.mark.parametrize("moment", ["start PostgreSQL", "worker processes"])
def test_an_interrupted_demo_stops_and_removes_everything(temporary: Path, moment: str) -> None:
    process = start_demo(temporary)
    read_until(process.stdout, moment)
    process.send_signal(signal.SIGTERM)
    out, _err = process.communicate(timeout=60)
    assert process.returncode == 130, out
    assert "interrupted; everything is stopped and removed" in out
    assert leftovers(temporary) == []
    assert processes(temporary) == []

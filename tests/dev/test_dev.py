"""`wf dev` as a process: it follows the files, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from psutil import Process, process_iter

WORKFLOW = """\
workflow greeting {
  input { name : string }
  output { text = var.text }
  action hello = greet.hello(name: var.name) { set text = out.text }
}
"""
CATALOG = """\
actions:
  - name: greet.hello
    capability: greet
    input: "{ name: string }"
    output: "{ text: string }"
"""
HANDLERS = """\
from wfsql import action


@action("greet.hello")
def hello(name):
    return {"text": "Hello " + name}
"""
PATIENCE_SECONDS = 90.0


class Dev:
    """A running `wf dev` and what it has written."""

    def __init__(self, folder: Path, data: Path, *options: str, log: Path | None = None) -> None:
        self.folder = folder
        self.log = log or data.with_suffix(".log")
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "wfsql", "dev", str(folder), "--data", str(data)),
                    *("--listen", f"127.0.0.1:{_free_port()}", *options),
                ],
                stdout=output,
                stderr=output,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def until(self, pattern: str, count: int = 1) -> None:
        """Waits until a pattern stands in the log so many times."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while len(re.findall(pattern, self.text())) < count:
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < give_up_at, f"no {pattern!r} in:\n{self.text()}"
            time.sleep(0.05)

    def wf(self, *arguments: str) -> str:
        """Runs a command as from a second terminal."""
        [url] = re.findall(r"export WF_URL='(.*)'", self.text())
        done = subprocess.run(
            [sys.executable, "-m", "wfsql", *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            env=os.environ | {"WF_URL": url},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose path is short, since a socket goes below it."""
    folder = Path(tempfile.mkdtemp(prefix="dev-"))
    yield folder
    for process in _of(folder):
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def project(place: Path) -> Path:
    folder = place / "project"
    folder.mkdir()
    (folder / "greeting.wf").write_text(WORKFLOW)
    (folder / "greeting.actions.yaml").write_text(CATALOG)
    (folder / "handlers.py").write_text(HANDLERS)
    return folder


def _of(folder: Path) -> list[Process]:
    """The processes that have the folder's name in their command line."""
    found = []
    for process in process_iter(["cmdline"]):
        if any(str(folder) in part for part in process.info["cmdline"] or ()):
            found.append(process)
    return found


def test_a_folder_is_followed_and_nothing_is_left_behind(place: Path, project: Path) -> None:
    dev = Dev(project, place / "data")
    dev.until("greeting version 1 is deployed")
    dev.until("claims greet")
    greet = ("start", "greeting", "--context", '{"name": "Ada"}', "--wait", "--json")
    assert "Hello Ada" in dev.wf(*greet)

    # A new content is a new version, and a file with errors leaves that in its place.
    (project / "greeting.wf").write_text(WORKFLOW.replace("out.text", '"${out.text}!"'))
    dev.until("greeting version 2 is deployed")
    (project / "greeting.wf").write_text(WORKFLOW.replace("greet.hello", "greet.hallo"))
    dev.until(r"error\[WF104\]: unknown action")
    (project / "greeting.wf").write_text(WORKFLOW.replace("out.text", '"${out.text}!"'))
    dev.until("greeting version 2: nothing new")
    assert "Hello Ada!" in dev.wf(*greet)

    # New handlers are at work without a new version.
    before = len(re.findall("claims greet", dev.text()))
    (project / "handlers.py").write_text(HANDLERS.replace("Hello", "Goodbye"))
    dev.until("claims greet", before + 1)
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    # The worker before may still have taken a task that came while it was told to end.
    while "Goodbye Ada!" not in dev.wf(*greet):
        assert time.monotonic() < give_up_at

    # A new action for which there is no handler would wait, and nobody would say why.
    (project / "greeting.actions.yaml").write_text(CATALOG + "  - name: part.farewell\n")
    (project / "parting.wf").write_text("workflow parting { action a = part.farewell() }\n")
    dev.until("no handler for part.farewell: instances that come there wait")
    assert dev.end() == 0
    assert "fault" not in dev.text()
    assert _of(place) == []


def test_the_database_is_there_again_the_next_time(place: Path, project: Path) -> None:
    first = Dev(project, place / "data", "--workers", "0")
    first.until("ready in")
    first.wf("start", "greeting", "--context", '{"name": "Ada"}')
    beside = Dev(project, place / "data", log=place / "beside.log")
    assert beside.process.wait(PATIENCE_SECONDS) == 1
    assert beside.text() == f"error: wf dev runs here already, with the data in {place / 'data'}\n"
    assert first.end() == 0

    second = Dev(project, place / "data", "--workers", "0")
    second.until("ready in")
    assert "greeting version 1: nothing new" in second.text()
    assert "greeting" in second.wf("ps")
    assert second.end() == 0

    third = Dev(project, place / "data", "--workers", "0", "--fresh")
    third.until("ready in")
    assert "greeting" not in third.wf("ps")
    assert third.end() == 0


def test_handlers_that_do_not_load_are_tried_again_when_they_change(
    place: Path, project: Path
) -> None:
    (project / "handlers.py").write_text("def broken(:\n")
    dev = Dev(project, place / "data")
    dev.until("ended with 2; change a file to try again")
    (project / "handlers.py").write_text(HANDLERS)
    dev.until("claims greet")
    assert dev.end() == 0


def test_it_ends_the_rest_when_its_gateway_cannot_listen(place: Path, project: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        dev = Dev(project, place / "data", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
        assert dev.process.wait(PATIENCE_SECONDS) == 1
    assert "error: the gateway ended with" in dev.text()
    assert _of(place) == []

"""A database with a gateway before it, and workers as processes of their own.

One database and gateway serve a module; each test deploys a workflow under a name of its own, with
one action that asks for a capability of that name.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from compiler.pipeline import compile_file
from runtime_sql.connection import Created, PostgresClient, connect
from tests.runtime_sql import drive
from wfsql.embedded import EmbeddedServer

ROOT = Path(__file__).resolve().parents[2]
_numbers = count(1)


def wait_for(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """Returns what the condition gives when it is true at last."""
    give_up_at = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < give_up_at, "the condition did not come true"
        time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WF_")}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


def wf(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wfsql", *arguments],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@dataclass
class Process:
    """A process of the test; its stderr is read into `lines` while it runs."""

    popen: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stderr is not None
        self.lines.extend(iter(self.popen.stderr.readline, ""))

    def says(self, text: str) -> bool:
        return any(text in line for line in self.lines)

    def wait(self, seconds: float = 30) -> int:
        code = self.popen.wait(seconds)
        self._reader.join(5)
        return code

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    def kill(self) -> None:
        with suppress(OSError):
            self.popen.kill()
        self.wait()
        assert self.popen.stderr is not None
        self.popen.stderr.close()


@dataclass
class Flow:
    """A deployed workflow with one action, in a folder of its own."""

    place: Place
    name: str
    folder: Path

    def handlers(self, body: str) -> None:
        """Writes the module with the handler; `body` stands below the imports."""
        text = "import os, pathlib, time\nfrom wfsql import *\n\n"
        (self.folder / "handlers.py").write_text(text + body.replace("ACTION", f"{self.name}.do"))

    def start(self, context: str = "{}") -> int:
        client = connect(self.place.database)
        assert isinstance(client, PostgresClient)
        made = client.create_and_start(self.name, context)
        client.close()
        assert isinstance(made, Created), made
        return made.instance_id

    def status(self, instance: int) -> str:
        [(status,)] = self.place.ask(
            "select i.status from wf.v_instance as i where i.workflow_instance_id = %s", instance
        )
        return str(status)

    def tasks(self) -> list[Any]:
        """Returns worker, lease token and lease end of each task that is there."""
        return self.place.ask(
            "select t.worker_id, t.lease_token, t.lease_until from wf.task as t"
            " join wf.workflow_node as n on n.node_id = t.node_id where n.action_name = %s",
            f"{self.name}.do",
        )

    def calls(self) -> int:
        """How often the handler was called, if it says so with `CALLED`."""
        return len(list(self.folder.glob("called-*")))

    def worker(self, *options: str, gateway: str | None = None, **more: str) -> Process:
        """Starts a worker at the gateway, with the key to enroll, in a state folder of its own."""
        key = {} if "WF_WORKER_TOKEN" in more else {"WF_API_KEY": self.place.key}
        return self.run(
            "--gateway", gateway or self.place.url, "--state", str(self.folder / "state"),
            *options, **{**key, **more},
        )  # fmt: skip

    def database_worker(self, *options: str) -> Process:
        return self.run("--url", self.place.database, *options)

    def run(self, *options: str, **more: str) -> Process:
        command = [sys.executable, "-m", "wfsql", "worker", "--handlers", "handlers.py", *options]
        popen = subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment(**more),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        process = Process(popen)
        self.place.processes.append(process)
        return process


CALLED = 'pathlib.Path(f"called-{time.monotonic_ns()}").touch()'


@dataclass
class Place:
    """A database, the gateway before it, a key of role enroll."""

    database: str
    url: str
    key: str
    folder: Path
    gateway: subprocess.Popen[bytes]
    processes: list[Process] = field(default_factory=list)

    def ask(self, query: str, *parameters: object) -> list[Any]:
        with psycopg.connect(self.database, autocommit=True) as connection:
            return connection.execute(query, parameters).fetchall()

    def flow(self, text: str | None = None, *, declares: str = "") -> Flow:
        """Deploys `text`, in which NAME stands for the workflow's name; one action without."""
        name = f"flow{next(_numbers)}"
        folder = self.folder / name
        folder.mkdir()
        program = text or "workflow NAME { action do = NAME.do() }\n"
        (folder / f"{name}.wf").write_text(program.replace("NAME", name))
        (folder / f"{name}.actions.yaml").write_text(
            f"actions:\n  - name: {name}.do\n    capability: {name}\n{declares}"
        )
        result = compile_file(folder / f"{name}.wf")
        assert result.specs, result.diagnostics
        with psycopg.connect(self.database, autocommit=True) as connection:
            drive.deploy(connection, result.specs[0])
        return Flow(self, name, folder)

    def metric(self, name: str, **labels: str) -> float:
        """Returns the sum of a metric's samples with these labels."""
        total = 0.0
        for line in httpx.get(f"{self.url}/metrics").text.splitlines():
            head, _, value = line.rpartition(" ")
            if head.split("{")[0] == name and all(f'{k}="{v}"' in head for k, v in labels.items()):
                total += float(value)
        return total


@pytest.fixture(scope="module")
def served(
    pg_server: EmbeddedServer, pg_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("place")
    name = f"w{os.getpid()}_{next(_numbers)}"
    database = pg_server.create_database(name, pg_template)
    made = wf(
        "key", "create", "enroll", "--role", "enroll", "--capability", "*",
        cwd=folder, WF_URL=database,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    port = free_port()
    with open(folder / "gateway.log", "wb") as log:
        gateway = subprocess.Popen(
            [sys.executable, "-m", "wfsql", "gateway", "--listen", f"127.0.0.1:{port}"],
            env=environment(WF_URL=database),
            stderr=log,
        )
    place = Place(database, f"http://127.0.0.1:{port}", made.stdout.strip(), folder, gateway)
    try:
        wait_for(lambda: is_ready(place), 60)
        yield place
    finally:
        gateway.terminate()
        gateway.wait(30)
        pg_server.drop_database(name)


def is_ready(place: Place) -> bool:
    assert place.gateway.poll() is None, (place.folder / "gateway.log").read_text()
    try:
        return httpx.get(f"{place.url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def place(served: Place) -> Iterator[Place]:
    """The place; workers that a test has started are gone after it."""
    yield served
    for process in served.processes:
        process.kill()
    served.processes.clear()


@dataclass
class Wire:
    """Passes bytes on to a gateway, until it is cut."""

    url: str
    is_whole: bool = True
    _pairs: list[socket.socket] = field(default_factory=list)

    def cut(self) -> None:
        """From now on nothing gets through, and what was there is gone."""
        self.is_whole = False
        for end in self._pairs:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()

    def mend(self) -> None:
        self.is_whole = True


@pytest.fixture
def wire(served: Place) -> Iterator[Wire]:
    """A wire to the gateway that the test can cut."""
    listener = socket.create_server(("127.0.0.1", 0))
    made = Wire(f"http://127.0.0.1:{listener.getsockname()[1]}")
    target = ("127.0.0.1", int(served.url.rpartition(":")[2]))

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, _address = listener.accept()
                if not made.is_whole:
                    near.close()
                    continue
                far = socket.create_connection(target)
                made._pairs += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=pump, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield made
    made.cut()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()

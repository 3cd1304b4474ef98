"""The scene of the faults: PostgreSQL with fsync on, two gateways, four workers, wires between.

    workers a1 a2 ─ wire ─ gateway a ─ wire ─┐
                                             ├─ PostgreSQL
    workers b1 b2 ─ wire ─ gateway b ─ wire ─┘

Gateways and workers are processes; the test itself speaks to the database past the wires. A log of
leases, written by a trigger, says when each lease began and how it ended.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg

from compiler.pipeline import compile_file
from compiler.spec import GraphSpec
from emit_pg.emitter import emit
from runtime_sql.installer import Installed, install
from tests.faults.effects import Effects
from tests.faults.wires import Wire
from wfsql.dev.gateway import DevKeys, make_keys
from wfsql.embedded import EmbeddedServer

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
POOL_SIZE = 8
_PATIENCE_SECONDS = 60.0

LEASE_LOG = """
create schema faults;
create table faults.lease (
    node_execution_id bigint, lease_token bigint, worker_id text, claimed_at timestamptz,
    lease_until timestamptz, ended_at timestamptz, is_accepted boolean);
create function faults.note() returns trigger language plpgsql security definer as $$
begin
    insert into faults.lease values (
        old.node_execution_id, old.lease_token, old.worker_id, old.claimed_at, old.lease_until,
        clock_timestamp(), tg_op = 'DELETE');
    return null;
end $$;
create trigger note_end after update on wf.task for each row
    when (old.worker_id is not null
          and (new.worker_id is null or new.lease_token <> old.lease_token))
    execute function faults.note();
create trigger note_result after delete on wf.task for each row
    when (old.worker_id is not null) execute function faults.note();
"""


def wait_for(
    condition: Callable[[], Any], what: str, seconds: float = _PATIENCE_SECONDS, look: float = 0.02
) -> Any:
    """Returns what the condition gives when it is true at last."""
    give_up_at = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < give_up_at, f"not within {seconds:.0f} s: {what}"
        time.sleep(look)
    return found


@dataclass
class Program:
    """A process that can be started again as it was."""

    name: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WF_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "wfsql", *self.arguments],
            cwd=self.log.parent,
            env={**kept, "PYTHONPATH": str(ROOT), **self.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            # Through a pipe: a worker that may write no file can still say so.
            stderr=subprocess.PIPE,
        )
        threading.Thread(target=self._keep_lines, args=(self.process,), daemon=True).start()

    def _keep_lines(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        with self.log.open("ab", buffering=0) as log:
            for line in process.stderr:
                log.write(line)

    def says(self, text: str) -> int:
        return self.log.read_text(errors="replace").count(text) if self.log.exists() else 0

    def kill(self) -> None:
        """SIGKILL, and gone when this returns."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()


@dataclass
class Side:
    """A gateway, its workers, and the wires before and behind it."""

    name: str
    port: int
    to_gateway: Wire
    to_database: Wire
    gateway: Program
    workers: list[Program] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Scene:
    """All of it; `close` leaves nothing behind. `lease_seconds`: what workers ask for."""

    def __init__(self, lease_seconds: int = 3, work_seconds: float = 0.12) -> None:
        self.lease_seconds = lease_seconds
        self.work_seconds = work_seconds
        self.folder = Path(tempfile.mkdtemp(prefix="faults-"))
        self.folder.chmod(0o755)
        self.effects = Effects(self.folder / "effects")
        self.sides: list[Side] = []
        self.server = EmbeddedServer.start(self.folder / "pg")
        try:
            self._install()
            for name in ("a", "b"):
                self.sides.append(self._side(name))
            wait_for(lambda: all(is_ready(side) for side in self.sides), "the gateways answer")
            for side in self.sides:
                for worker in side.workers:
                    worker.start()
            for worker in self.workers:
                wait_for(lambda w=worker: w.says("claims fan"), f"{worker.name} claims")
        except BaseException:
            self.close()
            raise

    def _install(self) -> None:
        self.url = self.server.create_database("faults")
        done = install(self.url)
        assert isinstance(done, Installed), done
        compiled = compile_file(HERE / "fan.wf")
        assert compiled.specs, compiled.diagnostics
        self.spec: GraphSpec = compiled.specs[0]
        with self.connect() as connection:
            connection.execute(emit(self.spec).encode())
            connection.execute(LEASE_LOG.encode())
        keys = make_keys(self.url, self.folder / "keys")
        assert isinstance(keys, DevKeys), keys
        self.keys = keys

    def _side(self, name: str) -> Side:
        folder = self.server.handle.get_postmaster_info().socket_dir
        to_database = Wire(f"{folder}/.s.PGSQL.5432")
        port = free_port()
        to_gateway = Wire(port)
        gateway = Program(
            f"gateway-{name}",
            ("gateway", "--listen", f"127.0.0.1:{port}", "--pool", str(POOL_SIZE), "--quiet",
             "--end-with-stdin"),
            {"WF_URL": f"postgresql://postgres@127.0.0.1:{to_database.port}/faults"},
            self.folder / f"gateway-{name}.log",
        )  # fmt: skip
        side = Side(name, port, to_gateway, to_database, gateway)
        for number in (1, 2):
            side.workers.append(self._worker(f"{name}{number}", to_gateway.port))
        gateway.start()
        return side

    def _worker(self, name: str, port: int) -> Program:
        return Program(
            name,
            ("worker", "--gateway", f"http://127.0.0.1:{port}", "--worker-id", name,
             "--enroll-key-file", str(self.keys.enroll), "--state", str(self.folder / name),
             "--handlers", str(HERE / "handlers.py"), "--concurrency", "4",
             "--lease", str(self.lease_seconds), "--end-with-stdin"),
            {"FAULTS_EFFECTS": str(self.effects.path), "FAULTS_WORKER": name,
             "FAULTS_WORK_SECONDS": str(self.work_seconds)},
            self.folder / f"{name}.log",
        )  # fmt: skip

    @property
    def workers(self) -> list[Program]:
        return [worker for side in self.sides for worker in side.workers]

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)

    def ask(self, query: str, *parameters: object) -> list[Any]:
        with self.connect() as connection:
            return connection.execute(query.encode(), parameters).fetchall()

    # PostgreSQL ---------------------------------------------------------------------------------

    def kill_database(self) -> None:
        """SIGKILL to the postmaster and all that it has started, at one moment."""
        postmaster = psutil.Process(self.server.handle.get_postmaster_info().pid)
        family = [postmaster, *postmaster.children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(family, timeout=30)

    def restart_database(self) -> None:
        self.server.handle.ensure_postgres_running()
        wait_for(self._database_answers, "PostgreSQL answers")

    def _database_answers(self) -> bool:
        try:
            return bool(self.ask("select 1"))
        except psycopg.OperationalError:
            return False

    # The end ------------------------------------------------------------------------------------

    def logs(self) -> str:
        """The last lines of every process, for a test that fails."""
        found = []
        for path in sorted(self.folder.glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()[-15:]
            found.append("\n".join([f"--- {path.name}", *lines]))
        return "\n".join(found)

    def close(self) -> None:
        for worker in self.workers:
            worker.stop()
        for side in self.sides:
            side.gateway.stop()
            side.to_gateway.close()
            side.to_database.close()
        self.effects.close()
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_ready(side: Side) -> bool:
    assert side.gateway.process is not None
    assert side.gateway.process.poll() is None, side.gateway.log.read_text()
    try:
        return httpx.get(f"{side.url}/readyz", timeout=5).is_success
    except httpx.HTTPError:
        return False

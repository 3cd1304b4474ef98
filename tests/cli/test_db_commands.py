"""`wf db upgrade`, `uninstall`, `script`, and the options of `install`."""

from __future__ import annotations

import json

import psycopg

from runtime_sql.script_text import script_text
from runtime_sql.scripts import RUNTIME_VERSION
from tests.cli.conftest import Wf
from tests.runtime_sql.test_upgrade import put_version


def test_upgrade_says_what_it_did(wf: Wf, empty_pg_url: str) -> None:
    put_version(empty_pg_url, 1)
    done = wf("db", "upgrade", "--url", empty_pg_url)
    assert (done.code, done.out) == (0, "")
    assert done.err == f"upgraded to runtime version {RUNTIME_VERSION}\n"
    again = wf("db", "upgrade", "--url", empty_pg_url, "--json")
    assert json.loads(again.out) == {"version": RUNTIME_VERSION, "changed": False}


def test_an_older_runtime_is_named_with_what_to_do(wf: Wf, empty_pg_url: str) -> None:
    put_version(empty_pg_url, 1)
    for command in (("db", "install"), ("db", "verify"), ("ps",)):
        done = wf(*command, "--url", empty_pg_url)
        assert done.code == 1
        assert "runtime version 1, older than this program's" in done.err
        assert done.err.endswith('hint: run "wf db upgrade --url …"\n')


def test_uninstall_says_what_it_removed(wf: Wf, pg_url: str) -> None:
    done = wf("db", "uninstall", "--url", pg_url)
    assert (done.code, done.out) == (0, "")
    assert done.err == f"runtime version {RUNTIME_VERSION} is removed, with 0 instances\n"
    again = wf("db", "uninstall", "--url", pg_url)
    assert (again.code, again.err) == (0, "there is no wfsql runtime; nothing changed\n")


def test_install_without_roles_for_tests(wf: Wf, empty_pg_url: str) -> None:
    done = wf("db", "install", "--no-roles", "--test", "--url", empty_pg_url)
    assert done.code == 0
    with psycopg.connect(empty_pg_url) as connection:
        rows = connection.execute("select name, value from wf.wf_setting order by 1").fetchall()
    assert rows == [("roles", "none"), ("test_database", "true")]
    assert wf("db", "verify", "--url", empty_pg_url).code == 0


def test_verify_finds_rows_that_point_at_nothing(wf: Wf, pg_url: str) -> None:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute("insert into wf.timer values (7, 8, now())")
    done = wf("db", "verify", "--url", pg_url)
    assert done.code == 1
    assert done.err.splitlines()[:2] == [
        "error: table timer: 1 rows name no workflow_instance by workflow_instance_id (first: 8)",
        "error: table timer: 1 rows name no node_execution by node_execution_id (first: 7)",
    ]


def test_script_is_written_for_both_dialects(wf: Wf) -> None:
    assert wf("db", "script").out == script_text("pg").rstrip("\n") + "\n"
    assert wf("db", "script", "--dialect", "mssql").out == script_text("mssql")

"""`wf db verify` checks the contract against the database and says what differs, line by line."""

from __future__ import annotations

import json

import psycopg
import pytest

from tests.cli.conftest import Wf


def change(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def test_a_fresh_database_fits(wf: Wf, pg_url: str) -> None:
    done = wf("db", "verify", "--url", pg_url)
    assert (done.code, done.out) == (0, "")
    assert done.err == "runtime version 2, nothing missing, nothing changed\n"


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("drop view wf.v_instance", "missing in schema wf: v_instance"),
        # Not in the contract, but the runtime cannot work without it.
        ("drop function wf.wf_truth(jsonb)", "missing in schema wf: wf_truth"),
        (
            "create view wf.v_new as select 1 as one",
            "view v_new: not in the contract",
        ),
        (
            "alter view wf.v_instance rename column status to state",
            "view v_instance: column 4 must be status text, not state text",
        ),
        (
            "grant execute on function wf.sp_tick() to public",
            "sp_tick: PUBLIC must not have execute",
        ),
    ],
)
def test_a_difference_is_one_line(wf: Wf, pg_url: str, statement: str, line: str) -> None:
    change(pg_url, statement)
    done = wf("db", "verify", "--url", pg_url)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"error: {line}\nhint: install into a new database\n"


def test_several_differences_are_a_line_each(wf: Wf, pg_url: str) -> None:
    change(pg_url, "drop function wf.sp_tick()")
    change(pg_url, "drop view wf.v_instance")
    change(pg_url, "alter table wf.worker add column note text")
    done = wf("db", "verify", "--url", pg_url)
    assert done.code == 1
    assert done.err.splitlines() == [
        "error: missing in schema wf: sp_tick",
        "error: missing in schema wf: v_instance",
        "error: table worker: column note text null is not in the contract",
        "hint: install into a new database",
    ]


def test_json_holds_what_is_missing_and_what_differs(wf: Wf, pg_url: str) -> None:
    change(pg_url, "drop function wf.sp_tick()")
    change(pg_url, "alter table wf.worker add column note text")
    done = wf("db", "verify", "--url", pg_url, "--json")
    assert done.code == 1
    report = json.loads(done.out)
    assert report["ok"] is False
    assert report["missing"] == ["sp_tick"]
    assert report["differences"] == ["table worker: column note text null is not in the contract"]

"""Cases on SQL Server: each reason why none runs, and the report of those that did."""

from __future__ import annotations

import pytest

from tests.mssql_report import page, read_outcomes
from tests.mssql_server import REASON, server_url
from wfsql.testing.engines import EngineProblem
from wfsql.testing.mssql import open_mssql, with_database

RUN = """<testsuites><testsuite>
<testcase classname="tests.conformance.test_conformance" name="a: one"/>
<testcase classname="tests.conformance.test_conformance" name="a: two">
  <failure message="assert 1 | 2&#10;more"/></testcase>
<testcase classname="tests.runtime_sql.test_tsql_traps" name="three">
  <skipped message="no server"/></testcase>
</testsuite></testsuites>"""


def problem(url: str | None) -> EngineProblem:
    with pytest.raises(EngineProblem) as found:
        open_mssql(url)
    return found.value


def test_without_a_server_it_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WF_MSSQL_URL", raising=False)
    assert problem(None).message == "no SQL Server is named, so cases cannot run on one"
    assert "WF_MSSQL_URL" in (problem(None).hint or "")


def test_a_url_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WF_MSSQL_URL", "mssql://sa:x@host")
    assert problem(None).message.startswith("the URL cannot be read")


def test_tests_without_a_server_are_skipped_with_the_one_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("WF_MSSQL_URL", raising=False)
    with pytest.raises(pytest.skip.Exception) as found:
        server_url()
    assert found.value.msg == REASON


def test_the_database_of_a_url_changes_and_nothing_else() -> None:
    url = "mssql://sa:x%2F@host:1500/orders?encrypt=no"
    assert with_database(url, "master") == "mssql://sa:x%2F@host:1500/master?encrypt=no"


def test_a_report_counts_and_names() -> None:
    text = page("Microsoft SQL Server 2022", "2026-01-02", read_outcomes(RUN))
    assert "- Tests: 1 passed, 1 failed, 1 skipped" in text
    assert "- `tests/conformance/test_conformance: a: two`: assert 1 \\| 2" in text
    assert "- 1: no server" in text
    assert "not SQL Server" not in text


def test_a_report_says_when_the_server_is_a_stand_in() -> None:
    text = page("Something that speaks TDS", "2026-01-02", read_outcomes(RUN))
    assert "**This is a TDS server that is not SQL Server.**" in text

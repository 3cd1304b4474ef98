"""Why no case runs on SQL Server: each reason in a line of its own."""

from __future__ import annotations

import pytest

from wfsql.testing.engines import EngineProblem
from wfsql.testing.mssql import open_mssql


def problem(url: str | None) -> EngineProblem:
    with pytest.raises(EngineProblem) as found:
        open_mssql(url)
    return found.value


def test_without_a_server_it_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WF_MSSQL_URL", raising=False)
    assert problem(None).message == "no SQL Server is named, so cases cannot run on one"
    assert "WF_MSSQL_URL" in (problem(None).hint or "")


@pytest.mark.parametrize("url", [None, "mssql://sa@host:1433/db"])
def test_with_a_server_it_says_what_the_runtime_lacks(
    url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WF_MSSQL_URL", "mssql://sa@other:1433/db")
    assert problem(url).message.startswith("the runtime for SQL Server cannot run instances yet")

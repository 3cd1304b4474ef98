"""A database that is not there, has no runtime, or another one; and bad options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from runtime_sql.scripts import RUNTIME_VERSION

Wf = Callable[..., Any]
NOBODY = "postgresql://nobody:secret@127.0.0.1:1/none"
CLIENT_COMMANDS = [
    ("ps",),
    ("show", "1"),
    ("trace", "1"),
    ("start", "greeting"),
    ("events", "send", "a.b"),
]
COMMANDS = [("db", "install"), ("db", "verify"), *CLIENT_COMMANDS]


def is_one_clear_line(text: str) -> bool:
    error, *hints = text.splitlines()
    return error.startswith("error: ") and len(hints) == 1 and hints[0].startswith("hint: ")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_url_is_wrong_use(wf: Wf, command: tuple[str, ...]) -> None:
    done = wf(*command)
    assert done.code == 2
    assert done.err.startswith("error: no database is named\nhint: ")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_server_that_is_not_there(wf: Wf, command: tuple[str, ...]) -> None:
    done = wf(*command, "--url", NOBODY)
    assert done.code == 1
    assert is_one_clear_line(done.err)
    assert "error: the database cannot be reached: " in done.err
    assert "secret" not in done.err


def test_a_text_that_is_no_url(wf: Wf) -> None:
    done = wf("ps", "--url", "orders")
    assert done.code == 2
    assert done.err.startswith("error: the URL is not one of a PostgreSQL database\nhint: write it")


def test_a_url_that_cannot_be_parsed(wf: Wf) -> None:
    done = wf("ps", "--url", "postgresql://h/%zz")
    assert done.code == 2
    assert is_one_clear_line(done.err)


def test_a_sql_server_url_without_a_login(wf: Wf) -> None:
    done = wf("ps", "--url", "mssql://server/db")
    assert done.code == 2
    assert "it names no user" in done.err
    assert is_one_clear_line(done.err)


@pytest.mark.parametrize("command", [("db", "verify"), *CLIENT_COMMANDS], ids=" ".join)
def test_a_database_without_the_runtime(
    wf: Wf, empty_pg_url: str, command: tuple[str, ...]
) -> None:
    done = wf(*command, "--url", empty_pg_url)
    assert done.code == 1
    assert done.err.startswith("error: the database has no wfsql runtime\nhint: run ")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_newer_runtime_is_refused(wf: Wf, pg_url: str, command: tuple[str, ...]) -> None:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute(
            "insert into wf.schema_version (version) values (%s)", (RUNTIME_VERSION + 1,)
        )
    done = wf(*command, "--url", pg_url)
    assert done.code == 1
    assert f"runtime version {RUNTIME_VERSION + 1}" in done.err


def test_wf_url_is_the_default(wf: Wf, pg_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WF_URL", pg_url)
    assert wf("ps", "--json").out == "[]\n"


def test_a_database_that_does_not_exist(wf: Wf, pg_url: str) -> None:
    done = wf("ps", "--url", pg_url.replace("@/", "@/no_such_"))
    assert done.code == 1
    assert "does not exist" in done.err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{bad", "--context: not JSON: "),
        ("[1]", "--context: the context must be a JSON object"),
        ('{"a": 1, "a": 2}', '--context: key "a" stands twice in one object (10018)'),
        ('{"a": NaN}', "--context: number NaN is not finite (10018)"),
        ('{"a": "\\u0000"}', "--context: a string contains U+0000 (10018)"),
    ],
)
def test_a_context_that_no_engine_takes(wf: Wf, text: str, reason: str) -> None:
    done = wf("start", "w", "--context", text, "--url", NOBODY)
    assert done.code == 2
    assert done.err.startswith(f"error: {reason}")
    assert is_one_clear_line(done.err)


def test_a_context_file_that_is_missing(wf: Wf) -> None:
    done = wf("start", "w", "--context-file", "nope.json", "--url", NOBODY)
    assert done.code == 2
    assert done.err == "error: nope.json: no such file or directory\nhint: check the path\n"


def test_a_context_file_that_is_not_utf8(wf: Wf, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(b'{"a": "\xff"}')
    done = wf("start", "w", "--context-file", "c.json", "--url", NOBODY)
    assert done.code == 1
    assert done.err.startswith("error: c.json: not UTF-8 at byte 7\n")


def test_context_and_context_file_exclude_each_other(wf: Wf) -> None:
    done = wf("start", "w", "--context", "{}", "--context-file", "-", "--url", NOBODY)
    assert done.code == 2
    assert "exclude each other" in done.err

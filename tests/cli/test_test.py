"""`wf test`: runs cases, counts them, and says by its exit code whether all held."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Wf, is_one_line_each

GOOD = """\
workflow: greeting.wf
cases:
  - name: hello
    input: {name: Ann}
    actions: {hello: {output: {text: "Hello ${input.name}"}}}
    expect: {status: SUCCEEDED, output: {text: Hello Ann}, visited: [hello]}
"""
BAD = (
    GOOD
    + """\
  - name: wrong
    input: {name: Ann}
    actions: {hello: {output: {text: 1.0}}}
    expect: {output: {text: 1}}
"""
)


@pytest.fixture
def tests_beside(greeting: Path) -> Path:
    (greeting / "greeting.wftest.yaml").write_text(GOOD)
    return greeting


@pytest.mark.usefixtures("tests_beside")
def test_cases_that_hold_pass(wf: Wf) -> None:
    done = wf("test", ".")
    assert (done.code, done.out) == (0, "1 passed, 0 failed\n")


@pytest.mark.usefixtures("tests_beside")
def test_without_a_path_it_looks_here(wf: Wf) -> None:
    assert wf("test").out.endswith("1 passed, 0 failed\n")


def test_a_case_that_does_not_hold_fails_with_a_diff(wf: Wf, tests_beside: Path) -> None:
    (tests_beside / "greeting.wftest.yaml").write_text(BAD)
    done = wf("test", "greeting.wftest.yaml")
    assert done.code == 1
    assert "FAIL greeting.wftest.yaml:7: wrong (local)" in done.out
    assert '    -   "text": 1\n    +   "text": 1.0\n' in done.out
    assert done.out.splitlines()[-1] == "1 passed, 1 failed"


def test_a_broken_file_is_told_and_spoils_no_other(wf: Wf, tests_beside: Path) -> None:
    (tests_beside / "a.wftest.yaml").write_text("case: []\n")
    done = wf("test", ".")
    assert done.code == 1
    assert 'unknown key "case"' in done.err
    assert done.out.splitlines()[-1] == "1 passed, 0 failed"


@pytest.mark.parametrize(
    "arguments",
    [
        ("nowhere",),
        ("greeting.wf", "--record", "x.wftest.yaml", "--context", "{"),
        (".", "--order", "sideways"),
        (".", "--url", "postgresql://nowhere/x"),
        (".", "--record", "x.wftest.yaml"),
    ],
)
@pytest.mark.usefixtures("tests_beside")
def test_wrong_use_is_one_line_and_exit_code_2(wf: Wf, arguments: tuple[str, ...]) -> None:
    done = wf("test", *arguments)
    assert done.code == 2
    assert is_one_line_each(done.err)


def test_a_folder_without_test_files_is_wrong_use(wf: Wf) -> None:
    done = wf("test", ".")
    assert done.code == 2
    assert ".wftest.yaml" in done.err


@pytest.mark.usefixtures("tests_beside")
def test_a_server_that_does_not_answer_is_told(wf: Wf) -> None:
    done = wf("test", ".", "--engine", "pg", "--url", "postgresql://u@127.0.0.1:1/x")
    assert done.code == 1
    assert is_one_line_each(done.err)


@pytest.mark.usefixtures("tests_beside")
def test_a_sql_server_that_nobody_names_is_told(wf: Wf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WF_MSSQL_URL", raising=False)
    done = wf("test", ".", "--engine", "mssql")
    assert (done.code, "no SQL Server is named" in done.err) == (1, True)


@pytest.mark.usefixtures("tests_beside")
def test_the_json_report_stands_alone_on_stdout(wf: Wf) -> None:
    done = wf("test", ".", "--json", "--coverage")
    document = json.loads(done.out)
    assert (document["passed"], document["failed"]) == (1, 0)
    assert document["coverage"][0]["edges"][0]["taken"] == 1


def test_the_junit_report_is_written(wf: Wf, tests_beside: Path) -> None:
    assert wf("test", ".", "--junit", "report.xml").code == 0
    root = ElementTree.parse(tests_beside / "report.xml").getroot()
    assert [case.get("name") for case in root.iter("testcase")] == ["hello"]


@pytest.mark.usefixtures("tests_beside")
def test_coverage_counts_edges(wf: Wf) -> None:
    assert "greeting: 1 of 1 edges taken\n" in wf("test", ".", "--coverage").out


def test_only_cases_that_are_named(wf: Wf, tests_beside: Path) -> None:
    (tests_beside / "greeting.wftest.yaml").write_text(BAD)
    assert wf("test", ".", "-k", "hell").out == "1 passed, 0 failed\n"


@pytest.mark.usefixtures("tests_beside")
def test_verbose_names_every_case(wf: Wf) -> None:
    assert "PASSED greeting.wftest.yaml: hello\n" in wf("test", ".", "-v").out


def test_a_script_never_used_warns_and_fails_when_strict(wf: Wf, tests_beside: Path) -> None:
    text = GOOD.replace("{output: {text:", "[{output: {text:").replace('"}}}', '"}}, {}]}')
    (tests_beside / "greeting.wftest.yaml").write_text(text)
    assert (wf("test", ".").code, wf("test", ".", "--strict").code) == (0, 1)


def test_a_recorded_file_passes(wf: Wf, greeting: Path) -> None:
    done = wf(
        "test", "greeting.wf", "--record", "new.wftest.yaml",
        "--handlers", "greeting_handlers.py", "--context", '{"name": "Ann"}',
    )  # fmt: skip
    assert done.code == 0, done.err
    assert 'output: {"text": "Hello Ann"}' in (greeting / "new.wftest.yaml").read_text()
    assert wf("test", "new.wftest.yaml", "--strict").out == "1 passed, 0 failed\n"


def test_recording_never_touches_a_file_that_is_there(wf: Wf, tests_beside: Path) -> None:
    done = wf(
        "test", "greeting.wf", "--record", "greeting.wftest.yaml",
        "--handlers", "greeting_handlers.py", "--context", '{"name": "Ann"}',
    )  # fmt: skip
    assert done.code == 2
    assert (tests_beside / "greeting.wftest.yaml").read_text() == GOOD


@pytest.mark.usefixtures("tests_beside")
def test_cases_pass_in_postgresql_and_leave_no_database(wf: Wf, empty_pg_url: str) -> None:
    import psycopg

    done = wf("test", ".", "--engine", "pg", "--url", empty_pg_url)
    assert (done.code, done.out) == (0, "1 passed, 0 failed\n")
    with psycopg.connect(empty_pg_url) as connection:
        left = connection.execute(
            "select 1 from pg_database where datname like %s", (f"wftest_{os.getpid()}_%",)
        ).fetchall()
    assert left == []

"""Coverage of edges, the reports, and test files written from a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from compiler import json_values
from compiler.pipeline import compile_file
from local_runner.handlers import Handlers, Result
from tests.unit.testing.conftest import Read, Run, case
from wfsql.testing.coverage import measure
from wfsql.testing.local import LocalEngine
from wfsql.testing.reader import read_cases, wftest_schema
from wfsql.testing.record import record
from wfsql.testing.report import coverage_text, json_of, junit_of, summary, text_of
from wfsql.testing.runner import Runner, find_files
from wfsql.testing.workflows import Workflows

ALL = "    actions: {reserve: {}, book: {}, bill: {}}\n"
FAILING = case(ALL + "    expect: {status: FAILED}\n")
PASSING = case(ALL + "    expect: {status: SUCCEEDED}\n")


def test_coverage_names_the_ways_that_no_case_took(run: Run) -> None:
    [measured] = measure([run(PASSING)])
    missed = {(edge.parent, edge.way) for edge in measured.missed}
    assert ("if_1", "then") in missed
    assert ("foreach_1", "body") in missed
    assert ("if_1", "no else") not in missed
    assert ("order", "reserve") not in missed


def test_coverage_adds_the_cases_up(run: Run) -> None:
    taken = run(case("    input: {fail_code: 1}\n    actions: {reserve: {}}\n    expect: {}\n"))
    [measured] = measure([taken])
    assert ("if_1", "then") not in {(edge.parent, edge.way) for edge in measured.missed}


def test_coverage_text_has_lines_of_the_source(run: Run) -> None:
    text = coverage_text(measure([run(PASSING)]))
    assert ":6: if_1 → then was never taken" in text
    assert text.startswith("order: ")


def test_a_failure_is_shown_with_file_line_and_engine(run: Run) -> None:
    text = text_of(run(FAILING))
    assert text.startswith("FAIL order.wftest.yaml:3: one (local)\n")
    assert "status, expected in line 5:" in text


def test_the_last_line_counts(run: Run) -> None:
    lines = summary([run(FAILING), run(PASSING)]).splitlines()
    assert lines[-1] == "1 passed, 1 failed"


def test_data_cannot_steer_the_terminal(run: Run) -> None:
    actions = '    actions: {reserve: {code: -1, message: "\\e[31m"}}\n'
    assert "\x1b" not in text_of(run(case(actions + "    expect: {status: SUCCEEDED}\n")))


def test_the_json_report_has_places_and_differences(run: Run) -> None:
    document = json_of([run(FAILING)])
    assert (document["passed"], document["failed"]) == (0, 1)
    [failure] = document["cases"][0]["failures"]
    assert (failure["what"], failure["line"]) == ("status", 5)
    json_values.dumps(document)


def test_the_junit_report_is_xml_with_the_failure(run: Run) -> None:
    root = ElementTree.fromstring(junit_of([run(FAILING), run(PASSING)]))
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert suite.find("testcase/failure") is not None


def _pack(item: Any) -> Any:
    return Result(1, {"parcel": f"P{item}", "odd": "${x} \u2028 \U0001f600 \x85"}, None)


HANDLED: Any = {"t.do": lambda **given: _pack(given["item"]) if "item" in given else {"sum": 2}}


def test_what_is_recorded_passes(folder: Path) -> None:
    spec = compile_file(folder / "order.wf").specs[0]
    handlers = Handlers.from_functions(HANDLED)
    text = record(spec, handlers, {"items": [1, "a: b", "1"]}, "recorded", "order.wf")
    assert isinstance(text, str)
    path = folder / "recorded.wftest.yaml"
    path.write_text(text, encoding="utf-8")
    result = read_cases(path)
    assert result.file is not None, [d.message for d in result.diagnostics]
    [played] = Runner(LocalEngine(), Workflows(), is_strict=True).run_file(result.file)
    assert played.verdict == "passed", text_of(played)
    assert '"foreach_1[1]/pack"' in text


def test_a_failed_run_is_recorded_with_its_error(folder: Path) -> None:
    spec = compile_file(folder / "order.wf").specs[0]
    handlers = Handlers.from_functions(HANDLED)
    text = record(spec, handlers, {"fail_code": 1}, "recorded", "order.wf")
    assert isinstance(text, str)
    assert "status: FAILED" in text
    assert '"code": -20' in text


def test_test_files_are_found_below_folders_once(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.wftest.yaml", "sub/a.wftest.yaml", "other.yaml"):
        (tmp_path / name).write_text("cases: []\n")
    found = find_files([tmp_path, tmp_path / "b.wftest.yaml"])
    assert [path.name for path in found] == ["b.wftest.yaml", "a.wftest.yaml"]


def test_the_schema_is_a_json_schema() -> None:
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(wftest_schema())


@pytest.mark.parametrize(
    "key", sorted(wftest_schema()["$defs"]["case"]["properties"]["expect"]["properties"])
)
def test_every_expectation_of_the_schema_is_compared(read: Read, key: str) -> None:
    """A key that the schema lets in and the reader forgets would make cases that cannot fail."""
    values = {
        "status": "FAILED",
        "error": "{code: -99}",
        "output": "{nothing: 1}",
        "visited": "[pack]",
        "not_visited": "[book]",
        "inputs": "{book: {x: 1}}",
        "vars": "{total: -1}",
        "attempts": "{book: 9}",
        "statuses": "{book: SKIPPED}",
        "result_codes": "{book: 9}",
        "errors": "{book: {code: 1}}",
    }
    file, found = read(case(ALL + f"    expect: {{{key}: {values[key]}}}\n"))
    assert file is not None, found
    result = Runner(LocalEngine(), Workflows()).run_case(file, file.cases[0])
    assert result.verdict == "failed"

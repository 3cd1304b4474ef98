"""`wf check` for other programs, and `wf compile --check` for a pipeline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Wf = Callable[..., Any]


@pytest.fixture
def wrong(greeting: Path) -> Path:
    path = greeting / "wrong.wf"
    path.write_text(
        (greeting / "greeting.wf").read_text("utf-8").replace("greet.hello", "greet.helo"), "utf-8"
    )
    return path


def test_check_annotates_a_github_workflow(wf: Wf, wrong: Path) -> None:
    done = wf("check", "wrong.wf", "--format", "github")
    assert (done.code, done.out) == (
        1,
        "::error file=wrong.wf,line=4,col=18,endLine=4,endColumn=28,title=WF104"
        '::unknown action "greet.helo"%0Ahint: did you mean "greet.hello"?\n',
    )


def test_check_writes_sarif(wf: Wf, wrong: Path) -> None:
    done = wf("check", "wrong.wf", "--format", "sarif")
    (run,) = json.loads(done.out)["runs"]
    assert (done.code, [result["ruleId"] for result in run["results"]]) == (1, ["WF104"])
    assert run["tool"]["driver"]["rules"][0]["shortDescription"]["text"] == "unknown action"


def test_sarif_of_a_clean_file_is_a_log_without_results(wf: Wf, greeting: Path) -> None:
    done = wf("check", "greeting.wf", "--format", "sarif")
    assert (done.code, json.loads(done.out)["runs"][0]["results"]) == (0, [])


def test_compile_check_is_content_with_what_compile_wrote(wf: Wf, greeting: Path) -> None:
    wf("compile", "greeting.wf", "-o", "greeting.sql")
    done = wf("compile", "greeting.wf", "-o", "greeting.sql", "--check")
    assert (done.code, done.out) == (0, "")


def test_compile_check_shows_the_difference_and_writes_nothing(wf: Wf, greeting: Path) -> None:
    wf("compile", "greeting.wf", "-o", "greeting.sql")
    kept = Path("greeting.sql")
    kept.write_text(kept.read_text("utf-8").replace("-- workflow: greeting", "-- mine"), "utf-8")
    before = kept.read_bytes()
    done = wf("compile", "greeting.wf", "-o", "greeting.sql", "--check")
    assert done.code == 1
    assert done.out.startswith("--- greeting.sql (on disk)\n+++ greeting.sql (from source)\n")
    assert "\n--- mine\n+-- workflow: greeting\n" in done.out
    assert done.err == "greeting.sql: not what the source gives\n"
    assert kept.read_bytes() == before


def test_compile_check_sees_other_line_ends(wf: Wf, greeting: Path) -> None:
    wf("compile", "greeting.wf", "-o", "greeting.sql")
    kept = Path("greeting.sql")
    kept.write_bytes(kept.read_bytes().replace(b"\n", b"\r\n"))
    assert wf("compile", "greeting.wf", "-o", "greeting.sql", "--check").code == 1


def test_compile_check_of_a_missing_file(wf: Wf, greeting: Path) -> None:
    done = wf("compile", "greeting.wf", "-o", "gone.sql", "--check")
    assert (done.code, done.err.splitlines()[0]) == (1, "error: gone.sql: there is no such file")


def test_compile_check_needs_a_file(wf: Wf, greeting: Path) -> None:
    done = wf("compile", "greeting.wf", "--check")
    assert (done.code, done.err.splitlines()[0]) == (2, "error: --check compares with a file")

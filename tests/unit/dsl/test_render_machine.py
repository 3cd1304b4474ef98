"""Findings for other programs: GitHub's commands and SARIF."""

from __future__ import annotations

import json
from typing import Any

from dsl.diagnostics import Diagnostic, Label
from dsl.render_machine import render_github, render_sarif
from dsl.source import SourceFile, Span

WIDE = SourceFile("flows/a b,c.wf", 'x\n  "\U0001f600" bad word\n')
START = WIDE.text.index("bad")


def diagnostic(message: str = "unknown thing", **values: Any) -> Diagnostic:
    found: dict[str, Any] = {
        "code": "WF104",
        "severity": "error",
        "source": WIDE,
        "span": Span(START, START + 3),
        "message": message,
    }
    return Diagnostic(**(found | values))


def sarif(*found: Diagnostic) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(render_sarif(found, {"WF104": "unknown action"}, "1.2"))
    run: dict[str, Any] = log["runs"][0]
    return run


def test_github_command_has_place_title_and_hint() -> None:
    assert render_github([diagnostic(hint="say thing")]) == (
        "::error file=flows/a b%2Cc.wf,line=2,col=7,endLine=2,endColumn=10,title=WF104"
        "::unknown thing%0Ahint: say thing\n"
    )


def test_github_message_cannot_begin_a_second_command() -> None:
    shown = render_github([diagnostic('50%\n::error::"x"\r\x1b[31m')])
    assert shown.count("\n") == 1
    assert shown.endswith('::50%25%0A::error::"x"\\x0d\\x1b[31m\n')


def test_github_warning_is_a_warning() -> None:
    assert render_github([diagnostic(severity="warning")]).startswith("::warning file=")


def test_no_finding_gives_no_command() -> None:
    assert render_github([]) == ""


def test_sarif_columns_count_utf16_units() -> None:
    region = sarif(diagnostic())["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 2, "startColumn": 8, "endLine": 2, "endColumn": 11}


def test_sarif_file_name_is_a_uri() -> None:
    place = sarif(diagnostic())["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "flows/a%20b%2Cc.wf"


def test_sarif_names_each_rule_once() -> None:
    run = sarif(diagnostic(), diagnostic(code="WF105"), diagnostic("other"))
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["WF104", "WF105"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 1, 0]


def test_sarif_keeps_labels_as_related_places() -> None:
    (result,) = sarif(diagnostic(labels=(Label(span=Span(0, 1), message="first here"),)))["results"]
    (related,) = result["relatedLocations"]
    assert related["message"]["text"] == "first here"
    assert related["physicalLocation"]["region"]["startLine"] == 1

"""How findings are shown."""

from __future__ import annotations

import json

import pytest

from dsl.diagnostics import Diagnostic, Label
from dsl.plain import plain
from dsl.render import render_data, render_line, render_text
from dsl.source import SourceFile, Span


def finding(text: str, start: int, end: int, **more: object) -> Diagnostic:
    fields: dict[str, object] = {"message": "wrong", "severity": "error", "labels": ()}
    return Diagnostic(
        code="WF104",
        source=SourceFile("order.wf", text),
        span=Span(start, end),
        **(fields | more),  # type: ignore[arg-type]
    )


def test_a_finding_shows_its_line_caret_label_and_hint() -> None:
    label = Label(span=Span(0, 3), message="first here")
    shown = render_text([finding("abc\n  def g\n", 6, 9, hint="go on", labels=(label,))])
    assert shown == (
        "order.wf:2:3: error[WF104]: wrong\n"
        "  2 |   def g\n"
        "    |   ^^^\n"
        "  1 | abc\n"
        "    | --- first here\n"
        "  hint: go on\n"
    )


def test_the_caret_stands_under_its_place_after_tabs_and_wide_characters() -> None:
    lines = render_text([finding("\t漢e\u0301x", 4, 5)]).splitlines()
    assert lines[1] == "  1 |     漢e\u0301x"
    assert lines[2] == "    |        ^"


def test_a_span_over_lines_is_marked_to_the_end_of_the_first() -> None:
    lines = render_text([finding("ab\ncd", 1, 5)]).splitlines()
    assert lines[1:] == ["  1 | ab", "    |  ^"]


def test_an_empty_span_has_one_caret() -> None:
    assert render_text([finding("ab", 2, 2)]).splitlines()[2] == "    |   ^"


def test_a_long_line_is_cut_around_the_place() -> None:
    lines = render_text([finding("x" * 500 + "HERE" + "y" * 500, 500, 504)]).splitlines()
    under = lines[2].index("^")
    assert lines[1][under : under + 4] == "HERE"
    assert len(lines[1]) < 140


def test_a_long_line_of_letters_without_width_is_cut_all_the_same() -> None:
    lines = render_text([finding("\u0301" * 9_000 + "x" * 9_000, 9_000, 9_001)]).splitlines()
    assert lines[2].count("^") == 1
    assert len(lines[1]) < 1_000


def test_space_before_the_place_is_cut_off() -> None:
    lines = render_text([finding(" " * 60_000 + "HERE", 60_000, 60_004)]).splitlines()
    under = lines[2].index("^")
    assert (lines[1][under : under + 4], len(lines[1]) < 140) == ("HERE", True)


def test_a_span_far_longer_than_the_line_shown_is_cut() -> None:
    lines = render_text([finding("a" * 5_000, 0, 5_000)]).splitlines()
    assert lines[1].endswith("a…")
    assert len(lines[2]) < 140


def test_what_a_terminal_would_obey_is_shown_as_escapes() -> None:
    shown = render_text([finding("a\x1b[31m\u202eb", 0, 1, message="\x9b\u2028")])
    assert "\\x1b[31m\\u202eb" in shown
    assert "\\x9b\\u2028" in shown
    assert plain("a\nb\x00") == "a\\x0ab\\x00"


def test_twenty_findings_are_shown_and_the_others_counted() -> None:
    assert "more" not in render_text([finding("ab", 0, 1)] * 20)
    shown = render_text([finding("ab", 0, 1)] * 21)
    assert shown.count("[WF104]") == 20
    assert shown.endswith("\n1 more finding not shown\n")
    assert render_text([finding("ab", 0, 1)] * 25).endswith("\n5 more findings not shown\n")


def test_warnings_do_not_push_errors_out() -> None:
    warnings = [finding("ab", 0, 1, severity="warning")] * 30
    shown = render_text([*warnings, finding("ab", 1, 2)], most=3)
    assert [line.split(": ")[1] for line in shown.splitlines() if "WF104" in line] == [
        "warning[WF104]",
        "warning[WF104]",
        "error[WF104]",
    ]


def test_data_has_positions_for_programs() -> None:
    (found,) = render_data([finding("😀 x", 2, 3)])
    assert json.loads(json.dumps(found)) == {
        "file": "order.wf",
        "code": "WF104",
        "severity": "error",
        "message": "wrong",
        "hint": None,
        "span": {
            "start": {"line": 1, "column": 3, "utf16_column": 4, "offset": 2},
            "end": {"line": 1, "column": 4, "utf16_column": 5, "offset": 3},
        },
        "labels": [],
    }


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("start", [0, 3, 60, 117, 296])
def test_source_lines_fit_into_a_terminal(width: int, start: int) -> None:
    text = "x = 1\n" + "".join(f"{k:04d}" for k in range(75)) + "\n"
    lines = render_text([finding(text, 6 + start, 10 + start)], width=width).splitlines()
    assert max(len(line) for line in lines[1:]) <= width
    column = lines[2].index("^")
    assert lines[1][column : column + 4] == text[6 + start : 10 + start]


def test_wide_characters_fit_into_a_terminal() -> None:
    lines = render_text([finding("漢" * 60 + "HERE" + "字" * 60, 60, 64)], width=50).splitlines()
    columns = [sum(2 if char in "漢字" else 1 for char in line) for line in lines[1:]]
    assert columns[0] <= 50
    before = lines[1][: lines[1].index("HERE")]
    assert lines[2].index("^") == sum(2 if char == "漢" else 1 for char in before)


def test_a_terminal_of_no_width_gets_a_few_columns() -> None:
    lines = render_text([finding("x" * 90 + "HERE", 90, 94)], width=1).splitlines()
    assert "HERE" in lines[1]


def test_what_is_before_the_place_takes_the_room_that_the_rest_leaves() -> None:
    lines = render_text([finding("a" * 200 + "HERE", 200, 204)], width=60).splitlines()
    assert len(lines[1]) == 60


def test_a_finding_as_one_line_has_place_code_and_message() -> None:
    warning = finding("ab\ncd", 4, 5, severity="warning", message="odd\x1b", hint="go on")
    assert render_line(warning) == "order.wf:2:2: warning[WF104]: odd\\x1b"

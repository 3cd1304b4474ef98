"""Reading test files: what is wrong is told with its place, what is right keeps its digits."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from tests.unit.testing.conftest import Read, case, where
from wfsql.testing.cases import AdvanceClock, SendEvent
from wfsql.testing.reader import read_cases

GOOD = """\
workflow: order.wf#order
catalog: order.actions.yaml
engines: [local, pg]
rules: [S1.1]
cases:
  - name: first
    rules: [R12]
    order: seed 7
    xfail: {pg: not there yet}
    input: {n: 1.0, big: 9007199254740993}
    actions:
      reserve: [{code: 1}, {output: [1.50], message: m, takes: 1m30s}]
      pack: {}
    events:
      - {when: book, type: t, correlation_key: 17, payload: {a: 1}}
      - {advance: 3d}
    expect: {status: SUCCEEDED, output: null}
"""


def test_a_good_file_becomes_typed_cases(read: Read) -> None:
    file, found = read(GOOD)
    assert found == ()
    assert file is not None
    [one] = file.cases
    assert (one.workflow.file, one.workflow.name) == ("order.wf", "order")
    assert one.engines == ("local", "pg")
    assert one.rules == ("S1.1", "R12")
    assert (one.schedule.kind, one.schedule.seed) == ("seed", 7)
    assert one.known_faults == {"pg": "not there yet"}


def test_numbers_keep_their_digits(read: Read) -> None:
    file, _ = read(GOOD)
    assert file is not None
    given = file.cases[0].input
    assert (given["big"], str(given["n"])) == (9007199254740993, "1.0")
    output = file.cases[0].scripts[0].results[1].output
    assert output == [Decimal("1.50")]
    assert str(output[0]) == "1.50"


def test_fields_left_out_of_a_result_have_defaults(read: Read) -> None:
    file, _ = read(GOOD)
    assert file is not None
    result = file.cases[0].scripts[1].results[0]
    assert (result.code, result.output, result.message, result.takes_ms) == (0, {}, None, 0)


def test_steps_are_events_and_moves_of_the_clock(read: Read) -> None:
    file, _ = read(GOOD)
    assert file is not None
    event, advance = file.cases[0].steps
    assert isinstance(event, SendEvent)
    assert (event.type, event.when, event.correlation_key) == ("t", "book", "17")
    assert isinstance(advance, AdvanceClock)
    assert advance.milliseconds == 3 * 24 * 3600 * 1000


def test_expecting_null_is_not_expecting_nothing(read: Read) -> None:
    file, _ = read(GOOD)
    assert file is not None
    expect = file.cases[0].expect
    assert expect.output is not None
    assert expect.output.value is None
    assert expect.error is None


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        (
            case("    expects: {}\n    expect: {}\n"),
            (4, 5),
            'unknown key "expects"',
            'did you mean "expect"?',
        ),
        (
            case("    expect: {statsu: FAILED}\n"),
            (4, 14),
            'unknown key "statsu"',
            'did you mean "status"?',
        ),
        (
            case("    actions: {a: {outptu: 1}}\n    expect: {}\n"),
            (4, 19),
            'unknown key "outptu"',
            'did you mean "output"?',
        ),
        (
            case("    actions: {a: 5}\n    expect: {}\n"),
            (4, 18),
            "a mapping or a list is wanted here, not an integer",
            None,
        ),
        (
            case("    input: [1]\n    expect: {}\n"),
            (4, 12),
            "a mapping is wanted here, not a list",
            None,
        ),
        (
            case("    expect: {status: DONE}\n"),
            (4, 22),
            '"DONE" has not the form wanted here',
            None,
        ),
        ("cases: 5\n", (1, 8), "a list is wanted here, not an integer", None),
        ("workflow: order.wf\n", (1, 1), '"cases" is missing', "add `cases: …`"),
        (
            "cases:\n  - name: one\n    expect: {}\n",
            (2, 11),
            "no workflow is named, neither here nor for the whole file",
            "add `workflow: file.wf`",
        ),
        (
            case('    input: {}\n    input_json: "{}"\n    expect: {}\n'),
            (5, 17),
            "`input` and `input_json` exclude each other",
            "keep one",
        ),
        (
            case("    events: [{advance: 3d, type: x}]\n    expect: {}\n"),
            (4, 14),
            "`advance` stands alone in its step",
            None,
        ),
        (
            case("    events: [{payload: 1}]\n    expect: {}\n"),
            (4, 14),
            "a step has `type` (an event) or `advance`",
            None,
        ),
        (
            case("    actions: {a: {takes: 1s1s}}\n    expect: {}\n"),
            (4, 26),
            "a unit stands twice in one duration",
            None,
        ),
        (
            case("    expect: {}\n  - name: one\n    expect: {}\n"),
            (5, 11),
            'case "one" stands twice in this file',
            "rename one",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    read: Read, text: str, place: tuple[int, int], message: str, hint: str | None
) -> None:
    file, found = read(text)
    assert file is None
    assert [(where(d), d.message, d.hint) for d in found] == [(place, message, hint)]


def test_all_findings_come_in_one_run(read: Read) -> None:
    _, found = read(case("    one: 1\n    two: 2\n    expect: {three: 3}\n"))
    assert [d.message for d in found] == [
        'unknown key "one"',
        'unknown key "two"',
        'unknown key "three"',
    ]


def test_an_unknown_engine_of_xfail_is_told(read: Read) -> None:
    _, found = read(case("    xfail: {oracle: no}\n    expect: {}\n"))
    assert [(where(d), d.message) for d in found] == [((4, 13), 'there is no engine "oracle"')]


def test_a_repeated_key_is_refused(read: Read) -> None:
    _, found = read(case("    input: {a: 1, a: 2}\n    expect: {}\n"))
    assert [d.code for d in found] == ["WF502"]
    assert where(found[0]) == (4, 19)


def test_an_empty_file_is_told(read: Read) -> None:
    _, found = read("# nothing\n")
    assert [d.code for d in found] == ["WF502"]


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    result = read_cases(tmp_path / "none.wftest.yaml", "none.wftest.yaml")
    assert result.file is None
    assert [(d.code, d.source.name) for d in result.diagnostics] == [("WF501", "none.wftest.yaml")]


def test_a_file_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.wftest.yaml"
    path.write_bytes(b"cases:\n  - \xff\n")
    [found] = read_cases(path).diagnostics
    assert "not UTF-8" in found.message

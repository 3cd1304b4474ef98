"""Playing cases on the local runner: scripts, visits, orders, what does not fit the workflow."""

from __future__ import annotations

import pytest

from tests.unit.testing.conftest import Read, Run, case, where
from wfsql.testing.cases import REVERSE, Schedule
from wfsql.testing.local import LocalEngine
from wfsql.testing.runner import CaseResult, Runner
from wfsql.testing.workflows import Workflows

ALL = "    actions: {reserve: {}, pack: {output: {parcel: 'P${input.item}'}}, book: {}, bill: {}}\n"


def findings(result: CaseResult) -> list[tuple[str, tuple[int, int], str]]:
    return [(d.code, where(d), d.message) for d in result.diagnostics]


def test_a_case_that_holds_passes(run: Run) -> None:
    result = run(
        case(
            "    input: {items: [1, 2]}\n" + ALL + "    expect:\n"
            "      status: SUCCEEDED\n      error: null\n"
            "      output: {total: 1.0, packed: [P1, P2]}\n"
            "      visited: [reserve, pack, book, bill]\n      not_visited: [fail_1]\n"
            "      inputs: {reserve: {items: [1, 2]}, pack: [{item: 1}, {item: 2}]}\n"
            "      vars: {total: 1.0}\n      attempts: {pack: 1}\n"
            "      statuses: {'foreach_1[1]/pack': SUCCEEDED, order/if_1: SUCCEEDED}\n"
            "      result_codes: {foreach_1: 0}\n"
        )
    )
    assert result.verdict == "passed", (result.failures, result.diagnostics)


@pytest.mark.parametrize(
    ("expect", "what", "lines"),
    [
        ("{status: FAILED}", "status", ('- "FAILED"', '+ "SUCCEEDED"')),
        (
            "{output: {total: 1, packed: []}}",
            "output",
            ("  {", '    "packed": [],', '-   "total": 1', '+   "total": 1.0', "  }"),
        ),
        ("{vars: {total: 2}}", "vars.total", ("- 2", "+ 1.0")),
        ("{visited: [reserve]}", "visited", ("[", '-   "reserve"')),
        ("{not_visited: [book]}", "not_visited", ("book was visited",)),
        ("{inputs: {book: {x: 1}}}", "inputs.book", ("- {",)),
        ("{attempts: {book: 2}}", "attempts of order/parallel_1/book", ("- 2", "+ 1")),
        ("{statuses: {book: FAILED}}", "status of order/parallel_1/book", ('- "FAILED"',)),
        ("{result_codes: {if_1: 1}}", "result_code of order/if_1", ("- 1", "+ 0")),
        ("{statuses: {if_1/fail_1: FAILED}}", "if_1/fail_1", ("nothing was activated there",)),
        ("{error: {code: -1}}", "error", ("- {",)),
        ("{errors: {book: {code: -1}}}", "errors.book", ("- {",)),
    ],
)
def test_an_expectation_that_is_not_met_is_shown(
    run: Run, expect: str, what: str, lines: tuple[str, ...]
) -> None:
    result = run(case(ALL + f"    expect: {expect}\n"))
    assert result.verdict == "failed"
    [failure] = result.failures
    assert failure.what == what
    shown = "\n".join(failure.lines)
    assert all(line.strip() in shown for line in lines), shown
    assert result.file.source.position(failure.span.start).line == 5


def test_an_integer_is_not_a_decimal(run: Run) -> None:
    result = run(case(ALL + "    expect: {vars: {total: 1}}\n"))
    assert [failure.what for failure in result.failures] == ["vars.total"]


def test_error_code_is_whichever_is_there(run: Run) -> None:
    text = "    actions: {reserve: {code: -3}}\n    expect: {error: {code: -3}}\n"
    assert run(case(text)).verdict == "passed"
    text = "    input: {items: 5}\n    expect: {status: CREATED, error: {code: 10015}}\n"
    assert run(case(text)).verdict == "passed"


def test_an_action_without_a_script_is_an_error(run: Run) -> None:
    result = run(case("    actions: {reserve: {}}\n    expect: {}\n"))
    assert findings(result) == [
        (
            "WF509",
            (3, 11),
            'action "book" has no script; it was visited at order/parallel_1/book',
        )
    ]


def test_a_list_that_is_used_up_is_an_error_at_the_script(run: Run) -> None:
    actions = "    actions: {reserve: {}, pack: [{output: {parcel: 1}}]}\n"
    result = run(case("    input: {items: [1, 2]}\n" + actions + "    expect: {}\n"))
    [found] = findings(result)
    assert found[:2] == ("WF509", (5, 28))
    assert "1 entry" in found[2]


def test_a_script_by_path_goes_before_one_by_key(run: Run) -> None:
    actions = (
        "    actions: {reserve: {}, book: {}, bill: {}, pack: {output: {parcel: k}},\n"
        "      'foreach_1[1]/pack': {output: {parcel: p}}}\n"
    )
    expect = "    expect: {output: {total: 1.0, packed: [k, p, k]}}\n"
    result = run(case("    input: {items: [1, 2, 3]}\n" + actions + expect))
    assert result.verdict == "passed", result.failures


def test_a_script_never_used_is_a_warning(run: Run) -> None:
    result = run(case(ALL + "    expect: {}\n"))
    assert result.verdict == "passed"
    assert findings(result) == [("WF510", (4, 28), 'the script of "pack" was never used')]


def test_a_script_never_used_fails_when_strict(run: Run) -> None:
    assert run(case(ALL + "    expect: {}\n"), is_strict=True).verdict == "failed"


def test_a_script_of_a_node_that_shall_not_be_visited_may_stay(run: Run) -> None:
    result = run(case(ALL + "    expect: {not_visited: [pack]}\n"), is_strict=True)
    assert result.verdict == "passed"


def test_a_list_not_used_up_is_a_warning(run: Run) -> None:
    actions = "    actions: {reserve: [{}, {}], book: {}, bill: {}}\n"
    result = run(case(actions + "    expect: {}\n"))
    assert findings(result) == [("WF510", (4, 15), 'the script of "reserve" was used 1 times of 2')]


def test_a_placeholder_that_finds_nothing_is_an_error_at_its_result(run: Run) -> None:
    actions = "    actions: {reserve: {output: '${input.nothing}'}}\n"
    result = run(case(actions + "    expect: {}\n"))
    assert findings(result) == [("WF513", (4, 24), "${input.nothing} is not in the action's input")]


def test_a_whole_placeholder_keeps_its_type_and_an_escaped_one_is_text(run: Run) -> None:
    actions = (
        "    actions: {reserve: {}, book: {}, bill: {},\n"
        "      pack: {output: {parcel: ['${input.item}', '<${input.item}>', '$${x}']}}}\n"
    )
    expect = "    expect: {output: {total: 1.0, packed: [[1.50, '<1.50>', '${x}']]}}\n"
    result = run(case("    input: {items: [1.50]}\n" + actions + expect))
    assert result.verdict == "passed", result.failures


@pytest.mark.parametrize(
    ("body", "place", "message", "hint"),
    [
        (
            "    actions: {resrve: {}}\n    expect: {}\n",
            (4, 15),
            'there is no action "resrve"',
            'did you mean "reserve"?',
        ),
        (
            "    actions: {if_1: {}}\n    expect: {}\n",
            (4, 15),
            '"if_1" is a IF, not an ACTION',
            None,
        ),
        (
            "    actions: {'foreach_2[0]/pack': {}}\n    expect: {}\n",
            (4, 15),
            'there is no action "foreach_2[0]/pack"',
            "known here: reserve, pack, book, bill",
        ),
        (
            "    expect: {statuses: {'foreach_1[0]/pck': FAILED}}\n",
            (4, 25),
            'there is no node "foreach_1[0]/pck"',
            'did you mean "foreach_1[]/pack"?',
        ),
        (
            "    expect: {vars: {totl: 1}}\n",
            (4, 21),
            'the workflow has no variable "totl" of its own',
            'did you mean "total"?',
        ),
        (
            "    expect: {visited: [if_1]}\n",
            (4, 23),
            'there is no ACTION or WAIT_EVENT "if_1"',
            "known here: reserve, pack, book, bill",
        ),
        (
            "    expect: {inputs: {foreach_1: {}}}\n",
            (4, 23),
            '"foreach_1" is a FOREACH and has no input',
            None,
        ),
        (
            "    events: [{when: delivered, type: x}]\n    expect: {}\n",
            (4, 14),
            'there is no WAIT_EVENT "delivered"',
            None,
        ),
    ],
)
def test_what_the_workflow_does_not_have_is_told_before_anything_runs(
    run: Run, body: str, place: tuple[int, int], message: str, hint: str | None
) -> None:
    result = run(case(body))
    assert result.played is None
    assert [(where(d), d.message, d.hint) for d in result.diagnostics] == [(place, message, hint)]


def test_a_workflow_file_that_is_not_there_is_told(run: Run) -> None:
    result = run("workflow: none.wf\ncases:\n  - name: one\n    expect: {}\n")
    assert findings(result) == [("WF506", (1, 11), "there is no workflow file none.wf")]


def test_a_workflow_name_that_is_not_there_is_told(run: Run) -> None:
    result = run("workflow: order.wf#ordr\ncases:\n  - name: one\n    expect: {}\n")
    assert findings(result) == [("WF506", (1, 11), 'order.wf has no workflow "ordr"')]


def test_reverse_submits_the_last_claimed_first(run: Run) -> None:
    expect = (
        "    order: reverse\n    expect: {visited: [reserve, bill, book], not_visited: [pack]}\n"
    )
    result = run(case(ALL + expect))
    assert result.verdict == "passed", result.failures


def test_visits_are_not_compared_in_another_order(run: Run) -> None:
    text = case(ALL + "    expect: {visited: [reserve, book, bill], not_visited: [pack]}\n")
    assert run(text, REVERSE).verdict == "passed"


def test_a_seed_gives_the_same_order_each_time(run: Run) -> None:
    text = case(ALL + "    expect: {}\n")
    results = [run(text, Schedule(kind="seed", seed=3)) for _ in range(2)]
    visits = [result.played.visited for result in results if result.played is not None]
    assert len(visits) == 2
    assert visits[0] == visits[1]


def test_a_case_for_other_engines_is_skipped(run: Run) -> None:
    result = run(case("    engines: [pg]\n    expect: {status: FAILED}\n"))
    assert result.verdict == "skipped"


def test_a_known_fault_that_shows_is_no_failure(run: Run) -> None:
    result = run(case("    xfail: soon\n" + ALL + "    expect: {status: FAILED}\n"))
    assert (result.verdict, result.note) == ("known_fault", "soon")


def test_a_known_fault_that_has_gone_is_a_failure(run: Run) -> None:
    text = "    xfail: {local: soon}\n" + ALL + "    expect: {not_visited: [pack]}\n"
    result = run(case(text))
    assert result.verdict == "failed"
    assert result.note is not None
    assert "has to go" in result.note


def test_what_cannot_be_stored_is_refused_at_the_door(run: Run) -> None:
    text = """    input_json: '{"items": [1e400]}'
    expect: {status: REFUSED, error: {code: 10018}}
"""
    assert run(case(text)).verdict == "passed"


def test_input_json_that_is_no_json_is_told(run: Run) -> None:
    [found] = findings(run(case("    input_json: '{'\n    expect: {}\n")))
    assert found[0] == "WF504"


def test_the_local_runner_refuses_to_wait(read: Read) -> None:
    file, _ = read(case("    expect: {}\n"))
    assert file is not None
    (file.path.parent / "order.wf").write_text(
        'workflow order { wait_event go on "x" { } }', encoding="utf-8"
    )
    result = Runner(LocalEngine(), Workflows()).run_case(file, file.cases[0])
    assert result.verdict == "failed"
    assert result.note is not None
    assert "waits for events (go)" in result.note

"""Each node type, failures and their copies, and the order in which things happen (R12)."""

from __future__ import annotations

from typing import Any

import pytest

from local_runner.commands import CancelAction, InstanceEnded, RunAction
from local_runner.machine import Machine
from tests.unit.local_runner.graphs import (
    action,
    assign,
    ctx,
    fail,
    foreach,
    if_,
    lit,
    parallel,
    repeat,
    sequence,
    switch,
    var,
    while_,
    workflow,
)
from tests.unit.local_runner.play import play, rows, statuses, variables


def add_one(name: str, owner: str = "w") -> list[list[Any]]:
    return [*var(name, owner=owner), ["lit", 1], ["add"]]


def less(name: str, limit: int) -> list[list[Any]]:
    return [*var(name), ["lit", limit], ["lt"]]


def codes(**by_key: int) -> Any:
    return lambda command: (by_key.get(command.node_key, 0), None)


# -- actions


def test_an_action_gets_its_input_with_types_kept() -> None:
    spec = workflow(
        [action("a", template={"n": "${var.n}", "text": "n=${var.n}"})],
        variables=[("n", "var", lit(7))],
    )
    machine = Machine(spec, "i", {})
    (command,) = machine.start()
    assert isinstance(command, RunAction)
    assert command.input == {"n": 7, "text": "n=7"}
    assert (command.path, command.action, command.attempt) == ("w/a", "do", 1)


def test_sets_of_an_action_run_in_order_and_see_each_other() -> None:
    sets = [("x", [["out", ["v"]]]), ("y", add_one("x")), ("c", [["code"]])]
    machine = play(workflow([action("a", sets=sets)]), answer=lambda c: (3, {"v": 4}))
    assert variables(machine) == {"x": 4, "y": 5, "c": 3}
    assert rows(machine)["w/a"]["result_code"] == 3


def test_a_failing_set_fails_the_node_by_an_engine_code() -> None:
    machine = play(
        workflow([action("a", sets=[("x", [["out", ["v"]]])])]), answer=lambda c: (0, {})
    )
    row = rows(machine)["w/a"]
    assert (row["status"], row["result_code"], row["output"]) == ("FAILED", None, {})
    assert row["error"] == {
        "code": None,
        "engine_code": 10001,
        "message": "w/a: out.v is not there",
        "node": "a",
        "path": "w/a",
    }


def test_a_negative_code_fails_the_node_and_the_instance() -> None:
    machine = play(workflow([action("a")]), answer=codes(a=-3))
    error = {
        "code": -3,
        "engine_code": None,
        "message": "result code -3",
        "node": "a",
        "path": "w/a",
    }
    found = rows(machine)
    assert found["w/a"]["error"] == found["w"]["error"] == error
    assert found["w"]["result_code"] == -3
    assert machine.status == "FAILED"


def test_the_message_of_a_failing_action_is_kept() -> None:
    machine = play(workflow([action("a")]), answer=lambda c: (-1, None, "no stock"))
    assert machine.error is not None
    assert machine.error.message == "no stock"


def test_an_input_that_cannot_be_built_fails_the_node_and_uses_its_attempt() -> None:
    spec = workflow(
        [action("a", template={"x": "${var.gone.y}"})], variables=[("gone", "set", None)]
    )
    row = rows(play(spec))["w/a"]
    assert (row["status"], row["attempts"], row["input"]) == ("FAILED", 1, None)
    assert row["error"]["message"] == "w/a: var.gone.y is not there"


def test_the_sets_of_an_action_see_its_own_result() -> None:
    spec = workflow([action("a", sets=[("x", ctx("task", "a", "output"))])])
    assert variables(play(spec, answer=lambda c: (0, "done"))) == {"x": "done"}


def test_a_result_that_nobody_waits_for_changes_nothing() -> None:
    machine = Machine(workflow([action("a"), action("b")]), "i", {})
    machine.start()
    first = machine.complete(2, 0, None)
    assert len(first) == 1
    assert machine.complete(2, -1, None) == ()
    assert machine.status == "RUNNING"


# -- sequence, set, fail


def test_an_empty_workflow_succeeds_at_once() -> None:
    machine = Machine(workflow([]), "i", {})
    assert machine.start() == (InstanceEnded("SUCCEEDED", None, None),)


def test_a_set_writes_and_succeeds() -> None:
    machine = play(workflow([assign("set_1", "x", lit([1]))]))
    assert variables(machine) == {"x": [1]}
    assert rows(machine)["w/set_1"]["result_code"] == 0


def test_a_fail_builds_its_message_and_ends_the_workflow() -> None:
    message = [["lit", "no "], *var("x"), ["cat", 2]]
    spec = workflow(
        [fail("fail_1", -20, message), action("never")], variables=[("x", "var", lit(5))]
    )
    machine = play(spec)
    assert machine.error is not None
    assert (machine.error.code, machine.error.message) == (-20, "no 5")
    assert "w/never" not in rows(machine)


def test_a_fail_whose_message_cannot_be_built_fails_by_the_engine() -> None:
    machine = play(workflow([fail("fail_1", -20, [["lit", "x"], ["lit", None], ["cat", 2]])]))
    row = rows(machine)["w/fail_1"]
    assert (row["result_code"], row["error"]["engine_code"]) == (None, 10017)


def test_the_message_of_a_fail_is_a_string() -> None:
    machine = play(workflow([fail("fail_1", -20, lit(5))]))
    assert machine.error is not None
    assert machine.error.message == "w/fail_1: integer cannot stand inside a string"


# -- if and switch


@pytest.mark.parametrize(("condition", "taken"), [(1, "w/yes"), (None, "w/no")])
def test_if_takes_its_branch(condition: Any, taken: str) -> None:
    spec = workflow([if_("if_1", lit(condition), [action("yes")], [action("no")])])
    found = statuses(play(spec))
    assert [path for path in ("w/if_1/yes", "w/if_1/no") if path in found] == [
        taken.replace("w/", "w/if_1/")
    ]


def test_if_without_else_succeeds_when_false() -> None:
    machine = play(workflow([if_("if_1", lit(False), [action("yes")])]))
    assert statuses(machine) == {"w": "SUCCEEDED", "w/if_1": "SUCCEEDED"}


def test_if_refuses_a_text_as_its_condition() -> None:
    machine = play(workflow([if_("if_1", lit("false"), [action("yes")])]))
    assert machine.error is not None
    assert machine.error.message == (
        "w/if_1: a condition takes a boolean, an integer or null, not string"
    )


def test_switch_takes_the_first_equal_case() -> None:
    cases = [([1, 2], [action("low")]), ([2, 3], [action("high")])]
    found = statuses(play(workflow([switch("switch_1", lit(2), cases)])))
    assert found == {"w": "SUCCEEDED", "w/switch_1": "SUCCEEDED", "w/switch_1/low": "SUCCEEDED"}


def test_switch_takes_the_default() -> None:
    spec = workflow([switch("switch_1", lit("x"), [([1], [])], [action("other")])])
    assert "w/switch_1/other" in statuses(play(spec))


def test_switch_without_a_fitting_case_fails() -> None:
    machine = play(workflow([switch("switch_1", lit("x"), [([1], [])])]))
    assert machine.error is not None
    assert (machine.error.engine_code, machine.error.message) == (
        10004,
        "w/switch_1: no case fits and there is no default",
    )


def test_switch_refuses_to_compare_an_object() -> None:
    machine = play(workflow([switch("switch_1", lit({}), [([1], [])], [])]))
    assert machine.error is not None
    assert machine.error.message == "w/switch_1: cannot compare object with integer"


# -- loops


def test_repeat_counts_from_zero() -> None:
    body = [action("a", template={"i": "${var.i}", "no": "${ctx.iterationNo}"})]
    body[0].template["i"] = "${var.i}"
    machine = play(workflow([repeat("repeat_1", lit(2), body, counter="i")]))
    found = rows(machine)
    assert found["w/repeat_1[0]/a"]["input"] == {"i": 0, "no": 1}
    assert found["w/repeat_1[1]/a"]["input"] == {"i": 1, "no": 2}
    assert found["w/repeat_1[1]"]["variables"] == {"i": 1}


@pytest.mark.parametrize("count", [0, -5])
def test_repeat_of_nothing_succeeds(count: int) -> None:
    machine = play(workflow([repeat("repeat_1", lit(count), [action("a")])]))
    assert statuses(machine) == {"w": "SUCCEEDED", "w/repeat_1": "SUCCEEDED"}


def test_repeat_takes_integers_only() -> None:
    machine = play(workflow([repeat("repeat_1", lit(True), [action("a")])]))
    assert machine.error is not None
    assert machine.error.message == "w/repeat_1: repeat takes an integer, not boolean"


def test_a_while_repairs_until_its_condition_is_false() -> None:
    qualities = iter([40, 70, 90])
    repair = action("repair", sets=[("quality", [["out", ["q"]]])])
    spec = workflow(
        [while_("gate", less("quality", 80), [repair])],
        variables=[("quality", "var", lit(0))],
    )
    machine = play(spec, answer=lambda c: (0, {"q": next(qualities)}))
    assert variables(machine) == {"quality": 90}
    assert [path for path in rows(machine) if path.endswith("/repair")] == [
        "w/gate[0]/repair",
        "w/gate[1]/repair",
        "w/gate[2]/repair",
    ]


def test_a_while_that_passes_its_max_fails() -> None:
    machine = play(workflow([while_("while_1", lit(True), [action("a")], max=2)]))
    assert machine.error is not None
    assert (machine.error.engine_code, machine.error.message) == (
        10012,
        "w/while_1: while passed its max of 2",
    )
    assert statuses(machine)["w/while_1[1]"] == "SUCCEEDED"


def test_a_while_may_run_exactly_max_times() -> None:
    spec = workflow(
        [while_("while_1", less("n", 2), [assign("set_1", "n", add_one("n"))], max=2)],
        variables=[("n", "var", lit(0))],
    )
    assert play(spec).status == "SUCCEEDED"


def test_foreach_gives_item_and_index() -> None:
    body = [action("a", template={"v": "${var.item.v}", "i": "${var.i}", "c": "${ctx.item}"})]
    spec = workflow([foreach("f", "item", lit([{"v": 1}, {"v": 2}]), body, index="i")])
    found = rows(play(spec))
    assert found["w/f[1]/a"]["input"] == {"v": 2, "i": 1, "c": {"v": 2}}
    assert found["w/f[1]"]["variables"] == {"item": {"v": 2}, "i": 1}
    assert found["w/f[1]"]["type"] == "SEQUENCE"


def test_foreach_reads_its_collection_once() -> None:
    body = [assign("set_1", "items", lit([]))]
    spec = workflow(
        [foreach("f", "item", var("items"), body)], variables=[("items", "var", lit([1, 2]))]
    )
    assert "w/f[1]/set_1" in statuses(play(spec))


@pytest.mark.parametrize(
    ("collection", "code", "text"),
    [
        (lit(None), 10001, "the collection is null"),
        (var("gone"), 10001, "var.gone is not there"),
        (lit({}), 10009, "the collection is an array or nothing else, not object"),
    ],
)
def test_foreach_over_what_is_no_array_fails(collection: Any, code: int, text: str) -> None:
    machine = play(workflow([foreach("f", "item", collection, [action("a")])]))
    assert machine.error is not None
    assert (machine.error.engine_code, machine.error.message) == (code, f"w/f: {text}")


def test_foreach_over_nothing_collects_nothing() -> None:
    spec = workflow([foreach("f", "item", lit([]), [action("a")], collects=[("all", lit(1))])])
    machine = play(spec)
    assert variables(machine) == {"all": []}


def test_collect_is_in_iteration_order_whatever_ends_first() -> None:
    spec = workflow(
        [
            foreach(
                "f",
                "item",
                lit(["a", "b", "c"]),
                [action("pack", template={"x": "${var.item}"})],
                parallel=0,
                collects=[("all", ctx("task", "pack", "output", "x"))],
            )
        ]
    )
    machine = play(spec, answer=lambda c: (0, c.input), reverse=True)
    assert variables(machine) == {"all": ["a", "b", "c"]}
    assert rows(machine)["w/f[2]"]["output"] == {"all": "c"}


def test_a_collect_that_fails_fails_its_iteration() -> None:
    spec = workflow(
        [foreach("f", "item", lit([1]), [], collects=[("all", ctx("task", "gone", "output"))])]
    )
    machine = play(spec)
    assert machine.error is not None
    assert machine.error.message == "w/f[0]: ctx.task.gone.output is not there"
    assert variables(machine) == {}


def test_a_failed_foreach_writes_no_collect() -> None:
    spec = workflow([foreach("f", "item", lit([1, 2]), [action("a")], collects=[("all", lit(1))])])
    machine = play(spec, answer=lambda c: (0 if c.iteration_no == 1 else -1, None))
    assert machine.status == "FAILED"
    assert variables(machine) == {}
    assert rows(machine)["w/f[0]"]["output"] == {"all": 1}


def test_parallel_foreach_keeps_at_most_n_open_and_starts_in_order() -> None:
    spec = workflow([foreach("f", "item", lit([1, 2, 3]), [action("a")], parallel=2)])
    machine = Machine(spec, "i", {})
    first = machine.start()
    assert [c.path for c in first if isinstance(c, RunAction)] == ["w/f[0]/a", "w/f[1]/a"]
    (second,) = machine.complete(first[1].execution_id, 0, None)  # type: ignore[union-attr]
    assert isinstance(second, RunAction)
    assert second.path == "w/f[2]/a"


def test_nested_foreach_sees_the_outer_item() -> None:
    inner = foreach(
        "g", "b", var("a", "bs", owner="f.body"), [action("x", template=["${var.a.n}", "${var.b}"])]
    )
    items = [{"n": 1, "bs": [10]}, {"n": 2, "bs": [20, 21]}]
    machine = play(workflow([foreach("f", "a", lit(items), [inner])]))
    inputs = {path: row["input"] for path, row in rows(machine).items() if path.endswith("/x")}
    assert inputs == {
        "w/f[0]/g[0]/x": [1, 10],
        "w/f[1]/g[0]/x": [2, 20],
        "w/f[1]/g[1]/x": [2, 21],
    }


def test_variables_of_a_body_are_made_anew_in_each_iteration() -> None:
    loop = repeat("r", lit(2), [assign("set_1", "n", add_one("n", "r.body"), "r.body")])
    loop.edges[0][2].variables.append(("n", "var", lit(0)))
    found = rows(play(workflow([loop])))
    assert [found[f"w/r[{i}]"]["variables"] for i in (0, 1)] == [{"n": 1}, {"n": 1}]


def test_a_variable_whose_value_cannot_be_made_fails_its_body() -> None:
    loop = repeat("r", lit(2), [action("a")])
    loop.edges[0][2].variables.append(("n", "var", var("gone")))
    machine = play(workflow([loop]))
    assert machine.error is not None
    assert (machine.error.node, machine.error.message) == (
        "r.body",
        "w/r[0]: var.gone is not there",
    )


@pytest.mark.parametrize("kind", ["repeat", "while"])
def test_keep_leaves_the_newest_finished_iterations(kind: str) -> None:
    body = [assign("set_1", "n", add_one("n")), action("a")]
    loop = repeat("l", lit(5), body) if kind == "repeat" else while_("l", less("n", 5), body)
    loop.attributes["keep"] = 2
    machine = play(workflow([loop], variables=[("n", "var", lit(0))]))
    found = [path for path in statuses(machine) if path.endswith("]")]
    assert found == ["w/l[3]", "w/l[4]"]
    assert variables(machine) == {"n": 5}


def test_what_keep_drops_is_forgotten_with_all_below_it() -> None:
    inner = repeat("i", lit(3), [action("a")])
    loop = repeat("l", lit(50), [inner])
    loop.attributes["keep"] = inner.attributes["keep"] = 1
    machine = play(workflow([loop]))
    assert list(statuses(machine)) == [
        "w",
        "w/l",
        "w/l[49]",
        "w/l[49]/i",
        "w/l[49]/i[2]",
        "w/l[49]/i[2]/a",
    ]
    assert len(machine.executions) == 6


def test_an_iteration_that_fails_drops_none() -> None:
    loop = repeat("l", lit(5), [action("a")])
    loop.attributes["keep"] = 1
    machine = play(workflow([loop]), answer=lambda c: (-1 if c.iteration_no == 3 else 0, None))
    assert [path for path in statuses(machine) if path.endswith("]")] == ["w/l[1]", "w/l[2]"]


# -- parallel


def test_parallel_offers_all_branches_in_order() -> None:
    machine = Machine(workflow([parallel("p", [action("a"), action("b")])]), "i", {})
    assert [c.node_key for c in machine.start() if isinstance(c, RunAction)] == ["a", "b"]


def test_parallel_limit_starts_the_next_when_one_has_ended() -> None:
    spec = workflow([parallel("p", [action("a"), action("b"), action("c")], limit=2)])
    machine = Machine(spec, "i", {})
    assert [c.node_key for c in machine.start() if isinstance(c, RunAction)] == ["a", "b"]
    (third,) = machine.complete(4, 0, None)
    assert isinstance(third, RunAction)
    assert third.node_key == "c"


def test_a_failing_branch_cancels_the_others_and_tells_the_driver() -> None:
    inner = sequence("s", [action("b"), action("never")])
    machine = Machine(workflow([parallel("p", [action("a"), inner])]), "i", {})
    commands = machine.start()
    a, b = (c.execution_id for c in commands if isinstance(c, RunAction))
    machine.begin(b)
    ended = machine.complete(a, -1, None)
    assert CancelAction(b) in ended
    assert isinstance(ended[-1], InstanceEnded)
    assert statuses(machine) == {
        "w": "FAILED",
        "w/p": "FAILED",
        "w/p/a": "FAILED",
        "w/p/s": "CANCELLED",
        "w/p/s/b": "CANCELLED",
    }
    assert rows(machine)["w/p/s/b"]["attempts"] == 1
    assert machine.complete(b, 0, None) == ()


def test_an_action_cancelled_before_it_ran_had_no_attempt() -> None:
    machine = play(workflow([parallel("p", [action("a"), action("b")])]), answer=codes(a=-1))
    row = rows(machine)["w/p/b"]
    assert (row["status"], row["attempts"], row["result_code"], row["error"]) == (
        "CANCELLED",
        0,
        None,
        None,
    )


def test_a_finished_branch_stays_as_it_is_when_another_fails() -> None:
    machine = play(workflow([parallel("p", [action("a"), action("b")])]), answer=codes(b=-1))
    assert statuses(machine)["w/p/a"] == "SUCCEEDED"


def test_what_a_failure_closed_is_dropped_from_the_agenda() -> None:
    # `fail_1` reaches p one level after p's children were looked at, so the set of the second
    # branch has run and the set after it has not.
    branch = sequence("s", [assign("set_1", "x", lit(1)), assign("set_2", "y", lit(1))])
    machine = play(workflow([parallel("p", [fail("fail_1", -1, lit("no")), branch])]))
    assert statuses(machine)["w/p/s"] == "CANCELLED"
    assert variables(machine) == {}


def test_the_first_failure_of_an_agenda_is_the_one_reported() -> None:
    branches = [fail("fail_1", -1, lit("first")), fail("fail_2", -2, lit("second"))]
    machine = play(workflow([parallel("p", branches)]))
    assert machine.error is not None
    assert machine.error.message == "first"
    assert statuses(machine)["w/p/fail_2"] == "FAILED"


def test_a_failed_iteration_cancels_the_others() -> None:
    spec = workflow([foreach("f", "item", lit([1, 2, 3]), [action("a")], parallel=0)])
    machine = play(spec, answer=lambda c: (-1 if c.iteration_no == 2 else 0, None))
    found = statuses(machine)
    assert [found[f"w/f[{i}]"] for i in range(3)] == ["SUCCEEDED", "FAILED", "CANCELLED"]


# -- claims


def test_claim_order_is_priority_then_age() -> None:
    spec = workflow([parallel("p", [action("a"), action("b", priority=5), action("c")])])
    seen: list[str] = []
    play(spec, answer=lambda c: (seen.append(c.node_key), (0, None))[1])
    assert seen == ["b", "a", "c"]


def test_ids_rise_level_by_level() -> None:
    branches = [sequence("s", [action("a")]), sequence("t", [action("b")])]
    machine = Machine(workflow([parallel("p", branches)]), "i", {})
    machine.start()
    assert [e.node.key for e in machine.executions.values()] == ["w", "p", "s", "t", "a", "b"]


def test_the_work_limit_stops_an_endless_call() -> None:
    spec = workflow([while_("while_1", lit(True), [], max=1_000_000)])
    machine = Machine(spec, "i", {}, work_limit=50)
    (ended,) = machine.start()
    assert isinstance(ended, InstanceEnded)
    assert ended.error is not None
    assert ended.error.engine_code == 10019


def test_cancelling_ends_everything_open() -> None:
    machine = Machine(workflow([parallel("p", [action("a"), action("b")])]), "i", {})
    machine.start()
    ended = machine.cancel()
    assert ended[-1] == InstanceEnded("CANCELLED", None, None)
    assert set(statuses(machine).values()) == {"CANCELLED"}


# -- output


def test_the_output_is_made_in_the_root_scope() -> None:
    spec = workflow(
        [assign("set_1", "x", lit(2))], outputs=[("x", var("x")), ("y", [["lit", 1], ["neg"]])]
    )
    assert play(spec).output == {"x": 2, "y": -1}


def test_a_name_never_set_is_null_in_the_output() -> None:
    spec = workflow([], variables=[("x", "set", None)], outputs=[("x", var("x"))])
    assert play(spec).output == {"x": None}


def test_another_error_in_the_output_fails_the_instance() -> None:
    spec = workflow([], outputs=[("x", var("gone"))])
    machine = play(spec)
    assert (machine.status, machine.output) == ("FAILED", None)
    assert machine.error is not None
    assert (machine.error.path, machine.error.message) == ("w", "w: var.gone is not there")
    assert rows(machine)["w"]["status"] == "FAILED"


# -- size


def test_512_levels_of_nesting() -> None:
    part = action("deep", template={"n": "${var.n}"})
    for level in range(511, 0, -1):
        part = sequence(f"s{level}", [part])
    machine = play(workflow([part], variables=[("n", "var", lit(1))]))
    assert machine.status == "SUCCEEDED"
    assert len(rows(machine)) == 513


def test_a_failure_climbs_512_levels() -> None:
    part = action("deep")
    for level in range(511, 0, -1):
        part = if_(f"i{level}", lit(True), [part])
    machine = play(workflow([part]), answer=codes(deep=-9))
    assert (machine.status, rows(machine)["w"]["result_code"]) == ("FAILED", -9)


def test_10_000_sets_in_one_call() -> None:
    sets = [assign(f"set_{i}", "n", add_one("n")) for i in range(10_000)]
    machine = play(workflow(sets, variables=[("n", "var", lit(0))]))
    assert variables(machine) == {"n": 10_000}

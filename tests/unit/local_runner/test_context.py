"""What `ctx` gives at each place (R27)."""

from __future__ import annotations

from typing import Any

from compiler.spec import GraphSpec
from local_runner.commands import RunAction
from tests.unit.local_runner.graphs import (
    Part,
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
    while_,
    workflow,
)
from tests.unit.local_runner.play import play, rows, variables


def read(key: str, *references: str) -> Part:
    """An action whose input is what the references give."""
    return action(key, template=[f"${{ctx.{reference}}}" for reference in references])


def run(*children: Part, context: dict[str, Any] | None = None) -> dict[str, Any]:
    machine = play(workflow(children), context, lambda command: (4, {"of": command.path}))
    return rows(machine)


def message_of(found: dict[str, Any]) -> str:
    text: str = found["w"]["error"]["message"]
    return text


def test_task_output_and_result_code() -> None:
    found = run(action("a"), read("b", "task.a.output.of", "task.a.resultCode"))
    assert found["w/b"]["input"] == ["w/a", 4]


def test_a_task_that_has_not_run_is_not_there() -> None:
    found = run(read("b", "task.c.output"), action("c"))
    assert message_of(found) == "w/b: ctx.task.c.output is not there"


def test_a_task_of_the_own_iteration_is_seen() -> None:
    found = run(foreach("f", "x", lit([1, 2]), [action("a"), read("b", "task.a.output.of")]))
    assert found["w/f[0]/b"]["input"] == ["w/f[0]/a"]
    assert found["w/f[1]/b"]["input"] == ["w/f[1]/a"]


def test_a_task_of_the_own_iteration_is_seen_in_a_parallel_loop() -> None:
    found = run(foreach("f", "x", lit([1, 2]), [action("a"), read("b", "task.a.output.of")], 0))
    assert found["w/f[1]/b"]["input"] == ["w/f[1]/a"]


def test_a_loop_that_was_left_shows_its_last_iteration() -> None:
    found = run(foreach("f", "x", lit([1, 2]), [action("a")]), read("b", "task.a.output.of"))
    assert found["w/b"]["input"] == ["w/f[1]/a"]


def test_the_last_iteration_counts_even_when_the_task_did_not_run_in_it() -> None:
    first_only = if_("if_1", [*ctx("index"), ["lit", 0], ["eq"]], [action("a")])
    found = run(repeat("r", lit(2), [first_only]), read("b", "task.a.output"))
    assert message_of(found) == "w/b: ctx.task.a.output is not there"


def test_a_parallel_loop_shows_nothing_outside() -> None:
    found = run(foreach("f", "x", lit([1]), [action("a")], 2), read("b", "task.a.output"))
    assert message_of(found) == "w/b: ctx.task.a.output is not there"


def test_a_task_in_a_branch_is_seen_after_the_parallel() -> None:
    branches = [sequence("s", [action("a")]), sequence("t", [action("c")])]
    found = run(parallel("p", branches), read("b", "task.c.output.of"))
    assert found["w/b"]["input"] == ["w/p/t/c"]


def test_a_while_condition_sees_the_tasks_of_its_last_iteration() -> None:
    again = [["defined", ["ctx", "task", ["a", "output"]]], ["not"]]
    found = run(while_("l", again, [action("a")]))
    assert "w/l[0]/a" in found
    assert "w/l[1]" not in found


def test_the_result_code_of_a_composite_is_seen() -> None:
    found = run(sequence("s", []), read("b", "task.s.resultCode"))
    assert found["w/b"]["input"] == [0]


def test_parent_result_code_is_that_of_the_previous_sibling() -> None:
    found = run(action("a"), if_("if_1", lit(True), [read("b", "parent.resultCode")]))
    assert message_of(found) == "w/if_1/b: ctx.parent.resultCode is not there"
    found = run(action("a"), read("b", "parent.resultCode"))
    assert found["w/b"]["input"] == [4]


def test_parent_result_code_is_looked_for_from_the_branch_of_a_parallel() -> None:
    found = run(action("a"), parallel("p", [read("b", "parent.resultCode")]))
    assert found["w/p/b"]["input"] == [4]


def test_loop_entries_are_those_of_the_nearest_loop() -> None:
    inner = repeat("r", lit(2), [read("b", "index", "iterationNo")])
    found = run(foreach("f", "x", lit(["p"]), [inner, read("c", "item", "index")]))
    assert found["w/f[0]/r[1]/b"]["input"] == [1, 2]
    assert found["w/f[0]/c"]["input"] == ["p", 0]


def test_a_repeat_has_no_item() -> None:
    found = run(foreach("f", "x", lit([1]), [repeat("r", lit(1), [read("b", "item")])]))
    assert message_of(found) == "w/f[0]/r[0]/b: ctx.item is not there"


def test_outside_a_loop_there_is_no_index() -> None:
    assert message_of(run(read("b", "index"))) == "w/b: ctx.index is not there"


def test_sequence_and_parallel_index() -> None:
    branch = sequence("s", [action("x"), read("b", "sequenceIndex", "parallelIndex")])
    found = run(parallel("p", [action("a"), branch]))
    assert found["w/p/s/b"]["input"] == [1, 1]


def test_there_is_no_parallel_index_outside_a_parallel() -> None:
    assert message_of(run(read("b", "parallelIndex"))) == "w/b: ctx.parallelIndex is not there"


def test_names_of_the_instance() -> None:
    found = run(read("b", "node", "workflow", "instance_id"))
    assert found["w/b"]["input"] == ["b", "w", "$instance_id"]


def test_version_is_the_start_of_the_content_hash() -> None:
    spec: GraphSpec = workflow([read("b", "version")])
    assert rows(play(spec))["w/b"]["input"] == [spec.content_hash()[:12]]


def test_start_context_is_given_as_it_was() -> None:
    found = run(read("b", "context.extra.x", "forceRerun"), context={"extra": {"x": 1}})
    assert found["w/b"]["input"] == [1, False]
    assert run(read("b", "forceRerun"), context={"forceRerun": True})["w/b"]["input"] == [True]


def test_there_is_no_event() -> None:
    assert message_of(run(read("b", "event.type"))) == "w/b: ctx.event.type is not there"


def test_attempt_is_there_in_a_set_only() -> None:
    machine = play(workflow([action("a", sets=[("n", ctx("attempt"))])]))
    assert variables(machine) == {"n": 1}
    assert message_of(run(read("b", "attempt"))) == "w/b: ctx.attempt is not there"


def test_a_template_reads_the_nearest_variable_of_a_name() -> None:
    loop = foreach("f", "x", lit(["inner"]), [action("a", template="${var.x}")])
    spec = workflow(
        [loop, action("b", template="${var.x}")], variables=[("x", "var", lit("outer"))]
    )
    found = rows(play(spec))
    assert (found["w/f[0]/a"]["input"], found["w/b"]["input"]) == ("inner", "outer")


def test_a_set_writes_the_scope_it_names() -> None:
    loop = foreach("f", "x", lit([1]), [assign("set_1", "x", lit(5), "w")])
    machine = play(workflow([loop], variables=[("x", "var", lit(0))]))
    assert variables(machine) == {"x": 5}
    assert rows(machine)["w/f[0]"]["variables"] == {"x": 1}


def test_a_fail_can_quote_a_task() -> None:
    message = [["lit", "got "], *ctx("task", "a", "output", "of"), ["cat", 2]]
    assert message_of(run(action("a"), fail("fail_1", -1, message))) == "got w/a"


def test_iteration_number_of_a_command_is_that_of_the_nearest_loop() -> None:
    seen: list[tuple[str, int]] = []

    def answer(command: RunAction) -> Any:
        seen.append((command.node_key, command.iteration_no))
        return 0, None

    play(workflow([action("a"), repeat("r", lit(2), [action("b")])]), answer=answer)
    assert seen == [("a", 0), ("b", 1), ("b", 2)]


def test_outer_variables_are_seen_in_deep_bodies() -> None:
    deep = if_("i", lit(True), [repeat("r", lit(1), [action("a", template="${var.n}")])])
    machine = play(workflow([deep], variables=[("n", "var", lit(7))]))
    assert rows(machine)["w/i/r[0]/a"]["input"] == 7

"""`on_error`, `finally`, and cancellation with them (S6.9, R13)."""

from __future__ import annotations

from typing import Any

import pytest

from local_runner.commands import InstanceEnded
from tests.unit.local_runner.graphs import (
    action,
    assign,
    ctx,
    fail,
    foreach,
    guarded,
    if_,
    lit,
    parallel,
    sequence,
    var,
    workflow,
)
from tests.unit.local_runner.play import Player, play, rows, statuses, variables

BAD = fail("bad", -5, lit("no"))


def keep(name: str, *steps: str) -> Any:
    """Writes a part of ctx.error, or null when there is none, to a variable."""
    program = [*ctx("error", *steps), ["alt", 1], ["lit", None]]
    return assign(f"keep_{name}", name, program)


def codes(**by_key: int) -> Any:
    return lambda command: (by_key.get(command.node_key, 0), None)


# -- on_error


def test_on_error_that_succeeds_makes_the_sequence_succeed() -> None:
    machine = play(workflow([guarded("s", [BAD, action("never")], [action("mend")]), action("z")]))
    found = rows(machine)
    assert (found["w/s"]["status"], found["w/s"]["result_code"]) == ("SUCCEEDED", 0)
    assert found["w/s/mend"]["status"] == found["w/z"]["status"] == "SUCCEEDED"
    assert "w/s/never" not in found


def test_on_error_does_not_run_after_a_success() -> None:
    assert "w/s/mend" not in statuses(play(workflow([guarded("s", [], [action("mend")])])))


def test_on_error_sees_the_error() -> None:
    handler = [assign("set_1", "e", ctx("error"))]
    machine = play(workflow([guarded("s", [if_("i", lit(True), [BAD])], handler)]))
    assert variables(machine)["e"] == {
        "code": -5,
        "engine_code": None,
        "message": "no",
        "node": "bad",
        "path": "w/s/i/bad",
    }


def test_on_error_that_fails_is_the_failure_of_the_sequence() -> None:
    machine = play(workflow([guarded("s", [BAD], [fail("worse", -6, lit("worse"))])]))
    assert machine.error is not None
    assert (machine.error.code, machine.error.path) == (-6, "w/s/worse")
    assert rows(machine)["w/s"]["result_code"] == -6


def test_on_error_comes_after_the_last_attempt() -> None:
    retry = {"limit": 1, "on": ["any"]}
    player = Player(workflow([guarded("s", [action("a", retry=retry)], [action("mend")])])).start()
    player.run(codes(a=-1))
    assert [path for _at, path in player.claims] == ["w/s/a", "w/s/a", "w/s/mend"]


def test_on_error_may_read_the_result_code_of_what_failed() -> None:
    handler = [assign("set_1", "c", ctx("task", "a", "resultCode"))]
    machine = play(workflow([guarded("s", [action("a")], handler)]), answer=codes(a=-9))
    assert variables(machine) == {"c": -9}


def test_a_later_reader_finds_a_task_of_an_on_error() -> None:
    part = guarded("s", [BAD, action("never")], [action("mend")])
    spec = workflow([part, assign("set_1", "o", ctx("task", "mend", "output"))])
    assert variables(play(spec, answer=lambda c: (0, c.node_key))) == {"o": "mend"}


def test_ctx_error_outside_is_not_there() -> None:
    machine = play(workflow([assign("set_1", "e", ctx("error", "code"))]))
    assert machine.error is not None
    assert machine.error.message == "w/set_1: ctx.error.code is not there"


def test_the_nearest_handler_decides_what_ctx_error_is() -> None:
    inner = guarded("t", [], None, [keep("inner", "code")])
    machine = play(workflow([guarded("s", [BAD], [inner, keep("outer", "code")])]))
    assert variables(machine) == {"inner": None, "outer": -5}


def test_a_variable_that_cannot_be_made_is_no_failure_of_the_body() -> None:
    part = guarded("s", [], [action("mend")], [action("tidy")])
    part.variables.append(("n", "var", var("gone")))
    machine = play(workflow([part]))
    assert machine.error is not None
    assert machine.error.message == "w/s: var.gone is not there"
    assert set(statuses(machine)) == {"w", "w/s"}


def test_the_previous_result_code_in_on_error_is_of_the_body_before_it() -> None:
    part = guarded("s", [action("a"), BAD], [action("mend", template="${ctx.parent.resultCode}")])
    part.edges[-1][2].edges.insert(0, ("SEQUENCE", None, action("first")))
    machine = play(workflow([part]), answer=codes(first=4))
    assert rows(machine)["w/s/mend"]["input"] == 4


# -- finally


def test_finally_runs_after_success() -> None:
    machine = play(workflow([guarded("s", [action("a")], None, [keep("e", "code")])]))
    assert (machine.status, variables(machine)) == ("SUCCEEDED", {"e": None})


def test_finally_runs_after_a_failure_and_the_failure_stands() -> None:
    machine = play(workflow([guarded("s", [BAD], None, [keep("e", "code")])]))
    assert machine.error is not None
    assert (machine.error.message, variables(machine)) == ("no", {"e": -5})


def test_finally_after_on_error_that_succeeded_sees_no_error() -> None:
    machine = play(workflow([guarded("s", [BAD], [action("mend")], [keep("e", "code")])]))
    assert (machine.status, variables(machine)) == ("SUCCEEDED", {"e": None})


def test_finally_after_on_error_that_failed_sees_its_error() -> None:
    worse = fail("worse", -6, lit("worse"))
    machine = play(workflow([guarded("s", [BAD], [worse], [keep("e", "message")])]))
    assert variables(machine) == {"e": "worse"}


def test_a_failing_finally_fails_a_sequence_that_had_succeeded() -> None:
    machine = play(workflow([guarded("s", [], None, [BAD])]))
    assert machine.error is not None
    assert (machine.error.code, machine.error.path) == (-5, "w/s/bad")


def test_a_failing_finally_adds_its_message_to_a_failure() -> None:
    part = guarded("s", [fail("first", -1, lit("body"))], None, [BAD])
    found = rows(play(workflow([part])))
    assert found["w/s"]["error"] == {
        "code": -1,
        "engine_code": None,
        "message": "body (and in finally: no)",
        "node": "first",
        "path": "w/s/first",
    }
    assert found["w/s/first"]["error"]["message"] == "body"
    assert found["w"]["error"] == found["w/s"]["error"]


# -- cancellation


def two(kept: Any, **more: Any) -> Any:
    """A parallel of `boom`, which will fail, and another branch."""
    return workflow([parallel("p", [action("boom"), kept], **more)])


def explode(player: Player) -> None:
    command = player.claim("boom")
    assert command is not None
    player.submit(command, -1)


def test_a_cancelled_sequence_runs_its_finally_before_the_parallel_fails() -> None:
    player = Player(two(guarded("s", [action("a")], None, [action("tidy")]))).start()
    explode(player)
    assert statuses(player.machine) == {
        "w": "RUNNING",
        "w/p": "RUNNING",
        "w/p/boom": "FAILED",
        "w/p/s": "RUNNING",
        "w/p/s/a": "CANCELLED",
        "w/p/s/tidy": "READY",
    }
    machine = player.run(codes())
    found = rows(machine)
    assert (machine.status, found["w/p"]["result_code"]) == ("FAILED", -1)
    row = found["w/p/s"]
    assert (row["status"], row["error"], row["result_code"]) == ("CANCELLED", None, None)
    assert found["w/p/s/tidy"]["status"] == "SUCCEEDED"


def test_on_error_does_not_run_for_a_cancellation() -> None:
    player = Player(two(guarded("s", [action("a")], [action("mend")], [action("tidy")]))).start()
    explode(player)
    assert [c.node_key for c in player.offered] == ["tidy"]


def test_a_failure_in_the_finally_of_a_cancelled_sequence_changes_nothing_else() -> None:
    player = Player(two(guarded("s", [action("a")], None, [action("tidy")]))).start()
    explode(player)
    machine = player.run(codes(tidy=-8))
    assert machine.error is not None
    assert (machine.error.code, machine.error.message) == (-1, "result code -1")
    found = rows(machine)
    assert (found["w/p/s"]["status"], found["w/p/s/tidy"]["status"]) == ("CANCELLED", "FAILED")


def test_ctx_error_in_the_finally_of_a_cancelled_sequence_is_not_there() -> None:
    part = guarded("s", [BAD], [action("mend")], [keep("e", "code")])
    player = Player(two(part)).start()
    explode(player)
    assert (player.machine.status, variables(player.machine)) == ("FAILED", {"e": None})


def test_inner_finallys_run_before_outer_ones() -> None:
    inner = guarded("t", [action("a")], None, [action("tidy_inner")])
    outer = guarded("s", [if_("i", lit(True), [inner])], None, [action("tidy_outer")])
    player = Player(two(outer)).start()
    explode(player)
    assert statuses(player.machine)["w/p/s/i"] == "CANCELLED"
    assert [c.node_key for c in player.offered] == ["tidy_inner"]
    tidy = player.claim()
    assert tidy is not None
    player.submit(tidy)
    assert statuses(player.machine)["w/p/s/i/t"] == "CANCELLED"
    assert [c.node_key for c in player.offered] == ["tidy_outer"]


def test_finallys_of_independent_sequences_start_in_order_of_their_ids() -> None:
    kept = [guarded(f"s{i}", [action(f"a{i}")], None, [action(f"t{i}")]) for i in range(3)]
    player = Player(workflow([parallel("p", [action("boom"), *kept])])).start()
    explode(player)
    assert [c.node_key for c in player.offered] == ["t0", "t1", "t2"]
    assert [c.execution_id for c in player.offered] == sorted(
        c.execution_id for c in player.offered
    )
    last = player.claim("t2")
    assert last is not None
    player.submit(last)
    assert player.machine.status == "RUNNING"
    assert player.run(codes()).status == "FAILED"


def test_a_finally_that_runs_already_is_not_cancelled() -> None:
    player = Player(two(guarded("s", [], None, [action("tidy"), action("more")]))).start()
    explode(player)
    assert statuses(player.machine)["w/p/s/tidy"] == "READY"
    machine = player.run(codes())
    found = statuses(machine)
    assert (found["w/p/s/more"], found["w/p/s"]) == ("SUCCEEDED", "CANCELLED")


def test_a_finally_that_runs_already_keeps_its_error() -> None:
    player = Player(two(guarded("s", [BAD], None, [action("tidy"), keep("e", "code")]))).start()
    explode(player)
    assert variables(player.run(codes())) == {"e": -5}


def test_a_sequence_that_was_not_looked_at_yet_runs_its_finally() -> None:
    # The failure reaches p in the level in which s is to be looked at.
    nested = sequence("n", [guarded("s", [action("a")], None, [action("tidy")])])
    parts = [fail("f", -1, lit("x")), nested]
    machine = Player(workflow([parallel("p", parts)])).start().run(codes())
    assert statuses(machine) == {
        "w": "FAILED",
        "w/p": "FAILED",
        "w/p/f": "FAILED",
        "w/p/n": "CANCELLED",
        "w/p/n/s": "CANCELLED",
        "w/p/n/s/tidy": "SUCCEEDED",
    }


def test_a_parallel_that_waits_for_a_finally_hears_nothing_else() -> None:
    kept = [guarded(f"s{i}", [action(f"a{i}")], None, [action(f"t{i}")]) for i in range(2)]
    part = parallel("p", [action("boom"), *kept], timeout_ms=50)
    player = Player(workflow([part])).start()
    explode(player)
    player.advance(1000)
    machine = player.run(codes(t0=-4, t1=-4))
    assert machine.error is not None
    assert machine.error.code == -1


def test_an_outer_close_takes_over_the_finallys_that_an_inner_one_waits_for() -> None:
    inner = parallel("q", [action("boom"), guarded("s", [action("a")], None, [action("tidy")])])
    player = Player(workflow([parallel("p", [inner, action("bang")])])).start()
    explode(player)
    bang = player.claim("bang")
    assert bang is not None
    player.submit(bang, -2)
    assert statuses(player.machine)["w/p/q"] == "CANCELLED"
    assert player.machine.status == "RUNNING"
    machine = player.run(codes())
    assert machine.error is not None
    assert machine.error.code == -2
    assert statuses(machine)["w/p/q/s"] == "CANCELLED"


def test_join_any_succeeds_after_the_finallys_of_what_it_cancelled() -> None:
    part = parallel("p", [action("a"), guarded("s", [action("b")], None, [action("tidy")])], join=1)
    player = Player(workflow([part, action("z")])).start()
    command = player.claim("a")
    assert command is not None
    player.submit(command)
    assert [c.node_key for c in player.offered] == ["tidy"]
    assert player.run(codes(tidy=-1)).status == "SUCCEEDED"
    assert [path for _at, path in player.claims] == ["w/p/a", "w/p/s/tidy", "w/z"]


def test_a_cancelled_iteration_runs_its_finally() -> None:
    body = [guarded("s", [action("a")], None, [action("tidy")])]
    spec = workflow([foreach("f", "x", lit([1, 2]), body, parallel=0)])
    machine = play(spec, answer=lambda c: (-1 if c.path == "w/f[0]/s/a" else 0, None))
    found = statuses(machine)
    assert (found["w/f[1]"], found["w/f[1]/s"], found["w/f[1]/s/tidy"]) == (
        "CANCELLED",
        "CANCELLED",
        "SUCCEEDED",
    )


def test_a_time_out_lets_the_finallys_below_run_first() -> None:
    inner = guarded("t", [action("a")], None, [action("tidy_inner")])
    outer = guarded("s", [inner], [action("mend")], [action("tidy_outer")], timeout_ms=10)
    player = Player(workflow([outer])).start()
    player.advance(10)
    machine = player.run(codes())
    assert [path for _at, path in player.claims] == [
        "w/s/t/tidy_inner",
        "w/s/mend",
        "w/s/tidy_outer",
    ]
    assert machine.status == "SUCCEEDED"


def test_a_time_out_inside_a_finally_of_a_cancelled_sequence_applies() -> None:
    final = [guarded("u", [action("tidy")], timeout_ms=10), action("never")]
    player = Player(two(guarded("s", [action("a")], None, final))).start()
    explode(player)
    player.advance(10)
    assert statuses(player.machine)["w/p/s/u"] == "FAILED"
    assert player.machine.status == "FAILED"


@pytest.mark.parametrize("before", [None, "boom"])
def test_an_operators_cancel_runs_no_finally_and_ends_those_that_run(before: str | None) -> None:
    player = Player(two(guarded("s", [action("a")], [action("mend")], [action("tidy")]))).start()
    if before is not None:
        explode(player)
    commands = player.machine.cancel()
    assert commands[-1] == InstanceEnded("CANCELLED", None, None)
    found = statuses(player.machine)
    assert {"READY", "RUNNING"}.isdisjoint(found.values())
    assert player.machine.next_due() is None


def test_250_kept_sequences_one_in_the_other() -> None:
    part: Any = action("a")
    for level in range(250, 0, -1):
        part = guarded(
            f"s{level}",
            [part],
            None,
            [assign(f"set_{level}", "n", [*var("n"), ["lit", 1], ["add"]])],
        )
    spec = workflow([parallel("p", [action("boom"), part])], variables=[("n", "var", lit(0))])
    player = Player(spec).start()
    explode(player)
    assert (player.machine.status, variables(player.machine)) == ("FAILED", {"n": 250})

"""What takes time: delay, sleep, retry and its waits (R20), time-outs (R21)."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from local_runner.commands import CancelAction
from local_runner.graph import Retry
from tests.unit.local_runner.graphs import (
    action,
    assign,
    ctx,
    fail,
    foreach,
    guarded,
    lit,
    parallel,
    repeat,
    sequence,
    sleep,
    workflow,
)
from tests.unit.local_runner.play import HANGS, Player, play, rows, statuses, variables


def policy(**more: Any) -> dict[str, Any]:
    return {
        "limit": 2,
        "backoff_ms": 1000,
        "factor_hundredths": 100,
        "max_ms": 3_600_000,
        "jitter": False,
        "on": ["any"],
        **more,
    }


def failing(times: int, code: int = -1) -> Any:
    """Answers with failures first, then with a success."""
    left = [times]

    def answer(_command: Any) -> Any:
        left[0] -= 1
        return (code, None) if left[0] >= 0 else (0, "done")

    return answer


# -- delay and sleep


def test_a_delayed_action_is_available_later() -> None:
    player = Player(workflow([action("a", delay_ms=500)])).start()
    assert player.offered[0].available_ms == 500
    assert player.claim() is None
    assert player.machine.next_due() == 500


def test_a_delayed_action_stands_behind_earlier_ones_of_its_priority() -> None:
    player = Player(workflow([parallel("p", [action("a", delay_ms=5), action("b")])])).start()
    player.advance(5)
    assert [key.node_key for key in sorted(player.offered, key=lambda c: c.claim_key)] == ["b", "a"]


def test_a_delay_does_not_beat_priority() -> None:
    branches = [action("a"), action("b", delay_ms=5, priority=1)]
    player = Player(workflow([parallel("p", branches)])).start()
    player.advance(5)
    command = player.claim()
    assert command is not None
    assert command.node_key == "b"


def test_a_sleep_is_running_until_its_time_has_come() -> None:
    player = Player(workflow([sleep("sleep_1", 300), action("a")])).start()
    player.advance(299)
    assert statuses(player.machine) == {"w": "RUNNING", "w/sleep_1": "RUNNING"}
    player.advance(300)
    assert rows(player.machine)["w/sleep_1"]["result_code"] == 0
    assert player.claim("a") is not None


def test_a_sleep_of_nothing_ends_at_once() -> None:
    assert Player(workflow([sleep("sleep_1", 0)])).start().machine.status == "SUCCEEDED"


def test_a_cancelled_sleep_is_not_due_any_more() -> None:
    player = Player(workflow([parallel("p", [sleep("s", 300), action("a")])])).start()
    command = player.claim()
    assert command is not None
    player.submit(command, -1)
    assert statuses(player.machine)["w/p/s"] == "CANCELLED"
    assert player.machine.next_due() is None


def test_sleeps_due_at_the_same_time_end_in_order_of_their_ids() -> None:
    branches = [sequence(f"s{i}", [sleep(f"z{i}", 10), action(f"a{i}")]) for i in range(3)]
    player = Player(workflow([parallel("p", branches)])).start()
    player.advance(10)
    assert [c.node_key for c in player.offered] == ["a0", "a1", "a2"]


# -- retry


def test_a_failed_attempt_is_tried_again_after_its_backoff() -> None:
    player = Player(workflow([action("a", retry=policy())])).start()
    machine = player.run(failing(2))
    assert player.claims == [(0, "w/a"), (1000, "w/a"), (2000, "w/a")]
    row = rows(machine)["w/a"]
    assert (row["status"], row["attempts"], row["output"]) == ("SUCCEEDED", 3, "done")


def test_attempts_used_up_fail_the_node_with_the_last_code() -> None:
    machine = play(workflow([action("a", retry=policy())]), answer=failing(3, -7))
    row = rows(machine)["w/a"]
    assert (row["status"], row["attempts"], row["result_code"]) == ("FAILED", 3, -7)


def test_a_retry_leaves_nothing_of_the_failed_attempt() -> None:
    player = Player(workflow([action("a", retry=policy())])).start()
    command = player.claim()
    assert command is not None
    player.submit(command, -1, "half done")
    row = rows(player.machine)["w/a"]
    assert (row["status"], row["attempts"], row["output"], row["result_code"]) == (
        "READY",
        1,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("code", "on", "attempts"),
    [(-3, [-3, -4], 2), (-5, [-3, -4], 1), (-3, ["lease"], 1), (-3, ["any"], 2), (-3, [10013], 1)],
)
def test_a_retry_takes_what_it_lists(code: int, on: list[Any], attempts: int) -> None:
    spec = workflow([action("a", retry=policy(limit=1, on=on))])
    machine = play(spec, answer=lambda c: (code, None))
    assert rows(machine)["w/a"]["attempts"] == attempts


def test_a_failing_set_is_not_retried() -> None:
    spec = workflow([action("a", retry=policy(), sets=[("x", [["out", ["gone"]]])])])
    row = rows(play(spec))["w/a"]
    assert (row["status"], row["attempts"]) == ("FAILED", 1)


def test_an_input_that_cannot_be_built_is_not_retried() -> None:
    spec = workflow([action("a", template="${ctx.task.b.output}", retry=policy()), action("b")])
    row = rows(play(spec))["w/a"]
    assert (row["status"], row["attempts"]) == ("FAILED", 1)


def test_a_retried_attempt_gets_the_same_input_and_the_next_number() -> None:
    seen: list[Any] = []
    spec = workflow(
        [action("a", template={"x": "${var.x}"}, retry=policy(), sets=[("n", ctx("attempt"))])],
        variables=[("x", "var", lit(5))],
    )
    outcomes = failing(1)
    machine = play(spec, answer=lambda c: (seen.append((c.input, c.attempt)), outcomes(c))[1])
    assert seen == [({"x": 5}, 1), ({"x": 5}, 2)]
    assert variables(machine)["n"] == 2


def retry_of(**more: Any) -> Retry:
    written = policy(**more)
    return Retry(
        written["limit"],
        written["backoff_ms"],
        written["factor_hundredths"],
        written["max_ms"],
        written["jitter"],
        frozenset(written["on"]),
    )


def test_backoff_grows_by_its_factor_and_is_floored_at_each_step() -> None:
    retry = retry_of(backoff_ms=7, factor_hundredths=150)
    assert [retry.delay_ms(k, "") for k in (1, 2, 3, 4)] == [7, 10, 15, 22]


def test_backoff_is_capped() -> None:
    retry = retry_of(backoff_ms=1000, factor_hundredths=10_000, max_ms=60_000)
    assert [retry.delay_ms(k, "") for k in (1, 2, 3, 10**6)] == [1000, 60_000, 60_000, 60_000]


def test_jitter_scales_the_wait_by_a_hash_of_instance_path_and_count() -> None:
    head = int.from_bytes(hashlib.sha256(b"the-instance/w/a#1").digest()[:2], "big")
    expected = 1000 * (512 + head % 513) // 1024
    player = Player(workflow([action("a", retry=policy(jitter=True))])).start()
    player.run(failing(1))
    assert player.claims[1] == (expected, "w/a")
    assert 500 <= expected <= 1000


# -- time-outs of actions


def test_an_action_times_out_from_its_claim() -> None:
    player = Player(workflow([action("a", timeout_ms=100)])).start()
    player.advance(5000)
    assert player.claim() is not None
    player.advance(5099)
    assert player.machine.status == "RUNNING"
    commands = player.machine.advance(5100)
    assert CancelAction(2) in commands
    assert rows(player.machine)["w/a"]["error"] == {
        "code": None,
        "engine_code": 10013,
        "message": "w/a: timed out after 100 ms",
        "node": "a",
        "path": "w/a",
    }


def test_an_action_that_is_never_claimed_does_not_time_out() -> None:
    player = Player(workflow([action("a", timeout_ms=100)])).start()
    player.advance(10**9)
    assert statuses(player.machine)["w/a"] == "READY"


@pytest.mark.parametrize(("at", "status"), [(99, "SUCCEEDED"), (100, "FAILED"), (101, "FAILED")])
def test_a_result_at_or_after_the_deadline_loses(at: int, status: str) -> None:
    player = Player(workflow([action("a", timeout_ms=100)])).start()
    command = player.claim()
    assert command is not None
    player.now = at
    player.submit(command)
    assert player.machine.status == status


@pytest.mark.parametrize("on", [["any"], [10013]])
def test_a_timed_out_attempt_is_retried(on: list[Any]) -> None:
    player = Player(workflow([action("a", timeout_ms=100, retry=policy(on=on))])).start()
    answers = iter([HANGS, (0, "late")])
    machine = player.run(lambda c: next(answers))
    assert player.claims == [(0, "w/a"), (1100, "w/a")]
    assert (machine.status, rows(machine)["w/a"]["attempts"]) == ("SUCCEEDED", 2)


def test_a_late_result_of_a_timed_out_attempt_is_not_taken_for_the_next() -> None:
    spec = workflow([action("a", timeout_ms=100, retry=policy())])
    player = Player(spec).start()
    command = player.claim()
    assert command is not None
    player.now = 100
    player.submit(command, 0, "too late")
    row = rows(player.machine)["w/a"]
    assert (row["status"], row["attempts"], row["output"]) == ("READY", 1, None)


# -- time-outs of composites


def test_a_workflow_times_out_from_its_start() -> None:
    player = Player(workflow([action("a"), sleep("s", 500)], timeout_ms=200))
    player.now = 50
    player.start()
    machine = player.run(lambda c: (0, None))
    assert machine.error is not None
    assert (machine.error.engine_code, machine.error.message, machine.error.path) == (
        10013,
        "w: timed out after 200 ms",
        "w",
    )
    assert player.now == 250
    assert statuses(machine) == {"w": "FAILED", "w/a": "SUCCEEDED", "w/s": "CANCELLED"}


@pytest.mark.parametrize(
    "part",
    [
        parallel("c", [action("a"), action("b")], timeout_ms=40),
        foreach("c", "x", lit([1, 2]), [action("a")], timeout_ms=40),
        guarded("c", [action("a")], timeout_ms=40),
    ],
)
def test_a_composite_times_out_with_what_is_open_below(part: Any) -> None:
    machine = play(workflow([part]), answer=lambda c: HANGS)
    found = statuses(machine)
    assert machine.error is not None
    assert machine.error.message == "w/c: timed out after 40 ms"
    assert found.pop("w/c") == found.pop("w") == "FAILED"
    assert set(found.values()) == {"CANCELLED"}


def test_a_loop_times_out_over_all_its_iterations() -> None:
    loop = repeat("c", lit(5), [sleep("s", 30)])
    loop.attributes["timeout_ms"] = 100
    machine = play(workflow([loop]))
    found = statuses(machine)
    assert (found["w/c[2]"], found["w/c[3]"], found["w/c"]) == ("SUCCEEDED", "CANCELLED", "FAILED")


def test_a_time_out_is_due_before_a_result_below_it() -> None:
    player = Player(workflow([guarded("c", [action("a")], timeout_ms=40)])).start()
    command = player.claim()
    assert command is not None
    player.now = 40
    player.submit(command)
    assert statuses(player.machine)["w/c/a"] == "CANCELLED"


def test_the_outer_of_two_equal_time_outs_wins_by_its_lower_id() -> None:
    inner = guarded("in", [action("a")], timeout_ms=40)
    machine = play(workflow([guarded("out", [inner], timeout_ms=40)]), answer=lambda c: HANGS)
    assert machine.error is not None
    assert machine.error.path == "w/out"


def test_a_composite_that_ended_has_no_time_out_any_more() -> None:
    spec = workflow([guarded("c", [action("a")], timeout_ms=40), sleep("s", 100)])
    assert play(spec).status == "SUCCEEDED"


def test_a_timed_out_sequence_runs_its_on_error() -> None:
    handler = [assign("set_1", "why", ctx("error", "engine_code"))]
    machine = play(
        workflow([guarded("c", [action("a")], handler, timeout_ms=40)]), answer=lambda c: HANGS
    )
    assert (machine.status, variables(machine)) == ("SUCCEEDED", {"why": 10013})


def test_a_time_out_in_on_error_fails_the_sequence_and_lets_finally_run() -> None:
    part = guarded(
        "c",
        [fail("f", -2, lit("x"))],
        [sleep("s", 1000)],
        [assign("set_1", "why", ctx("error", "message"))],
        timeout_ms=40,
    )
    machine = play(workflow([part]))
    assert machine.error is not None
    assert machine.error.message == "w/c: timed out after 40 ms"
    assert variables(machine) == {"why": "w/c: timed out after 40 ms"}


def test_a_finally_is_not_cut_off_by_the_time_out_of_its_sequence() -> None:
    part = guarded("c", [], None, [sleep("s", 1000)], timeout_ms=40)
    assert play(workflow([part])).status == "SUCCEEDED"


def test_redelivered_actions_are_offered_in_the_same_attempt() -> None:
    player = Player(workflow([action("a", timeout_ms=50)])).start()
    assert player.claim() is not None
    player.obey(player.machine.redeliver())
    assert [c.attempt for c in player.offered] == [1]
    assert player.machine.next_due() is None
    assert player.run(lambda c: (0, None)).status == "SUCCEEDED"
    assert rows(player.machine)["w/a"]["attempts"] == 1


def test_the_input_of_a_delayed_action_is_built_at_once() -> None:
    spec = workflow(
        [action("a", delay_ms=50, template={"x": "${var.x}"})], variables=[("x", "var", lit(1))]
    )
    assert Player(spec).start().offered[0].input == {"x": 1}

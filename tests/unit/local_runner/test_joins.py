"""`join`, `keep_going`, `tolerate` and `batch` (R31, R32)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.local_runner.graphs import action, ctx, fail, foreach, lit, parallel, workflow
from tests.unit.local_runner.play import Player, play, rows, statuses, variables


def branches(*keys: str) -> list[Any]:
    return [action(key) for key in keys]


def codes(**by_key: int) -> Any:
    return lambda command: (by_key.get(command.node_key, 0), None)


def by_iteration(*wrong: int) -> Any:
    """Fails the iterations of these indexes, the index being part of the code."""
    return lambda c: (-1 - (c.iteration_no - 1) if c.iteration_no - 1 in wrong else 0, None)


# -- join


def test_join_any_succeeds_with_the_first_success_and_cancels_the_rest() -> None:
    player = Player(workflow([parallel("p", branches("a", "b", "c"), join=1)])).start()
    command = player.claim("b")
    assert command is not None
    player.submit(command)
    found = statuses(player.machine)
    assert (found["w/p"], found["w/p/b"]) == ("SUCCEEDED", "SUCCEEDED")
    assert (found["w/p/a"], found["w/p/c"]) == ("CANCELLED", "CANCELLED")
    assert rows(player.machine)["w/p"]["result_code"] == 0
    assert player.offered == []


def test_join_n_bears_as_many_failures_as_leave_n() -> None:
    machine = play(workflow([parallel("p", branches("a", "b", "c"), join=2)]), answer=codes(a=-1))
    assert machine.status == "SUCCEEDED"


def test_join_n_fails_as_soon_as_n_is_out_of_reach_with_the_first_failure() -> None:
    machine = play(
        workflow([parallel("p", branches("a", "b", "c", "d"), join=3)]), answer=codes(a=-1, b=-2)
    )
    assert machine.error is not None
    assert (machine.error.code, machine.error.node) == (-1, "a")
    assert statuses(machine)["w/p/c"] == "CANCELLED"


def test_a_failed_branch_under_join_lets_the_next_one_start() -> None:
    spec = workflow([parallel("p", branches("a", "b", "c"), limit=1, join=1)])
    machine = play(spec, answer=codes(a=-1))
    found = statuses(machine)
    assert (machine.status, found["w/p/b"], "w/p/c" in found) == ("SUCCEEDED", "SUCCEEDED", False)


def test_join_of_more_than_there_are_needs_all() -> None:
    machine = play(workflow([parallel("p", branches("a", "b"), join=9)]))
    assert machine.status == "SUCCEEDED"


def test_a_success_that_closes_is_taken_before_later_entries() -> None:
    # Both fail in the first level, but the join has been reached by then.
    parts = [action("a"), action("b")]
    player = Player(workflow([parallel("p", parts, join=1)])).start()
    first, second = player.claim("a"), player.claim("b")
    assert first is not None
    assert second is not None
    player.submit(first)
    player.submit(second, -1)
    assert statuses(player.machine)["w/p/b"] == "CANCELLED"
    assert player.machine.status == "SUCCEEDED"


# -- keep_going on a parallel


def test_keep_going_lets_every_branch_end_and_then_fails() -> None:
    spec = workflow([parallel("p", branches("a", "b", "c"), keep_going=True)])
    machine = play(spec, answer=codes(a=-1, b=-2))
    found = statuses(machine)
    assert (found["w/p"], found["w/p/b"], found["w/p/c"]) == ("FAILED", "FAILED", "SUCCEEDED")
    assert machine.error is not None
    assert machine.error.code == -1


def test_keep_going_with_a_join_waits_for_all_and_counts_then() -> None:
    spec = workflow([parallel("p", branches("a", "b", "c"), join=1, keep_going=True)])
    machine = play(spec, answer=codes(a=-1, c=-3))
    assert machine.status == "SUCCEEDED"
    assert set(statuses(machine)) >= {"w/p/a", "w/p/b", "w/p/c"}


def test_keep_going_starts_the_branches_that_limit_held_back() -> None:
    spec = workflow([parallel("p", branches("a", "b", "c"), limit=1, keep_going=True)])
    machine = play(spec, answer=codes(a=-1))
    assert statuses(machine)["w/p/c"] == "SUCCEEDED"


def test_the_reported_failure_is_the_first_to_arrive_not_the_first_branch() -> None:
    spec = workflow([parallel("p", branches("a", "b"), keep_going=True)])
    machine = play(spec, answer=codes(a=-1, b=-2), reverse=True)
    assert machine.error is not None
    assert machine.error.code == -2


def test_failures_without_an_action_count_too() -> None:
    parts = [fail("f", -4, lit("x")), action("a")]
    machine = play(workflow([parallel("p", parts, join=1)]))
    assert machine.status == "SUCCEEDED"


# -- tolerate and keep_going on a foreach


def loop(count: int = 5, **more: Any) -> Any:
    collects = [("all", ctx("index"))]
    return foreach("f", "x", lit(list(range(count))), [action("a")], collects=collects, **more)


def test_tolerated_failures_contribute_null() -> None:
    machine = play(workflow([loop(tolerate={"count": 2})]), answer=by_iteration(1, 3))
    assert machine.status == "SUCCEEDED"
    assert variables(machine) == {"all": [0, None, 2, None, 4]}


def test_one_failure_more_than_tolerated_fails_with_the_first() -> None:
    machine = play(workflow([loop(tolerate={"count": 1})]), answer=by_iteration(1, 3))
    assert machine.error is not None
    assert (machine.error.code, machine.error.path) == (-2, "w/f[1]/a")
    assert "w/f[4]" not in statuses(machine)
    assert variables(machine) == {}


@pytest.mark.parametrize(
    ("percent", "wrong", "status"),
    [
        (40, (0, 1), "SUCCEEDED"),
        (39, (0, 1), "FAILED"),
        (0, (4,), "FAILED"),
        (100, (0, 1, 2, 3, 4), "SUCCEEDED"),
    ],
)
def test_tolerate_by_percent(percent: int, wrong: tuple[int, ...], status: str) -> None:
    machine = play(workflow([loop(tolerate={"percent": percent})]), answer=by_iteration(*wrong))
    assert machine.status == status


def test_keep_going_lets_every_iteration_run() -> None:
    machine = play(workflow([loop(keep_going=True)]), answer=by_iteration(0))
    found = statuses(machine)
    assert (machine.status, found["w/f[0]"], found["w/f[4]"]) == ("FAILED", "FAILED", "SUCCEEDED")


def test_parallel_iterations_past_the_tolerance_are_cancelled() -> None:
    spec = workflow([loop(parallel=0, tolerate={"count": 1})])
    found = statuses(play(spec, answer=by_iteration(0, 1)))
    assert [found[f"w/f[{i}]"] for i in range(4)] == ["FAILED", "FAILED", "CANCELLED", "CANCELLED"]


# -- batch


def test_a_batch_is_the_item_of_an_iteration() -> None:
    body = [action("a", template={"x": "${var.x}", "i": "${ctx.index}"})]
    spec = workflow([foreach("f", "x", lit([1, 2, 3, 4, 5]), body, batch=2)])
    machine = play(spec)
    found = rows(machine)
    assert [found[f"w/f[{i}]/a"]["input"] for i in range(3)] == [
        {"x": [1, 2], "i": 0},
        {"x": [3, 4], "i": 1},
        {"x": [5], "i": 2},
    ]


def test_tolerate_and_collect_count_batches() -> None:
    machine = play(workflow([loop(5, batch=2, tolerate={"percent": 34})]), answer=by_iteration(1))
    assert machine.status == "SUCCEEDED"
    assert variables(machine) == {"all": [0, None, 2]}

"""Reuse of iterations on the machine (semantics §9): what is skipped, when, and what it gives."""

from __future__ import annotations

from typing import Any

from compiler import json_values
from local_runner.bundles import MemoryBundles
from tests.unit.local_runner.graphs import (
    Part,
    action,
    assign,
    ctx,
    foreach,
    lit,
    parallel,
    repeat,
    var,
    workflow,
)
from tests.unit.local_runner.play import Answer, Player, rows, statuses, variables

FINGERPRINT = "f" * 64
OUT = [["ctx", "task", ["a", "output"]]]
VARIABLES = [("items", "var", lit([1, 2])), ("got", "set", None), ("k", "var", lit("k"))]


def reusing(
    reads: list[Any] | None = None, key: str = "f", collection: Any = None, **more: Any
) -> Part:
    return foreach(
        key,
        "x",
        collection or ctx("context", "items"),
        [action("a", template={"x": "${var.x}"})],
        collects=[("got", OUT)],
        reuse={"fingerprint": FINGERPRINT, "reads": reads or []},
        **more,
    )


def run(
    spec: Any, store: MemoryBundles, context: dict[str, Any], answer: Answer | None = None
) -> Player:
    player = Player(spec, context, bundles=store).start()
    player.run(answer or (lambda command: (0, command.input["x"])))
    return player


def ran(player: Player) -> list[str]:
    return [path for _now, path in player.claims]


SPEC = workflow([reusing()], variables=VARIABLES)


def test_a_later_run_skips_what_has_succeeded_and_collects_the_stored_value() -> None:
    store = MemoryBundles()
    run(SPEC, store, {"items": [1, 2]})
    again = run(SPEC, store, {"items": [2, 3]}, lambda _command: (0, "new"))
    assert ran(again) == ["w/f[1]/a"]
    assert variables(again.machine)["got"] == [2, "new"]
    found = rows(again.machine)
    assert found["w/f[0]"]["status"] == "SKIPPED"
    assert found["w/f[0]"]["output"] == {"got": 2}
    assert "w/f[0]/a" not in found


def test_the_content_key_is_the_hash_that_every_engine_makes() -> None:
    inner = reusing(reads=[var("k")[0], var("gone")[0]], key="in")
    outer = foreach("out", "y", lit(["o"]), [inner])
    player = run(workflow([outer], variables=VARIABLES), MemoryBundles(), {"items": [5]})
    keys = [key for e in player.machine.executions.values() for key in e.content_keys]
    document = ["w", FINGERPRINT, "in", 5, ["o"], [["k"], []]]
    assert keys == [json_values.sha256_hex(document)]


def test_another_value_read_from_outside_is_another_key() -> None:
    store = MemoryBundles()
    spec = workflow([reusing(reads=ctx("context", "t"))], variables=VARIABLES)
    run(spec, store, {"items": [1], "t": 1})
    assert ran(run(spec, store, {"items": [1], "t": 2})) == ["w/f[0]/a"]
    assert ran(run(spec, store, {"items": [1], "t": 1})) == []


def test_numbers_that_are_equal_are_the_same_item() -> None:
    store = MemoryBundles()
    run(SPEC, store, {"items": [1]})
    assert ran(run(SPEC, store, json_values.loads('{"items": [1.0]}'))) == []


def test_equal_items_of_one_foreach_all_run() -> None:
    assert len(ran(run(SPEC, MemoryBundles(), {"items": [1, 1, 1]}))) == 3


def test_a_foreach_that_begins_later_in_the_run_finds_what_an_earlier_call_has_stored() -> None:
    spec = workflow(
        [repeat("r", lit(2), [reusing(), action("b", template={"x": 0})])], variables=VARIABLES
    )
    assert ran(run(spec, MemoryBundles(), {"items": [1, 2]})) == [
        "w/r[0]/f[0]/a",
        "w/r[0]/f[1]/a",
        "w/r[0]/b",
        "w/r[1]/b",
    ]


def test_what_is_stored_in_the_call_that_activates_the_foreach_comes_too_late() -> None:
    spec = workflow([repeat("r", lit(2), [reusing()])], variables=VARIABLES)
    assert ran(run(spec, MemoryBundles(), {"items": [1, 2]})) == [
        "w/r[0]/f[0]/a",
        "w/r[0]/f[1]/a",
        "w/r[1]/f[1]/a",
    ]


def test_what_another_run_stores_meanwhile_does_not_count() -> None:
    store = MemoryBundles()
    slow = Player(SPEC, {"items": [1, 2]}, bundles=store).start()
    run(SPEC, store, {"items": [1, 2]})
    slow.run(lambda _command: (0, "own"))
    assert ran(slow) == ["w/f[0]/a", "w/f[1]/a"]
    assert variables(run(SPEC, store, {"items": [1]}).machine)["got"] == [1]


def test_force_rerun_runs_all_and_stores_anew() -> None:
    store = MemoryBundles()
    run(SPEC, store, {"items": [1]})
    forced = {"items": [1], "forceRerun": True}
    assert ran(run(SPEC, store, forced, lambda _command: (0, "anew"))) == ["w/f[0]/a"]
    assert variables(run(SPEC, store, {"items": [1]}).machine)["got"] == ["anew"]


def test_a_failed_iteration_stores_nothing() -> None:
    store = MemoryBundles()
    run(SPEC, store, {"items": [1]}, lambda _command: (-1, None))
    assert ran(run(SPEC, store, {"items": [1]})) == ["w/f[0]/a"]


def test_a_task_of_a_skipped_iteration_is_not_there() -> None:
    store = MemoryBundles()
    after = assign("set_1", "k", [["ctx", "task", ["a", "output"]]])
    spec = workflow([reusing(), after], variables=VARIABLES)
    run(spec, store, {"items": [1]})
    machine = run(spec, store, {"items": [1]}).machine
    assert machine.error is not None
    assert (machine.error.engine_code, machine.error.path) == (10001, "w/set_1")


def test_skipped_iterations_start_the_following_ones() -> None:
    store = MemoryBundles()
    for width in (1, 2, 0):
        spec = workflow([reusing(parallel=width)], variables=VARIABLES)
        run(spec, store, {"items": [1, 2, 3, 4]})
        again = run(spec, store, {"items": [1, 9, 2, 3, 8, 4]})
        assert statuses(again.machine)["w/f"] == "SUCCEEDED"
        assert variables(again.machine)["got"] == [1, 9, 2, 3, 8, 4]


def test_skipped_iterations_are_no_failures() -> None:
    store = MemoryBundles()
    spec = workflow([reusing(tolerate={"count": 1})], variables=VARIABLES)
    run(spec, store, {"items": [1, 2]})
    again = run(spec, store, {"items": [1, 3, 2]}, lambda _command: (-1, None))
    assert variables(again.machine)["got"] == [1, None, 2]


def test_a_batch_is_the_item_of_its_key() -> None:
    store = MemoryBundles()
    spec = workflow([reusing(batch=2)], variables=VARIABLES)
    run(spec, store, {"items": [1, 2, 3]})
    assert ran(run(spec, store, {"items": [1, 2, 4]})) == ["w/f[1]/a"]


def test_an_iteration_without_collects_is_skipped_and_gives_nothing() -> None:
    store = MemoryBundles()
    loop = reusing()
    loop.collects = []
    spec = workflow([loop], variables=VARIABLES)
    run(spec, store, {"items": [1]})
    assert rows(run(spec, store, {"items": [1]}).machine)["w/f[0]"]["output"] is None


def test_many_hits_are_worked_off_without_recursion() -> None:
    store, items = MemoryBundles(), list(range(3_000))
    run(SPEC, store, {"items": items})
    again = run(SPEC, store, {"items": items})
    assert ran(again) == []
    assert variables(again.machine)["got"] == items


def test_a_foreach_beside_another_finds_nothing_of_the_same_call() -> None:
    branches = [reusing(key="p"), reusing(key="q")]
    branches[1].edges[0][2].edges[0][2].key = "b"
    branches[1].collects = []
    spec = workflow([parallel("par", branches)], variables=VARIABLES)
    assert len(ran(run(spec, MemoryBundles(), {"items": [1]}))) == 2


def test_a_machine_without_a_store_runs_everything() -> None:
    player = Player(SPEC, {"items": [1]}).start()
    player.run(lambda _command: (0, None))
    assert ran(player) == ["w/f[0]/a"]


def test_the_index_is_written_into_each_key() -> None:
    reads = [ctx("index")[0], ctx("iterationNo")[0], var("i", owner="f.body")[0]]
    spec = workflow([reusing(reads=reads, index="i")], variables=VARIABLES)
    machine = run(spec, MemoryBundles(), {"items": [5, 6]}).machine
    (keys,) = [e.content_keys for e in machine.executions.values() if e.content_keys]
    documents = [["w", FINGERPRINT, "f", 5 + i, [], [[i], [i + 1], [i]]] for i in (0, 1)]
    assert keys == [json_values.sha256_hex(document) for document in documents]


def test_skipped_iterations_take_no_place_among_those_that_run_at_once() -> None:
    store = MemoryBundles()
    spec = workflow([reusing(parallel=2)], variables=VARIABLES)
    run(spec, store, {"items": [1, 2]})
    again = Player(spec, {"items": [1, 7, 2, 8, 9]}, bundles=store).start()
    assert [command.path for command in again.offered] == ["w/f[1]/a", "w/f[3]/a"]

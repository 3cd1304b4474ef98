"""The driver with executors of others: threads, processes, and what can go wrong in them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from local_runner.engine import LocalWorkflowEngine, RunResult
from local_runner.handlers import Handlers, load_handlers
from tests.unit.local_runner.graphs import action, ctx, foreach, lit, parallel, workflow
from tests.unit.local_runner.test_journal import handlers_with

HANDLERS = "tests.unit.local_runner.process_handlers"


@pytest.fixture
def processes() -> Iterator[Executor]:
    # Spawned, so that nothing reaches them but what was pickled.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


def loaded() -> Handlers:
    found = load_handlers(HANDLERS)
    assert isinstance(found, Handlers)
    return found


def run(spec: Any, executor: Executor, handlers: Any = None, **options: Any) -> RunResult:
    engine = LocalWorkflowEngine(spec, handlers or loaded(), executor=executor, parallel_workers=2)
    result = engine.run({}, **options)
    assert isinstance(result, RunResult)
    return result


def each(name: str) -> Any:
    loop = foreach(
        "f",
        "x",
        lit([1, 2, 3, 4]),
        [action("a", name, template={"x": "${var.x}"})],
        parallel=0,
        collects=[("got", ctx("task", "a", "output"))],
    )
    return workflow([loop], variables=[("got", "set", None)])


def one(name: str, **more: Any) -> Any:
    return workflow([action("a", name, template={"x": 5}, **more)])


def row(result: RunResult, path: str) -> Any:
    rows: Any = result.trace["nodes"]
    return next(found for found in rows if found["path"] == path)


def test_handlers_run_in_other_processes(processes: Executor) -> None:
    got: Any = run(each("square"), processes).trace["variables"]
    assert [entry["square"] for entry in got["got"]] == [1, 4, 9, 16]
    import os

    assert os.getpid() not in {entry["process"] for entry in got["got"]}


def test_results_and_surroundings_go_through_processes_as_they_are(processes: Executor) -> None:
    found = row(run(one("where"), processes), "w/a")
    assert (found["result_code"], found["output"]["path"], found["output"]["attempt"]) == (
        2,
        "w/a",
        1,
    )
    assert str(found["output"]["x"]) == "1.50"


def test_async_handlers_run_in_processes(processes: Executor) -> None:
    assert row(run(one("later"), processes), "w/a")["output"] == 6


def test_what_a_handler_raises_is_told_as_here(processes: Executor) -> None:
    assert row(run(one("raise"), processes), "w/a")["error"]["message"] == "ValueError: no 5"


def test_a_handler_that_kills_its_process_fails_its_node(processes: Executor) -> None:
    result = run(one("die"), processes)
    assert result.status == "FAILED"
    assert row(result, "w/a")["error"]["message"] == (
        "the process that ran it, or one beside it in the pool, has died"
    )


def test_a_pool_that_has_broken_fails_what_comes_after(processes: Executor) -> None:
    first, second = action("a", "die", template={"x": 1}), action("b", "square", template={"x": 1})
    result = run(workflow([parallel("p", [first, second], keep_going=True)]), processes)
    assert result.status == "FAILED"
    assert row(result, "w/p/a")["status"] == "FAILED"


def test_a_handler_that_cannot_be_pickled_is_told(processes: Executor) -> None:
    result = run(one("square"), processes, {"square": lambda x: x})
    message = row(result, "w/a")["error"]["message"]
    assert message.startswith("it cannot be run in the executor: ")


def test_a_time_out_leaves_a_process_behind(processes: Executor) -> None:
    assert row(run(one("slow", timeout_ms=50), processes), "w/a")["error"]["engine_code"] == 10013


def test_threads_of_another_pool() -> None:
    with ThreadPoolExecutor(2) as pool:
        got: Any = run(each("square"), pool).trace["variables"]
    assert [entry["square"] for entry in got["got"]] == [1, 4, 9, 16]


def test_an_executor_that_was_shut_down_is_told() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    message = row(run(one("square"), pool), "w/a")["error"]["message"]
    assert message.startswith("the executor takes no more work: ")


def test_a_run_with_an_executor_goes_on_from_its_journal(tmp_path: Path) -> None:
    ran: list[str] = []
    spec = workflow([action("a", "a"), action("b", "b"), action("c", "c")])
    with ThreadPoolExecutor(1) as pool:
        first = run(spec, pool, handlers_with(ran), journal=tmp_path)
        again = run(spec, pool, handlers_with(ran), journal=tmp_path)
    assert ran == ["a", "b", "c"]
    assert first.trace == again.trace

"""The engine with real threads: refusals, order, parallel work, events, interrupts."""

from __future__ import annotations

import signal
import threading
from itertools import pairwise
from typing import Any

import pytest

from compiler.spec import GraphSpec
from local_runner.engine import (
    ContextRefused,
    LocalWorkflowEngine,
    MissingHandlers,
    RunResult,
    SpecUnsupported,
    WaitEventUnsupported,
)
from local_runner.events import (
    ActionFinished,
    ActionOffered,
    ActionStarted,
    Event,
    NodeEnded,
    RunInterrupted,
)
from local_runner.handlers import Handlers, TaskContext
from tests.unit.local_runner.graphs import Part, action, ctx, foreach, lit, parallel, workflow

WAIT_SECONDS = 20


def finished(spec: GraphSpec, handlers: Any, context: Any = None, **options: Any) -> RunResult:
    result = LocalWorkflowEngine(spec, handlers, **options).run(context or {})
    assert isinstance(result, RunResult)
    return result


def test_a_run_returns_status_output_and_trace() -> None:
    spec = workflow(
        [action("a", "sum", {"of": [1, 2]}, sets=[("total", [["out", []]])])],
        outputs=[("total", [["var", "total", "w", []]])],
    )
    result = finished(spec, {"sum": lambda of: sum(of)})
    assert (result.status, result.error, result.output) == ("SUCCEEDED", None, {"total": 3})
    assert result.trace == {
        "trace_format": 1,
        "workflow": "w",
        "status": "SUCCEEDED",
        "error": None,
        "output": {"total": 3},
        "variables": {"total": 3},
        "nodes": [
            {
                "path": "w",
                "type": "SEQUENCE",
                "status": "SUCCEEDED",
                "attempts": 1,
                "result_code": 0,
                "input": None,
                "output": None,
                "error": None,
            },
            {
                "path": "w/a",
                "type": "ACTION",
                "status": "SUCCEEDED",
                "attempts": 1,
                "result_code": 0,
                "input": {"of": [1, 2]},
                "output": 3,
                "error": None,
            },
        ],
    }


def test_the_own_id_is_hidden_in_the_trace() -> None:
    spec = workflow([action("a", template={"id": "${ctx.instance_id}"})])
    engine = LocalWorkflowEngine(spec, {"do": lambda id: {"got": id}})
    result = engine.run({}, instance_id="local-77")
    assert isinstance(result, RunResult)
    assert result.trace["nodes"][1]["input"] == {"id": "$instance_id"}
    assert result.trace["nodes"][1]["output"] == {"got": "$instance_id"}


def test_the_own_id_inside_a_longer_string_stays_in_the_trace() -> None:
    spec = workflow([action("a", template={"id": "x ${ctx.instance_id}"})])
    result = LocalWorkflowEngine(spec, {"do": lambda id: None}).run({}, instance_id="7")
    assert isinstance(result, RunResult)
    assert result.trace["nodes"][1]["input"] == {"id": "x 7"}


def test_wait_events_are_refused_by_name_before_anything_runs() -> None:
    ran: list[str] = []
    waits = [
        Part("delivered", "WAIT_EVENT", {"event_type": "e"}),
        Part("paid", "WAIT_EVENT", {"event_type": "e"}),
    ]
    engine = LocalWorkflowEngine(workflow([action("a"), *waits]), {"do": lambda: ran.append("a")})
    refusal = engine.run({})
    assert refusal == WaitEventUnsupported("w", ("delivered", "paid"))
    assert "delivered, paid" in refusal.message
    assert ran == []


def test_missing_handlers_are_listed_before_anything_runs() -> None:
    ran: list[str] = []
    spec = workflow([action("a"), action("b", "x.two"), action("c", "x.one")])
    refusal = LocalWorkflowEngine(spec, {"do": lambda: ran.append("a")}).run({})
    assert refusal == MissingHandlers("w", ("x.one", "x.two"))
    assert ran == []


def test_parts_of_a_graph_that_are_not_run_yet_are_refused() -> None:
    spec = workflow([action("a", branch_variable="x")])
    refusal = LocalWorkflowEngine(spec, {"do": lambda: None}).run({})
    assert refusal == SpecUnsupported("w", ("branch_variable of a",))


@pytest.mark.parametrize("context", [[], {"x": float("inf")}, {"x": "\x00"}])
def test_a_context_that_cannot_be_stored_is_refused(context: Any) -> None:
    assert isinstance(LocalWorkflowEngine(workflow([]), {}).run(context), ContextRefused)


def test_a_failing_handler_fails_the_run() -> None:
    def do() -> None:
        raise ValueError("no stock")

    result = finished(workflow([action("a")]), {"do": do})
    assert result.status == "FAILED"
    assert result.error is not None
    assert (result.error.code, result.error.message) == (-1, "ValueError: no stock")


def test_one_worker_runs_one_action_at_a_time_in_claim_order() -> None:
    order: list[str] = []
    branches = [action("a", "a"), action("b", "b", priority=3), action("c", "c")]
    handlers = {name: lambda name=name: order.append(name) for name in "abc"}
    result = finished(workflow([parallel("p", branches)]), handlers)
    assert order == ["b", "a", "c"]
    spans = [(entry.started_at, entry.ended_at) for entry in result.timeline]
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_workers_run_branches_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=WAIT_SECONDS)
    spec = workflow([parallel("p", [action(key) for key in "abc"])])
    result = finished(spec, {"do": lambda: meeting.wait() and None}, parallel_workers=3)
    assert result.status == "SUCCEEDED"
    assert {entry.worker for entry in result.timeline} == {0, 1, 2}


def test_parallel_iterations_that_end_in_reverse_collect_in_order() -> None:
    ended = [threading.Event() for _ in range(4)]
    ended[3].set()

    def do(i: int) -> int:
        assert ended[i].wait(WAIT_SECONDS)
        if i:
            ended[i - 1].set()
        return i

    loop = foreach(
        "f",
        "x",
        lit([0, 1, 2, 3]),
        [action("a", template={"i": "${var.x}"})],
        parallel=0,
        collects=[("all", ctx("task", "a", "output"))],
    )
    result = finished(workflow([loop]), {"do": do}, parallel_workers=4)
    assert result.trace["variables"] == {"all": [0, 1, 2, 3]}


def test_a_running_action_is_told_that_its_branch_was_cancelled() -> None:
    waiting = threading.Event()
    told: list[bool] = []

    def slow(task: TaskContext) -> None:
        waiting.set()
        told.append(task.cancelled.wait(WAIT_SECONDS))

    def failing() -> None:
        assert waiting.wait(WAIT_SECONDS)
        raise ValueError("stop")

    spec = workflow([parallel("p", [action("a", "slow"), action("b", "failing")])])
    result = finished(spec, {"slow": slow, "failing": failing}, parallel_workers=2)
    assert told == [True]
    assert [row["status"] for row in result.trace["nodes"]] == [
        "FAILED",
        "FAILED",
        "CANCELLED",
        "FAILED",
    ]


def test_events_tell_of_actions_and_of_the_authors_nodes() -> None:
    events: list[Event] = []
    spec = workflow([foreach("f", "x", lit([1]), [action("a")])])
    finished(spec, {"do": lambda: None}, on_event=events.append)
    assert events == [
        ActionOffered("w/f[0]/a", "do"),
        ActionStarted("w/f[0]/a", "do", 0),
        ActionFinished("w/f[0]/a", "do", 0, 0, None),
        NodeEnded("w/f[0]/a", "ACTION", "SUCCEEDED"),
        NodeEnded("w/f[0]", "SEQUENCE", "SUCCEEDED"),
        NodeEnded("w/f", "FOREACH", "SUCCEEDED"),
        NodeEnded("w", "SEQUENCE", "SUCCEEDED"),
    ]


def test_an_engine_can_run_several_instances() -> None:
    engine = LocalWorkflowEngine(workflow([action("a")]), {"do": lambda: 1})
    first, second = engine.run({}), engine.run({})
    assert isinstance(first, RunResult)
    assert isinstance(second, RunResult)
    assert first.trace == second.trace


def interrupt() -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def test_an_interrupt_lets_the_running_handler_finish_and_starts_nothing_new() -> None:
    ran: list[str] = []

    def first(task: TaskContext) -> None:
        interrupt()
        assert task.cancelled.wait(WAIT_SECONDS)
        ran.append("first")

    spec = workflow([action("a", "first"), action("b", "second")])
    before = signal.getsignal(signal.SIGINT)
    result = finished(spec, {"first": first, "second": lambda: ran.append("second")})
    assert (result.status, ran) == ("CANCELLED", ["first"])
    assert signal.getsignal(signal.SIGINT) is before
    assert {row["status"] for row in result.trace["nodes"]} == {"CANCELLED"}


def test_an_interrupt_in_a_handler_that_asks_for_nothing_starts_nothing_new() -> None:
    ran: list[str] = []
    events: list[Event] = []

    def first() -> None:
        interrupt()
        ran.append("first")

    spec = workflow([action("a", "first"), action("b", "second")])
    handlers = {"first": first, "second": lambda: ran.append("second")}
    result = finished(spec, handlers, on_event=events.append)
    assert (result.status, ran) == ("CANCELLED", ["first"])
    assert RunInterrupted(1) in events
    assert events.count(ActionFinished("w/a", "first", 0, 0, None)) == 1
    assert [entry.path for entry in result.timeline] == ["w/a"]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_between_two_handlers_starts_nothing_new(workers: int) -> None:
    ran: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, ActionFinished):
            interrupt()

    spec = workflow([action("a", "first"), action("b", "second")])
    handlers = {"first": lambda: ran.append("first"), "second": lambda: ran.append("second")}
    result = finished(spec, handlers, on_event=listen, parallel_workers=workers)
    assert (result.status, ran) == ("CANCELLED", ["first"])
    statuses = {row["path"]: row["status"] for row in result.trace["nodes"]}
    assert statuses == {"w": "CANCELLED", "w/a": "SUCCEEDED", "w/b": "CANCELLED"}


def test_what_no_handler_may_raise_is_raised_to_the_caller() -> None:
    class Stopped(BaseException):
        pass

    def stop() -> None:
        raise Stopped

    engine = LocalWorkflowEngine(workflow([action("a"), action("b")]), {"do": stop})
    with pytest.raises(Stopped):
        engine.run({})


def test_a_handler_that_changes_its_input_changes_nothing_else() -> None:
    def change(plain: int, inside: list[int], **others: int) -> None:
        others["x"] = plain
        inside.append(1)

    spec = workflow([action("a", template={"plain": 1, "inside": [0], "y": 2})])
    result = finished(spec, {"do": change})
    assert result.trace["nodes"][1]["input"] == {"plain": 1, "inside": [0], "y": 2}


def test_a_fault_of_the_runner_in_a_worker_is_raised_to_the_caller() -> None:
    class Broken(Handlers):
        def invoke(self, *_: Any) -> Any:
            raise RuntimeError("ours")

    handlers = Broken.from_functions({"do": lambda: None})
    with pytest.raises(RuntimeError, match="ours"):
        LocalWorkflowEngine(workflow([action("a")]), handlers).run({})

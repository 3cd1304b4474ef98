"""The driver and time: waits, time-outs that leave a thread behind, both clocks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from local_runner.clock import RealClock, VirtualClock
from local_runner.engine import LocalWorkflowEngine, RunResult
from local_runner.events import ActionAbandoned, ActionFinished, Event
from local_runner.handlers import Result, TaskContext
from tests.unit.local_runner.graphs import action, fail, guarded, lit, parallel, sleep, workflow

WAIT_SECONDS = 20
DAY_MS = 86_400_000


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Lets handlers that hang end when the test does."""
    event = threading.Event()
    yield event
    event.set()


def finished(spec: Any, handlers: Any, **options: Any) -> RunResult:
    clock = options.pop("clock", None)
    result = LocalWorkflowEngine(spec, handlers, **options).run({}, clock=clock)
    assert isinstance(result, RunResult)
    return result


def test_a_virtual_clock_jumps_over_sleeps_delays_and_backoffs() -> None:
    clock = VirtualClock()
    retry = {"limit": 3, "backoff_ms": DAY_MS, "max_ms": DAY_MS, "on": ["any"]}
    spec = workflow([sleep("s", DAY_MS), action("a", retry=retry, delay_ms=DAY_MS)])
    codes = iter([-1, -1, 0])
    result = finished(spec, {"do": lambda: Result(next(codes))}, clock=clock)
    assert (result.status, clock.now_ms()) == ("SUCCEEDED", 4 * DAY_MS)
    assert result.trace["nodes"][2]["attempts"] == 3


def test_the_real_clock_waits_until_something_is_due() -> None:
    spec = workflow([sleep("s", 30), action("a", delay_ms=20)])
    result = finished(spec, {"do": lambda: None})
    assert result.status == "SUCCEEDED"


def test_a_handler_past_its_time_out_is_left_behind_and_told(release: threading.Event) -> None:
    events: list[Event] = []
    told: list[TaskContext] = []
    began = threading.Event()

    def hang(task: TaskContext) -> None:
        told.append(task)
        began.set()
        release.wait(WAIT_SECONDS)

    spec = workflow([guarded("s", [action("a", "hang", timeout_ms=20)], [action("b", "mend")])])
    handlers = {"hang": hang, "mend": lambda: "mended"}
    result = finished(spec, handlers, on_event=events.append)
    assert result.status == "SUCCEEDED"
    assert ActionAbandoned("w/s/a", "hang", 0) in events
    assert ActionFinished("w/s/b", "mend", 0, 0, None) in events
    # On a busy machine the time may be up before the thread has come to the handler.
    assert began.wait(WAIT_SECONDS)
    assert told[0].cancelled.is_set()
    assert not release.is_set()


def test_a_time_out_of_a_composite_leaves_its_handlers_behind(release: threading.Event) -> None:
    branches = [action("a", "hang"), action("b", "hang")]
    spec = workflow([parallel("p", branches, timeout_ms=20)])
    handlers = {"hang": lambda: release.wait(WAIT_SECONDS) and None}
    result = finished(spec, handlers, parallel_workers=2)
    assert result.error is not None
    assert result.error.message == "w/p: timed out after 20 ms"


def test_the_result_of_an_abandoned_attempt_is_not_that_of_the_next(
    release: threading.Event,
) -> None:
    second = threading.Event()
    results: list[str] = []

    def do(task: TaskContext) -> str:
        if task.attempt == 1:
            assert second.wait(WAIT_SECONDS)
            results.append("first is back")
            release.set()
            return "first"
        second.set()
        assert release.wait(WAIT_SECONDS)
        return "second"

    retry = {"limit": 1, "backoff_ms": 0, "on": [10013]}
    spec = workflow([action("a", timeout_ms=500, retry=retry)])
    result = finished(spec, {"do": do})
    assert results == ["first is back"]
    assert result.trace["nodes"][1]["output"] == "second"


def test_a_cancelled_handler_past_its_own_time_out_is_not_waited_for(
    release: threading.Event,
) -> None:
    hanging = threading.Event()

    def hang() -> None:
        hanging.set()
        release.wait(WAIT_SECONDS)

    def stop() -> None:
        assert hanging.wait(WAIT_SECONDS)
        raise ValueError("stop")

    spec = workflow([parallel("p", [action("a", "hang", timeout_ms=60), action("b", "stop")])])
    result = finished(spec, {"hang": hang, "stop": stop}, parallel_workers=2)
    assert result.status == "FAILED"
    assert not release.is_set()


def test_a_failure_without_any_action_needs_no_worker() -> None:
    assert finished(workflow([fail("f", -1, lit("x"))]), {}).status == "FAILED"


def test_the_real_clock_starts_at_its_offset() -> None:
    assert RealClock(5000).now_ms() >= 5000


def test_the_virtual_clock_stands_while_a_handler_runs() -> None:
    clock = VirtualClock(7)
    assert clock.patience(100, is_idle=False) is None
    assert clock.now_ms() == 7


def test_the_virtual_clock_never_goes_back() -> None:
    clock = VirtualClock(7)
    clock.move_to(3)
    assert clock.now_ms() == 7

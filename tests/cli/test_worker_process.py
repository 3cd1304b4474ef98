"""The worker's loop, against a runtime that is played by Python."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any, cast

import pytest

from runtime_sql.connection import Claim, Heartbeat, RuntimeClient, Submitted, Task
from runtime_sql.failures import ApiError, DatabaseProblem, Failure, unreachable
from wfsql.worker.link import Link
from wfsql.worker.process import Outcome, Stopped, Worker, WorkerSettings, tick

DEADLOCK = DatabaseProblem("server", "deadlock detected", "try again", retryable=True)


def task(number: int) -> Task:
    return Task(
        execution_id=number,
        instance_id=1,
        node_key="k",
        action="act",
        capability="c",
        attempt=1,
        input_json="{}",
        iteration_no=None,
        lease_token=number,
        lease_until=None,
        deadline=None,
        path=f"w/k[{number}]",
    )


@dataclass
class FakeRuntime:
    """Hands out `claims` in order, then nothing; notes what is handed in."""

    claims: deque[Claim | Failure] = field(default_factory=deque)
    submit_answers: deque[Submitted | Failure] = field(default_factory=deque)
    submitted: list[tuple[int, int, str | None]] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    failed: list[tuple[int, str]] = field(default_factory=list)
    asked_for: list[int] = field(default_factory=list)
    beats: list[int] = field(default_factory=list)
    beat_command: str = "NONE"
    connects: int = 0
    on_empty: Any = None
    lock: Lock = field(default_factory=Lock)

    def connect(self) -> RuntimeClient | Failure:
        self.connects += 1
        return cast(RuntimeClient, self)

    def close(self) -> None: ...

    def tick(self) -> None: ...

    def request_tasks(self, *arguments: Any) -> Claim | Failure:
        self.asked_for.append(arguments[4])
        if self.claims:
            return self.claims.popleft()
        if self.on_empty is not None:
            self.on_empty()
        return Claim((), "NONE")

    def submit_result(
        self, task: Task, _worker: str, _token: str, code: int, output: str | None, _m: str | None
    ) -> Submitted | Failure:
        with self.lock:
            if self.submit_answers:
                answer = self.submit_answers.popleft()
                if not isinstance(answer, Submitted):
                    return answer
            self.submitted.append((task.execution_id, code, output))
        return Submitted(True, "RUNNING", 0, "OK")

    def fail_task(self, task: Task, _w: str, _t: str, _code: int, message: str) -> None:
        self.failed.append((task.execution_id, message))

    def release_task(self, task: Task, *_rest: Any) -> None:
        self.released.append(task.execution_id)

    def heartbeat(self, task: Task, *_rest: Any) -> Heartbeat | Failure:
        self.beats.append(task.execution_id)
        updated = 0 if self.beat_command == "CANCEL" else 1
        return Heartbeat(updated, None, self.beat_command)


def run(
    runtime: FakeRuntime,
    invoke: Any = lambda _task, _cancelled: Outcome(0, "{}"),
    *,
    stop_when_empty: bool = True,
    **settings: Any,
) -> tuple[Worker, Stopped | None, list[str]]:
    """Runs a worker until the runtime has nothing left to hand out."""
    lines: list[str] = []
    chosen = WorkerSettings(worker_id="w1", token="t", **settings)
    worker = Worker(chosen, runtime.connect, invoke, lines.append)
    if stop_when_empty:
        runtime.on_empty = worker.stop
    return worker, worker.run(), lines


def test_claims_run_and_submits() -> None:
    runtime = FakeRuntime(deque([Claim((task(1),), "NONE"), Claim((task(2),), "NONE")]))
    worker, reason, _lines = run(runtime, lambda t, _c: Outcome(t.execution_id, '{"a":1}'))
    assert reason is None
    assert runtime.submitted == [(1, 1, '{"a":1}'), (2, 2, '{"a":1}')]
    assert worker.finished_count == 2


def test_asks_for_no_more_tasks_than_threads_are_free() -> None:
    runtime = FakeRuntime(deque([Claim((task(1), task(2)), "NONE")]))
    run(runtime, concurrency=3)
    assert runtime.asked_for[0] == 3
    assert max(runtime.asked_for) <= 3


def test_stop_finishes_the_task_in_hand() -> None:
    runtime = FakeRuntime(deque([Claim((task(1),), "NONE")]))
    box: list[Worker] = []

    def invoke(_task: Task, _cancelled: Event) -> Outcome:
        box[0].stop()
        return Outcome(0, None)

    worker = Worker(WorkerSettings(worker_id="w", token="t"), runtime.connect, invoke, print)
    box.append(worker)
    assert worker.run() is None
    assert runtime.submitted == [(1, 0, None)]


def test_a_deadlock_in_a_submit_is_tried_again() -> None:
    runtime = FakeRuntime(deque([Claim((task(1),), "NONE")]), deque([DEADLOCK, DEADLOCK]))
    run(runtime)
    assert runtime.submitted == [(1, 0, "{}")]


def test_a_lost_connection_is_made_anew() -> None:
    runtime = FakeRuntime(deque([unreachable("gone"), Claim((task(1),), "NONE")]))
    run(runtime)
    assert runtime.submitted == [(1, 0, "{}")]
    # The claiming thread connected twice, the task's thread once, the heartbeat at most once.
    assert runtime.connects >= 3


def test_drain_finishes_what_is_in_hand_and_ends() -> None:
    runtime = FakeRuntime(deque([Claim((task(1),), "DRAIN")]))
    worker, reason, lines = run(runtime, stop_when_empty=False)
    assert reason is None
    assert not worker.abandoned
    assert runtime.submitted == [(1, 0, "{}")]
    assert "told to DRAIN" in lines


def test_stop_command_gives_the_tasks_back() -> None:
    runtime = FakeRuntime(deque([Claim((task(1),), "STOP")]))

    def invoke(_task: Task, cancelled: Event) -> Outcome:
        assert cancelled.wait(10)
        return Outcome(0, None)

    worker, reason, _lines = run(runtime, invoke, stop_when_empty=False)
    assert reason is None
    assert worker.abandoned
    assert runtime.released == [1]
    assert runtime.submitted == []


def test_heartbeat_tells_a_handler_that_it_is_cancelled() -> None:
    runtime = FakeRuntime(deque([Claim((task(1),), "NONE")]), beat_command="CANCEL")
    seen: list[bool] = []

    def invoke(_task: Task, cancelled: Event) -> Outcome:
        seen.append(cancelled.wait(10))
        return Outcome(0, None)

    run(runtime, invoke, lease_seconds=cast(int, 0.03))
    assert seen == [True]
    assert set(runtime.beats) == {1}


def test_an_action_without_handler_is_given_back_and_ends_the_worker() -> None:
    runtime = FakeRuntime(deque([Claim((task(1),), "NONE")]))
    _worker, reason, _lines = run(runtime, lambda _t, _c: None, stop_when_empty=False)
    assert runtime.released == [1]
    assert reason is not None
    assert reason.message == 'no handler for action "act", which was deployed after the start'


def test_a_refused_token_ends_the_worker() -> None:
    runtime = FakeRuntime(deque([ApiError(20001, "not authenticated")]))
    _worker, reason, _lines = run(runtime, stop_when_empty=False)
    assert reason == Stopped("not authenticated (20001)")


def test_an_output_that_the_runtime_refuses_fails_the_task() -> None:
    runtime = FakeRuntime(deque([Claim((task(1),), "NONE")]), deque([ApiError(20005, "too large")]))
    _worker, reason, _lines = run(runtime)
    assert reason is None
    assert runtime.failed == [(1, "too large")]


def test_a_fault_in_a_thread_ends_the_worker_as_a_fault() -> None:
    runtime = FakeRuntime(deque([Claim((task(1),), "NONE")]))

    def invoke(_task: Task, _cancelled: Event) -> Outcome:
        raise RuntimeError("broken")

    _worker, reason, _lines = run(runtime, invoke, stop_when_empty=False)
    assert reason == Stopped("RuntimeError: broken", is_fault=True)


@dataclass
class Queue:
    """A runtime whose task queue has so many dead rows; notes what is called."""

    dead: int | Failure
    calls: list[str] = field(default_factory=list)

    def tick(self) -> None:
        self.calls.append("tick")

    def dead_task_rows(self) -> int | Failure:
        return self.dead

    def vacuum_tasks(self) -> None:
        self.calls.append("vacuum")


@pytest.mark.parametrize(
    ("dead", "calls"),
    [
        (20_000, ["tick"]),
        (20_001, ["tick", "vacuum"]),
        (DatabaseProblem("not_allowed", "no rights", "ask"), ["tick"]),
    ],
)
def test_a_queue_with_many_dead_rows_is_vacuumed(dead: int | Failure, calls: list[str]) -> None:
    queue = Queue(dead)
    tick(Link(lambda: cast(RuntimeClient, queue), Event(), print))
    assert queue.calls == calls


def test_idle_exit_ends_a_worker_that_has_nothing_to_do() -> None:
    runtime = FakeRuntime()
    _worker, reason, _lines = run(runtime, stop_when_empty=False, idle_exit_seconds=0.01)
    assert reason is None

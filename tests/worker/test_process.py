"""The worker's loop, against a source and a heartbeat that are played by Python."""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from runtime_sql.connection import Claim, Submitted, Task
from tests.worker.fakes import AWAY, FakeHeartbeat, FakeSource, ListLog, claims, finished, task
from wfsql.worker.process import Outcome, Stopped, Worker, WorkerSettings
from wfsql.worker.source import Trouble
from wfsql.worker.spool import Spool


def fine(_task: Task, _cancelled: Event) -> Outcome:
    return Outcome(0, "{}")


def make(
    source: FakeSource,
    invoke: Any = fine,
    *,
    heartbeat: FakeHeartbeat | None = None,
    spool: Spool | None = None,
    log: ListLog | None = None,
    **settings: Any,
) -> Worker:
    return Worker(
        WorkerSettings(**settings),
        source,
        invoke,
        heartbeat or FakeHeartbeat(),
        log or ListLog(),
        spool=spool,
    )


def run(source: FakeSource, invoke: Any = fine, **options: Any) -> tuple[Worker, Stopped | None]:
    """Runs a worker until the source has nothing left to hand out."""
    worker = make(source, invoke, **options)
    source.on_empty = worker.stop
    return worker, worker.run()


def test_claims_run_and_submits() -> None:
    source = FakeSource(claims([1], [2]))
    worker, reason = run(source, lambda t, _c: Outcome(t.execution_id, '{"a":1}'))
    assert reason is None
    assert source.submitted == [(1, 1, '{"a":1}'), (2, 2, '{"a":1}')]
    assert worker.finished_count == 2


def test_asks_for_no_more_tasks_than_threads_are_free() -> None:
    source = FakeSource(claims([1, 2]))
    run(source, concurrency=3)
    assert source.asked_for[0] == 3
    assert max(source.asked_for) <= 3


def test_short_tasks_are_claimed_ahead_when_there_is_a_backlog() -> None:
    source = FakeSource(claims(*([n] for n in range(1, 30))))
    run(source)
    assert source.asked_for[0] == 1
    assert max(source.asked_for) > 1


def test_what_waits_behind_a_long_task_is_given_to_others() -> None:
    # The first tasks are short, so more are claimed than one thread can begin with.
    source = FakeSource(deque([*claims([1], [2]), *claims(range(3, 6))]))
    let_go = Event()

    def invoke(t: Task, _cancelled: Event) -> Outcome:
        if t.execution_id == 3:
            assert let_go.wait(10)
        return Outcome(0, None)

    worker = make(source, invoke)
    source.on_empty = lambda: None
    thread = Thread(target=worker.run)
    thread.start()
    wait_for(lambda: source.released == [4, 5])
    let_go.set()
    worker.stop()
    thread.join(10)
    assert [number for number, _code, _output in source.submitted] == [1, 2, 3]


def wait_for(condition: Any, seconds: float = 10) -> None:
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at, "the condition did not come true"
        time.sleep(0.005)


def test_a_request_waits_at_the_other_end_only_while_a_thread_is_free() -> None:
    source = FakeSource(claims([1]), longest_wait_seconds=30)
    run(source)
    assert source.waits[0] == 30


def test_stop_ends_a_request_that_waits() -> None:
    source = FakeSource(longest_wait_seconds=30)
    asked = Event()
    worker = make(source)
    source.on_empty = asked.set
    thread = Thread(target=worker.run)
    thread.start()
    assert asked.wait(10)
    worker.stop()
    thread.join(10)
    assert not thread.is_alive()


def test_stop_finishes_the_task_in_hand() -> None:
    source = FakeSource(claims([1]))
    box: list[Worker] = []

    def invoke(_task: Task, _cancelled: Event) -> Outcome:
        box[0].stop()
        return Outcome(0, None)

    box.append(make(source, invoke))
    assert box[0].run() is None
    assert source.submitted == [(1, 0, None)]


def test_abandon_gives_back_the_task_in_hand_and_tells_its_handler() -> None:
    source = FakeSource(claims([1]))
    box: list[Worker] = []
    seen: list[bool] = []

    def invoke(_task: Task, cancelled: Event) -> Outcome:
        box[0].abandon()
        seen.append(cancelled.wait(10))
        return Outcome(0, None)

    box.append(make(source, invoke))
    assert box[0].run() is None
    wait_for(lambda: seen == [True])
    assert source.released == [1]
    assert source.submitted == []


def test_a_source_that_is_away_is_asked_again() -> None:
    source = FakeSource(deque([AWAY, AWAY, *claims([1])]))
    run(source)
    assert source.submitted == [(1, 0, "{}")]


def test_a_submit_that_does_not_get_through_is_made_again() -> None:
    source = FakeSource(claims([1]), deque([AWAY, AWAY]))
    run(source)
    assert source.submitted == [(1, 0, "{}")]


def test_nothing_is_claimed_while_results_cannot_be_handed_in() -> None:
    source = FakeSource(claims([1], [2]), deque([AWAY] * 4))
    asked_at: list[int] = []
    source.before_submit = lambda _results: asked_at.append(len(source.asked_for))
    run(source)
    # From the first failure on no claim is made until the result is accepted.
    assert len(set(asked_at[1:5])) == 1


@pytest.mark.parametrize("command", ["DRAIN", "STOP"])
def test_a_command_of_a_claim_ends_the_worker(command: str) -> None:
    source = FakeSource(claims([], command=command))
    log = ListLog()
    worker = make(source, log=log)
    assert worker.run() is None
    assert worker.abandoned is (command == "STOP")
    assert f"told to {command}" in log.lines


def test_drain_finishes_what_is_in_hand() -> None:
    source = FakeSource(claims([1], command="DRAIN"))
    assert make(source).run() is None
    assert source.submitted == [(1, 0, "{}")]


def test_stop_gives_back_what_is_in_hand() -> None:
    source = FakeSource(claims([1], command="STOP"))

    def invoke(_task: Task, cancelled: Event) -> Outcome:
        assert cancelled.wait(10)
        return Outcome(0, None)

    worker = make(source, invoke)
    assert worker.run() is None
    assert source.released == [1]
    assert source.submitted == []


def test_the_heartbeat_tells_a_handler_that_it_is_cancelled() -> None:
    source = FakeSource(claims([1]))
    heartbeat = FakeHeartbeat()
    seen: list[bool] = []

    def invoke(_task: Task, cancelled: Event) -> Outcome:
        assert heartbeat.heard is not None
        heartbeat.heard.cancel([1, 99])
        seen.append(cancelled.wait(10))
        return Outcome(0, None)

    run(source, invoke, heartbeat=heartbeat)
    assert seen == [True]


def test_a_lease_is_held_from_the_claim_to_the_answer() -> None:
    source = FakeSource(claims([1]))
    heartbeat = FakeHeartbeat()
    source.before_submit = lambda _results: assert_empty(heartbeat.dropped)
    run(source, heartbeat=heartbeat, lease_seconds=40)
    assert heartbeat.held == {1: (1, 1, 40.0)}
    assert heartbeat.dropped == [1]
    assert heartbeat.is_over


def assert_empty(items: list[int]) -> None:
    assert items == []


def test_a_lease_that_ends_earlier_is_extended_earlier() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=9)
    given = [Task(**{**fields(task(1)), "lease_until": soon})]
    source = FakeSource(deque([Claim(tuple(given), "NONE")]))
    heartbeat = FakeHeartbeat()
    run(source, heartbeat=heartbeat)
    assert 5 < heartbeat.held[1][2] <= 9


def fields(row: Task) -> dict[str, Any]:
    return {name: getattr(row, name) for name in Task.__dataclass_fields__}


def test_a_refused_heartbeat_asks_for_another_token() -> None:
    source = FakeSource(claims([1]))
    heartbeat = FakeHeartbeat(on_hold=lambda heard: heard.refused())
    run(source, heartbeat=heartbeat)
    assert source.renewals == 1


def test_an_action_without_handler_is_given_back_and_ends_the_worker() -> None:
    source = FakeSource(claims([1]))
    reason = make(source, lambda _t, _c: None).run()
    assert source.released == [1]
    assert reason is not None
    assert reason.message == 'no handler for action "act", which was deployed after the start'


def test_a_refused_token_ends_the_worker() -> None:
    source = FakeSource(deque([Trouble("not authenticated", code=20001)]))
    assert make(source).run() == Stopped("not authenticated (20001)")


def test_an_output_that_the_runtime_refuses_fails_the_task() -> None:
    source = FakeSource(claims([1]), deque([Trouble("too large", code=20005)]))
    _worker, reason = run(source)
    assert reason is None
    assert source.failed == [(1, "too large")]


def test_a_fault_in_a_thread_ends_the_worker_as_a_fault() -> None:
    def invoke(_task: Task, _cancelled: Event) -> Outcome:
        raise RuntimeError("broken")

    reason = make(FakeSource(claims([1])), invoke).run()
    assert reason == Stopped("RuntimeError: broken", is_fault=True)


def test_a_fault_in_the_submitter_ends_the_worker_as_a_fault() -> None:
    source = FakeSource(claims([1]))

    def broken(_results: Any) -> None:
        raise RuntimeError("broken")

    source.before_submit = broken
    reason = make(source).run()
    assert reason == Stopped("RuntimeError: broken", is_fault=True)


def test_a_result_that_does_not_count_is_logged() -> None:
    log = ListLog()
    source = FakeSource(claims([1]), deque([[Submitted(False, "RUNNING", 0, "STALE")]]))
    worker, _reason = run(source, log=log)
    assert "w/k[1] (1) act -> STALE" in log.lines
    assert worker.finished_count == 0


def test_idle_exit_ends_a_worker_that_has_nothing_to_do() -> None:
    assert make(FakeSource(), idle_exit_seconds=0.01).run() is None


# Results on disk --------------------------------------------------------------------------------


def test_a_kept_result_is_handed_in_before_anything_is_claimed(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "w at g", print)
    spool.put(finished(7, '{"a": 1.50}'))
    source = FakeSource(claims([8]))
    source.before_submit = lambda results: (
        assert_empty(source.asked_for) if results[0].task_id == 7 else None
    )
    run(source, spool=spool)
    assert source.submitted == [(7, 0, '{"a":1.50}'), (8, 0, "{}")]
    assert spool.load() == []


def test_a_result_is_on_disk_when_it_is_handed_in(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "w at g", print)
    source = FakeSource(claims([1]))
    seen: list[list[int]] = []
    source.before_submit = lambda _results: seen.append([d.task_id for d in spool.load()])
    run(source, spool=spool)
    assert seen == [[1]]
    assert spool.load() == []


def test_a_result_that_cannot_be_handed_in_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wfsql.worker.process._LAST_RESULTS_SECONDS", 0.1)
    spool = Spool(tmp_path, "w at g", print)
    source = FakeSource(claims([1]), deque([AWAY] * 1000))
    worker = make(source, spool=spool)
    source.before_submit = lambda _results: worker.stop()
    reason = worker.run()
    assert reason == Stopped(
        "1 result was not handed in", "they are kept, and go first at the next start"
    )
    assert [done.task_id for done in spool.load()] == [1]


def test_a_refused_token_keeps_the_result(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "w at g", print)
    refused = Trouble("not authenticated", code=20001)
    source = FakeSource(claims([1]), deque([refused]))
    assert make(source, spool=spool).run() == Stopped("not authenticated (20001)")
    assert [done.task_id for done in spool.load()] == [1]

"""Tasks straight from a database: connections that come back, batches, the queue's dead rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from runtime_sql.connection import (
    Claim,
    PostgresClient,
    RuntimeClient,
    SubmitItem,
    Submitted,
    connect,
    results_json,
)
from runtime_sql.failures import ApiError, DatabaseProblem, Failure, unreachable
from tests.runtime_sql import drive
from tests.worker.fakes import finished
from wfsql.worker.database_source import DatabaseSource
from wfsql.worker.source import Trouble

DEADLOCK = DatabaseProblem("server", "deadlock detected", "try again", retryable=True)


@dataclass
class PlayedRuntime:
    """Answers each call with the next of `answers`; notes connects, closes and calls."""

    answers: deque[Any] = field(default_factory=deque)
    connects: int = 0
    closes: int = 0
    calls: list[str] = field(default_factory=list)
    dead: int | Failure = 0

    def connect(self) -> RuntimeClient | Failure:
        self.connects += 1
        return cast(RuntimeClient, self)

    def close(self) -> None:
        self.closes += 1

    def request_tasks(self, *_arguments: Any) -> Any:
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def tick(self) -> None:
        self.calls.append("tick")

    def dead_task_rows(self) -> int | Failure:
        return self.dead

    def vacuum_tasks(self) -> None:
        self.calls.append("vacuum")


def source_of(runtime: PlayedRuntime) -> DatabaseSource:
    return DatabaseSource(runtime.connect, "w1", "t", 60)


def test_a_lost_connection_is_made_anew_by_the_next_call() -> None:
    runtime = PlayedRuntime(deque([unreachable("gone"), Claim((), "NONE")]))
    source = source_of(runtime)
    answer = source.request(1, 0)
    assert isinstance(answer, Trouble)
    assert answer.passing
    assert source.request(1, 0) == Claim((), "NONE")
    assert (runtime.connects, runtime.closes) == (2, 1)


def test_a_deadlock_passes_and_keeps_the_connection() -> None:
    runtime = PlayedRuntime(deque([DEADLOCK]))
    assert source_of(runtime).request(1, 0) == Trouble(
        "deadlock detected", "try again", passing=True
    )
    assert (runtime.connects, runtime.closes) == (1, 0)


def test_what_the_runtime_refuses_has_its_code() -> None:
    runtime = PlayedRuntime(deque([ApiError(20001, "not valid")]))
    assert source_of(runtime).request(1, 0) == Trouble("not valid", code=20001)


def test_what_nobody_expects_is_about_the_call_alone() -> None:
    runtime = PlayedRuntime(deque([ValueError("odd\nmore"), Claim((), "NONE")]))
    source = source_of(runtime)
    assert source.request(1, 0) == Trouble("odd", code=0)
    assert source.request(1, 0) == Claim((), "NONE")
    assert runtime.connects == 2


def test_a_database_that_cannot_be_reached_passes() -> None:
    source = DatabaseSource(lambda: unreachable("refused"), "w1", "t", 60)
    answer = source.request(1, 0)
    assert isinstance(answer, Trouble)
    assert answer.passing


@pytest.mark.parametrize(
    ("dead", "calls"),
    [
        (20_000, ["tick"]),
        (20_001, ["tick", "vacuum"]),
        (DatabaseProblem("not_allowed", "no rights", "ask"), ["tick"]),
    ],
)
def test_a_queue_with_many_dead_rows_is_vacuumed(dead: int | Failure, calls: list[str]) -> None:
    runtime = PlayedRuntime(dead=dead)
    source_of(runtime).tick()
    assert runtime.calls == calls


# On a database ----------------------------------------------------------------------------------

MANY = """
    workflow many {
      input { items : list<int> }
      output { all = var.all }
      foreach n in var.items parallel {
        action one = t.do(n: var.n)
        collect all = ctx.task.one.output
      }
    }
"""


@pytest.fixture
def source(pg_url: str, tmp_path: Path) -> Iterator[DatabaseSource]:
    with drive.connect(pg_url) as connection:
        drive.deploy(connection, drive.compile_text(tmp_path, MANY))
    client = connect(pg_url)
    assert isinstance(client, PostgresClient)
    assert client.register_worker("w1", "x" * 40, ["t"], 1) is None
    client.create_and_start("many", '{"items": [1, 2, 3]}')
    client.close()
    made = DatabaseSource(lambda: connect(pg_url), "w1", "x" * 40, 60)
    yield made
    made.close()


def claimed(source: DatabaseSource) -> list[tuple[int, int]]:
    claim = source.request(10, 0)
    assert isinstance(claim, Claim)
    return [(task.execution_id, task.lease_token) for task in claim.tasks]


def test_many_results_are_handed_in_at_once(source: DatabaseSource, pg_url: str) -> None:
    results = [
        finished(task_id, output, lease_token=token)
        for (task_id, token), output in zip(
            claimed(source), ['{"x":12345678901234567890.10}', None, '"ä \\"q\\""'], strict=True
        )
    ]
    assert source.submit(results) == [
        Submitted(True, "SUCCEEDED", 0, "OK"),
        Submitted(True, "SUCCEEDED", 0, "OK"),
        Submitted(True, "SUCCEEDED", 0, "OK"),
    ]
    again = source.submit(results)
    assert not isinstance(again, Trouble)
    assert [answer.reason for answer in again if isinstance(answer, Submitted)] == ["REPEATED"] * 3
    with psycopg.connect(pg_url) as connection:
        row = connection.execute("select i.output_json::text from wf.v_instance as i").fetchone()
    assert row == ('{"all": [{"x": 12345678901234567890.10}, null, "ä \\"q\\""]}',)


def test_a_failure_in_a_batch_has_its_message(source: DatabaseSource, pg_url: str) -> None:
    (one, token), (two, other), _ = claimed(source)
    results = [
        finished(one, lease_token=token),
        finished(two, None, lease_token=other, code=-7, message='no "stock"'),
    ]
    assert not isinstance(source.submit(results), Trouble)
    with psycopg.connect(pg_url) as connection:
        row = connection.execute(
            "select i.error_code, i.engine_error_message from wf.v_instance as i"
        ).fetchone()
    assert row == (-7, 'no "stock"')


def test_one_unknown_task_refuses_the_batch(source: DatabaseSource) -> None:
    [(one, token), *_] = claimed(source)
    answer = source.submit([finished(one, lease_token=token), finished(999_999)])
    assert isinstance(answer, Trouble)
    assert answer.code == 20002
    assert source.submit([finished(one, lease_token=token)]) == [
        Submitted(True, "RUNNING", 0, "OK")
    ]


def test_a_released_task_is_there_again(source: DatabaseSource) -> None:
    before = claimed(source)
    for task_id, token in before:
        assert source.release(task_id, token) is None
    assert sorted(task_id for task_id, _ in claimed(source)) == sorted(t for t, _ in before)


@pytest.fixture
def scoped(pg_url: str, source: DatabaseSource) -> Iterator[psycopg.Connection[Any]]:
    """An instance that runs under an execution scope, and nothing else to do."""
    with drive.connect(pg_url) as connection:
        connection.execute("select wf.sp_cancel_workflow_instance(1)")
        row = connection.execute(
            "select workflow_instance_id"
            " from wf.wf_repo_create_workflow_instance('many', '{\"items\": [1]}')"
        ).fetchone()
        connection.execute("select wf.wf_apply_execution_scope(%s, 'night', '{}')", row)
        connection.execute("select wf.sp_start_workflow_instance(%s)", row)
        yield connection


ENTRIES = "select a.action_name, a.output_json from wf.execution_scope_action_entry as a"
SYNC = b"sync_execution_scope_action_entry_after_submit"


def test_a_result_is_written_down_under_its_scope(
    source: DatabaseSource, scoped: psycopg.Connection[Any]
) -> None:
    [(one, token)] = claimed(source)
    source.submit([finished(one, '{"n": 1}', lease_token=token)])
    assert scoped.execute(ENTRIES).fetchall() == [("t.do", {"n": 1})]


def test_what_could_not_be_written_down_is_by_a_tick(
    source: DatabaseSource, scoped: psycopg.Connection[Any]
) -> None:
    [(one, token)] = claimed(source)
    scoped.execute(b"alter function wf." + SYNC + b" rename to put_aside")
    try:
        answer = source.submit([finished(one, '{"n": 1}', lease_token=token)])
    finally:
        scoped.execute(b"alter function wf.put_aside rename to " + SYNC)
    assert answer == [Submitted(True, "SUCCEEDED", 0, "OK")]
    assert scoped.execute(ENTRIES).fetchall() == []
    source.tick()
    assert scoped.execute(ENTRIES).fetchall() == [("t.do", {"n": 1})]


def test_a_failed_task_has_its_message(source: DatabaseSource) -> None:
    [(one, token), *_] = claimed(source)
    answer = source.fail(one, token, -1, "too large")
    assert answer == Submitted(True, "FAILED", 0, "OK")


def test_a_batch_is_written_with_outputs_as_they_are() -> None:
    items = [SubmitItem(1, 2, 0, '{"n":1.50}', None), SubmitItem(3, 4, -1, None, 'a"b')]
    assert results_json(items) == (
        '[{"node_execution_id": 1, "lease_token": 2, "result_code": 0, "message": null,'
        ' "output": {"n":1.50}},{"node_execution_id": 3, "lease_token": 4, "result_code": -1,'
        ' "message": "a\\"b"}]'
    )

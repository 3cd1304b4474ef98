"""The way back from FAILED in PostgreSQL (R14).

The measure of most tests: an instance in which something failed once and that was retried leaves
the trace of one in which nothing failed, but for the number of attempts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.runtime_sql import drive

BAD = (-5, {"why": "down"}, "no route")

PROGRAMS = {
    "sequence": "action a = t.do() action b = t.do() action c = t.do()",
    "branches": """
        parallel { action a = t.do() sequence { action b = t.do() action c = t.do() }
                   if true { action d = t.do() } }
        action e = t.do()""",
    "limited branches": """
        parallel limit 2 { action a = t.do() action b = t.do() action c = t.do() }""",
    "iterations": """
        foreach x in ["p", "q", "r", "s"] parallel 2 {
          action a = t.do(x: var.x)
          action b = t.do(i: ctx.index)
          collect got = ctx.task.a.output.echo.x
        }
        action c = t.do(got: var.got)""",
    "one after the other": """
        foreach x in [1, 2, 3] { action a = t.do(x: var.x) }
        repeat 2 as i { action b = t.do(i: var.i) }
        set n = 0
        while var.n < 2 { action c = t.do() { set n = var.n + 1 } }""",
    "nested": """
        foreach x in [1, 2] parallel {
          switch var.x { case 1 { action a = t.do() } default { parallel { action b = t.do()
                                                                           action c = t.do() } } }
        }""",
    "named parts": """
        sequence s { var n : int = 7
          action a = t.do(n: var.n) { set m = var.n + 1 }
          action b = t.do(m: var.m) }""",
}
KEYS = {name: sorted({w for w in "abcde" if f"action {w} =" in p}) for name, p in PROGRAMS.items()}


@pytest.fixture
def connection(any_url: str) -> Iterator[psycopg.Connection[Any]]:
    with drive.connect(any_url) as connection:
        yield connection


def begin(connection: psycopg.Connection[Any], folder: Path, body: str) -> int:
    spec = drive.compile_text(folder, f"workflow w {{ {body} }}")
    drive.deploy(connection, spec)
    drive.stop_clock(connection)
    return drive.start(connection, "w", {})


def status(connection: psycopg.Connection[Any], instance: int) -> str:
    row = connection.execute(
        "select status from wf.workflow_instance where workflow_instance_id = %s", (instance,)
    ).fetchone()
    assert row is not None
    return str(row[0])


def retry(connection: psycopg.Connection[Any], instance: int) -> tuple[str, int]:
    row = connection.execute("select * from wf.sp_retry_failed_node(%s)", (instance,)).fetchone()
    assert row is not None
    return row[0], row[1]


def refused(connection: psycopg.Connection[Any], instance: int) -> str:
    before = drive.trace(connection, instance)
    with pytest.raises(psycopg.Error) as raised:
        retry(connection, instance)
    assert raised.value.diag.message_detail == "20003"
    assert drive.trace(connection, instance) == before
    return str(raised.value.diag.message_primary)


def without_attempts(document: dict[str, Any]) -> dict[str, Any]:
    nodes = [{k: v for k, v in n.items() if k != "attempts"} for n in document["nodes"]]
    return {**document, "nodes": nodes}


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name, keys in KEYS.items() for key in keys]
)
def test_what_failed_once_and_was_retried_is_as_if_it_had_not_failed(
    connection: psycopg.Connection[Any], tmp_path: Path, name: str, key: str
) -> None:
    instance = begin(connection, tmp_path, PROGRAMS[name])
    drive.drain(connection, drive.Scripted())
    clean = drive.trace(connection, instance)
    assert clean["status"] == "SUCCEEDED"

    failing = drive.start(connection, "w", {})
    fails = [BAD]

    def once(node_key: str, given: dict[str, Any]) -> drive.Result:
        return fails.pop() if node_key == key and fails else (0, {"echo": given})

    drive.drain(connection, once)
    retries = 0
    while status(connection, failing) == "FAILED":
        assert retry(connection, failing)[0] == "RUNNING"
        retries += 1
        drive.drain(connection, once)
    document = drive.trace(connection, failing)
    assert without_attempts(document) == without_attempts(clean)
    assert retries == 1


def test_both_failures_of_one_batch_are_tried_again(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(
        connection,
        tmp_path,
        "parallel { action a = t.do() sequence { action b = t.do() action c = t.do() } }",
    )
    tasks = [drive.claim(connection), drive.claim(connection)]
    connection.execute(
        "select * from wf.sp_worker_submit_results(%s, %s, %s)",
        (
            drive.WORKER,
            drive.TOKEN,
            drive.json(
                [
                    {
                        "node_execution_id": t["node_execution_id"],
                        "lease_token": t["lease_token"],
                        "result_code": -1,
                    }
                    for t in tasks
                    if t is not None
                ]
            ),
        ),
    )
    assert status(connection, instance) == "FAILED"

    assert retry(connection, instance) == ("RUNNING", 2)
    drive.drain(connection, drive.Scripted())
    assert status(connection, instance) == "SUCCEEDED"


def test_failures_that_keep_going_are_tried_again_together(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(
        connection,
        tmp_path,
        "parallel keep_going { action a = t.do() action b = t.do() action c = t.do() }",
    )
    drive.drain(connection, drive.Scripted({"a": [BAD], "c": [BAD]}))
    assert status(connection, instance) == "FAILED"

    assert retry(connection, instance) == ("RUNNING", 2)
    drive.drain(connection, drive.Scripted())
    assert status(connection, instance) == "SUCCEEDED"


def test_a_tolerated_failure_stays(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    instance = begin(
        connection,
        tmp_path,
        "foreach x in [1, 2, 3] parallel tolerate 1 { action a = t.do(x: var.x) }",
    )
    drive.drain(connection, drive.Scripted({"a": [BAD, BAD]}))
    assert status(connection, instance) == "FAILED"

    retry(connection, instance)
    drive.drain(connection, drive.Scripted())
    document = drive.trace(connection, instance)
    assert document["status"] == "SUCCEEDED"
    assert sorted(n["status"] for n in document["nodes"] if n["type"] == "ACTION") == [
        "FAILED",
        "SUCCEEDED",
        "SUCCEEDED",
    ]


def test_the_next_attempt_has_the_input_of_the_first_and_a_fresh_budget(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(
        connection, tmp_path, "action a = t.do(n: 1 + 1) { retry 1 backoff 1s on any }"
    )
    drive.drain(connection, drive.Scripted({"a": [BAD]}))
    assert status(connection, instance) == "FAILED"

    retry(connection, instance)
    task = drive.claim(connection)
    assert task is not None
    assert (task["attempt_no"], task["input_json"], task["lease_token"]) == (3, {"n": 2}, 3)
    drive.submit(connection, task, *BAD)
    assert status(connection, instance) == "RUNNING"
    drive.drain(connection, drive.Scripted())
    (node,) = [n for n in drive.trace(connection, instance)["nodes"] if n["path"] == "w/a"]
    assert (node["status"], node["attempts"]) == ("SUCCEEDED", 4)


def test_a_repeated_submit_of_the_failed_attempt_is_answered_as_before(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(connection, tmp_path, "action a = t.do()")
    task = drive.claim(connection)
    assert task is not None
    drive.submit(connection, task, *BAD)
    retry(connection, instance)

    assert drive.submit(connection, task, *BAD)["reason"] == "REPEATED"
    assert drive.submit(connection, task, 0)["reason"] == "STALE"


def test_an_action_whose_input_could_not_be_built_is_built_anew(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(
        connection,
        tmp_path,
        "action a = t.do() action b = t.do(x: ctx.task.a.output.x)",
    )
    drive.drain(connection, drive.Scripted({"a": [(0, {"y": 1})]}))
    assert status(connection, instance) == "FAILED"

    assert retry(connection, instance) == ("FAILED", 1)
    (node,) = [n for n in drive.trace(connection, instance)["nodes"] if n["path"] == "w/b"]
    assert node["error"]["engine_code"] == 10001


def test_a_wait_that_timed_out_waits_again(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(connection, tmp_path, 'wait_event e on "go" { timeout 1m }')
    drive.drain(connection, drive.Scripted())
    assert status(connection, instance) == "FAILED"

    retry(connection, instance)
    connection.execute("select * from wf.sp_ingest_event('go', 's', 'k')")
    assert status(connection, instance) == "SUCCEEDED"


def test_the_time_of_what_goes_back_counts_anew(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(
        connection,
        tmp_path,
        "sequence s { timeout 1m action a = t.do() sleep 50s action b = t.do() sleep 50s }",
    )
    drive.drain(connection, drive.Scripted({"b": [BAD]}))
    assert status(connection, instance) == "FAILED"
    retry(connection, instance)
    drive.drain(connection, drive.Scripted())

    assert status(connection, instance) == "SUCCEEDED"


def test_a_join_counts_what_has_succeeded_before(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(
        connection,
        tmp_path,
        "parallel join 2 { action a = t.do() action b = t.do() action c = t.do() }",
    )
    drive.drain(connection, drive.Scripted({"a": [BAD], "c": [BAD]}))
    assert status(connection, instance) == "FAILED"

    assert retry(connection, instance) == ("RUNNING", 1)
    task = drive.claim(connection)
    assert task is not None
    assert task["node_key"] == "a"
    assert drive.submit(connection, task, 0)["instance_status"] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("action a = t.do() fail -3", "w/fail_1 failed, which is no action"),
        ("sequence { action a = t.do() } finally { action z = t.do() }", "finally of w/sequence_1"),
        (
            "sequence { action a = t.do() } on_error { action y = t.do() fail -1 }",
            "w/sequence_1/fail_1 failed",
        ),
        (
            "sequence { action a = t.do() } on_error { action y = t.do() }",
            "of w/sequence_1 has run",
        ),
    ],
)
def test_what_cannot_be_undone_is_refused(
    connection: psycopg.Connection[Any], tmp_path: Path, body: str, why: str
) -> None:
    instance = begin(connection, tmp_path, body)
    failing = {} if "fail -3" in body else {"a": [BAD], "y": [BAD]}
    if "fail -1" in body:
        failing = {"a": [BAD]}
    drive.drain(connection, drive.Scripted(failing))  # type: ignore[arg-type]
    assert status(connection, instance) == "FAILED"

    assert why in refused(connection, instance)


@pytest.mark.parametrize("ended", ["running", "succeeded", "cancelled"])
def test_only_a_failed_instance_is_retried(
    connection: psycopg.Connection[Any], tmp_path: Path, ended: str
) -> None:
    instance = begin(connection, tmp_path, "action a = t.do()")
    if ended == "succeeded":
        drive.drain(connection, drive.Scripted())
    elif ended == "cancelled":
        connection.execute("select wf.sp_cancel_workflow_instance(%s)", (instance,))

    assert f"is {ended}, not failed" in refused(connection, instance)


def test_a_purged_instance_leaves_nothing_that_a_retry_would_have_needed(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, PROGRAMS["iterations"])
    drive.drain(connection, drive.Scripted({"a": [BAD]}))
    connection.execute("select wf.sp_purge_instances('9999-01-01')")

    for table in ("join_counter", "foreach_item", "loop_state", "node_execution", "task"):
        rows = connection.execute(f"select count(*) from wf.{table}").fetchone()  # type: ignore[arg-type]
        assert rows == (0,), table

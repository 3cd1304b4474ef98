"""Views of one instance: what is open, its attempts, its events; and that they read little."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.runtime_sql import drive

FAN = "workflow fan { foreach x in [1, 2, 3] parallel 3 { action a = t.do(x: var.x) } }"


@pytest.fixture
def connection(any_url: str) -> Iterator[psycopg.Connection[Any]]:
    with drive.connect(any_url) as connection:
        yield connection


def begin(connection: psycopg.Connection[Any], folder: Path, text: str) -> int:
    spec = drive.compile_text(folder, text)
    drive.deploy(connection, spec)
    drive.stop_clock(connection)
    return drive.start(connection, spec.name, {})


def waits(connection: psycopg.Connection[Any]) -> dict[str, str]:
    rows = connection.execute("select o.path, o.waits_for from wf.v_open_node as o").fetchall()
    return dict(rows)


def test_an_open_node_says_what_it_waits_for(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    text = """
        workflow all_kinds {
          parallel {
            action a = t.do()
            action b = t.do()
            wait_event w on "x"
            sequence s { sleep 5m }
          }
        }
    """
    begin(connection, tmp_path, text)
    drive.claim(connection)
    assert waits(connection) == {
        "all_kinds": "CHILDREN",
        "all_kinds/parallel_1": "CHILDREN",
        "all_kinds/parallel_1/a": "RESULT",
        "all_kinds/parallel_1/b": "WORKER",
        "all_kinds/parallel_1/w": "EVENT",
        "all_kinds/parallel_1/s": "CHILDREN",
        "all_kinds/parallel_1/s/s.sleep_1": "TIME",
    }


def test_what_has_ended_is_not_open(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    begin(connection, tmp_path, FAN)
    drive.drain(connection, drive.Scripted())
    assert waits(connection) == {}


def test_a_join_has_its_counts(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    begin(connection, tmp_path, FAN)
    drive.submit(connection, drive.claim(connection) or {}, 0)
    row = connection.execute(
        "select o.total_count, o.succeeded_count, o.failed_count from wf.v_open_node as o"
        " where o.node_type = 'FOREACH'"
    ).fetchone()
    assert row == (3, 1, 0)


def test_an_operators_retry_brings_new_attempts(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(connection, tmp_path, "workflow r { action a = t.do() { retry 2 } }")
    drive.drain(connection, drive.Scripted({"a": [(-5, None)]}))
    connection.execute("select wf.sp_retry_failed_node(%s)", (instance,))
    row = connection.execute(
        "select o.attempt_no, o.attempt_limit from wf.v_open_node as o where o.node_key = 'a'"
    ).fetchone()
    assert row == (4, 6)


def test_every_attempt_has_a_row_and_the_time_of_its_claim(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, "workflow r { action a = t.do() { retry 2 backoff 1m } }")
    drive.drain(connection, drive.Scripted({"a": [(-5, None, "no"), (-5, None, "no"), (0, {})]}))
    rows = connection.execute(
        "select a.attempt_no, a.status, a.result_code, a.engine_error_message, a.worker_id,"
        " a.started_at from wf.v_attempt as a order by a.attempt_no"
    ).fetchall()
    first = rows[0][-1]
    assert [(*row, int((at - first).total_seconds())) for *row, at in rows] == [
        (1, "FAILED", -5, "no", "driver", 0),
        (2, "FAILED", -5, "no", "driver", 60),
        (3, "SUCCEEDED", 0, None, "driver", 120),
    ]


def test_a_lost_lease_has_a_row_beside_the_one_of_who_was_offered_it_then(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, "workflow r { action a = t.do() }")
    drive.claim(connection, lease_seconds=10)
    drive.move_clock(connection, 11)
    drive.submit(connection, drive.claim(connection) or {}, 0)
    rows = connection.execute(
        "select a.attempt_no, a.status, a.engine_error_code, a.worker_id, a.started_at, a.ended_at"
        " from wf.v_attempt as a order by a.started_at"
    ).fetchall()
    assert [(*row, (ended - began).total_seconds()) for *row, began, ended in rows] == [
        (1, "FAILED", 10014, "driver", 11),
        (1, "SUCCEEDED", None, "driver", 0),
    ]


def test_an_action_that_was_never_claimed_has_no_attempt(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(connection, tmp_path, FAN)
    connection.execute("select wf.sp_cancel_workflow_instance(%s)", (instance,))
    assert connection.execute("select * from wf.v_attempt").fetchall() == []


def test_a_workflows_nodes_have_their_place(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, "workflow p { if 1 == 1 { action a = t.do() } }")
    rows = connection.execute(
        "select n.node_key, n.parent_key, n.branch_kind from wf.v_workflow_node as n"
    ).fetchall()
    assert sorted(rows, key=lambda row: row[1] or "") == [
        ("p", None, None),
        ("if_1.then", "if_1", "THEN"),
        ("a", "if_1.then", "SEQUENCE"),
        ("if_1", "p", "SEQUENCE"),
    ]


# How much is read -----------------------------------------------------------------------------


def rows_read(plan: dict[str, Any], table: str) -> int:
    """How many rows of a table an executed plan has looked at."""
    own = 0
    if plan.get("Relation Name") == table:
        removed = plan.get("Rows Removed by Filter", 0)
        own = round((plan["Actual Rows"] + removed) * plan["Actual Loops"])
    return own + sum(rows_read(child, table) for child in plan.get("Plans", ()))


@pytest.fixture
def crowded(pg_url: str, tmp_path: Path) -> Iterator[psycopg.Connection[Any]]:
    """Instance 1 with three READY actions, among 3 000 tasks and 3 000 ended instances."""
    with drive.connect(pg_url) as connection:
        crowd(connection, tmp_path)
        yield connection


def crowd(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    begin(connection, tmp_path, FAN)
    connection.execute(
        "insert into wf.task (node_execution_id, workflow_instance_id, node_id, action_id,"
        " available_at, is_claimable, input_json)"
        " select 100000 + g, 100000 + g, t.node_id, t.action_id, t.available_at, true, '{}'"
        " from (select * from wf.task limit 1) as t cross join generate_series(1, 3000) as g"
    )
    connection.execute(
        "insert into wf.workflow_instance (workflow_def_id, workflow_version_id, spec_format,"
        " status, created_at, ended_at)"
        " select i.workflow_def_id, i.workflow_version_id, 1, 'SUCCEEDED', i.created_at,"
        " i.created_at from wf.workflow_instance as i cross join generate_series(1, 3000) as g"
    )
    connection.execute("analyze")


@pytest.mark.parametrize(
    ("query", "table", "most"),
    [
        ("select * from wf.v_unclaimable where workflow_instance_id = 1", "task", 20),
        ("select * from wf.v_open_node where workflow_instance_id = 1", "task", 20),
        ("select * from wf.v_attempt where workflow_instance_id = 1", "task", 20),
        ("select * from wf.v_worker order by worker_id limit 100", "task", 20),
        (
            "select * from wf.v_instance where status in ('RUNNING', 'PAUSED')"
            " and ended_at is null order by workflow_instance_id desc limit 100",
            "workflow_instance",
            20,
        ),
        (
            "select * from wf.v_instance order by workflow_instance_id desc limit 10",
            "workflow_instance",
            20,
        ),
    ],
    ids=["unclaimable", "open nodes", "attempts", "workers", "running", "newest"],
)
def test_a_question_about_little_reads_little(
    crowded: psycopg.Connection[Any], query: str, table: str, most: int
) -> None:
    row = crowded.execute(f"explain (analyze, format json) {query}".encode()).fetchone()
    assert row is not None
    assert rows_read(row[0][0]["Plan"], table) <= most

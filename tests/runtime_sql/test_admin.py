"""Cancel, pause, resume and purge in PostgreSQL (R13, R14)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.runtime_sql import drive

TWO = "workflow two { parallel { action a = t.do() action b = t.do() } action c = t.do() }"


@pytest.fixture
def connection(any_url: str) -> Iterator[psycopg.Connection[Any]]:
    with drive.connect(any_url) as connection:
        yield connection


@pytest.fixture
def started(connection: psycopg.Connection[Any], tmp_path: Path) -> int:
    drive.deploy(connection, drive.compile_text(tmp_path, TWO))
    return drive.start(connection, "two", {})


def call(connection: psycopg.Connection[Any], routine: str, instance: int) -> str:
    row = connection.execute(f"select * from wf.{routine}(%s)", (instance,)).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return str(row[0])


def test_cancel_ends_everything_that_is_open(
    connection: psycopg.Connection[Any], started: int
) -> None:
    task = drive.claim(connection)
    assert task is not None
    connection.execute("select wf.sp_cancel_workflow_instance(%s, 'not needed')", (started,))

    document = drive.trace(connection, started)
    assert document["status"] == "CANCELLED"
    assert {n["status"] for n in document["nodes"]} == {"CANCELLED"}
    assert connection.execute(
        "select engine_error_code, engine_error_message from wf.workflow_instance"
    ).fetchone() == (10016, "cancelled by an operator: not needed")
    assert drive.submit(connection, task, 0)["reason"] == "CANCELLED"
    assert drive.claim(connection) is None


KEPT = """
workflow kept {
  sequence body {
    parallel {
      action boom = t.do()
      parallel { sequence s { action a = t.do() } finally { action tidy = t.do() } }
    }
  } on_error { action mend = t.do() } finally { action end = t.do() }
}
"""
NESTED = """
workflow kept {
  parallel {
    action boom = t.do()
    sequence s {
      parallel { sequence u { action a = t.do() } finally { action tidy = t.do() } }
    } finally { action end = t.do() }
  }
}
"""


@pytest.mark.parametrize("text", [KEPT, NESTED], ids=["below a cancelled one", "in another"])
def test_cancel_ends_a_finally_below_what_a_failure_has_cancelled(
    connection: psycopg.Connection[Any], tmp_path: Path, text: str
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, text))
    instance = drive.start(connection, "kept", {})
    boom = drive.claim(connection)
    assert boom is not None
    drive.submit(connection, boom, -1)
    running = {n["path"].rpartition("/")[2]: n for n in drive.trace(connection, instance)["nodes"]}
    assert running["tidy"]["status"] == "READY"

    connection.execute("select wf.sp_cancel_workflow_instance(%s)", (instance,))

    document = drive.trace(connection, instance)
    assert document["status"] == "CANCELLED"
    assert {n["status"] for n in document["nodes"]} <= {"CANCELLED", "FAILED"}
    assert connection.execute("select count(*) from wf.pending_end").fetchone() == (0,)
    assert drive.claim(connection) is None


def test_cancel_twice_changes_nothing(connection: psycopg.Connection[Any], started: int) -> None:
    assert call(connection, "sp_cancel_workflow_instance", started) == "CANCELLED"
    assert call(connection, "sp_cancel_workflow_instance", started) == "CANCELLED"

    assert connection.execute(
        "select count(*) from wf.audit_log where what = 'cancel'"
    ).fetchone() == (1,)


def test_nothing_is_claimed_while_paused_and_results_are_taken(
    connection: psycopg.Connection[Any], started: int
) -> None:
    task = drive.claim(connection)
    assert task is not None
    assert call(connection, "sp_pause_workflow_instance", started) == "PAUSED"

    assert drive.claim(connection) is None
    assert drive.submit(connection, task, 0)["reason"] == "OK"
    assert drive.claim(connection) is None

    assert call(connection, "sp_resume_workflow_instance", started) == "RUNNING"
    drive.drain(connection, drive.Scripted())
    assert drive.trace(connection, started)["status"] == "SUCCEEDED"


def test_what_a_result_activates_in_a_paused_instance_waits(
    connection: psycopg.Connection[Any], started: int
) -> None:
    tasks = [drive.claim(connection), drive.claim(connection)]
    call(connection, "sp_pause_workflow_instance", started)
    for task in tasks:
        drive.submit(connection, task or {}, 0)

    assert drive.claim(connection) is None
    call(connection, "sp_resume_workflow_instance", started)
    ready = drive.claim(connection)
    assert ready is not None
    assert ready["node_key"] == "c"


def test_a_lease_lost_while_paused_is_offered_after_the_resume(
    connection: psycopg.Connection[Any], started: int
) -> None:
    drive.claim(connection, lease_seconds=10)
    call(connection, "sp_pause_workflow_instance", started)
    connection.execute(
        "insert into wf.wf_setting values ('now', (wf.wf_now() + interval '11 s')::text)"
    )

    assert drive.claim(connection) is None
    call(connection, "sp_resume_workflow_instance", started)
    task = drive.claim(connection)
    assert task is not None
    assert task["lease_token"] == 2


@pytest.mark.parametrize(
    ("routine", "before", "code"),
    [
        ("sp_pause_workflow_instance", "cancel", "20003"),
        ("sp_resume_workflow_instance", "cancel", "20003"),
        ("sp_cancel_workflow_instance", "finish", "20003"),
        ("sp_pause_workflow_instance", "finish", "20003"),
        ("sp_resume_workflow_instance", "finish", "20003"),
    ],
)
def test_a_transition_that_is_none_is_refused(
    connection: psycopg.Connection[Any], started: int, routine: str, before: str, code: str
) -> None:
    if before == "cancel":
        call(connection, "sp_cancel_workflow_instance", started)
    else:
        drive.drain(connection, drive.Scripted())
    was = drive.trace(connection, started)

    with pytest.raises(psycopg.Error) as refused:
        call(connection, routine, started)

    assert refused.value.diag.message_detail == code
    assert drive.trace(connection, started) == was


@pytest.mark.parametrize(
    "routine",
    [
        "sp_cancel_workflow_instance",
        "sp_pause_workflow_instance",
        "sp_resume_workflow_instance",
    ],
)
def test_an_unknown_instance_is_refused(connection: psycopg.Connection[Any], routine: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        call(connection, routine, 4711)

    assert refused.value.diag.message_detail == "20002"


def test_purge_removes_ended_instances_and_nothing_else(
    connection: psycopg.Connection[Any], started: int
) -> None:
    drive.drain(connection, drive.Scripted())
    living = drive.start(connection, "two", {})
    purge = "select purged_count from wf.sp_purge_instances(wf.wf_now() + interval '1 s')"

    assert connection.execute(purge).fetchone() == (1,)
    assert connection.execute(purge).fetchone() == (0,)

    for table in ("workflow_instance", "node_execution", "scope", "execution_context"):
        rows = connection.execute(
            f"select distinct workflow_instance_id from wf.{table}"  # type: ignore[arg-type]
        ).fetchall()
        assert rows == [(living,)], table


DELETE = "select cancelled_count, purged_count from wf.sp_delete_workflow_def(%s, %s, %s)"
WAITS = """
    workflow two {
      on event "bell" start { input { } }
      input { xs: list<{ n: int }> = [] }
      foreach x in var.xs parallel 1 { action a = t.do(x: var.x.n) collect ns = var.x.n }
      wait_event w on "bell" { correlate "k" }
    }
"""


@pytest.mark.parametrize(("end_running", "delete_history"), [(False, False), (False, True)])
def test_a_workflow_is_not_deleted_while_instances_run(
    connection: psycopg.Connection[Any], started: int, end_running: bool, delete_history: bool
) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(DELETE, ("two", end_running, delete_history))

    assert refused.value.diag.message_detail == "20003"
    assert refused.value.diag.message_primary == ("1 instances of workflow two have not ended")
    assert drive.trace(connection, started)["status"] == "RUNNING"


def test_a_workflow_is_not_deleted_with_its_history_unless_told(
    connection: psycopg.Connection[Any], started: int
) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(DELETE, ("two", True, False))

    assert refused.value.diag.message_primary == "1 ended instances of workflow two are there"
    assert drive.trace(connection, started)["status"] == "RUNNING"


def test_a_deleted_workflow_leaves_no_row_but_actions_events_and_the_audit(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, WAITS))
    connection.execute("select wf.sp_ingest_event('bell', 's', 'e1', '{}', 'k')")
    drive.start(connection, "two", {"xs": [{"n": 1}, {"n": 2}]})
    drive.claim(connection)

    assert connection.execute(DELETE, ("two", True, True)).fetchone() == (2, 2)

    tables = connection.execute(
        "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname = 'wf' and c.relkind = 'r' order by 1"
    ).fetchall()
    left = {
        table
        for (table,) in tables
        if connection.execute(f"select exists (select 1 from wf.{table})").fetchone() == (True,)
    }
    assert left == {
        "action_throttle",
        "audit_log",
        "event",
        "event_delivery",
        "event_route",
        "schema_version",
        "wf_setting",
        "worker",
        "worker_capability",
        "worker_presence",
        "worker_token",
        "workflow_action",
        "workflow_action_revision",
    }


def test_a_history_of_more_than_one_batch_is_removed(
    connection: psycopg.Connection[Any], started: int
) -> None:
    connection.execute(
        "insert into wf.workflow_instance (workflow_def_id, workflow_version_id, spec_format,"
        " status, created_at, ended_at)"
        " select i.workflow_def_id, i.workflow_version_id, i.spec_format, 'SUCCEEDED', now(), now()"
        "  from wf.workflow_instance i cross join generate_series(1, 2000)"
    )

    assert connection.execute(DELETE, ("two", True, True)).fetchone() == (1, 2001)
    assert connection.execute("select count(*) from wf.workflow_instance").fetchone() == (0,)


def test_a_deleted_workflow_can_be_deployed_anew(
    connection: psycopg.Connection[Any], started: int, tmp_path: Path
) -> None:
    connection.execute(DELETE, ("two", True, True))

    drive.deploy(connection, drive.compile_text(tmp_path, TWO))

    rows = connection.execute("select version_no from wf.workflow_version").fetchall()
    assert rows == [(1,)]


def test_an_unknown_workflow_is_not_deleted(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(DELETE, ("ghost", True, True))

    assert refused.value.diag.message_detail == "20002"

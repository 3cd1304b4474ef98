"""Every pair of calls that can meet, one transaction of the first left open on purpose.

What `test_concurrency.py` has (two last branches, submit and failure, event and wait, time-out and
event, submit and reclaim, submit and cancel, claim and drain) is not repeated here; the README of
this folder lists all pairs. Behind pgbouncer (`make test-more`) all are played but five that need a
session's own isolation level.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.runtime_sql import drive
from tests.runtime_sql.sessions import STOP, background, meet, pass_by, stopped, wait_until_blocked
from tests.runtime_sql.variants import put_stop, replace_in

own_session = pytest.mark.skipif(
    "WF_PGBOUNCER" in os.environ, reason="a pooler does not keep the isolation level of a session"
)

Connection = psycopg.Connection[Any]
Sessions = tuple[Connection, Connection, Connection]

TWO = """
    workflow two {
      action a = t.do()
      action b = t.do()
    }
"""
FORK = """
    workflow fork {
      parallel {
        sequence one { action a = t.do() action a2 = t.do() }
        sequence two { action b = t.do() action b2 = t.do() }
      }
    }
"""
WAITING = """
    workflow waiting {
      wait_event w on "bell" { correlate "k" }
      action after = t.do()
    }
"""
TIMED = """
    workflow timed {
      sequence s {
        timeout 10s
        parallel {
          sequence one { action a = t.do() action a2 = t.do() }
          sequence two { action b = t.do() action b2 = t.do() }
        }
      }
    }
"""


@pytest.fixture
def sessions(pg_url: str) -> Iterator[Sessions]:
    """Two sessions to meet each other and one to look on."""
    with drive.connect(pg_url) as a, drive.connect(pg_url) as b, drive.connect(pg_url) as look:
        yield a, b, look


def deploy(connection: Connection, folder: Path, text: str, catalog: str = drive.CATALOG) -> str:
    """Deploys a workflow and gives its name."""
    spec = drive.compile_text(folder, text, catalog)
    drive.deploy(connection, spec)
    return spec.name


def prepare(connection: Connection, folder: Path, text: str) -> int:
    """Deploys a workflow and starts an instance."""
    return drive.start(connection, deploy(connection, folder, text), {})


def one(connection: Connection, query: str, *arguments: Any) -> Any:
    """The only row of a query: its value when it is one column."""
    row = connection.execute(query.encode(), arguments).fetchone()
    assert row is not None
    return row[0] if len(row) == 1 else row


def claim_all(connection: Connection) -> dict[str, dict[str, Any]]:
    tasks = {}
    while (task := drive.claim(connection)) is not None:
        tasks[task["node_key"]] = task
    return tasks


def status(connection: Connection, instance: int) -> str:
    return str(
        one(
            connection,
            "select status from wf.workflow_instance where workflow_instance_id = %s",
            instance,
        )
    )


def count(connection: Connection, key: str) -> int:
    return int(
        one(
            connection,
            "select count(*) from wf.node_execution e join wf.workflow_node n using (node_id)"
            " where n.node_key = %s",
            key,
        )
    )


def stop_clock(connection: Connection, seconds: int = 0) -> None:
    connection.execute(
        "insert into wf.wf_setting (name, value)"
        " values ('now', (wf.wf_now() + make_interval(secs => %s))::text)"
        " on conflict (name) do update set value = excluded.value",
        (seconds,),
    )


def cancel(connection: Connection, instance: int) -> Any:
    return one(
        connection, "select instance_status from wf.sp_cancel_workflow_instance(%s)", instance
    )


def pause(connection: Connection, instance: int) -> Any:
    return one(
        connection, "select instance_status from wf.sp_pause_workflow_instance(%s)", instance
    )


def resume(connection: Connection, instance: int) -> Any:
    return one(
        connection, "select instance_status from wf.sp_resume_workflow_instance(%s)", instance
    )


def retry(connection: Connection, instance: int) -> Any:
    return one(connection, "select instance_status from wf.sp_retry_failed_node(%s)", instance)


def begin(connection: Connection, instance: int) -> Any:
    return one(
        connection, "select instance_status from wf.sp_start_workflow_instance(%s)", instance
    )


def create(connection: Connection, name: str, key: str | None = None) -> Any:
    return one(
        connection,
        "select workflow_instance_id, created from"
        " wf.wf_repo_create_workflow_instance(%s, '{}', p_business_key => %s)",
        name,
        key,
    )


def purge(connection: Connection) -> Any:
    return one(connection, "select purged_count from wf.sp_purge_instances('infinity')")


def tick(connection: Connection) -> Any:
    return one(connection, "select reclaimed_count, timer_count, released_count from wf.sp_tick()")


def heartbeat(connection: Connection, task: dict[str, Any]) -> Any:
    return one(
        connection,
        "select rows_updated, command from wf.sp_worker_heartbeat(%s, %s, %s, 300, %s)",
        task["node_execution_id"],
        drive.WORKER,
        drive.TOKEN,
        task["lease_token"],
    )


def ring(connection: Connection, event: str = "e1", kind: str = "bell") -> Any:
    return one(
        connection,
        "select duplicate, applied_count from wf.sp_ingest_event(%s, 's', %s, '{}', 'k')",
        kind,
        event,
    )


def signal(connection: Connection, kind: str = "bell") -> Any:
    return one(connection, "select applied_count from wf.sp_signal_wait(%s, 'k')", kind)


def delete(connection: Connection, name: str) -> Any:
    return one(
        connection,
        "select cancelled_count, purged_count from wf.sp_delete_workflow_def(%s, true, true)",
        name,
    )


def refused(code: str) -> Any:
    return pytest.raises(psycopg.DatabaseError, check=lambda e: e.sqlstate == code)


def dispatch(connection: Connection, column: str, value: object) -> None:
    """Sets a dispatch column of all actions, for the tasks that are activated from now on."""
    connection.execute(f"update wf.workflow_action set {column} = %s".encode(), (value,))


# Submit and time-out ---------------------------------------------------------------------------


def test_a_submit_that_waited_for_a_time_out_comes_too_late(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, TIMED)
    tasks = claim_all(a)
    stop_clock(a, 11)

    ticked, late = meet(a, lambda: tick(a), b, lambda: drive.submit(b, tasks["a"], 0), look)

    assert ticked[1] == 1
    assert (late["accepted"], late["reason"]) == (False, "CANCELLED")
    assert status(look, instance) == "FAILED"


def test_a_pass_leaves_a_time_out_to_the_submit_that_is_there_first(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, TIMED)
    tasks = claim_all(a)
    stop_clock(a, 9)

    def submit_then_move() -> str:
        answer = drive.submit(a, tasks["a"], 0)
        stop_clock(look, 2)
        return str(answer["reason"])

    assert pass_by(a, submit_then_move, b, lambda: tick(b)) == ("OK", (0, 0, 0))
    assert tick(look)[1] == 1
    assert status(look, instance) == "FAILED"


def test_a_submit_that_was_handed_in_before_the_deadline_counts_although_it_waited(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, TIMED)
    tasks = claim_all(a)
    stop_clock(a, 5)

    _paused, answer = meet(
        a,
        lambda: (pause(a, instance), resume(a, instance)),
        b,
        lambda: drive.submit(b, tasks["a"], 0),
        look,
        lambda: stop_clock(look, 6),
    )

    assert answer["reason"] == "OK"
    assert tick(look)[1] == 1
    assert status(look, instance) == "FAILED"


# Claims ----------------------------------------------------------------------------------------


def test_a_pause_waits_for_a_claim_and_leaves_it_its_task(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, TWO)

    task, paused = meet(a, lambda: drive.claim(a), b, lambda: pause(b, instance), look)

    assert task is not None
    assert paused == "PAUSED"
    assert drive.submit(look, task, 0)["reason"] == "OK"
    assert drive.claim(look) is None


@pytest.mark.parametrize("act", [pause, cancel])
def test_a_claim_passes_by_what_a_pause_or_cancel_holds(
    sessions: Sessions, tmp_path: Path, act: Any
) -> None:
    a, b, _look = sessions
    instance = prepare(a, tmp_path, TWO)

    _answer, task = pass_by(a, lambda: act(a, instance), b, lambda: drive.claim(b))

    assert task is None


def test_a_claim_that_read_before_another_took_the_task_does_not_take_it_too(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, TWO)
    a.execute("select wf.sp_register_worker('second', %s, array['*'])", (drive.TOKEN,))
    put_stop(a, "wf_claim_lock", "select t.lease_token")

    def claim_second() -> Any:
        return one(b, "select node_key from wf.sp_worker_request_task('second', %s)", drive.TOKEN)

    with stopped(a, b, claim_second) as claiming:
        assert drive.claim(a) is not None

    assert claiming.result() is None
    assert one(look, "select worker_id, lease_token from wf.task") == (drive.WORKER, 1)


def test_a_claim_that_read_before_a_pause_does_not_take_afterwards(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, TWO)
    put_stop(a, "wf_claim_lock", "select t.lease_token")

    with stopped(look, b, lambda: drive.claim(b)) as claiming:
        pause(a, instance)

    assert claiming.result() is None


def test_a_claim_that_read_before_a_task_was_put_off_does_not_take_it_early(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, _look = sessions
    prepare(a, tmp_path, "workflow w { action a = t.do() { retry 3 backoff 60s } }")
    stop_clock(a)
    a.execute("select wf.sp_register_worker('second', %s, array['*'])", (drive.TOKEN,))
    put_stop(a, "wf_claim_lock", "select t.lease_token")

    def claim_second() -> Any:
        return one(b, "select node_key from wf.sp_worker_request_task('second', %s)", drive.TOKEN)

    with stopped(a, b, claim_second) as claiming:
        task = drive.claim(a)
        assert task is not None
        assert drive.submit(a, task, -1)["reason"] == "OK"

    assert claiming.result() is None


def test_a_cancel_waits_for_a_claim_and_its_worker_is_told(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, TWO)

    task, _answer = meet(a, lambda: drive.claim(a), b, lambda: cancel(b, instance), look)

    assert task is not None
    assert heartbeat(look, task) == (0, "CANCEL")
    assert one(look, "select count(*) from wf.task") == 0


def test_a_worker_that_is_told_to_stop_waits_for_its_claim(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, FORK)

    task, _none = meet(
        a,
        lambda: drive.claim(a),
        b,
        lambda: b.execute("select wf.sp_set_worker_state('driver', 'STOPPING')").fetchone(),
        look,
    )

    assert task is not None
    assert drive.claim(look) is None
    assert heartbeat(look, task) == (1, "STOP")


def test_claims_of_one_worker_queue_so_that_its_cap_holds(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    deploy(a, tmp_path, FORK)
    dispatch(a, "max_per_worker", 1)
    drive.start(a, "fork", {})

    first, second = meet(a, lambda: drive.claim(a), b, lambda: drive.claim(b), look)

    assert first is not None
    assert second is None


@pytest.mark.parametrize("limit", ["max_concurrent", "rate_per_minute"])
def test_claims_of_two_workers_never_spend_the_same_room(
    sessions: Sessions, tmp_path: Path, limit: str
) -> None:
    a, b, look = sessions
    deploy(a, tmp_path, FORK)
    dispatch(a, limit, 1)
    drive.start(a, "fork", {})
    a.execute("select wf.sp_register_worker('second', %s, array['*'])", (drive.TOKEN,))

    def claim_second() -> Any:
        return b.execute(
            "select node_key from wf.sp_worker_request_tasks('second', %s, null, 60, 10)",
            (drive.TOKEN,),
        ).fetchall()

    first, second = pass_by(a, lambda: drive.claim(a), b, claim_second)

    assert first is not None
    assert second == []
    assert claim_second() == []
    assert one(look, "select count(*) from wf.task_lease") == 1


def test_a_claim_passes_by_what_a_release_of_a_pin_holds(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare_pinned(a, tmp_path)
    release = "select released_count from wf.sp_release_affinity(%s, 'x')"
    a.execute("select wf.sp_register_worker('second', %s, array['*'])", (drive.TOKEN,))

    def claim_second() -> Any:
        return one(b, "select node_key from wf.sp_worker_request_task('second', %s)", drive.TOKEN)

    assert claim_second() is None
    assert pass_by(a, lambda: one(a, release, instance), b, claim_second) == (1, None)
    assert claim_second() == "b"
    assert one(look, "select count(*) from wf.task_lease") == 1


def test_a_release_of_a_pin_waits_for_the_claim_of_its_task(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare_pinned(a, tmp_path)
    release = "select released_count from wf.sp_release_affinity(%s, 'x')"

    task, released = meet(a, lambda: drive.claim(a), b, lambda: one(b, release, instance), look)

    assert task is not None
    assert released == 0
    assert drive.submit(look, task, 0)["reason"] == "OK"


PINNED = """
    workflow pinned {
      action a = t.first(group: "x")
      action b = t.second(group: "x")
    }
"""


def prepare_pinned(connection: Connection, folder: Path) -> int:
    """An instance whose action b is pinned to the driver."""
    deploy(connection, folder, PINNED, "actions: [{name: t.first}, {name: t.second}]")
    dispatch(connection, "affinity_key_field", "group")
    dispatch(connection, "require_previous_worker", True)
    instance = drive.start(connection, "pinned", {})
    drive.submit(connection, drive.claim(connection) or {}, 0)
    return instance


# Leases ----------------------------------------------------------------------------------------


def test_a_reclaim_passes_by_a_lease_that_a_heartbeat_extends(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, _look = sessions
    prepare(a, tmp_path, TWO)
    task = drive.claim(a, lease_seconds=5)
    assert task is not None
    stop_clock(a, 6)

    assert pass_by(a, lambda: heartbeat(a, task), b, lambda: tick(b)) == ((1, "NONE"), (0, 0, 0))
    assert tick(b) == (0, 0, 0)


def test_a_heartbeat_that_waited_for_a_reclaim_says_cancel(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, TWO)
    task = drive.claim(a, lease_seconds=5)
    assert task is not None
    stop_clock(a, 6)

    answers = meet(a, lambda: tick(a), b, lambda: heartbeat(b, task), look)

    assert answers == ((1, 0, 0), (0, "CANCEL"))


def test_a_pass_never_waits_for_a_heartbeat_of_a_lease_that_would_be_the_last(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, _look = sessions
    prepare(a, tmp_path, TWO)
    dispatch(a, "max_deliveries", 1)
    task = drive.claim(a, lease_seconds=5)
    assert task is not None
    stop_clock(a, 6)

    assert pass_by(a, lambda: heartbeat(a, task), b, lambda: tick(b)) == ((1, "NONE"), (0, 0, 0))


# Start, create, cancel ---------------------------------------------------------------------------


def test_two_starts_at_once_start_once(sessions: Sessions, tmp_path: Path) -> None:
    a, b, look = sessions
    drive.deploy(a, drive.compile_text(tmp_path, TWO))
    instance, _created = create(a, "two")

    answers = meet(a, lambda: begin(a, instance), b, lambda: begin(b, instance), look)

    assert answers == ("RUNNING", "RUNNING")
    assert count(look, "a") == 1


def test_a_start_that_waited_for_a_cancel_is_refused(sessions: Sessions, tmp_path: Path) -> None:
    a, b, look = sessions
    drive.deploy(a, drive.compile_text(tmp_path, TWO))
    instance, _created = create(a, "two")

    with refused("WA003"):
        meet(a, lambda: cancel(a, instance), b, lambda: begin(b, instance), look)

    assert count(look, "a") == 0


def test_a_cancel_that_waited_for_a_start_ends_what_it_started(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    drive.deploy(a, drive.compile_text(tmp_path, TWO))
    instance, _created = create(a, "two")

    answers = meet(a, lambda: begin(a, instance), b, lambda: cancel(b, instance), look)

    assert answers == ("RUNNING", "CANCELLED")
    assert one(look, "select count(*) from wf.task") == 0


def test_a_create_whose_predecessor_is_purged_meanwhile_makes_a_new_instance(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    drive.deploy(a, drive.compile_text(tmp_path, TWO))
    old, _created = create(a, "two", "k")
    cancel(a, old)
    put_stop(a, "wf_repo_create_workflow_instance", "select i.workflow_instance_id, i.workflow_v")

    with stopped(look, b, lambda: create(b, "two", "k")) as creating:
        assert purge(a) == 1

    instance, created = creating.result()
    assert created is True
    assert begin(a, instance) == "RUNNING"


# Events ----------------------------------------------------------------------------------------


def test_an_event_that_waited_for_a_cancel_finds_nobody(sessions: Sessions, tmp_path: Path) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, WAITING)

    answers = meet(a, lambda: cancel(a, instance), b, lambda: ring(b), look)

    assert answers == ("CANCELLED", (False, 0))
    assert count(look, "after") == 0


def test_a_cancel_that_waited_for_an_event_ends_what_it_activated(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, WAITING)

    answers = meet(a, lambda: ring(a), b, lambda: cancel(b, instance), look)

    assert answers == ((False, 1), "CANCELLED")
    assert count(look, "after") == 1
    assert one(look, "select count(*) from wf.task") == 0


@pytest.mark.parametrize("order", ["event first", "signal first"])
def test_of_an_event_and_a_signal_at_once_one_completes_the_wait(
    sessions: Sessions, tmp_path: Path, order: str
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, WAITING)

    if order == "event first":
        assert meet(a, lambda: ring(a), b, lambda: signal(b), look) == ((False, 1), 0)
    else:
        assert meet(a, lambda: signal(a), b, lambda: ring(b), look) == (1, (False, 0))

    assert count(look, "after") == 1


def opening(connection: Connection, folder: Path, text: str = WAITING) -> dict[str, Any]:
    """A task whose result opens the wait of `text`, with the route of its key known."""
    prepare(connection, folder, text.replace("wait_event", "action x = t.do() wait_event"))
    ring(connection, "earlier", "other")
    connection.execute("insert into wf.event_route values ('bell', ''), ('bell', 'k')")
    return drive.claim(connection) or {}


def test_an_event_of_a_known_route_waits_for_the_wait_that_opens(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    task = opening(a, tmp_path)

    answers = meet(a, lambda: drive.submit(a, task, 0)["reason"], b, lambda: ring(b), look)

    assert answers == ("OK", (False, 1))


def test_a_wait_that_opens_while_an_event_of_a_known_route_comes_takes_it(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    task = opening(a, tmp_path)

    answers = meet(b, lambda: ring(b), a, lambda: drive.submit(a, task, 0)["reason"], look)

    assert answers == ((False, 0), "OK")
    assert count(look, "after") == 1


def test_an_event_waits_for_a_wait_without_a_key_that_opens(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    task = opening(a, tmp_path, WAITING.replace(' correlate "k"', ""))

    answers = meet(a, lambda: drive.submit(a, task, 0)["reason"], b, lambda: ring(b), look)

    assert answers == ("OK", (False, 1))


def test_a_wait_without_a_key_that_opens_while_an_event_comes_takes_it(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    task = opening(a, tmp_path, WAITING.replace(' correlate "k"', ""))

    answers = meet(b, lambda: ring(b), a, lambda: drive.submit(a, task, 0)["reason"], look)

    assert answers == ((False, 0), "OK")
    assert count(look, "after") == 1


def test_a_signal_that_comes_while_the_wait_opens_is_not_lost(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, WAITING.replace("wait_event", "action before = t.do() wait_event"))
    task = drive.claim(a)
    assert task is not None

    submitted, applied = meet(a, lambda: drive.submit(a, task, 0), b, lambda: signal(b), look)

    assert submitted["reason"] == "OK"
    assert applied == 1
    assert count(look, "after") == 1


def test_a_signal_after_the_deadline_of_its_wait_comes_too_late(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, _b, look = sessions
    instance = prepare(a, tmp_path, WAITING.replace('correlate "k"', 'correlate "k" timeout 10s'))
    stop_clock(a, 11)

    assert signal(a) == 0
    assert status(look, instance) == "FAILED"


def test_events_whose_waits_lead_to_each_others_do_not_deadlock(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    there = 'workflow there { wait_event x on "one" { correlate "k" } WAIT }'
    for name, first, then in (("there", "one", "two"), ("back", "two", "one")):
        text = there.replace("there", name).replace('"one"', f'"{first}"')
        prepare(a, tmp_path, text.replace("WAIT", f'wait_event y on "{then}" {{ correlate "k" }}'))
    put_stop(a, "wf_wait_complete", "delete from wf.event_wait")

    look.execute("begin")
    look.execute("select pg_advisory_xact_lock(%s)", (STOP,))
    with (
        background(lambda: ring(a, "e1", "one")) as one_event,
        background(lambda: ring(b, "e2", "two")) as other_event,
    ):
        wait_until_blocked(look, a, one_event)
        wait_until_blocked(look, b, other_event)
        look.execute("commit")
        answers = (one_event.result(), other_event.result())

    assert [duplicate for duplicate, _applied in answers] == [False, False]
    assert one(look, "select array_agg(distinct status) from wf.workflow_instance") == ["SUCCEEDED"]


# Purge -----------------------------------------------------------------------------------------


def failed(connection: Connection, folder: Path) -> tuple[int, dict[str, Any]]:
    """A failed instance, and the task whose result failed it."""
    instance = prepare(connection, folder, TWO)
    task = drive.claim(connection)
    assert task is not None
    drive.submit(connection, task, -7)
    return instance, task


def test_a_purge_passes_by_an_instance_that_is_being_retried(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance, _task = failed(a, tmp_path)

    assert pass_by(a, lambda: retry(a, instance), b, lambda: purge(b)) == ("RUNNING", 0)
    assert status(look, instance) == "RUNNING"


def test_a_retry_that_waited_for_a_purge_finds_no_instance(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance, _task = failed(a, tmp_path)

    with refused("WA002"):
        meet(a, lambda: purge(a), b, lambda: retry(b, instance), look)

    assert one(look, "select count(*) from wf.node_execution") == 0


def test_a_submit_that_is_repeated_while_a_purge_goes_on_is_answered_as_before(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    _instance, task = failed(a, tmp_path)

    purged, answer = pass_by(a, lambda: purge(a), b, lambda: drive.submit(b, task, -7))

    assert purged == 1
    assert answer["reason"] == "REPEATED"
    with refused("WA002"):
        drive.submit(look, task, -7)


def test_a_submit_whose_execution_is_purged_meanwhile_is_stale(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    _instance, task = failed(a, tmp_path)
    put_stop(a, "wf_submit_attempt", "perform wf.wf_take_gates")

    with stopped(look, b, lambda: drive.submit(b, task, -7)) as submitting:
        assert purge(a) == 1

    assert submitting.result() == {
        "accepted": False,
        "instance_status": None,
        "next_ready_count": 0,
        "reason": "STALE",
    }


def test_a_claim_and_a_trace_pass_by_a_purge(sessions: Sessions, tmp_path: Path) -> None:
    a, b, look = sessions
    instance, _task = failed(a, tmp_path)
    drive.start(a, "two", {})

    purged, task = pass_by(a, lambda: purge(a), b, lambda: drive.claim(b))
    assert purged == 1
    assert task is not None

    old = drive.start(a, "two", {})
    cancel(a, old)
    _purged, document = pass_by(a, lambda: purge(a), b, lambda: drive.trace(b, old))
    assert document["status"] == "CANCELLED"
    assert one(look, "select wf.wf_trace_instance(%s)", instance) is None


def test_two_purges_share_what_there_is(sessions: Sessions, tmp_path: Path) -> None:
    a, b, _look = sessions
    failed(a, tmp_path)

    assert pass_by(a, lambda: purge(a), b, lambda: purge(b)) == (1, 0)


# Retry, resume -----------------------------------------------------------------------------------


def test_of_two_retries_at_once_the_second_is_refused(sessions: Sessions, tmp_path: Path) -> None:
    a, b, look = sessions
    instance, _task = failed(a, tmp_path)

    with refused("WA003"):
        meet(a, lambda: retry(a, instance), b, lambda: retry(b, instance), look)

    assert one(look, "select count(*), max(attempt_no) from wf.task") == (1, 2)


def test_a_submit_that_is_repeated_during_a_retry_is_answered_as_before(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance, task = failed(a, tmp_path)

    _status, answer = pass_by(a, lambda: retry(a, instance), b, lambda: drive.submit(b, task, -7))

    assert answer["reason"] == "REPEATED"
    assert drive.submit(look, task, -7)["reason"] == "REPEATED"
    assert drive.submit(look, task, 0)["reason"] == "STALE"


def test_a_cancel_that_waited_for_a_retry_ends_what_it_brought_back(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance, _task = failed(a, tmp_path)

    answers = meet(a, lambda: retry(a, instance), b, lambda: cancel(b, instance), look)

    assert answers == ("RUNNING", "CANCELLED")
    assert one(look, "select count(*) from wf.task") == 0


def test_a_pass_leaves_the_timers_to_the_resume_that_is_there_first(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, TIMED)
    pause(a, instance)
    stop_clock(a, 11)

    assert pass_by(a, lambda: resume(a, instance), b, lambda: tick(b)) == ("FAILED", (0, 0, 0))
    assert tick(look) == (0, 0, 0)


def test_a_submit_that_waited_for_a_pause_counts_and_what_it_activates_waits(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, FORK)
    tasks = claim_all(a)

    _paused, answer = meet(
        a, lambda: pause(a, instance), b, lambda: drive.submit(b, tasks["a"], 0), look
    )

    assert answer["reason"] == "OK"
    assert count(look, "a2") == 1
    assert drive.claim(look) is None


# Definitions -------------------------------------------------------------------------------------


def test_two_deploys_of_one_content_at_once_make_one_version(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    spec = drive.compile_text(tmp_path, TWO)
    script = drive.emit(spec).removesuffix("commit;\n")

    a.execute(script.encode())
    try:
        with background(lambda: drive.deploy(b, spec)) as second:
            wait_until_blocked(look, b, second)
            a.execute("commit")
            second.result()
    finally:
        a.execute("rollback")

    assert one(look, "select count(*), max(version_no) from wf.workflow_version") == (1, 1)


def publish(connection: Connection, spec: Any) -> Any:
    return one(
        connection,
        "select version_no, was_new from wf.wf_publish_workflow_version(%s, %s)",
        spec.name,
        spec.content_hash(),
    )


def test_two_publishes_of_one_workflow_follow_one_another(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    old = drive.compile_text(tmp_path, TWO)
    new = drive.compile_text(tmp_path, TWO.replace("action b", "action c"))
    drive.deploy(a, old)
    drive.deploy(a, new)

    answers = meet(a, lambda: publish(a, old), b, lambda: publish(b, new), look)

    assert answers == ((1, False), (2, False))
    assert one(look, "select version_no from wf.workflow_version where is_active") == 2


def test_a_create_passes_by_a_publish_and_takes_the_version_that_was_active(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    old = drive.compile_text(tmp_path, TWO)
    new = drive.compile_text(tmp_path, TWO.replace("action b", "action c"))
    drive.deploy(a, old)
    drive.deploy(a, new)

    _published, (instance, _created) = pass_by(
        a, lambda: publish(a, old), b, lambda: create(b, "two")
    )

    assert (
        one(
            look,
            "select version_no from wf.workflow_instance join wf.workflow_version v"
            " using (workflow_version_id) where workflow_instance_id = %s",
            instance,
        )
        == 2
    )


def test_a_create_that_waited_for_the_deletion_of_its_workflow_is_refused(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, TWO)

    with refused("WA002"):
        meet(a, lambda: delete(a, "two"), b, lambda: create(b, "two"), look)

    assert one(look, "select count(*) from wf.workflow_instance") == 0


def test_a_deletion_that_waited_for_a_create_takes_the_instance_with_it(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, TWO)

    _created, deleted = meet(a, lambda: create(a, "two"), b, lambda: delete(b, "two"), look)

    assert deleted == (2, 2)
    assert one(look, "select count(*) from wf.workflow_instance") == 0


def test_a_start_that_waited_for_the_deletion_of_its_workflow_is_refused(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    drive.deploy(a, drive.compile_text(tmp_path, TWO))
    instance, _created = create(a, "two")

    with refused("WA002"):
        meet(a, lambda: delete(a, "two"), b, lambda: begin(b, instance), look)

    assert one(look, "select count(*) from wf.node_execution") == 0


def test_a_deletion_that_waited_for_the_last_submit_counts_the_instance_as_ended(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, "workflow two { action a = t.do() }")
    task = drive.claim(a)
    assert task is not None

    _answer, deleted = meet(a, lambda: drive.submit(a, task, 0), b, lambda: delete(b, "two"), look)

    assert deleted == (0, 1)


def test_a_deletion_that_waited_for_a_retry_leaves_no_task(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance, _task = failed(a, tmp_path)

    _status, deleted = meet(a, lambda: retry(a, instance), b, lambda: delete(b, "two"), look)

    assert deleted == (1, 1)
    assert one(look, "select count(*) from wf.task") == 0


def test_an_event_does_not_start_a_workflow_that_is_being_deleted(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    drive.deploy(
        a, drive.compile_text(tmp_path, 'workflow two { on event "bell" start action a = t.do() }')
    )

    _deleted, rung = meet(a, lambda: delete(a, "two"), b, lambda: ring(b), look)

    assert rung == (False, 0)
    assert one(look, "select count(*) from wf.workflow_instance") == 0


def test_a_pass_that_read_before_a_pause_does_not_release_a_task_of_it(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, "workflow w { action a = t.do() { delay 10s } }")
    stop_clock(a, 11)
    # The stop stands within the statement, after its snapshot and before its locks.
    replace_in(
        a,
        "wf_release_due_tasks",
        "where not o.is_claimable",
        f"where (select pg_catalog.pg_advisory_xact_lock_shared({STOP})) is not null"
        " and not o.is_claimable",
    )

    with stopped(look, b, lambda: tick(b)) as ticking:
        pause(a, instance)

    assert ticking.result() == (0, 0, 0)
    assert drive.claim(look) is None


# Stricter isolation ------------------------------------------------------------------------------
#
# A lock of a row that others only held shared is given to a call whose snapshot does not show what
# they have activated. But each of them has ended a task that the snapshot still shows as open, and
# that the call then wants to end, too: it is refused, and works when it is called again. A pause
# ends nothing, so it looks whether anything was committed since its snapshot.


@own_session
def test_a_pause_with_an_old_snapshot_is_refused_under_repeatable_read(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, WAITING)
    b.execute("set default_transaction_isolation = 'repeatable read'")

    with pytest.raises(psycopg.errors.SerializationFailure):
        meet(a, lambda: ring(a), b, lambda: pause(b, instance), look)

    assert pause(b, instance) == "PAUSED"
    assert drive.claim(look) is None


@own_session
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_call_that_closes_work_is_refused_when_its_snapshot_is_older_than_its_gate(
    sessions: Sessions, tmp_path: Path, isolation: str
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, FORK)
    tasks = claim_all(a)
    b.execute(f"set default_transaction_isolation = '{isolation}'".encode())

    with pytest.raises(psycopg.errors.SerializationFailure):
        meet(a, lambda: drive.submit(a, tasks["a"], 0), b, lambda: cancel(b, instance), look)

    assert cancel(b, instance) == "CANCELLED"
    assert one(look, "select count(*) from wf.task") == 0


@own_session
def test_a_failure_with_an_old_snapshot_is_refused_under_repeatable_read(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, FORK)
    tasks = claim_all(a)
    b.execute("set default_transaction_isolation = 'repeatable read'")

    with pytest.raises(psycopg.errors.SerializationFailure):
        meet(
            a,
            lambda: drive.submit(a, tasks["a"], 0),
            b,
            lambda: drive.submit(b, tasks["b"], -1),
            look,
        )

    assert drive.submit(b, tasks["b"], -1)["instance_status"] == "FAILED"
    assert one(look, "select count(*) from wf.task") == 0


@own_session
def test_a_claim_with_an_old_snapshot_is_refused_under_repeatable_read(
    sessions: Sessions, tmp_path: Path
) -> None:
    a, b, look = sessions
    deploy(a, tmp_path, FORK)
    dispatch(a, "max_per_worker", 1)
    drive.start(a, "fork", {})
    b.execute("set default_transaction_isolation = 'repeatable read'")

    with pytest.raises(psycopg.errors.SerializationFailure):
        meet(a, lambda: drive.claim(a), b, lambda: drive.claim(b), look)

"""What happens when calls meet: each test holds one session's transaction open on purpose.

The rules are R1 (gates and lock order), R2 (no lost wake-up) and S1.7 (a join completes once).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import psycopg
import pytest

from tests.runtime_sql import drive
from tests.runtime_sql.sessions import background, wait_until_blocked

Connection = psycopg.Connection[Any]

FORK = """
    workflow fork {
      parallel {
        sequence one { action a = t.do() }
        sequence two { action b = t.do() }
      }
      action after = t.do()
    }
"""
LONG_FORK = """
    workflow fork {
      parallel {
        sequence one { action a = t.do() action a2 = t.do() }
        sequence two { action b = t.do() action b2 = t.do() }
      }
    }
"""


@pytest.fixture
def sessions(pg_url: str) -> Iterator[tuple[Connection, Connection, Connection]]:
    """Two sessions to meet each other and one to look on."""
    with drive.connect(pg_url) as a, drive.connect(pg_url) as b, drive.connect(pg_url) as look:
        yield a, b, look


def prepare(connection: Connection, folder: Path, text: str) -> int:
    spec = drive.compile_text(folder, text)
    drive.deploy(connection, spec)
    return drive.start(connection, spec.name, {})


def claim_all(connection: Connection) -> dict[str, dict[str, Any]]:
    tasks = {}
    while (task := drive.claim(connection)) is not None:
        tasks[task["node_key"]] = task
    return tasks


def count(connection: Connection, key: str) -> int:
    row = connection.execute(
        "select count(*) from wf.node_execution e join wf.workflow_node n using (node_id)"
        " where n.node_key = %s",
        (key,),
    ).fetchone()
    assert row is not None
    return int(row[0])


def instance_status(connection: Connection, instance: int) -> str:
    row = connection.execute(
        "select status from wf.workflow_instance where workflow_instance_id = %s", (instance,)
    ).fetchone()
    assert row is not None
    return str(row[0])


def test_two_last_branches_complete_their_parent_once(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, FORK)
    tasks = claim_all(a)

    with a.transaction():
        drive.submit(a, tasks["a"], 0)
        with background(lambda: drive.submit(b, tasks["b"], 0)) as second:
            wait_until_blocked(look, b, second)
            assert count(look, "after") == 0
            a.execute("commit")
            assert second.result()["next_ready_count"] == 1
            a.execute("begin")

    assert count(look, "after") == 1


@pytest.mark.parametrize("width", [2, 5, 16])
def test_many_branches_at_once_complete_their_parent_once(
    pg_url: str, tmp_path: Path, width: int
) -> None:
    items = ", ".join(str(n) for n in range(width))
    text = f"""
        workflow f {{
          foreach x in [{items}] parallel {{ action a = t.do(x: var.x) }}
          action after = t.do()
        }}
    """
    with drive.connect(pg_url) as look:
        instance = prepare(look, tmp_path, text)
        tasks = look.execute(
            "select node_execution_id, lease_token"
            " from wf.sp_worker_request_tasks(%s, %s, null, 60, 100)",
            (drive.WORKER, drive.TOKEN),
        ).fetchall()
        barrier = Barrier(width)

        def finish(task: tuple[int, int]) -> dict[str, Any]:
            with psycopg.connect(pg_url, autocommit=True) as own:
                barrier.wait()
                return drive.submit(own, {"node_execution_id": task[0], "lease_token": task[1]}, 0)

        with ThreadPoolExecutor(width) as pool:
            answers = list(pool.map(finish, tasks))

        assert [answer["accepted"] for answer in answers] == [True] * width
        assert count(look, "after") == 1
        drive.drain(look, drive.Scripted())
        assert instance_status(look, instance) == "SUCCEEDED"


def test_branches_that_only_extend_themselves_do_not_wait_for_each_other(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, LONG_FORK)
    tasks = claim_all(a)

    with a.transaction():
        drive.submit(a, tasks["a"], 0)
        b.execute("set lock_timeout = '20s'")
        assert drive.submit(b, tasks["b"], 0)["reason"] == "OK"

    assert (count(look, "a2"), count(look, "b2")) == (1, 1)


def test_a_failure_waits_for_open_calls_and_cancels_what_they_activated(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, LONG_FORK)
    tasks = claim_all(a)

    with a.transaction():
        drive.submit(a, tasks["a"], 0)
        with background(lambda: drive.submit(b, tasks["b"], -1)) as failing:
            wait_until_blocked(look, b, failing)
            a.execute("commit")
            assert failing.result()["instance_status"] == "FAILED"
            a.execute("begin")

    statuses = {n["path"].split("/")[-1]: n["status"] for n in drive.trace(look, instance)["nodes"]}
    assert statuses["a"] == "SUCCEEDED"
    assert statuses["a2"] == "CANCELLED"
    assert look.execute("select count(*) from wf.task").fetchone() == (0,)


def test_a_submit_that_finds_late_that_it_fails_takes_the_gate_exclusive(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    text = LONG_FORK.replace("action b = t.do()", "action b = t.do() { set x = out.gone }")
    instance = prepare(a, tmp_path, text)
    tasks = claim_all(a)

    with a.transaction():
        drive.submit(a, tasks["a"], 0)
        with background(lambda: drive.submit(b, tasks["b"], 0, {})) as failing:
            wait_until_blocked(look, b, failing)
            a.execute("commit")
            assert failing.result() == {
                "accepted": True,
                "instance_status": "FAILED",
                "next_ready_count": 0,
                "reason": "OK",
            }
            a.execute("begin")

    assert drive.trace(look, instance)["error"]["engine_code"] == 10001
    assert look.execute("select count(*) from wf.task").fetchone() == (0,)


def test_claims_of_two_workers_do_not_wait_and_never_share_a_task(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, _look = sessions
    prepare(a, tmp_path, FORK)
    a.execute("select wf.sp_register_worker('second', %s, array['*'])", (drive.TOKEN,))

    with a.transaction():
        first = drive.claim(a)
        b.execute("set lock_timeout = '20s'")
        row = b.execute(
            "select node_key from wf.sp_worker_request_task('second', %s)", (drive.TOKEN,)
        ).fetchone()

    assert first is not None
    assert row is not None
    assert {first["node_key"], row[0]} == {"a", "b"}


def test_two_submits_of_one_result_count_once(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, LONG_FORK)
    task = claim_all(a)["a"]

    with a.transaction():
        drive.submit(a, task, 0)
        with background(lambda: drive.submit(b, task, 0)) as second:
            wait_until_blocked(look, b, second)
            a.execute("commit")
            assert second.result()["reason"] == "REPEATED"
            a.execute("begin")

    assert count(look, "a2") == 1


WAITING = """
    workflow waiting {
      action before = t.do()
      wait_event w on "bell" { correlate "k"  set seen = event.payload.n }
      action after = t.do()
    }
"""


def ring(connection: Connection, key: str = "e1") -> tuple[Any, ...]:
    row = connection.execute(
        "select duplicate, applied_count from wf.sp_ingest_event('bell', 's', %s, %s, 'k')",
        (key, drive.json({"n": 1})),
    ).fetchone()
    assert row is not None
    return row


def test_an_event_that_comes_while_the_wait_opens_is_not_lost(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, WAITING)
    task = drive.claim(a)
    assert task is not None

    with a.transaction():
        drive.submit(a, task, 0)
        with background(lambda: ring(b)) as event:
            wait_until_blocked(look, b, event)
            a.execute("commit")
            assert event.result() == (False, 1)
            a.execute("begin")

    assert count(look, "after") == 1


def test_a_wait_that_opens_while_the_event_comes_in_takes_it(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, WAITING)
    task = drive.claim(a)
    assert task is not None

    with b.transaction():
        assert ring(b) == (False, 0)
        with background(lambda: drive.submit(a, task, 0)) as opening:
            wait_until_blocked(look, a, opening)
            b.execute("commit")
            assert opening.result()["next_ready_count"] == 1
            b.execute("begin")

    assert count(look, "after") == 1


def test_two_equal_events_at_once_are_one(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, WAITING)
    drive.submit(a, drive.claim(a) or {}, 0)

    with a.transaction():
        assert ring(a) == (False, 1)
        with background(lambda: ring(b)) as second:
            wait_until_blocked(look, b, second)
            a.execute("commit")
            assert second.result() == (True, 0)
            a.execute("begin")

    assert count(look, "after") == 1


def test_two_creates_with_one_business_key_give_one_instance(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    drive.deploy(a, drive.compile_text(tmp_path, FORK))
    create = (
        "select workflow_instance_id, created from"
        " wf.wf_repo_create_workflow_instance('fork', '{}', p_business_key => 'k')"
    )

    with a.transaction():
        first = a.execute(create).fetchone()
        with background(lambda: b.execute(create).fetchone()) as second:
            wait_until_blocked(look, b, second)
            a.execute("commit")
            assert first is not None
            assert first[1] is True
            assert second.result() == (first[0], False)
            a.execute("begin")


def test_a_backend_that_dies_in_a_submit_leaves_nothing_of_it(pg_url: str, tmp_path: Path) -> None:
    with drive.connect(pg_url) as look:
        prepare(look, tmp_path, LONG_FORK)
        task = claim_all(look)["a"]
        doomed = psycopg.connect(pg_url)
        drive.submit(doomed, task, 0)

        # Asked in the transaction: behind a pooler the next one may have another backend.
        backend = doomed.execute("select pg_backend_pid()").fetchone()
        look.execute("select pg_terminate_backend(%s, 20000)", backend)
        with pytest.raises(psycopg.OperationalError):
            doomed.execute("select 1")
        doomed.close()

        assert count(look, "a2") == 0
        assert drive.submit(look, task, 0)["reason"] == "OK"
        assert count(look, "a2") == 1


def test_batches_that_meet_at_nested_joins_do_not_deadlock(pg_url: str, tmp_path: Path) -> None:
    text = """
        workflow nest {
          parallel outer {
            sequence s { parallel left { action a = t.do() action b = t.do() } }
            sequence u { parallel right { action c = t.do() action d = t.do() } }
          }
        }
    """
    with drive.connect(pg_url) as look:
        drive.deploy(look, drive.compile_text(tmp_path, text))
        instances = [drive.start(look, "nest", {}) for _ in range(20)]
        tasks = look.execute(
            "select node_execution_id, lease_token"
            " from wf.sp_worker_request_tasks(%s, %s, null, 60, 1000)",
            (drive.WORKER, drive.TOKEN),
        ).fetchall()
        assert len(tasks) == 80
        barrier = Barrier(4)

        def finish(part: int) -> None:
            own = tasks[part::4]
            results = [{"node_execution_id": i, "lease_token": t, "result_code": 0} for i, t in own]
            with psycopg.connect(pg_url, autocommit=True) as session:
                barrier.wait()
                for start in range(0, len(results), 7):
                    session.execute(
                        "select * from wf.sp_worker_submit_results(%s, %s, %s)",
                        (drive.WORKER, drive.TOKEN, drive.json(results[start : start + 7])),
                    )

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(finish, range(4)))

        assert {instance_status(look, i) for i in instances} == {"SUCCEEDED"}


# The order in which counters of instances held shared are touched (R1) --------------------------


def held(
    connection: Connection,
    counters: list[tuple[int, int, int]],
    children: list[tuple[int, int, int]],
) -> str:
    """Inserts counters (id, instance, next one above) and ended children (id, instance, counter).

    Answers the children as C entries, in order.
    """
    rows = [(c, i, above, above) for c, i, above in counters]
    rows += [(child, i, counter, counter) for child, i, counter in children]
    for execution, instance, parent, join_parent in rows:
        connection.execute(
            "insert into wf.node_execution (node_execution_id, workflow_instance_id,"
            " parent_execution_id, node_id, scope_id, join_parent_id, status, created_at)"
            " values (%s, %s, %s, 1, 1, %s, 'RUNNING', now())",
            (execution, instance, parent, join_parent),
        )
    return ", ".join(
        f"row({n}, {child}, {instance}, 'C', 1, {counter}, 1)::wf.agenda_entry"
        for n, (child, instance, counter) in enumerate(children)
    )


def release(connection: Connection, entries: str) -> tuple[list[int], list[int]]:
    row = connection.execute(
        "select array(select node_execution_id from unnest(r.released) order by ordinal),"
        " array(select node_execution_id from unnest(r.held) order by ordinal)"
        f" from wf.wf_engine_release(array[{entries}]) r"  # type: ignore[arg-type]
    ).fetchone()
    assert row is not None
    return row


def test_counters_are_released_from_the_highest_down(
    sessions: tuple[Connection, Connection, Connection],
) -> None:
    a = sessions[0]
    entries = held(a, [(1, 1, 0), (2, 2, 0), (3, 3, 0)], [(14, 1, 1), (15, 3, 3), (16, 2, 2)])

    assert release(a, entries) == ([15, 16, 14], [])


def test_counters_below_one_that_may_still_follow_wait(
    sessions: tuple[Connection, Connection, Connection],
) -> None:
    a = sessions[0]
    # Instance 1: counter 10 below counter 4. Instance 2: counter 3. 4 may follow 10, so 3 waits.
    entries = held(a, [(3, 2, 0), (4, 1, 0), (10, 1, 4)], [(20, 1, 10), (21, 2, 3)])

    assert release(a, entries) == ([20], [21])


NESTED = """
    workflow nested {
      parallel outer {
        sequence s { parallel inner { action a = t.do() sequence u { action b = t.do() } } }
      }
    }
"""


def counter_ids(connection: Connection, instance: int) -> list[int]:
    """The counters of an instance, the outer one first."""
    rows = connection.execute(
        "select node_execution_id from wf.join_counter where workflow_instance_id = %s order by 1",
        (instance,),
    ).fetchall()
    return [row[0] for row in rows]


def can_lock(connection: Connection, counter: int) -> bool:
    try:
        connection.execute(
            "select 1 from wf.join_counter where node_execution_id = %s for update nowait",
            (counter,),
        )
    except psycopg.errors.LockNotAvailable:
        return False
    return True


@pytest.mark.parametrize("locked", ["inner", "outer"])
def test_a_batch_holds_no_lower_counter_while_a_higher_one_may_follow(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path, locked: str
) -> None:
    a, b, look = sessions
    older = prepare(
        a, tmp_path, "workflow flat { parallel p { action x = t.do() action y = t.do() } }"
    )
    newer = prepare(a, tmp_path, NESTED)
    tasks = claim_all(a)
    drive.submit(a, tasks["a"], 0)
    results = [
        {
            "node_execution_id": tasks[key]["node_execution_id"],
            "lease_token": tasks[key]["lease_token"],
            "result_code": 0,
        }
        for key in ("x", "b")
    ]
    (flat,) = counter_ids(look, older)
    outer, inner = counter_ids(look, newer)
    assert flat < outer < inner

    with b.transaction():
        # The batch needs inner, then outer, and only then the older instance's counter.
        assert can_lock(b, inner if locked == "inner" else outer)
        with background(
            lambda: a.execute(
                "select count(*) from wf.sp_worker_submit_results(%s, %s, %s)",
                (drive.WORKER, drive.TOKEN, drive.json(results)),
            )
        ) as batch:
            wait_until_blocked(look, a, batch)
            with look.transaction():
                assert can_lock(look, flat)
            b.execute("commit")
            batch.result()
            b.execute("begin")

    assert instance_status(look, newer) == "SUCCEEDED"
    assert instance_status(look, older) == "RUNNING"


# Operators, time and leases ----------------------------------------------------------------------


def move_clock(connection: Connection, seconds: int) -> None:
    connection.execute(
        "insert into wf.wf_setting (name, value)"
        " values ('now', (wf.wf_now() + make_interval(secs => %s))::text)"
        " on conflict (name) do update set value = excluded.value",
        (seconds,),
    )


def test_a_cancel_waits_for_open_calls_and_takes_what_they_activated(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, LONG_FORK)
    tasks = claim_all(a)
    cancel = "select instance_status from wf.sp_cancel_workflow_instance(%s)"

    with a.transaction():
        drive.submit(a, tasks["a"], 0)
        with background(lambda: b.execute(cancel, (instance,)).fetchone()) as cancelling:
            wait_until_blocked(look, b, cancelling)
            a.execute("commit")
            assert cancelling.result() == ("CANCELLED",)
            a.execute("begin")

    assert count(look, "a2") == 1
    assert look.execute("select count(*) from wf.task").fetchone() == (0,)
    assert drive.submit(look, tasks["b"], 0)["reason"] == "CANCELLED"


def test_a_submit_waits_for_a_cancel_and_changes_nothing(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, LONG_FORK)
    tasks = claim_all(a)

    with b.transaction():
        b.execute("select wf.sp_cancel_workflow_instance(%s)", (instance,))
        with background(lambda: drive.submit(a, tasks["a"], 0)) as late:
            wait_until_blocked(look, a, late)
            b.execute("commit")
            assert late.result()["reason"] == "CANCELLED"
            b.execute("begin")

    assert count(look, "a2") == 0


TIMED_WAIT = """
    workflow timed {
      wait_event w on "bell" {
        correlate "k"
        timeout 10s { action late = t.do() }
        set seen = event.payload.n
      }
      action after = t.do(code: ctx.task.w.resultCode)
    }
"""


def test_of_a_time_out_and_an_event_the_first_wins(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    instance = prepare(a, tmp_path, TIMED_WAIT)
    move_clock(a, 11)

    with a.transaction():
        assert a.execute("select timer_count from wf.sp_tick()").fetchone() == (1,)
        with background(lambda: ring(b)) as event:
            wait_until_blocked(look, b, event)
            a.execute("commit")
            assert event.result() == (False, 0)
            a.execute("begin")

    drive.drain(look, drive.Scripted())
    statuses = {n["path"]: n["result_code"] for n in drive.trace(look, instance)["nodes"]}
    assert statuses["timed/w"] == 1


def test_a_time_out_that_is_due_wins_over_an_event_that_no_pass_has_seen(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a = sessions[0]
    prepare(a, tmp_path, TIMED_WAIT)
    move_clock(a, 11)

    assert ring(a) == (False, 0)
    assert count(a, "late") == 1


def test_a_pass_never_waits_for_an_instance_that_a_call_is_at(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, TIMED_WAIT)
    move_clock(a, 11)
    b.execute("set lock_timeout = '20s'")

    with a.transaction():
        a.execute("select 1 from wf.workflow_instance for update")
        assert b.execute("select timer_count from wf.sp_tick()").fetchone() == (0,)

    assert look.execute("select timer_count from wf.sp_tick()").fetchone() == (1,)


def test_a_reclaim_does_not_wait_for_a_submit_of_the_same_lease(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, LONG_FORK)
    task = drive.claim(a, lease_seconds=5)
    assert task is not None
    move_clock(a, 6)
    b.execute("set lock_timeout = '20s'")

    with a.transaction():
        drive.submit(a, task, 0)
        assert b.execute("select wf.wf_reclaim_expired_leases(10)").fetchone() == (0,)

    assert drive.submit(look, task, 0)["reason"] == "REPEATED"


def test_a_submit_that_comes_after_the_reclaim_is_stale(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, LONG_FORK)
    task = drive.claim(a, lease_seconds=5)
    assert task is not None
    move_clock(a, 6)

    with b.transaction():
        assert b.execute("select wf.wf_reclaim_expired_leases(10)").fetchone() == (1,)
        with background(lambda: drive.submit(a, task, 0)) as late:
            wait_until_blocked(look, a, late)
            b.execute("commit")
            assert late.result()["reason"] == "STALE"
            b.execute("begin")


def test_a_worker_that_is_told_to_drain_gets_nothing_from_a_claim_that_waited(
    sessions: tuple[Connection, Connection, Connection], tmp_path: Path
) -> None:
    a, b, look = sessions
    prepare(a, tmp_path, LONG_FORK)

    with b.transaction():
        b.execute("select wf.sp_set_worker_state('driver', 'DRAINING')")
        with background(lambda: drive.claim(a)) as claiming:
            wait_until_blocked(look, a, claiming)
            b.execute("commit")
            assert claiming.result() is None
            b.execute("begin")

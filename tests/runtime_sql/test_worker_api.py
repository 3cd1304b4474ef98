"""The worker API of PostgreSQL: claim, submit, heartbeat, fail, release, reclaim (R4, R20, R28)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.runtime_sql import drive

TWO = "workflow two { action a = t.do() action b = t.do() }"
CATALOG = """
actions:
  - {name: t.do, capability: t}
  - {name: u.do, capability: u}
  - {name: once.do, capability: t, idempotent: false}
"""


@pytest.fixture
def connection(any_url: str) -> Iterator[psycopg.Connection[Any]]:
    with drive.connect(any_url) as connection:
        yield connection


@pytest.fixture
def started(connection: psycopg.Connection[Any], tmp_path: Path) -> int:
    """A started instance of two actions in a row; the first one is READY."""
    drive.deploy(connection, drive.compile_text(tmp_path, TWO))
    return drive.start(connection, "two", {})


def begin(connection: psycopg.Connection[Any], folder: Path, text: str) -> int:
    spec = drive.compile_text(folder, text, CATALOG)
    drive.deploy(connection, spec)
    return drive.start(connection, spec.name, {})


def status(connection: psycopg.Connection[Any], instance_id: int) -> tuple[Any, ...]:
    row = connection.execute(
        "select status, error_code, engine_error_code from wf.workflow_instance"
        " where workflow_instance_id = %s",
        (instance_id,),
    ).fetchone()
    assert row is not None
    return row


def refused_with(error: psycopg.Error) -> str | None:
    """The API code of an error, from DETAIL."""
    return error.diag.message_detail


def test_a_claim_tells_what_to_run(connection: psycopg.Connection[Any], started: int) -> None:
    task = drive.claim(connection)

    assert task is not None
    assert task["workflow_instance_id"] == started
    assert (task["node_key"], task["action_name"], task["capability"]) == ("a", "t.do", "t")
    assert (task["attempt_no"], task["iteration_no"], task["lease_token"]) == (1, 0, 1)
    assert (task["desired_state"], task["command"]) == ("ACTIVE", "NONE")
    assert task["path"] == "two/a"
    assert task["input_json"] == {}


def test_a_claim_without_work_is_one_row_without_a_task(
    connection: psycopg.Connection[Any],
) -> None:
    rows = connection.execute(
        "select node_execution_id, desired_state, command from wf.sp_worker_request_task(%s, %s)",
        (drive.WORKER, drive.TOKEN),
    ).fetchall()

    assert rows == [(None, "ACTIVE", "NONE")]


def test_a_leased_task_is_not_handed_out_again(
    connection: psycopg.Connection[Any], started: int
) -> None:
    assert drive.claim(connection) is not None
    assert drive.claim(connection) is None


def test_a_batch_claim_never_hands_out_more_than_asked(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(
        connection,
        tmp_path,
        "workflow f { foreach x in [1, 2, 3, 4, 5] parallel { action a = t.do(x: var.x) } }",
    )

    rows = connection.execute(
        "select input_json from wf.sp_worker_request_tasks(%s, %s, null, 60, 3)",
        (drive.WORKER, drive.TOKEN),
    ).fetchall()

    assert rows == [({"x": 1},), ({"x": 2},), ({"x": 3},)]


def test_a_higher_priority_comes_first(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    begin(
        connection,
        tmp_path,
        "workflow p { parallel { action low = t.do() action high = t.do() { priority 5 } } }",
    )

    task = drive.claim(connection)

    assert task is not None
    assert task["node_key"] == "high"


def test_a_worker_gets_only_what_its_capabilities_list(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, "workflow c { parallel { action a = t.do() action b = u.do() } }")
    connection.execute("select wf.sp_register_worker('narrow', %s, array['u'])", (drive.TOKEN,))

    rows = connection.execute(
        "select node_key from wf.sp_worker_request_tasks('narrow', %s, null, 60, 10)",
        (drive.TOKEN,),
    ).fetchall()

    assert rows == [("b",)]


def test_the_requested_capability_narrows_and_never_widens(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, "workflow c { parallel { action a = t.do() action b = u.do() } }")
    connection.execute("select wf.sp_register_worker('narrow', %s, array['u'])", (drive.TOKEN,))
    request = "select count(*) from wf.sp_worker_request_tasks(%s, %s, %s, 60, 10)"

    wider = connection.execute(request, ("narrow", drive.TOKEN, "t")).fetchone()
    narrower = connection.execute(request, (drive.WORKER, drive.TOKEN, "u")).fetchone()

    assert (wider, narrower) == ((0,), (1,))


def test_a_worker_without_capabilities_gets_nothing(
    connection: psycopg.Connection[Any], started: int
) -> None:
    connection.execute("select wf.sp_register_worker('bare', %s, '{}')", (drive.TOKEN,))

    row = connection.execute(
        "select node_execution_id from wf.sp_worker_request_task('bare', %s)", (drive.TOKEN,)
    ).fetchone()

    assert row == (None,)


@pytest.mark.parametrize(
    ("worker", "token"), [("driver", "wrong" * 8), ("nobody", drive.TOKEN), (None, None)]
)
def test_a_call_without_a_valid_token_is_refused(
    connection: psycopg.Connection[Any], worker: str | None, token: str | None
) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute("select wf.sp_worker_request_task(%s, %s)", (worker, token))

    assert refused_with(refused.value) == "20001"
    assert refused.value.sqlstate == "WA001"


def test_the_older_of_two_tokens_still_works_and_the_third_replaces_it(
    connection: psycopg.Connection[Any],
) -> None:
    def works(token: str) -> bool:
        try:
            connection.execute("select wf.wf_worker_authenticate('driver', %s)", (token,))
        except psycopg.Error:
            return False
        return True

    second, third = "second" * 6, "third" * 6
    connection.execute("select wf.sp_register_worker('driver', %s, array['*'])", (second,))
    assert (works(drive.TOKEN), works(second)) == (True, True)
    drive.move_clock(connection, 1)
    connection.execute("select wf.sp_register_worker('driver', %s, array['*'])", (third,))
    assert [works(drive.TOKEN), works(second), works(third)].count(True) == 2
    assert works(third)


def test_no_token_is_stored_as_it_is(connection: psycopg.Connection[Any]) -> None:
    rows = connection.execute("select t::text from wf.worker_token t").fetchall()

    assert rows
    assert all(drive.TOKEN not in row[0] for row in rows)


def test_a_draining_worker_gets_no_task_and_is_told(
    connection: psycopg.Connection[Any], started: int
) -> None:
    connection.execute("select wf.sp_set_worker_state('driver', 'DRAINING')")

    row = connection.execute(
        "select node_execution_id, desired_state, command from wf.sp_worker_request_task(%s, %s)",
        (drive.WORKER, drive.TOKEN),
    ).fetchone()

    assert row == (None, "DRAINING", "DRAIN")


@pytest.mark.parametrize(("state", "command"), [("DRAINING", "DRAIN"), ("STOPPING", "STOP")])
def test_a_worker_that_asks_for_many_is_told_to_end_by_a_row_without_a_task(
    connection: psycopg.Connection[Any], started: int, state: str, command: str
) -> None:
    connection.execute("select wf.sp_set_worker_state('driver', %s)", (state,))

    rows = connection.execute(
        "select node_execution_id, desired_state, command"
        " from wf.sp_worker_request_tasks(%s, %s, null, 60, 10)",
        (drive.WORKER, drive.TOKEN),
    ).fetchall()

    assert rows == [(None, state, command)]


def test_a_submit_continues_the_instance(connection: psycopg.Connection[Any], started: int) -> None:
    task = drive.claim(connection)
    assert task is not None

    answer = drive.submit(connection, task, 0, {"done": True})

    assert answer == {
        "accepted": True,
        "instance_status": "RUNNING",
        "next_ready_count": 1,
        "reason": "OK",
    }


def test_the_last_submit_ends_the_instance(
    connection: psycopg.Connection[Any], started: int
) -> None:
    drive.submit(connection, drive.claim(connection) or {}, 0)
    answer = drive.submit(connection, drive.claim(connection) or {}, 0)

    assert (answer["instance_status"], answer["next_ready_count"]) == ("SUCCEEDED", 0)


def test_the_same_submit_again_is_answered_repeated_and_changes_nothing(
    connection: psycopg.Connection[Any], started: int
) -> None:
    task = drive.claim(connection)
    assert task is not None
    drive.submit(connection, task, 0, {"n": 1})

    again = drive.submit(connection, task, 0, {"n": 1})

    assert (again["accepted"], again["reason"]) == (True, "REPEATED")
    count = connection.execute("select count(*) from wf.task").fetchone()
    assert count == (1,)


def test_another_result_under_an_answered_token_is_stale(
    connection: psycopg.Connection[Any], started: int
) -> None:
    task = drive.claim(connection)
    assert task is not None
    drive.submit(connection, task, 0, {"n": 1})

    again = drive.submit(connection, task, 0, {"n": 2})

    assert (again["accepted"], again["reason"]) == (False, "STALE")


def test_a_submit_under_an_old_token_changes_nothing(
    connection: psycopg.Connection[Any], started: int
) -> None:
    old = drive.claim(connection, lease_seconds=10)
    assert old is not None
    drive.move_clock(connection, 11)
    new = drive.claim(connection)
    assert new is not None
    assert new["lease_token"] == old["lease_token"] + 1

    answer = drive.submit(connection, old, 0, {})

    assert (answer["accepted"], answer["reason"]) == (False, "STALE")
    assert drive.submit(connection, new, 0, {})["reason"] == "OK"


def test_another_worker_cannot_submit_for_the_holder(
    connection: psycopg.Connection[Any], started: int
) -> None:
    task = drive.claim(connection)
    assert task is not None
    connection.execute("select wf.sp_register_worker('other', %s, array['*'])", (drive.TOKEN,))

    answer = connection.execute(
        "select accepted, reason from wf.sp_worker_submit_result(%s, 'other', %s, 0, '{}', %s)",
        (task["node_execution_id"], drive.TOKEN, task["lease_token"]),
    ).fetchone()

    assert answer == (False, "STALE")


def test_a_late_submit_is_accepted_until_the_lease_is_taken_back(
    connection: psycopg.Connection[Any], started: int
) -> None:
    task = drive.claim(connection, lease_seconds=10)
    assert task is not None
    drive.move_clock(connection, 60)

    assert drive.submit(connection, task, 0, {})["accepted"] is True


def test_a_submit_into_an_ended_instance_says_so(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(
        connection, tmp_path, "workflow p { parallel { action a = t.do() action b = t.do() } }"
    )
    first, second = drive.claim(connection), drive.claim(connection)
    assert first is not None
    assert second is not None
    drive.submit(connection, first, -9, None, "broken")

    late = drive.submit(connection, second, 0, {})

    assert late == {
        "accepted": False,
        "instance_status": "FAILED",
        "next_ready_count": 0,
        "reason": "CANCELLED",
    }
    assert status(connection, instance) == ("FAILED", -9, None)


def test_a_negative_code_fails_with_the_given_message(
    connection: psycopg.Connection[Any], started: int
) -> None:
    drive.submit(connection, drive.claim(connection) or {}, -5, None, "the shelf fell over")

    error = drive.trace(connection, started)["error"]

    assert error == {
        "code": -5,
        "engine_code": None,
        "message": "the shelf fell over",
        "node": "a",
        "path": "two/a",
    }


@pytest.mark.parametrize(("given", "stored"), [(-4, -4), (3, -1), (None, -1)])
def test_a_reported_failure_is_a_negative_result(
    connection: psycopg.Connection[Any], started: int, given: int | None, stored: int
) -> None:
    task = drive.claim(connection)
    assert task is not None

    connection.execute(
        "select wf.sp_worker_fail_task(%s, %s, %s, %s, 'no good', %s)",
        (task["node_execution_id"], drive.WORKER, drive.TOKEN, given, task["lease_token"]),
    )

    assert drive.trace(connection, started)["error"]["code"] == stored


def test_a_batch_submit_answers_each_result_in_order(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(
        connection,
        tmp_path,
        "workflow f { foreach x in [1, 2, 3] parallel { action a = t.do(x: var.x) }"
        " action z = t.do() }",
    )
    tasks = [drive.claim(connection) for _ in range(3)]
    results = [
        {
            "node_execution_id": task["node_execution_id"],
            "lease_token": task["lease_token"] + (1 if n == 1 else 0),
            "result_code": 0,
            "output": {"n": n},
        }
        for n, task in enumerate(tasks)
        if task is not None
    ]

    rows = connection.execute(
        "select accepted, reason from wf.sp_worker_submit_results(%s, %s, %s)",
        (drive.WORKER, drive.TOKEN, drive.json(results)),
    ).fetchall()

    assert rows == [(True, "OK"), (False, "STALE"), (True, "OK")]


def test_a_batch_submit_over_many_instances_ends_them_all(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    text = """
        workflow many {
          parallel outer {
            sequence s { parallel inner { action a = t.do() action b = t.do() } }
            action c = t.do()
          }
        }
    """
    drive.deploy(connection, drive.compile_text(tmp_path, text))
    instances = [drive.start(connection, "many", {}) for _ in range(4)]
    tasks = connection.execute(
        "select node_execution_id, lease_token"
        " from wf.sp_worker_request_tasks(%s, %s, null, 60, 100)",
        (drive.WORKER, drive.TOKEN),
    ).fetchall()
    results = [
        {"node_execution_id": i, "lease_token": t, "result_code": 0, "output": {}} for i, t in tasks
    ]

    connection.execute(
        "select * from wf.sp_worker_submit_results(%s, %s, %s)",
        (drive.WORKER, drive.TOKEN, drive.json(results[::-1])),
    )

    assert len(tasks) == 12
    assert [status(connection, i)[0] for i in instances] == ["SUCCEEDED"] * 4
    assert connection.execute("select count(*) from wf.join_counter").fetchone() == (0,)


@pytest.mark.parametrize("code", [2147483647, -2147483648])
def test_a_batch_submit_takes_every_code_that_a_single_one_takes(
    connection: psycopg.Connection[Any], started: int, code: int
) -> None:
    task = drive.claim(connection)
    assert task is not None
    result = {"node_execution_id": task["node_execution_id"], "result_code": code}

    rows = connection.execute(
        "select accepted, reason from wf.sp_worker_submit_results(%s, %s, %s)",
        (drive.WORKER, drive.TOKEN, drive.json([result])),
    ).fetchall()

    assert rows == [(True, "OK")]


@pytest.mark.parametrize("code", ["2147483648", "-2147483649", "99999999999", "1.5", '"x"'])
def test_a_batch_submit_refuses_a_code_that_is_no_integer_of_32_bits(
    connection: psycopg.Connection[Any], started: int, code: str
) -> None:
    task = drive.claim(connection)
    assert task is not None
    results = f'[{{"node_execution_id": {task["node_execution_id"]}, "result_code": {code}}}]'

    with pytest.raises(psycopg.Error) as raised:
        connection.execute(
            "select * from wf.sp_worker_submit_results(%s, %s, %s)",
            (drive.WORKER, drive.TOKEN, results),
        )

    assert refused_with(raised.value) == "20004"


def test_a_heartbeat_extends_the_lease(connection: psycopg.Connection[Any], started: int) -> None:
    task = drive.claim(connection, lease_seconds=10)
    assert task is not None
    beat = "select rows_updated, command from wf.sp_worker_heartbeat(%s, %s, %s, 100, %s)"

    row = connection.execute(
        beat, (task["node_execution_id"], drive.WORKER, drive.TOKEN, task["lease_token"])
    ).fetchone()
    drive.move_clock(connection, 60)

    assert row == (1, "NONE")
    assert drive.claim(connection) is None


def test_a_heartbeat_without_a_lease_says_cancel(
    connection: psycopg.Connection[Any], started: int
) -> None:
    task = drive.claim(connection)
    assert task is not None
    drive.submit(connection, task, 0)

    row = connection.execute(
        "select rows_updated, command from wf.sp_worker_heartbeat(%s, %s, %s, 100, %s)",
        (task["node_execution_id"], drive.WORKER, drive.TOKEN, task["lease_token"]),
    ).fetchone()

    assert row == (0, "CANCEL")


def test_a_lost_lease_is_offered_again_as_the_same_attempt(
    connection: psycopg.Connection[Any], started: int
) -> None:
    drive.claim(connection, lease_seconds=10)
    drive.move_clock(connection, 11)

    again = drive.claim(connection)

    assert again is not None
    assert (again["attempt_no"], again["lease_token"]) == (1, 2)


def test_the_node_fails_after_its_last_delivery(
    connection: psycopg.Connection[Any], started: int
) -> None:
    for _ in range(5):
        assert drive.claim(connection, lease_seconds=10) is not None
        drive.move_clock(connection, 11)

    assert drive.claim(connection) is None
    assert status(connection, started) == ("FAILED", None, 10014)


def test_an_action_that_is_not_idempotent_fails_at_the_first_loss(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(connection, tmp_path, "workflow o { action a = once.do() }")
    drive.claim(connection, lease_seconds=10)
    drive.move_clock(connection, 11)

    row = connection.execute("select reclaimed_count from wf.sp_tick()").fetchone()

    assert row == (1,)
    assert status(connection, instance) == ("FAILED", None, 10014)
    assert drive.trace(connection, instance)["error"]["message"] == (
        "o/a: the lease was lost after its last delivery"
    )


def test_a_released_task_is_ready_at_once_and_no_delivery_is_used(
    connection: psycopg.Connection[Any], started: int
) -> None:
    for _ in range(10):
        task = drive.claim(connection)
        assert task is not None
        connection.execute(
            "select wf.sp_worker_release_task(%s, %s, %s, %s)",
            (task["node_execution_id"], drive.WORKER, drive.TOKEN, task["lease_token"]),
        )

    assert connection.execute("select delivery_count, attempt_no from wf.task").fetchone() == (0, 1)


def test_the_lease_attribute_caps_the_lease(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, "workflow l { action a = t.do() { lease 30s } }")
    task = drive.claim(connection, lease_seconds=300)
    assert task is not None

    row = connection.execute("select claimed_at, lease_until from wf.task").fetchone()

    assert row is not None
    assert row[1] - row[0] == timedelta(seconds=30)


def test_the_iteration_of_the_nearest_loop_is_told_from_one(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(
        connection,
        tmp_path,
        "workflow n { foreach x in [7, 8] { repeat 2 { if true { action a = t.do() } } } }",
    )
    seen = []
    while (task := drive.claim(connection)) is not None:
        seen.append((task["iteration_no"], task["path"]))
        drive.submit(connection, task, 0)

    assert seen == [
        (1, "n/foreach_1[0]/repeat_1[0]/if_1/a"),
        (2, "n/foreach_1[0]/repeat_1[1]/if_1/a"),
        (1, "n/foreach_1[1]/repeat_1[0]/if_1/a"),
        (2, "n/foreach_1[1]/repeat_1[1]/if_1/a"),
    ]


def test_the_work_limit_fails_the_node_it_stops_at(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(
        connection,
        tmp_path,
        "workflow wl { action a = t.do() sequence s { action b = t.do() action c = t.do() } }",
    )
    connection.execute("insert into wf.wf_setting values ('max_activations_per_call', '1')")

    answer = drive.submit(connection, drive.claim(connection) or {}, 0)

    assert (answer["accepted"], answer["instance_status"]) == (True, "FAILED")
    error = drive.trace(connection, instance)["error"]
    assert (error["engine_code"], error["message"]) == (
        10019,
        "wl/s/b: more than 1 activations in one call",
    )


def submit_all(connection: psycopg.Connection[Any], output: Any) -> list[tuple[Any, ...]]:
    """Claims all there is and submits it in one call, every result with the same output."""
    tasks = connection.execute(
        "select node_execution_id, lease_token"
        " from wf.sp_worker_request_tasks(%s, %s, null, 60, 100)",
        (drive.WORKER, drive.TOKEN),
    ).fetchall()
    results = [
        {"node_execution_id": i, "lease_token": t, "result_code": 0, "output": output}
        for i, t in tasks
    ]
    return connection.execute(
        "select accepted, instance_status, next_ready_count"
        " from wf.sp_worker_submit_results(%s, %s, %s)",
        (drive.WORKER, drive.TOKEN, drive.json(results)),
    ).fetchall()


def ready(connection: psycopg.Connection[Any], instance_id: int) -> list[str]:
    rows = connection.execute(
        "select n.node_key from wf.task t join wf.workflow_node n on n.node_id = t.node_id"
        " where t.workflow_instance_id = %s order by t.node_execution_id",
        (instance_id,),
    ).fetchall()
    return [key for (key,) in rows]


def test_the_work_limit_counts_the_actions_that_a_batch_sets_going(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, TWO))
    first, second = (drive.start(connection, "two", {}) for _ in range(2))
    connection.execute("insert into wf.wf_setting values ('max_activations_per_call', '1')")

    submit_all(connection, {})

    assert status(connection, first)[0] == "RUNNING"
    assert status(connection, second) == ("FAILED", None, 10019)


def test_an_action_whose_set_fails_sets_nothing_going_beside_one_that_does(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    text = """
        workflow sets {
          var n : int = 0
          action a = t.do() { set n = out.n + 1 }
          action b = t.do()
        }
    """
    failing = begin(connection, tmp_path, text)
    drive.deploy(connection, drive.compile_text(tmp_path, TWO))
    going = drive.start(connection, "two", {})

    answers = submit_all(connection, {})

    assert answers == [(True, "FAILED", 0), (True, "RUNNING", 1)]
    assert (ready(connection, failing), ready(connection, going)) == ([], ["b"])


def test_a_batch_in_which_some_end_sets_the_others_going(
    connection: psycopg.Connection[Any], started: int
) -> None:
    submit_all(connection, {})
    later = drive.start(connection, "two", {})

    answers = submit_all(connection, {})

    assert answers == [(True, "SUCCEEDED", 0), (True, "RUNNING", 1)]
    assert (ready(connection, started), ready(connection, later)) == ([], ["b"])


def test_branches_of_one_instance_go_on_in_the_order_of_their_results(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    text = """
        workflow branches {
          parallel p {
            sequence one { action a = t.do() sequence inner { action b = t.do() } }
            sequence two { action c = t.do() action d = t.do() }
          }
        }
    """
    drive.deploy(connection, drive.compile_text(tmp_path, text))
    instance = drive.start(connection, "branches", {})

    submit_all(connection, {})

    assert ready(connection, instance) == ["d", "b"]


def test_a_large_input_is_built_all_the_same(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    text = """
        workflow large {
          input { v : string }
          action a = t.do(v: var.v)
          action b = t.do(v: var.v)
        }
    """
    drive.deploy(connection, drive.compile_text(tmp_path, text))
    value = "".join(chr(97 + n * n % 26) for n in range(5000))
    drive.start(connection, "large", {"v": value})

    submit_all(connection, {})

    task = drive.claim(connection)
    assert task is not None
    assert (task["node_key"], task["input_json"]) == ("b", {"v": value})


def test_claims_within_a_second_say_once_that_the_worker_is_there(pg_url: str) -> None:
    with drive.connect(pg_url) as connection:
        drive.move_clock(connection, 10)
        seen = []
        for seconds in (0, 0.5, 2):
            drive.move_clock(connection, seconds)
            drive.claim(connection)
            seen += connection.execute(
                "select wf.wf_now() - p.last_seen_at from wf.worker_presence p"
            ).fetchall()

    assert seen == [(timedelta(0),), (timedelta(seconds=0.5),), (timedelta(0),)]


def test_priorities_of_node_and_instance_add_up_within_bounds(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    text = "workflow p { action a = t.do() { priority 2147483647 } }"
    drive.deploy(connection, drive.compile_text(tmp_path, text, CATALOG))

    created = connection.execute(
        "select workflow_instance_id"
        " from wf.wf_repo_create_workflow_instance('p', '{}', p_priority => 5)"
    ).fetchone()
    connection.execute("select wf.sp_start_workflow_instance(%s)", created)

    assert connection.execute("select priority from wf.task").fetchone() == (2147483647,)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("select wf.sp_worker_submit_result(-1, %(w)s, %(t)s, 0)", "20002"),
        ("select wf.sp_worker_submit_result(null, %(w)s, %(t)s, 0)", "20002"),
        ("select wf.sp_worker_submit_result(1, %(w)s, %(t)s, null)", "20004"),
        ("select wf.sp_worker_submit_results(%(w)s, %(t)s, '{}')", "20004"),
        ("select wf.sp_worker_submit_results(%(w)s, %(t)s, null)", "20004"),
        ("select wf.sp_worker_submit_results(%(w)s, %(t)s, '[1]')", "20004"),
        (
            'select wf.sp_worker_submit_results(%(w)s, %(t)s, \'[{"node_execution_id": "x"}]\')',
            "20004",
        ),
        ("select wf.sp_worker_request_tasks(%(w)s, %(t)s, null, 60, 0)", "20004"),
        ("select wf.sp_worker_request_tasks(%(w)s, %(t)s, null, 60, null)", "20004"),
        ("select wf.sp_worker_request_tasks(%(w)s, %(t)s, null, 0, 1)", "20004"),
        ("select wf.sp_worker_heartbeat(1, %(w)s, %(t)s, -5)", "20004"),
        ("select wf.sp_register_worker('', %(t)s, '{}')", "20004"),
        ("select wf.sp_register_worker(' x', %(t)s, '{}')", "20004"),
        ("select wf.sp_register_worker('x', 'short', '{}')", "20004"),
        ("select wf.sp_set_worker_state('nobody', 'ACTIVE')", "20002"),
        ("select wf.sp_set_worker_state('driver', 'ASLEEP')", "20004"),
    ],
)
def test_bad_arguments_are_refused_with_a_code(
    connection: psycopg.Connection[Any], call: str, code: str
) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(call, {"w": drive.WORKER, "t": drive.TOKEN})

    assert refused_with(refused.value) == code

"""Dispatch rules of PostgreSQL: caps, exclusive actions, preferences, pins (semantics §10, R41)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.runtime_sql import drive

CATALOG = "actions: [{name: t.do, capability: t}, {name: u.do, capability: u}]"
WIDE = """
    workflow wide {
      foreach x in ["k1", "k2", "k1", "k2"] parallel {
        action a = t.do(key: var.x)
        action b = u.do(key: var.x)
      }
    }
"""


@pytest.fixture
def connection(any_url: str) -> Iterator[psycopg.Connection[Any]]:
    with drive.connect(any_url) as connection:
        for worker in ("w1", "w2"):
            connection.execute(
                "select wf.sp_register_worker(%s, %s, array['*'])", (worker, drive.TOKEN)
            )
        yield connection


def begin(
    connection: psycopg.Connection[Any], folder: Path, text: str, **dispatch: dict[str, Any]
) -> int:
    """Deploys with these dispatch columns by action, and starts an instance."""
    spec = drive.compile_text(folder, text, CATALOG)
    drive.deploy(connection, spec)
    for name, columns in dispatch.items():
        for column, value in columns.items():
            connection.execute(
                f"update wf.workflow_action set {column} = %s where action_name = %s",  # type: ignore[arg-type]
                (value, f"{name}.do"),
            )
    return drive.start(connection, spec.name, {})


def take(
    connection: psycopg.Connection[Any], worker: str, at_most: int = 1
) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        rows = cursor.execute(
            "select * from wf.sp_worker_request_tasks(%s, %s, null, 300, %s)",
            (worker, drive.TOKEN, at_most),
        ).fetchall()
    return [row for row in rows if row["node_execution_id"] is not None]


def finish(connection: psycopg.Connection[Any], worker: str, task: dict[str, Any]) -> None:
    connection.execute(
        "select wf.sp_worker_submit_result(%s, %s, %s, 0, '{}', %s)",
        (task["node_execution_id"], worker, drive.TOKEN, task["lease_token"]),
    )


def test_a_cap_holds_within_a_batch_and_between_claims(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, WIDE, t={"max_per_worker": 2})

    assert [len(take(connection, "w1", 10)), len(take(connection, "w1", 10))] == [2, 0]
    assert len(take(connection, "w2", 10)) == 2


def test_a_cap_frees_with_the_lease(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    begin(connection, tmp_path, WIDE, t={"max_per_worker": 1})
    (task,) = take(connection, "w1", 10)

    finish(connection, "w1", task)

    assert {t["action_name"] for t in take(connection, "w1", 10)} == {"t.do", "u.do"}


def test_while_an_exclusive_lease_lives_the_worker_gets_nothing_else(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, WIDE, t={"exclusive_worker": True})
    (task,) = take(connection, "w1", 10)

    assert take(connection, "w1", 10) == []
    finish(connection, "w1", task)
    assert len(take(connection, "w1", 10)) >= 1


def test_a_worker_with_other_leases_is_offered_an_exclusive_task_too(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(
        connection,
        tmp_path,
        "workflow x { parallel { action a = t.do() { priority 9 } action b = u.do()"
        " action c = t.do() } }",
        u={"exclusive_worker": True},
    )

    first = take(connection, "w1")
    both = take(connection, "w1", 10)

    assert [t["node_key"] for t in first] == ["a"]
    assert [t["node_key"] for t in both] == ["b"]
    assert take(connection, "w1", 10) == []


def test_the_previous_worker_of_a_key_comes_first_and_others_are_not_shut_out(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    prefer = {"affinity_key_field": "key", "prefer_previous_worker": True}
    begin(connection, tmp_path, WIDE, t={"affinity_key_field": "key"}, u=prefer)
    tasks = take(connection, "w1", 4)
    for worker, task in zip(("w2", "w1", "w2", "w1"), tasks, strict=True):
        # Who holds the lease completes it: hand the k1 tasks over to w2.
        connection.execute(
            "update wf.task set worker_id = %s where node_execution_id = %s",
            (worker, task["node_execution_id"]),
        )
        finish(connection, worker, task)

    (best,) = take(connection, "w1")
    rest = take(connection, "w1", 10)

    assert best["input_json"] == {"key": "k2"}
    assert len(rest) == 3


def test_a_key_that_was_begun_is_continued_first(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    prefer = {"affinity_key_field": "key", "prefer_continue_group": True}
    begin(connection, tmp_path, WIDE, t=prefer)
    first, second = take(connection, "w1", 2)
    assert second["input_json"] == {"key": "k2"}
    finish(connection, "w1", second)

    following = [t for t in take(connection, "w2", 10) if t["action_name"] == "t.do"]

    assert [t["input_json"]["key"] for t in following] == ["k2", "k1"]
    assert first["input_json"] == {"key": "k1"}


PINNED = {"affinity_key_field": "key", "require_previous_worker": True}
CHAIN = """
    workflow chain {
      action a = t.do(key: "k")
      action b = u.do(key: "k")
      action c = t.do(key: "k")
    }
"""


def test_a_pinned_task_is_only_for_the_worker_that_did_the_one_before(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, CHAIN, t=PINNED, u=PINNED)
    (a,) = take(connection, "w1")
    finish(connection, "w1", a)

    assert take(connection, "w2") == []
    (b,) = take(connection, "w1")
    assert b["node_key"] == "b"
    finish(connection, "w1", b)
    assert take(connection, "w2") == []
    assert [t["node_key"] for t in take(connection, "w1")] == ["c"]


def test_a_pin_of_a_worker_that_is_gone_can_be_released(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(connection, tmp_path, CHAIN, t=PINNED, u=PINNED)
    (a,) = take(connection, "w1")
    finish(connection, "w1", a)

    row = connection.execute(
        "select released_count from wf.sp_release_affinity(%s, 'k')", (instance,)
    ).fetchone()

    assert row == (1,)
    assert [t["node_key"] for t in take(connection, "w2")] == ["b"]


def test_an_exclusive_pinned_action_is_not_constrained(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, CHAIN, t=PINNED, u=PINNED | {"exclusive_worker": True})
    (a,) = take(connection, "w1")
    finish(connection, "w1", a)

    assert [t["node_key"] for t in take(connection, "w2")] == ["b"]


def test_a_new_run_of_an_action_is_not_pinned_to_its_own_success(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(
        connection,
        tmp_path,
        'workflow again { repeat 2 { action a = t.do(key: "k") } }',
        t=PINNED,
    )
    (a,) = take(connection, "w1")
    finish(connection, "w1", a)

    assert [t["node_key"] for t in take(connection, "w2")] == ["a"]


def test_pins_of_another_instance_do_not_hold(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, CHAIN, t=PINNED, u=PINNED)
    (a,) = take(connection, "w1")
    finish(connection, "w1", a)
    drive.start(connection, "chain", {})

    assert [t["node_key"] for t in take(connection, "w2", 5)] == ["a"]


def test_a_long_affinity_text_is_stood_for_by_its_hash(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(
        connection,
        tmp_path,
        f'workflow long {{ action a = t.do(key: "{"x" * 500}") }}',
        t={"affinity_key_field": "key"},
    )

    row = connection.execute("select char_length(affinity_key) from wf.task").fetchone()

    assert row == (64,)


def test_a_paused_action_is_not_claimed(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, WIDE, t={"paused": True})

    assert take(connection, "w1", 10) == []


def test_an_action_runs_at_most_so_often_at_a_time_over_all_workers(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, WIDE, t={"max_concurrent": 3})

    first = take(connection, "w1", 2)
    assert [len(first), len(take(connection, "w2", 10)), len(take(connection, "w1", 10))] == [
        2,
        1,
        0,
    ]
    finish(connection, "w1", first[0])
    assert [t["action_name"] for t in take(connection, "w2", 10)] == ["t.do", "u.do"]


def test_an_action_is_claimed_at_most_so_often_within_a_minute(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, WIDE, t={"rate_per_minute": 3})
    drive.stop_clock(connection)

    def pass_time(seconds: int) -> None:
        connection.execute(
            "update wf.wf_setting set value = (wf.wf_now() + %s * interval '1 s')::text"
            " where name = 'now'",
            (seconds,),
        )

    (released,) = take(connection, "w1", 1)
    connection.execute(
        "select wf.sp_worker_release_task(%s, 'w1', %s)",
        (released["node_execution_id"], drive.TOKEN),
    )
    pass_time(30)
    assert [len(take(connection, "w1", 10)), len(take(connection, "w2", 10))] == [2, 0]
    pass_time(30)
    assert len(take(connection, "w2", 10)) == 1
    pass_time(29)
    assert take(connection, "w2", 10) == []
    pass_time(1)
    assert len(take(connection, "w2", 10)) == 1


def test_a_claim_does_not_wait_for_a_limited_action_that_another_claim_is_at(
    connection: psycopg.Connection[Any], any_url: str, tmp_path: Path
) -> None:
    begin(connection, tmp_path, WIDE, t={"max_concurrent": 3})
    with drive.connect(any_url) as other:
        other.execute("set statement_timeout = '20s'")
        with connection.transaction():
            assert len(take(connection, "w1", 2)) == 2
            assert take(other, "w2", 10) == []
        assert len(take(other, "w2", 10)) == 1


def test_a_claim_that_counted_too_early_is_refused_under_repeatable_read(
    connection: psycopg.Connection[Any], any_url: str, tmp_path: Path
) -> None:
    begin(connection, tmp_path, WIDE, t={"max_concurrent": 1})
    finish(connection, "w1", take(connection, "w1", 1)[0])
    with drive.connect(any_url) as late:
        late.execute("begin isolation level repeatable read")
        late.execute("select 1 from wf.task")
        assert len(take(connection, "w1", 1)) == 1
        with pytest.raises(psycopg.errors.SerializationFailure):
            take(late, "w2", 10)
        late.execute("rollback")
        assert [t["action_name"] for t in take(late, "w2", 10)] == ["u.do"]


# Rules together ----------------------------------------------------------------------------------


def test_an_exclusive_action_with_a_cap_of_one_is_still_done_one_after_the_other(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    both = {"exclusive_worker": True, "max_per_worker": 1}
    begin(connection, tmp_path, WIDE, t=both)

    (task,) = take(connection, "w1", 10)
    assert take(connection, "w1", 10) == []
    assert len(take(connection, "w2", 10)) == 1
    finish(connection, "w1", task)
    assert len(take(connection, "w1", 10)) == 1


def test_a_worker_at_its_cap_gets_an_exclusive_action_of_another_kind_and_then_nothing(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(
        connection,
        tmp_path,
        "workflow x { parallel { action a = t.do() action b = t.do() action c = u.do()"
        " action d = u.do() } }",
        t={"max_per_worker": 1},
        u={"exclusive_worker": True},
    )

    tasks = take(connection, "w1", 10)

    assert [t["node_key"] for t in tasks] == ["a", "c"]
    assert take(connection, "w1", 10) == []
    finish(connection, "w1", tasks[0])
    assert take(connection, "w1", 10) == []  # the exclusive one is still in hand
    finish(connection, "w1", tasks[1])
    assert [t["node_key"] for t in take(connection, "w1", 10)] == ["b", "d"]


@pytest.mark.parametrize("state", ["DRAINING", "STOPPING"])
def test_a_task_that_is_pinned_to_a_drained_worker_waits_until_the_pin_is_released(
    connection: psycopg.Connection[Any], tmp_path: Path, state: str
) -> None:
    instance = begin(connection, tmp_path, CHAIN, t=PINNED, u=PINNED)
    (a,) = take(connection, "w1")
    finish(connection, "w1", a)
    connection.execute("select wf.sp_set_worker_state('w1', %s)", (state,))

    assert [take(connection, "w1"), take(connection, "w2")] == [[], []]
    assert connection.execute("select reason from wf.v_unclaimable").fetchall() == [("NOT_ACTIVE",)]
    connection.execute("select wf.sp_release_affinity(%s, 'k')", (instance,))
    assert [t["node_key"] for t in take(connection, "w2")] == ["b"]


def test_a_pin_made_while_the_worker_drains_holds_when_it_is_active_again(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, CHAIN, t=PINNED, u=PINNED)
    (a,) = take(connection, "w1")
    connection.execute("select wf.sp_set_worker_state('w1', 'DRAINING')")
    finish(connection, "w1", a)
    assert [take(connection, "w1"), take(connection, "w2")] == [[], []]

    connection.execute("select wf.sp_set_worker_state('w1', 'ACTIVE')")

    assert take(connection, "w2") == []
    assert [t["node_key"] for t in take(connection, "w1")] == ["b"]


GROUPS = """
    workflow groups {
      parallel {
        sequence { action a = t.do(key: "begun") action b = u.do(key: "begun") }
        action c = u.do(key: "new") { priority 5 }
        action d = u.do(key: "new")
      }
    }
"""


def test_priority_goes_before_the_continuation_of_a_group_and_that_before_age(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    group = {"affinity_key_field": "key", "prefer_continue_group": True}
    begin(connection, tmp_path, GROUPS, t=group, u=group)
    connection.execute(
        "update wf.task set priority = 9 where action_id ="
        " (select action_id from wf.workflow_action where action_name = 't.do')"
    )
    (a,) = take(connection, "w1")
    finish(connection, "w1", a)

    order = [take(connection, "w2")[0]["node_key"] for _ in range(3)]

    assert order == ["c", "b", "d"]


def test_priority_goes_before_the_preference_for_the_previous_worker(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    prefer = {"affinity_key_field": "key", "prefer_previous_worker": True}
    begin(connection, tmp_path, GROUPS, t=prefer, u=prefer)
    connection.execute(
        "update wf.task set priority = 9 where action_id ="
        " (select action_id from wf.workflow_action where action_name = 't.do')"
    )
    (a,) = take(connection, "w1")
    finish(connection, "w1", a)

    order = [take(connection, "w1")[0]["node_key"] for _ in range(3)]

    assert order == ["c", "b", "d"]


def test_a_cap_holds_for_pinned_tasks_too(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(
        connection,
        tmp_path,
        """
        workflow pinned {
          action a = t.do(key: "k")
          parallel { action b = u.do(key: "k") action c = u.do(key: "k") }
        }
        """,
        t=PINNED,
        u=PINNED | {"max_per_worker": 1},
    )
    (a,) = take(connection, "w1")
    finish(connection, "w1", a)

    assert [t["node_key"] for t in take(connection, "w1", 10)] == ["b"]
    assert [take(connection, "w1", 10), take(connection, "w2", 10)] == [[], []]


def test_the_requested_capability_narrows_pinned_tasks_too(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, CHAIN, t=PINNED, u=PINNED)
    (a,) = take(connection, "w1")
    finish(connection, "w1", a)

    def claim(capability: str) -> list[tuple[Any, ...]]:
        return connection.execute(
            "select node_key from wf.sp_worker_request_tasks('w1', %s, %s, 300, 5)",
            (drive.TOKEN, capability),
        ).fetchall()

    assert [claim("t"), claim("u")] == [[], [("b",)]]

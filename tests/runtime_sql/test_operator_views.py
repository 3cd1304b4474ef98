"""Views for operators: who waits and why, who holds what, what scaling wants, what is masked."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from compiler import json_values
from tests.runtime_sql import drive

CATALOG = """
actions:
  - {name: t.do, capability: t}
  - {name: u.do, capability: u}
  - {name: s.do, capability: s}
"""
FLAT = """
    workflow flat {
      parallel { action a = t.do(key: "k") action b = t.do(key: "k") action c = u.do() }
    }
"""


@pytest.fixture
def connection(any_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Without the driver's own worker, which may do everything."""
    with drive.connect(any_url) as connection:
        connection.execute("delete from wf.worker")
        yield connection


def worker(connection: psycopg.Connection[Any], name: str, *capabilities: str, **more: Any) -> None:
    connection.execute(
        "select wf.sp_register_worker(%s, %s, %s, %s)",
        (name, drive.TOKEN, list(capabilities), more.get("slots", 1)),
    )
    if "state" in more:
        connection.execute("select wf.sp_set_worker_state(%s, %s)", (name, more["state"]))


def begin(connection: psycopg.Connection[Any], folder: Path, text: str = FLAT) -> int:
    spec = drive.compile_text(folder, text, CATALOG)
    drive.deploy(connection, spec)
    drive.stop_clock(connection)
    return drive.start(connection, spec.name, {})


def take(connection: psycopg.Connection[Any], name: str, at_most: int = 1) -> list[Any]:
    rows = connection.execute(
        "select node_key from wf.sp_worker_request_tasks(%s, %s, null, 300, %s)",
        (name, drive.TOKEN, at_most),
    ).fetchall()
    return [row for row in rows if row[0] is not None]  # a row without a task tells what to do


def reasons(connection: psycopg.Connection[Any]) -> dict[str, tuple[str, str]]:
    rows = connection.execute("select node_key, reason, message from wf.v_unclaimable").fetchall()
    return {row[0]: (row[1], row[2]) for row in rows}


# v_unclaimable --------------------------------------------------------------------------------


def test_what_can_be_taken_has_no_row(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    worker(connection, "w1", "*")
    begin(connection, tmp_path)
    assert reasons(connection) == {}


def test_a_capability_that_no_worker_has(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    worker(connection, "w1", "t")
    begin(connection, tmp_path)
    assert reasons(connection) == {"c": ("NO_WORKER", "no worker has the capability u")}


@pytest.mark.parametrize("state", ["DRAINING", "STOPPING"])
def test_every_capable_worker_is_going(
    connection: psycopg.Connection[Any], tmp_path: Path, state: str
) -> None:
    worker(connection, "w1", "t")
    worker(connection, "w2", "u", state=state)
    begin(connection, tmp_path)
    text = "every worker with the capability u is draining or stopping"
    assert reasons(connection) == {"c": ("NOT_ACTIVE", text)}


def test_every_worker_is_at_its_cap(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    worker(connection, "w1", "*")
    begin(connection, tmp_path)
    connection.execute("update wf.task set max_per_worker = 1")
    assert take(connection, "w1") == [("a",)]
    text = (
        "every active worker with the capability t is at max_per_worker or holds an exclusive task"
    )
    assert reasons(connection) == {"b": ("BUSY", text)}


def test_an_exclusive_lease_keeps_all_else_out(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    worker(connection, "w1", "*")
    begin(connection, tmp_path)
    connection.execute("update wf.task set is_exclusive = true")
    assert take(connection, "w1") == [("a",)]
    assert {key: reason for key, (reason, _) in reasons(connection).items()} == {
        "b": "BUSY",
        "c": "BUSY",
    }


def test_a_lease_that_has_run_out_keeps_nobody_out(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    worker(connection, "w1", "*")
    begin(connection, tmp_path)
    connection.execute("update wf.task set is_exclusive = true")
    take(connection, "w1")
    connection.execute(
        "update wf.task set lease_until = wf.wf_now() - interval '1 s' where worker_id is not null"
    )
    assert reasons(connection) == {}


@pytest.mark.parametrize(
    ("state", "capabilities", "reason", "text"),
    [
        ("STOPPING", ["*"], "NOT_ACTIVE", "it is pinned to worker w2, which is STOPPING"),
        (
            "ACTIVE",
            ["u"],
            "PIN_NOT_CAPABLE",
            "it is pinned to worker w2, which has not the capability t",
        ),
        (None, [], "PIN_GONE", "it is pinned to worker w2, which is not registered"),
    ],
)
def test_a_pin_to_a_worker_that_cannot(
    connection: psycopg.Connection[Any],
    tmp_path: Path,
    state: str | None,
    capabilities: list[str],
    reason: str,
    text: str,
) -> None:
    worker(connection, "w1", "*")
    if state is not None:
        worker(connection, "w2", *capabilities, state=state)
    begin(connection, tmp_path)
    connection.execute(
        "update wf.task t set pinned_worker_id = 'w2' from wf.workflow_node n"
        " where n.node_id = t.node_id and n.node_key = 'a'"
    )
    assert reasons(connection) == {"a": (reason, text)}


def test_a_delay_says_until_when(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    worker(connection, "w1", "*")
    connection.execute("insert into wf.wf_setting values ('now', '2026-01-01T00:00:00Z')")
    begin(connection, tmp_path, "workflow late { action a = t.do() { delay 90s } }")
    text = "it is delayed until 2026-01-01T00:01:30.000Z"
    assert reasons(connection) == {"a": ("DELAYED", text)}


def test_a_paused_instance_and_a_paused_action(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    worker(connection, "w1", "*")
    instance = begin(connection, tmp_path)
    connection.execute("update wf.workflow_action set paused = true where action_name = 'u.do'")
    assert reasons(connection) == {"c": ("ACTION_PAUSED", "action u.do is paused")}
    connection.execute("select * from wf.sp_pause_workflow_instance(%s)", (instance,))
    assert set(reasons(connection).values()) == {
        ("INSTANCE_PAUSED", f"instance {instance} is paused")
    }


def test_limits_over_all_workers(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    worker(connection, "w1", "*")
    worker(connection, "w2", "*")
    begin(connection, tmp_path)
    connection.execute("update wf.task set max_concurrent = 1")
    take(connection, "w1")
    text = "as many tasks of action t.do are in hand as may be at once: 1"
    assert reasons(connection) == {"b": ("MAX_CONCURRENT", text)}


def test_a_rate_over_all_workers(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    worker(connection, "w1", "*")
    begin(connection, tmp_path)
    connection.execute("update wf.task set rate_per_minute = 1")
    take(connection, "w1")
    text = "action t.do was claimed within the last minute as often as it may be: 1"
    assert reasons(connection) == {"b": ("RATE", text)}
    connection.execute(
        "update wf.wf_setting set value = (wf.wf_now() + interval '61 s')::text where name = 'now'"
    )
    assert reasons(connection) == {}


def test_workers_that_were_not_heard_of(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    worker(connection, "w1", "*")
    begin(connection, tmp_path)
    connection.execute(
        "update wf.worker_presence set last_seen_at = wf.wf_now() - interval '6 min'"
    )
    text = "no free worker with the capability u was heard of for five minutes"
    assert reasons(connection)["c"] == ("SILENT", text)


BUSY_PLACE = """
    workflow busy {
      parallel {
        action a = t.do() action b = t.do() action c = u.do() action d = u.do()
        action e = s.do() action f = s.do() { delay 5s }
      }
    }
"""
WORKERS = ("w1", "w2", "w3")


def make_a_mess(connection: psycopg.Connection[Any], chance: random.Random) -> None:
    """Workers, leases, caps, pins, pauses and delays by chance, as dispatch may leave them."""
    for name in WORKERS:
        capabilities = chance.choice([["*"], ["t"], ["u", "s"], ["t", "u"], ["x"]])
        worker(connection, name, *capabilities)
    connection.execute(
        "update wf.task set max_per_worker = %s where node_execution_id %% 2 = %s",
        (chance.choice([None, 1, 2]), chance.randrange(2)),
    )
    connection.execute(
        "update wf.task set is_exclusive = true where node_execution_id %% 3 = %s",
        (chance.randrange(5),),
    )
    connection.execute(
        "update wf.task set pinned_worker_id = %s where node_execution_id %% 3 = %s",
        (chance.choice([*WORKERS, "w9"]), chance.randrange(5)),
    )
    for column in ("max_concurrent", "rate_per_minute"):
        connection.execute(
            f"update wf.task set {column} = %s where node_execution_id %% 2 >= %s".encode(),
            (chance.choice([1, 2]), chance.randrange(3)),
        )
    for name in chance.sample(WORKERS, chance.randrange(3)):
        take(connection, name, chance.randrange(1, 3))
    connection.execute(
        "update wf.task set lease_until = wf.wf_now() - interval '1 s', is_exclusive = false"
        " where worker_id is not null and node_execution_id %% 4 = %s",
        (chance.randrange(6),),
    )
    for name in WORKERS:
        state = chance.choice(["ACTIVE", "ACTIVE", "DRAINING", "STOPPING"])
        connection.execute("select wf.sp_set_worker_state(%s, %s)", (name, state))
    connection.execute(
        "update wf.workflow_action set paused = true where action_name = %s",
        (chance.choice(["t.do", "u.do", "none"]),),
    )
    if chance.random() < 0.2:
        connection.execute(
            "select wf.sp_pause_workflow_instance(workflow_instance_id) from wf.workflow_instance"
        )


def claimable_alone(connection: psycopg.Connection[Any], execution: int) -> bool:
    """Whether some worker gets this task when it is the first in the queue and the only one."""
    for name in WORKERS:
        with connection.transaction(force_rollback=True):
            connection.execute(
                "delete from wf.task where worker_id is null and node_execution_id <> %s",
                (execution,),
            )
            connection.execute(
                "update wf.task set priority = 1000000 where node_execution_id = %s", (execution,)
            )
            rows = connection.execute(
                "select node_execution_id from wf.sp_worker_request_tasks(%s, %s)",
                (name, drive.TOKEN),
            ).fetchall()
        if [row for row in rows if row[0] is not None] == [(execution,)]:
            return True
    return False


def test_the_view_says_of_every_task_what_a_claim_does(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path, BUSY_PLACE)
    seen = set()
    for seed in range(40):
        with connection.transaction(force_rollback=True):
            make_a_mess(connection, random.Random(seed))
            said = dict(
                connection.execute(
                    "select node_execution_id, reason from wf.v_unclaimable"
                ).fetchall()
            )
            ready = connection.execute("select node_execution_id from wf.v_ready").fetchall()
            can = {execution for (execution,) in ready if claimable_alone(connection, execution)}
            assert {execution for (execution,) in ready} - can == set(said), (seed, said)
            seen |= set(said.values())
    assert seen == {
        "INSTANCE_PAUSED",
        "DELAYED",
        "ACTION_PAUSED",
        "MAX_CONCURRENT",
        "RATE",
        "NO_WORKER",
        "NOT_ACTIVE",
        "BUSY",
        "PIN_GONE",
        "PIN_NOT_CAPABLE",
    }


# v_ready, v_lease, v_worker -----------------------------------------------------------------------


def test_ready_and_leased_tasks_are_apart(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    worker(connection, "w1", "*")
    begin(connection, tmp_path)
    take(connection, "w1")
    ready = connection.execute("select path, is_due, capability from wf.v_ready order by 1")
    assert ready.fetchall() == [("flat/parallel_1/b", True, "t"), ("flat/parallel_1/c", True, "u")]
    leased = connection.execute("select path, worker_id, is_expired from wf.v_lease")
    assert leased.fetchall() == [("flat/parallel_1/a", "w1", False)]


def test_a_worker_s_row_says_what_it_can_and_holds(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    worker(connection, "w1", "u", "t", slots=4)
    begin(connection, tmp_path)
    take(connection, "w1", 2)
    row = connection.execute(
        "select desired_state, max_concurrency, capabilities, lease_count, holds_exclusive,"
        " is_present from wf.v_worker"
    ).fetchone()
    assert row == ("ACTIVE", 4, ["t", "u"], 2, False, True)


# v_scale_recommendation ---------------------------------------------------------------------------


def wanted(connection: psycopg.Connection[Any]) -> dict[str, tuple[int, int]]:
    rows = connection.execute(
        "select capability, wanted_worker_count, missing_worker_count"
        " from wf.v_scale_recommendation"
    ).fetchall()
    return {row[0]: (row[1], row[2]) for row in rows}


def test_work_is_divided_by_the_slots_of_a_worker(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(
        connection,
        tmp_path,
        "workflow many { foreach x in [1, 2, 3, 4, 5] parallel { action a = t.do() } }",
    )
    assert wanted(connection)["t"] == (5, 5)
    worker(connection, "w1", "t", slots=2)
    assert wanted(connection)["t"] == (3, 2)
    take(connection, "w1", 2)
    assert wanted(connection)["t"] == (3, 2)


def test_a_cap_per_worker_wants_more_workers(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    worker(connection, "w1", "t", slots=10)
    begin(connection, tmp_path)
    assert wanted(connection)["t"] == (1, 0)
    connection.execute("update wf.task set max_per_worker = 1")
    assert wanted(connection)["t"] == (2, 1)


def test_exclusive_work_wants_a_worker_each(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    worker(connection, "w1", "*", slots=10)
    begin(connection, tmp_path)
    connection.execute("update wf.task set is_exclusive = true")
    assert wanted(connection)["t"] == (2, 1)


def test_no_more_workers_than_an_action_may_have_at_once(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begin(connection, tmp_path)
    connection.execute("update wf.task set max_concurrent = 1")
    assert wanted(connection)["t"] == (1, 1)


def test_work_that_is_delayed_or_paused_wants_nobody(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = begin(connection, tmp_path)
    connection.execute("select * from wf.sp_pause_workflow_instance(%s)", (instance,))
    assert set(wanted(connection).values()) == {(0, 0)}


# Masks ----------------------------------------------------------------------------------------


def test_sensitive_parts_are_masked_in_the_view_and_the_trace(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    worker(connection, drive.WORKER, "*")
    instance = begin(
        connection, tmp_path, 'workflow w { action a = t.do(card: "4111", name: "A") }'
    )
    connection.execute(
        "update wf.workflow_action_revision"
        """ set sensitive_json = '["/input/card", "/output/keys/0", "/output/none/x"]'"""
    )
    task = drive.claim(connection)
    assert task is not None
    assert task["input_json"] == {"card": "4111", "name": "A"}
    drive.submit(connection, task, 0, {"keys": ["secret", "open"]})
    row = connection.execute(
        "select input_json, output_json from wf.v_node_execution where node_key = 'a'"
    ).fetchone()
    expected = ({"card": "***", "name": "A"}, {"keys": ["***", "open"]})
    assert row == expected
    node = drive.trace(connection, instance)["nodes"][-1]
    assert (node["input"], node["output"]) == expected


SECRETS = """
actions:
  - name: t.do
    capability: t
    sensitive: [/input/card, /output, /input/list/1]
    input: "{ card: string, list: list<int> }"
"""


def test_both_engines_mask_the_same_in_their_traces(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    worker(connection, drive.WORKER, "*")
    text = 'workflow w { action a = t.do(card: "4111", list: [1, 2]) action b = t.do(card: "",'
    spec = drive.compile_text(tmp_path, text + " list: []) }", SECRETS)
    script = drive.Scripted({"a": [(0, {"token": "x"})], "b": [(0, None)]})
    local = drive.run_local(spec, {}, script)
    script = drive.Scripted({"a": [(0, {"token": "x"})], "b": [(0, None)]})
    assert drive.readable(drive.run_pg(connection, spec, {}, script)) == drive.readable(local)
    assert [(n["input"], n["output"]) for n in local["nodes"][1:]] == [
        ({"card": "***", "list": [1, "***"]}, "***"),
        ({"card": "***", "list": []}, None),
    ]


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("/input", '"***"'),
        ("/input/a~1b", '{"a/b": "***", "c": [1, {"d": 2}]}'),
        ("/input/c/1/d", '{"a/b": 1, "c": [1, {"d": "***"}]}'),
        ("/input/c/x", '{"a/b": 1, "c": [1, {"d": 2}]}'),
        ("/output/c", '{"a/b": 1, "c": [1, {"d": 2}]}'),
    ],
)
def test_a_pointer_masks_what_it_names(
    connection: psycopg.Connection[Any], pointer: str, expected: str
) -> None:
    row = connection.execute(
        """select wf.wf_mask_sensitive('{"a/b": 1, "c": [1, {"d": 2}]}', %s::jsonb, 'input')""",
        (f'["{pointer}"]',),
    ).fetchone()
    assert row == (json_values.loads(expected),)

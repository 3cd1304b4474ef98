"""Deep, long and wide graphs, loops without an end, and large documents, each in one call.

The full sizes run with `-m more`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from compiler import json_values
from tests.runtime_sql import drive

Connection = psycopg.Connection[Any]
FULL = pytest.mark.more


@pytest.fixture
def connection(pg_url: str) -> Iterator[Connection]:
    with drive.connect(pg_url) as connection:
        yield connection


def begin(connection: Connection, folder: Path, text: str) -> int:
    spec = drive.compile_text(folder, text)
    drive.deploy(connection, spec)
    return drive.start(connection, spec.name, {})


def outcome(connection: Connection, instance: int) -> tuple[Any, ...]:
    row = connection.execute(
        "select status, engine_error_code from wf.workflow_instance"
        " where workflow_instance_id = %s",
        (instance,),
    ).fetchone()
    assert row is not None
    return row


def executions(connection: Connection) -> int:
    row = connection.execute("select count(*) from wf.node_execution").fetchone()
    assert row is not None
    return int(row[0])


def submit_only_task(connection: Connection) -> None:
    task = drive.claim(connection)
    assert task is not None
    assert drive.submit(connection, task, 0)["reason"] == "OK"


@pytest.mark.parametrize("depth", [100, pytest.param(510, marks=FULL)])
def test_nested_composites_complete_in_one_submit(
    connection: Connection, tmp_path: Path, depth: int
) -> None:
    inside = "".join(f"sequence s{n} {{ " for n in range(depth)) + "set x = 1" + " }" * depth
    text = f"workflow deep {{ var x : int = 0 action first = t.do() {inside} }}"
    instance = begin(connection, tmp_path, text)

    submit_only_task(connection)

    assert outcome(connection, instance) == ("SUCCEEDED", None)
    assert executions(connection) == depth + 3


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=FULL)])
def test_nodes_without_an_action_complete_in_one_submit(
    connection: Connection, tmp_path: Path, count: int
) -> None:
    steps = "\n".join(f"sequence s{n} {{ }}" for n in range(count))
    instance = begin(connection, tmp_path, f"workflow long {{ action first = t.do()\n{steps} }}")

    submit_only_task(connection)

    assert outcome(connection, instance) == ("SUCCEEDED", None)
    assert executions(connection) == count + 2


@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=FULL)])
def test_a_parallel_foreach_activates_all_its_items_in_one_call(
    connection: Connection, tmp_path: Path, count: int
) -> None:
    text = """
        workflow wide {
          input { items : list<int> }
          foreach x in var.items parallel { action a = t.do(x: var.x) }
        }
    """
    spec = drive.compile_text(tmp_path, text)
    drive.deploy(connection, spec)

    drive.start(connection, "wide", {"items": list(range(count))})

    row = connection.execute(
        "select count(*), count(distinct input_json ->> 'x'), min((input_json ->> 'x')::integer),"
        " max((input_json ->> 'x')::integer) from wf.task"
    ).fetchone()
    assert row == (count, count, 0, count - 1)


def limit(connection: Connection, activations: int) -> None:
    connection.execute(
        "insert into wf.wf_setting values ('max_activations_per_call', %s)", (str(activations),)
    )


def test_a_loop_without_an_action_stops_at_the_work_limit(
    connection: Connection, tmp_path: Path
) -> None:
    limit(connection, 50)
    instance = begin(connection, tmp_path, "workflow hot { repeat 100000 { if true { } } }")

    assert outcome(connection, instance) == ("FAILED", 10019)
    assert executions(connection) <= 52


def test_timers_that_are_due_at_once_share_the_work_limit_of_their_call(
    connection: Connection, tmp_path: Path
) -> None:
    limit(connection, 50)
    drive.stop_clock(connection)
    branches = " ".join(f"sequence s{n} {{ sleep 1s repeat 20 {{ }} }}" for n in range(3))
    instance = begin(connection, tmp_path, f"workflow hot {{ parallel {{ {branches} }} }}")

    drive.move_clock_to_next_due(connection)

    assert outcome(connection, instance) == ("FAILED", 10019)


def test_the_work_limit_is_that_of_one_call_again_after_a_pass(
    connection: Connection, tmp_path: Path
) -> None:
    limit(connection, 50)
    drive.stop_clock(connection)
    with connection.transaction():
        begin(connection, tmp_path, "workflow hot { sleep 1s repeat 15 { if true { } } }")
        drive.move_clock_to_next_due(connection)
        other = begin(connection, tmp_path, "workflow cool { repeat 20 { } }")

    assert outcome(connection, other) == ("SUCCEEDED", None)


DOCUMENT = '{"text": "' + "\\u00e9\\n" * 500_000 + '", "n": 12345678901234567890.10}'


def test_a_document_of_megabytes_comes_back_as_it_was(
    connection: Connection, tmp_path: Path
) -> None:
    text = """
        workflow w {
          input { given : any }
          output { given = var.given, made = ctx.task.a.output }
          action a = t.do(x: var.given)
        }
    """
    value = json_values.loads(DOCUMENT)
    spec = drive.compile_text(tmp_path, text)
    drive.deploy(connection, spec)
    instance = drive.start(connection, "w", {"given": value})

    task = drive.claim(connection)
    assert task is not None
    assert task["input_json"]["x"] == value
    drive.submit(connection, task, 0, value)

    row = connection.execute(
        "select output_json from wf.execution_context where workflow_instance_id = %s", (instance,)
    ).fetchone()
    assert row is not None
    assert row[0] == {"given": value, "made": value}

"""Execution scopes, validation plans and instance extensions in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from compiler import json_values
from tests.runtime_sql import drive

Connection = psycopg.Connection[Any]

TEXT = """
    workflow w {
      input { plant : string  pots : int = 3  colour : string = "red" }
      output { plant = var.plant, pots = var.pots, colour = var.colour, light = var.light }
      var light : int = 7
      action water = t.do(plant: var.plant, pots: var.pots)
      action look = t.do(light: var.light)
    }
"""


@pytest.fixture
def connection(any_url: str, tmp_path: Path) -> Iterator[Connection]:
    with drive.connect(any_url) as connection:
        drive.stop_clock(connection)
        drive.deploy(connection, drive.compile_text(tmp_path, TEXT))
        yield connection


def ask(connection: Connection, statement: str, *arguments: Any) -> tuple[Any, ...]:
    row = connection.execute(statement.encode(), arguments).fetchone()
    assert row is not None
    return tuple(row)


def create(connection: Connection, context: dict[str, Any]) -> int:
    (instance, *_) = ask(
        connection,
        "select * from wf.wf_repo_create_workflow_instance('w', %s)",
        drive.json(context),
    )
    return int(instance)


def begin(connection: Connection, instance: int) -> None:
    ask(connection, "select * from wf.sp_start_workflow_instance(%s)", instance)


def refused(connection: Connection, statement: str, *arguments: Any) -> tuple[int, str]:
    with pytest.raises(psycopg.DatabaseError) as raised:
        ask(connection, statement, *arguments)
    diagnosis = raised.value.diag
    return int(diagnosis.message_detail or 0), str(diagnosis.message_primary)


# Execution scopes ---------------------------------------------------------------------------------

APPLY = "select * from wf.wf_apply_execution_scope(%s, %s, %s)"


def apply(connection: Connection, instance: int, **parameters: Any) -> tuple[int, str]:
    scope, content_hash = ask(connection, APPLY, instance, "greenhouse", drive.json(parameters))
    return int(scope), str(content_hash)


def variables(connection: Connection, instance: int) -> dict[str, Any]:
    return dict(drive.trace(connection, instance)["variables"])


def test_defaults_win_over_parameters_and_the_context_over_both(connection: Connection) -> None:
    instance = create(connection, {"colour": "blue"})
    apply(connection, instance, plant="fern", pots=9, colour="green", light=1)
    begin(connection, instance)

    assert variables(connection, instance) == {
        "plant": "fern",
        "pots": 3,
        "colour": "blue",
        "light": 7,
    }


def test_parameters_that_nothing_declares_become_variables_too(connection: Connection) -> None:
    instance = create(connection, {"plant": "fern"})
    apply(connection, instance, shelf="upper")
    begin(connection, instance)

    assert variables(connection, instance)["shelf"] == "upper"


def test_a_parameter_that_does_not_fit_an_input_stops_the_start(connection: Connection) -> None:
    instance = create(connection, {})
    apply(connection, instance, plant=4)

    assert refused(connection, "select * from wf.sp_start_workflow_instance(%s)", instance) == (
        10015,
        "input plant: must be string, not integer",
    )


def test_a_scope_is_one_row_per_name_and_content(connection: Connection) -> None:
    first = apply(connection, create(connection, {}), a=Decimal("1.50"), b="x")
    again = apply(connection, create(connection, {}), b="x", a=Decimal("1.5"))
    other = apply(connection, create(connection, {}), a=2)

    assert first == again
    assert first[1] == json_values.sha256_hex(json_values.from_python({"a": 1.5, "b": "x"}))
    assert other[0] != first[0]
    assert ask(connection, "select count(*) from wf.execution_scope") == (2,)


def test_a_scope_is_applied_once_and_only_before_the_start(connection: Connection) -> None:
    instance = create(connection, {"plant": "fern"})
    apply(connection, instance, a=1)
    assert refused(connection, APPLY, instance, "other", drive.json({})) == (
        20003,
        f"instance {instance} has an execution scope",
    )
    started = create(connection, {"plant": "fern"})
    begin(connection, started)
    assert refused(connection, APPLY, started, "other", drive.json({})) == (
        20003,
        f"instance {started} is running, not created",
    )


@pytest.mark.parametrize(
    ("name", "parameters", "code"),
    [
        (None, {}, 20004),
        ("", {}, 20004),
        ("x" * 201, {}, 20004),
        ("a", [], 20004),
        ("a", None, 20004),
        ("a", {"x" * 201: 1}, 20004),
    ],
)
def test_a_scope_of_another_form_is_refused(
    connection: Connection, name: str | None, parameters: Any, code: int
) -> None:
    instance = create(connection, {})
    given = None if parameters is None else drive.json(parameters)
    assert refused(connection, APPLY, instance, name, given)[0] == code
    assert ask(connection, "select count(*) from wf.execution_scope") == (0,)


def test_an_unknown_instance_has_no_scope(connection: Connection) -> None:
    assert refused(connection, APPLY, 99, "a", drive.json({}))[0] == 20002


SYNC = "select * from wf.sync_execution_scope_action_entry_after_submit(%s)"


def test_what_an_action_produced_is_written_down_under_its_scope(connection: Connection) -> None:
    instance = create(connection, {"plant": "fern"})
    scope, _ = apply(connection, instance, a=1)
    begin(connection, instance)
    task = drive.claim(connection)
    assert task is not None
    assert ask(connection, SYNC, task["node_execution_id"]) == (False,)
    drive.submit(connection, task, 2, {"drops": 5})

    assert ask(connection, SYNC, task["node_execution_id"]) == (True,)
    assert ask(connection, SYNC, task["node_execution_id"]) == (True,)
    assert connection.execute(
        "select execution_scope_id, action_name, result_code, output_json"
        "  from wf.execution_scope_action_entry"
    ).fetchall() == [(scope, "t.do", 2, {"drops": 5})]


def test_without_a_scope_nothing_is_written_down(connection: Connection) -> None:
    instance = create(connection, {"plant": "fern"})
    begin(connection, instance)
    task = drive.claim(connection)
    assert task is not None
    drive.submit(connection, task, 0)

    assert ask(connection, SYNC, task["node_execution_id"]) == (False,)
    assert refused(connection, SYNC, 12345)[0] == 20002


def test_an_entry_can_be_written_and_replaced_by_hand(connection: Connection) -> None:
    scope, _ = apply(connection, create(connection, {}), a=1)
    write = "select wf.wf_repo_upsert_execution_scope_action_entry(%s, %s, %s, %s, %s)"
    ask(connection, write, scope, 7, "t.do", 0, drive.json({"a": 1}))
    ask(connection, write, scope, 7, "t.do", 1, None)

    assert connection.execute(
        "select result_code, output_json from wf.execution_scope_action_entry"
    ).fetchall() == [(1, None)]
    assert refused(connection, write, scope + 1, 7, "t.do", 0, None)[0] == 20002
    assert refused(connection, write, scope, None, "t.do", 0, None)[0] == 20004
    assert refused(connection, write, scope, 7, "", 0, None)[0] == 20004


# Validation plans ---------------------------------------------------------------------------------

PLAN = "select * from wf.wf_apply_validation_plan(%s, %s)"


@pytest.fixture
def running(connection: Connection) -> int:
    instance = create(connection, {"plant": "fern"})
    begin(connection, instance)
    return instance


def test_a_plan_sets_variables_once(connection: Connection, running: int) -> None:
    plan = {"variables": {"light": 9, "colour": "white"}}
    applied, plan_hash = ask(connection, PLAN, running, drive.json(plan))
    assert (applied, plan_hash) == (True, json_values.sha256_hex(plan))
    drive.drain(connection, drive.Scripted())
    document = drive.trace(connection, running)
    assert document["output"] == {"plant": "fern", "pots": 3, "colour": "white", "light": 9}
    assert [n["input"] for n in document["nodes"]][-1] == {"light": 9}


def test_the_same_plan_again_changes_nothing(connection: Connection, running: int) -> None:
    ask(connection, PLAN, running, drive.json({"variables": {"light": 9, "pots": 1}}))
    ask(connection, PLAN, running, drive.json({"variables": {"light": 10}}))

    again = ask(connection, PLAN, running, drive.json({"variables": {"pots": 1, "light": 9}}))
    assert again[0] is False
    assert variables(connection, running)["light"] == 10


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"variables": {"light": 9, "shade": 1}}, "the workflow has no variable shade"),
        ({"variables": {"light": 9, "pots": "x"}}, "var pots: must be an integer, not string"),
        ({"variables": {"light": 9, "plant": None}}, "var plant: must be string, not null"),
        ({"variables": []}, 'a plan is {"variables": {name: value}} and nothing else'),
        ({"values": {}}, 'a plan is {"variables": {name: value}} and nothing else'),
        (
            {"variables": {}, "more": 1},
            'a plan is {"variables": {name: value}} and nothing else',
        ),
        ([], "the plan must be a JSON object"),
    ],
)
def test_a_plan_that_does_not_fit_changes_nothing(
    connection: Connection, running: int, plan: Any, message: str
) -> None:
    before = variables(connection, running)

    assert refused(connection, PLAN, running, drive.json(plan)) == (20004, message)
    assert variables(connection, running) == before
    assert ask(connection, "select count(*) from wf.validation_plan") == (0,)


def test_only_a_running_instance_takes_a_plan(connection: Connection, running: int) -> None:
    plan = drive.json({"variables": {"light": 9}})
    assert refused(connection, PLAN, create(connection, {}), plan)[0] == 20003
    ask(connection, "select * from wf.sp_pause_workflow_instance(%s)", running)
    assert refused(connection, PLAN, running, plan)[0] == 20003
    assert refused(connection, PLAN, 99, plan)[0] == 20002


def test_plans_go_with_their_instance(connection: Connection, running: int) -> None:
    ask(connection, PLAN, running, drive.json({"variables": {"light": 9}}))
    drive.drain(connection, drive.Scripted())
    ask(connection, "select wf.sp_purge_instances(wf.wf_now() + interval '1 s')")
    assert ask(connection, "select count(*) from wf.validation_plan") == (0,)


# Instance extensions ------------------------------------------------------------------------------

EXTEND = "select wf.wf_repo_upsert_instance_extension(%s, %s, %s)"


def extensions(connection: Connection, *arguments: Any) -> list[tuple[Any, ...]]:
    marks = ", ".join(["%s"] * len(arguments))
    statement = f"select * from wf.wf_repo_get_instance_extension({marks})"
    return connection.execute(statement.encode(), arguments).fetchall()


def test_values_beside_an_instance_are_written_replaced_and_read(
    connection: Connection, running: int
) -> None:
    ask(connection, EXTEND, running, "notes", drive.json([1]))
    ask(connection, EXTEND, running, "notes", drive.json([1, 2]))
    ask(connection, EXTEND, running, "Owner", drive.json(None))

    assert extensions(connection, running) == [("Owner", None), ("notes", [1, 2])]
    assert extensions(connection, running, "notes") == [("notes", [1, 2])]
    assert extensions(connection, running, "nothing") == []
    assert extensions(connection, 99) == []


@pytest.mark.parametrize(
    ("name", "value", "code"), [("", 1, 20004), (None, 1, 20004), ("a", ..., 20004)]
)
def test_an_extension_of_another_form_is_refused(
    connection: Connection, running: int, name: str | None, value: Any, code: int
) -> None:
    given = None if value is ... else drive.json(value)
    assert refused(connection, EXTEND, running, name, given)[0] == code


def test_an_unknown_instance_has_no_extension(connection: Connection) -> None:
    assert refused(connection, EXTEND, 99, "a", drive.json(1))[0] == 20002


def test_the_submit_context_of_an_action(connection: Connection, running: int) -> None:
    def context(execution: int) -> dict[str, Any]:
        with connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
            cursor.execute("select * from wf.wf_repo_get_action_submit_context(%s)", (execution,))
            return cursor.fetchone() or {}

    task = drive.claim(connection)
    assert task is not None
    leased = context(task["node_execution_id"])
    assert leased | {"lease_until_utc": None} == {
        "node_execution_id": task["node_execution_id"],
        "workflow_instance_id": running,
        "workflow_name": "w",
        "instance_status": "RUNNING",
        "node_key": "water",
        "path": "w/water",
        "action_name": "t.do",
        "status": "RUNNING",
        "attempt_no": 1,
        "worker_id": drive.WORKER,
        "lease_token": task["lease_token"],
        "lease_until_utc": None,
        "input_json": {"plant": "fern", "pots": 3},
        "output_schema_json": None,
        "execution_scope_id": None,
        "result_codes_json": {"0": "ok", "1": "short", "2": "long"},
        "sensitive_json": [],
    }
    assert leased["lease_until_utc"] == task["lease_until_utc"]
    drive.submit(connection, task, 0)
    ended = context(task["node_execution_id"])
    assert (ended["status"], ended["lease_token"], ended["worker_id"]) == (
        "SUCCEEDED",
        None,
        drive.WORKER,
    )
    assert context(99) == {}

"""The repository API: actions, and the writers that change only what the engine could (R22)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from compiler.catalog import load_catalog
from compiler.spec import dump_spec
from runtime_sql.connection import CreatedGraph, connect
from runtime_sql.failures import ApiError
from tests.runtime_sql import drive
from tests.unit.emit.small_specs import NODE_TYPES

Connection = psycopg.Connection[Any]
TEXT = """
workflow flow {
  var seen : int = 0
  action a = t.do(x: 1) { set seen = code }
  action b = t.do(x: var.seen)
  repeat 2 { action c = t.do() }
}
"""


@pytest.fixture
def connection(rolled_back: Connection) -> Connection:
    return rolled_back


def deploy(connection: Connection, folder: Path, text: str = TEXT) -> None:
    document = dump_spec(drive.compile_text(folder, text))
    connection.execute("select wf.wf_repo_create_workflow_graph(%s::jsonb)", [document])


@pytest.fixture
def instance(connection: Connection, tmp_path: Path) -> int:
    """A started instance of `flow`, whose action a is READY."""
    deploy(connection, tmp_path)
    return drive.start(connection, "flow", {})


def call(connection: Connection, routine: str, *arguments: Any) -> list[dict[str, Any]]:
    marks = ", ".join(["%s"] * len(arguments))
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(f"select * from wf.{routine}({marks})", arguments)  # type: ignore[arg-type]
        return cursor.fetchall()


def refused(connection: Connection, routine: str, *arguments: Any) -> tuple[str, str]:
    with pytest.raises(psycopg.Error) as caught, connection.transaction():
        call(connection, routine, *arguments)
    return str(caught.value.diag.message_detail), str(caught.value.diag.message_primary)


def execution(connection: Connection, key: str) -> int:
    """Returns the newest execution of a node."""
    row = connection.execute(
        "select max(e.node_execution_id) from wf.node_execution e"
        " join wf.workflow_node n on n.node_id = e.node_id where n.node_key = %s",
        [key],
    ).fetchone()
    assert row is not None
    return int(row[0])


def status(connection: Connection, instance: int) -> str:
    return str(drive.trace(connection, instance)["status"])


# --- instances ---


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["CREATED"], "RUNNING"),
        (["CREATED", "RUNNING"], "PAUSED"),
        (["CREATED", "RUNNING", "PAUSED"], "RUNNING"),
        (["CREATED"], "CANCELLED"),
        (["CREATED", "RUNNING"], "CANCELLED"),
        (["CREATED", "RUNNING", "PAUSED"], "CANCELLED"),
    ],
)
def test_a_status_that_the_engine_could_give_is_set(
    connection: Connection, tmp_path: Path, before: list[str], after: str
) -> None:
    deploy(connection, tmp_path)
    (made,) = call(connection, "wf_repo_create_workflow_instance", "flow", drive.json({}))
    one = made["workflow_instance_id"]
    for word in before[1:]:
        call(connection, "wf_repo_set_instance_status", one, word)
    assert call(connection, "wf_repo_set_instance_status", one, after) == [
        {"workflow_instance_id": one, "instance_status": after, "changed": True}
    ]
    assert call(connection, "wf_repo_set_instance_status", one, after)[0]["changed"] is False


@pytest.mark.parametrize("word", ["CREATED", "SUCCEEDED", "FAILED"])
def test_a_status_that_only_nodes_give_is_refused(
    connection: Connection, instance: int, word: str
) -> None:
    assert refused(connection, "wf_repo_set_instance_status", instance, word) == (
        "20003",
        f"instance {instance} is RUNNING and cannot become {word}",
    )
    assert status(connection, instance) == "RUNNING"


def test_an_ended_instance_does_not_run_again(connection: Connection, instance: int) -> None:
    call(connection, "wf_repo_set_instance_status", instance, "CANCELLED")
    assert refused(connection, "wf_repo_set_instance_status", instance, "RUNNING")[0] == "20003"


def test_a_word_that_is_no_status_is_refused(connection: Connection, instance: int) -> None:
    assert refused(connection, "wf_repo_set_instance_status", instance, "running")[0] == "20004"
    assert refused(connection, "wf_repo_set_instance_status", 10**9, "RUNNING")[0] == "20002"


# --- ending actions by hand ---


def test_an_action_ends_by_hand_and_the_workflow_goes_on(
    connection: Connection, instance: int
) -> None:
    one = execution(connection, "a")
    assert call(
        connection,
        "wf_repo_update_node_execution_status",
        one,
        "SUCCEEDED",
        7,
        drive.json({"y": 1}),
    ) == [
        {
            "node_execution_id": one,
            "node_status": "SUCCEEDED",
            "instance_status": "RUNNING",
            "changed": True,
        }
    ]
    task = drive.claim(connection)
    assert task is not None
    assert (task["node_key"], task["input_json"]) == ("b", {"x": 7})


def test_a_leased_action_ends_by_hand_and_its_worker_hears_it(
    connection: Connection, instance: int
) -> None:
    task = drive.claim(connection)
    assert task is not None
    call(connection, "wf_repo_update_node_execution_status", task["node_execution_id"], "SUCCEEDED")
    answer = drive.submit(connection, task, 0)
    assert (answer["accepted"], answer["reason"]) == (False, "STALE")


def test_an_action_failed_by_hand_fails_its_workflow(connection: Connection, instance: int) -> None:
    one = execution(connection, "a")
    call(connection, "wf_repo_update_node_execution_status", one, "FAILED", -5, None, "no stock")
    document = drive.trace(connection, instance)
    (node,) = [node for node in document["nodes"] if node["path"] == "flow/a"]
    assert (document["status"], node["status"], node["result_code"]) == ("FAILED", "FAILED", -5)
    assert connection.execute("select what from wf.audit_log order by 1").fetchall() == [
        ("activate",),
        ("end action",),
    ]


def test_the_status_it_has_changes_nothing(connection: Connection, instance: int) -> None:
    one = execution(connection, "a")
    assert not call(connection, "wf_repo_update_node_execution_status", one, "READY")[0]["changed"]


@pytest.mark.parametrize(
    ("key", "word", "code", "number"),
    [
        ("a", "RUNNING", None, "20003"),
        ("a", "SKIPPED", None, "20003"),
        ("a", "CANCELLED", None, "20003"),
        ("a", None, None, "20003"),
        ("flow", "SUCCEEDED", 0, "20003"),
        ("a", "SUCCEEDED", -1, "20004"),
        ("a", "FAILED", 0, "20004"),
    ],
)
def test_an_end_that_the_engine_would_not_write_is_refused(
    connection: Connection, instance: int, key: str, word: str | None, code: int | None, number: str
) -> None:
    one = execution(connection, key)
    before = drive.trace(connection, instance)
    assert refused(connection, "wf_repo_update_node_execution_status", one, word, code)[0] == number
    assert drive.trace(connection, instance) == before


def test_nothing_ends_in_an_ended_instance(connection: Connection, instance: int) -> None:
    one = execution(connection, "a")
    call(connection, "sp_cancel_workflow_instance", instance)
    answer = refused(connection, "wf_repo_update_node_execution_status", one, "SUCCEEDED")
    assert answer == ("20003", f"instance {instance} is CANCELLED, not open")


def test_an_execution_that_is_not_there(connection: Connection) -> None:
    assert refused(connection, "wf_repo_update_node_execution_status", 1, "FAILED")[0] == "20002"


# --- missing executions ---


def lose(connection: Connection, one: int) -> None:
    """Takes an execution away, as a damaged database may have lost it."""
    for table in ("task", "scope", "node_execution"):
        column = "scope_id" if table == "scope" else "node_execution_id"
        connection.execute(f"delete from wf.{table} where {column} = %s", [one])  # type: ignore[arg-type]


def test_the_root_of_a_created_instance_starts_it(connection: Connection, tmp_path: Path) -> None:
    deploy(connection, tmp_path)
    (made,) = call(connection, "wf_repo_create_workflow_instance", "flow", drive.json({}))
    one = made["workflow_instance_id"]
    (first,) = call(connection, "wf_repo_insert_node_execution", one, 0, "flow")
    assert (first["node_status"], first["created"]) == ("RUNNING", True)
    (again,) = call(connection, "wf_repo_insert_node_execution", one, 0, "flow")
    assert again == first | {"created": False}
    assert status(connection, one) == "RUNNING"


def test_a_lost_child_is_started_again_and_the_workflow_ends(
    connection: Connection, instance: int
) -> None:
    root = execution(connection, "flow")
    task = drive.claim(connection)
    assert task is not None
    drive.submit(connection, task, 0)
    lose(connection, execution(connection, "b"))
    assert drive.claim(connection) is None
    (made,) = call(connection, "wf_repo_insert_node_execution", instance, root, "b")
    assert (made["node_status"], made["created"]) == ("READY", True)
    drive.stop_clock(connection)
    drive.drain(connection, lambda key, given: (0, None))
    assert status(connection, instance) == "SUCCEEDED"


def test_a_lost_iteration_is_started_again(connection: Connection, instance: int) -> None:
    for _ in range(3):
        task = drive.claim(connection)
        assert task is not None
        drive.submit(connection, task, 0)
    loop = execution(connection, "repeat_1")
    body = execution(connection, "repeat_1.body")
    lose(connection, execution(connection, "c"))
    lose(connection, body)
    (made,) = call(connection, "wf_repo_insert_node_execution", instance, loop, "repeat_1.body", 1)
    assert made["created"] is True
    drive.stop_clock(connection)
    drive.drain(connection, lambda key, given: (0, None))
    assert status(connection, instance) == "SUCCEEDED"


def test_a_child_out_of_turn_is_refused(connection: Connection, instance: int) -> None:
    root = execution(connection, "flow")
    assert refused(connection, "wf_repo_insert_node_execution", instance, root, "b") == (
        "20003",
        "node b cannot start now: the one before it has not succeeded",
    )
    assert refused(connection, "wf_repo_insert_node_execution", instance, root, "c")[1].endswith(
        "it is no child of the parent's node"
    )
    assert refused(connection, "wf_repo_insert_node_execution", instance, root, "zz")[0] == "20002"
    assert refused(connection, "wf_repo_insert_node_execution", instance, 10**9, "b")[0] == "20002"
    assert (
        refused(connection, "wf_repo_insert_node_execution", instance, root, "a", 1)[0] == "20003"
    )


def test_children_that_are_counted_are_refused(connection: Connection, tmp_path: Path) -> None:
    text = "workflow two { parallel p { action a = t.do() action b = t.do() } }"
    deploy(connection, tmp_path, text)
    one = drive.start(connection, "two", {})
    lose(connection, execution(connection, "b"))
    parent = execution(connection, "p")
    assert refused(connection, "wf_repo_insert_node_execution", one, parent, "b") == (
        "20003",
        "node b cannot start now: a PARALLEL starts its children itself",
    )


def test_a_lost_loop_state_is_put_back(connection: Connection, instance: int) -> None:
    for _ in range(2):
        task = drive.claim(connection)
        assert task is not None
        drive.submit(connection, task, 0)
    loop = execution(connection, "repeat_1")
    assert refused(connection, "wf_repo_insert_loop_state", loop, 4)[0] == "20003"
    connection.execute("delete from wf.loop_state")
    assert refused(connection, "wf_repo_insert_loop_state", loop, 0)[0] == "20004"
    row = {"node_execution_id": loop, "total_count": 2, "created": True}
    assert call(connection, "wf_repo_insert_loop_state", loop, 2) == [row]
    assert call(connection, "wf_repo_insert_loop_state", loop, 2) == [row | {"created": False}]
    drive.stop_clock(connection)
    drive.drain(connection, lambda key, given: (0, None))
    document = drive.trace(connection, instance)
    assert document["status"] == "SUCCEEDED"
    assert len([n for n in document["nodes"] if n["path"].endswith("/c")]) == 2


def test_only_a_running_repeat_has_a_loop_state(connection: Connection, instance: int) -> None:
    one = execution(connection, "a")
    assert refused(connection, "wf_repo_insert_loop_state", one, 1)[0] == "20003"


# --- variables and codes ---


def test_a_variable_is_set_where_an_execution_sees_it(
    connection: Connection, instance: int
) -> None:
    root = execution(connection, "flow")
    one = execution(connection, "a")
    assert call(connection, "wf_repo_set_scope_variable", one, "seen", drive.json(42)) == [
        {"scope_id": root, "owner_key": "flow", "name": "seen"}
    ]
    assert connection.execute(
        "select value_json from wf.scope_variable where name = 'seen'"
    ).fetchall() == [(42,)]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("nope", 1, "there is no variable nope"),
        ("seen", "x", "var seen: must be an integer, not string"),
    ],
)
def test_a_variable_that_cannot_have_the_value_is_refused(
    connection: Connection, instance: int, name: str, value: Any, message: str
) -> None:
    one = execution(connection, "a")
    found = refused(connection, "wf_repo_set_scope_variable", one, name, drive.json(value))
    assert found == ("20004", message)


def test_the_latest_result_code_of_a_node(connection: Connection, instance: int) -> None:
    assert call(connection, "wf_repo_try_latest_task_result_code", instance, "c") == []
    codes = iter([0, 0, 1, 2])
    drive.stop_clock(connection)
    drive.drain(connection, lambda key, given: (next(codes), None))
    (row,) = call(connection, "wf_repo_try_latest_task_result_code", instance, "c")
    assert (row["result_code"], row["node_execution_id"]) == (2, execution(connection, "c"))
    assert call(connection, "wf_repo_try_latest_task_result_code", 10**9, "c") == []


# --- actions ---


def test_an_action_is_added_and_changed(connection: Connection) -> None:
    (made,) = call(connection, "wf_repo_upsert_workflow_action", "x.y", "x")
    assert made["created"] is True
    changed = drive.json({"max_per_worker": 2, "exclusive_worker": True})
    (again,) = call(connection, "wf_repo_upsert_workflow_action", "x.y", "z", changed)
    assert again == made | {"created": False}
    call(connection, "wf_repo_upsert_workflow_action", "x.y", "z")
    (row,) = call(connection, "wf_repo_list_actions")
    assert (row["capability"], row["max_per_worker"], row["exclusive_worker"]) == ("z", 2, True)
    assert (row["max_deliveries"], row["revision_count"], row["paused"]) == (5, 0, False)
    assert connection.execute("select what from wf.audit_log").fetchall() == [("update action",)]


@pytest.mark.parametrize(
    ("name", "capability", "dispatch", "message"),
    [
        ("", "x", {}, "action_name must have"),
        ("a", " x", {}, "capability must have"),
        ("a", "x", {"colour": 1}, "dispatch_json: colour in row 0 of dispatch is not known"),
        ("a", "x", {"max_deliveries": None}, "dispatch_json: max_deliveries in row 0"),
        ("a", "x", {"max_concurrent": 0}, "dispatch_json: a number must be at least 1"),
        ("a", "x", [], "dispatch_json: row 0 of dispatch is no object"),
    ],
)
def test_an_action_that_cannot_be_is_refused(
    connection: Connection, name: str, capability: str, dispatch: Any, message: str
) -> None:
    number, text = refused(
        connection, "wf_repo_upsert_workflow_action", name, capability, drive.json(dispatch)
    )
    assert number == "20004"
    assert text.startswith(message)
    assert call(connection, "wf_repo_list_actions") == []


def test_a_schema_has_the_revision_that_the_compiler_gives_it(
    connection: Connection, tmp_path: Path
) -> None:
    path = tmp_path / "c.actions.yaml"
    path.write_text(
        'actions: [{name: x.y, version: "2", timeout: 3s, idempotent: false,'
        " result_codes: {0: ok, 5: five}, input: '{ a: int }'}]"
    )
    (described,) = load_catalog([path]).actions.values()
    call(connection, "wf_repo_upsert_workflow_action", "x.y", "x")
    schema = {
        "version": "2",
        "timeout_ms": 3000,
        "idempotent": False,
        "result_codes": dict(described.result_codes),
        "input_schema": described.input_schema,
    }
    row = {"action_name": "x.y", "revision": described.revision, "created": True}
    assert call(connection, "wf_repo_upsert_action_schema", "x.y", drive.json(schema)) == [row]
    again = call(connection, "wf_repo_upsert_action_schema", "x.y", drive.json(schema))
    assert again == [row | {"created": False}]
    (stored,) = call(connection, "wf_repo_get_action_schema", "x.y")
    assert stored["input_schema_json"] == described.input_schema
    assert (stored["revision"], stored["timeout_ms"]) == (described.revision, 3000)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ([], "schema_json must be an object"),
        ({"colour": 1}, "schema_json: colour is not known"),
        ({"timeout_ms": "3"}, "schema_json: timeout_ms has another type"),
        ({"timeout_ms": 0}, "schema_json: timeout_ms must be at least 1"),
        ({"sensitive": [1]}, "schema_json: sensitive has another type"),
        ({"name": "x"}, "schema_json: a schema has no name, revision, capability or dispatch"),
    ],
)
def test_a_schema_that_cannot_be_is_refused(
    connection: Connection, schema: Any, message: str
) -> None:
    call(connection, "wf_repo_upsert_workflow_action", "x.y", "x")
    found = refused(connection, "wf_repo_upsert_action_schema", "x.y", drive.json(schema))
    assert found == ("20004", message)


def test_a_schema_needs_its_action(connection: Connection) -> None:
    found = refused(connection, "wf_repo_upsert_action_schema", "x.y", drive.json({}))
    assert found == ("20002", "there is no action x.y")


def test_the_schema_is_that_of_the_newest_version(connection: Connection, instance: int) -> None:
    newer = drive.json({"version": "9"})
    (other,) = call(connection, "wf_repo_upsert_action_schema", "t.do", newer)
    (used,) = call(connection, "wf_repo_get_action_schema", "t.do")
    assert used["revision"] != other["revision"]
    (named,) = call(connection, "wf_repo_get_action_schema", "t.do", other["revision"])
    assert named["version"] == "9"
    assert call(connection, "wf_repo_get_action_schema", "t.none") == []


# --- the client ---


def test_the_client_deploys_a_graph(pg_url: str) -> None:
    client = connect(pg_url)
    made = client.create_graph(dump_spec(NODE_TYPES["sequence"]))  # type: ignore[union-attr]
    assert isinstance(made, CreatedGraph)
    assert made.name == "steps"
    answer = client.create_graph("{}")  # type: ignore[union-attr]
    assert isinstance(answer, ApiError)
    assert answer.code == 20007
    assert answer.message.startswith("WF601: ")

"""Paths, the trace document and the views in PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.runtime_sql.conftest import GraphDatabase


OWN = "$instance_id"


@pytest.fixture
def tree(database: GraphDatabase) -> dict[str, int]:
    """w: a (done), fan with iterations 1 and 0 made in that order, each: pack, note in an if."""
    database.node("w", "SEQUENCE")
    database.node("a", "ACTION", "w")
    database.node("fan", "FOREACH", "w", item="it", parallel=0)
    database.node("fan.body", "SEQUENCE", "fan", "BODY")
    database.node("pack", "ACTION", "fan.body")
    database.node("if_1", "IF", "fan.body")
    database.node("if_1.then", "SEQUENCE", "if_1", "THEN")
    database.node("note", "ACTION", "if_1.then")
    found = {"w": database.execution("w")}
    found["a"] = database.execution("a", found["w"], 0, "SUCCEEDED", 0, {"n": 1})
    found["fan"] = database.execution("fan", found["w"])
    for i in (1, 0):
        found[f"body{i}"] = database.execution("fan.body", found["fan"], i)
        found[f"pack{i}"] = database.execution("pack", found[f"body{i}"], 0, "READY")
        database.give(found[f"body{i}"], it=i)
    found["if0"] = database.execution("if_1", found["body0"])
    found["then0"] = database.execution("if_1.then", found["if0"])
    found["note0"] = database.execution("note", found["then0"], 0, "READY")
    return found


def task(
    database: GraphDatabase, execution_id: int, input_json: str, worker: str | None = None
) -> None:
    database.rows(
        "insert into wf.task (node_execution_id, workflow_instance_id, node_id, action_id,"
        " available_at, is_claimable, attempt_no, input_json, worker_id, lease_until)"
        " select node_execution_id, workflow_instance_id, node_id, 1, now(), true, %s, %s::jsonb,"
        " %s, case when %s::text is null then null else now() end"
        "   from wf.node_execution where node_execution_id = %s",
        0 if worker is None else 1,
        input_json,
        worker,
        worker,
        execution_id,
    )


def path(database: GraphDatabase, execution_id: int) -> Any:
    return database.row("select wf.wf_execution_path(%s)", execution_id)[0]


def test_a_path_joins_the_keys_of_the_authors_nodes(
    database: GraphDatabase, tree: dict[str, int]
) -> None:
    assert path(database, tree["w"]) == "w"
    assert path(database, tree["note0"]) == "w/fan[0]/if_1/note"


def test_the_path_of_a_loop_body_is_the_loop_with_its_iteration(
    database: GraphDatabase, tree: dict[str, int]
) -> None:
    assert path(database, tree["fan"]) == "w/fan"
    assert path(database, tree["body1"]) == "w/fan[1]"
    assert path(database, tree["pack1"]) == "w/fan[1]/pack"


def test_a_generated_branch_has_the_path_of_its_parent(
    database: GraphDatabase, tree: dict[str, int]
) -> None:
    assert path(database, tree["then0"]) == "w/fan[0]/if_1"


def test_an_unknown_execution_has_no_path(database: GraphDatabase) -> None:
    assert path(database, 4711) is None


def test_nested_iterations_stand_at_their_loops(database: GraphDatabase) -> None:
    database.node("w", "SEQUENCE")
    for outer, loop in (("w", "one"), ("one.body", "two")):
        database.node(loop, "REPEAT", outer)
        database.node(f"{loop}.body", "SEQUENCE", loop, "BODY")
    one = database.execution("one", database.execution("w"))
    two = database.execution("two", database.execution("one.body", one, 3))
    assert path(database, database.execution("two.body", two, 12)) == "w/one[3]/two[12]"


def trace(database: GraphDatabase) -> Any:
    return database.row("select wf.wf_trace_instance(%s)", database.instance_id)[0]


def test_rows_are_in_pre_order_by_child_order_then_iteration(
    database: GraphDatabase, tree: dict[str, int]
) -> None:
    assert [(row["path"], row["type"]) for row in trace(database)["nodes"]] == [
        ("w", "SEQUENCE"),
        ("w/a", "ACTION"),
        ("w/fan", "FOREACH"),
        ("w/fan[0]", "SEQUENCE"),
        ("w/fan[0]/pack", "ACTION"),
        ("w/fan[0]/if_1", "IF"),
        ("w/fan[0]/if_1/note", "ACTION"),
        ("w/fan[1]", "SEQUENCE"),
        ("w/fan[1]/pack", "ACTION"),
    ]


def test_an_iteration_after_the_tenth_sorts_as_a_number(database: GraphDatabase) -> None:
    database.node("w", "SEQUENCE")
    database.node("r", "REPEAT", "w")
    database.node("r.body", "SEQUENCE", "r", "BODY")
    loop = database.execution("r", database.execution("w"))
    for i in range(12):
        database.execution("r.body", loop, i)
    paths = [row["path"] for row in trace(database)["nodes"]]
    assert paths[2:] == [f"w/r[{i}]" for i in range(12)]


def row_of(database: GraphDatabase, wanted: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [row for row in trace(database)["nodes"] if row["path"] == wanted]
    assert len(found) == 1
    return found[0]


def test_a_row_has_all_its_fields(database: GraphDatabase, tree: dict[str, int]) -> None:
    database.rows(
        "update wf.node_execution set input_json = '{\"k\": 1.0}' where status = 'SUCCEEDED'"
    )
    assert row_of(database, "w/a") == {
        "path": "w/a",
        "type": "ACTION",
        "status": "SUCCEEDED",
        "attempts": 1,
        "result_code": 0,
        "input": {"k": 1.0},
        "output": {"n": 1},
        "error": None,
    }


def test_an_open_action_is_ready_until_it_is_leased(
    database: GraphDatabase, tree: dict[str, int]
) -> None:
    task(database, tree["pack0"], '{"n": 0}')
    task(database, tree["pack1"], '{"n": 1}', "worker")
    ready, leased = (row_of(database, f"w/fan[{i}]/pack") for i in (0, 1))
    assert (ready["status"], ready["attempts"], ready["input"]) == ("READY", 0, {"n": 0})
    assert (leased["status"], leased["attempts"], leased["input"]) == ("RUNNING", 1, {"n": 1})


def test_variables_stand_on_rows_that_opened_a_scope_but_the_root(
    database: GraphDatabase, tree: dict[str, int]
) -> None:
    database.give(tree["w"], top=True)
    document = trace(database)
    assert document["variables"] == {"top": True}
    assert {row["path"]: row["variables"] for row in document["nodes"] if "variables" in row} == {
        "w/fan[0]": {"it": 0},
        "w/fan[1]": {"it": 1},
    }


def test_numbers_keep_their_normal_form(database: GraphDatabase, tree: dict[str, int]) -> None:
    database.rows("insert into wf.scope_variable values (%s, 'x', '1.50e1')", tree["w"])
    (text,) = database.row("select wf.wf_trace_instance(%s)::text", database.instance_id)
    assert '"x": 15.0' in text


def test_a_failed_node_names_where_its_error_arose(
    database: GraphDatabase, tree: dict[str, int]
) -> None:
    for key in ("w", "fan"):
        database.rows(
            "update wf.node_execution set status = 'FAILED', engine_error_code = 10001,"
            " engine_error_message = 'm', error_execution_id = %s where node_execution_id = %s",
            tree["pack1"],
            tree[key],
        )
    database.rows(
        "update wf.workflow_instance set status = 'FAILED', engine_error_code = 10001,"
        " engine_error_message = 'm', error_execution_id = %s",
        tree["pack1"],
    )
    error = {
        "code": None,
        "engine_code": 10001,
        "message": "m",
        "node": "pack",
        "path": "w/fan[1]/pack",
    }
    assert row_of(database, "w/fan")["error"] == error
    document = trace(database)
    assert (document["status"], document["error"]) == ("FAILED", error)


def test_a_cancelled_node_has_no_error(database: GraphDatabase, tree: dict[str, int]) -> None:
    database.rows(
        "update wf.node_execution set status = 'CANCELLED' where node_execution_id = %s",
        tree["pack0"],
    )
    row = row_of(database, "w/fan[0]/pack")
    assert (row["status"], row["result_code"], row["error"]) == ("CANCELLED", None, None)


def test_an_instance_that_has_not_started_has_an_empty_trace(database: GraphDatabase) -> None:
    database.node("w", "SEQUENCE")
    assert trace(database) == {
        "trace_format": 1,
        "workflow": "w",
        "status": "RUNNING",
        "error": None,
        "output": None,
        "variables": {},
        "nodes": [],
    }


def test_an_unknown_instance_has_no_trace(database: GraphDatabase) -> None:
    assert database.row("select wf.wf_trace_instance(-1)") == (None,)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"123"', OWN),
        ('"run 123"', "run 123"),
        ('"\\"123"', '"123'),
        ('"123\\""', '123"'),
        ('"\\"123\\""', '"123"'),
        ('"\\\\\\"123"', '\\"123'),
        ('{"123": ["123", 123, {"a": "123"}]}', {"123": [OWN, 123, {"a": OWN}]}),
    ],
)
def test_a_string_that_is_the_own_id_is_masked(
    database: GraphDatabase, value: str, expected: Any
) -> None:
    assert database.row("select wf.wf_mask_instance_id(%s::jsonb, 123)", value) == (expected,)


def test_the_own_id_is_masked_in_data_and_in_the_authors_messages(
    database: GraphDatabase, tree: dict[str, int]
) -> None:
    own = str(database.instance_id)
    database.give(tree["w"], id=own)
    database.rows(
        "update wf.node_execution set status = 'FAILED', result_code = -2, output_json = %s::jsonb,"
        " engine_error_message = %s where node_execution_id = %s",
        f'["{own}"]',
        own,
        tree["a"],
    )
    row = row_of(database, "w/a")
    assert trace(database)["variables"] == {"id": OWN}
    assert row["output"] == [OWN]
    assert row["error"]["message"] == OWN


# Views --------------------------------------------------------------------------------------------


def test_v_node_execution_shows_path_and_lease(
    database: GraphDatabase, tree: dict[str, int]
) -> None:
    task(database, tree["pack0"], "{}")
    task(database, tree["pack1"], "{}", "worker")
    assert database.rows(
        "select path, status, attempt_no, worker_id from wf.v_node_execution"
        " where node_key = 'pack' order by path"
    ) == [("w/fan[0]/pack", "READY", 0, None), ("w/fan[1]/pack", "RUNNING", 1, "worker")]


def test_v_instance_names_the_place_of_the_error(
    database: GraphDatabase, tree: dict[str, int]
) -> None:
    database.rows(
        "update wf.workflow_instance set status = 'FAILED', error_code = -3,"
        " engine_error_message = 'm', error_execution_id = %s",
        tree["pack1"],
    )
    assert database.rows(
        "select workflow_name, version_no, status, error_code, engine_error_code,"
        " engine_error_message, error_node_key, error_path from wf.v_instance"
    ) == [("w", 1, "FAILED", -3, None, "m", "pack", "w/fan[1]/pack")]


def test_get_workflow_instance_answers_one_row_or_none(database: GraphDatabase) -> None:
    database.rows("update wf.execution_context set output_json = '{\"a\": 1}'")
    columns = "workflow_instance_id, workflow_name, version_no, instance_status, output_json"
    call = f"select {columns} from wf.wf_repo_get_workflow_instance(%s)"
    assert database.rows(call, database.instance_id) == [
        (database.instance_id, "w", 1, "RUNNING", {"a": 1})
    ]
    assert database.rows(call, -1) == []


@pytest.mark.parametrize(
    ("status", "listed"),
    [
        ("CREATED", 0),
        ("RUNNING", 1),
        ("PAUSED", 1),
        ("SUCCEEDED", 0),
        ("FAILED", 0),
        ("CANCELLED", 0),
    ],
)
def test_running_instances_are_those_that_can_go_on(
    database: GraphDatabase, status: str, listed: int
) -> None:
    database.rows("update wf.workflow_instance set status = %s", status)
    assert len(database.rows("select * from wf.wf_repo_get_running_instances()")) == listed

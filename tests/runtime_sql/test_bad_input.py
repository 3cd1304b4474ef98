"""Bad values for every parameter of every public routine: a stated answer, and nothing changed.

The values and the world they are used in stand in `bad_input.py`. `OUTCOMES` says of each routine
and parameter what each kind of value gives:

- a number: the error code raised;
- `nothing`: an answer (`accepted = false`, no rows, null …) that changes no row;
- `fine`: the value is a proper one after all;
- `database`: the database itself refuses it, PostgreSQL with an SQLSTATE of class 22.

Not written down, because they never differ: a text that is no value of the parameter's type is
refused by the database, and so are U+0000 and lone surrogates; a worker or token that is unknown,
missing, malformed or expired is 20001.

SQL Server has no type for JSON: there a routine refuses itself what jsonb refuses, with 20004 or
with the code it has for a document of another form. `ON_SQL_SERVER` has what differs otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from runtime_sql.contract.model import RoutineEntry, load_contract
from tests.runtime_sql import bad_input, drive
from tests.runtime_sql.tsql import empty

if TYPE_CHECKING:
    from wfsql.embedded import EmbeddedServer

REFUSED_BY_TYPE = ("not_a_number", "huge", "not_a_boolean", "not_a_time", "no_list", "no_json")
REFUSED_BY_TYPE += ("nul", "surrogate")

REFUSED_BY_JSONB = ("no_json", "nul", "surrogate")

ON_SQL_SERVER = {
    # The form of a list, which is JSON there, is looked at before what the key may give.
    ("sp_enroll_worker", "capabilities", "empty_element"): "20004",
    ("sp_enroll_worker", "capabilities", "null_element"): "20004",
    # So is a script, before whether the database is free for it.
    ("sp_test_bed_run_workflow", "script_json", "large"): "20005",
    # The engine itself gives these documents: what they hold was checked where they came in.
    ("wf_eval_expression", "program", "no_object"): "database",
    ("wf_eval_expression", "program", "deep"): "nothing",
    ("wf_eval_expression", "program", "large"): "nothing",
    ("wf_mask_sensitive", "pointers", "deep"): "nothing",
    ("wf_mask_sensitive", "pointers", "large"): "nothing",
}
# Why a case cannot be shown on the server that the T-SQL tree was played on (Babelfish 4.4).
NOT_PROVABLE = {
    ("wf_repo_create_workflow_graph", "", ""): "its process ends when a graph comes that it has:"
    " a large value of a table variable is read after the function that made it",
    ("wf_repo_create_workflow_graph", "activate", "null"): "as with good arguments",
    ("wf_repo_create_workflow_graph", "update_actions", "null"): "as with good arguments",
    ("wf_canonical_json", "value", "large"): "python-tds takes minutes to read 17 MB",
}

OUTCOMES: dict[str, dict[str, str]] = {
    "wf_worker_authenticate": {},
    "sp_worker_request_task": {
        "capability": "nothing: null empty long control unknown",
        "max_lease_seconds": "20004: null negative zero",
    },
    "sp_worker_request_tasks": {
        "capability": "nothing: null empty long control unknown",
        "max_lease_seconds": "20004: null negative zero",
        "max_tasks": "20004: null negative zero",
    },
    "sp_worker_submit_result": {
        "node_execution_id": "20002: null negative unknown; nothing: foreign ended",
        "result_code": "20004: null; fine: negative zero",
        "output_json": "fine: null no_object deep; 20005: large",
        "lease_token": "fine: null; nothing: negative unknown wrong",
        "message": "fine: null empty long control unknown",
    },
    "sp_worker_submit_results": {
        "results_json": "20004: null no_object deep large",
    },
    "sp_worker_fail_task": {
        "node_execution_id": "20002: null negative unknown; nothing: foreign ended",
        "error_code": "fine: null negative zero",
        "error_message": "fine: null empty long control unknown",
        "lease_token": "fine: null; nothing: negative unknown wrong",
    },
    "sp_worker_heartbeat": {
        "node_execution_id": "nothing: null negative unknown foreign ended",
        "extend_seconds": "20004: null negative zero",
        "lease_token": "nothing: null negative unknown wrong",
    },
    "sp_worker_release_task": {
        "node_execution_id": "nothing: null negative unknown foreign ended",
        "lease_token": "fine: null; nothing: negative unknown wrong",
    },
    "sp_ingest_event": {
        "event_type": "20004: null empty long control; fine: unknown",
        "source": "20004: null empty long control; fine: unknown",
        "idempotency_key": "20004: null empty long control; fine: unknown",
        "payload_json": "fine: null no_object deep; 20005: large",
        "correlation_key": "fine: null unknown; 20004: empty long control",
        "occurred_at_utc": "fine: null",
    },
    "sp_signal_wait": {
        "event_type": "20004: null empty long control; fine: unknown",
        "correlation_key": "fine: null unknown; 20004: empty long control",
        "payload_json": "fine: null no_object deep; 20005: large",
        "workflow_instance_id": "fine: null; 20002: negative unknown; nothing: ended",
    },
    "wf_set_version_notes": {
        "name": "20002: null empty long control unknown",
        "content_hash": "20002: null empty long control unknown",
        "source_map": "fine: null no_object deep large",
        "description": "fine: null empty long control unknown",
    },
    "wf_publish_workflow_version": {
        "name": "20002: null empty long control unknown",
        "content_hash": "20002: null empty long control unknown",
        "activate": "nothing: null",
        "update_actions": "nothing: null",
    },
    "wf_repo_create_workflow_instance": {
        "workflow_name": "20002: null empty long control unknown",
        "context_json": "20004: null no_object; fine: deep; 20005: large",
        "workflow_version": "fine: null; 20002: negative zero",
        "business_key": "fine: null unknown; 20004: empty long control",
        "priority": "fine: null negative zero",
        "tags_json": "fine: null; 20004: no_object deep large",
    },
    "sp_start_workflow_instance": {
        "workflow_instance_id": "20002: null negative unknown; nothing: ended",
    },
    "wf_repo_get_workflow_instance": {
        "workflow_instance_id": "nothing: null negative unknown ended",
    },
    "wf_trace_instance": {
        "workflow_instance_id": "nothing: null negative unknown ended",
    },
    "wf_build_input_json_for_action": {
        "execution_id": "nothing: null negative unknown",
    },
    "wf_eval_expression": {
        "program": "nothing: null no_object; database: deep large",
        "execution_id": "nothing: null negative unknown",
        "output_json": "nothing: null no_object deep large",
        "result_code": "nothing: null negative zero",
        "event_json": "nothing: null no_object deep large",
        "unset_is_null": "nothing: null",
    },
    "wf_resolve_placeholders": {
        "template": "nothing: null no_object deep large",
        "execution_id": "nothing: null negative unknown",
    },
    "wf_try_task_result_code": {
        "execution_id": "nothing: null negative unknown",
        "task_key": "nothing: null empty long control unknown",
    },
    "wf_reclaim_expired_leases": {
        "limit": "nothing: null negative zero",
    },
    "sp_register_worker": {
        "worker_id": "20004: null empty long control; fine: unknown expired",
        "worker_token": "20004: null empty long control unknown",
        "capabilities": "fine: null; 20004: empty_element null_element",
        "max_concurrency": "20004: null negative zero",
    },
    "sp_create_api_key": {
        "key": "20004: null empty long control unknown",
        "name": "20004: null empty long control; fine: unknown",
        "roles": "20004: null empty_element null_element",
        "source": "20004: null empty long control; fine: unknown",
        "event_types": "20004: null empty_element null_element",
        "capabilities": "20004: null empty_element null_element",
        "expires_at": "fine: null",
    },
    "sp_revoke_api_key": {
        "key_id": "20002: null empty long control unknown",
    },
    "wf_api_key_authenticate": {
        "key": "20001: null empty long control unknown",
    },
    "sp_enroll_worker": {
        "key": "20001: null empty long control unknown",
        "worker_id": "20004: null empty long control; fine: unknown; 20008: expired",
        "worker_token": "20004: null empty long control unknown",
        "capabilities": "20004: null; 20008: empty_element null_element",
        "max_concurrency": "20004: null negative zero",
    },
    "sp_set_worker_token_expiry": {
        "worker_id": "20002: null empty long control unknown; fine: expired",
        "expires_at": "fine: null",
        "token_id": "fine: null; 20002: empty long control unknown",
    },
    "sp_revoke_worker_token": {
        "worker_id": "20002: null empty long control unknown; fine: expired",
        "token_id": "fine: null; 20002: empty long control unknown",
    },
    "wf_worker_profile": {},
    "wf_claimable_capabilities": {},
    "wf_queue_depth": {},
    "sp_set_worker_state": {
        "worker_id": "20002: null empty long control unknown; fine: expired",
        "desired_state": "20004: null empty long control unknown",
    },
    "sp_cancel_workflow_instance": {
        "workflow_instance_id": "20002: null negative unknown; nothing: ended",
        "reason": "fine: null empty long control unknown",
    },
    "sp_pause_workflow_instance": {
        "workflow_instance_id": "20002: null negative unknown; 20003: ended",
    },
    "sp_resume_workflow_instance": {
        "workflow_instance_id": "20002: null negative unknown; 20003: ended",
    },
    "sp_retry_failed_node": {
        "workflow_instance_id": "20002: null negative unknown; 20003: ended",
    },
    "sp_release_affinity": {
        "workflow_instance_id": "20002: null negative unknown ended",
        "affinity_key": "20002: null empty long control unknown",
    },
    "sp_purge_instances": {
        "ended_before": "20004: null",
        "limit": "20004: null negative zero",
    },
    "sp_delete_workflow_def": {
        "name": "20002: null empty long control unknown",
        "end_running": "20003: null",
        "delete_history": "20003: null",
    },
    "wf_repo_get_running_instances": {},
    "sp_tick": {},
    "wf_repo_create_workflow_graph": {
        "spec": "20007: null no_object deep; 20005: large",
        "activate": "nothing: null",
        "update_actions": "nothing: null",
    },
    "wf_repo_set_instance_status": {
        "workflow_instance_id": "20002: null negative unknown; 20003: ended",
        "status": "20004: null empty long control unknown",
    },
    "wf_repo_insert_node_execution": {
        "workflow_instance_id": "20002: null negative unknown; nothing: ended",
        "parent_execution_id": "20003: null negative unknown",
        "node_key": "20002: null empty long control unknown",
        "iteration_no": "fine: null negative zero",
    },
    "wf_repo_update_node_execution_status": {
        "node_execution_id": "20002: null negative unknown; fine: foreign; 20003: ended",
        "status": "20003: null empty long control unknown",
        "result_code": "fine: null negative; 20004: zero",
        "output_json": "fine: null no_object deep; 20005: large",
        "message": "fine: null empty long control unknown",
    },
    "wf_repo_insert_loop_state": {
        "node_execution_id": "20002: null negative unknown; 20003: foreign ended",
        "total_count": "20004: null negative; 20003: unknown",
    },
    "wf_repo_set_scope_variable": {
        "node_execution_id": "20002: null negative unknown; fine: foreign; 20003: ended",
        "name": "20004: null empty long control unknown",
        "value_json": "20004: null no_object deep large",
    },
    "wf_repo_try_latest_task_result_code": {
        "workflow_instance_id": "nothing: null negative unknown ended",
        "node_key": "nothing: null empty long control unknown",
    },
    "wf_repo_upsert_workflow_action": {
        "action_name": "20004: null empty long control; fine: unknown",
        "capability": "20004: null empty long control; fine: unknown",
        "dispatch_json": "20004: null no_object deep large",
    },
    "wf_repo_upsert_action_schema": {
        "action_name": "20002: null empty long control unknown",
        "schema_json": "20004: null no_object deep large",
    },
    "wf_repo_get_action_schema": {
        "action_name": "nothing: null empty long control unknown",
        "revision": "nothing: null empty long control unknown",
    },
    "wf_repo_upsert_instance_extension": {
        "workflow_instance_id": "20002: null negative unknown; fine: ended",
        "name": "20004: null empty long control; fine: unknown",
        "value_json": "20004: null; fine: no_object deep; 20005: large",
    },
    "wf_repo_get_instance_extension": {
        "workflow_instance_id": "nothing: null negative unknown ended",
        "name": "nothing: null empty long control unknown",
    },
    "wf_repo_get_action_submit_context": {
        "node_execution_id": "nothing: null negative unknown foreign ended",
    },
    "wf_repo_upsert_execution_scope_action_entry": {
        "execution_scope_id": "20002: null negative unknown",
        "node_execution_id": "20004: null; fine: negative unknown foreign ended",
        "action_name": "20004: null empty long control; fine: unknown",
        "result_code": "20004: null; fine: negative zero",
        "output_json": "fine: null no_object deep; 20005: large",
    },
    "sync_execution_scope_action_entry_after_submit": {
        "node_execution_id": "20002: null negative unknown; nothing: foreign ended",
    },
    "wf_apply_execution_scope": {
        "workflow_instance_id": "20002: null negative unknown; 20003: ended",
        "name": "20004: null empty long control; fine: unknown",
        "parameters_json": "20004: null no_object; fine: deep; 20005: large",
    },
    "wf_apply_validation_plan": {
        "workflow_instance_id": "20002: null negative unknown; 20003: ended",
        "plan_json": "20004: null no_object deep; 20005: large",
    },
    "wf_foreach_caas_try_skip_body": {
        "node_execution_id": "nothing: null negative unknown foreign ended",
        "from": "nothing: null negative zero",
        "slots": "nothing: null zero; database: negative",
        "now": "nothing: null",
    },
    "wf_canonical_json": {
        "value": "nothing: null no_object deep large",
        "is_exact": "nothing: null",
    },
    "sp_purge_bundles": {
        "created_before": "20004: null",
        "workflow_name": "nothing: null empty long control unknown",
        "limit": "20004: null negative zero",
    },
    "sp_purge_events": {
        "limit": "20004: null negative zero",
    },
    "wf_repo_upsert_event_type": {
        "event_type": "20004: null empty long control; fine: unknown",
        "keep_for_seconds": "20004: null negative; fine: zero unknown",
    },
    "sp_test_bed_run_workflow": {
        "workflow_name": "20003: null empty long control unknown",
        "context_json": "20003: null no_object deep large",
        "script_json": "20003: null no_object deep large",
        "workflow_version": "20003: null negative zero",
    },
    "wf_repo_list_actions": {},
    "wf_runtime_version": {},
    "wf_database_id": {},
    "wf_require_runtime": {
        "version": "20006: null; nothing: negative zero",
    },
    "wf_now": {},
    "wf_execution_path": {
        "execution_id": "nothing: null negative unknown",
    },
    "wf_mask_sensitive": {
        "value": "nothing: null no_object deep large",
        "pointers": "nothing: null no_object; database: deep large",
        "part": "nothing: null empty long control unknown",
    },
}

ROUTINES = {routine.name: routine for routine in load_contract().routines}


@pytest.fixture(scope="module", params=["pg", "sql_server"])
def connection(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """A database for all tests of the module; each leaves it as it was."""
    if request.param == "sql_server":
        url = str(request.getfixturevalue("mssql_url"))
        empty(url)
        with drive.connect(url) as connection:
            yield connection
        return
    pg_server: EmbeddedServer = request.getfixturevalue("pg_server")
    pg_template = str(request.getfixturevalue("pg_template"))
    name = f"bad_input_{os.getpid()}"
    with drive.connect(pg_server.create_database(name, pg_template)) as connection:
        yield connection
    pg_server.drop_database(name)


@pytest.fixture(scope="module")
def world(
    connection: psycopg.Connection[Any], tmp_path_factory: pytest.TempPathFactory
) -> bad_input.World:
    folder: Path = tmp_path_factory.mktemp("bad_input")
    return bad_input.make_world(connection, folder)


def expected_on_sql_server(routine: RoutineEntry, parameter: str, kind: str) -> set[str]:
    """What may come of a value; nothing is stated of a document that only the engine gives."""
    if kind == "no_list":
        return {"20004"}  # a list is a document there
    if kind in REFUSED_BY_JSONB:
        if routine.group in ("engine_runtime", "view") and 20004 not in routine.errors:
            return set()
        return {"20004", expected(routine, parameter, "no_object")} - {"nothing", "fine"}
    other = ON_SQL_SERVER.get((routine.name, parameter, kind))
    return {other or expected(routine, parameter, kind)}


def expected(routine: RoutineEntry, parameter: str, kind: str) -> str:
    if kind in REFUSED_BY_TYPE:
        return "database"
    has_token = any(p.name == "worker_token" for p in routine.parameters)
    if (
        has_token
        and parameter in ("worker_id", "worker_token")
        and routine.name not in ("sp_register_worker", "sp_enroll_worker")
    ):
        return "20001"
    for part in OUTCOMES[routine.name][parameter].split("; "):
        outcome, kinds = part.split(": ")
        if kind in kinds.split():
            return outcome
    raise AssertionError(f"{routine.name}: nothing is said of {parameter} {kind}")


def outcome(
    connection: psycopg.Connection[Any], routine: RoutineEntry, given: dict[str, Any]
) -> str:
    """What a call gave, `nothing` when it answered."""
    try:
        bad_input.call(connection, routine, given)
    except psycopg.DatabaseError as error:
        state = error.sqlstate or ""
        if state[:2] in ("WA", "WF"):
            code = {"WA": 20000, "WF": 10000}[state[:2]] + int(state[2:])
            assert code in routine.errors, f"{routine.name} does not list {code}"
            return str(code)
        return "database" if state.startswith("22") else f"SQLSTATE {state}"
    return "nothing"


def test_every_public_routine_has_its_outcomes() -> None:
    assert set(OUTCOMES) == set(ROUTINES)


@pytest.mark.parametrize("name", ROUTINES)
def test_bad_values_are_answered_as_stated_and_change_nothing(
    connection: psycopg.Connection[Any], world: bad_input.World, name: str
) -> None:
    routine = ROUTINES[name]
    good = bad_input.good_arguments(world)[name]
    assert list(good) == [p.name for p in routine.parameters]
    before = bad_input.dump(connection)
    for parameter, kind, value in bad_input.bad_values(world, routine):
        stated = {expected(routine, parameter, kind)}
        if bad_input.is_sql_server(connection):
            stated = expected_on_sql_server(routine, parameter, kind)
            if not stated or (name, parameter, kind) in NOT_PROVABLE:
                continue
        given = {**good, parameter: value}
        if stated == {"fine"}:
            with connection.transaction(force_rollback=True):
                bad_input.call(connection, routine, given)
            continue
        assert outcome(connection, routine, given) in stated, (parameter, kind)
        assert not bad_input.is_in_transaction(connection)
        assert bad_input.dump(connection) == before, (parameter, kind)


@pytest.mark.parametrize("name", ROUTINES)
def test_the_arguments_that_are_called_good_are_accepted(
    connection: psycopg.Connection[Any], world: bad_input.World, name: str
) -> None:
    if bad_input.is_sql_server(connection) and (name, "", "") in NOT_PROVABLE:
        pytest.skip(NOT_PROVABLE[name, "", ""])
    with connection.transaction(force_rollback=True):
        if name == "sp_resume_workflow_instance":
            connection.execute("select wf.sp_pause_workflow_instance(%s)", (world.running,))
        if name == "sp_test_bed_run_workflow":
            connection.execute("select wf.sp_cancel_workflow_instance(%s)", (world.running,))
        if name == "sp_release_affinity":
            connection.execute(
                "insert into wf.affinity (workflow_instance_id, affinity_key, worker_id,"
                " pinned_worker_id, pinned_action_id) values (%s, 'x', 'driver', 'driver', 1)",
                (world.running,),
            )
        bad_input.call(connection, ROUTINES[name], bad_input.good_arguments(world)[name])


@pytest.mark.parametrize(
    "tags",
    [
        '{"": "empty name"}',
        '{"a": null}',
        '{"a": {}}',
        '{"a": "' + "x" * 201 + '"}',
        '{"' + "x" * 201 + '": "long name"}',
    ],
)
def test_tags_that_cannot_be_looked_up_are_refused(
    connection: psycopg.Connection[Any], world: bad_input.World, tags: str
) -> None:
    routine = ROUTINES["wf_repo_create_workflow_instance"]
    good = bad_input.good_arguments(world)[routine.name]

    assert outcome(connection, routine, {**good, "tags_json": tags}) == "20004"


BAD_RESULTS = (
    "{}",
    "[{}]",
    '[{"node_execution_id": 1}]',
    '[{"node_execution_id": 1, "result_code": null}]',
    '[{"node_execution_id": 1, "result_code": 1.5}]',
    '[{"node_execution_id": 1, "result_code": 99999999999}]',
    '[{"node_execution_id": 1e400, "result_code": 0}]',
    '[{"node_execution_id": 1, "result_code": 0, "message": 1}]',
    '[{"node_execution_id": 1, "result_code": 0, "lease_token": "x"}]',
    "[null]",
    '"text"',
)


@pytest.mark.parametrize("results", BAD_RESULTS)
def test_a_batch_with_a_malformed_result_is_refused_as_a_whole(
    connection: psycopg.Connection[Any], world: bad_input.World, results: str
) -> None:
    routine = ROUTINES["sp_worker_submit_results"]
    good = bad_input.good_arguments(world)[routine.name]
    proper = good["results_json"].removeprefix("[").removesuffix("]")
    if results.startswith("[") and results != "[]":
        results = f"[{proper}, {results[1:]}"
    before = bad_input.dump(connection)

    assert outcome(connection, routine, {**good, "results_json": results}) == "20004"
    assert bad_input.dump(connection) == before

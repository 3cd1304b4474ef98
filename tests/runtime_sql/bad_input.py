"""Bad values for every parameter of the public routines, and a world to call the routines in.

`World` is a database with one instance of each kind that a call may meet. `GOOD` has arguments with
which each routine is called properly; `bad_values` has what may stand in their place, by the type
that the contract gives the parameter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from compiler import json_values
from runtime_sql.contract.model import RoutineEntry
from tests.runtime_sql import drive
from tests.runtime_sql.tsql import TsqlConnection

UNKNOWN_ID = 987_654_321
OTHER = "other"

TEXT = """
    workflow w {
      var v : int = 0
      parallel {
        action a = t.do()
        action b = t.do()
        wait_event c on "bell" { correlate "k" }
        repeat r: 3 { action d = t.do() }
      }
    }
"""


@dataclass(frozen=True)
class World:
    """Ids of what stands in the database."""

    running: int  # an instance; the driver has a lease of its action a, `other` one of its b
    ended: int  # cancelled, after the driver had claimed its action a
    failed: int
    created: int
    execution: int
    lease_token: int
    foreign_execution: int
    ended_execution: int
    repeat_execution: int
    execution_scope: int
    content_hash: str
    graph: str


KEY = "wf_badinput01_" + "k" * 43
ENROLL_KEY = "wf_badinput02_" + "e" * 43


def make_world(connection: psycopg.Connection[Any], folder: Path) -> World:
    connection.execute("insert into wf.wf_setting values ('now', '2026-01-01T00:00:00Z')")
    connection.execute("select wf.sp_register_worker(%s, %s, array['*'])", (OTHER, drive.TOKEN))
    connection.execute("select wf.sp_register_worker(%s, %s, array['*'])", ("late", drive.TOKEN))
    connection.execute(
        "update wf.worker_token set expires_at = '2025-12-31' where worker_id = 'late'"
    )
    connection.execute(
        "select wf.sp_create_api_key(%s, 'enroll', array['enroll'], null, null, array['t'])",
        (ENROLL_KEY,),
    )
    spec = drive.compile_text(folder, TEXT)
    drive.deploy(connection, spec)
    ended = drive.start(connection, "w", {})
    cancelled = drive.claim(connection)
    connection.execute("select wf.sp_cancel_workflow_instance(%s)", (ended,))
    failed = drive.start(connection, "w", {})
    drive.submit(connection, drive.claim(connection) or {}, -1)
    running = drive.start(connection, "w", {})
    own = drive.claim(connection)
    foreign = connection.execute(
        "select node_execution_id from wf.sp_worker_request_task(%s, %s)", (OTHER, drive.TOKEN)
    ).fetchone()
    assert drive.claim(connection) is not None  # the action d, so that nothing is left to claim
    repeat = connection.execute(
        "select e.node_execution_id from wf.node_execution e"
        " join wf.workflow_node n on n.node_id = e.node_id"
        " where n.node_type = 'REPEAT' and e.status = 'RUNNING'"
    ).fetchone()
    scoped = connection.execute(
        "select workflow_instance_id from wf.wf_repo_create_workflow_instance('w', '{}')"
    ).fetchone()
    scope = connection.execute(
        "select execution_scope_id from wf.wf_apply_execution_scope(%s, 'scope', '{}')", scoped
    ).fetchone()
    created = connection.execute(
        "select workflow_instance_id from wf.wf_repo_create_workflow_instance('w', '{}')"
    ).fetchone()
    assert cancelled is not None
    assert own is not None
    assert foreign is not None
    assert created is not None
    assert repeat is not None
    assert scope is not None
    return World(
        running=running,
        ended=ended,
        failed=failed,
        created=created[0],
        execution=own["node_execution_id"],
        lease_token=own["lease_token"],
        foreign_execution=foreign[0],
        ended_execution=cancelled["node_execution_id"],
        repeat_execution=repeat[0],
        execution_scope=scope[0],
        content_hash=spec.content_hash(),
        graph=json_values.dumps(spec.to_json_value()),
    )


def good_arguments(world: World) -> dict[str, dict[str, Any]]:
    """Arguments, as texts, with which each routine is called properly."""
    worker = {"worker_id": drive.WORKER, "worker_token": drive.TOKEN}
    task = {"node_execution_id": str(world.execution)}
    lease = {"lease_token": str(world.lease_token)}
    running = {"workflow_instance_id": str(world.running)}
    execution = {"execution_id": str(world.execution)}
    results = (
        f'[{{"node_execution_id": {world.execution}, "result_code": 0,'
        f' "lease_token": {world.lease_token}}}]'
    )
    return {
        "wf_worker_authenticate": worker,
        "sp_worker_request_task": {**worker, "capability": "t", "max_lease_seconds": "60"},
        "sp_worker_request_tasks": {
            **worker,
            "capability": "t",
            "max_lease_seconds": "60",
            "max_tasks": "1",
        },
        "sp_worker_submit_result": {
            **task,
            **worker,
            "result_code": "0",
            "output_json": "{}",
            **lease,
            "message": "m",
        },
        "sp_worker_submit_results": {**worker, "results_json": results},
        "sp_worker_fail_task": {
            **task,
            **worker,
            "error_code": "-1",
            "error_message": "m",
            **lease,
        },
        "sp_worker_heartbeat": {**task, **worker, "extend_seconds": "60", **lease},
        "sp_worker_release_task": {**task, **worker, **lease},
        "sp_ingest_event": {
            "event_type": "bell",
            "source": "s",
            "idempotency_key": "e1",
            "payload_json": "{}",
            "correlation_key": "k",
            "occurred_at_utc": "2026-01-01T00:00:00Z",
        },
        "sp_signal_wait": {
            "event_type": "bell",
            "correlation_key": "k",
            "payload_json": "{}",
            **running,
        },
        "wf_set_version_notes": {
            "name": "w",
            "content_hash": world.content_hash,
            "source_map": "{}",
            "description": "d",
        },
        "wf_publish_workflow_version": {
            "name": "w",
            "content_hash": world.content_hash,
            "activate": "true",
            "update_actions": "false",
        },
        "wf_repo_create_workflow_instance": {
            "workflow_name": "w",
            "context_json": "{}",
            "workflow_version": "1",
            "business_key": "b1",
            "priority": "0",
            "tags_json": '{"a": "b"}',
        },
        "sp_start_workflow_instance": {"workflow_instance_id": str(world.created)},
        "wf_repo_get_workflow_instance": running,
        "wf_repo_get_running_instances": {},
        "wf_trace_instance": running,
        "wf_build_input_json_for_action": execution,
        "wf_eval_expression": {
            "program": '[["lit",1]]',
            **execution,
            "output_json": "{}",
            "result_code": "0",
            "event_json": "{}",
            "unset_is_null": "false",
        },
        "wf_resolve_placeholders": {"template": "{}", **execution},
        "wf_try_task_result_code": {**execution, "task_key": "a"},
        "wf_reclaim_expired_leases": {"limit": "10"},
        "sp_register_worker": {
            "worker_id": "new",
            "worker_token": drive.TOKEN,
            "capabilities": "{t}",
            "max_concurrency": "1",
        },
        "sp_create_api_key": {
            "key": KEY,
            "name": "new",
            "roles": "{event_source,enroll}",
            "source": "s",
            "event_types": "{bell}",
            "capabilities": "{t}",
            "expires_at": "2027-01-01T00:00:00Z",
        },
        "sp_revoke_api_key": {"key_id": "badinput02"},
        "wf_api_key_authenticate": {"key": ENROLL_KEY},
        "sp_enroll_worker": {
            "key": ENROLL_KEY,
            "worker_id": "new",
            "worker_token": drive.TOKEN,
            "capabilities": "{t}",
            "max_concurrency": "1",
        },
        "sp_set_worker_token_expiry": {
            "worker_id": drive.WORKER,
            "expires_at": "2027-01-01T00:00:00Z",
            "token_id": None,
        },
        "sp_revoke_worker_token": {"worker_id": drive.WORKER, "token_id": None},
        "wf_worker_profile": worker,
        "wf_claimable_capabilities": {},
        "wf_queue_depth": {},
        "sp_set_worker_state": {"worker_id": drive.WORKER, "desired_state": "DRAINING"},
        "sp_cancel_workflow_instance": {**running, "reason": "r"},
        "sp_pause_workflow_instance": running,
        "sp_resume_workflow_instance": running,
        "sp_retry_failed_node": {"workflow_instance_id": str(world.failed)},
        "sp_release_affinity": {**running, "affinity_key": "x"},
        "sp_purge_instances": {"ended_before": "2027-01-01", "limit": "10"},
        "sp_delete_workflow_def": {
            "name": "w",
            "end_running": "true",
            "delete_history": "true",
        },
        "sp_tick": {},
        "wf_repo_create_workflow_graph": {
            "spec": world.graph,
            "activate": "true",
            "update_actions": "false",
        },
        "wf_repo_set_instance_status": {**running, "status": "PAUSED"},
        "wf_repo_insert_node_execution": {
            "workflow_instance_id": str(world.created),
            "parent_execution_id": "0",
            "node_key": "w",
            "iteration_no": "0",
        },
        "wf_repo_update_node_execution_status": {
            **task,
            "status": "FAILED",
            "result_code": "-5",
            "output_json": "{}",
            "message": "m",
        },
        "wf_repo_insert_loop_state": {
            "node_execution_id": str(world.repeat_execution),
            "total_count": "3",
        },
        "wf_repo_set_scope_variable": {**task, "name": "v", "value_json": "1"},
        "wf_repo_try_latest_task_result_code": {**running, "node_key": "a"},
        "wf_repo_upsert_workflow_action": {
            "action_name": "t.new",
            "capability": "t",
            "dispatch_json": "{}",
        },
        "wf_repo_upsert_action_schema": {"action_name": "t.do", "schema_json": "{}"},
        "wf_repo_get_action_schema": {"action_name": "t.do", "revision": "none"},
        "wf_repo_list_actions": {},
        "wf_runtime_version": {},
        "wf_database_id": {},
        "wf_require_runtime": {"version": "1"},
        "wf_now": {},
        "wf_execution_path": execution,
        "wf_mask_sensitive": {"value": "{}", "pointers": '["/output/a"]', "part": "output"},
        "wf_repo_upsert_instance_extension": {**running, "name": "x", "value_json": "1"},
        "wf_repo_get_instance_extension": {**running, "name": "x"},
        "wf_repo_get_action_submit_context": task,
        "wf_repo_upsert_execution_scope_action_entry": {
            "execution_scope_id": str(world.execution_scope),
            **task,
            "action_name": "t.do",
            "result_code": "0",
            "output_json": "{}",
        },
        "sync_execution_scope_action_entry_after_submit": task,
        "wf_apply_execution_scope": {
            "workflow_instance_id": str(world.created),
            "name": "other",
            "parameters_json": "{}",
        },
        "wf_apply_validation_plan": {**running, "plan_json": '{"variables": {}}'},
        "wf_foreach_caas_try_skip_body": {
            "node_execution_id": str(world.repeat_execution),
            "from": "0",
            "slots": "1",
            "now": "2026-01-01T00:00:00Z",
        },
        "wf_canonical_json": {"value": "{}", "is_exact": "false"},
        "sp_purge_bundles": {
            "created_before": "2027-01-01",
            "workflow_name": "w",
            "limit": "10",
        },
        "sp_purge_events": {"limit": "10"},
        "wf_repo_upsert_event_type": {"event_type": "bell", "keep_for_seconds": "60"},
        "sp_test_bed_run_workflow": {
            "workflow_name": "w",
            "context_json": "{}",
            "script_json": "{}",
            "workflow_version": "1",
        },
    }


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def document(size: int) -> str:
    """An object of at least `size` bytes that does not compress away."""
    # jsonb keeps texts as they are; pg_column_size of a value that is not stored is its plain size.
    return '{"text": "' + "x" * size + '"}'


BY_TYPE: dict[str, dict[str, str]] = {
    "text": {"empty": "", "long": "k" * 201, "control": "a\x01b", "unknown": "nobody"},
    "integer": {"not_a_number": "x", "negative": "-1", "zero": "0", "huge": str(2**31)},
    "bigint": {"not_a_number": "x", "negative": "-1", "unknown": str(UNKNOWN_ID), "huge": "1e30"},
    "boolean": {"not_a_boolean": "perhaps"},
    "timestamp": {"not_a_time": "yesterday-ish"},
    "text_list": {"no_list": "t", "empty_element": '{""}', "null_element": "{null}"},
    "json": {
        "no_json": "{",
        "no_object": "[1]",
        "nul": '{"a": "\\u0000"}',
        "surrogate": '{"a": "\\ud800"}',
        "deep": '{"a": ' + nested(101) + "}",
        "large": document(17 * 1024 * 1024),
    },
}


def bad_values(world: World, routine: RoutineEntry) -> Iterator[tuple[str, str, str | None]]:
    """Every bad value of every parameter: its name, the kind of badness, the text."""
    for parameter in routine.parameters:
        yield parameter.name, "null", None
        for kind, text in BY_TYPE[str(parameter.type)].items():
            yield parameter.name, kind, text
        if parameter.name == "node_execution_id":
            yield parameter.name, "foreign", str(world.foreign_execution)
            yield parameter.name, "ended", str(world.ended_execution)
        if parameter.name == "workflow_instance_id":
            yield parameter.name, "ended", str(world.ended)
        if parameter.name == "worker_id":
            yield parameter.name, "expired", "late"
        if parameter.name == "lease_token":
            yield parameter.name, "wrong", str(world.lease_token + 1)


def call(
    connection: psycopg.Connection[Any], routine: RoutineEntry, given: dict[str, Any]
) -> list[tuple[Any, ...]]:
    """Calls a routine by names, each argument a text that the database casts."""
    types = {
        "bigint": "bigint",
        "boolean": "boolean",
        "integer": "integer",
        "json": "jsonb",
        "text": "text",
        "text_list": "text[]",
        "timestamp": "timestamptz",
    }
    kinds = {parameter.name: types[str(parameter.type)] for parameter in routine.parameters}
    values = list(given.values())
    if is_sql_server(connection):
        values = [_in_json(v) if kinds[name] == "text[]" else v for name, v in given.items()]
        arguments = ", ".join(f"p_{name} => %s" for name in given)
    else:
        arguments = ", ".join(f"p_{name} => %s::text::{kinds[name]}" for name in given)
    query = f"select * from wf.{routine.name}({arguments})"
    return connection.execute(query.encode(), values).fetchall()


def is_sql_server(connection: Any) -> bool:
    return isinstance(connection, TsqlConnection)


def is_in_transaction(connection: psycopg.Connection[Any]) -> bool:
    if isinstance(connection, TsqlConnection):
        return bool(connection.rows("select @@trancount;")[0][0])
    return connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE


def _in_json(value: str | None) -> str | None:
    """A list as SQL Server takes it, of an array as PostgreSQL writes it; another text as it is."""
    if value is None or not value.startswith("{"):
        return value
    words = {"null": "null", '""': '""'}
    return "[" + ",".join(words.get(w, f'"{w}"') for w in value[1:-1].split(",")) + "]"


def dump(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """What every table of schema wf holds, as a digest by table."""
    if isinstance(connection, TsqlConnection):
        return _dump_of_sql_server(connection)
    tables = connection.execute(
        "select tablename from pg_tables where schemaname = 'wf' order by 1"
    ).fetchall()
    query = " union all ".join(
        f"select '{name}', md5(coalesce(string_agg(t::text, ';' order by t::text), ''))"
        f" from wf.{name} t"
        for (name,) in tables
    )
    return dict(connection.execute(query.encode()).fetchall())


def _dump_of_sql_server(connection: TsqlConnection) -> dict[str, str]:
    columns = connection.rows(
        "select t.name, c.name, type_name(c.user_type_id) from sys.tables as t"
        " join sys.columns as c on c.object_id = t.object_id"
        " where t.schema_id = schema_id(N'wf') order by t.name, c.column_id;"
    )
    lists: dict[str, list[str]] = {}
    for table, column, kind in columns:
        # FOR JSON takes no binary.
        is_binary = str(kind).endswith("binary")
        read = f"convert(varchar(200), t.[{column}], 2)" if is_binary else f"t.[{column}]"
        lists.setdefault(table, []).append(f"{read} as [{column}]")
    rows = connection.rows(
        " union all ".join(
            f"select N'{table}', (select {', '.join(listed)} from wf.{table} as t for json path)"
            for table, listed in lists.items()
        )
    )
    return {name: _digest(text or "[]") for name, text in rows}


def _digest(rows: str) -> str:
    """A digest of the rows that a JSON text holds, in whatever order they came."""
    lines = sorted(json.dumps(row, sort_keys=True) for row in json.loads(rows))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()

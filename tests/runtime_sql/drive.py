"""Runs one workflow with scripted results, on the local runner and inside PostgreSQL.

Both are driven alike (ruling R12): one worker claims one task, best first, and submits its result
before it claims the next; the clock stands still and moves to the next due time only when nothing
can be claimed. So the two traces must be equal. A scripted code of None never submits: the action
hangs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from compiler import json_values
from compiler.pipeline import compile_file
from compiler.spec import GraphSpec
from emit_mssql.emitter import emit as emit_mssql
from emit_pg.emitter import emit
from local_runner.commands import CancelAction, Command, RunAction
from local_runner.machine import Machine
from local_runner.trace import trace_document
from runtime_sql.mssql_url import is_mssql
from tests.runtime_sql.tsql import TsqlConnection

Result = tuple[int | None, Any] | tuple[int | None, Any, str]
Script = Callable[[str, dict[str, Any]], Result]

TOKEN = "wf_driver_0123456789012345678901234567890123456789abc"
WORKER = "driver"

CATALOG = """
actions:
  - name: t.do
    capability: t
    result_codes: {0: ok, 1: short, 2: long}
"""


def compile_text(folder: Path, text: str, catalog: str = CATALOG) -> GraphSpec:
    """Compiles one workflow; any finding that is an error fails the test."""
    (folder / "w.actions.yaml").write_text(catalog, encoding="utf-8")
    source = folder / "w.wf"
    source.write_text(textwrap.dedent(text), encoding="utf-8")
    result = compile_file(source)
    errors = [d for d in result.diagnostics if d.severity == "error"]
    assert not errors, [(d.code, d.message, d.source.position(d.span.start)) for d in errors]
    return result.specs[0]


@dataclass
class Scripted:
    """Results by node key: a list is used up by visits, its last entry repeats."""

    results: dict[str, list[Result]] = field(default_factory=dict)
    visits: dict[str, int] = field(default_factory=dict)

    def __call__(self, node_key: str, given: dict[str, Any]) -> Result:
        listed = self.results.get(node_key)
        if listed is None:
            return 0, {"echo": given}
        visit = self.visits.get(node_key, 0)
        self.visits[node_key] = visit + 1
        return listed[min(visit, len(listed) - 1)]


def run_local(spec: GraphSpec, context: dict[str, Any], script: Script) -> dict[str, Any]:
    """Runs in process and answers the trace document."""
    machine = Machine(spec, "1", context)
    now_ms = 0
    open_tasks: dict[int, RunAction] = {}

    def take(commands: tuple[Command, ...]) -> None:
        for command in commands:
            if isinstance(command, RunAction):
                open_tasks[command.execution_id] = command
            elif isinstance(command, CancelAction):
                open_tasks.pop(command.execution_id, None)

    take(machine.start(now_ms))
    while True:
        ready = [t for t in open_tasks.values() if t.available_ms <= now_ms]
        if ready:
            task = min(ready, key=lambda t: t.claim_key)
            del open_tasks[task.execution_id]
            machine.begin(task.execution_id, now_ms)
            code, output, *message = script(task.node_key, task.input)
            if code is not None:
                text = message[0] if message else None
                take(machine.complete(task.execution_id, code, output, text, now_ms))
            continue
        due = machine.next_due()
        if due is None:
            return trace_document(machine)
        now_ms = max(now_ms, due)
        take(machine.advance(now_ms))


def deploy(connection: psycopg.Connection[Any], spec: GraphSpec) -> None:
    if isinstance(connection, TsqlConnection):
        connection.run_script(emit_mssql(spec))
    else:
        connection.execute(emit(spec).encode())


def connect(url: str) -> psycopg.Connection[Any]:
    """A connection in autocommit, with JSON as exact values and a registered worker.

    To a SQL Server it is a `TsqlConnection`, which is as much of psycopg's as tests use.
    """
    connection: Any
    if is_mssql(url):
        connection = TsqlConnection(url)
    else:
        from psycopg.types.json import set_json_dumps, set_json_loads

        connection = psycopg.connect(url, autocommit=True)
        set_json_loads(lambda text: json_values.read_stored(bytes(text).decode()), connection)
        set_json_dumps(json_values.dumps, connection)
    connection.execute("select wf.sp_register_worker(%s, %s, array['*'])", (WORKER, TOKEN))
    return connection  # type: ignore[no-any-return]


def json(value: Any) -> Any:
    from psycopg.types.json import Jsonb

    return Jsonb(value, dumps=json_values.dumps)


def start(connection: psycopg.Connection[Any], name: str, context: dict[str, Any]) -> int:
    row = connection.execute(
        "select workflow_instance_id from wf.wf_repo_create_workflow_instance(%s, %s)",
        (name, json(context)),
    ).fetchone()
    assert row is not None
    connection.execute("select * from wf.sp_start_workflow_instance(%s)", (row[0],))
    return int(row[0])


def claim(connection: psycopg.Connection[Any], **more: Any) -> dict[str, Any] | None:
    """Claims one task as the driver's worker; None when there is none."""
    with connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        cursor.execute(
            "select * from wf.sp_worker_request_task(%s, %s, null, %s)",
            (WORKER, TOKEN, more.get("lease_seconds", 300)),
        )
        row = cursor.fetchone()
    assert row is not None
    return None if row["node_execution_id"] is None else row


def submit(
    connection: psycopg.Connection[Any],
    task: dict[str, Any],
    code: int,
    output: Any = None,
    message: str | None = None,
) -> dict[str, Any]:
    """Submits the result of a claimed task and answers the row."""
    with connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        cursor.execute(
            "select * from wf.sp_worker_submit_result(%s, %s, %s, %s, %s, %s, %s)",
            (
                task["node_execution_id"],
                WORKER,
                TOKEN,
                code,
                json(output),
                task["lease_token"],
                message,
            ),
        )
        row = cursor.fetchone()
    assert row is not None
    return row


def drain(connection: psycopg.Connection[Any], script: Script) -> None:
    """Claims and submits until nothing can be claimed and nothing is due later."""
    while True:
        task = claim(connection)
        if task is not None:
            code, output, *message = script(task["node_key"], task["input_json"])
            if code is not None:
                submit(connection, task, code, output, *message)
        elif not move_clock_to_next_due(connection):
            return


def stop_clock(connection: psycopg.Connection[Any]) -> None:
    if isinstance(connection, TsqlConnection):
        connection.rows(
            "insert into wf.wf_setting (name, value) select N'now', wf.wf_time_text(wf.wf_now())"
            " where not exists (select 1 from wf.wf_setting as s where s.name = N'now');"
        )
        return
    connection.execute(
        "insert into wf.wf_setting (name, value) values ('now', wf.wf_now()::text)"
        " on conflict (name) do nothing"
    )


def move_clock(connection: psycopg.Connection[Any], seconds: float) -> None:
    """Moves the clock on; it stands still from then."""
    if isinstance(connection, TsqlConnection):
        stop_clock(connection)
        connection.rows(
            "update wf.wf_setting set value = wf.wf_time_text(wf.wf_add_ms(wf.wf_now(), %s))"
            " where name = N'now';",
            int(seconds * 1000),
        )
        return
    connection.execute(
        "insert into wf.wf_setting (name, value)"
        " values ('now', (wf.wf_now() + make_interval(secs => %s))::text)"
        " on conflict (name) do update set value = excluded.value",
        (seconds,),
    )


def move_clock_to_next_due(connection: psycopg.Connection[Any]) -> bool:
    """Moves the stopped clock to the next deadline, delay or timer; False when there is none."""
    if isinstance(connection, TsqlConnection):
        moved = connection.rows(
            "declare @v_due datetime2(3) = (select min(d.due_at) from ("
            "select t.due_at from wf.timer as t"
            " union all select k.deadline_at from wf.task as k"
            " union all select k.available_at from wf.task as k where k.is_claimable = 0) as d);"
            " if @v_due is not null update wf.wf_setting set value = wf.wf_time_text(@v_due)"
            "  where name = N'now'; select @v_due;"
        )
        if moved == [(None,)]:
            return False
        connection.execute("select wf.sp_tick()")
        return True
    row = connection.execute(
        "update wf.wf_setting s set value = q.due_at::text"
        " from (select min(due_at) as due_at from ("
        "select t.due_at from wf.timer t"
        " union all select k.deadline_at from wf.task k where k.deadline_at is not null"
        " union all select k.available_at from wf.task k where not k.is_claimable) d) q"
        " where s.name = 'now' and q.due_at is not null returning 1"
    ).fetchone()
    if row is None:
        return False
    connection.execute("select wf.sp_tick()")
    return True


def trace(connection: psycopg.Connection[Any], instance_id: int) -> dict[str, Any]:
    row = connection.execute("select wf.wf_trace_instance(%s)", (instance_id,)).fetchone()
    assert row is not None
    return dict(row[0])


def run_pg(
    connection: psycopg.Connection[Any], spec: GraphSpec, context: dict[str, Any], script: Script
) -> dict[str, Any]:
    """Deploys, runs with one worker, and answers the trace document."""
    deploy(connection, spec)
    stop_clock(connection)
    instance_id = start(connection, spec.name, context)
    drain(connection, script)
    return trace(connection, instance_id)


def readable(document: dict[str, Any]) -> list[str]:
    """A trace document as lines that a diff can show: numbers in normal form, keys sorted."""
    return json_values.dumps(document, indent=1, sort_keys=True).splitlines()

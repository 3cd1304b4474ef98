"""A durable server of this run, a backend whose work is counted, and a table made large.

A call is measured by what its backend touched and by its processor time: the time on the clock says
little on a machine where something else runs.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.measure import BenchmarkError
from compiler.pipeline import compile_text
from emit_pg.emitter import emit
from runtime_sql.installer import Installed, install
from wfsql.embedded import EmbeddedServer

CATALOG = "actions: [{name: t.do, capability: t}]"
WORKER, TOKEN = "bench", "wf_bench_0123456789012345678901234567890123456789abcd"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """One call: 8 kB pages touched, milliseconds of the backend on the clock."""

    buffers: int
    milliseconds: float


class Backend:
    """One connection, and what its backend does."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.execute("select wf.sp_register_worker(%s, %s, array['*'])", WORKER, TOKEN)
        self._pid = self.connection.info.backend_pid

    def execute(self, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement.encode(), arguments)
        return cursor.fetchall() if cursor.description else []

    def deploy(self, text: str) -> None:
        folder = Path(tempfile.mkdtemp())
        (folder / "bench.actions.yaml").write_text(CATALOG, encoding="utf-8")
        result = compile_text(text, "bench.wf", [folder / "bench.actions.yaml"])
        shutil.rmtree(folder)
        for spec in result.specs:
            self.execute(emit(spec))

    def start(self, name: str, context: dict[str, Any]) -> int:
        ((instance, _version, _new),) = self.execute(
            "select * from wf.wf_repo_create_workflow_instance(%s, %s)", name, json.dumps(context)
        )
        self.execute("select * from wf.sp_start_workflow_instance(%s)", instance)
        return int(instance)

    def claim(self) -> tuple[int, int]:
        """Claims one task; its execution and lease token."""
        ((execution, token),) = self.execute(
            "select node_execution_id, lease_token from wf.sp_worker_request_task(%s, %s)",
            WORKER,
            TOKEN,
        )
        if execution is None:
            raise BenchmarkError("there was nothing to claim")
        return execution, token

    def submit(self, execution: int, token: int) -> None:
        self.execute(
            "select wf.sp_worker_submit_result(%s, %s, %s, 0, '{}', %s)",
            execution,
            WORKER,
            TOKEN,
            token,
        )

    def explained(self, statement: str, *arguments: Any) -> Cost:
        """Runs a statement and counts what it touched."""
        ((plan,),) = self.execute(
            f"explain (analyze, buffers, timing off, format json) {statement}", *arguments
        )
        top = plan[0]
        pages = top["Plan"]["Shared Hit Blocks"] + top["Plan"]["Shared Read Blocks"]
        return Cost(buffers=pages, milliseconds=top["Execution Time"])

    def cpu_seconds(self) -> float:
        """Processor time of the backend so far; Linux alone says it."""
        fields = Path(f"/proc/{self._pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / _TICKS


@contextmanager
def fresh_database() -> Iterator[tuple[str, dict[str, str]]]:
    """A database with the runtime in a server of its own that forces what it writes to disk."""
    folder = Path(tempfile.mkdtemp(prefix="wfsql-bench-"))
    (folder / "pg").mkdir()
    server = EmbeddedServer.start(folder / "pg")
    try:
        url = server.create_database("bench")
        installed = install(url)
        if not isinstance(installed, Installed):
            raise BenchmarkError(f"the runtime was not installed: {installed}")
        with psycopg.connect(url) as connection:
            settings = {
                name: str(connection.execute(f"show {name}".encode()).fetchone()[0])  # type: ignore[index]
                for name in ("server_version", "fsync", "synchronous_commit", "shared_buffers")
            }
        yield url, settings
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def fill(backend: Backend, name: str, ready: int, ended: int) -> None:
    """Copies the last instance of workflow `name`, one ACTION that is READY, `ready` times, and
    `ended` times as one that has succeeded; then vacuums."""
    for count, status in ((ready, "READY"), (ended, "SUCCEEDED")):
        if count > 0:
            _copy(backend, name, count, status)
    backend.execute("vacuum analyze")


def _copy(backend: Backend, name: str, count: int, status: str) -> None:
    ((instance,),) = backend.execute(
        "select max(i.workflow_instance_id) from wf.workflow_instance i"
        " join wf.workflow_def d using (workflow_def_id)"
        " where d.name = %s and i.status = 'RUNNING'",
        name,
    )
    ended = status == "SUCCEEDED"
    last = "(select coalesce(max(workflow_instance_id), 0) from wf.workflow_instance)"
    backend.execute(
        "create temp table made as select row_number() over () as n, "
        f"{last} + row_number() over () as instance_id,"
        " nextval('wf.node_execution_id_seq') as root_id,"
        " nextval('wf.node_execution_id_seq') as action_id"
        f" from generate_series(1, {count})"
    )
    _insert(
        backend,
        "workflow_instance",
        "workflow_instance i",
        {
            "workflow_instance_id": "m.instance_id",
            "root_execution_id": "m.root_id",
            "status": "'SUCCEEDED'" if ended else "i.status",
            "ended_at": "wf.wf_now()" if ended else "null",
            "business_key": "null",
        },
        f"i.workflow_instance_id = {instance}",
        overriding=True,
    )
    is_root = "e.parent_execution_id = 0"
    _insert(
        backend,
        "node_execution",
        "node_execution e",
        {
            "node_execution_id": f"case when {is_root} then m.root_id else m.action_id end",
            "workflow_instance_id": "m.instance_id",
            "parent_execution_id": f"case when {is_root} then 0 else m.root_id end",
            "scope_id": "m.root_id",
            "status": f"'{status}'" if ended else "e.status",
            "ended_at": "wf.wf_now()" if ended else "null",
        },
        f"e.workflow_instance_id = {instance}",
    )
    _insert(
        backend,
        "scope",
        "scope s",
        {"scope_id": "m.root_id", "workflow_instance_id": "m.instance_id"},
        f"s.workflow_instance_id = {instance}",
    )
    if not ended:
        _insert(
            backend,
            "task",
            "task t",
            {"node_execution_id": "m.action_id", "workflow_instance_id": "m.instance_id"},
            f"t.workflow_instance_id = {instance}",
        )
    backend.execute("drop table made")
    backend.execute(
        "select setval(pg_get_serial_sequence('wf.workflow_instance', 'workflow_instance_id'),"
        f" {last})"
    )


def _insert(
    backend: Backend,
    table: str,
    source: str,
    changed: dict[str, str],
    where: str,
    *,
    overriding: bool = False,
) -> None:
    """Copies one instance's rows of a table for each row of `made`, some columns changed."""
    alias = source.split()[1]
    columns = [
        column
        for (column,) in backend.execute(
            "select attname from pg_attribute where attrelid = %s::regclass"
            " and attnum > 0 and not attisdropped and attgenerated = ''",
            f"wf.{table}",
        )
    ]
    values = [changed.get(column, f"{alias}.{column}") for column in columns]
    backend.execute(
        f"insert into wf.{table} ({', '.join(columns)})"
        f"{' overriding system value' if overriding else ''}"
        f" select {', '.join(values)} from wf.{source} cross join made m where {where}"
        " order by m.n"
    )

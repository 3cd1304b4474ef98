"""Cases inside PostgreSQL: a scratch database with the runtime, driven through the worker API.

The database is made on the server that a URL names, or on an embedded one, and dropped at the end.
Its clock is the row `now` of wf.wf_setting, which a session sets at its start and moves itself.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from compiler import json_values
from runtime_sql.connection import PostgresClient, Task, connect_driver
from runtime_sql.failures import ApiError, DatabaseProblem, Failure
from wfsql.testing.cases import POSTGRES
from wfsql.testing.engines import (
    STARTS_AT,
    ClaimedTask,
    EngineProblem,
    ExecutionInfo,
    NotStarted,
    Remains,
    Session,
    without_id,
)
from wfsql.testing.graph_index import GraphIndex

if TYPE_CHECKING:
    import psycopg

    from compiler.spec import GraphSpec
    from wfsql.testing.cases import SendEvent

T = TypeVar("T")

_WORKER = "wftest"
_TOKEN = "wf_wftest_0123456789012345678901234567890123456789abc"
_LEASE_SECONDS = 86_400
_CONCURRENCY = 1_000
_FIRST_INSTANCE_ID = 7_300_000_001
_INPUT_MISFIT = 10015
_names = count(1)


class PostgresEngine:
    """Runs cases in one database that has the runtime and nothing that anybody would miss."""

    name = POSTGRES

    def __init__(self, url: str) -> None:
        """Raises EngineProblem when the database cannot be used."""
        opened = connect_driver(url)
        if isinstance(opened, DatabaseProblem):
            raise EngineProblem(opened.message, opened.hint)
        self._connection: psycopg.Connection[Any] = opened
        self._client = PostgresClient(opened)
        self._deployed: dict[str, str] = {}
        self._numbers = count(1)
        self._connection.execute(
            "insert into wf.wf_setting (name, value) values ('now', %s)"
            " on conflict (name) do update set value = excluded.value",
            (STARTS_AT,),
        )
        # The trace masks texts that equal the instance's id, so ids must not look like test data.
        self._connection.execute(
            "alter table wf.workflow_instance alter workflow_instance_id"
            f" restart with {_FIRST_INSTANCE_ID}".encode()
        )
        _good(self._client.register_worker(_WORKER, _TOKEN, ["*"], _CONCURRENCY))

    def start(self, spec: GraphSpec, context: Any) -> Session | NotStarted:
        self._deploy(spec)
        # Events of an earlier instance came before this one began, and the clock has to say so.
        _move_clock(self._connection, 1)
        created = _good(self._client.create_instance(spec.name, json_values.dumps(context)))
        started = self._client.start_instance(created.instance_id)
        if isinstance(started, ApiError) and 10000 < started.code < 20000:
            return NotStarted("CREATED", started.code, started.message)
        _good(started)
        return PostgresSession(
            self._client, self._connection, created.instance_id, GraphIndex(spec), self._numbers
        )

    def forget_bundles(self) -> None:
        self._connection.execute("delete from wf.foreach_bundle_entry")

    def close(self) -> None:
        self._client.close()

    def _deploy(self, spec: GraphSpec) -> None:
        content = spec.content_hash()
        if self._deployed.get(spec.name) == content:
            return
        from emit_pg.emitter import emit

        failure = self._client.run_script(emit(spec, update_actions=True))
        if failure is not None:
            raise EngineProblem(f"workflow {spec.name} cannot be deployed: {failure.message}")
        self._deployed[spec.name] = content


class PostgresSession:
    """One instance. Its tasks are the only ones there are to claim: the last one has ended or
    was cancelled before it began."""

    def __init__(
        self,
        client: PostgresClient,
        connection: psycopg.Connection[Any],
        instance_id: int,
        index: GraphIndex,
        numbers: count[int],
    ) -> None:
        self._client = client
        self._connection = connection
        self._instance_id = instance_id
        self._index = index
        self._numbers = numbers
        self._seen_waits: set[int] = set()

    def claim(self) -> ClaimedTask | None:
        claimed = _good(self._client.request_tasks(_WORKER, _TOKEN, None, _LEASE_SECONDS, 1))
        for task in claimed.tasks:
            if task.instance_id != self._instance_id:
                # An event of this case has started it; nobody has scripted its actions.
                raise EngineProblem(
                    f"an action of another instance was claimed: {task.path}",
                    "a case plays one instance; take the `start` subscription away",
                )
            return ClaimedTask(
                task.execution_id,
                task.node_key,
                task.path,
                json_values.read_stored(task.input_json),
                task,
            )
        return None

    def submit(self, task: ClaimedTask, code: int, output: Any, message: str | None) -> None:
        handle: Task = task.handle
        _good(
            self._client.submit_result(
                handle, _WORKER, _TOKEN, code, json_values.dumps(output), message
            )
        )

    def send(self, event: SendEvent) -> int:
        key = event.idempotency_key or f"{self._instance_id}-{next(self._numbers)}"
        ingested = _good(
            self._client.ingest_event(
                event.type,
                event.source,
                key,
                json_values.dumps(event.payload),
                event.correlation_key,
            )
        )
        return ingested.applied_count

    def waiting_keys(self) -> frozenset[str]:
        return frozenset(key for _, key, status in self._waits() if status in ("READY", "RUNNING"))

    def completed_waits(self) -> tuple[str, ...]:
        if not self._index.has_waits:
            return ()
        ended = [
            (execution_id, key)
            for execution_id, key, status in self._waits()
            if status in ("SUCCEEDED", "FAILED") and execution_id not in self._seen_waits
        ]
        self._seen_waits.update(execution_id for execution_id, _ in ended)
        return tuple(key for _, key in ended)

    def _waits(self) -> list[tuple[int, str, str]]:
        return self._connection.execute(
            "select e.node_execution_id, n.node_key, e.status from wf.node_execution as e"
            " join wf.workflow_node as n on n.node_id = e.node_id"
            " where e.workflow_instance_id = %s and n.node_type = 'WAIT_EVENT'"
            " order by e.node_execution_id",
            (self._instance_id,),
        ).fetchall()

    def advance_clock(self, milliseconds: int) -> None:
        _move_clock(self._connection, milliseconds)
        _good(self._client.tick())

    def advance_to_next_due(self) -> bool:
        row = self._connection.execute(
            "select min(d.due_at) from ("
            "select t.workflow_instance_id, t.available_at as due_at from wf.task as t"
            " where not t.is_claimable"
            " union all select t.workflow_instance_id, t.deadline_at from wf.task as t"
            " union all select r.workflow_instance_id, r.due_at from wf.timer as r) as d"
            " where d.workflow_instance_id = %s",
            (self._instance_id,),
        ).fetchone()
        if row is None or row[0] is None:
            return False
        _set_clock(self._connection, row[0])
        _good(self._client.tick())
        return True

    def remains(self) -> Remains:
        rows = self._connection.execute(
            "select e.node_execution_id, e.parent_execution_id, n.node_key, e.status"
            " from wf.node_execution as e join wf.workflow_node as n on n.node_id = e.node_id"
            " where e.workflow_instance_id = %s order by e.node_execution_id",
            (self._instance_id,),
        ).fetchall()
        trace = json_values.read_stored(_good(self._client.trace(self._instance_id)))
        return Remains(
            without_id(trace, str(self._instance_id)), tuple(ExecutionInfo(*row) for row in rows)
        )

    def abandon(self) -> None:
        """Takes away what could still be claimed or woken; nobody will look at the rest."""
        for table in ("task", "event_wait"):
            self._connection.execute(
                f"delete from wf.{table} where workflow_instance_id = %s".encode(),
                (self._instance_id,),
            )


def _move_clock(connection: psycopg.Connection[Any], milliseconds: int) -> None:
    row = connection.execute("select wf.wf_now()").fetchone()
    now: datetime = row[0] if row is not None else datetime.fromisoformat(STARTS_AT)
    _set_clock(connection, now + timedelta(milliseconds=milliseconds))


def _set_clock(connection: psycopg.Connection[Any], at: datetime) -> None:
    connection.execute("update wf.wf_setting set value = %s where name = 'now'", (at.isoformat(),))


def _good(answer: T | Failure) -> T:
    if isinstance(answer, ApiError):
        raise EngineProblem(f"the database answered {answer.code}: {answer.message}")
    if isinstance(answer, DatabaseProblem):
        raise EngineProblem(answer.message, answer.hint)
    return answer


class ScratchPostgres(PostgresEngine):
    """A `PostgresEngine` with a database of its own, which goes when the engine is closed."""

    def __init__(self, server_url: str | None) -> None:
        """Makes the database on the server named, or on an embedded one.

        Raises:
          EngineProblem: no server, or no right to make a database there.
        """
        self._folder: Path | None = None
        self._stop_server: Any = None
        self._server_url = server_url or self._start_embedded()
        self._database = f"wftest_{os.getpid()}_{next(_names)}"
        try:
            self._on_server(f'create database "{self._database}"')
            url = _with_database(self._server_url, self._database)
            _install(url)
            super().__init__(url)
        except BaseException:
            self._remove()
            raise

    def close(self) -> None:
        super().close()
        self._remove()

    def _start_embedded(self) -> str:
        from wfsql.embedded import EmbeddedServer, EmbeddedUnavailable

        self._folder = Path(tempfile.mkdtemp(prefix="wfsql-wftest-"))
        try:
            server = EmbeddedServer.start(self._folder / "pg", durable=False)
        except EmbeddedUnavailable as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise EngineProblem(str(error), "or name a server with --url") from error
        self._stop_server = server.stop
        return server.url()

    def _on_server(self, statement: str) -> None:
        import psycopg

        opened = connect_driver(self._server_url)
        if isinstance(opened, DatabaseProblem):
            raise EngineProblem(opened.message, opened.hint)
        with opened:
            try:
                opened.execute(statement.encode())
            except psycopg.Error as error:
                reason = str(error).splitlines()[0]
                raise EngineProblem(
                    f"no scratch database could be made: {reason}",
                    "the login needs the right to create databases",
                ) from error

    def _remove(self) -> None:
        with suppress(EngineProblem):  # the server may have gone, and the database with it
            self._on_server(f'drop database if exists "{self._database}" with (force)')
        if self._stop_server is not None:
            self._stop_server()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _install(url: str) -> None:
    from runtime_sql.installer import install

    # A scratch database needs no roles, so that a login which may only make databases is enough.
    _good(install(url, roles=False, test=True))


def _with_database(url: str, name: str) -> str:
    """Returns the URL of another database on the same server."""
    if "://" not in url:
        return f"{url} dbname={name}"
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"/{name}"))

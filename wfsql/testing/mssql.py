"""Cases inside SQL Server: a scratch database with the runtime, driven through the worker API.

The database is made on the server that a URL names and dropped at the end. Its clock is the row
`now` of wf.wf_setting, which a session sets at its start and moves itself, as in PostgreSQL.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from compiler import json_values
from runtime_sql.connection import Task
from runtime_sql.failures import ApiError, DatabaseProblem, Failure
from runtime_sql.mssql_client import MssqlClient
from runtime_sql.mssql_driver import MssqlConnection, MssqlError, connect_mssql
from runtime_sql.mssql_failures import from_mssql_error
from runtime_sql.mssql_url import read_url
from wfsql.testing.cases import MSSQL
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
    from compiler.spec import GraphSpec
    from wfsql.testing.cases import SendEvent
    from wfsql.testing.engines import Engine

T = TypeVar("T")

URL_VARIABLE = "WF_MSSQL_URL"

_WORKER = "wftest"
_TOKEN = "wf_wftest_0123456789012345678901234567890123456789abc"
_LEASE_SECONDS = 86_400
_CONCURRENCY = 1_000
_FIRST_INSTANCE_ID = 7_300_000_001
_names = count(1)


class MssqlEngine:
    """Runs cases in one database that has the runtime and nothing that anybody would miss."""

    name = MSSQL

    def __init__(self, url: str) -> None:
        """Raises EngineProblem when the database cannot be used."""
        opened = connect_mssql(url)
        if isinstance(opened, DatabaseProblem):
            raise EngineProblem(opened.message, opened.hint)
        self._connection: MssqlConnection = opened
        self._client = MssqlClient(opened)
        self._deployed: dict[str, str] = {}
        self._numbers = count(1)
        for name, value in (("test_database", "true"), ("now", STARTS_AT)):
            self._connection.rows("delete from wf.wf_setting where name = %s", name)
            self._connection.rows(
                "insert into wf.wf_setting (name, value) values (%s, %s)", name, value
            )
        # The trace masks texts that equal the instance's id, so ids must not look like test data.
        [(last_id,)] = self._connection.rows(
            "select max(i.workflow_instance_id) from wf.workflow_instance as i"
        )
        if last_id is None:
            self._connection.rows(
                f"dbcc checkident('wf.workflow_instance', reseed, {_FIRST_INSTANCE_ID});"
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
        return MssqlSession(
            self._client, self._connection, created.instance_id, GraphIndex(spec), self._numbers
        )

    def forget_bundles(self) -> None:
        self._connection.rows("delete from wf.foreach_bundle_entry")

    def close(self) -> None:
        self._client.close()

    def _deploy(self, spec: GraphSpec) -> None:
        content = spec.content_hash()
        if self._deployed.get(spec.name) == content:
            return
        from emit_mssql.emitter import emit

        failure = self._client.run_script(emit(spec, update_actions=True))
        if failure is not None:
            raise EngineProblem(f"workflow {spec.name} cannot be deployed: {failure.message}")
        self._deployed[spec.name] = content


class MssqlSession:
    """One instance. Its tasks are the only ones there are to claim: the last one has ended or
    was cancelled before it began."""

    def __init__(
        self,
        client: MssqlClient,
        connection: MssqlConnection,
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

    def _waits(self) -> list[tuple[Any, ...]]:
        return self._connection.rows(
            "select e.node_execution_id, n.node_key, e.status from wf.node_execution as e"
            " join wf.workflow_node as n on n.node_id = e.node_id"
            " where e.workflow_instance_id = %s and n.node_type = N'WAIT_EVENT'"
            " order by e.node_execution_id",
            self._instance_id,
        )

    def advance_clock(self, milliseconds: int) -> None:
        _move_clock(self._connection, milliseconds)
        _good(self._client.tick())

    def advance_to_next_due(self) -> bool:
        [(due_at,)] = self._connection.rows(
            "select min(d.due_at) from ("
            "select t.workflow_instance_id, t.available_at as due_at from wf.task as t"
            " where t.is_claimable = 0"
            " union all select t.workflow_instance_id, t.deadline_at from wf.task as t"
            " union all select r.workflow_instance_id, r.due_at from wf.timer as r) as d"
            " where d.workflow_instance_id = %s",
            self._instance_id,
        )
        if due_at is None:
            return False
        _set_clock(self._connection, due_at)
        _good(self._client.tick())
        return True

    def remains(self) -> Remains:
        rows = self._connection.rows(
            "select e.node_execution_id, e.parent_execution_id, n.node_key, e.status"
            " from wf.node_execution as e join wf.workflow_node as n on n.node_id = e.node_id"
            " where e.workflow_instance_id = %s order by e.node_execution_id",
            self._instance_id,
        )
        trace = json_values.read_stored(_good(self._client.trace(self._instance_id)))
        return Remains(
            without_id(trace, str(self._instance_id)), tuple(ExecutionInfo(*row) for row in rows)
        )

    def abandon(self) -> None:
        """Takes away what could still be claimed or woken; nobody will look at the rest."""
        for table in ("task", "event_wait"):
            self._connection.rows(
                f"delete from wf.{table} where workflow_instance_id = %s", self._instance_id
            )


def _move_clock(connection: MssqlConnection, milliseconds: int) -> None:
    [(now,)] = connection.rows("select wf.wf_now()")
    _set_clock(connection, now + timedelta(milliseconds=milliseconds))


def _set_clock(connection: MssqlConnection, at: datetime) -> None:
    text = at.replace(tzinfo=UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    connection.rows("update wf.wf_setting set value = %s where name = N'now'", f"{text}Z")


def _good(answer: T | Failure) -> T:
    if isinstance(answer, ApiError):
        raise EngineProblem(f"the database answered {answer.code}: {answer.message}")
    if isinstance(answer, DatabaseProblem):
        raise EngineProblem(answer.message, answer.hint)
    return answer


class ScratchMssql(MssqlEngine):
    """An `MssqlEngine` with a database of its own, which goes when the engine is closed."""

    def __init__(self, server_url: str) -> None:
        """Makes the database on the server named.

        Raises:
          EngineProblem: no server, or no right to make a database there.
        """
        self._server_url = server_url
        self._database = f"wftest_{os.getpid()}_{next(_names)}"
        try:
            self._on_server(f"create database [{self._database}];")
            url = with_database(server_url, self._database)
            _install(url)
            super().__init__(url)
        except BaseException:
            self._remove()
            raise

    def close(self) -> None:
        super().close()
        self._remove()

    def _on_server(self, statement: str) -> None:
        opened = connect_mssql(with_database(self._server_url, "master"))
        if isinstance(opened, DatabaseProblem):
            raise EngineProblem(opened.message, opened.hint)
        try:
            opened.rows(statement)
        except MssqlError as error:
            failure = from_mssql_error(error)
            if isinstance(failure, DatabaseProblem) and failure.kind == "unreachable":
                raise EngineProblem(failure.message, failure.hint) from error
            raise EngineProblem(
                f"no scratch database could be made: {error.message}",
                "the login needs the right to create databases",
            ) from error
        finally:
            opened.close()

    def _remove(self) -> None:
        with suppress(EngineProblem):  # the server may have gone, and the database with it
            self._on_server(f"drop database if exists [{self._database}];")


def _install(url: str) -> None:
    from runtime_sql.installer import install

    _good(install(url))


def with_database(url: str, name: str) -> str:
    """Returns the URL of another database on the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def open_mssql(url: str | None = None) -> Engine:
    """Opens the engine on the server named, or on that of the environment.

    Raises:
      EngineProblem: no server is named, or no scratch database can be made there.
    """
    named = url or os.environ.get(URL_VARIABLE)
    if not named:
        raise EngineProblem(
            "no SQL Server is named, so cases cannot run on one",
            f"name it with --url or {URL_VARIABLE}, as mssql://user@host:1433/database",
        )
    target = read_url(named)
    if isinstance(target, DatabaseProblem):
        raise EngineProblem(target.message, target.hint)
    return ScratchMssql(named)

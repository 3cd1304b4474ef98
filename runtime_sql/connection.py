"""One connection to a database with the runtime, as a small typed client.

Flow: `connect(url)` gives a `RuntimeClient` or a `Failure`; each method is one call of a routine of
schema `wf`, or a read of its views and tables, in its own transaction and returns a value or a
`Failure` (`create_and_start` is two calls in one transaction). JSON goes in and out as text,
so that numbers stay as they were written; who uses a client decides how to read it.

No session state is used (autocommit, nothing prepared, no `set`), so a pooler in transaction mode
may stand between. A client belongs to one thread.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from runtime_sql.failures import (
    NO_DRIVER,
    ApiError,
    DatabaseProblem,
    Failure,
    failures_as_values,
    first_line,
    unreachable,
)
from runtime_sql.mssql_url import is_mssql
from runtime_sql.operating import OperatorCalls, Rows, instance_conditions
from runtime_sql.operator_rows import InstanceFilter, OperatorClient

if TYPE_CHECKING:
    import psycopg

CONNECT_TIMEOUT_SECONDS = 10
# A server that a cut network hides is given up within half a minute, not within hours.
_KEEP_ALIVE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An action that this worker holds a lease on. `trace_parent`: the W3C context of its node."""

    execution_id: int
    instance_id: int
    node_key: str
    action: str
    capability: str
    attempt: int
    input_json: str
    iteration_no: int | None
    lease_token: int
    lease_until: datetime | None
    deadline: datetime | None
    path: str
    trace_parent: str | None = None


class Held(Protocol):
    """What a worker call needs to know of a task that is held: a `Task`, a `Lease`, a result."""

    @property
    def execution_id(self) -> int: ...

    @property
    def lease_token(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Lease:
    """A task that is held, for who knows no more of it."""

    execution_id: int
    lease_token: int


@dataclass(frozen=True, slots=True)
class SubmitItem:
    """One result of a batch."""

    execution_id: int
    lease_token: int
    code: int
    output_json: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to a request for tasks. `command` is NONE, DRAIN or STOP (R28)."""

    tasks: tuple[Task, ...]
    command: str


@dataclass(frozen=True, slots=True)
class Submitted:
    accepted: bool
    instance_status: str | None
    next_ready_count: int
    reason: str


@dataclass(frozen=True, slots=True)
class Heartbeat:
    rows_updated: int
    desired_state: str | None
    command: str


@dataclass(frozen=True, slots=True)
class Created:
    instance_id: int
    version_id: int
    created: bool


@dataclass(frozen=True, slots=True)
class CreatedGraph:
    definition_id: int
    version_id: int
    root_node_id: int
    name: str


@dataclass(frozen=True, slots=True)
class Started:
    status: str
    next_ready_count: int


@dataclass(frozen=True, slots=True)
class InputRow:
    """An input that a workflow declares; `required`: it has no default."""

    name: str
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    instance_id: int
    workflow: str
    version: int
    status: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    business_key: str | None
    output_json: str | None
    error_code: int | None
    engine_error_code: int | None
    error_message: str | None
    error_node: str | None
    error_path: str | None


@dataclass(frozen=True, slots=True)
class Ingested:
    """`differs`: of a duplicate, whether the first had another type, correlation key or payload."""

    event_id: int
    duplicate: bool
    applied_count: int
    ignored_count: int
    differs: bool = False


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    """One row of `wf.v_node_execution`, for people."""

    path: str
    type: str
    status: str
    started_at: datetime | None
    ended_at: datetime | None
    worker_id: str | None
    action: str | None
    attempt: int
    result_code: int | None
    engine_error_code: int | None
    message: str | None


class RuntimeClient(OperatorClient, Protocol):
    """What the command, the gateway and the worker need from a database, whatever its dialect."""

    def close(self) -> None: ...

    def register_worker(
        self, worker_id: str, token: str, capabilities: Sequence[str], max_concurrency: int
    ) -> Failure | None: ...

    def request_tasks(
        self, worker_id: str, token: str, capability: str | None, lease_seconds: int, max_tasks: int
    ) -> Claim | Failure: ...

    def submit_result(
        self,
        task: Held,
        worker_id: str,
        token: str,
        code: int,
        output_json: str | None,
        message: str | None,
    ) -> Submitted | Failure: ...

    def fail_task(
        self, task: Held, worker_id: str, token: str, code: int, message: str
    ) -> Failure | None: ...

    def release_task(self, task: Held, worker_id: str, token: str) -> Failure | None: ...

    def heartbeat(
        self, task: Held, worker_id: str, token: str, extend_seconds: int
    ) -> Heartbeat | Failure: ...

    def submit_results(
        self, worker_id: str, token: str, items: Sequence[SubmitItem]
    ) -> list[Submitted] | Failure: ...

    def record_scope_entries(self, execution_ids: Sequence[int]) -> Failure | None:
        """Writes down what these ACTIONs produced, where they ran under an execution scope.

        Called after a submit; the last failure comes back, the others are written all the same.
        """

    def tick(self) -> Failure | None: ...

    def dead_task_rows(self) -> int | Failure: ...

    def vacuum_tasks(self) -> Failure | None: ...

    def action_capabilities(self) -> dict[str, str] | Failure: ...

    def create_instance(
        self,
        workflow: str,
        context_json: str,
        *,
        version: int | None = None,
        business_key: str | None = None,
        priority: int = 0,
    ) -> Created | Failure: ...

    def start_instance(self, instance_id: int) -> Started | Failure: ...

    def create_and_start(
        self,
        workflow: str,
        context_json: str,
        *,
        version: int | None = None,
        business_key: str | None = None,
        priority: int = 0,
    ) -> Created | Failure: ...

    def inputs(self, workflow: str, version: int | None) -> list[InputRow] | Failure: ...

    def output_names(self, instance_id: int) -> list[str] | Failure: ...

    def waiting_capabilities(self, instance_id: int) -> list[str] | Failure: ...

    def get_instance(self, instance_id: int) -> Instance | Failure: ...

    def list_instances(self, wanted: InstanceFilter, limit: int) -> list[Instance] | Failure: ...

    def executions(self, instance_id: int) -> list[ExecutionRow] | Failure: ...

    def trace(self, instance_id: int) -> str | Failure: ...

    def ingest_event(
        self,
        event_type: str,
        source: str,
        idempotency_key: str,
        payload_json: str,
        correlation_key: str | None,
    ) -> Ingested | Failure: ...

    def event_types(self) -> list[str] | Failure: ...

    def deployed_version(self, workflow: str, content_hash: str) -> int | Failure | None: ...

    def create_graph(
        self, spec_json: str, *, activate: bool = True, update_actions: bool = False
    ) -> CreatedGraph | Failure: ...

    def run_script(self, text: str) -> Failure | None: ...

    def run_test_bed(
        self, workflow: str, context_json: str, script_json: str
    ) -> tuple[int, int, str, int, str | None] | Failure: ...


_TASK_COLUMNS = """node_execution_id, workflow_instance_id, node_key, action_name, capability,
    attempt_no, input_json::text, iteration_no, lease_token, lease_until_utc, deadline_utc, path,
    command"""
# The view names the node that failed, which wf_repo_get_workflow_instance does not.
_INSTANCES = """select i.workflow_instance_id, i.workflow_name, i.version_no, i.status,
    i.created_at, i.started_at, i.ended_at, i.business_key, {output}, i.error_code,
    i.engine_error_code, i.engine_error_message, i.error_node_key, i.error_path
    from wf.v_instance as i"""
_WITH_OUTPUT = _INSTANCES.format(output="i.output_json::text")
_WITHOUT_OUTPUT = _INSTANCES.format(output="null::text")
_CREATE = """select workflow_instance_id, workflow_version_id, created
    from wf.wf_repo_create_workflow_instance(%s, %s, %s, %s, %s)"""
_START = "select instance_status, next_ready_count from wf.sp_start_workflow_instance(%s)"
# What the compiler made for itself is left out, as in the trace.
_EXECUTIONS = """select e.path, e.node_type, e.status, e.started_at, e.ended_at, e.worker_id,
    e.action_name, e.attempt_no, e.result_code, e.engine_error_code, e.engine_error_message
    from wf.v_node_execution as e"""


def connect_driver(url: str) -> psycopg.Connection[Any] | DatabaseProblem:
    """Opens a plain driver connection: autocommit, UTF-8, nothing prepared."""
    try:
        import psycopg
    except ImportError:
        return NO_DRIVER

    if not url.startswith(("postgresql://", "postgres://")) and "=" not in url:
        return DatabaseProblem(
            "bad_url",
            "the URL is not one of a PostgreSQL database",
            "write it as postgresql://user:password@host:5432/database",
        )
    try:
        return psycopg.connect(
            url,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            client_encoding="UTF8",
            **({} if "keepalives" in url else _KEEP_ALIVE),
        )
    except psycopg.OperationalError as error:
        return unreachable(first_line(error))
    except (psycopg.ProgrammingError, UnicodeError) as error:
        return DatabaseProblem(
            "bad_url",
            f"the URL cannot be read: {first_line(error)}",
            "write it as postgresql://user:password@host:5432/database",
        )


def connect(url: str) -> RuntimeClient | Failure:
    """Connects and makes sure that the runtime there is the one this code speaks to.

    The URL's scheme says which kind of database it is.
    """
    if is_mssql(url):
        return _connect_mssql(url)
    from runtime_sql.installer import check_version

    connection = connect_driver(url)
    if isinstance(connection, DatabaseProblem):
        return connection
    problem = check_version(connection)
    if problem is not None:
        connection.close()
        return problem
    return PostgresClient(connection)


def _connect_mssql(url: str) -> RuntimeClient | Failure:
    from runtime_sql.mssql_client import MssqlClient
    from runtime_sql.mssql_driver import connect_mssql
    from runtime_sql.mssql_installer import check_mssql_version

    connection = connect_mssql(url)
    if isinstance(connection, DatabaseProblem):
        return connection
    problem = check_mssql_version(connection)
    if problem is not None:
        connection.close()
        return problem
    return MssqlClient(connection)


class PostgresClient(OperatorCalls):
    """The runtime in PostgreSQL, through psycopg 3."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def close(self) -> None:
        self._connection.close()

    def _rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, parameters).fetchall()

    @failures_as_values
    def _select(
        self, columns: str, source: str, where: str, order: str, limit: int, *parameters: object
    ) -> Rows:
        return self._rows(
            f"select {columns} from {source} where {where} order by {order} limit {int(limit)}",
            *parameters,
        )

    @staticmethod
    def _json_text(column: str) -> str:
        return f"{column}::text"

    @failures_as_values
    def _routine(self, name: str, /, **parameters: object) -> Rows:
        named = ", ".join(f"p_{stem} => %s" for stem in parameters)
        return self._rows(f"select * from wf.{name}({named})", *parameters.values())

    @failures_as_values
    def register_worker(
        self, worker_id: str, token: str, capabilities: Sequence[str], max_concurrency: int
    ) -> None:
        self._rows(
            "select 1 from wf.sp_register_worker(%s, %s, %s, %s)",
            worker_id,
            token,
            list(capabilities),
            max_concurrency,
        )

    @failures_as_values
    def request_tasks(
        self, worker_id: str, token: str, capability: str | None, lease_seconds: int, max_tasks: int
    ) -> Claim:
        rows = self._rows(
            f"select {_TASK_COLUMNS} from wf.sp_worker_request_tasks(%s, %s, %s, %s, %s)",
            worker_id,
            token,
            capability,
            lease_seconds,
            max_tasks,
        )
        command = next((row[12] for row in rows if row[12]), "NONE")
        return Claim(tuple(_task(row) for row in rows if row[0] is not None), command)

    @failures_as_values
    def submit_result(
        self,
        task: Held,
        worker_id: str,
        token: str,
        code: int,
        output_json: str | None,
        message: str | None,
    ) -> Submitted:
        [row] = self._rows(
            "select accepted, instance_status, next_ready_count, reason"
            " from wf.sp_worker_submit_result(%s, %s, %s, %s, %s, %s, %s)",
            task.execution_id,
            worker_id,
            token,
            code,
            output_json,
            task.lease_token,
            message,
        )
        return Submitted(row[0], row[1], row[2] or 0, row[3])

    @failures_as_values
    def fail_task(self, task: Held, worker_id: str, token: str, code: int, message: str) -> None:
        self._rows(
            "select 1 from wf.sp_worker_fail_task(%s, %s, %s, %s, %s, %s)",
            task.execution_id,
            worker_id,
            token,
            code,
            message,
            task.lease_token,
        )

    @failures_as_values
    def release_task(self, task: Held, worker_id: str, token: str) -> None:
        self._rows(
            "select 1 from wf.sp_worker_release_task(%s, %s, %s, %s)",
            task.execution_id,
            worker_id,
            token,
            task.lease_token,
        )

    @failures_as_values
    def heartbeat(self, task: Held, worker_id: str, token: str, extend_seconds: int) -> Heartbeat:
        [row] = self._rows(
            "select rows_updated, desired_state, command"
            " from wf.sp_worker_heartbeat(%s, %s, %s, %s, %s)",
            task.execution_id,
            worker_id,
            token,
            extend_seconds,
            task.lease_token,
        )
        return Heartbeat(*row)

    def submit_results(
        self, worker_id: str, token: str, items: Sequence[SubmitItem]
    ) -> list[Submitted] | Failure:
        """Hands in many results, all or none; one answer for each, in their order."""
        if len(items) == 1:
            [one] = items
            answer = self.submit_result(
                one, worker_id, token, one.code, one.output_json, one.message
            )
            return [answer] if isinstance(answer, Submitted) else answer
        return self._submit_many(worker_id, token, results_json(items))

    @failures_as_values
    def _submit_many(self, worker_id: str, token: str, results: str) -> list[Submitted]:
        rows = self._rows(
            "select accepted, instance_status, next_ready_count, reason"
            " from wf.sp_worker_submit_results(%s, %s, %s)",
            worker_id,
            token,
            results,
        )
        return [Submitted(row[0], row[1], row[2] or 0, row[3]) for row in rows]

    def record_scope_entries(self, execution_ids: Sequence[int]) -> Failure | None:
        """As the base says, in one statement; when that fails, one by one."""
        wanted = list(execution_ids)
        rows = self._select(
            "s.recorded",
            "unnest(%s::bigint[]) as u(id) cross join lateral"
            " wf.sync_execution_scope_action_entry_after_submit(u.id) as s",
            "true",
            "u.id",
            len(wanted),
            wanted,
        )
        if isinstance(rows, ApiError):
            return super().record_scope_entries(wanted)
        return rows if isinstance(rows, DatabaseProblem) else None

    @failures_as_values
    def tick(self) -> None:
        self._rows("select 1 from wf.sp_tick()")

    @failures_as_values
    def dead_task_rows(self) -> int:
        """Returns how many rows of the task queue wait for a vacuum, as the statistics say."""
        rows = self._rows(
            "select s.n_dead_tup from pg_stat_user_tables as s where s.relid = 'wf.task'::regclass"
        )
        return int(rows[0][0]) if rows else 0

    @failures_as_values
    def vacuum_tasks(self) -> None:
        """Vacuums the task queue, unless somebody is at it."""
        self._connection.execute("vacuum (skip_locked) wf.task")

    @failures_as_values
    def action_capabilities(self) -> dict[str, str]:
        """Returns every action in the database with the capability it asks for."""
        rows = self._rows("select a.action_name, a.capability from wf.v_action as a")
        return dict(rows)

    @failures_as_values
    def create_instance(
        self,
        workflow: str,
        context_json: str,
        *,
        version: int | None = None,
        business_key: str | None = None,
        priority: int = 0,
    ) -> Created:
        [row] = self._rows(_CREATE, workflow, context_json, version, business_key, priority)
        return Created(*row)

    @failures_as_values
    def start_instance(self, instance_id: int) -> Started:
        [row] = self._rows(_START, instance_id)
        return Started(row[0], row[1] or 0)

    @failures_as_values
    def create_and_start(
        self,
        workflow: str,
        context_json: str,
        *,
        version: int | None = None,
        business_key: str | None = None,
        priority: int = 0,
    ) -> Created:
        """Both or neither: an instance that cannot start does not use up its business key."""
        with self._connection.transaction():
            [row] = self._rows(_CREATE, workflow, context_json, version, business_key, priority)
            made = Created(*row)
            self._rows(_START, made.instance_id)
        return made

    @failures_as_values
    def inputs(self, workflow: str, version: int | None) -> list[InputRow]:
        """Returns the declared inputs of a version (None: the active one), in their order."""
        rows = self._rows(
            "select i.value ->> 'name', (i.value ->> 'required')::boolean"
            " from wf.v_workflow as w"
            " cross join jsonb_array_elements(w.inputs_json) with ordinality as i(value, position)"
            " where w.workflow_name = %s"
            " and case when %s::integer is null then w.is_active else w.version_no = %s end"
            " order by i.position",
            workflow,
            version,
            version,
        )
        return [InputRow(*row) for row in rows]

    @failures_as_values
    def output_names(self, instance_id: int) -> list[str]:
        """Returns the names of the workflow's outputs in the order of their declaration."""
        rows = self._rows(
            "select o.name from wf.v_instance as i"
            " join wf.v_workflow as w on w.workflow_name = i.workflow_name"
            " and w.version_no = i.version_no"
            " cross join unnest(w.output_names) with ordinality as o(name, position)"
            " where i.workflow_instance_id = %s order by o.position",
            instance_id,
        )
        return [row[0] for row in rows]

    @failures_as_values
    def waiting_capabilities(self, instance_id: int) -> list[str]:
        """Returns what the unclaimed tasks of an instance ask for; empty when a task is in hand.

        Empty also for a login that may not look.
        """
        if not self._rows("select 1 where has_table_privilege('wf.v_ready', 'select')"):
            return []
        rows = self._rows(
            "select r.capability, null from wf.v_ready as r"
            " where r.workflow_instance_id = %s and r.is_due"
            " union all select l.capability, l.worker_id from wf.v_lease as l"
            " where l.workflow_instance_id = %s",
            instance_id,
            instance_id,
        )
        if any(worker is not None for _capability, worker in rows):
            return []
        return sorted({capability for capability, _worker in rows})

    @failures_as_values
    def get_instance(self, instance_id: int) -> Instance | Failure:
        rows = self._rows(f"{_WITH_OUTPUT} where i.workflow_instance_id = %s", instance_id)
        return read_instance(rows[0]) if rows else unknown_instance(instance_id)

    @failures_as_values
    def list_instances(self, wanted: InstanceFilter, limit: int) -> list[Instance]:
        """Returns instances, the newest first, without their outputs."""
        where, parameters = instance_conditions(wanted)
        rows = self._rows(
            f"{_WITHOUT_OUTPUT} where {where} order by i.workflow_instance_id desc limit %s",
            *parameters,
            limit,
        )
        return [read_instance(row) for row in rows]

    @failures_as_values
    def executions(self, instance_id: int) -> list[ExecutionRow]:
        rows = self._rows(
            f"{_EXECUTIONS} where e.workflow_instance_id = %s"
            " and (not e.is_generated or e.is_loop_body) order by e.node_execution_id",
            instance_id,
        )
        return [ExecutionRow(*row) for row in rows]

    @failures_as_values
    def trace(self, instance_id: int) -> str | Failure:
        rows = self._rows("select t::text from wf.wf_trace_instance(%s) as t", instance_id)
        if not rows or rows[0][0] is None:
            return unknown_instance(instance_id)
        return str(rows[0][0])

    @failures_as_values
    def ingest_event(
        self,
        event_type: str,
        source: str,
        idempotency_key: str,
        payload_json: str,
        correlation_key: str | None,
    ) -> Ingested:
        [row] = self._rows(
            "select event_id, duplicate, applied_count, ignored_count, differs"
            " from wf.sp_ingest_event(%s, %s, %s, %s, %s)",
            event_type,
            source,
            idempotency_key,
            payload_json,
            correlation_key,
        )
        return Ingested(*row)

    @failures_as_values
    def event_types(self) -> list[str]:
        """Returns the event types that a deployed workflow waits for or starts on."""
        rows = self._rows(
            "select distinct t.name from wf.v_workflow as w"
            " cross join unnest(w.event_types) as t(name)"
        )
        return sorted(row[0] for row in rows if row[0] is not None)

    @failures_as_values
    def run_test_bed(
        self, workflow: str, context_json: str, script_json: str
    ) -> tuple[int, int, str, int, str | None]:
        """Plays a workflow with scripted results: run, instance, status, tasks, mismatch."""
        ((run_id, instance_id, status, tasks, mismatch),) = self._rows(
            "select r.test_bed_run_id, r.workflow_instance_id, r.instance_status, r.task_count,"
            " r.mismatch from wf.sp_test_bed_run_workflow(%s, %s::jsonb, %s::jsonb) as r",
            workflow,
            context_json,
            script_json,
        )
        return run_id, instance_id, status, tasks, mismatch

    @failures_as_values
    def deployed_version(self, workflow: str, content_hash: str) -> int | None:
        """Returns the number of the version that has this content, None when there is none."""
        rows = self._rows(
            "select v.version_no from wf.workflow_version as v"
            " join wf.workflow_def as d on d.workflow_def_id = v.workflow_def_id"
            " where d.name = %s and v.content_hash = %s and v.published_at is not null",
            workflow,
            content_hash,
        )
        return rows[0][0] if rows else None

    @failures_as_values
    def create_graph(
        self, spec_json: str, *, activate: bool = True, update_actions: bool = False
    ) -> CreatedGraph:
        """Deploys a GraphSpec document; one that is refused is 20007 with the code of its fault."""
        rows = self._rows(
            "select workflow_def_id, workflow_version_id, root_node_id, name"
            " from wf.wf_repo_create_workflow_graph(%s::jsonb, %s, %s)",
            spec_json,
            activate,
            update_actions,
        )
        return CreatedGraph(*rows[0])

    def run_script(self, text: str) -> Failure | None:
        """Executes a script of several statements; its own `begin`/`commit` hold."""
        failure = self._execute_script(text)
        if failure is not None and not self._connection.closed:
            self._connection.rollback()
        return failure

    @failures_as_values
    def _execute_script(self, text: str) -> None:
        self._connection.execute(text.encode())


def results_json(items: Sequence[SubmitItem]) -> str:
    """Returns what `sp_worker_submit_results` reads; an output's own text goes in as it is."""
    return f"[{','.join(map(_item_json, items))}]"


def _item_json(item: SubmitItem) -> str:
    head = {
        "node_execution_id": item.execution_id,
        "lease_token": item.lease_token,
        "result_code": item.code,
        "message": item.message,
    }
    # A JSON null is a value, no output is none.
    output = "" if item.output_json is None else f', "output": {item.output_json}'
    return f"{json.dumps(head)[:-1]}{output}}}"


def unknown_instance(instance_id: int) -> Failure:
    return ApiError(20002, f"instance {instance_id} is not known")


def _task(row: tuple[Any, ...]) -> Task:
    return Task(
        execution_id=row[0],
        instance_id=row[1],
        node_key=row[2],
        action=row[3],
        capability=row[4],
        attempt=row[5],
        input_json=row[6],
        iteration_no=row[7],
        lease_token=row[8],
        lease_until=row[9],
        deadline=row[10],
        path=row[11],
    )


def read_instance(row: tuple[Any, ...]) -> Instance:
    """Reads a row of v_instance as both clients ask for it, its times with their zone."""
    return Instance(
        instance_id=row[0],
        workflow=row[1],
        version=row[2],
        status=row[3],
        created_at=row[4],
        started_at=row[5],
        ended_at=row[6],
        business_key=row[7],
        output_json=row[8],
        error_code=row[9],
        engine_error_code=row[10],
        error_message=row[11],
        error_node=row[12],
        error_path=row[13],
    )

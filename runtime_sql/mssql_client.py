"""The runtime in SQL Server or Azure SQL, as a `RuntimeClient`.

Each method is one call of a procedure, or a read of the views, in a transaction of its own
(`create_and_start` is two calls in one). A deadlock victim, a snapshot that somebody else has
changed and a lock that was not to be had in time left nothing behind, so the same call is made
again after a pause that grows and is never the same for two clients.

Times come without a zone and are UTC. Lists go in and out as JSON.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from runtime_sql.connection import (
    Claim,
    Created,
    CreatedGraph,
    ExecutionRow,
    Heartbeat,
    Held,
    Ingested,
    InputRow,
    Instance,
    Started,
    SubmitItem,
    Submitted,
    Task,
    read_instance,
    results_json,
    unknown_instance,
)
from runtime_sql.failures import ApiError, DatabaseProblem, Failure
from runtime_sql.go_batches import split_batches
from runtime_sql.mssql_driver import MssqlConnection, MssqlError, Row
from runtime_sql.mssql_failures import from_mssql_error, is_passing
from runtime_sql.operating import OperatorCalls, instance_conditions
from runtime_sql.operator_rows import InstanceFilter

T = TypeVar("T")

_INSTANCE_COLUMNS = """i.workflow_instance_id, i.workflow_name, i.version_no, i.status,
    i.created_at, i.started_at, i.ended_at, i.business_key, {output}, i.error_code,
    i.engine_error_code, i.engine_error_message, i.error_node_key, i.error_path"""
_WITH_OUTPUT = _INSTANCE_COLUMNS.format(output="i.output_json")
_WITHOUT_OUTPUT = _INSTANCE_COLUMNS.format(output="cast(null as nvarchar(max))")


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a call is repeated, and how long all of it may take."""

    attempts: int = 6
    seconds: float = 120.0
    first_pause_seconds: float = 0.02
    pause: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random

    def repeat(self, call: Callable[[], T | Failure]) -> T | Failure:
        """Returns the answer, or the failure that repeating did not mend."""
        give_up_at = time.monotonic() + self.seconds
        for attempt in range(1, self.attempts + 1):
            answer = call()
            if not isinstance(answer, ApiError | DatabaseProblem) or not is_passing(answer):
                return answer
            # Between half of the step and all of it, so that two victims do not meet again.
            step = self.first_pause_seconds * 2 ** (attempt - 1) * (0.5 + self.draw() / 2)
            if attempt == self.attempts or time.monotonic() + step > give_up_at:
                return answer
            self.pause(step)
        raise AssertionError("the last attempt returns")


class MssqlClient(OperatorCalls):
    """One connection; it belongs to one thread."""

    def __init__(self, connection: MssqlConnection, patience: Patience | None = None) -> None:
        self._connection = connection
        self._patience = patience or Patience()

    def close(self) -> None:
        self._connection.close()

    def _ask(self, read: Callable[[], T]) -> T | Failure:
        """Makes a call, again while that may help; failures come back as values."""
        return self._patience.repeat(lambda: self._once(read))

    def _once(self, read: Callable[[], T]) -> T | Failure:
        try:
            return read()
        except MssqlError as error:
            failure = from_mssql_error(error)
            if failure is None:
                raise
            return failure

    def _rows(self, statement: str, *parameters: object) -> list[Row]:
        return self._connection.rows(statement, *parameters)

    def _call(self, procedure: str, **parameters: object) -> list[Row]:
        named = ", ".join(f"@{name} = %s" for name in parameters)
        return self._rows(f"exec wf.{procedure} {named}".rstrip(), *parameters.values())

    def _select(
        self, columns: str, source: str, where: str, order: str, limit: int, *parameters: object
    ) -> list[Row] | Failure:
        statement = (
            f"select top ({int(limit)}) {columns} from {source} where {where} order by {order}"
        )

        def read() -> list[Row]:
            return [_in_utc(row) for row in self._rows(statement, *parameters)]

        return self._ask(read)

    @staticmethod
    def _json_text(column: str) -> str:
        return column

    def _routine(self, name: str, /, **parameters: object) -> list[Row] | Failure:
        return self._ask(lambda: self._call(name, **parameters))

    # Worker API -------------------------------------------------------------------------------

    def register_worker(
        self, worker_id: str, token: str, capabilities: Sequence[str], max_concurrency: int
    ) -> Failure | None:
        def read() -> None:
            self._call(
                "sp_register_worker",
                worker_id=worker_id,
                worker_token=token,
                capabilities=json.dumps(list(capabilities)),
                max_concurrency=max_concurrency,
            )

        return self._ask(read)

    def request_tasks(
        self, worker_id: str, token: str, capability: str | None, lease_seconds: int, max_tasks: int
    ) -> Claim | Failure:
        def read() -> Claim:
            rows = self._call(
                "sp_worker_request_tasks",
                worker_id=worker_id,
                worker_token=token,
                capability=capability,
                max_lease_seconds=lease_seconds,
                max_tasks=max_tasks,
            )
            # A row without an execution carries the command alone (R28).
            tasks = tuple(_task(row) for row in rows if row[0] is not None)
            return Claim(tasks, next((row[9] for row in rows if row[9]), "NONE"))

        return self._ask(read)

    def submit_result(
        self,
        task: Held,
        worker_id: str,
        token: str,
        code: int,
        output_json: str | None,
        message: str | None,
    ) -> Submitted | Failure:
        def read() -> Submitted:
            [row] = self._call(
                "sp_worker_submit_result",
                node_execution_id=task.execution_id,
                worker_id=worker_id,
                worker_token=token,
                result_code=code,
                output_json=output_json,
                lease_token=task.lease_token,
                message=message,
            )
            return Submitted(bool(row[0]), row[1], row[2] or 0, row[3])

        return self._ask(read)

    def fail_task(
        self, task: Held, worker_id: str, token: str, code: int, message: str
    ) -> Failure | None:
        def read() -> None:
            self._call(
                "sp_worker_fail_task",
                node_execution_id=task.execution_id,
                worker_id=worker_id,
                worker_token=token,
                error_code=code,
                error_message=message,
                lease_token=task.lease_token,
            )

        return self._ask(read)

    def release_task(self, task: Held, worker_id: str, token: str) -> Failure | None:
        def read() -> None:
            self._call(
                "sp_worker_release_task",
                node_execution_id=task.execution_id,
                worker_id=worker_id,
                worker_token=token,
                lease_token=task.lease_token,
            )

        return self._ask(read)

    def heartbeat(
        self, task: Held, worker_id: str, token: str, extend_seconds: int
    ) -> Heartbeat | Failure:
        def read() -> Heartbeat:
            [row] = self._call(
                "sp_worker_heartbeat",
                node_execution_id=task.execution_id,
                worker_id=worker_id,
                worker_token=token,
                extend_seconds=extend_seconds,
                lease_token=task.lease_token,
            )
            return Heartbeat(*row)

        return self._ask(read)

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

        def read() -> list[Submitted]:
            rows = self._call(
                "sp_worker_submit_results",
                worker_id=worker_id,
                worker_token=token,
                results_json=results_json(items),
            )
            return [Submitted(bool(row[1]), row[2], row[3] or 0, row[4]) for row in rows]

        return self._ask(read)

    def tick(self) -> Failure | None:
        def read() -> None:
            self._call("sp_tick")

        return self._ask(read)

    def dead_task_rows(self) -> int | Failure:
        """Returns 0: the server removes the rows of old versions by itself."""
        return 0

    def vacuum_tasks(self) -> Failure | None:
        return None

    # Instances --------------------------------------------------------------------------------

    def action_capabilities(self) -> dict[str, str] | Failure:
        def read() -> dict[str, str]:
            return dict(self._rows("select a.action_name, a.capability from wf.v_action as a"))

        return self._ask(read)

    def create_instance(
        self,
        workflow: str,
        context_json: str,
        *,
        version: int | None = None,
        business_key: str | None = None,
        priority: int = 0,
    ) -> Created | Failure:
        return self._ask(
            lambda: self._create(workflow, context_json, version, business_key, priority)
        )

    def _create(
        self,
        workflow: str,
        context_json: str,
        version: int | None,
        business_key: str | None,
        priority: int,
    ) -> Created:
        [row] = self._call(
            "wf_repo_create_workflow_instance",
            workflow_name=workflow,
            context_json=context_json,
            workflow_version=version,
            business_key=business_key,
            priority=priority,
        )
        return Created(row[0], row[1], bool(row[2]))

    def start_instance(self, instance_id: int) -> Started | Failure:
        return self._ask(lambda: self._start(instance_id))

    def _start(self, instance_id: int) -> Started:
        [row] = self._call("sp_start_workflow_instance", workflow_instance_id=instance_id)
        return Started(row[0], row[1] or 0)

    def create_and_start(
        self,
        workflow: str,
        context_json: str,
        *,
        version: int | None = None,
        business_key: str | None = None,
        priority: int = 0,
    ) -> Created | Failure:
        """Both or neither: an instance that cannot start does not use up its business key."""

        def read() -> Created:
            self._rows("begin transaction;")
            try:
                made = self._create(workflow, context_json, version, business_key, priority)
                self._start(made.instance_id)
                self._rows("commit transaction;")
            except MssqlError as error:
                self._roll_back(error)
                raise
            return made

        return self._ask(read)

    def _roll_back(self, error: MssqlError) -> None:
        """Ends what an error has left open; after a lost connection there is nothing to end."""
        if error.number is not None:
            self._rows("if @@trancount > 0 rollback transaction;")

    def inputs(self, workflow: str, version: int | None) -> list[InputRow] | Failure:
        """Returns the declared inputs of a version (None: the active one), in their order."""

        def read() -> list[InputRow]:
            rows = self._rows(
                "select w.inputs_json from wf.v_workflow as w where w.workflow_name = %s"
                " and (w.version_no = %s or (%s is null and w.is_active = 1))",
                workflow,
                version,
                version,
            )
            found = json.loads(rows[0][0]) if rows else []
            return [InputRow(row["name"], bool(row["required"])) for row in found]

        return self._ask(read)

    def output_names(self, instance_id: int) -> list[str] | Failure:
        """Returns the names of the workflow's outputs in the order of their declaration."""

        def read() -> list[str]:
            rows = self._rows(
                "select w.output_names from wf.v_instance as i"
                " join wf.v_workflow as w on w.workflow_name = i.workflow_name"
                " and w.version_no = i.version_no where i.workflow_instance_id = %s",
                instance_id,
            )
            return list(json.loads(rows[0][0])) if rows else []

        return self._ask(read)

    def waiting_capabilities(self, instance_id: int) -> list[str] | Failure:
        """Returns what the unclaimed tasks of an instance ask for; empty when a task is in hand."""

        def read() -> list[str]:
            rows = self._rows(
                "select r.capability, 0 from wf.v_ready as r"
                " where r.workflow_instance_id = %s and r.is_due = 1"
                " union all select l.capability, 1 from wf.v_lease as l"
                " where l.workflow_instance_id = %s",
                instance_id,
                instance_id,
            )
            if any(is_held for _capability, is_held in rows):
                return []
            return sorted({capability for capability, _ in rows})

        return self._ask(read)

    def get_instance(self, instance_id: int) -> Instance | Failure:
        def read() -> list[Row]:
            return self._rows(
                f"select {_WITH_OUTPUT} from wf.v_instance as i where i.workflow_instance_id = %s",
                instance_id,
            )

        rows = self._ask(read)
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return read_instance(_in_utc(rows[0])) if rows else unknown_instance(instance_id)

    def list_instances(self, wanted: InstanceFilter, limit: int) -> list[Instance] | Failure:
        """Returns instances, the newest first, without their outputs."""
        where, parameters = instance_conditions(wanted)

        def read() -> list[Instance]:
            rows = self._rows(
                f"select top (%s) {_WITHOUT_OUTPUT} from wf.v_instance as i where {where}"
                " order by i.workflow_instance_id desc",
                limit,
                *parameters,
            )
            return [read_instance(_in_utc(row)) for row in rows]

        return self._ask(read)

    def executions(self, instance_id: int) -> list[ExecutionRow] | Failure:
        """Returns the executions of an instance; what the compiler made for itself is left out."""

        def read() -> list[ExecutionRow]:
            rows = self._rows(
                "select e.path, e.node_type, e.status, e.started_at, e.ended_at, e.worker_id,"
                " e.action_name, e.attempt_no, e.result_code, e.engine_error_code,"
                " e.engine_error_message from wf.v_node_execution as e"
                " where e.workflow_instance_id = %s"
                " and (e.is_generated = 0 or e.is_loop_body = 1) order by e.node_execution_id",
                instance_id,
            )
            return [_execution(row) for row in rows]

        return self._ask(read)

    def trace(self, instance_id: int) -> str | Failure:
        def read() -> list[Row]:
            return self._call("wf_trace_instance", workflow_instance_id=instance_id)

        rows = self._ask(read)
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        if not rows or rows[0][0] is None:
            return unknown_instance(instance_id)
        return str(rows[0][0])

    # Events -----------------------------------------------------------------------------------

    def ingest_event(
        self,
        event_type: str,
        source: str,
        idempotency_key: str,
        payload_json: str,
        correlation_key: str | None,
    ) -> Ingested | Failure:
        def read() -> Ingested:
            [row] = self._call(
                "sp_ingest_event",
                event_type=event_type,
                source=source,
                idempotency_key=idempotency_key,
                payload_json=payload_json,
                correlation_key=correlation_key,
            )
            return Ingested(row[0], bool(row[1]), row[2], row[3], bool(row[4]))

        return self._ask(read)

    def event_types(self) -> list[str] | Failure:
        """Returns the event types that a deployed workflow waits for or starts on."""

        def read() -> list[str]:
            rows = self._rows("select w.event_types from wf.v_workflow as w")
            return sorted({name for (names,) in rows for name in json.loads(names or "[]")})

        return self._ask(read)

    # Definitions ------------------------------------------------------------------------------

    def deployed_version(self, workflow: str, content_hash: str) -> int | Failure | None:
        """Returns the number of the version that has this content, None when there is none."""

        def read() -> int | None:
            rows = self._rows(
                "select w.version_no from wf.v_workflow as w"
                " where w.workflow_name = %s and w.content_hash = %s",
                workflow,
                content_hash,
            )
            return rows[0][0] if rows else None

        return self._ask(read)

    def create_graph(
        self, spec_json: str, *, activate: bool = True, update_actions: bool = False
    ) -> CreatedGraph | Failure:
        """Deploys a GraphSpec document; one that is refused is 20007 with the code of its fault."""

        def read() -> CreatedGraph:
            [row] = self._call(
                "wf_repo_create_workflow_graph",
                spec=spec_json,
                activate=activate,
                update_actions=update_actions,
            )
            return CreatedGraph(*row)

        return self._ask(read)

    def run_script(self, text: str) -> Failure | None:
        """Executes a script of GO batches; its own `begin transaction` and `commit` hold."""

        def read() -> None:
            try:
                for batch in split_batches(text):
                    self._rows(batch.text)
            except MssqlError as error:
                self._roll_back(error)
                raise

        return self._ask(read)

    def run_test_bed(
        self, workflow: str, context_json: str, script_json: str
    ) -> tuple[int, int, str, int, str | None] | Failure:
        """Plays a workflow with scripted results: run, instance, status, tasks, mismatch."""

        def read() -> tuple[int, int, str, int, str | None]:
            [row] = self._call(
                "sp_test_bed_run_workflow",
                workflow_name=workflow,
                context_json=context_json,
                script_json=script_json,
            )
            run_id, instance_id, status, tasks, _output, mismatch = row
            return run_id, instance_id, status, tasks, mismatch

        return self._ask(read)


def _utc(value: datetime | None) -> datetime | None:
    return None if value is None else value.replace(tzinfo=UTC)


def _in_utc(row: Row) -> Row:
    """Gives the times of a row their zone."""
    return tuple(_utc(value) if isinstance(value, datetime) else value for value in row)


def _task(row: Row) -> Task:
    """Reads a row of sp_worker_request_tasks, in the contract's order of columns."""
    return Task(
        execution_id=row[0],
        instance_id=row[1],
        node_key=row[2],
        action=row[3],
        capability=row[4],
        attempt=row[5],
        input_json=row[6],
        iteration_no=row[7],
        lease_token=row[10],
        lease_until=_utc(row[11]),
        deadline=_utc(row[12]),
        path=row[13],
    )


def _execution(row: Row) -> ExecutionRow:
    path, node_type, status, started_at, ended_at, *others = row
    return ExecutionRow(path, node_type, status, _utc(started_at), _utc(ended_at), *others)

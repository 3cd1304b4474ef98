"""Cases inside a database with the runtime, whatever its dialect, driven through the worker API.

A `Database` is what differs: how statements run, how the clock is set, how a workflow is deployed.
The clock is the row `now` of wf.wf_setting, which an engine sets at its start and a session moves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from compiler import json_values
from runtime_sql.connection import RuntimeClient, Task
from runtime_sql.failures import ApiError, DatabaseProblem, Failure
from wfsql.testing.engines import (
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

T = TypeVar("T")

FIRST_INSTANCE_ID = 7_300_000_001
"""The trace masks texts that equal the instance's id, so ids must not look like test data."""
_WORKER = "wftest"
_TOKEN = "wf_wftest_0123456789012345678901234567890123456789abc"
_LEASE_SECONDS = 86_400
_CONCURRENCY = 1_000


class Database(ABC):
    """One database, as far as cases need more of it than a client gives."""

    not_claimable: ClassVar[str]
    """The condition of a task `t` that waits for its time."""

    def __init__(self, client: RuntimeClient) -> None:
        self.client = client

    @abstractmethod
    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Runs a statement, `%s` for a parameter, and returns its rows; none of one without."""

    @abstractmethod
    def set_clock(self, at: datetime) -> None: ...

    @abstractmethod
    def script(self, spec: GraphSpec) -> str:
        """Returns the script that deploys a workflow."""

    def move_clock(self, milliseconds: int) -> None:
        [(now,)] = self.rows("select wf.wf_now()")
        self.set_clock(now + timedelta(milliseconds=milliseconds))


class DatabaseEngine:
    """Runs cases in one database that has the runtime and nothing that anybody would miss."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._client = database.client
        self._deployed: dict[str, str] = {}
        self._numbers = count(1)
        good(self._client.register_worker(_WORKER, _TOKEN, ["*"], _CONCURRENCY))

    def start(self, spec: GraphSpec, context: Any) -> Session | NotStarted:
        self._deploy(spec)
        # Events of an earlier instance came before this one began, and the clock has to say so.
        self._database.move_clock(1)
        created = good(self._client.create_instance(spec.name, json_values.dumps(context)))
        started = self._client.start_instance(created.instance_id)
        if isinstance(started, ApiError) and 10000 < started.code < 20000:
            return NotStarted("CREATED", started.code, started.message)
        good(started)
        return DatabaseSession(self._database, created.instance_id, GraphIndex(spec), self._numbers)

    def forget_bundles(self) -> None:
        self._database.rows("delete from wf.foreach_bundle_entry")

    def close(self) -> None:
        self._client.close()

    def _deploy(self, spec: GraphSpec) -> None:
        content = spec.content_hash()
        if self._deployed.get(spec.name) == content:
            return
        failure = self._client.run_script(self._database.script(spec))
        if failure is not None:
            raise EngineProblem(f"workflow {spec.name} cannot be deployed: {failure.message}")
        self._deployed[spec.name] = content


class DatabaseSession:
    """One instance. Its tasks are the only ones there are to claim: the last one has ended or
    was cancelled before it began."""

    def __init__(
        self,
        database: Database,
        instance_id: int,
        index: GraphIndex,
        numbers: count[int],
    ) -> None:
        self._database = database
        self._client = database.client
        self._instance_id = instance_id
        self._index = index
        self._numbers = numbers
        self._seen_waits: set[int] = set()

    def claim(self) -> ClaimedTask | None:
        claimed = good(self._client.request_tasks(_WORKER, _TOKEN, None, _LEASE_SECONDS, 1))
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
        good(
            self._client.submit_result(
                handle, _WORKER, _TOKEN, code, json_values.dumps(output), message
            )
        )

    def send(self, event: SendEvent) -> int:
        key = event.idempotency_key or f"{self._instance_id}-{next(self._numbers)}"
        ingested = good(
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
        return self._database.rows(
            "select e.node_execution_id, n.node_key, e.status from wf.node_execution as e"
            " join wf.workflow_node as n on n.node_id = e.node_id"
            " where e.workflow_instance_id = %s and n.node_type = 'WAIT_EVENT'"
            " order by e.node_execution_id",
            self._instance_id,
        )

    def advance_clock(self, milliseconds: int) -> None:
        self._database.move_clock(milliseconds)
        good(self._client.tick())

    def advance_to_next_due(self) -> bool:
        [(due_at,)] = self._database.rows(
            "select min(d.due_at) from ("
            "select t.workflow_instance_id, t.available_at as due_at from wf.task as t"
            f" where {self._database.not_claimable}"
            " union all select t.workflow_instance_id, t.deadline_at from wf.task as t"
            " union all select r.workflow_instance_id, r.due_at from wf.timer as r) as d"
            " where d.workflow_instance_id = %s",
            self._instance_id,
        )
        if due_at is None:
            return False
        self._database.set_clock(due_at)
        good(self._client.tick())
        return True

    def remains(self) -> Remains:
        rows = self._database.rows(
            "select e.node_execution_id, e.parent_execution_id, n.node_key, e.status"
            " from wf.node_execution as e join wf.workflow_node as n on n.node_id = e.node_id"
            " where e.workflow_instance_id = %s order by e.node_execution_id",
            self._instance_id,
        )
        trace = json_values.read_stored(good(self._client.trace(self._instance_id)))
        return Remains(
            without_id(trace, str(self._instance_id)), tuple(ExecutionInfo(*row) for row in rows)
        )

    def abandon(self) -> None:
        """Takes away what could still be claimed or woken; nobody will look at the rest."""
        for table in ("task", "event_wait"):
            self._database.rows(
                f"delete from wf.{table} where workflow_instance_id = %s", self._instance_id
            )


def good(answer: T | Failure) -> T:
    """Returns the answer of a call.

    Raises:
      EngineProblem: it is a failure.
    """
    if isinstance(answer, ApiError):
        raise EngineProblem(f"the database answered {answer.code}: {answer.message}")
    if isinstance(answer, DatabaseProblem):
        raise EngineProblem(answer.message, answer.hint)
    return answer

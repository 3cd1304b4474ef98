"""What operators ask of a database and what it answers: rows, and the calls that give them.

All times are aware. `OperatorClient` is the part of `RuntimeClient` that operating needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from runtime_sql.failures import Failure

WorkerState = Literal["ACTIVE", "DRAINING", "STOPPING"]
WaitsFor = Literal["WORKER", "RESULT", "EVENT", "TIME", "CHILDREN"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFilter:
    """Which instances are wanted; what is empty or None sets no condition.

    `before_id`: only instances that are older than this one, for paging.
    """

    statuses: tuple[str, ...] = ()
    workflow: str | None = None
    business_key: str | None = None
    before_id: int | None = None


@dataclass(frozen=True, slots=True)
class Retried:
    """`status` of the instance afterwards; how many failed nodes are tried again."""

    status: str
    retried_count: int


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One row of `wf.v_worker`. `is_present`: heard of within the last five minutes."""

    worker_id: str
    state: WorkerState
    max_concurrency: int
    capabilities: tuple[str, ...]
    lease_count: int
    holds_exclusive: bool
    last_seen_at: datetime | None
    is_present: bool
    build_id: str | None
    registered_at: datetime


@dataclass(frozen=True, slots=True)
class Unclaimable:
    """A READY action that nobody can take now; `reason` is one of docs/database.md's."""

    execution_id: int
    instance_id: int
    path: str
    node_key: str
    action: str
    capability: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class CapabilityLoad:
    """One row of `wf.v_scale_recommendation`."""

    capability: str
    ready_count: int
    leased_count: int
    oldest_ready_at: datetime | None
    worker_count: int
    slot_count: int
    wanted_worker_count: int
    missing_worker_count: int


@dataclass(frozen=True, slots=True)
class OpenNode:
    """An open execution that waits for something itself, a row of `wf.v_open_node`.

    `due_at` is a sleep's end, and of anything else its time-out; `attempt_limit` the last attempt
    that the retry policy allows; the counts are those of a PARALLEL or FOREACH.
    """

    execution_id: int
    path: str
    node_key: str
    type: str
    status: str
    waits_for: WaitsFor
    opened_at: datetime
    attempt: int
    attempt_limit: int
    delivery_count: int
    action: str | None
    capability: str | None
    available_at: datetime | None
    worker_id: str | None
    claimed_at: datetime | None
    lease_until: datetime | None
    deadline: datetime | None
    event_type: str | None
    correlation_key: str | None
    matches_nothing: bool
    due_at: datetime | None
    phase: str | None
    total_count: int | None
    succeeded_count: int | None
    failed_count: int | None
    needed_count: int | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at an action. `status` is RUNNING, SUCCEEDED, FAILED or CANCELLED."""

    execution_id: int
    path: str
    node_key: str
    action: str
    attempt: int
    worker_id: str | None
    status: str
    result_code: int | None
    engine_error_code: int | None
    message: str | None
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class SpanRow:
    """An execution or an attempt with its times, for a trace. An open one has no `ended_at`.

    `parent_id` is 0 at the root; `is_hidden`: the compiler made the node for itself. Of an attempt
    `lease_token` is set, and both ids are that of its node.
    """

    execution_id: int
    parent_id: int
    path: str
    node_key: str
    type: str
    status: str
    action: str | None
    attempt: int
    result_code: int | None
    engine_error_code: int | None
    worker_id: str | None
    started_at: datetime
    ended_at: datetime | None
    is_hidden: bool
    lease_token: int | None


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event without its payload. `instance_id`: of a signal to one instance."""

    event_id: int
    event_type: str
    source: str
    idempotency_key: str
    correlation_key: str | None
    occurred_at: datetime
    ingested_at: datetime
    duplicate_count: int
    instance_id: int | None


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """What came of an event at one wait or subscription. `outcome` is applied or ignored."""

    event_id: int
    delivery_no: int
    workflow: str | None
    instance_id: int | None
    path: str | None
    outcome: str
    reason: str | None
    delivered_at: datetime


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of an instance's workflow. `branch_kind` and `parent_key` are None at the root."""

    node_key: str
    type: str
    parent_key: str | None
    branch_kind: str | None
    case_json: str | None
    is_generated: bool
    is_loop_body: bool
    action: str | None
    event_type: str | None
    delay_ms: int | None


@dataclass(frozen=True, slots=True)
class NodeCount:
    """How many executions of a node have a status."""

    node_key: str
    status: str
    count: int


class OperatorClient(Protocol):
    """The calls of an operator, the same for every dialect. `limit`: at most this many rows."""

    def cancel_instance(self, instance_id: int, reason: str | None = None) -> str | Failure:
        """Ends everything open at once and returns CANCELLED; 20002 unknown, 20003 it has ended."""

    def pause_instance(self, instance_id: int) -> str | Failure:
        """Returns PAUSED; 20002 unknown, 20003 not running."""

    def resume_instance(self, instance_id: int) -> str | Failure:
        """Returns the status afterwards; 20002 unknown, 20003 not paused."""

    def retry_instance(self, instance_id: int) -> Retried | Failure:
        """Tries again what failed a FAILED instance; 20002, 20003 it cannot be retried."""

    def set_worker_state(self, worker_id: str, state: WorkerState) -> Failure | None:
        """Tells a worker, at its next claim or heartbeat, to go on, drain or stop; 20002."""

    def list_workers(self, limit: int = 1000) -> list[WorkerRow] | Failure:
        """Returns the registered workers by name."""

    def unclaimable(
        self, instance_id: int | None = None, limit: int = 1000
    ) -> list[Unclaimable] | Failure:
        """Returns the READY actions, of one instance or all, that nobody can take now."""

    def workflow_names(self) -> list[str] | Failure:
        """Returns the names of the workflows that have been deployed."""

    def capability_loads(self) -> list[CapabilityLoad] | Failure:
        """Returns for each capability what is due and held, and how many workers that wants."""

    def open_nodes(self, instance_id: int, limit: int = 1000) -> list[OpenNode] | Failure:
        """Returns what an instance waits for, the oldest first.

        Composites are left out that only wait for the one child that is open below them.
        """

    def graph(self, instance_id: int) -> list[GraphNode] | Failure:
        """Returns the nodes of an instance's workflow, children in their order; [] if unknown."""

    def node_counts(self, instance_id: int) -> list[NodeCount] | Failure:
        """Returns how many executions of each node have which status."""

    def now(self) -> datetime | Failure:
        """Returns the time by the runtime's clock, which tests can move."""

    def attempts(self, instance_id: int, limit: int = 1000) -> list[Attempt] | Failure:
        """Returns the attempts at an instance's actions, by action the newest first."""

    def database_id(self) -> str | Failure:
        """Returns the name that the database keeps for good, of which trace ids are made."""

    def execution_spans(self, instance_id: int) -> list[SpanRow] | Failure:
        """Returns all executions of an instance with their times, the hidden ones, too."""

    def attempt_spans(self, instance_id: int) -> list[SpanRow] | Failure:
        """Returns the attempts that a worker has begun, the oldest first."""

    def ended_since(self, moment: datetime, limit: int) -> list[int] | Failure:
        """Returns the instances that have ended at a moment or after it, the earliest first."""

    def events(
        self,
        *,
        instance_id: int | None = None,
        event_type: str | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[EventRow] | Failure:
        """Returns events, the newest first: all, or those that were given to an instance."""

    def deliveries(
        self, event_ids: Sequence[int], instance_id: int | None = None, limit: int = 1000
    ) -> list[DeliveryRow] | Failure:
        """Returns what came of these events, to one instance or all, in the order of delivery."""

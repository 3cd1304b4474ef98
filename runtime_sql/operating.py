"""The calls of an operator, written once for both dialects.

`OperatorCalls` asks through two methods that a client of a dialect gives it: `_select` reads a
view, `_routine` calls what changes something. Both return rows as tuples whose times are aware.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from runtime_sql.failures import ApiError, DatabaseProblem, Failure
from runtime_sql.operator_rows import (
    Attempt,
    CapabilityLoad,
    DeliveryRow,
    EventRow,
    GraphNode,
    InstanceFilter,
    NodeCount,
    OpenNode,
    Retried,
    SpanRow,
    Unclaimable,
    WorkerRow,
    WorkerState,
)

Rows = list[tuple[Any, ...]]

_WORKER = """w.worker_id, w.desired_state, w.max_concurrency, w.capabilities, w.lease_count,
    w.holds_exclusive, w.last_seen_at, w.is_present, w.build_id, w.registered_at"""
_UNCLAIMABLE = """u.node_execution_id, u.workflow_instance_id, u.path, u.node_key, u.action_name,
    u.capability, u.reason, u.message"""
_LOAD = """s.capability, s.ready_count, s.leased_count, s.oldest_ready_at, s.worker_count,
    s.slot_count, s.wanted_worker_count, s.missing_worker_count"""
_OPEN = """o.node_execution_id, o.path, o.node_key, o.node_type, o.status, o.waits_for,
    o.opened_at, o.attempt_no, o.attempt_limit, o.delivery_count, o.action_name, o.capability,
    o.available_at, o.worker_id, o.claimed_at, o.lease_until, o.deadline_at, o.event_type,
    o.correlation_key, o.matches_nothing, o.due_at, o.phase, o.total_count, o.succeeded_count,
    o.failed_count, o.needed_count"""
_ATTEMPT = """a.node_execution_id, a.path, a.node_key, a.action_name, a.attempt_no, a.worker_id,
    a.status, a.result_code, a.engine_error_code, a.engine_error_message, a.started_at,
    a.ended_at"""
_SPAN = """e.node_execution_id, e.parent_execution_id, e.path, e.node_key, e.node_type, e.status,
    e.action_name, e.attempt_no, e.result_code, e.engine_error_code, e.worker_id, e.created_at,
    e.ended_at, e.is_generated, e.is_loop_body"""
_ATTEMPT_SPAN = """a.node_execution_id, a.node_execution_id, a.path, a.node_key, 'ATTEMPT',
    a.status, a.action_name, a.attempt_no, a.result_code, a.engine_error_code, a.worker_id,
    a.started_at, a.ended_at, a.lease_token"""
_EVENT = """e.event_id, e.event_type, e.source, e.idempotency_key, e.correlation_key,
    e.occurred_at, e.ingested_at, e.duplicate_count, e.workflow_instance_id"""
_DELIVERY = """d.event_id, d.delivery_no, d.workflow_name, d.workflow_instance_id, d.path,
    d.outcome, d.reason, d.delivered_at"""
_NODE = """n.node_key, n.node_type, n.parent_key, n.branch_kind, {case}, n.is_generated,
    n.is_loop_body, n.action_name, n.event_type, n.delay_ms"""
_VERSION_OF = """wf.v_workflow_node as n join wf.v_instance as i
    on i.workflow_name = n.workflow_name and i.version_no = n.version_no"""
_COUNTS = """(select e.node_key, e.status, count(*) as execution_count
    from wf.v_node_execution as e where e.workflow_instance_id = %s
    group by e.node_key, e.status) as c"""
# A composite with several children open at once, or one that ends in a way worth telling.
_WAITS = """o.workflow_instance_id = %s and (o.waits_for <> 'CHILDREN' or o.phase is not null
    or o.node_type in ('PARALLEL', 'FOREACH'))"""
_MOST_ROWS = 1_000_000

OPEN = frozenset({"CREATED", "RUNNING", "PAUSED"})
"""The statuses of instances that have not ended."""


class OperatorCalls(ABC):
    """The base of the clients: `runtime_sql.operator_rows.OperatorClient` says what each does."""

    @abstractmethod
    def _select(
        self, columns: str, source: str, where: str, order: str, limit: int, *parameters: object
    ) -> Rows | Failure:
        """Reads rows; the texts are SQL that both dialects take, with `%s` for parameters."""

    @staticmethod
    @abstractmethod
    def _json_text(column: str) -> str:
        """Returns the SQL that reads a column of JSON as its text."""

    @abstractmethod
    def _routine(self, name: str, /, **parameters: object) -> Rows | Failure:
        """Calls a routine of schema `wf` with parameters by stem, and returns its rows."""

    def _status(self, routine: str, **parameters: object) -> str | Failure:
        rows = self._routine(routine, **parameters)
        return rows if isinstance(rows, ApiError | DatabaseProblem) else str(rows[0][0])

    def cancel_instance(self, instance_id: int, reason: str | None = None) -> str | Failure:
        return self._status(
            "sp_cancel_workflow_instance", workflow_instance_id=instance_id, reason=reason
        )

    def pause_instance(self, instance_id: int) -> str | Failure:
        return self._status("sp_pause_workflow_instance", workflow_instance_id=instance_id)

    def resume_instance(self, instance_id: int) -> str | Failure:
        return self._status("sp_resume_workflow_instance", workflow_instance_id=instance_id)

    def retry_instance(self, instance_id: int) -> Retried | Failure:
        rows = self._routine("sp_retry_failed_node", workflow_instance_id=instance_id)
        return rows if isinstance(rows, ApiError | DatabaseProblem) else Retried(*rows[0])

    def set_worker_state(self, worker_id: str, state: WorkerState) -> Failure | None:
        answer = self._routine("sp_set_worker_state", worker_id=worker_id, desired_state=state)
        return answer if isinstance(answer, ApiError | DatabaseProblem) else None

    def record_scope_entries(self, execution_ids: Sequence[int]) -> Failure | None:
        """Writes down what these ACTIONs produced, where they ran under an execution scope.

        Returns the last failure; the others are written down all the same.
        """
        failed: Failure | None = None
        for execution_id in execution_ids:
            answer = self._routine(
                "sync_execution_scope_action_entry_after_submit", node_execution_id=execution_id
            )
            if isinstance(answer, ApiError | DatabaseProblem):
                failed = answer
        return failed

    def list_workers(self, limit: int = 1000) -> list[WorkerRow] | Failure:
        rows = self._select(_WORKER, "wf.v_worker as w", "1 = 1", "w.worker_id", limit)
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [WorkerRow(*_with_names(row)) for row in rows]

    def unclaimable(
        self, instance_id: int | None = None, limit: int = 1000
    ) -> list[Unclaimable] | Failure:
        where, parameters = _all_of({"u.workflow_instance_id = %s": instance_id})
        rows = self._select(
            _UNCLAIMABLE, "wf.v_unclaimable as u", where, "u.node_execution_id", limit, *parameters
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [Unclaimable(*row) for row in rows]

    def workflow_names(self) -> list[str] | Failure:
        rows = self._select(
            "w.workflow_name", "wf.v_workflow as w", "1 = 1", "w.workflow_name", _MOST_ROWS
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return list(dict.fromkeys(row[0] for row in rows))

    def capability_loads(self) -> list[CapabilityLoad] | Failure:
        rows = self._select(
            _LOAD, "wf.v_scale_recommendation as s", "1 = 1", "s.capability", _MOST_ROWS
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [CapabilityLoad(*row) for row in rows]

    def open_nodes(self, instance_id: int, limit: int = 1000) -> list[OpenNode] | Failure:
        rows = self._select(
            _OPEN, "wf.v_open_node as o", _WAITS, "o.node_execution_id", limit, instance_id
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [OpenNode(*row) for row in rows]

    def graph(self, instance_id: int) -> list[GraphNode] | Failure:
        rows = self._select(
            _NODE.format(case=self._json_text("n.case_value")),
            _VERSION_OF,
            "i.workflow_instance_id = %s",
            "n.parent_key, n.child_order",
            _MOST_ROWS,
            instance_id,
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [GraphNode(*row) for row in rows]

    def node_counts(self, instance_id: int) -> list[NodeCount] | Failure:
        rows = self._select(
            "c.node_key, c.status, c.execution_count",
            _COUNTS,
            "1 = 1",
            "c.node_key, c.status",
            _MOST_ROWS,
            instance_id,
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [NodeCount(*row) for row in rows]

    def now(self) -> datetime | Failure:
        rows = self._select("wf.wf_now()", "(select 1 as one) as x", "1 = 1", "x.one", 1)
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        found: datetime = rows[0][0]
        return found

    def attempts(self, instance_id: int, limit: int = 1000) -> list[Attempt] | Failure:
        rows = self._select(
            _ATTEMPT,
            "wf.v_attempt as a",
            "a.workflow_instance_id = %s",
            "a.node_execution_id desc, a.attempt_no desc, a.lease_token desc",
            limit,
            instance_id,
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [Attempt(*row) for row in rows]

    def database_id(self) -> str | Failure:
        rows = self._select("wf.wf_database_id()", "(select 1 as one) as x", "1 = 1", "x.one", 1)
        return rows if isinstance(rows, ApiError | DatabaseProblem) else str(rows[0][0])

    def execution_spans(self, instance_id: int) -> list[SpanRow] | Failure:
        rows = self._select(
            _SPAN,
            "wf.v_node_execution as e",
            "e.workflow_instance_id = %s",
            "e.node_execution_id",
            _MOST_ROWS,
            instance_id,
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [
            # Hidden is what is generated, but is no loop's body.
            SpanRow(*(*row[:13], bool(row[13] and not row[14]), None))
            for row in rows
        ]

    def attempt_spans(self, instance_id: int) -> list[SpanRow] | Failure:
        rows = self._select(
            _ATTEMPT_SPAN,
            "wf.v_attempt as a",
            "a.workflow_instance_id = %s and a.started_at is not null",
            "a.node_execution_id, a.lease_token",
            _MOST_ROWS,
            instance_id,
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [SpanRow(*(*row[:13], False, row[13])) for row in rows]

    def ended_since(self, moment: datetime, limit: int) -> list[int] | Failure:
        rows = self._select(
            "i.workflow_instance_id, i.ended_at",
            "wf.v_instance as i",
            "i.ended_at >= %s",
            "i.ended_at, i.workflow_instance_id",
            limit,
            moment.astimezone(UTC),
        )
        return rows if isinstance(rows, ApiError | DatabaseProblem) else [row[0] for row in rows]

    def events(
        self,
        *,
        instance_id: int | None = None,
        event_type: str | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[EventRow] | Failure:
        conditions: dict[str, object] = {
            "e.event_id in (select v.event_id from wf.v_event_delivery as v"
            " where v.workflow_instance_id = %s)": instance_id,
            "e.event_type = %s": event_type,
            "e.event_id < %s": before_id,
        }
        where, parameters = _all_of(conditions)
        rows = self._select(_EVENT, "wf.v_event as e", where, "e.event_id desc", limit, *parameters)
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [EventRow(*row) for row in rows]

    def deliveries(
        self, event_ids: Sequence[int], instance_id: int | None = None, limit: int = 1000
    ) -> list[DeliveryRow] | Failure:
        if not event_ids:
            return []
        ids = ", ".join(str(int(event_id)) for event_id in event_ids)
        where, parameters = _all_of({"d.workflow_instance_id = %s": instance_id})
        rows = self._select(
            _DELIVERY,
            "wf.v_event_delivery as d",
            f"d.event_id in ({ids}) and {where}",
            "d.event_id desc, d.delivery_no",
            limit,
            *parameters,
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [DeliveryRow(*row) for row in rows]


def instance_conditions(wanted: InstanceFilter) -> tuple[str, tuple[object, ...]]:
    """Returns the condition on `wf.v_instance as i` for a filter, and its parameters."""
    where, parameters = _all_of(
        {
            "i.workflow_name = %s": wanted.workflow,
            "i.business_key = %s": wanted.business_key,
            "i.workflow_instance_id < %s": wanted.before_id,
        }
    )
    if wanted.statuses:
        places = ", ".join(["%s"] * len(wanted.statuses))
        where = f"{where} and i.status in ({places})"
        if OPEN.issuperset(wanted.statuses):
            # There is an index over these, so that the many that have ended are not read.
            where = f"{where} and i.ended_at is null"
    return where, (*parameters, *wanted.statuses)


def _all_of(conditions: dict[str, object]) -> tuple[str, tuple[object, ...]]:
    """Joins the conditions that have a value."""
    given = {text: value for text, value in conditions.items() if value is not None}
    return " and ".join(given) or "1 = 1", tuple(given.values())


def _with_names(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Reads a worker's capabilities: an array in PostgreSQL, JSON text in T-SQL."""
    names = row[3]
    return (*row[:3], tuple(json.loads(names) if isinstance(names, str) else names), *row[4:])

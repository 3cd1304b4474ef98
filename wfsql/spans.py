"""The spans of an instance that has ended: one for itself, for each node, and for each attempt.

They are made of rows of the database, so their times are its times, and nobody has to be there when
an instance ends. The ids are worked out (`runtime_sql.trace_ids`): the same instance has the same
spans whenever it is asked. Inputs, outputs, variables and messages never stand in a span.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from runtime_sql.connection import Instance
from runtime_sql.operator_rows import SpanRow
from runtime_sql.trace_ids import attempt_span_id, instance_span_id, node_span_id, trace_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """`parent_id` is None at the instance. `has_failed` is None where that is no question."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    began_at: datetime
    ended_at: datetime
    has_failed: bool | None
    attributes: Mapping[str, str | int]


def spans_of(
    database_id: str,
    instance: Instance,
    executions: Sequence[SpanRow],
    attempts: Sequence[SpanRow] = (),
) -> tuple[Span, ...]:
    """Returns the spans, parents first; none for an instance that has not ended."""
    if instance.ended_at is None:
        return ()
    maker = _Maker(database_id, instance, instance.ended_at, executions)
    return (
        maker.of_instance(),
        *maker.of_nodes(executions),
        *maker.of_attempts(attempts),
    )


class _Maker:
    def __init__(
        self,
        database_id: str,
        instance: Instance,
        ended_at: datetime,
        executions: Sequence[SpanRow],
    ) -> None:
        self._database_id = database_id
        self._instance = instance
        self._ended_at = ended_at
        self._trace = trace_id(database_id, instance.instance_id)
        self._top = instance_span_id(database_id, instance.instance_id)
        self._rows = {row.execution_id: row for row in executions}

    def of_instance(self) -> Span:
        found = self._instance
        attributes: dict[str, str | int | None] = {
            "wf.instance_id": found.instance_id,
            "wf.workflow": found.workflow,
            "wf.version": found.version,
            "wf.status": found.status,
            "wf.result_code": found.error_code,
            "wf.engine_error_code": found.engine_error_code,
            "wf.path": found.error_path,
        }
        return self._span(
            found.workflow,
            self._top,
            None,
            found.started_at or found.created_at,
            self._ended_at,
            found.status,
            attributes,
        )

    def of_nodes(self, rows: Sequence[SpanRow]) -> Iterator[Span]:
        for row in rows:
            if row.is_hidden:
                continue
            yield self._span(
                row.node_key,
                node_span_id(self._database_id, row.execution_id),
                self._visible_above(row.parent_id),
                row.started_at,
                row.ended_at or self._ended_at,
                row.status,
                self._attributes(row),
            )

    def of_attempts(self, rows: Sequence[SpanRow]) -> Iterator[Span]:
        for row in rows:
            node = node_span_id(self._database_id, row.execution_id)
            yield self._span(
                f"{row.action} attempt",
                attempt_span_id(node, row.lease_token or 0),
                node,
                row.started_at,
                row.ended_at or self._ended_at,
                row.status,
                self._attributes(row),
            )

    def _visible_above(self, execution_id: int) -> int:
        """Returns the span of the nearest node above that has one, else that of the instance."""
        row = self._rows.get(execution_id)
        while row is not None and row.is_hidden:
            row = self._rows.get(row.parent_id)
        if row is None:
            return self._top
        return node_span_id(self._database_id, row.execution_id)

    def _attributes(self, row: SpanRow) -> dict[str, str | int | None]:
        is_action = row.action is not None
        return {
            "wf.instance_id": self._instance.instance_id,
            "wf.path": row.path,
            "wf.type": row.type,
            "wf.status": row.status,
            "wf.action": row.action,
            "wf.attempt": row.attempt if is_action else None,
            "wf.worker_id": row.worker_id,
            "wf.result_code": row.result_code,
            "wf.engine_error_code": row.engine_error_code,
        }

    def _span(
        self,
        name: str,
        span_id: int,
        parent_id: int | None,
        began_at: datetime,
        ended_at: datetime,
        status: str,
        attributes: Mapping[str, str | int | None],
    ) -> Span:
        return Span(
            name=name,
            trace_id=self._trace,
            span_id=span_id,
            parent_id=parent_id,
            began_at=began_at,
            ended_at=max(began_at, ended_at),
            has_failed={"FAILED": True, "SUCCEEDED": False}.get(status),
            attributes={key: value for key, value in attributes.items() if value is not None},
        )

"""Trace and span ids (W3C Trace Context), worked out from the database's own ids.

Nothing is stored and nothing is drawn: whoever knows the database's name, the instance, the
execution and the lease comes to the same ids. So a worker's span of an attempt stands below the
span of its node, which is written from the database later, and what is exported twice has the same
ids twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime_sql.connection import Task

_HEADER = re.compile("([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


def trace_id(database_id: str, instance_id: int) -> int:
    """Returns the trace of an instance: 128 bits."""
    return _bits(f"{database_id}/{instance_id}", 16)


def instance_span_id(database_id: str, instance_id: int) -> int:
    """Returns the span of the instance itself: 64 bits, as all that follow."""
    return _bits(f"{database_id}/{instance_id}/instance", 8)


def node_span_id(database_id: str, execution_id: int) -> int:
    """Returns the span of an execution of a node; of an ACTION the execution is the task."""
    return _bits(f"{database_id}/execution/{execution_id}", 8)


def attempt_span_id(node_span: int, lease_token: int) -> int:
    """Returns the span of an attempt at a node: one delivery of its task to a worker."""
    return _bits(f"{node_span:016x}/{lease_token}", 8)


def header(trace: int, span: int) -> str:
    """Returns the header `traceparent`; the trace is marked as one that is recorded."""
    return f"00-{trace:032x}-{span:016x}-01"


def parse(trace_parent: str | None) -> tuple[int, int] | None:
    """Returns trace and span of a header `traceparent`, None for what is none."""
    found = _HEADER.fullmatch(trace_parent or "")
    if found is None or found[1] == "ff":
        return None
    trace, span = int(found[2], 16), int(found[3], 16)
    return (trace, span) if trace and span else None


def with_traces(tasks: Iterable[Task], database_id: str) -> tuple[Task, ...]:
    """Gives each task the context of its node's span."""
    return tuple(
        replace(
            task,
            trace_parent=header(
                trace_id(database_id, task.instance_id),
                node_span_id(database_id, task.execution_id),
            ),
        )
        for task in tasks
    )


def _bits(text: str, length: int) -> int:
    # All zeros mean "no trace".
    return int.from_bytes(sha256(text.encode()).digest()[:length]) or 1

"""What a driver tells while it runs: events for a display of progress, entries of the timeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from local_runner.execution import Execution


@dataclass(frozen=True, slots=True)
class ActionOffered:
    """An action waits for a worker, or for its time."""

    path: str
    action: str


@dataclass(frozen=True, slots=True)
class ActionStarted:
    path: str
    action: str
    worker: int


@dataclass(frozen=True, slots=True)
class ActionFinished:
    path: str
    action: str
    worker: int
    result_code: int
    message: str | None


@dataclass(frozen=True, slots=True)
class ActionAbandoned:
    """A time-out has passed while the handler ran; its thread is left behind."""

    path: str
    action: str
    worker: int


@dataclass(frozen=True, slots=True)
class NodeEnded:
    """An author's node, or an iteration of a loop, has ended.

    `total` is the number of iterations when this is one of a FOREACH or REPEAT.
    """

    path: str
    type: str
    status: str
    total: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RunInterrupted:
    """Ctrl-C has come: nothing new starts, and the handlers that run have their chance."""

    running_count: int


Event = (
    ActionOffered | ActionStarted | ActionFinished | ActionAbandoned | NodeEnded | RunInterrupted
)
Listener = Callable[[Event], None]


class TimelineEntry(NamedTuple):
    """One call of a handler; times are seconds of the monotonic clock."""

    path: str
    action: str
    worker: int
    started_at: float
    ended_at: float
    result_code: int = 0


def node_ended(listener: Listener) -> Callable[[Execution], None]:
    """Returns the machine's `on_ended` that tells a listener of the author's nodes."""

    def tell(execution: Execution) -> None:
        node, parent = execution.node, execution.parent
        if node.is_iteration and parent is not None:
            total = parent.total_count or None
            listener(NodeEnded(execution.path, node.type, execution.status, total))
        elif not node.generated:
            listener(NodeEnded(execution.path, node.type, execution.status))

    return tell

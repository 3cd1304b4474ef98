"""What a case is played on: an `Engine` starts a `Session`, which is one instance under test.

Both engines are driven by the same calls, so that a case means the same everywhere. The clock is
the session's own: it moves only by `advance_clock` and `advance_to_next_due`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from local_runner.values import map_strings

if TYPE_CHECKING:
    from compiler.spec import GraphSpec
    from wfsql.testing.cases import SendEvent

STARTS_AT = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class ClaimedTask:
    """An action that the driver has claimed; `handle` is the engine's own."""

    execution_id: int
    node_key: str
    path: str
    input: Any
    handle: Any


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """An execution, generated ones too; `parent_id` is 0 at the root."""

    id: int
    parent_id: int
    node_key: str
    status: str


@dataclass(frozen=True, slots=True)
class Remains:
    """What an instance has left: its trace document and its executions in the order of ids."""

    trace: dict[str, Any]
    executions: tuple[ExecutionInfo, ...]


@dataclass(frozen=True, slots=True)
class NotStarted:
    """The instance did not start, and left nothing.

    `status` is REFUSED when the context was refused at the door, CREATED when it did not fit the
    inputs; `code` is the engine's code.
    """

    status: str
    code: int
    message: str


def without_id(trace: dict[str, Any], instance_id: str) -> dict[str, Any]:
    """Masks the instance's id inside longer texts too, which differ from run to run otherwise.

    The trace itself masks whole texts only: an id may be a short number.
    """
    masked: dict[str, Any] = map_strings(
        trace, lambda text: text.replace(instance_id, "$instance_id")
    )
    return masked


class EngineProblem(Exception):
    """The engine cannot run this at all, or cannot be reached; the message is for the user."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Session(Protocol):
    """One started instance."""

    def claim(self) -> ClaimedTask | None:
        """Claims the next action in claim order; None when nothing can be claimed now."""

    def submit(self, task: ClaimedTask, code: int, output: Any, message: str | None) -> None:
        """Hands in a result; one that nobody waits for any more changes nothing."""

    def send(self, event: SendEvent) -> int:
        """Sends an event and returns how many waits it completed or instances it started."""

    def waiting_keys(self) -> frozenset[str]:
        """The keys of the WAIT_EVENTs that wait now."""

    def completed_waits(self) -> tuple[str, ...]:
        """The keys of the WAIT_EVENTs that have completed since the last call, in order."""

    def advance_clock(self, milliseconds: int) -> None: ...

    def advance_to_next_due(self) -> bool:
        """Moves the clock to when something is due; False when nothing ever will be."""

    def remains(self) -> Remains: ...

    def abandon(self) -> None:
        """Gives up an instance that has not ended, so that it does not disturb the next one."""


class Engine(Protocol):
    name: str

    def start(self, spec: GraphSpec, context: Any) -> Session | NotStarted:
        """Makes the workflow known and starts an instance of it.

        Raises:
          EngineProblem: the engine cannot run this workflow.
        """

    def forget_bundles(self) -> None:
        """Forgets what iterations have exported for reuse, so that cases do not meet there."""

    def close(self) -> None: ...

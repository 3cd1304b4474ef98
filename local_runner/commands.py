"""What a machine asks of its driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from local_runner.execution import NodeError
from local_runner.values import JsonValue


class RunAction(NamedTuple):
    """Run `action` with `input`, not before `available_ms`.

    Drivers take those that are available by `claim_key`, lowest first. `timeout_ms` is for their
    information: the machine itself times attempts out.
    """

    execution_id: int
    path: str
    node_key: str
    action: str
    input: JsonValue
    attempt: int
    iteration_no: int
    priority: int
    available_ms: int = 0
    timeout_ms: int | None = None

    @property
    def claim_key(self) -> tuple[int, int, int]:
        return (-self.priority, self.available_ms, self.execution_id)


@dataclass(frozen=True, slots=True)
class CancelAction:
    """An action that was offered, or is being run, is no longer wanted.

    A RunAction of the same execution may follow: the next attempt.
    """

    execution_id: int


@dataclass(frozen=True, slots=True)
class InstanceEnded:
    status: str
    error: NodeError | None
    output: JsonValue


Command = RunAction | CancelAction | InstanceEnded

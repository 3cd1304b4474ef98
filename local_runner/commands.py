"""What a machine asks of its driver."""

from __future__ import annotations

from dataclasses import dataclass

from local_runner.execution import NodeError
from local_runner.values import JsonValue


@dataclass(frozen=True, slots=True)
class RunAction:
    """Run `action` with `input`. Drivers take them by `claim_key`, lowest first."""

    execution_id: int
    path: str
    node_key: str
    action: str
    input: JsonValue
    attempt: int
    iteration_no: int
    priority: int

    @property
    def claim_key(self) -> tuple[int, int]:
        return (-self.priority, self.execution_id)


@dataclass(frozen=True, slots=True)
class CancelAction:
    """An action that was offered, or is being run, is no longer wanted."""

    execution_id: int


@dataclass(frozen=True, slots=True)
class InstanceEnded:
    status: str
    error: NodeError | None
    output: JsonValue


Command = RunAction | CancelAction | InstanceEnded

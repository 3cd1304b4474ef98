"""What a worker needs from the place its tasks come from: a database, or a gateway.

`TaskSource` has one method per call of the worker protocol (docs/worker-protocol.md). Everything
that can go wrong comes back as a `Trouble`; nothing is repeated here, that is `patience.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from runtime_sql.connection import Claim, Submitted
from runtime_sql.failures import ApiError, Failure

BATCH_LIMIT = 100
"""So many tasks, results or leases go into one call at most."""

REFUSED_TOKEN = 20001


@dataclass(frozen=True, slots=True)
class Trouble:
    """A call that got no answer, or was refused.

    `code` is the runtime's when it refused the call, None when the call did not get that far.
    `passing`: the same call may succeed later, not before `after_seconds`.
    """

    message: str
    hint: str | None = None
    code: int | None = None
    passing: bool = False
    after_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a handler has left of a task, until it is accepted. `name` is for people."""

    task_id: int
    lease_token: int
    code: int
    output_json: str | None
    message: str | None
    name: str
    took_seconds: float = 0.0


class TaskSource(Protocol):
    """May be called by several threads at a time."""

    @property
    def longest_wait_seconds(self) -> int:
        """For how long `request` may wait for work at the other end; 0: it answers at once."""

    def request(self, max_tasks: int, wait_seconds: int) -> Claim | Trouble:
        """Claims up to `max_tasks`; waits up to `wait_seconds` for the first, or for a command."""

    def submit(self, results: Sequence[Finished]) -> Sequence[Submitted | Trouble] | Trouble:
        """Hands in results. A `Trouble` for all of them means that none was looked at."""

    def fail(
        self, task_id: int, lease_token: int, code: int, message: str
    ) -> Submitted | Trouble: ...

    def release(self, task_id: int, lease_token: int) -> Trouble | None: ...

    def actions(self) -> Mapping[str, str] | Trouble:
        """Returns every action with the capability it asks for."""

    def renew(self) -> bool:
        """After a refused token, which only calls beside this source meet: tries another."""

    def interrupt(self) -> None:
        """Ends a `request` that waits, now and from now on; may be called from any thread."""

    def close(self) -> None: ...


def trouble_of(failure: Failure) -> Trouble:
    """Returns what a failure of the database client means to a worker."""
    if isinstance(failure, ApiError):
        return Trouble(failure.message, code=failure.code)
    return Trouble(failure.message, failure.hint, passing=failure.retryable)

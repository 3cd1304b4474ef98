"""A source of tasks and a heartbeat that are played by Python."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any

from runtime_sql.connection import Claim, Submitted, Task
from wfsql.worker.heartbeat import Heard, Held
from wfsql.worker.log import WorkerLog
from wfsql.worker.source import Finished, Trouble

AWAY = Trouble("the gateway cannot be reached: refused", passing=True)
OK = Submitted(True, "RUNNING", 0, "OK")


def task(number: int, action: str = "act") -> Task:
    return Task(
        execution_id=number,
        instance_id=1,
        node_key="k",
        action=action,
        capability="c",
        attempt=1,
        input_json="{}",
        iteration_no=None,
        lease_token=number,
        lease_until=None,
        deadline=None,
        path=f"w/k[{number}]",
    )


def finished(number: int, output: str | None = "{}", **changes: Any) -> Finished:
    made = {
        "task_id": number,
        "lease_token": number,
        "code": 0,
        "output_json": output,
        "message": None,
        "name": f"w/k[{number}] (1) act",
    }
    return Finished(**{**made, **changes})


def claims(*groups: Iterable[int], command: str = "NONE") -> deque[Claim | Trouble]:
    """Returns one claim per group of task numbers."""
    return deque(Claim(tuple(map(task, group)), command) for group in groups)


@dataclass
class FakeSource:
    """Hands out `claims` in order, then nothing; notes what is handed in.

    `submit_answers` are given out one per call of `submit`; after them everything is accepted.
    """

    claims: deque[Claim | Trouble] = field(default_factory=deque)
    submit_answers: deque[Any] = field(default_factory=deque)
    longest_wait_seconds: int = 0
    batches: list[list[Finished]] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    failed: list[tuple[int, str]] = field(default_factory=list)
    asked_for: list[int] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    renewals: int = 0
    on_empty: Any = None
    before_submit: Any = None
    interrupted: Event = field(default_factory=Event)
    lock: Lock = field(default_factory=Lock)

    @property
    def submitted(self) -> list[tuple[int, int, str | None]]:
        return [(d.task_id, d.code, d.output_json) for batch in self.batches for d in batch]

    def request(self, max_tasks: int, wait_seconds: int) -> Claim | Trouble:
        self.asked_for.append(max_tasks)
        self.waits.append(wait_seconds)
        if self.claims:
            return self.claims.popleft()
        if self.on_empty is not None:
            self.on_empty()
        if wait_seconds:
            self.interrupted.wait(wait_seconds)
        return Claim((), "NONE")

    def submit(self, results: Sequence[Finished]) -> Sequence[Submitted | Trouble] | Trouble:
        if self.before_submit is not None:
            self.before_submit(results)
        with self.lock:
            answer = self.submit_answers.popleft() if self.submit_answers else None
            if isinstance(answer, Trouble):
                return answer
            self.batches.append(list(results))
        return answer or [OK] * len(results)

    def fail(self, task_id: int, lease_token: int, code: int, message: str) -> Submitted | Trouble:
        self.failed.append((task_id, message))
        return OK

    def release(self, task_id: int, lease_token: int) -> Trouble | None:
        self.released.append(task_id)
        return None

    def actions(self) -> Mapping[str, str] | Trouble:
        return {"act": "c"}

    def renew(self) -> bool:
        self.renewals += 1
        return False

    def interrupt(self) -> None:
        self.interrupted.set()

    def close(self) -> None: ...


@dataclass
class FakeHeartbeat:
    """Notes what it is told; `heard` lets a test speak for the heart."""

    heard: Heard | None = None
    held: dict[int, Held] = field(default_factory=dict)
    dropped: list[int] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    on_hold: Any = None
    is_over: bool = False

    def begin(self, heard: Heard) -> None:
        self.heard = heard

    def hold(self, leases: Iterable[Held]) -> None:
        self.held.update((held[0], held) for held in leases)
        if self.on_hold is not None:
            self.on_hold(self.heard)

    def drop(self, task_ids: Iterable[int]) -> None:
        self.dropped.extend(task_ids)

    def use_token(self, token: str) -> None:
        self.tokens.append(token)

    def end(self) -> None:
        self.is_over = True


class ListLog(WorkerLog):
    """Keeps the lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)

    def task(self, done: Finished, *, refused: str | None = None) -> None:
        self.lines.append(f"{done.name} -> {refused or done.code}")

"""The process that keeps a worker's leases alive: `python -m wfsql.worker.heart`.

A handler may hold the interpreter's lock for minutes, and no thread beside it gets to run; so
leases are extended by a process of its own. It is told of them over stdin, a JSON document a line:

    {"start": {"worker_id", "token", "extend_seconds", "gateway" | "url", "ca_file"}}
    {"hold": [[task_id, lease_token, seconds], …]}  {"drop": [task_id, …]}  {"token": "…"}

and says on stdout what it hears: first `{"ready": true}`, then `{"cancel": [task_id, …]}`,
`{"command": "DRAIN"}`, `{"note": "…"}`, `{"refused": true}` (the token). A lease is extended when a
third of its seconds are over. The process ends when stdin does, or when the worker is no longer its
parent. For a gateway it needs nothing but the standard library.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any, Protocol
from urllib.parse import urlsplit

_BATCH_LIMIT = 100
_SHARE = 3
_SHORTEST_SECONDS = 0.2
_AFTER_TROUBLE_SECONDS = 5.0
_ANSWER_SECONDS = 10.0
# So often it looks whether the worker is still there.
_LOOK_SECONDS = 1.0


@dataclass(slots=True)
class Lease:
    """What is held: `seconds` is how long for, `due_at` when to extend it next (monotonic)."""

    task_id: int
    token: int
    seconds: float
    due_at: float


@dataclass(frozen=True, slots=True)
class Beat:
    """What the answer says about one lease."""

    task_id: int
    command: str
    is_held: bool


class BeatFailed(Exception):
    """No answer. `is_refused`: the token is not valid (any more)."""

    def __init__(self, message: str, *, is_refused: bool = False) -> None:
        super().__init__(message)
        self.is_refused = is_refused


class Beater(Protocol):
    def connect(self) -> None:
        """Gets ready; a failure is met again, and told, by the first beat."""

    def beat(self, leases: Sequence[Lease], token: str) -> list[Beat]: ...


@dataclass(slots=True)
class GatewayBeater:
    """Extends leases over HTTP, with a connection that is kept."""

    url: str
    ca_file: str | None
    worker_id: str
    extend_seconds: int
    _connection: http.client.HTTPConnection | None = None

    def connect(self) -> None:
        """Nothing to do: connecting is quick, and a connection that is not used is closed."""

    def beat(self, leases: Sequence[Lease], token: str) -> list[Beat]:
        body = {
            "worker_id": self.worker_id,
            "extend_seconds": self.extend_seconds,
            "leases": [{"task_id": held.task_id, "lease_token": held.token} for held in leases],
        }
        try:
            status, text = self._post(json.dumps(body), token)
            document = json.loads(text)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._forget()
            raise BeatFailed(f"{type(error).__name__}: {error}") from error
        if status != 200:
            raise BeatFailed(f"HTTP {status}", is_refused=status in (401, 403))
        try:
            return [_beat(found) for found in document["answers"] if not found.get("problem")]
        except (AttributeError, KeyError, TypeError) as error:
            raise BeatFailed("the answer is not a gateway's") from error

    def _post(self, body: str, token: str) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        path = urlsplit(self.url).path.rstrip("/") + "/v1/workers/tasks/heartbeat"
        self._connection.request("POST", path, body.encode(), headers)
        response = self._connection.getresponse()
        text = response.read()
        if response.will_close:
            self._forget()
        return response.status, text

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        if parts.scheme != "https":
            return http.client.HTTPConnection(
                parts.hostname or "", parts.port, timeout=_ANSWER_SECONDS
            )
        context = ssl.create_default_context()
        if self.ca_file is not None:
            context.load_verify_locations(self.ca_file)
        return http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=_ANSWER_SECONDS, context=context
        )

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _beat(found: dict[str, Any]) -> Beat:
    return Beat(found["task_id"], found.get("command") or "NONE", found.get("rows_updated") != 0)


@dataclass(slots=True)
class DatabaseBeater:
    """Extends leases in the database itself."""

    url: str
    worker_id: str
    extend_seconds: int
    _client: Any = None

    def connect(self) -> None:
        from runtime_sql import connection
        from runtime_sql.failures import ApiError, DatabaseProblem

        if self._client is None:
            made = connection.connect(self.url)
            if isinstance(made, ApiError | DatabaseProblem):
                raise BeatFailed(made.message)
            self._client = made

    def beat(self, leases: Sequence[Lease], token: str) -> list[Beat]:
        from runtime_sql import connection
        from runtime_sql.failures import ApiError, DatabaseProblem

        self.connect()
        beats = []
        for held in leases:
            lease = connection.Lease(held.task_id, held.token)
            answer = self._client.heartbeat(lease, self.worker_id, token, self.extend_seconds)
            if isinstance(answer, DatabaseProblem):
                self._client.close()
                self._client = None
                raise BeatFailed(answer.message)
            if isinstance(answer, ApiError):
                raise BeatFailed(answer.message, is_refused=answer.code == 20001)
            beats.append(Beat(held.task_id, answer.command, answer.rows_updated != 0))
        return beats


@dataclass(slots=True)
class Heart:
    """The leases, and the loop that extends them."""

    beater: Beater
    token: str
    leases: dict[int, Lease] = field(default_factory=dict)
    changed: Condition = field(default_factory=Condition)
    is_over: bool = False
    told: str = "NONE"

    def hear(self, message: dict[str, Any]) -> None:
        """Takes one line of the worker."""
        now = time.monotonic()
        with self.changed:
            for task_id, token, seconds in message.get("hold", ()):
                self.leases[task_id] = Lease(task_id, token, seconds, now + seconds / _SHARE)
            for task_id in message.get("drop", ()):
                self.leases.pop(task_id, None)
            self.token = message.get("token", self.token)
            self.changed.notify()

    def end(self) -> None:
        with self.changed:
            self.is_over = True
            self.changed.notify()

    def run(self, parent: int) -> None:
        """Extends leases until `end`, or until the parent is another process."""
        while True:
            due = self._wait_for_due(parent)
            if due is None:
                return
            for first in range(0, len(due), _BATCH_LIMIT):
                self._beat(due[first : first + _BATCH_LIMIT])

    def _wait_for_due(self, parent: int) -> list[Lease] | None:
        with self.changed:
            while not self.is_over and os.getppid() == parent:
                now = time.monotonic()
                # Those that are nearly due go along, so that there are fewer calls.
                due = [
                    held
                    for held in self.leases.values()
                    if held.due_at <= now + held.seconds / _SHARE / 4
                ]
                if any(held.due_at <= now for held in due):
                    return due
                soonest = min((held.due_at for held in self.leases.values()), default=now + 60)
                self.changed.wait(min(max(soonest - now, 0.0), _LOOK_SECONDS))
        return None

    def _beat(self, due: Sequence[Lease]) -> None:
        try:
            beats = self.beater.beat(due, self.token)
        except BeatFailed as failed:
            self._put_off(due)
            say({"refused": True} if failed.is_refused else {"note": f"heartbeat: {failed}"})
            return
        now = time.monotonic()
        answered = {beat.task_id: beat for beat in beats}
        lost = []
        with self.changed:
            for held in due:
                beat = answered.get(held.task_id)
                held.due_at = now + max(held.seconds / _SHARE, _SHORTEST_SECONDS)
                if beat is not None and (beat.command == "CANCEL" or not beat.is_held):
                    lost.append(held.task_id)
                    if self.leases.get(held.task_id) is held:
                        del self.leases[held.task_id]
        if lost:
            say({"cancel": lost})
        told = next((b.command for b in beats if b.command in ("STOP", "DRAIN")), "NONE")
        if told not in ("NONE", self.told):
            say({"command": told})
        self.told = told

    def _put_off(self, due: Sequence[Lease]) -> None:
        now = time.monotonic()
        with self.changed:
            for held in due:
                pause = min(held.seconds / _SHARE / 2, _AFTER_TROUBLE_SECONDS)
                held.due_at = now + max(pause, _SHORTEST_SECONDS)


def say(message: dict[str, Any]) -> None:
    """Tells the worker; when nobody listens any more, the end of stdin will come, too."""
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except OSError:
        os._exit(0)


def beater_of(start: dict[str, Any]) -> Beater:
    """Returns what extends leases where the worker's tasks come from."""
    if start.get("gateway"):
        return GatewayBeater(
            start["gateway"], start.get("ca_file"), start["worker_id"], start["extend_seconds"]
        )
    return DatabaseBeater(start["url"], start["worker_id"], start["extend_seconds"])


def main() -> None:
    # A service manager signals all processes of a worker; this one ends with the worker's pipe.
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, signal.SIG_IGN)
    parent = os.getppid()
    first = sys.stdin.readline()
    if not first:
        return
    start = json.loads(first)["start"]
    heart = Heart(beater_of(start), start["token"])
    # Before there is a lease: imports and a login take a while on a machine that is busy.
    with suppress(BeatFailed):
        heart.beater.connect()
    say({"ready": True})
    Thread(target=_listen, args=(heart,), name="listener", daemon=True).start()
    heart.run(parent)
    os._exit(0)


def _listen(heart: Heart) -> None:
    for line in sys.stdin:
        heart.hear(json.loads(line))
    heart.end()


if __name__ == "__main__":
    main()

"""The worker's end of the pipe to `heart.py`: tells it of leases, hears what becomes of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from typing import IO, Any, Protocol

Held = tuple[int, int, float]
"""Task id, lease token, for how many seconds the lease was given."""

# A worker does not wait longer than that for its heartbeat before it claims.
_READY_SECONDS = 15.0
# One that dies younger than this is not started again at once.
_SHORT_LIFE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Heard:
    """Whom to tell: of lost leases, of a command, of a refused token, of anything for the log."""

    cancel: Callable[[Iterable[int]], None]
    command: Callable[[str], None]
    refused: Callable[[], None]
    note: Callable[[str], None]


class Heartbeat(Protocol):
    def begin(self, heard: Heard) -> None:
        """Returns when leases can be extended."""

    def hold(self, leases: Iterable[Held]) -> None: ...

    def drop(self, task_ids: Iterable[int]) -> None: ...

    def use_token(self, token: str) -> None: ...

    def end(self) -> None: ...


class HeartProcess:
    """A `Heartbeat` in a process of its own, which is started again if it dies.

    `start` is the first line of its stdin: where the leases are, who holds them, the token.
    """

    def __init__(self, start: dict[str, Any]) -> None:
        self._start = start
        self._lock = Lock()
        self._held: dict[int, Held] = {}
        self._process: subprocess.Popen[str] | None = None
        self._is_over = False
        self._is_ready = Event()

    def begin(self, heard: Heard) -> None:
        with self._lock:
            process = self._spawn()
        Thread(target=self._listen, args=(process, heard), name="heartbeat", daemon=True).start()
        self._is_ready.wait(_READY_SECONDS)

    def hold(self, leases: Iterable[Held]) -> None:
        with self._lock:
            new = list(leases)
            self._held.update((held[0], held) for held in new)
            self._write({"hold": new})

    def drop(self, task_ids: Iterable[int]) -> None:
        with self._lock:
            gone = [task_id for task_id in task_ids if self._held.pop(task_id, None)]
            if gone:
                self._write({"drop": gone})

    def use_token(self, token: str) -> None:
        with self._lock:
            self._start = {**self._start, "token": token}
            self._write({"token": token})

    def end(self) -> None:
        with self._lock:
            self._is_over = True
            process = self._process
            if process is not None and process.stdin is not None:
                _close(process.stdin)
        if process is not None:
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:  # in the middle of a call; nothing is lost
                process.kill()
                process.wait()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _spawn(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            # Without the working folder in its path: a handler's folder may hold a `json.py`.
            [sys.executable, "-P", "-m", "wfsql.worker.heart"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": _search_path()},
        )
        self._process = process
        self._write({"start": self._start})
        if self._held:
            self._write({"hold": list(self._held.values())})
        return process

    def _write(self, message: dict[str, Any]) -> None:
        """Under the lock. A process that has died is replaced by `_listen`, and told anew."""
        process = self._process
        if process is None or process.stdin is None or self._is_over:
            return
        with suppress(OSError, ValueError):
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()

    def _listen(self, process: subprocess.Popen[str], heard: Heard) -> None:
        while True:
            began = time.monotonic()
            assert process.stdout is not None
            for line in process.stdout:
                message = json.loads(line)
                if "ready" in message:
                    self._is_ready.set()
                _tell(message, heard)
            process.wait()
            _close(process.stdin)
            _close(process.stdout)
            if time.monotonic() - began < _SHORT_LIFE_SECONDS and not self._is_over:
                time.sleep(_SHORT_LIFE_SECONDS)
            with self._lock:
                if self._is_over:
                    return
                heard.note("the heartbeat process has died; starting it again")
                process = self._spawn()


def _search_path() -> str:
    """Returns where the process finds this package: where it was found here."""
    here = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))


def _close(stream: IO[str] | None) -> None:
    # What was still to be written is of no use to a process that has gone.
    with suppress(OSError):
        if stream is not None:
            stream.close()


def _tell(message: dict[str, Any], heard: Heard) -> None:
    if "cancel" in message:
        heard.cancel(message["cancel"])
    if "command" in message:
        heard.command(message["command"])
    if "refused" in message:
        heard.refused()
    if "note" in message:
        heard.note(message["note"])

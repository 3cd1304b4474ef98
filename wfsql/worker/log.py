"""What a worker writes: a line per task, and a line for everything else that matters."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from wfsql.worker.source import Finished


class WorkerLog(Protocol):
    def note(self, text: str) -> None: ...

    def task(self, done: Finished, *, refused: str | None = None) -> None:
        """One task is done with; `refused` says why its result did not count."""


class TextLog:
    """Lines for people. `say` makes text safe for a terminal; `is_quiet`: no lines for tasks."""

    def __init__(self, say: Callable[[str], None], *, is_quiet: bool = False) -> None:
        self._say = say
        self._is_quiet = is_quiet

    def note(self, text: str) -> None:
        self._say(text)

    def task(self, done: Finished, *, refused: str | None = None) -> None:
        if refused is not None:
            self._say(f"{done.name}: result not taken: {refused}")
        elif not self._is_quiet:
            note = f": {done.message}" if done.message else ""
            self._say(f"{done.name} -> {done.code} in {done.took_seconds * 1000:.0f} ms{note}")


class JsonLog:
    """One JSON object a line, on stderr: `timestamp`, `level`, `event`, and what belongs to it."""

    def __init__(
        self,
        worker_id: str,
        *,
        is_quiet: bool = False,
        write: Callable[[str], object] = sys.stderr.write,
    ) -> None:
        self._worker_id = worker_id
        self._is_quiet = is_quiet
        self._write = write

    def note(self, text: str) -> None:
        self._line("info", text)

    def task(self, done: Finished, *, refused: str | None = None) -> None:
        if refused is None and self._is_quiet:
            return
        level = "warning" if refused is not None or done.code < 0 else "info"
        event = "task done" if refused is None else "result not taken"
        about = {
            "task": done.name,
            "task_id": done.task_id,
            "result_code": done.code,
            "took_ms": round(done.took_seconds * 1000, 1),
            "message": done.message,
            "reason": refused,
        }
        self._line(level, event, **{k: v for k, v in about.items() if v is not None})

    def _line(self, level: str, event: str, **about: object) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {
            "timestamp": now,
            "level": level,
            "event": event,
            "worker_id": self._worker_id,
            **about,
        }
        self._write(json.dumps(line) + "\n")

"""The journal of a run: what was done with the machine, one JSON text per line.

A run that was killed goes on by reading it: the machine is deterministic, so the same calls bring
it to where it was, and an action whose result stands here is not run again. Each line goes to the
operating system in one write before its step is taken, which survives the death of the process at
any moment; a last line that was cut off counts as never written. It is not synced to the disk: a
power cut may lose the last actions, which are run again then.

    {"journal_format": 1, "workflow": …, "content_hash": …, "instance_id": …, "context": {…}, …}
    {"do": "begin", "id": 2, "now": 0}
    {"do": "complete", "id": 2, "now": 15, "code": 0, "output": {…}, "message": null}
    {"do": "advance", "now": 3000}        {"do": "redeliver"}
    {"do": "found", "key": …, "exported": {…}}

The last one is what a store of bundles has found during the call above it, so that the run that
goes on finds the same, whatever is stored by then.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from compiler import json_values

JOURNAL_FORMAT = 1
FILE_NAME = "journal.jsonl"

_FIELDS: Final[dict[Any, set[str]]] = {
    "header": set(),
    "begin": {"id", "now"},
    "complete": {"id", "now", "code", "output", "message"},
    "advance": {"now"},
    "redeliver": set(),
    "found": {"key", "exported"},
}


@dataclass(frozen=True, slots=True)
class JournalProblem:
    """Why a journal cannot be used; one line for the user."""

    message: str


@dataclass(slots=True)
class Journal:
    """An open journal; `entries` are those of the run that goes on."""

    path: Path
    descriptor: int
    header: dict[str, Any]
    entries: list[dict[str, Any]] = field(default_factory=list)

    @property
    def last_ms(self) -> int:
        """The latest time in it."""
        return max((entry.get("now", 0) for entry in self.entries), default=0)

    def write(self, entry: dict[str, Any]) -> None:
        """Appends a line.

        Raises:
          OSError: the disk is full, or the file is gone; the journal is as it was before.
        """
        _append(self.descriptor, entry)

    def close(self) -> None:
        os.close(self.descriptor)


def _append(descriptor: int, entry: dict[str, Any]) -> None:
    line = (json_values.dumps(entry) + "\n").encode()
    end = os.lseek(descriptor, 0, os.SEEK_END)
    try:
        written = 0
        while written < len(line):
            written += os.write(descriptor, line[written:])
    except OSError:
        # A part of a line would do no harm at the end of the file, only before another one.
        with suppress(OSError):
            os.ftruncate(descriptor, end)
        raise


def open_journal(folder: Path, header: dict[str, Any]) -> Journal | JournalProblem:
    """Opens the journal of a run, or begins it with `header`.

    A journal that is there must be of the same workflow, content and context.
    """
    path = folder / FILE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        return JournalProblem(f"{path}: {(error.strerror or str(error)).lower()}")
    journal = _read(path, descriptor, {"journal_format": JOURNAL_FORMAT, **header})
    if isinstance(journal, JournalProblem):
        os.close(descriptor)
    return journal


def _read(path: Path, descriptor: int, header: dict[str, Any]) -> Journal | JournalProblem:
    if not _lock(descriptor):
        return JournalProblem(f"{path}: another run is using it")
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    lines: list[dict[str, Any]] = []
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):
        entry = _entry(line)
        if entry is None:
            return JournalProblem(f"{path}: line {number} is damaged")
        lines.append(entry)
    try:
        os.ftruncate(descriptor, len(whole))
        if not lines:
            _append(descriptor, header)
            return Journal(path, descriptor, header)
    except OSError as error:
        return JournalProblem(f"{path}: {(error.strerror or str(error)).lower()}")
    misfit = _misfit(lines[0], header)
    if misfit is not None:
        return JournalProblem(f"{path}: {misfit}")
    return Journal(path, descriptor, lines[0], lines[1:])


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        # Not `json_values.loads`: its limits were kept by each value alone, not by a whole line.
        value = json.loads(
            line.decode(),
            parse_int=json_values.parse_number,
            parse_float=json_values.parse_number,
        )
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_entry(value) else None


def _is_entry(value: dict[str, Any]) -> bool:
    done = value.get("do", "header")
    return isinstance(done, str) and done in _FIELDS and value.keys() >= _FIELDS[done]


def _misfit(found: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    if found.get("journal_format") != JOURNAL_FORMAT:
        return "it is no journal of this version"
    if found.get("workflow") != wanted["workflow"]:
        return f"it is a run of workflow {found.get('workflow')}"
    if found.get("content_hash") != wanted["content_hash"]:
        return "the workflow has changed since that run; use another folder"
    if _text(found.get("context")) != _text(wanted["context"]):
        return "it is a run with another context; use another folder"
    return None


def _text(value: Any) -> str:
    return json_values.dumps(value, sort_keys=True)


def _lock(descriptor: int) -> bool:
    """Takes the file for this process until it ends; where the system cannot, it is not checked."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

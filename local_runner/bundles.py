"""Bundles: what iterations of a FOREACH with `reuse` have exported, by content key (semantics §9).

A machine knows only the protocol `BundleStore`. `content_keys` is the one definition of keys here;
`FileBundles` keeps entries in a project's folder, `MemoryBundles` for as long as it lives.

    {root}/.caas/foreach_bundle/{content key}/entry.json
    {"bundle_format": 1, "content_key": …, "workflow": …, "path": …, "created_at_ns": …,
     "exported": {…}, "sha256": …}

An entry is written whole under a temporary name, and the folder is renamed to its own: a folder
that is there is never renamed onto, so that the first of two writers wins, and whoever is killed
leaves no half entry. What cannot be read, or has another hash than its own, counts as absent and
is told. No fault of a store ends a run.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from compiler import json_values
from local_runner.expressions import Program, evaluate
from local_runner.values import EngineError, JsonValue

if TYPE_CHECKING:
    from local_runner.execution import Execution, View
    from local_runner.graph import Node

BUNDLE_FORMAT: Final = 1
FOLDER: Final = Path(".caas") / "foreach_bundle"
_FILE: Final = "entry.json"
_TEMPORARY: Final = ".new-"
_LEFTOVER_SECONDS: Final = 60


class BundleStore(Protocol):
    """Where a machine looks for what it need not do again."""

    def find(self, key: str) -> dict[str, JsonValue] | None:
        """Returns what was exported under a key; None when nothing was."""

    def store(
        self,
        key: str,
        exported: dict[str, JsonValue],
        *,
        workflow: str,
        path: str,
        replaces: bool,
    ) -> None:
        """Stores what an iteration has exported; unless it `replaces`, the first one stays."""


def content_keys(workflow: str, loop: Execution, view: View) -> list[str]:
    """Returns the content key of each iteration of a FOREACH (S9.1): 64 hex digits.

    Only the item and the loop's own index differ between them, so the rest is written once.
    """
    node = loop.node
    assert node.reuse is not None, "only a FOREACH with `reuse` has content keys"
    fixed = json_values.canonical([workflow, node.reuse.fingerprint, node.key])[:-1]
    outer = json_values.canonical(_outer_items(loop))
    reads = [_written(read, node, view) for read in node.reuse.reads]
    before = f"{fixed},"
    after = f",{outer},[{','.join(reads)}]]"
    keys: list[str] = []
    for number, item in enumerate(loop.items):
        tail = after.replace(_INDEX, str(number)).replace(_NUMBER, str(number + 1))
        text = f"{before}{json_values.canonical(item)}{tail}"
        keys.append(hashlib.sha256(text.encode()).hexdigest())
    return keys


# Stand for what differs between iterations; neither can be part of canonical JSON.
_INDEX: Final = "\x01"
_NUMBER: Final = "\x02"


def _written(read: Program, loop: Node, view: View) -> str:
    """Returns `[value]` of what a FOREACH's body reads, `[]` when it is not there."""
    reference = read.code[0][1]
    if reference.kind == "var" and loop.body is not None and reference.owner == loop.body.key:
        return f"[{_INDEX}]"
    if reference.kind == "ctx" and reference.name in ("index", "iterationNo"):
        return f"[{_INDEX}]" if reference.name == "index" else f"[{_NUMBER}]"
    value = evaluate(read, view)
    return "[]" if type(value) is EngineError else json_values.canonical([value])


def _outer_items(loop: Execution) -> list[JsonValue]:
    items: list[JsonValue] = []
    step: Execution | None = loop
    while step is not None and step.parent is not None:
        if step.node.is_iteration and step.parent.node.type == "FOREACH":
            items.append(step.parent.items[step.iteration])
        step = step.parent
    items.reverse()
    return items


class MemoryBundles:
    """Entries that go with the object; for tests, and for runs that shall leave no files."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, JsonValue]] = {}

    def find(self, key: str) -> dict[str, JsonValue] | None:
        return self._entries.get(key)

    def store(
        self,
        key: str,
        exported: dict[str, JsonValue],
        *,
        workflow: str,
        path: str,
        replaces: bool,
    ) -> None:
        if replaces or key not in self._entries:
            self._entries[key] = exported


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a project's folder, read and found whole."""

    key: str
    workflow: str
    path: str
    created_at_ns: int
    exported: dict[str, JsonValue]
    size: int


@dataclass(frozen=True, slots=True)
class Damage:
    """An entry that cannot be used; `reason` is for the user."""

    key: str
    reason: str


class FileBundles:
    """The entries of one project, shared by any number of runs at once.

    Args:
      project_root: the folder that holds `.caas`.
      on_problem: hears of each damaged entry, and of the first of each kind of fault in storing.
    """

    def __init__(
        self, project_root: Path, on_problem: Callable[[str], None] = lambda _text: None
    ) -> None:
        self.folder = project_root / FOLDER
        self._on_problem = on_problem
        self._told: set[str] = set()

    # -- what a machine asks for

    def find(self, key: str) -> dict[str, JsonValue] | None:
        entry = self.read(key)
        if isinstance(entry, Damage):
            self._tell(key, f"{self.folder / key}: {entry.reason}; the iteration runs again")
            return None
        return None if entry is None else entry.exported

    def store(
        self,
        key: str,
        exported: dict[str, JsonValue],
        *,
        workflow: str,
        path: str,
        replaces: bool,
    ) -> None:
        document = {
            "bundle_format": BUNDLE_FORMAT,
            "content_key": key,
            "workflow": workflow,
            "path": path,
            "created_at_ns": time.time_ns(),
            "exported": exported,
        }
        text = json_values.dumps(document | {"sha256": json_values.sha256_hex(document)})
        try:
            self._write(key, text.encode(), replaces)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            self._tell(
                reason, f"{path}: what it exported cannot be stored for reuse: {reason}; it goes on"
            )

    def _tell(self, subject: str, text: str) -> None:
        if subject not in self._told:
            self._told.add(subject)
            self._on_problem(text)

    def _write(self, key: str, data: bytes, replaces: bool) -> None:
        temporary = self.folder / f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}"
        try:
            temporary.mkdir(parents=True)
            (temporary / _FILE).write_bytes(data)
            try:
                temporary.rename(self.folder / key)
            except OSError:
                if not (self.folder / key).is_dir():
                    raise
                if replaces or not isinstance(self.read(key), Entry):
                    (temporary / _FILE).replace(self.folder / key / _FILE)
        finally:
            if temporary.exists():
                shutil.rmtree(temporary, ignore_errors=True)

    # -- what `wf cache` asks for

    def content_keys(self) -> Iterator[str]:
        """Yields the keys of all entries, sorted."""
        with suppress(FileNotFoundError):
            yield from sorted(name for name in os.listdir(self.folder) if _is_key(name))

    def leftovers(self) -> Iterator[str]:
        """Yields the names of what killed writers have left behind; it is no entry.

        What is younger than a minute may belong to a writer that lives.
        """
        latest = time.time() - _LEFTOVER_SECONDS
        for path in sorted(self.folder.glob(f"{_TEMPORARY}*")):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < latest:
                    yield path.name

    def read(self, key: str) -> Entry | Damage | None:
        """Reads an entry and proves it by its own hash; None when there is none."""
        data = self._bytes_of(key)
        if not isinstance(data, bytes):
            return data
        try:
            document = json_values.loads(data.decode())
        except (ValueError, RecursionError, json_values.UnstorableValue):
            return Damage(key, "the entry is damaged")
        return _entry(key, document, len(data)) or Damage(key, "the entry is damaged")

    def _bytes_of(self, key: str) -> bytes | Damage | None:
        path = self.folder / key / _FILE
        # Twice: the folder may have come, whole, between the first look and that for the folder.
        for _ in range(2):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                if not path.parent.exists():
                    return None
            except OSError as error:
                return Damage(key, (error.strerror or str(error)).lower())
        return Damage(key, "the entry has no file")

    def remove(self, name: str) -> None:
        """Takes an entry or a leftover away; a run that reads it meanwhile sees all or nothing.

        Raises:
          OSError: it cannot be removed.
        """
        gone = self.folder / f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}"
        with suppress(FileNotFoundError):
            (self.folder / name).rename(gone)
            shutil.rmtree(gone)


def _is_key(name: str) -> bool:
    return len(name) == 64 and all(digit in "0123456789abcdef" for digit in name)


def _entry(key: str, document: Any, size: int) -> Entry | None:
    if not isinstance(document, dict) or document.get("bundle_format") != BUNDLE_FORMAT:
        return None
    told = document.pop("sha256", None)
    if document.get("content_key") != key or json_values.sha256_hex(document) != told:
        return None
    try:
        return Entry(
            key,
            document["workflow"],
            document["path"],
            document["created_at_ns"],
            document["exported"],
            size,
        )
    except KeyError:
        return None

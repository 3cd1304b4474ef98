"""A store of bundles whose answers stand in the journal.

A run that goes on makes the calls of the killed run again, and must be told the same about bundles
in each of them: `answering` gives the answers that were written below a call. Only the last call of
a journal may have been cut off; what it asks beyond its answers is asked of the store itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from local_runner.bundles import BundleStore
from local_runner.values import JsonValue

Entry = dict[str, Any]


class JournaledBundles:
    """Passes questions on to a store and writes its answers down.

    Args:
      write: appends an entry to the journal.
    """

    def __init__(self, store: BundleStore, write: Callable[[Entry], None]) -> None:
        self._store = store
        self._write = write
        self._answers: deque[Entry] = deque()
        self._is_certain = False

    @contextmanager
    def answering(self, answers: Iterable[Entry], *, is_last: bool) -> Iterator[None]:
        """Answers one call that is made again as the journal has it."""
        self._answers.extend(answers)
        self._is_certain = not is_last
        yield
        self._answers.clear()
        self._is_certain = False

    def find(self, key: str) -> dict[str, JsonValue] | None:
        if self._answers and self._answers[0]["key"] == key:
            exported: dict[str, JsonValue] = self._answers.popleft()["exported"]
            return exported
        if self._is_certain or self._answers:
            return None
        found = self._store.find(key)
        if found is not None:
            self._write({"do": "found", "key": key, "exported": found})
        return found

    def store(
        self,
        key: str,
        exported: dict[str, JsonValue],
        *,
        workflow: str,
        path: str,
        replaces: bool,
    ) -> None:
        # A call that was made to its end has stored already.
        if not self._is_certain:
            self._store.store(key, exported, workflow=workflow, path=path, replaces=replaces)

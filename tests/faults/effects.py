"""What handlers have told: each call of one, and when it began and ended."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Effect:
    """One call of a handler. `at`: seconds since 1970, as the database's clock has them."""

    worker: str
    instance: int
    path: str
    at: float


class Effects:
    """Collects what handlers tell, in the order in which it comes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.begun: list[Effect] = []
        self._in_hand: Counter[str] = Counter()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        threading.Thread(target=self._listen, name="effects", daemon=True).start()

    def in_hand(self, worker: str) -> int:
        """How many calls of a worker's handler have begun and not ended."""
        return self._in_hand[worker]

    def forget(self, worker: str) -> None:
        """A killed worker has nothing in hand."""
        del self._in_hand[worker]

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while said := self._socket.recv(4096):
                worker, what, instance, path, at = said.decode().split()
                self._in_hand[worker] += 1 if what == "begin" else -1
                if what == "begin":
                    self.begun.append(Effect(worker, int(instance), path, float(at)))

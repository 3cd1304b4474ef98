"""One log for everything that `wf dev` runs: a time, who says it, what.

Lines of all sources come through `write`, from any thread, one at a time. Every source keeps its
colour on a terminal; what it says is made safe for one.
"""

from __future__ import annotations

import sys
from datetime import datetime
from threading import Lock
from typing import TextIO

from dsl.plain import plain

_COLOURS = ("36", "35", "33", "34", "32", "96", "95", "93")
_SOURCE_WIDTH = 10
_SESSION = "dev"


class DevLog:
    """Writes to `stream`; colours only when it is a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._coloured = self._stream.isatty()
        self._lock = Lock()
        self._colours: dict[str, str] = {}

    def write(self, source: str, text: str) -> None:
        """Writes each line of `text`; an empty text writes nothing."""
        now = datetime.now().strftime("%H:%M:%S")
        with self._lock:
            for line in text.splitlines():
                name = self._painted(source, f"{source:<{_SOURCE_WIDTH}}")
                self._stream.write(f"{now} {name} {plain(line)}\n".rstrip(" "))
            self._stream.flush()

    def say(self, text: str) -> None:
        """Writes what `wf dev` itself has to say."""
        self.write(_SESSION, text)

    def _painted(self, source: str, text: str) -> str:
        if not self._coloured:
            return text
        colour = "1" if source == _SESSION else self._colour(source)
        return f"\x1b[{colour}m{text}\x1b[0m"

    def _colour(self, source: str) -> str:
        if source not in self._colours:
            self._colours[source] = _COLOURS[len(self._colours) % len(_COLOURS)]
        return self._colours[source]

"""What `wf run` shows while it runs: a live table on a terminal, else a line per finished action.

The table lists what runs and since when, how many actions wait, and how far each loop is; it is
drawn by a thread of Rich's from the state that `Board` keeps, so the state is only read by copies.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dsl.plain import plain
from local_runner.events import (
    ActionAbandoned,
    ActionFinished,
    ActionOffered,
    ActionStarted,
    Event,
    NodeEnded,
    RunInterrupted,
    TimelineEntry,
)
from wfsql.cli.output import say

if TYPE_CHECKING:
    from local_runner.engine import RunResult

_SHOWN = 12


@contextmanager
def progress() -> Iterator[Callable[[Event], None]]:
    """Gives the listener of a run."""
    if not sys.stderr.isatty():
        yield say_event
        return
    from rich.console import Console
    from rich.live import Live

    board = Board()
    console = Console(stderr=True)
    with Live(
        get_renderable=board.table, console=console, refresh_per_second=8, transient=True
    ) as live:

        def listen(event: Event) -> None:
            board.note(event)
            for line in _lines(event):
                live.console.print(line, markup=False, highlight=False)

        yield listen


def say_event(event: Event) -> None:
    """Writes what is worth a line."""
    for line in _lines(event):
        say(line)


def _lines(event: Event) -> list[str]:
    if isinstance(event, ActionFinished):
        note = f": {event.message}" if event.message else ""
        return [plain(f"  {event.path}  {event.action} -> {event.result_code}{note}")]
    if isinstance(event, ActionAbandoned):
        return [plain(f"  {event.path}  {event.action} timed out; its thread is left behind")]
    if isinstance(event, RunInterrupted) and event.running_count:
        return [f"interrupted: waiting for {_handlers(event.running_count)}; Ctrl-C again ends it"]
    return []


def _handlers(count: int) -> str:
    return "the handler that runs" if count == 1 else f"the {count} handlers that run"


class Board:
    """The state of a run as its events tell it."""

    def __init__(self) -> None:
        self.running: dict[str, tuple[str, int, float]] = {}
        self.waiting: dict[str, str] = {}
        self.loops: dict[str, tuple[int, int]] = {}
        self.finished = 0

    def note(self, event: Event) -> None:
        match event:
            case ActionOffered(path=path, action=action):
                self.waiting[path] = action
            case ActionStarted(path=path, action=action, worker=worker):
                self.waiting.pop(path, None)
                self.running[path] = (action, worker, time.monotonic())
            case ActionFinished(path=path) | ActionAbandoned(path=path):
                self.running.pop(path, None)
                self.finished += 1
            case NodeEnded(path=path, total=None):
                # A cancelled action waits no more; an ended loop needs no line.
                self.waiting.pop(path, None)
                self.loops.pop(path, None)
            case NodeEnded(path=path, total=int(total)):
                loop = path.rpartition("[")[0]
                self.loops[loop] = (self.loops.get(loop, (0, 0))[0] + 1, total)

    def lines(self) -> list[tuple[str, str, str]]:
        """Returns the rows of the table: what it is, where, how far."""
        now = time.monotonic()
        rows = [
            ("runs", f"{path}  {action}", f"worker {worker + 1}, {now - since:.1f} s")
            for path, (action, worker, since) in list(self.running.items())[:_SHOWN]
        ]
        rows += [
            ("loop", path, f"{done} of {total}")
            for path, (done, total) in list(self.loops.items())[:_SHOWN]
        ]
        waiting = list(self.waiting.items())
        rows += [("waits", f"{path}  {action}", "") for path, action in waiting[:3]]
        if len(waiting) > 3:
            rows.append(("waits", f"and {len(waiting) - 3} more", ""))
        return rows

    def table(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, title=None, show_header=False)
        for row in self.lines():
            table.add_row(*(Text(plain(cell), overflow="ellipsis", no_wrap=True) for cell in row))
        table.add_row(Text("done"), Text(f"{self.finished} actions"), Text(""))
        return table


def show_summary(result: RunResult) -> None:
    """Writes a table by action to a terminal: calls, failures, time."""
    if not sys.stderr.isatty() or not result.timeline:
        return
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE, pad_edge=False)
    for column in ("ACTION", "CALLS", "FAILED", "BUSY"):
        table.add_column(column, justify="left" if column == "ACTION" else "right")
    for action, (calls, failures, busy) in by_action(result.timeline).items():
        table.add_row(Text(plain(action)), str(calls), str(failures), f"{busy:.2f} s")
    Console(stderr=True).print(table)


def by_action(timeline: Iterable[TimelineEntry]) -> dict[str, tuple[int, int, float]]:
    """Returns calls, failed calls and busy seconds of each action, in order of the first call."""
    found: dict[str, tuple[int, int, float]] = {}
    for entry in timeline:
        calls, failures, busy = found.get(entry.action, (0, 0, 0.0))
        failures += entry.result_code < 0
        found[entry.action] = calls + 1, failures, busy + entry.ended_at - entry.started_at
    return found

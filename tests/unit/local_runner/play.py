"""Plays a machine without threads: what each action answers is a function of its command.

The clock is virtual: it moves to the next due time only when nothing can be claimed (R12).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler.spec import GraphSpec
from local_runner.bundles import BundleStore
from local_runner.commands import CancelAction, Command, RunAction
from local_runner.machine import Machine
from local_runner.trace import trace_document

Answer = Callable[[RunAction], Any]

HANGS = object()
"""The answer of an action that never ends."""


class Player:
    """A driver of one worker, which a test may also move by hand."""

    def __init__(
        self,
        spec: GraphSpec,
        context: dict[str, Any] | None = None,
        bundles: BundleStore | None = None,
    ) -> None:
        self.machine = Machine(spec, "the-instance", context or {}, bundles=bundles)
        self.offered: list[RunAction] = []
        self.now = 0
        self.claims: list[tuple[int, str]] = []

    def obey(self, commands: tuple[Command, ...]) -> None:
        for command in commands:
            if isinstance(command, RunAction):
                self.offered.append(command)
            elif isinstance(command, CancelAction):
                self.offered = [c for c in self.offered if c.execution_id != command.execution_id]

    def start(self) -> Player:
        self.obey(self.machine.start(self.now))
        return self

    def advance(self, to_ms: int) -> None:
        self.now = to_ms
        self.obey(self.machine.advance(to_ms))

    def claim(self, key: str | None = None, *, reverse: bool = False) -> RunAction | None:
        """Begins the best action that can be claimed, or that of a node."""
        able = [c for c in self.offered if c.available_ms <= self.now]
        if key is not None:
            able = [c for c in able if c.node_key == key]
        if not able:
            return None
        command = sorted(able, key=lambda c: c.claim_key, reverse=reverse)[0]
        self.offered.remove(command)
        self.claims.append((self.now, command.path))
        self.machine.begin(command.execution_id, self.now)
        return command

    def submit(self, command: RunAction, code: int = 0, output: Any = None, *message: Any) -> None:
        self.obey(
            self.machine.complete(
                command.execution_id, code, output, *(message or (None,)), now_ms=self.now
            )
        )

    def run(self, answer: Answer, *, reverse: bool = False) -> Machine:
        while True:
            command = self.claim(reverse=reverse)
            if command is not None:
                result = answer(command)
                if result is not HANGS:
                    self.submit(command, *result)
            else:
                due = self.machine.next_due()
                if due is None:
                    return self.machine
                self.advance(due)


def play(
    spec: GraphSpec,
    context: dict[str, Any] | None = None,
    answer: Answer = lambda command: (0, None),
    *,
    reverse: bool = False,
) -> Machine:
    """Runs to the end, one action at a time in claim order (or the last offered first).

    An answer is `(code, output)`, `(code, output, message)`, or HANGS.
    """
    return Player(spec, context).start().run(answer, reverse=reverse)


def rows(machine: Machine) -> dict[str, dict[str, Any]]:
    """Returns the trace's rows by path."""
    return {row["path"]: row for row in trace_document(machine)["nodes"]}


def statuses(machine: Machine) -> dict[str, str]:
    return {path: row["status"] for path, row in rows(machine).items()}


def variables(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = trace_document(machine)["variables"]
    return found

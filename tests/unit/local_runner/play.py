"""Plays a machine without threads: what each action answers is a function of its command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler.spec import GraphSpec
from local_runner.commands import CancelAction, RunAction
from local_runner.machine import Machine
from local_runner.trace import trace_document

Answer = Callable[[RunAction], Any]


def play(
    spec: GraphSpec,
    context: dict[str, Any] | None = None,
    answer: Answer = lambda command: (0, None),
    *,
    reverse: bool = False,
) -> Machine:
    """Runs to the end, one action at a time in claim order (or the last offered first).

    An answer is `(code, output)` or `(code, output, message)`.
    """
    machine = Machine(spec, "the-instance", context or {})
    offered = [c for c in machine.start() if isinstance(c, RunAction)]
    while offered:
        offered.sort(key=lambda command: command.claim_key, reverse=reverse)
        command = offered.pop(0)
        machine.begin(command.execution_id)
        for following in machine.complete(command.execution_id, *answer(command)):
            if isinstance(following, RunAction):
                offered.append(following)
            elif isinstance(following, CancelAction):
                offered = [c for c in offered if c.execution_id != following.execution_id]
    return machine


def rows(machine: Machine) -> dict[str, dict[str, Any]]:
    """Returns the trace's rows by path."""
    return {row["path"]: row for row in trace_document(machine)["nodes"]}


def statuses(machine: Machine) -> dict[str, str]:
    return {path: row["status"] for path, row in rows(machine).items()}


def variables(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = trace_document(machine)["variables"]
    return found

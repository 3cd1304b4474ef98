"""Cases on the local runner: the pure state machine, driven without threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from local_runner.bundles import MemoryBundles
from local_runner.commands import CancelAction, Command, RunAction
from local_runner.graph import Graph, load_graph, unsupported_parts, wait_event_keys
from local_runner.machine import Machine
from local_runner.trace import trace_document
from wfsql.testing.cases import LOCAL
from wfsql.testing.engines import (
    ClaimedTask,
    EngineProblem,
    ExecutionInfo,
    NotStarted,
    Remains,
    Session,
    without_id,
)

if TYPE_CHECKING:
    from compiler.spec import GraphSpec
    from wfsql.testing.cases import SendEvent


# Ids are masked in traces, so they must not look like test data.
_FIRST_ID = 7_300_000_000


class LocalEngine:
    """Runs cases in this process."""

    name = LOCAL

    def __init__(self) -> None:
        self._graphs: dict[int, tuple[GraphSpec, Graph]] = {}
        self._bundles = MemoryBundles()
        self._count = 0

    def start(self, spec: GraphSpec, context: Any) -> Session | NotStarted:
        graph = self._graph(spec)
        self._count += 1
        own_id = f"local-{_FIRST_ID + self._count}"
        machine = Machine(graph, own_id, context, bundles=self._bundles)
        session = LocalSession(machine)
        if machine.error is not None and machine.status == "CREATED":
            code = machine.error.engine_code or 0
            return NotStarted(machine.status, code, machine.error.message)
        return session

    def forget_bundles(self) -> None:
        self._bundles = MemoryBundles()

    def close(self) -> None:
        self._graphs.clear()

    def _graph(self, spec: GraphSpec) -> Graph:
        known = self._graphs.get(id(spec))
        if known is not None:
            return known[1]
        waits = wait_event_keys(spec)
        if waits:
            raise EngineProblem(
                f"workflow {spec.name} waits for events ({', '.join(waits)}), so it runs only in a"
                " database",
                "name the engines of the file: `engines: [pg]`",
            )
        parts = unsupported_parts(spec)
        if parts:
            raise EngineProblem(f"the local runner does not run {', '.join(parts)} yet")
        graph = load_graph(spec)
        self._graphs[id(spec)] = (spec, graph)
        return graph


class LocalSession:
    """One machine, the actions it has offered, and those that are claimed and still wanted."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._now_ms = 0
        self._offered: dict[int, RunAction] = {}
        self._claimed: dict[int, RunAction] = {}
        self._obey(machine.start(self._now_ms))

    def claim(self) -> ClaimedTask | None:
        available = [c for c in self._offered.values() if c.available_ms <= self._now_ms]
        if not available:
            return None
        command = min(available, key=lambda c: c.claim_key)
        del self._offered[command.execution_id]
        self._claimed[command.execution_id] = command
        self._machine.begin(command.execution_id, self._now_ms)
        return ClaimedTask(
            command.execution_id, command.node_key, command.path, command.input, command
        )

    def submit(self, task: ClaimedTask, code: int, output: Any, message: str | None) -> None:
        if self._claimed.get(task.execution_id) is task.handle:
            del self._claimed[task.execution_id]
            done = self._machine.complete(task.execution_id, code, output, message, self._now_ms)
            self._obey(done)

    def send(self, event: SendEvent) -> int:
        raise EngineProblem("events can only be sent in a database")

    def waiting_keys(self) -> frozenset[str]:
        return frozenset()

    def completed_waits(self) -> tuple[str, ...]:
        return ()

    def advance_clock(self, milliseconds: int) -> None:
        self._now_ms += milliseconds
        self._obey(self._machine.advance(self._now_ms))

    def advance_to_next_due(self) -> bool:
        due = self._machine.next_due()
        if due is None:
            return False
        self.advance_clock(max(0, due - self._now_ms))
        return True

    def remains(self) -> Remains:
        return Remains(
            without_id(trace_document(self._machine), self._machine.instance_id),
            tuple(
                ExecutionInfo(
                    execution.id,
                    0 if execution.parent is None else execution.parent.id,
                    execution.node.key,
                    execution.status,
                )
                for execution in self._machine.executions.values()
            ),
        )

    def abandon(self) -> None:
        self._machine.cancel()

    def _obey(self, commands: tuple[Command, ...]) -> None:
        for command in commands:
            if isinstance(command, RunAction):
                self._offered[command.execution_id] = command
            elif isinstance(command, CancelAction):
                self._offered.pop(command.execution_id, None)
                self._claimed.pop(command.execution_id, None)

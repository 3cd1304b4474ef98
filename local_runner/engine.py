"""The local engine: a GraphSpec, handlers and a start context in, a result with its trace out.

What cannot run is refused as a value before anything runs: a WAIT_EVENT, a part of the graph that
is not supported, a missing handler, a context that is no JSON object.
"""

from __future__ import annotations

import gc
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler import json_values
from local_runner.bundles import BundleStore
from local_runner.clock import Clock, RealClock
from local_runner.driver import Driver
from local_runner.dry_run import Scripts, Step, dry_run
from local_runner.events import Listener, TimelineEntry
from local_runner.execution import NodeError
from local_runner.graph import Graph, load_graph, unsupported_parts, wait_event_keys
from local_runner.handlers import Handlers
from local_runner.journal import Journal, JournalProblem, open_journal
from local_runner.journaled_bundles import JournaledBundles
from local_runner.machine import Machine
from local_runner.trace import trace_document
from local_runner.values import JsonValue, type_word

if TYPE_CHECKING:
    from compiler.spec import GraphSpec


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended.

    `status` is SUCCEEDED, FAILED, CANCELLED (interrupted), or CREATED when the input did not fit:
    then nothing ran and `error` says why.
    """

    status: str
    error: NodeError | None
    output: JsonValue
    trace: dict[str, JsonValue]
    timeline: tuple[TimelineEntry, ...]


@dataclass(frozen=True, slots=True)
class WaitEventUnsupported:
    """The workflow waits for events, which only a database can deliver."""

    workflow: str
    keys: tuple[str, ...]

    @property
    def message(self) -> str:
        listed = ", ".join(self.keys)
        return (
            f"workflow {self.workflow} waits for events ({listed}), so it runs only in a database"
        )


@dataclass(frozen=True, slots=True)
class SpecUnsupported:
    """The graph uses what the local runner does not run yet."""

    workflow: str
    parts: tuple[str, ...]

    @property
    def message(self) -> str:
        listed = ", ".join(self.parts)
        return f"workflow {self.workflow} is not supported by the local runner: {listed}"


@dataclass(frozen=True, slots=True)
class MissingHandlers:
    """Some actions of the workflow have no handler."""

    workflow: str
    actions: tuple[str, ...]

    @property
    def message(self) -> str:
        return f"workflow {self.workflow} has actions without a handler: {', '.join(self.actions)}"


@dataclass(frozen=True, slots=True)
class ContextRefused:
    """The start context is no JSON object that can be stored (R7)."""

    workflow: str
    reason: str

    @property
    def message(self) -> str:
        return f"the context of workflow {self.workflow} was refused: {self.reason}"


@dataclass(frozen=True, slots=True)
class JournalRefused:
    """The journal cannot be used for this run."""

    workflow: str
    reason: str

    @property
    def message(self) -> str:
        return f"the journal was refused: {self.reason}"


Refusal = WaitEventUnsupported | SpecUnsupported | MissingHandlers | ContextRefused | JournalRefused


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The way that assumed results lead, with every input that was built on it."""

    status: str
    error: NodeError | None
    output: JsonValue
    steps: tuple[Step, ...]
    trace: dict[str, JsonValue]


class LocalWorkflowEngine:
    """Runs one workflow in this process, as often as wanted.

    Args:
      handlers: loaded handlers, or plain functions by action name.
      parallel_workers: how many handlers may run at a time. With 1 the order of actions is fixed.
      executor: runs the handlers in place of threads; one of processes takes handlers that can be
        pickled, functions of a module. `parallel_workers` is how many it gets at a time.
      on_event: called in the thread of `run` for each action started or finished and node ended;
        for an interrupt at once, in another thread.
    """

    def __init__(
        self,
        spec: GraphSpec,
        handlers: Handlers | Mapping[str, Callable[..., Any]],
        *,
        parallel_workers: int = 1,
        on_event: Listener | None = None,
        executor: Executor | None = None,
    ) -> None:
        if parallel_workers < 1:
            raise ValueError("parallel_workers must be at least 1")
        self._spec = spec
        self._handlers = (
            handlers if isinstance(handlers, Handlers) else Handlers.from_functions(handlers)
        )
        self._parallel_workers = parallel_workers
        self._on_event = on_event
        self._executor = executor
        self._graph: Graph | None = None

    def run(
        self,
        context: Mapping[str, Any],
        *,
        instance_id: str | None = None,
        journal: Path | None = None,
        clock: Clock | None = None,
        bundles: BundleStore | None = None,
    ) -> RunResult | Refusal:
        """Runs one instance to its end.

        Args:
          bundles: where iterations of a FOREACH with `reuse` are looked up and stored; without it
            they all run.
          journal: a folder for the journal of the run; one that is there already goes on.

        Raises:
          OSError: the journal could not be written on; what it holds is intact.
        """
        with patient_collector():
            return self._run(context, instance_id, journal, clock, bundles)

    def _run(
        self,
        context: Mapping[str, Any],
        instance_id: str | None,
        journal: Path | None,
        clock: Clock | None,
        bundles: BundleStore | None,
    ) -> RunResult | Refusal:
        graph = self._prepare()
        if not isinstance(graph, Graph):
            return graph
        start = _start_context(self._spec.name, context)
        if isinstance(start, ContextRefused):
            return start
        own_id = instance_id or f"local-{uuid.uuid4().hex}"
        if journal is None:
            machine = Machine(graph, own_id, start, bundles=bundles)
            return self._drive(machine, clock or RealClock())
        opened = open_journal(journal, self._journal_header(start, own_id))
        if isinstance(opened, JournalProblem):
            return JournalRefused(self._spec.name, opened.message)
        try:
            answers = None if bundles is None else JournaledBundles(bundles, opened.write)
            machine = Machine(graph, opened.header["instance_id"], start, bundles=answers)
            return self._drive(machine, clock or _clock_of(opened), opened, answers)
        finally:
            opened.close()

    def dry_run(
        self, context: Mapping[str, Any], scripts: Scripts | None = None
    ) -> DryRunResult | Refusal:
        """Plays one instance with assumed results; it calls no handler and needs none."""
        graph = self._prepare(needs_handlers=False)
        if not isinstance(graph, Graph):
            return graph
        start = _start_context(self._spec.name, context)
        if isinstance(start, ContextRefused):
            return start
        machine, steps = dry_run(graph, start, scripts or Scripts())
        return DryRunResult(
            machine.status, machine.error, machine.output, steps, trace_document(machine)
        )

    def _journal_header(self, context: dict[str, JsonValue], instance_id: str) -> dict[str, Any]:
        return {
            "workflow": self._spec.name,
            "content_hash": self._spec.content_hash(),
            "instance_id": instance_id,
            "started_at_ms": time.time_ns() // 1_000_000,
            "context": context,
        }

    def _drive(
        self,
        machine: Machine,
        clock: Clock,
        journal: Journal | None = None,
        bundles: JournaledBundles | None = None,
    ) -> RunResult:
        driver = Driver(
            machine,
            self._handlers,
            self._parallel_workers,
            self._on_event,
            clock=clock,
            journal=journal,
            bundles=bundles,
            executor=self._executor,
        )
        driver.run()
        return RunResult(
            status=machine.status,
            error=machine.error,
            output=machine.output,
            trace=trace_document(machine),
            timeline=tuple(driver.timeline),
        )

    def _prepare(self, *, needs_handlers: bool = True) -> Graph | Refusal:
        name = self._spec.name
        if self._graph is None:
            waits = wait_event_keys(self._spec)
            if waits:
                return WaitEventUnsupported(name, waits)
            parts = unsupported_parts(self._spec)
            if parts:
                return SpecUnsupported(name, parts)
            self._graph = load_graph(self._spec)
        missing = self._handlers.missing(self._graph.action_names) if needs_handlers else ()
        return MissingHandlers(name, missing) if missing else self._graph


@contextmanager
def patient_collector() -> Iterator[None]:
    """Lets the collector of cycles come seldom: a run makes many objects and lets few go.

    What it would look through again and again are the executions, which all stay.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], 50_000) if before[0] else 0, 50, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _start_context(
    workflow: str, context: Mapping[str, Any]
) -> dict[str, JsonValue] | ContextRefused:
    try:
        start = json_values.from_python(dict(context) if isinstance(context, Mapping) else context)
    except json_values.UnstorableValue as error:
        return ContextRefused(workflow, str(error))
    if not isinstance(start, dict):
        return ContextRefused(workflow, f"it must be an object, not {type_word(start)}")
    return start


def _clock_of(journal: Journal) -> Clock:
    """The time between a kill and the run that goes on has passed too, but never backwards."""
    passed = time.time_ns() // 1_000_000 - int(journal.header["started_at_ms"])
    return RealClock(max(passed, journal.last_ms))

"""Drives one machine with a pool of threads until its instance has ended.

The calling thread alone owns the machine. It keeps the offered actions in a heap in claim order
and hands the first to the pool whenever a worker is free; results come back through a queue. With
one worker that is the driver of R12: claim one, submit one.
"""

from __future__ import annotations

import heapq
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from local_runner.commands import CancelAction, Command, RunAction
from local_runner.execution import Execution
from local_runner.handlers import Handlers, Outcome, TaskContext
from local_runner.machine import Machine


@dataclass(frozen=True, slots=True)
class ActionStarted:
    path: str
    action: str
    worker: int


@dataclass(frozen=True, slots=True)
class ActionFinished:
    path: str
    action: str
    worker: int
    result_code: int
    message: str | None


@dataclass(frozen=True, slots=True)
class NodeEnded:
    path: str
    type: str
    status: str


Event = ActionStarted | ActionFinished | NodeEnded
Listener = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One call of a handler; times are seconds of the monotonic clock."""

    path: str
    action: str
    worker: int
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class _Done:
    command: RunAction
    outcome: Outcome | BaseException
    worker: int
    started_at: float
    ended_at: float


class Driver:
    """Runs the actions of one machine. Use it once, by `run`."""

    def __init__(
        self,
        machine: Machine,
        handlers: Handlers,
        parallel_workers: int,
        listener: Listener | None,
    ) -> None:
        self._machine = machine
        self._handlers = handlers
        self._worker_count = parallel_workers
        self._listener = listener
        self._ready: list[tuple[tuple[int, int], RunAction]] = []
        self._running: dict[int, TaskContext] = {}
        self._results: queue.SimpleQueue[_Done | None] = queue.SimpleQueue()
        self._free_workers = list(range(parallel_workers))
        self.timeline: list[TimelineEntry] = []

    def run(self) -> None:
        """Works until the instance has ended and no handler runs any more.

        An interrupt (Ctrl-C) starts nothing new, waits for the handlers that run, and leaves the
        instance CANCELLED. A second one is raised to the caller.
        """
        pool = ThreadPoolExecutor(self._worker_count, thread_name_prefix="wf-worker")
        with self._interrupts_as_results(), pool:
            self._obey(self._machine.start())
            while True:
                while self._free_workers and self._ready:
                    self._hand_out(pool)
                if not self._running:
                    return
                done = self._results.get()
                self._obey(self._machine.cancel() if done is None else self._take(done))

    @contextmanager
    def _interrupts_as_results(self) -> Iterator[None]:
        """Lets an interrupt come in through the queue, so that it never splits a step in two."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        before = signal.getsignal(signal.SIGINT) or signal.SIG_DFL

        def note(_number: int, _frame: FrameType | None) -> None:
            signal.signal(signal.SIGINT, before)
            self._results.put(None)

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _obey(self, commands: tuple[Command, ...]) -> None:
        cancelled: set[int] = set()
        for command in commands:
            if isinstance(command, RunAction):
                heapq.heappush(self._ready, (command.claim_key, command))
            elif isinstance(command, CancelAction):
                cancelled.add(command.execution_id)
        for execution_id in cancelled & self._running.keys():
            self._running[execution_id].cancelled.set()
        if cancelled:
            self._ready = [entry for entry in self._ready if entry[1].execution_id not in cancelled]
            heapq.heapify(self._ready)

    def _hand_out(self, pool: ThreadPoolExecutor) -> None:
        command = heapq.heappop(self._ready)[1]
        worker = heapq.heappop(self._free_workers)
        context = TaskContext(
            command.path, command.attempt, self._machine.instance_id, threading.Event()
        )
        self._machine.begin(command.execution_id)
        self._running[command.execution_id] = context
        self._notify(ActionStarted(command.path, command.action, worker))
        pool.submit(self._call, command, context, worker)

    def _call(self, command: RunAction, context: TaskContext, worker: int) -> None:
        """Runs in a worker thread; a result always comes back, or the driver would wait for it."""
        started_at = time.monotonic()
        outcome: Outcome | BaseException
        try:
            outcome = self._handlers.invoke(command.action, command.input, context)
        except BaseException as error:
            outcome = error
        self._results.put(_Done(command, outcome, worker, started_at, time.monotonic()))

    def _take(self, done: _Done) -> tuple[Command, ...]:
        command, outcome = done.command, done.outcome
        del self._running[command.execution_id]
        heapq.heappush(self._free_workers, done.worker)
        if isinstance(outcome, BaseException):
            raise outcome
        self.timeline.append(
            TimelineEntry(command.path, command.action, done.worker, done.started_at, done.ended_at)
        )
        self._notify(
            ActionFinished(command.path, command.action, done.worker, outcome.code, outcome.message)
        )
        return self._machine.complete(
            command.execution_id, outcome.code, outcome.output, outcome.message
        )

    def _notify(self, event: Event) -> None:
        if self._listener is not None:
            self._listener(event)


def node_ended(listener: Listener) -> Callable[[Execution], None]:
    """Returns the machine's `on_ended` that tells a listener of the author's nodes."""

    def tell(execution: Execution) -> None:
        node = execution.node
        if node.is_iteration or not node.generated:
            listener(NodeEnded(execution.path, node.type, execution.status))

    return tell

"""Drives one machine with worker threads until its instance has ended.

The calling thread alone owns the machine. It keeps the offered actions in a heap in claim order
and hands the first to a worker whenever one is free; results come back through a queue, and what
is due by time is applied in between. With one worker that is the driver of R12: claim one, submit
one. With a journal each call of the machine is written down first, so that a run that was killed
goes on by making the same calls again.

Handlers run in threads of the driver's own, in an executor that it is given, or, where only one
may run and nothing can happen meanwhile, in the calling thread itself.
"""

from __future__ import annotations

import heapq
import queue
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from local_runner.clock import Clock, RealClock
from local_runner.commands import CancelAction, Command, RunAction
from local_runner.events import (
    ActionAbandoned,
    ActionFinished,
    ActionOffered,
    ActionStarted,
    Event,
    Listener,
    RunInterrupted,
    TimelineEntry,
    node_ended,
)
from local_runner.handlers import Handlers, Outcome, TaskContext, failure, invoke
from local_runner.journal import Journal
from local_runner.journaled_bundles import JournaledBundles
from local_runner.machine import Machine
from local_runner.workers import Workers


@dataclass(slots=True, eq=False)
class _Call:
    """A handler that is being called; `deadline_ms` is that of the action's own time-out.

    `context` is shared by all handlers that ask for none.
    """

    command: RunAction
    context: TaskContext | None
    worker: int
    deadline_ms: int | None
    started_at: float = 0.0
    ended_at: float = 0.0
    outcome: Outcome | BaseException | None = None
    future: Future[Outcome] | None = None
    is_cancelled: bool = False

    def cancel(self) -> None:
        """Tells the handler that nobody wants its result any more; one in a queue never starts."""
        self.is_cancelled = True
        if self.context is not None:
            self.context.cancelled.set()
        if self.future is not None:
            self.future.cancel()


_WAKE_SECONDS: Final = 0.5
_INTERRUPT: Final = "interrupt"
_NOTHING: Final = "nothing"


class Driver:
    """Runs the actions of one machine. Use it once, by `run`."""

    def __init__(
        self,
        machine: Machine,
        handlers: Handlers,
        parallel_workers: int,
        listener: Listener | None,
        *,
        clock: Clock | None = None,
        journal: Journal | None = None,
        bundles: JournaledBundles | None = None,
        executor: Executor | None = None,
    ) -> None:
        self._machine = machine
        self._handlers = handlers
        self._listener = listener
        self._clock = clock or RealClock()
        self._journal = journal
        self._bundles = bundles
        self._executor = executor
        # Offered actions: those available now in claim order, the others by their time.
        self._ready: list[tuple[tuple[int, int, int], RunAction]] = []
        self._later: list[tuple[int, int, RunAction]] = []
        self._running: dict[int, _Call] = {}
        self._results: queue.SimpleQueue[_Call | str] = queue.SimpleQueue()
        self._may_run_here = parallel_workers == 1 and executor is None
        # A handler is being called in this thread; one that was called so has come back.
        self._is_calling = False
        self._is_interrupted = False
        self._done_here: _Call | None = None
        self._taken_at: int | None = None
        self._free_workers = list(range(parallel_workers))
        self._workers = Workers()
        self.timeline: list[TimelineEntry] = []

    def run(self) -> None:
        """Works until the instance has ended and no handler runs any more.

        An interrupt (Ctrl-C) starts nothing new, waits for the handlers that run, and leaves the
        instance CANCELLED. A second one is raised to the caller.
        """
        with self._interrupts_as_results():
            try:
                self._begin_run()
                while self._step():
                    pass
            finally:
                self._workers.close()

    def _begin_run(self) -> None:
        entries = () if self._journal is None else tuple(self._journal.entries)
        # What was told in the killed run is not told again.
        offered = self._replayed(entries) if entries else ()
        if self._listener is not None:
            self._machine.on_ended = node_ended(self._listener)
        if entries:
            for command in offered:
                self._offer(command)
            self._write({"do": "redeliver"})
            self._obey(self._machine.redeliver())
        else:
            self._obey(self._machine.start())

    def _step(self) -> bool:
        """Hands out what can be, then waits for one thing to happen; False when all is over."""
        # The time at which a result was taken just now still holds.
        now = self._now() if self._taken_at is None else self._taken_at
        self._taken_at = None
        self._apply_due(now)
        if self._may_run_here:
            now = self._run_here(now)
        self._hand_out_ready(now)
        if self._done_here is not None:
            done, self._done_here = self._done_here, None
            if self._results.empty():
                self._taken_at = self._take(done)
                return True
            # An interrupt came while it ran, and goes first.
            self._results.put(done)
        due = self._next_due()
        if not self._running and due is None and self._results.empty():
            return False
        happened = self._wait(due)
        if isinstance(happened, _Call):
            self._take(happened)
        elif happened == _INTERRUPT:
            self._obey(self._machine.cancel())
        return True

    def _wait(self, due_ms: int | None) -> _Call | str:
        patience = self._clock.patience(due_ms, is_idle=not self._running)
        # A signal may reach another thread; this one hears of it when it next wakes.
        longest = _WAKE_SECONDS if patience is None else min(patience, _WAKE_SECONDS)
        try:
            return self._results.get(timeout=longest)
        except queue.Empty:
            return _NOTHING

    @contextmanager
    def _interrupts_as_results(self) -> Iterator[None]:
        """Lets an interrupt come in through the queue, so that it never splits a step in two."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        before = signal.getsignal(signal.SIGINT) or signal.SIG_DFL
        tellers: list[threading.Thread] = []

        def note(_number: int, _frame: FrameType | None) -> None:
            signal.signal(signal.SIGINT, before)
            self._is_interrupted = True
            # First of all: what handlers return once they have heard of it comes behind it.
            self._results.put(_INTERRUPT)
            # Told here already, because a handler may be running in this thread.
            for call in list(self._running.values()):
                call.cancel()
            # A handler may be writing to the terminal in this thread, just now.
            told = RunInterrupted(len(self._running) or int(self._is_calling))
            tellers.append(threading.Thread(target=self._notify, args=(told,)))
            tellers[-1].start()

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            for teller in tellers:
                teller.join()

    # -- time

    def _now(self) -> int:
        # A clock that was made anew for a run that goes on may stand before its last step.
        return max(self._clock.now_ms(), self._machine.now_ms)

    def _next_due(self) -> int | None:
        due = self._machine.next_due()
        times = [
            call.deadline_ms
            for call in self._running.values()
            if call.deadline_ms is not None and call.is_cancelled
        ]
        if due is not None:
            times.append(due)
        return min(times, default=None)

    def _apply_due(self, now: int) -> None:
        due = self._machine.next_due()
        if due is not None and due <= now:
            self._write({"do": "advance", "now": now})
            self._obey(self._machine.advance(now), is_timeout=True)
        if not self._running:
            return
        for call in list(self._running.values()):
            # A cancelled handler may still use its own time up, but no more.
            if call.deadline_ms is not None and call.deadline_ms <= now:
                self._abandon(call)

    def _abandon(self, call: _Call) -> None:
        call.cancel()
        del self._running[call.command.execution_id]
        if call.future is None:
            self._workers.abandon(call.worker)
        heapq.heappush(self._free_workers, call.worker)
        self._notify(ActionAbandoned(call.command.path, call.command.action, call.worker))

    # -- commands

    def _obey(self, commands: tuple[Command, ...], *, is_timeout: bool = False) -> None:
        dropped = {c.execution_id for c in commands if isinstance(c, CancelAction)}
        offered: dict[int, RunAction] = {}
        # An offer that comes after a cancellation is the next attempt, and stands.
        _keep_offers(offered, commands)
        for execution_id in dropped & self._running.keys():
            call = self._running[execution_id]
            call.cancel()
            if is_timeout:
                self._abandon(call)
        if dropped:
            self._withdraw(dropped)
        for command in offered.values():
            self._offer(command)

    def _offer(self, command: RunAction) -> None:
        if command.available_ms <= self._machine.now_ms:
            heapq.heappush(self._ready, (command.claim_key, command))
        else:
            heapq.heappush(self._later, (command.available_ms, command.execution_id, command))
        if self._listener is not None:
            self._listener(ActionOffered(command.path, command.action))

    def _withdraw(self, execution_ids: set[int]) -> None:
        self._ready = [entry for entry in self._ready if entry[1].execution_id not in execution_ids]
        self._later = [entry for entry in self._later if entry[1] not in execution_ids]
        heapq.heapify(self._ready)
        heapq.heapify(self._later)

    def _hand_out_ready(self, now: int) -> None:
        while self._later and self._later[0][0] <= now:
            command = heapq.heappop(self._later)[2]
            heapq.heappush(self._ready, (command.claim_key, command))
        while self._free_workers and self._ready and not self._is_interrupted:
            self._hand_out(heapq.heappop(self._ready)[1], now)

    def _hand_out(self, command: RunAction, now: int) -> None:
        worker = heapq.heappop(self._free_workers)
        context = None
        if self._handlers.wants_context(command.action):
            own_id = self._machine.instance_id
            context = TaskContext(command.path, command.attempt, own_id)
        deadline = None if command.timeout_ms is None else now + command.timeout_ms
        call = _Call(command, context, worker, deadline)
        if self._journal is not None:
            self._write({"do": "begin", "id": command.execution_id, "now": now})
        self._machine.begin(command.execution_id, now)
        self._running[command.execution_id] = call
        if self._listener is not None:
            self._listener(ActionStarted(command.path, command.action, worker))
        if self._executor is not None:
            self._submit(call, self._executor)
        elif self._may_run_here and self._is_alone(command):
            self._call(call)
            self._done_here = call
        else:
            self._workers.run(worker, lambda: self._call_and_report(call))

    def _is_alone(self, command: RunAction) -> bool:
        """Whether the only worker may be this thread, which saves two switches of threads.

        Nothing can happen meanwhile: no time runs out, and no other handler comes back.
        """
        is_timed = command.timeout_ms is not None or self._machine.next_due() is not None
        return not is_timed and self._handlers.is_plain(command.action)

    def _run_here(self, now: int) -> int:
        """Does many steps at once, while each is: call a handler, submit its result.

        It takes what `_hand_out` would call in this thread and nothing else could be told of: no
        handler that may ask whether it is still wanted, and nothing that waits for its time.

        Returns:
          The time at which the last result was taken.
        """
        machine, handlers = self._machine, self._handlers
        while self._ready and not (self._running or self._later or self._is_interrupted):
            command = self._ready[0][1]
            handler = handlers.get(command.action)
            is_timed = command.timeout_ms is not None or machine.next_due() is not None
            if is_timed or handler.wants_context or handler.is_async:
                break
            heapq.heappop(self._ready)
            if self._journal is not None:
                self._write({"do": "begin", "id": command.execution_id, "now": now})
            machine.begin(command.execution_id, now)
            if self._listener is not None:
                self._listener(ActionStarted(command.path, command.action, 0))
            outcome: Outcome | BaseException
            started_at, self._is_calling = time.monotonic(), True
            try:
                outcome = handlers.invoke(command.action, command.input, None)
            except BaseException as error:
                outcome = error
            ended_at, self._is_calling = time.monotonic(), False
            if not isinstance(outcome, Outcome) or self._is_interrupted:
                self._leave_to_step(command, outcome, started_at, ended_at)
                break
            now = self._now()
            self._finish(command, 0, started_at, ended_at, outcome, now)
        return now

    def _leave_to_step(
        self,
        command: RunAction,
        outcome: Outcome | BaseException,
        started_at: float,
        ended_at: float,
    ) -> None:
        """Makes a call that was interrupted, or has raised, one that has come back just now."""
        call = _Call(command, None, heapq.heappop(self._free_workers), None, started_at, ended_at)
        call.outcome = outcome
        self._running[command.execution_id] = self._done_here = call

    def _call(self, call: _Call) -> None:
        """Calls the handler; some outcome always comes back, or the driver would wait for it."""
        command, call.started_at = call.command, time.monotonic()
        try:
            call.outcome = self._handlers.invoke(command.action, command.input, call.context)
        except BaseException as error:
            call.outcome = error
        call.ended_at = time.monotonic()

    def _call_and_report(self, call: _Call) -> None:
        """Does so in a worker thread."""
        self._call(call)
        self._results.put(call)

    def _submit(self, call: _Call, executor: Executor) -> None:
        command, call.started_at = call.command, time.monotonic()

        def come_back(future: Future[Outcome]) -> None:
            call.outcome = _outcome_of(future)
            call.ended_at = time.monotonic()
            self._results.put(call)

        handler = self._handlers.get(command.action)
        try:
            call.future = executor.submit(
                invoke, handler, command.action, command.input, call.context
            )
        except (BrokenExecutor, RuntimeError) as error:
            # A pool that has broken takes nothing more; so does one that was shut down.
            call.outcome, call.ended_at = failure(_described(error)), time.monotonic()
            self._results.put(call)
            return
        call.future.add_done_callback(come_back)

    def _take(self, call: _Call) -> int:
        """Hands a result to the machine and returns the time at which it did."""
        # One time for both: nothing may become due between them.
        now = self._now()
        self._apply_due(now)
        command, outcome = call.command, call.outcome
        if self._running.get(command.execution_id) is not call:
            return now
        del self._running[command.execution_id]
        heapq.heappush(self._free_workers, call.worker)
        if outcome is None or isinstance(outcome, BaseException):
            raise outcome or RuntimeError("a worker came back without an outcome")
        self._finish(command, call.worker, call.started_at, call.ended_at, outcome, now)
        return now

    def _finish(
        self,
        command: RunAction,
        worker: int,
        started_at: float,
        ended_at: float,
        outcome: Outcome,
        now: int,
    ) -> None:
        """Tells of a result and hands it to the machine."""
        path, action, code = command.path, command.action, outcome.code
        self.timeline.append(TimelineEntry(path, action, worker, started_at, ended_at, code))
        if self._listener is not None:
            self._listener(ActionFinished(path, action, worker, code, outcome.message))
        if self._journal is not None:
            entry = {"do": "complete", "id": command.execution_id, "now": now}
            result = {"code": code, "output": outcome.output, "message": outcome.message}
            self._write(entry | result)
        done = self._machine.complete(
            command.execution_id, code, outcome.output, outcome.message, now
        )
        if len(done) == 1 and type(done[0]) is RunAction:
            self._offer(done[0])
        else:
            self._obey(done)

    def _notify(self, event: Event) -> None:
        if self._listener is not None:
            self._listener(event)

    # -- the journal

    def _write(self, entry: dict[str, object]) -> None:
        if self._journal is not None:
            self._journal.write(entry)

    def _replayed(self, entries: Sequence[dict[str, Any]]) -> Iterable[RunAction]:
        """Makes the calls of the killed run again; returns what it had offered and not begun."""
        offered: dict[int, RunAction] = {}
        calls = _with_answers(entries)
        for number, (entry, answers) in enumerate(calls, 1):
            if entry["do"] == "begin":
                offered.pop(entry["id"], None)
            with self._answering(answers, is_last=number == len(calls)):
                _keep_offers(offered, _repeat(self._machine, entry))
        return offered.values()

    def _answering(
        self, answers: list[dict[str, Any]], *, is_last: bool
    ) -> AbstractContextManager[None]:
        if self._bundles is None:
            return nullcontext()
        return self._bundles.answering(answers, is_last=is_last)


def _outcome_of(future: Future[Outcome]) -> Outcome | BaseException:
    """Returns what a handler in an executor has left; it may have taken its process with it."""
    try:
        return future.result()
    except BrokenExecutor as error:
        return failure(_described(error))
    except CancelledError:
        return failure("it was cancelled before it began")
    except Exception as error:
        return failure(f"it cannot be run in the executor: {type(error).__name__}: {error}")
    except BaseException as error:
        return error


def _described(error: Exception) -> str:
    if isinstance(error, BrokenExecutor):
        return "the process that ran it, or one beside it in the pool, has died"
    return f"the executor takes no more work: {error}"


def _with_answers(
    entries: Iterable[dict[str, Any]],
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Returns each call with what its store of bundles found; the first is the start."""
    calls: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [({"do": "start"}, [])]
    for entry in entries:
        if entry["do"] == "found":
            calls[-1][1].append(entry)
        else:
            calls.append((entry, []))
    return calls


def _keep_offers(offered: dict[int, RunAction], commands: tuple[Command, ...]) -> None:
    for command in commands:
        if isinstance(command, RunAction):
            offered[command.execution_id] = command
        elif isinstance(command, CancelAction):
            offered.pop(command.execution_id, None)


def _repeat(machine: Machine, entry: dict[str, Any]) -> tuple[Command, ...]:
    """Makes one call as the journal has it; no handler is called."""
    match entry["do"]:
        case "start":
            return machine.start()
        case "begin":
            machine.begin(entry["id"], entry["now"])
        case "complete":
            return machine.complete(
                entry["id"], entry["code"], entry["output"], entry["message"], now_ms=entry["now"]
            )
        case "advance":
            return machine.advance(entry["now"])
        case "redeliver":
            return machine.redeliver()
    return ()

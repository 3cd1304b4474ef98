"""The worker: claims tasks, runs their handlers, hands in the results.

Flow: the main loop claims as many tasks as threads are free, a little more when tasks are short →
a thread runs the handler → the submitter hands in what has piled up while it was at the one before,
as one call → the loop is woken and claims again. Leases are extended by a process of its own
(`heart.py`). A result is kept on disk, where there is a spool, until its call is answered.

`stop()` (SIGTERM) ends the claiming; what is in hand is finished and handed in. The command DRAIN
does the same. STOP, or `abandon()`, gives the tasks back instead, without waiting for their
handlers (R28).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Condition, Event, Thread

from runtime_sql.connection import Task
from wfsql.worker.heartbeat import Heard, Heartbeat, Held
from wfsql.worker.log import WorkerLog
from wfsql.worker.pace import Pace
from wfsql.worker.patience import Backoff, repeat
from wfsql.worker.source import Finished, TaskSource, Trouble
from wfsql.worker.spool import Spool
from wfsql.worker.submitter import Submitter

_SHORTEST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.25
# What was claimed ahead is given to others when no task in hand has come to an end for so long.
_AHEAD_SECONDS = 0.5
# How long a worker that gives up its tasks goes on trying to say so.
_FAREWELL_SECONDS = 2.0
# How long the last results are tried, where they are kept on disk for the next start.
_LAST_RESULTS_SECONDS = 10.0
_TICK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a handler gave: result code, output as JSON text, a message when it failed."""

    code: int
    output_json: str | None
    message: str | None = None


Invoke = Callable[[Task, Event], Outcome | None]
"""Runs the handler of a task; the event is set when its result is no longer wanted. None: there is
no handler for this action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    concurrency: int = 1
    lease_seconds: int = 60
    idle_exit_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why a worker had to end; `is_fault`: the reason is a fault of wfsql."""

    message: str
    hint: str | None = None
    is_fault: bool = False


@dataclass(slots=True, eq=False)
class _InHand:
    task: Task
    cancelled: Event = field(default_factory=Event)


class Worker:
    """One worker process. `run` returns None after an orderly end, else why it had to stop.

    `tick`, if given, is called every 5 s in a thread of its own; a gateway does it for itself.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        source: TaskSource,
        invoke: Invoke,
        heartbeat: Heartbeat,
        log: WorkerLog,
        *,
        spool: Spool | None = None,
        tick: Callable[[], object] | None = None,
    ) -> None:
        self._settings = settings
        self._source = source
        self._invoke = invoke
        self._heartbeat = heartbeat
        self._log = log
        self._spool = spool
        self._tick = tick
        self._stop = Event()
        self._over = Event()
        self._wake = Event()
        # Guards what is in hand; threads wait at it for tasks.
        self._work = Condition()
        self._in_hand: dict[int, _InHand] = {}
        self._waiting: deque[_InHand] = deque()
        self._thread_count = 0
        self._moved_at = time.monotonic()
        self._pace = Pace(settings.concurrency)
        self._reason: Stopped | None = None
        self._submitter = Submitter(source, spool, log, self._done_with, self._refused)
        self.abandoned = False

    def stop(self) -> None:
        """Ends the claiming; may be called from any thread, but not from a signal handler."""
        self._stop.set()
        self._source.interrupt()
        self._wake.set()

    def abandon(self) -> None:
        """Ends the claiming, too, and gives back what is in hand; finished results stay."""
        self.abandoned = True
        self.stop()

    def run(self) -> Stopped | None:
        self._heartbeat.begin(Heard(self._cancel, self._obey, self._renew, self._log.note))
        self._submitter.load_spooled()
        self._submitter.start()
        if self._tick is not None:
            Thread(target=self._keep_ticking, name="tick", daemon=True).start()
        try:
            # What an earlier process has left goes first: the leases are the oldest.
            self._submitter.wait_for_all(self._stop)
            self._claim_until_stopped()
            self._wait_for_hands()
        finally:
            self._end()
        return self._reason

    @property
    def in_hand_count(self) -> int:
        """How many tasks are being worked on."""
        return len(self._in_hand)

    @property
    def finished_count(self) -> int:
        """How many results were accepted."""
        return self._submitter.accepted_count

    # Claiming -----------------------------------------------------------------------------------

    def _claim_until_stopped(self) -> None:
        pause = Backoff(_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, draw=lambda: 1.0)
        idle_since = time.monotonic()
        while not self._stop.is_set():
            self._wake.clear()
            room = self._room()
            if not room:
                self._wake.wait(_AHEAD_SECONDS if self._waiting else None)
                self._give_back_what_waits()
                continue
            wait_seconds = self._wait_seconds(idle_since)
            asked_at = time.monotonic()
            claimed = self._claim(room, wait_seconds)
            if claimed or self._in_hand:
                idle_since = time.monotonic()
            if claimed:
                pause.reset()
            elif self._idle_too_long(idle_since):
                return
            has_waited = wait_seconds > 0 and (claimed or time.monotonic() - asked_at > 0.5)
            # A result that has been handed in may have made new work, and wakes this up.
            if claimed < room and not has_waited and self._wake.wait(pause.next()):
                pause.reset()

    def _room(self) -> int:
        """Returns how many tasks to ask for; 0 while there is enough to do."""
        return 0 if self._submitter.is_behind else self._pace.room(len(self._in_hand))

    def _wait_seconds(self, idle_since: float) -> int:
        """Returns how long a request may wait for work at the other end."""
        if len(self._in_hand) >= self._settings.concurrency:
            return 0
        longest = self._source.longest_wait_seconds
        if self._settings.idle_exit_seconds is None:
            return longest
        left = self._settings.idle_exit_seconds - (time.monotonic() - idle_since)
        return min(longest, max(math.ceil(left), 0))

    def _idle_too_long(self, idle_since: float) -> bool:
        limit = self._settings.idle_exit_seconds
        return limit is not None and time.monotonic() - idle_since > limit

    def _claim(self, room: int, wait_seconds: int) -> int:
        claim = repeat(lambda: self._source.request(room, wait_seconds), self._stop, self._log.note)
        if isinstance(claim, Trouble):
            if not claim.passing:
                self._refused(claim)
            return 0
        self._pace.claimed(len(claim.tasks), room)
        if claim.tasks:
            self._take(claim.tasks)
        self._obey(claim.command)
        return len(claim.tasks)

    def _take(self, tasks: Iterable[Task]) -> None:
        taken = [_InHand(task) for task in tasks]
        self._heartbeat.hold([self._lease(held.task) for held in taken])
        with self._work:
            if not self._in_hand:
                self._moved_at = time.monotonic()
            self._in_hand.update((held.task.execution_id, held) for held in taken)
            self._waiting.extend(taken)
            self._work.notify(len(taken))
            wanted = min(self._settings.concurrency, len(self._in_hand))
            for number in range(self._thread_count, wanted):
                Thread(target=self._keep_working, name=f"task-{number}", daemon=True).start()
            self._thread_count = max(self._thread_count, wanted)

    def _lease(self, task: Task) -> Held:
        """Returns what to extend; an action's own lease may be shorter than what was asked for."""
        seconds = float(self._settings.lease_seconds)
        if task.lease_until is not None:
            # By this machine's clock, which may be off; so never longer than was asked for.
            seconds = min(seconds, max(task.lease_until.timestamp() - time.time(), 1.0))
        return task.execution_id, task.lease_token, seconds

    # Ending -------------------------------------------------------------------------------------

    def _obey(self, command: str) -> None:
        if command in {"DRAIN", "STOP"} and not self.abandoned:
            self._log.note(f"told to {command}")
            if command == "STOP":
                self.abandon()
            else:
                self.stop()

    def _renew(self) -> None:
        self._source.renew()

    def _refused(self, reason: Trouble | Exception) -> None:
        self._give_up(because(reason))

    def _give_up(self, reason: Stopped) -> None:
        self._reason = self._reason or reason
        self.stop()

    def _wait_for_hands(self) -> None:
        """Waits for the tasks in hand; a STOP that comes meanwhile ends the waiting."""
        while self._in_hand and not self.abandoned:
            self._wake.wait(_LONGEST_PAUSE_SECONDS)
            self._wake.clear()
        if self.abandoned:
            self._give_back(list(self._in_hand.values()))

    def _end(self) -> None:
        self._over.set()
        left = self._submitter.end(self._patience_seconds())
        with self._work:
            self._work.notify_all()
        self._heartbeat.end()
        if left:
            self._give_up(self._unsubmitted(len(left)))
        if not self.abandoned:
            self._source.close()

    def _patience_seconds(self) -> float:
        if self.abandoned or self._reason is not None:
            return _FAREWELL_SECONDS
        return _LAST_RESULTS_SECONDS if self._spool is not None else self._settings.lease_seconds

    def _unsubmitted(self, count: int) -> Stopped:
        what = "1 result was" if count == 1 else f"{count} results were"
        if self._spool is None:
            return Stopped(f"{what} not handed in; the leases will run out")
        return Stopped(f"{what} not handed in", "they are kept, and go first at the next start")

    def _give_back_what_waits(self) -> None:
        """What was claimed ahead and waits behind tasks that take long is given to others."""
        with self._work:
            if time.monotonic() - self._moved_at < _AHEAD_SECONDS:
                return
            late = list(self._waiting)
            self._waiting.clear()
        if late:
            self._pace.was_wrong(_AHEAD_SECONDS)
            self._give_back(late)

    def _give_back(self, tasks: Sequence[_InHand]) -> None:
        until = time.monotonic() + _FAREWELL_SECONDS
        self._heartbeat.drop([held.task.execution_id for held in tasks])
        for held in tasks:
            held.cancelled.set()
            self._release(held.task, max(until - time.monotonic(), 0.0))
            with self._work:
                self._in_hand.pop(held.task.execution_id, None)

    def _release(self, task: Task, patience_seconds: float) -> None:
        repeat(
            lambda: self._source.release(task.execution_id, task.lease_token),
            Event(),
            self._log.note,
            patience_seconds=patience_seconds,
        )

    # Working ------------------------------------------------------------------------------------

    def _keep_working(self) -> None:
        while True:
            with self._work:
                while not self._waiting and not self._over.is_set():
                    self._work.wait()
                if self._over.is_set():
                    return
                held = self._waiting.popleft()
            try:
                self._do(held)
            except Exception as error:
                # Nobody looks at the thread's result; a fault must end the worker, and be seen.
                self._give_up(because(error))
            finally:
                with self._work:
                    self._in_hand.pop(held.task.execution_id, None)
                    self._moved_at = time.monotonic()
                # With no backlog there is nothing to claim before the result is handed in.
                if self._pace.has_backlog or self._stop.is_set():
                    self._wake.set()

    def _do(self, held: _InHand) -> None:
        task = held.task
        began = time.monotonic()
        outcome = self._invoke(task, held.cancelled)
        took = time.monotonic() - began
        if outcome is None:
            self._refuse(task)
        elif not self.abandoned:
            done = Finished(
                task_id=task.execution_id,
                lease_token=task.lease_token,
                code=outcome.code,
                output_json=outcome.output_json,
                message=outcome.message,
                name=f"{task.path} ({task.instance_id}) {task.action}",
                took_seconds=took,
            )
            self._submitter.put(done)
        # With what it takes to keep the result: that is how quick this thread is.
        self._pace.took(time.monotonic() - began)

    def _refuse(self, task: Task) -> None:
        """Gives back a task that nobody here can do, and ends, so that it is not claimed again."""
        self._heartbeat.drop([task.execution_id])
        self._release(task, _FAREWELL_SECONDS)
        self._give_up(
            Stopped(
                f'no handler for action "{task.action}", which was deployed after the start',
                "add the handler and start the worker again",
            )
        )

    def _done_with(self, task_ids: Sequence[int]) -> None:
        self._heartbeat.drop(task_ids)
        self._wake.set()

    def _cancel(self, task_ids: Iterable[int]) -> None:
        for task_id in task_ids:
            held = self._in_hand.get(task_id)
            if held is not None:
                held.cancelled.set()

    def _keep_ticking(self) -> None:
        assert self._tick is not None
        while not self._over.wait(_TICK_SECONDS):
            self._tick()


def because(trouble: Trouble | Exception) -> Stopped:
    """Returns the reason for an end that a call, or a fault, has brought."""
    if isinstance(trouble, Exception):
        return Stopped(f"{type(trouble).__name__}: {trouble}", is_fault=True)
    code = f" ({trouble.code})" if trouble.code else ""
    return Stopped(f"{trouble.message}{code}", trouble.hint)

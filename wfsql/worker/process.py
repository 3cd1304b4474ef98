"""The worker: claims tasks, runs their handlers, hands in the results.

Flow: the main loop claims as many tasks as threads are free → a thread runs the handler and submits
→ the loop is woken and claims again. A third thread extends the leases of what is in hand, every
third of a lease, and calls `sp_tick` every 5 s so that timers move. With nothing to do, the pauses
between two claims grow from 5 ms to 250 ms.

`stop()` (SIGTERM) ends the claiming; what is in hand is finished and handed in. The command DRAIN
does the same. STOP gives the tasks back instead, without waiting for their handlers (R28).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event, Lock, Thread, local

from runtime_sql.connection import Heartbeat, Task
from runtime_sql.failures import ApiError, DatabaseProblem, Failure, first_line
from wfsql.worker.link import Connect, Link

_SHORTEST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.25
_TICK_SECONDS = 5.0
# So many dead rows make claiming slow before autovacuum comes round.
_DEAD_ROWS_LIMIT = 20_000


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
    worker_id: str
    token: str
    capability: str | None = None
    concurrency: int = 1
    lease_seconds: int = 60
    idle_exit_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why a worker had to end; `is_fault`: the reason is a fault of wfsql."""

    message: str
    hint: str | None = None
    is_fault: bool = False


@dataclass(slots=True)
class _InHand:
    task: Task
    cancelled: Event = field(default_factory=Event)


class Worker:
    """One worker process. `run` returns None after an orderly end, else why it had to stop."""

    def __init__(
        self,
        settings: WorkerSettings,
        connect: Connect,
        invoke: Invoke,
        log: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._connect = connect
        self._invoke = invoke
        self._log = log
        self._stop = Event()
        self._over = Event()
        self._wake = Event()
        self._lock = Lock()
        self._in_hand: dict[int, _InHand] = {}
        self._threads = local()
        self._links: list[Link] = []
        self._reason: Stopped | None = None
        self.abandoned = False
        self.finished_count = 0

    def stop(self) -> None:
        """Ends the claiming; may be called from any thread, but not from a signal handler."""
        self._stop.set()
        self._wake.set()

    def run(self) -> Stopped | None:
        heart = Thread(target=self._keep_leases, name="heartbeat", daemon=True)
        heart.start()
        pool = ThreadPoolExecutor(self._settings.concurrency, thread_name_prefix="task")
        try:
            self._claim_until_stopped(pool)
        finally:
            self._wait_for_hands()
            pool.shutdown(wait=not self.abandoned)
            self._over.set()
            heart.join()
            if not self.abandoned:
                for link in self._links:
                    link.close()
        return self._reason

    @property
    def in_hand_count(self) -> int:
        """How many tasks are being worked on."""
        return len(self._in_hand)

    # Claiming -----------------------------------------------------------------------------------

    def _claim_until_stopped(self, pool: ThreadPoolExecutor) -> None:
        link = self._own_link()
        pause = _SHORTEST_PAUSE_SECONDS
        idle_since = time.monotonic()
        while not self._stop.is_set():
            self._wake.clear()
            free = self._settings.concurrency - len(self._in_hand)
            claimed = self._claim(link, pool, free) if free else 0
            if claimed:
                pause, idle_since = _SHORTEST_PAUSE_SECONDS, time.monotonic()
            if claimed < free:
                if self._idle_too_long(idle_since):
                    return
                woken = self._wake.wait(pause)
                pause = _SHORTEST_PAUSE_SECONDS if woken else min(pause * 2, _LONGEST_PAUSE_SECONDS)
            elif not claimed:
                self._wake.wait()

    def _wait_for_hands(self) -> None:
        """Waits for the tasks in hand; a STOP that comes meanwhile ends the waiting."""
        while self._in_hand and not self.abandoned:
            self._wake.wait(_LONGEST_PAUSE_SECONDS)
            self._wake.clear()

    def _idle_too_long(self, idle_since: float) -> bool:
        limit = self._settings.idle_exit_seconds
        return limit is not None and not self._in_hand and time.monotonic() - idle_since > limit

    def _claim(self, link: Link, pool: ThreadPoolExecutor, free: int) -> int:
        s = self._settings
        claim = link.call(
            lambda client: client.request_tasks(
                s.worker_id, s.token, s.capability, s.lease_seconds, free
            )
        )
        if isinstance(claim, ApiError | DatabaseProblem):
            self._give_up(_because(claim))
            return 0
        for task in claim.tasks:
            held = _InHand(task)
            with self._lock:
                self._in_hand[task.execution_id] = held
            pool.submit(self._work, held)
        self._obey(claim.command)
        return len(claim.tasks)

    def _obey(self, command: str) -> None:
        if command in {"DRAIN", "STOP"}:
            self._log(f"told to {command}")
            self.stop()
        if command == "STOP":
            self._give_back()

    def _give_back(self) -> None:
        self.abandoned = True
        link = self._own_link()
        for held in self._held():
            held.cancelled.set()
            link.call(self._release(held.task))

    def _release(self, task: Task) -> Callable[..., Failure | None]:
        s = self._settings
        return lambda client: client.release_task(task, s.worker_id, s.token)

    def _give_up(self, reason: Stopped) -> None:
        self._reason = self._reason or reason
        self.stop()

    # Working ------------------------------------------------------------------------------------

    def _work(self, held: _InHand) -> None:
        task = held.task
        began = time.monotonic()
        try:
            outcome = self._invoke(task, held.cancelled)
            if outcome is None:
                self._refuse(task)
            elif not self.abandoned:
                self._hand_in(held, outcome, time.monotonic() - began)
        except Exception as error:
            # Nobody looks at the thread's result; a fault must end the worker, and be seen.
            self._give_up(Stopped(f"{type(error).__name__}: {error}", is_fault=True))
        finally:
            with self._lock:
                self._in_hand.pop(task.execution_id, None)
            self._wake.set()

    def _refuse(self, task: Task) -> None:
        """Gives back a task that nobody here can do, and ends, so that it is not claimed again."""
        self._own_link().call(self._release(task))
        self._give_up(
            Stopped(
                f'no handler for action "{task.action}", which was deployed after the start',
                "add the handler and start the worker again",
            )
        )

    def _hand_in(self, held: _InHand, outcome: Outcome, took: float) -> None:
        s, task = self._settings, held.task
        try:
            answer = self._own_link().call(
                lambda client: client.submit_result(
                    task, s.worker_id, s.token, outcome.code, outcome.output_json, outcome.message
                ),
                patience_seconds=s.lease_seconds,
                insist=True,
            )
        except Exception as error:
            # What one instance makes of its result must not end a worker that serves them all.
            answer = ApiError(0, first_line(error))
        name = f"{task.path} ({task.instance_id}) {task.action}"
        if isinstance(answer, ApiError | DatabaseProblem):
            self._submit_failed(task, name, answer)
        elif not answer.accepted:
            self._log(f"{name}: result not taken: {answer.reason}")
        else:
            self.finished_count += 1
            note = f": {outcome.message}" if outcome.message else ""
            self._log(f"{name} -> {outcome.code} in {took * 1000:.0f} ms{note}")

    def _submit_failed(self, task: Task, name: str, failure: ApiError | DatabaseProblem) -> None:
        """A result that the runtime refuses fails the task; anything else ends the worker."""
        self._log(f"{name}: {failure.message}")
        if isinstance(failure, DatabaseProblem) or failure.code == 20001:
            self._give_up(_because(failure))
            return
        s, message = self._settings, failure.message
        self._own_link().call(
            lambda client: client.fail_task(task, s.worker_id, s.token, -1, message)
        )

    # Leases -------------------------------------------------------------------------------------

    def _keep_leases(self) -> None:
        link = self._own_link()
        beat_every = self._settings.lease_seconds / 3
        next_beat = time.monotonic() + beat_every
        next_tick = time.monotonic() + _TICK_SECONDS
        while not self._over.wait(max(min(next_beat, next_tick) - time.monotonic(), 0)):
            if time.monotonic() >= next_beat:
                next_beat = time.monotonic() + beat_every
                for held in self._held():
                    self._beat(link, held)
            if time.monotonic() >= next_tick:
                next_tick = time.monotonic() + _TICK_SECONDS
                tick(link)

    def _beat(self, link: Link, held: _InHand) -> None:
        s = self._settings
        answer = link.call(
            lambda client: client.heartbeat(held.task, s.worker_id, s.token, s.lease_seconds),
            patience_seconds=s.lease_seconds / 3,
        )
        if not isinstance(answer, Heartbeat):
            self._log(f"heartbeat: {answer.message}")
        elif answer.command == "CANCEL" or answer.rows_updated == 0:
            held.cancelled.set()
        else:
            self._obey(answer.command)

    def _held(self) -> list[_InHand]:
        with self._lock:
            return list(self._in_hand.values())

    def _own_link(self) -> Link:
        """Returns the calling thread's link; a connection belongs to one thread."""
        link: Link | None = getattr(self._threads, "link", None)
        if link is None:
            link = Link(self._connect, self._stop, self._log)
            self._threads.link = link
            with self._lock:
                self._links.append(link)
        return link


def tick(link: Link) -> None:
    """Moves the timers on, and vacuums the task queue when it has become slow to claim from."""
    link.call(lambda client: client.tick(), patience_seconds=1.0)
    dead = link.call(lambda client: client.dead_task_rows(), patience_seconds=1.0)
    if isinstance(dead, int) and dead > _DEAD_ROWS_LIMIT:
        # A login that may not do it gets a warning of the server, and nothing breaks.
        link.call(lambda client: client.vacuum_tasks(), patience_seconds=1.0)


def _because(failure: ApiError | DatabaseProblem) -> Stopped:
    if isinstance(failure, ApiError):
        return Stopped(f"{failure.message} ({failure.code})")
    return Stopped(failure.message, failure.hint)

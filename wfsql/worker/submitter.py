"""Hands in results, in a thread of its own.

What piles up while one call is under way goes with the next, so a busy worker makes few calls and
an idle one does not wait. While the other end is away the results stay, on disk where there is a
spool, and are tried again and again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Condition, Event, Thread
from typing import TypeVar

from runtime_sql.connection import Submitted
from wfsql.worker.log import WorkerLog
from wfsql.worker.patience import Backoff
from wfsql.worker.source import BATCH_LIMIT, REFUSED_TOKEN, Finished, TaskSource, Trouble
from wfsql.worker.spool import Spool

T = TypeVar("T")

# A call with more output than this gets no second result.
_BATCH_CHARACTERS = 4 * 1024 * 1024
_FIRST_PAUSE_SECONDS = 0.05


class Submitter:
    """`on_answered` gets the ids of the tasks that are done with, after each call."""

    def __init__(
        self,
        source: TaskSource,
        spool: Spool | None,
        log: WorkerLog,
        on_answered: Callable[[Sequence[int]], None],
        give_up: Callable[[Trouble | Exception], None],
    ) -> None:
        self._source = source
        self._spool = spool
        self._log = log
        self._on_answered = on_answered
        self._give_up = give_up
        self._queue: deque[Finished] = deque()
        self._changed = Condition()
        self._ending = Event()
        self._give_up_at = float("inf")
        self._is_away = False
        self._under_way: Sequence[Finished] = ()
        self._thread = Thread(target=self._run, name="submit", daemon=True)
        self.accepted_count = 0

    def start(self) -> None:
        self._thread.start()

    def put(self, done: Finished) -> None:
        """Takes a result; it is on disk, if it is to be kept there, when this returns."""
        if self._spool is not None:
            self._spool.put(done)
        with self._changed:
            self._queue.append(done)
            self._changed.notify()

    @property
    def is_behind(self) -> bool:
        """Whether there are results enough that nobody takes."""
        return self._is_away or len(self._queue) >= 2 * BATCH_LIMIT

    @property
    def left(self) -> Sequence[Finished]:
        """What has not been answered."""
        with self._changed:
            return [*self._under_way, *self._queue]

    def load_spooled(self) -> None:
        """Queues what an earlier process has left; call it before `start`."""
        found = self._spool.load() if self._spool is not None else ()
        self._queue.extend(found)
        if found:
            self._log.note(f"handing in {len(found)} kept result{'s' if len(found) > 1 else ''}")

    def wait_for_all(self, stop: Event) -> None:
        """Waits until everything is answered, or `stop`."""
        while self.left and not stop.wait(0.02):
            pass

    def end(self, patience_seconds: float) -> Sequence[Finished]:
        """Hands in what is there, for so long at most; returns what is left."""
        self._give_up_at = time.monotonic() + patience_seconds
        self._ending.set()
        with self._changed:
            self._changed.notify()
        # A call that hangs is not waited for longer than that.
        self._thread.join(patience_seconds + 1.0)
        return self.left

    # ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._keep_handing_in()
        except Exception as error:
            # Nobody looks at the thread's result; a fault must end the worker, and be seen.
            self._give_up(error)

    def _keep_handing_in(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._ending.is_set():
                    self._changed.wait()
                if not self._queue:
                    return
                self._under_way = self._take()
            if not self._hand_in(self._under_way):
                return
            self._under_way = ()

    def _take(self) -> list[Finished]:
        taken: list[Finished] = []
        size = 0
        while self._queue and len(taken) < BATCH_LIMIT:
            size += len(self._queue[0].output_json or "")
            if taken and size > _BATCH_CHARACTERS:
                break
            taken.append(self._queue.popleft())
        return taken

    def _hand_in(self, batch: Sequence[Finished]) -> bool:
        """Returns False when the worker has to end with the batch in hand."""
        answer = self._insist(lambda: self._source.submit(batch), batch)
        if isinstance(answer, Trouble):
            if answer.passing or answer.code == REFUSED_TOKEN:
                return self._is_lost(answer)
            if len(batch) > 1:
                # One of them is refused, and with it the others.
                return all(self._hand_in([done]) for done in batch)
            return self._refused(batch[0], answer)
        done_with = []
        for done, each in zip(batch, answer, strict=True):
            if isinstance(each, Submitted):
                self._answered(done, each)
                done_with.append(done.task_id)
            elif each.passing:
                if not self._hand_in([done]):
                    return False
            elif not self._refused(done, each):
                return False
        self._on_answered(done_with)
        return True

    def _insist(self, call: Callable[[], T | Trouble], batch: Sequence[Finished]) -> T | Trouble:
        backoff = Backoff(_FIRST_PAUSE_SECONDS)
        while True:
            answer = call()
            if not isinstance(answer, Trouble) or not answer.passing:
                self._is_away = False
                return answer
            if self._spool is not None and not self._is_away:
                self._spool.secure(batch)
            self._is_away = True
            pause = backoff.next(answer.after_seconds)
            if pause >= 1.0:
                self._log.note(f"{answer.message}; trying again in {pause:.0f} s")
            if not self._pause(pause):
                return answer

    def _pause(self, seconds: float) -> bool:
        """Waits; returns whether to go on. The end cuts a pause short, for one more attempt."""
        if not self._ending.is_set():
            self._ending.wait(seconds)
            return True
        left = self._give_up_at - time.monotonic()
        time.sleep(max(min(seconds, left, 1.0), 0.0))
        return left > 0

    def _answered(self, done: Finished, answer: Submitted) -> None:
        if self._spool is not None:
            self._spool.remove(done)
        if answer.accepted:
            self.accepted_count += 1
            self._log.task(done)
        else:
            self._log.task(done, refused=answer.reason)

    def _refused(self, done: Finished, trouble: Trouble) -> bool:
        """A result that the runtime cannot take fails its task."""
        self._log.note(f"{done.name}: {trouble.message}")
        answer = self._insist(
            lambda: self._source.fail(done.task_id, done.lease_token, -1, trouble.message), [done]
        )
        if isinstance(answer, Trouble) and (answer.passing or answer.code == REFUSED_TOKEN):
            return self._is_lost(answer)
        if self._spool is not None:
            self._spool.remove(done)
        self._on_answered([done.task_id])
        return True

    def _is_lost(self, trouble: Trouble) -> bool:
        if not trouble.passing:
            self._give_up(trouble)
        return False

"""The threads that call handlers: one per worker, each with a queue of its own.

They are daemons, because a handler that hangs cannot be stopped: `abandon` leaves its thread behind
and gives the worker a new one, and the process may end although the old one still runs.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Job = Callable[[], None]


class Workers:
    """Workers by number; a thread starts with the first job of its worker."""

    def __init__(self) -> None:
        self._queues: dict[int, queue.SimpleQueue[Job | None]] = {}

    def run(self, worker: int, job: Job) -> None:
        """Lets a worker that is free do a job."""
        jobs = self._queues.get(worker)
        if jobs is None:
            jobs = self._queues[worker] = queue.SimpleQueue()
            name = f"wf-worker-{worker}"
            threading.Thread(target=_work, args=(jobs,), name=name, daemon=True).start()
        jobs.put(job)

    def abandon(self, worker: int) -> None:
        """Leaves the thread of a worker behind; it ends when its job does."""
        self._queues.pop(worker).put(None)

    def close(self) -> None:
        """Lets the threads end, each after its job; waits for none."""
        for jobs in self._queues.values():
            jobs.put(None)
        self._queues.clear()


def _work(jobs: queue.SimpleQueue[Job | None]) -> None:
    while (job := jobs.get()) is not None:
        job()

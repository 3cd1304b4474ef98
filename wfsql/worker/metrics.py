"""What a worker counts, for Prometheus. docs/observability.md lists the names; a test compares.

Needs prometheus-client, of the extra `gateway`; import it lazily. The page has no login.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from runtime_sql.connection import Task
from wfsql.worker.log import WorkerLog
from wfsql.worker.process import Invoke, Outcome
from wfsql.worker.source import Finished

_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


class WorkerMetrics:
    """One registry per worker. `serve` opens the page; without it, things are only counted."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._tasks = Counter(
            "wf_worker_tasks",
            "Handlers that have ended.",
            ("action", "result_code"),
            registry=registry,
        )
        self._seconds = Histogram(
            "wf_worker_handler_seconds",
            "Time of one handler.",
            ("action",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._lost = Counter(
            "wf_worker_leases_lost",
            "Results that came under a lease that is not current any more.",
            registry=registry,
        )
        self._in_hand = Gauge("wf_worker_in_hand", "Tasks in hand.", registry=registry)
        self._spooled = Gauge(
            "wf_worker_spool_size", "Results kept on disk until accepted.", registry=registry
        )

    def watch(self, in_hand: Callable[[], int], spooled: Callable[[], int]) -> None:
        """Says where the numbers come from that the worker knows itself."""
        self._in_hand.set_function(in_hand)
        self._spooled.set_function(spooled)

    def serve(self, host: str, port: int) -> None:
        """Serves the page in a thread of its own.

        Raises:
          OSError: the address cannot be listened at.
        """
        start_http_server(port, host, self.registry)

    def counted(self, invoke: Invoke) -> Invoke:
        """Returns an `Invoke` that counts the calls of the given one."""

        def invoke_counted(task: Task, cancelled: Event) -> Outcome | None:
            began = time.perf_counter()
            outcome = invoke(task, cancelled)
            if outcome is not None:
                self._tasks.labels(task.action, str(outcome.code)).inc()
                self._seconds.labels(task.action).observe(time.perf_counter() - began)
            return outcome

        return invoke_counted

    def log(self, log: WorkerLog) -> WorkerLog:
        """Returns a log that counts lost leases on its way to the given one."""
        return _CountingLog(log, self._lost)


class _CountingLog:
    def __init__(self, log: WorkerLog, lost: Counter) -> None:
        self._log = log
        self._lost = lost

    def note(self, text: str) -> None:
        self._log.note(text)

    def task(self, done: Finished, *, refused: str | None = None) -> None:
        if refused == "STALE":
            self._lost.inc()
        self._log.task(done, refused=refused)

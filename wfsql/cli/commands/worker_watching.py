"""`wf worker --otlp` and `--metrics`: what is seen of a worker from outside.

Without the two options nothing here is imported but this module, and nothing changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wfsql.cli.collector import check_collector
from wfsql.cli.main import CommandError, wrong_use
from wfsql.gateway.settings import parse_address
from wfsql.worker.log import WorkerLog
from wfsql.worker.process import Invoke, Worker
from wfsql.worker.spool import Spool

if TYPE_CHECKING:
    from wfsql.worker.metrics import WorkerMetrics

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@dataclass(frozen=True, slots=True)
class Watching:
    """The worker's handlers and log with what watches them; `end` sends what is left."""

    invoke: Invoke
    log: WorkerLog
    end: Callable[[], object]
    metrics: WorkerMetrics | None

    def attach(self, worker: Worker, spool: Spool | None) -> None:
        if self.metrics is not None:
            self.metrics.watch(
                lambda: worker.in_hand_count, lambda: 0 if spool is None else spool.size
            )


def watched(
    invoke: Invoke, log: WorkerLog, worker_id: str, *, otlp: str | None, metrics: str | None
) -> Watching:
    """Puts spans and counters around handlers, as far as they are asked for.

    Spans are asked for by an address, or by the environment that OpenTelemetry names.
    """
    check_collector(otlp)
    end: Callable[[], object] = _nothing
    if otlp is not None or any(os.environ.get(name) for name in _ENDPOINTS):
        invoke, end = _with_spans(invoke, log, worker_id, otlp)
    if metrics is None:
        return Watching(invoke, log, end, None)
    counting = _counting(metrics)
    return Watching(counting.counted(invoke), counting.log(log), end, counting)


def _nothing() -> None:
    """There is nothing to send."""


def _with_spans(
    invoke: Invoke, log: WorkerLog, worker_id: str, otlp: str | None
) -> tuple[Invoke, Callable[[], object]]:
    try:
        from wfsql.otlp import exporter_to
        from wfsql.worker.tracing import start, traced
    except ImportError as error:
        if otlp is None:
            log.note(f"no traces are sent: a package is not installed: {error.name}")
            return invoke, _nothing
        raise CommandError(
            f"a package is not installed: {error.name}", 'run pip install "wfsql[otel]"'
        ) from error
    tracing = start(exporter_to(otlp), worker_id)
    return traced(invoke, tracing.provider), tracing.end


def _counting(address: str) -> WorkerMetrics:
    found = parse_address(address)
    if found is None:
        raise wrong_use(f'"{address}" is no address to listen on', "write it as 127.0.0.1:9470")
    try:
        from wfsql.worker.metrics import WorkerMetrics
    except ImportError as error:
        raise CommandError(
            f"a package is not installed: {error.name}", "run pip install prometheus-client"
        ) from error
    made = WorkerMetrics()
    try:
        made.serve(found.host, found.port)
    except OSError as error:
        raise CommandError(
            f"cannot listen at {address}: {(error.strerror or str(error)).lower()}",
            "another program may use the port; choose one with --metrics",
        ) from error
    return made

"""What a gateway counts, for Prometheus. docs/gateway.md lists the names; a test compares."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from runtime_sql.failures import ApiError, DatabaseProblem
from wfsql.gateway.problems import Refusal

if TYPE_CHECKING:
    from runtime_sql.gateway_client import QueueDepth
    from wfsql.gateway.hub import Hub
    from wfsql.gateway.pool import Pool

QUEUE_REMEMBERED_SECONDS = 5.0
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class _Watched(Collector):
    """What pool and hub know themselves, read when it is asked for."""

    def __init__(self, pool: Pool, hub: Hub) -> None:
        self._pool = pool
        self._hub = hub

    def collect(self) -> Iterator[Metric]:
        pool, hub = self._pool, self._hub
        yield GaugeMetricFamily(
            "wf_gateway_pool_size", "Connections to the database at most.", pool.size
        )
        yield GaugeMetricFamily("wf_gateway_pool_in_use", "Connections in use.", pool.in_use)
        yield GaugeMetricFamily(
            "wf_gateway_polls_waiting", "Long polls that wait.", hub.waiting_count
        )
        yield CounterMetricFamily(
            "wf_gateway_hub_looks", "Questions of the hub to the database.", hub.poll_count
        )
        yield CounterMetricFamily(
            "wf_gateway_pool_exhausted",
            "Calls that no connection came free for.",
            pool.exhausted_count,
        )
        yield CounterMetricFamily(
            "wf_gateway_connections_lost", "Connections lost in a call.", pool.lost_count
        )


class Metrics:
    """One registry per gateway, so that tests may run several in one process."""

    def __init__(self, pool: Pool, hub: Hub) -> None:
        self._pool = pool
        self._hub = hub
        self._asked_at = float("-inf")
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "wf_gateway_requests", "Requests answered.", ("route", "status"), registry=registry
        )
        self.claim_seconds = Histogram(
            "wf_gateway_claim_seconds",
            "Time of one claim in the database.",
            ("found",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self.submit_seconds = Histogram(
            "wf_gateway_submit_seconds",
            "Time of one submit in the database.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.claimed = Counter("wf_gateway_tasks_claimed", "Tasks handed out.", registry=registry)
        self.results = Counter(
            "wf_gateway_results",
            "Results by what they were answered.",
            ("reason",),
            registry=registry,
        )
        self.leases_lost = Counter(
            "wf_gateway_leases_lost",
            "Calls under a lease that is not current any more.",
            ("call",),
            registry=registry,
        )
        self.events = Counter(
            "wf_gateway_events", "Events by outcome.", ("outcome",), registry=registry
        )
        self.scope_errors = Counter(
            "wf_gateway_scope_sync_errors",
            "Results not written down under their execution scope.",
            registry=registry,
        )
        registry.register(_Watched(pool, hub))
        self._queue(registry)

    def _queue(self, registry: CollectorRegistry) -> None:
        labels = ("capability",)
        self._ready = Gauge("wf_queue_ready", "Tasks to claim.", labels, registry=registry)
        self._leased = Gauge("wf_queue_leased", "Tasks in hand.", labels, registry=registry)
        self._expired = Gauge(
            "wf_queue_expired", "Tasks in hand whose lease ran out.", labels, registry=registry
        )
        self._oldest = Gauge(
            "wf_queue_oldest_ready_seconds",
            "For how long the oldest task to claim has waited.",
            labels,
            registry=registry,
        )
        self._asked = Gauge(
            "wf_queue_known", "1: the queue's numbers are fresh.", registry=registry
        )

    def observe_claim(self, seconds: float, found: int) -> None:
        """Counts a claim that gave `found` tasks."""
        self.claim_seconds.labels("yes" if found else "no").observe(seconds)
        if found:
            self.claimed.inc(found)

    async def page(self) -> bytes:
        """Returns the page for Prometheus; the queue is looked at every five seconds at most."""
        if time.monotonic() - self._asked_at > QUEUE_REMEMBERED_SECONDS:
            try:
                found = await self._pool.ask(lambda client: client.queue_depth())
            except Refusal:
                found = []
            fresh = not isinstance(found, ApiError | DatabaseProblem)
            self._asked.set(1 if fresh else 0)
            if not isinstance(found, ApiError | DatabaseProblem):
                self._asked_at = time.monotonic()
                self._set_queue(found)
        return generate_latest(self.registry)

    def _set_queue(self, rows: Iterable[QueueDepth]) -> None:
        for row in rows:
            self._ready.labels(row.capability).set(row.ready_count)
            self._leased.labels(row.capability).set(row.leased_count)
            self._expired.labels(row.capability).set(row.expired_count)
            self._oldest.labels(row.capability).set(row.oldest_ready_ms / 1000)

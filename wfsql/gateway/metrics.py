"""What a gateway counts, for Prometheus. docs/gateway.md lists the names; a test compares."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from runtime_sql.failures import ApiError, DatabaseProblem
from wfsql.gateway.problems import Refusal

if TYPE_CHECKING:
    from runtime_sql.gateway_client import QueueDepth
    from wfsql.gateway.hub import Hub
    from wfsql.gateway.pool import Pool

QUEUE_REMEMBERED_SECONDS = 5.0
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """One registry per gateway, so that tests may run several in one process."""

    def __init__(self, pool: Pool, hub: Hub) -> None:
        self._pool = pool
        self._hub = hub
        self._asked_at = float("-inf")
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "wfsql_requests", "Requests answered.", ("route", "status"), registry=registry
        )
        self.claim_seconds = Histogram(
            "wfsql_claim_seconds",
            "Time of one claim in the database.",
            ("found",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self.submit_seconds = Histogram(
            "wfsql_submit_seconds",
            "Time of one submit in the database.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.claimed = Counter("wfsql_tasks_claimed", "Tasks handed out.", registry=registry)
        self.results = Counter(
            "wfsql_results", "Results by what they were answered.", ("reason",), registry=registry
        )
        self.leases_lost = Counter(
            "wfsql_leases_lost",
            "Calls under a lease that is not current any more.",
            ("call",),
            registry=registry,
        )
        self.events = Counter("wfsql_events", "Events by outcome.", ("outcome",), registry=registry)
        self.scope_errors = Counter(
            "wfsql_scope_sync_errors",
            "Results not written down under their execution scope.",
            registry=registry,
        )
        self._gauges(registry)

    def _gauges(self, registry: CollectorRegistry) -> None:
        pool, hub = self._pool, self._hub
        watched = (
            ("wfsql_pool_size", "Connections to the database at most.", lambda: pool.size),
            ("wfsql_pool_in_use", "Connections in use.", lambda: pool.in_use),
            ("wfsql_polls_waiting", "Long polls that wait.", lambda: hub.waiting_count),
            ("wfsql_hub_looks", "Questions of the hub so far.", lambda: hub.poll_count),
            ("wfsql_pool_exhausted", "Calls without a connection.", lambda: pool.exhausted_count),
            ("wfsql_connections_lost", "Connections lost in a call.", lambda: pool.lost_count),
        )
        for name, text, read in watched:
            Gauge(name, text, registry=registry).set_function(read)
        labels = ("capability",)
        self._ready = Gauge("wfsql_queue_ready", "Tasks to claim.", labels, registry=registry)
        self._leased = Gauge("wfsql_queue_leased", "Tasks in hand.", labels, registry=registry)
        self._expired = Gauge(
            "wfsql_queue_expired", "Tasks in hand whose lease ran out.", labels, registry=registry
        )
        self._oldest = Gauge(
            "wfsql_queue_oldest_seconds",
            "For how long the oldest task to claim has waited.",
            labels,
            registry=registry,
        )
        self._asked = Gauge(
            "wfsql_queue_known", "1: the queue's numbers are fresh.", registry=registry
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

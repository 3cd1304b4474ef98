"""What those who run a gateway call: health, readiness, metrics, the API's description."""

from __future__ import annotations

from runtime_sql.failures import ApiError, DatabaseProblem
from runtime_sql.scripts import RUNTIME_VERSION
from wfsql.gateway import models
from wfsql.gateway.operations import Call, Gateway, Operation, Reply
from wfsql.gateway.problems import RETRY_AFTER_SECONDS, Refusal

METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


async def healthz(_gateway: Gateway, _call: Call) -> Reply:
    return Reply({"status": "ok"})


async def readyz(gateway: Gateway, _call: Call) -> Reply:
    """The clients check the runtime's version when they connect."""
    if gateway.hub.stopping:
        raise Refusal(503, "stopping", "the gateway is ending")
    answer = await gateway.pool.ask(lambda client: client.ping())
    if isinstance(answer, ApiError | DatabaseProblem):
        raise Refusal(
            503, "database", "the database does not answer", retry_after=RETRY_AFTER_SECONDS
        )
    return Reply({"status": "ready", "runtime_version": RUNTIME_VERSION})


async def metrics(gateway: Gateway, _call: Call) -> Reply:
    return Reply(await gateway.metrics.page(), content_type=METRICS_TYPE)


async def openapi(_gateway: Gateway, _call: Call) -> Reply:
    from wfsql.gateway.openapi import document_bytes

    return Reply(document_bytes())


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="healthz",
        method="GET",
        path="/healthz",
        summary="The process lives",
        handler=healthz,
        caller="anybody",
        answer=models.Health,
    ),
    Operation(
        name="readyz",
        method="GET",
        path="/readyz",
        summary="The database answers and its runtime fits",
        handler=readyz,
        caller="anybody",
        answer=models.Readiness,
    ),
    Operation(
        name="metrics",
        method="GET",
        path="/metrics",
        summary="Metrics for Prometheus; off loopback with a key of role reader",
        handler=metrics,
        caller="monitor",
        roles=frozenset({"reader", "operator"}),
        answer=None,
    ),
    Operation(
        name="openapi",
        method="GET",
        path="/openapi.json",
        summary="This description",
        handler=openapi,
        caller="anybody",
        answer=None,
    ),
)

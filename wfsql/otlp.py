"""Sends spans to a collector (OTLP over HTTP). Needs the extra `otel`; import it lazily."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from wfsql.spans import Span

_BATCH = 500
_STATUS = {True: StatusCode.ERROR, False: StatusCode.OK, None: StatusCode.UNSET}
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


def exporter_to(url: str | None) -> SpanExporter:
    """Returns an exporter to a collector; None: where the OTEL_EXPORTER_OTLP_* variables say."""
    return OTLPSpanExporter(endpoint=None if url is None else traces_url(url))


def traces_url(url: str) -> str:
    """Returns where a collector takes traces, of its address with or without that path."""
    bare = url.rstrip("/")
    return bare if bare.endswith("/v1/traces") else bare + "/v1/traces"


def send(spans: Sequence[Span], exporter: SpanExporter) -> int:
    """Sends spans in batches and returns how many were taken; a batch refused ends it."""
    resource = Resource.create({"service.name": "wfsql"})
    scope = InstrumentationScope("wfsql")
    for start in range(0, len(spans), _BATCH):
        batch = [_readable(span, resource, scope) for span in spans[start : start + _BATCH]]
        if exporter.export(batch) is not SpanExportResult.SUCCESS:
            return start
    return len(spans)


def _readable(span: Span, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    parent = None
    if span.parent_id is not None:
        parent = SpanContext(span.trace_id, span.parent_id, False, _SAMPLED)
    return ReadableSpan(
        name=span.name,
        context=SpanContext(span.trace_id, span.span_id, False, _SAMPLED),
        parent=parent,
        resource=resource,
        attributes=dict(span.attributes),
        kind=SpanKind.INTERNAL,
        instrumentation_scope=scope,
        status=Status(_STATUS[span.has_failed]),
        start_time=_nanoseconds(span.began_at),
        end_time=_nanoseconds(span.ended_at),
    )


def _nanoseconds(at: datetime) -> int:
    # Not timestamp() * 1e9: a float of this size has steps of 256 ns.
    return int(at.timestamp()) * 1_000_000_000 + at.microsecond * 1_000

"""A span for each attempt, with OpenTelemetry. Needs the extra `otel`; nothing else imports it.

Flow: task with its node's context → span of the attempt, made current around the handler → the
handler's own spans are its children, and `TaskContext.trace_parent` names it. Inputs, outputs and
messages never reach a span.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from threading import Event
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode

from runtime_sql.connection import Task
from runtime_sql.trace_ids import attempt_span_id, header, parse

if TYPE_CHECKING:
    from wfsql.worker.process import Invoke, Outcome

_next_span: ContextVar[int | None] = ContextVar("wfsql_next_span", default=None)


class AttemptIds(RandomIdGenerator):
    """Gives the span of an attempt the id that `wf export-spans` gives it, too."""

    def generate_span_id(self) -> int:
        return _next_span.get() or super().generate_span_id()


@dataclass(frozen=True, slots=True)
class Tracing:
    """`end` sends what has not been sent yet."""

    provider: trace.TracerProvider
    end: Callable[[], object]


def start(exporter: SpanExporter, worker_id: str) -> Tracing:
    """Sets up tracing for this process, unless a module of handlers has done so already."""
    present = trace.get_tracer_provider()
    if isinstance(present, TracerProvider):
        return Tracing(present, present.force_flush)
    resource = Resource.create({"service.name": "wfsql-worker", "service.instance.id": worker_id})
    provider = TracerProvider(resource=resource, id_generator=AttemptIds())
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return Tracing(provider, provider.shutdown)


def traced(invoke: Invoke, provider: trace.TracerProvider) -> Invoke:
    """Returns an `Invoke` that makes a span for each call of the given one."""
    tracer = provider.get_tracer("wfsql")

    def invoke_traced(task: Task, cancelled: Event) -> Outcome | None:
        context = parse(task.trace_parent)
        parent = None
        span_id = None
        if context is not None:
            above = SpanContext(*context, is_remote=True, trace_flags=trace.TraceFlags(1))
            parent = trace.set_span_in_context(NonRecordingSpan(above))
            span_id = attempt_span_id(context[1], task.lease_token)
        restore = _next_span.set(span_id)
        try:
            span = tracer.start_span(
                f"{task.action} attempt", parent, SpanKind.CONSUMER, _attributes(task)
            )
        finally:
            _next_span.reset(restore)
        own = span.get_span_context()
        with trace.use_span(span, end_on_exit=True):
            outcome = invoke(
                replace(task, trace_parent=header(own.trace_id, own.span_id)), cancelled
            )
            if outcome is not None:
                span.set_attribute("wf.result_code", outcome.code)
                # The message may hold what the input does.
                span.set_status(Status(StatusCode.ERROR if outcome.code < 0 else StatusCode.OK))
        return outcome

    return invoke_traced


def _attributes(task: Task) -> dict[str, str | int]:
    return {
        "wf.instance_id": task.instance_id,
        "wf.path": task.path,
        "wf.action": task.action,
        "wf.attempt": task.attempt,
    }

"""Spans of attempts: ids, attributes, what handlers see of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from local_runner.command_handlers import command
from local_runner.handlers import Handlers, Result, TaskContext
from runtime_sql.connection import Task
from runtime_sql.trace_ids import attempt_span_id, header, parse, with_traces
from tests.worker.fakes import task
from wfsql.worker.process import Invoke, Outcome
from wfsql.worker.python_handlers import invoke_with
from wfsql.worker.tracing import AttemptIds, traced

NODE = header(0xABC, 0xDEF)


@pytest.fixture
def memory() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(memory: InMemorySpanExporter) -> Iterator[TracerProvider]:
    made = TracerProvider(id_generator=AttemptIds())
    made.add_span_processor(SimpleSpanProcessor(memory))
    yield made
    made.shutdown()


def call(invoke: Invoke, given: Task) -> Outcome | None:
    return invoke(given, Event())


def only(memory: InMemorySpanExporter) -> ReadableSpan:
    [span] = memory.get_finished_spans()
    return span


def test_an_attempt_is_a_span_below_its_node(
    provider: TracerProvider, memory: InMemorySpanExporter
) -> None:
    invoke = traced(lambda _task, _cancelled: Outcome(0, None), provider)
    call(invoke, replace(task(7), trace_parent=NODE))
    span = only(memory)
    assert span.name == "act attempt"
    assert (span.context.trace_id, span.context.span_id) == (0xABC, attempt_span_id(0xDEF, 7))
    assert span.parent is not None
    assert span.parent.span_id == 0xDEF
    assert dict(span.attributes or {}) == {
        "wf.instance_id": 1,
        "wf.path": "w/k[7]",
        "wf.action": "act",
        "wf.attempt": 1,
        "wf.result_code": 0,
    }
    assert span.status.status_code is StatusCode.OK


def test_a_negative_code_is_an_error_without_the_message(
    provider: TracerProvider, memory: InMemorySpanExporter
) -> None:
    invoke = traced(
        lambda _task, _cancelled: Outcome(-3, None, "the customer's card was declined"), provider
    )
    call(invoke, replace(task(7), trace_parent=NODE))
    span = only(memory)
    assert span.status.status_code is StatusCode.ERROR
    assert "customer" not in span.to_json()


def test_spans_of_a_handler_are_children_with_ids_of_their_own(
    provider: TracerProvider, memory: InMemorySpanExporter
) -> None:
    seen: list[str | None] = []

    def act(context: TaskContext) -> None:
        seen.append(context.trace_parent)
        with provider.get_tracer("handler").start_as_current_span("inner"):
            pass

    invoke = traced(invoke_with(Handlers.from_functions({"act": act})), provider)
    call(invoke, replace(task(7), trace_parent=NODE))
    inner, attempt = memory.get_finished_spans()
    assert (inner.name, inner.parent) == ("inner", attempt.context)
    assert inner.context.span_id != attempt.context.span_id
    assert seen == [header(attempt.context.trace_id, attempt.context.span_id)]


def test_an_async_handler_is_inside_the_span(
    provider: TracerProvider, memory: InMemorySpanExporter
) -> None:
    inside: list[int] = []

    async def act() -> None:
        inside.append(trace.get_current_span().get_span_context().span_id)

    call(
        traced(invoke_with(Handlers.from_functions({"act": act})), provider),
        replace(task(7), trace_parent=NODE),
    )
    assert inside == [only(memory).context.span_id]


def test_a_task_without_context_is_a_trace_of_its_own(
    provider: TracerProvider, memory: InMemorySpanExporter
) -> None:
    call(traced(lambda _task, _cancelled: Outcome(0, None), provider), task(7))
    assert only(memory).parent is None


def test_two_databases_have_different_traces() -> None:
    [one], [two] = with_traces([task(1)], "a"), with_traces([task(1)], "b")
    assert one.trace_parent != two.trace_parent
    assert with_traces([task(1)], "a") == (one,)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "00-abc-def-01",
        f"00-{0:032x}-{1:016x}-01",
        f"00-{1:032x}-{0:016x}-01",
        f"ff-{1:032x}-{1:016x}-01",
        f"00-{1:032x}-{1:016x}-01-more",
    ],
)
def test_what_is_no_trace_context_is_none(text: str | None) -> None:
    assert parse(text) is None


def test_a_trace_context_is_read() -> None:
    assert parse(header(5, 6)) == (5, 6)


def test_a_program_has_the_context_in_its_environment(tmp_path: Path) -> None:
    program = tmp_path / "show.py"
    program.write_text('import json, os\nprint(json.dumps(os.environ.get("TRACEPARENT")))\n')
    run = command("show", [sys.executable, str(program)])
    traced_context = TaskContext("w/k", 1, "1", trace_parent=NODE)
    assert run(traced_context) == Result(0, NODE, None)
    if "TRACEPARENT" not in os.environ:
        assert run(TaskContext("w/k", 1, "1")) == Result(0, None, None)

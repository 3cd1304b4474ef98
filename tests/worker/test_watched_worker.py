"""A worker with `--otlp` and `--metrics`: what a collector and Prometheus get of it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from runtime_sql.trace_ids import attempt_span_id, node_span_id, trace_id
from tests.cli.test_export_spans import Collector, collecting
from tests.worker.conftest import ROOT, Flow, Place, environment, free_port, wait_for

HANDLER = """
@action("ACTION")
def do(task: TaskContext):
    pathlib.Path("seen").write_text(task.trace_parent or "none")
    return {"secret": "4711"}
"""


@pytest.fixture
def collector() -> Iterator[Collector]:
    yield from collecting()


def expected_span(place: Place, flow: Flow) -> tuple[int, int, int]:
    """Returns trace, node's span and attempt's span of the one attempt at a flow's action."""
    [(name, instance, execution, token)] = place.ask(
        "select wf.wf_database_id(), a.workflow_instance_id, a.node_execution_id, a.lease_token"
        " from wf.v_attempt as a where a.action_name = %s",
        f"{flow.name}.do",
    )
    node = node_span_id(name, execution)
    return trace_id(name, instance), node, attempt_span_id(node, token)


@pytest.mark.parametrize("over", ["gateway", "database"])
def test_a_collector_gets_the_attempts(place: Place, collector: Collector, over: str) -> None:
    flow = place.flow()
    flow.handlers(HANDLER)
    flow.start()
    begin = flow.worker if over == "gateway" else flow.database_worker
    process = begin("--idle-exit", "0", "--otlp", collector.url)
    assert process.wait() == 0, process.lines
    trace, node, attempt = expected_span(place, flow)
    [span] = collector.spans()
    assert span.name == f"{flow.name}.do attempt"
    assert int.from_bytes(span.trace_id) == trace
    assert int.from_bytes(span.parent_span_id) == node
    assert int.from_bytes(span.span_id) == attempt
    assert (flow.folder / "seen").read_text() == f"00-{trace:032x}-{attempt:016x}-01"
    assert b"4711" not in collector.bodies[0]


def test_without_a_collector_a_handler_has_the_context_of_its_node(place: Place) -> None:
    flow = place.flow()
    flow.handlers(HANDLER)
    flow.start()
    process = flow.worker("--idle-exit", "0")
    assert process.wait() == 0, process.lines
    trace, node, _attempt = expected_span(place, flow)
    assert (flow.folder / "seen").read_text() == f"00-{trace:032x}-{node:016x}-01"


def test_metrics_are_served(place: Place) -> None:
    flow = place.flow()
    flow.handlers(HANDLER)
    flow.start()
    port = free_port()
    process = flow.worker("--metrics", f"127.0.0.1:{port}")
    wait_for(lambda: process.says("-> 0 in"))
    page = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    assert re.search(rf'^wf_worker_tasks_total{{action="{flow.name}.do",.*}} 1.0$', page, re.M)
    assert "wf_worker_in_hand 0.0" in page


def test_a_bad_address_for_metrics_is_wrong_use(place: Place) -> None:
    flow = place.flow()
    flow.handlers(HANDLER)
    process = flow.worker("--metrics", "127.0.0.1:99999")
    assert process.wait() == 2
    assert process.says('"127.0.0.1:99999" is no address to listen on')


def test_a_port_that_is_taken_is_an_error(place: Place) -> None:
    flow = place.flow()
    flow.handlers(HANDLER)
    taken = place.url.removeprefix("http://")
    process = flow.worker("--metrics", taken)
    assert process.wait() == 1
    assert process.says(f"cannot listen at {taken}")


def test_nothing_of_it_is_imported_without_being_asked_for() -> None:
    code = (
        "import sys, wfsql.cli.commands.worker_setup, wfsql.cli.commands.export_spans\n"
        "print([n for n in sys.modules if n.split('.')[0] in ('opentelemetry',"
        " 'prometheus_client')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment(), capture_output=True, text=True
    )
    assert done.stdout == "[]\n", done.stderr

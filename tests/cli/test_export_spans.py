"""`wf export-spans`: what a collector receives. The test plays the collector."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from runtime_sql.connection import connect
from runtime_sql.trace_ids import attempt_span_id, node_span_id, trace_id
from tests.cli.conftest import Wf
from tests.cli.scene import NOON, Scene

FLOW = """
workflow order {
  input { card : string }
  sequence pay {
    action charge = t.do()
    action book = t.do() { retry 1 backoff 1s }
  }
}
"""


@dataclass
class Collector:
    url: str
    status: int = 200
    paths: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def spans(self) -> list[Span]:
        found = []
        for body in self.bodies:
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    found += scope.spans
        return found


def collecting() -> Iterator[Collector]:
    """Plays a collector for as long as it is used."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            made.paths.append(self.path)
            made.bodies.append(body)
            self.send_response(made.status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    made = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def collector() -> Iterator[Collector]:
    yield from collecting()


@pytest.fixture
def order(scene: Scene) -> int:
    """An order that took three seconds: charge at once, book at the second attempt."""
    instance = scene.begin(FLOW, {"card": "4711-secret"})
    scene.register("w1", "t")
    [charge] = scene.take("w1")
    scene.submit("w1", charge)
    [book] = scene.take("w1")
    scene.submit("w1", book, -1, "card 4711-secret declined")
    scene.wait(2)
    [again] = scene.take("w1")
    scene.wait(1)
    scene.submit("w1", again)
    return instance


def by_name(spans: list[Span]) -> dict[str, list[Span]]:
    found: dict[str, list[Span]] = {}
    for span in spans:
        found.setdefault(span.name, []).append(span)
    return found


def test_an_instance_is_a_trace_of_nodes_and_attempts(
    wf: Wf, scene: Scene, order: int, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = wf("export-spans", str(order), "--otlp", collector.url)
    assert (done.code, done.err) == (0, "sent 8 spans of 1 instance\n")
    assert collector.paths == ["/v1/traces"]
    spans = by_name(collector.spans())
    assert {name: len(found) for name, found in spans.items()} == {
        "order": 2,  # the instance, and the node around all others
        "pay": 1,
        "charge": 1,
        "book": 1,
        "t.do attempt": 3,
    }
    assert len({span.trace_id for span in collector.spans()}) == 1
    [pay], [charge] = spans["pay"], spans["charge"]
    assert charge.parent_span_id == pay.span_id
    top = [span for span in spans["order"] if not span.parent_span_id]
    assert len(top) == 1
    assert top[0].start_time_unix_nano == int(NOON.timestamp()) * 10**9
    assert top[0].end_time_unix_nano - top[0].start_time_unix_nano == 3 * 10**9


def test_ids_are_those_that_workers_give(
    wf: Wf, scene: Scene, order: int, collector: Collector
) -> None:
    wf("export-spans", str(order), "--otlp", collector.url)
    [(name,)] = scene.connection.execute("select wf.wf_database_id()").fetchall()
    rows = scene.connection.execute(
        "select a.node_execution_id, a.lease_token from wf.v_attempt as a"
        " where a.workflow_instance_id = %s",
        (order,),
    ).fetchall()
    expected = {attempt_span_id(node_span_id(name, row[0]), row[1]) for row in rows}
    attempts = by_name(collector.spans())["t.do attempt"]
    assert {int.from_bytes(span.span_id) for span in attempts} == expected
    assert {int.from_bytes(span.trace_id) for span in attempts} == {trace_id(name, order)}


def test_a_repeat_sends_the_same_spans(wf: Wf, order: int, collector: Collector) -> None:
    wf("export-spans", str(order), "--otlp", collector.url)
    wf("export-spans", str(order), "--otlp", collector.url)
    assert collector.bodies[0] == collector.bodies[1]


def test_an_attempt_that_failed_is_an_error(wf: Wf, order: int, collector: Collector) -> None:
    wf("export-spans", str(order), "--otlp", collector.url)
    attempts = by_name(collector.spans())["t.do attempt"]
    codes = sorted(span.status.code for span in attempts)
    assert codes == [Status.STATUS_CODE_OK, Status.STATUS_CODE_OK, Status.STATUS_CODE_ERROR]


def test_no_data_is_sent(wf: Wf, order: int, collector: Collector) -> None:
    wf("export-spans", str(order), "--otlp", collector.url)
    assert b"4711" not in b"".join(collector.bodies)


def test_attempts_can_be_left_to_the_workers(wf: Wf, order: int, collector: Collector) -> None:
    wf("export-spans", str(order), "--without-attempts", "--otlp", collector.url)
    assert "t.do attempt" not in by_name(collector.spans())


def test_those_that_have_ended_of_late(
    wf: Wf, scene: Scene, order: int, collector: Collector
) -> None:
    scene.begin("workflow later { action do = t.do() }")
    scene.wait(30)
    done = wf("export-spans", "--ended-since", "31s", "--json", "--otlp", collector.url)
    assert '"instances":1,' in done.out
    scene.wait(30)
    done = wf("export-spans", "--ended-since", "31s", "--json", "--otlp", collector.url)
    assert '"instances":0,' in done.out


def test_one_that_runs_has_no_spans_yet(wf: Wf, scene: Scene, collector: Collector) -> None:
    instance = scene.begin("workflow later { action do = t.do() }")
    done = wf("export-spans", str(instance), "--otlp", collector.url)
    assert done.code == 0
    assert f"instance {instance} has not ended; it has no spans yet" in done.err
    assert collector.bodies == []


def test_a_collector_that_refuses_is_an_error(wf: Wf, order: int, collector: Collector) -> None:
    collector.status = 400
    done = wf("export-spans", str(order), "--otlp", collector.url)
    assert done.code == 1
    assert f"error: the collector did not take the spans of instance {order}" in done.err


def test_an_unknown_instance_is_an_error(wf: Wf, scene: Scene, collector: Collector) -> None:
    done = wf("export-spans", "999", "--otlp", collector.url)
    assert (done.code, collector.bodies) == (1, [])
    assert "(20002)" in done.err


@pytest.mark.parametrize(
    "arguments", [(), ("1", "--ended-since", "5m"), ("--ended-since", "yesterday")]
)
def test_which_instances_must_be_said(wf: Wf, arguments: tuple[str, ...]) -> None:
    assert wf("export-spans", *arguments).code == 2


def test_spans_are_read_with_the_rights_of_a_reader(scene: Scene, order: int, pg_url: str) -> None:
    client = connect(pg_url)
    assert not hasattr(client, "message")
    try:
        client._connection.execute("set role wf_reader")
        assert len(client.execution_spans(order)) >= 4
        assert len(client.attempt_spans(order)) == 3
        assert isinstance(client.database_id(), str)
    finally:
        client.close()

"""The HTTP client of a worker, against a gateway that is played."""

from __future__ import annotations

import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runtime_sql.connection import Claim, Submitted, Task
from tests.worker.fakes import finished
from tests.worker.played_gateway import Answer, Asked, Played, playing, problem
from wfsql.worker.gateway_source import GatewayAddress, GatewaySource
from wfsql.worker.source import Trouble

TASK = """{"tasks": [{"task_id": 7, "instance_id": 3, "node_key": "k", "action": "a", "capability":
 "c", "attempt": 2, "input": {"n": 12345678901234567890.10}, "iteration_no": 0, "lease_token": 5,
 "lease_until": "2026-01-31T12:00:00.500Z", "deadline": null, "path": "w/k", "trace_parent": null}],
 "desired_state": "DRAINING", "command": "DRAIN"}"""
ACCEPTED = {"accepted": True, "reason": "OK", "instance_status": "RUNNING", "next_ready_count": 2}


@pytest.fixture
def played() -> Iterator[Played]:
    with playing() as made:
        yield made


@pytest.fixture
def source(played: Played) -> Iterator[GatewaySource]:
    made = GatewaySource(GatewayAddress(played.url), "w1", "secret", 60)
    yield made
    made.close()


def test_a_request_says_what_it_wants(played: Played, source: GatewaySource) -> None:
    played.answer = lambda _asked: Answer(body={"tasks": [], "command": "NONE"})
    assert source.request(3, 0) == Claim((), "NONE")
    [asked] = played.asked
    assert (asked.method, asked.path) == ("POST", "/v1/workers/tasks/request")
    assert asked.headers["Authorization"] == "Bearer secret"
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.json == {
        "worker_id": "w1",
        "max_tasks": 3,
        "lease_seconds": 60,
        "wait_seconds": 0,
    }


def test_a_task_keeps_the_digits_of_its_input(played: Played, source: GatewaySource) -> None:
    played.answer = lambda _asked: Answer(body=TASK)
    claim = source.request(1, 0)
    assert claim == Claim(
        (
            Task(
                execution_id=7,
                instance_id=3,
                node_key="k",
                action="a",
                capability="c",
                attempt=2,
                input_json='{"n":12345678901234567890.10}',
                iteration_no=0,
                lease_token=5,
                lease_until=datetime(2026, 1, 31, 12, 0, 0, 500_000, UTC),
                deadline=None,
                path="w/k",
            ),
        ),
        "DRAIN",
    )


def test_one_result_is_one_call(played: Played, source: GatewaySource) -> None:
    played.answer = lambda _asked: Answer(body=ACCEPTED)
    done = finished(7, '{"n":1.50}', lease_token=5, code=-3, message='a "b"')
    assert source.submit([done]) == [Submitted(True, "RUNNING", 2, "OK")]
    [asked] = played.asked
    assert asked.path == "/v1/workers/tasks/7/submit"
    assert '"output": {"n":1.50}' in asked.body
    assert asked.json == {
        "worker_id": "w1",
        "lease_token": 5,
        "result_code": -3,
        "message": 'a "b"',
        "output": {"n": 1.5},
    }


def test_many_results_are_one_call(played: Played, source: GatewaySource) -> None:
    refused = {"task_id": 8, "problem": {"code": 20005, "detail": "too large"}}
    body = {"answers": [{"task_id": 7, **ACCEPTED}, refused]}
    played.answer = lambda _asked: Answer(body=body)
    answers = source.submit([finished(7, None), finished(8)])
    assert answers == [Submitted(True, "RUNNING", 2, "OK"), Trouble("too large", code=20005)]
    [asked] = played.asked
    assert asked.path == "/v1/workers/tasks/submit"
    assert [row["task_id"] for row in asked.json["results"]] == [7, 8]
    assert asked.json["results"][0]["output"] is None


@pytest.mark.parametrize(
    ("call", "path", "body"),
    [
        (
            lambda s: s.fail(7, 5, -2, "no"),
            "/v1/workers/tasks/7/fail",
            {"worker_id": "w1", "lease_token": 5, "result_code": -2, "message": "no"},
        ),
        (
            lambda s: s.release(7, 5),
            "/v1/workers/tasks/7/release",
            {"worker_id": "w1", "lease_token": 5},
        ),
    ],
)
def test_other_calls(
    played: Played, source: GatewaySource, call: Any, path: str, body: Any
) -> None:
    played.answer = lambda _asked: Answer(body=ACCEPTED)
    assert not isinstance(call(source), Trouble)
    assert (played.asked[0].path, played.asked[0].json) == (path, body)


def test_actions_are_asked_for_as_the_worker(played: Played, source: GatewaySource) -> None:
    played.answer = lambda _asked: Answer(body={"actions": [{"action": "a", "capability": "c"}]})
    assert source.actions() == {"a": "c"}
    [asked] = played.asked
    assert (asked.method, asked.path) == ("GET", "/v1/actions")
    assert asked.headers["X-Worker-Id"] == "w1"


# What goes wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_succeed_later_passes(played: Played, source: GatewaySource, status: int) -> None:
    played.answer = lambda _asked: problem(status, "database", "not now", Retry_After="7")
    assert source.request(1, 0) == Trouble(
        "the gateway is not ready: not now", passing=True, after_seconds=7.0
    )


@pytest.mark.parametrize("after", ["Wed, 21 Oct 2026 07:28:00 GMT", "soon", "-1"])
def test_an_odd_retry_after_is_a_second(played: Played, source: GatewaySource, after: str) -> None:
    played.answer = lambda _asked: problem(503, "database", "not now", Retry_After=after)
    answer = source.request(1, 0)
    assert isinstance(answer, Trouble)
    assert answer.after_seconds == 1.0


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [(401, 20001, 20001), (404, 20002, 20002), (400, 10018, 10018), (413, 20005, 20005),
     (400, "not_json", 0), (403, "role", 20001)],
)  # fmt: skip
def test_a_refusal_brings_its_code(
    played: Played, source: GatewaySource, status: int, code: Any, expected: int
) -> None:
    played.answer = lambda _asked: problem(status, code, "no")
    answer = source.submit([finished(1)])
    assert isinstance(answer, Trouble)
    assert (answer.message, answer.code, answer.passing) == ("no", expected, False)


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [
        (401, 20001, "check the key (--enroll-key-file or WF_API_KEY) or the worker's token"),
        (403, 20008, "make a key for these capabilities: wf key create"),
        (403, "role", "make a key for these capabilities: wf key create"),
    ],
)
def test_a_refused_key_or_token_has_a_hint(
    played: Played, source: GatewaySource, status: int, code: Any, hint: str
) -> None:
    played.answer = lambda _asked: problem(status, code, "no")
    answer = source.submit([finished(1)])
    assert isinstance(answer, Trouble)
    assert (answer.hint or "").startswith(hint)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(404, "<html>not here</html>"),
        Answer(200, "<html>log in</html>"),
        Answer(200, {"hello": "world"}),
        Answer(200, {"tasks": [{"task_id": 1}]}),
        Answer(200, []),
        Answer(302, "", {"Location": "https://elsewhere"}),
    ],
)
def test_what_is_no_gateway_makes_nobody_give_up(
    played: Played, source: GatewaySource, answer: Answer
) -> None:
    played.answer = lambda _asked: answer
    for call in (lambda: source.request(1, 0), lambda: source.submit([finished(1)])):
        trouble = call()
        assert isinstance(trouble, Trouble)
        assert trouble.passing
        assert trouble.message.startswith("what stands at the gateway's address answered")


def test_answers_for_another_number_of_results_are_none(
    played: Played, source: GatewaySource
) -> None:
    played.answer = lambda _asked: Answer(body={"answers": []})
    answer = source.submit([finished(1), finished(2)])
    assert isinstance(answer, Trouble)
    assert answer.passing


def test_nobody_listening_passes() -> None:
    with playing() as played:
        url = played.url
    source = GatewaySource(GatewayAddress(url), "w1", "secret", 60)
    answer = source.request(1, 0)
    source.close()
    assert isinstance(answer, Trouble)
    assert answer.passing
    assert answer.message.startswith("the gateway cannot be reached")


def test_interrupt_ends_a_request_that_waits(played: Played, source: GatewaySource) -> None:
    waits, go_on = threading.Event(), threading.Event()

    def answer(_asked: Asked) -> Answer:
        waits.set()
        go_on.wait(20)
        return Answer(body={"tasks": []})

    played.answer = answer
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(source.request(1, 30)))
    thread.start()
    assert waits.wait(10)
    source.interrupt()
    thread.join(5)
    go_on.set()
    assert isinstance(answers[0], Trouble)
    # And the next one does not begin to wait.
    assert isinstance(source.request(1, 30), Trouble)


# Tokens -----------------------------------------------------------------------------------------


def only(token: str) -> Any:
    def answer(asked: Asked) -> Answer:
        if asked.headers["Authorization"] != f"Bearer {token}":
            return problem(401, 20001, "not valid")
        return Answer(body={"tasks": [], "command": "NONE"})

    return answer


def test_a_refused_token_is_renewed_once_and_the_call_repeated(played: Played) -> None:
    heard: list[str] = []
    source = GatewaySource(GatewayAddress(played.url), "w1", "old", 60, lambda: "new")
    source.on_token = heard.append
    played.answer = only("new")
    assert source.request(1, 0) == Claim((), "NONE")
    source.close()
    assert heard == ["new"]
    assert len(played.asked) == 2


def test_without_another_token_the_refusal_stands(played: Played) -> None:
    source = GatewaySource(GatewayAddress(played.url), "w1", "old", 60, lambda: "old")
    played.answer = only("new")
    answer = source.request(1, 0)
    assert isinstance(answer, Trouble)
    assert (answer.message, answer.code) == ("not valid", 20001)
    source.close()
    assert len(played.asked) == 1


# TLS --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


def test_a_certificate_is_trusted_that_the_user_names(certificate: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with playing(context) as played:
        played.answer = lambda _asked: Answer(body={"tasks": []})
        trusted = GatewaySource(GatewayAddress(played.url, str(certificate[0])), "w1", "t", 60)
        assert trusted.request(1, 0) == Claim((), "NONE")
        trusted.close()
        other = GatewaySource(GatewayAddress(played.url), "w1", "t", 60)
        answer = other.request(1, 0)
        other.close()
    assert isinstance(answer, Trouble)
    assert "certificate" in answer.message.lower()
    assert len(played.asked) == 1


def test_a_waiting_request_over_tls_can_be_interrupted(certificate: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    waits, go_on = threading.Event(), threading.Event()

    def answer(_asked: Asked) -> Answer:
        waits.set()
        go_on.wait(20)
        return Answer(body={"tasks": []})

    with playing(context) as played:
        played.answer = answer
        source = GatewaySource(GatewayAddress(played.url, str(certificate[0])), "w1", "t", 60)
        thread = threading.Thread(target=source.request, args=(1, 30))
        thread.start()
        assert waits.wait(10)
        began = time.monotonic()
        source.interrupt()
        thread.join(10)
        go_on.set()
        assert time.monotonic() - began < 5
        source.close()

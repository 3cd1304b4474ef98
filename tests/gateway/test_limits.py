"""Large bodies, slow clients, rates, a pool that is used up, a database that goes away."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from runtime_sql.failures import DatabaseProblem
from runtime_sql.gateway_client import connect_gateway
from tests.gateway.conftest import Running, reset, serve, with_client
from tests.runtime_sql import drive
from wfsql.gateway.limits import RateLimit
from wfsql.gateway.settings import Address, Settings

FREE = (Address("127.0.0.1", 0),)


@pytest.fixture(scope="module")
def narrow(database: str) -> Iterator[Running]:
    """A gateway with short times, small bodies and two connections."""
    settings = Settings(
        listen=FREE,
        pool_size=2,
        pool_wait_seconds=0.2,
        max_body=100_000,
        header_seconds=0.5,
        body_seconds=0.5,
        idle_seconds=1,
    )
    running = serve(database, settings)
    try:
        yield running
    finally:
        running.client.close()
        running.stop()


def connect(gateway: Running) -> socket.socket:
    url = httpx.URL(gateway.url)
    connection = socket.create_connection((url.host, url.port or 0))
    connection.settimeout(20)
    return connection


def received(connection: socket.socket) -> bytes:
    """What comes until the other side closes."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


HEAD = (
    b"POST /v1/workers/tasks/request HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Authorization: Bearer x\r\nContent-Type: application/json\r\n"
)


def test_a_body_that_says_it_is_too_large_is_not_read(narrow: Running) -> None:
    with connect(narrow) as connection:
        connection.sendall(HEAD + b"Content-Length: 104857600\r\n\r\n")
        answer = received(connection)

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"code": 20005' in answer


def test_a_body_is_cut_off_where_it_becomes_too_large(narrow: Running) -> None:
    sent = 0
    with connect(narrow) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"2000\r\n" + b"x" * 0x2000 + b"\r\n"
        with contextlib.suppress(OSError):
            while sent < 100 * 1024 * 1024:
                connection.sendall(chunk)
                sent += len(chunk)
        answer = received(connection)

    assert sent < 20 * 1024 * 1024
    # What was still on its way may have reset the connection before the answer was read.
    assert answer.startswith(b"HTTP/1.1 413 ") or not answer


def test_a_body_that_does_not_come_is_not_waited_for(narrow: Running) -> None:
    with connect(narrow) as connection:
        connection.sendall(HEAD + b"Content-Length: 10\r\n\r\n{")
        answer = received(connection)

    assert answer.startswith(b"HTTP/1.1 408 ")


def test_two_hundred_slow_clients_do_not_keep_others_waiting(narrow: Running) -> None:
    slow = [connect(narrow) for _ in range(200)]
    for connection in slow:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127")
    began = time.monotonic()

    assert narrow.client.get("/healthz").status_code == 200
    assert time.monotonic() - began < 0.5

    for connection in slow:
        assert received(connection).startswith(b"HTTP/1.1 408 ")
        connection.close()


def test_a_head_without_end_is_cut_off(narrow: Running) -> None:
    with connect(narrow) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            for _ in range(40):
                connection.sendall(b"X-Long: " + b"x" * 1024 + b"\r\n")
        answer = received(connection)

    assert answer.startswith(b"HTTP/1.1 431 ") or not answer


def test_an_idle_connection_is_closed(narrow: Running) -> None:
    with connect(narrow) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = received(connection)

    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_second_request_of_a_connection_has_its_own_time(narrow: Running) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with connect(narrow) as connection:
        for _ in range(2):
            connection.sendall(request)
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 ")
            time.sleep(0.6)
        connection.sendall(b"GET /heal")
        assert received(connection).startswith(b"HTTP/1.1 408 ")


def test_what_is_no_http_is_refused(narrow: Running) -> None:
    with connect(narrow) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        assert received(connection).startswith(b"HTTP/1.1 400 ")


def test_a_pool_that_is_used_up_is_answered_not_now(narrow: Running) -> None:
    headers = narrow.as_key("reader")
    narrow.client.get("/v1/instances", headers=headers).raise_for_status()
    statuses: list[int] = []

    def look() -> None:
        answer = httpx.get(f"{narrow.url}/v1/instances", headers=headers, timeout=60)
        statuses.append(answer.status_code)

    threads = [threading.Thread(target=look) for _ in range(2)]
    with drive.connect(narrow.database) as connection, connection.transaction():
        connection.execute("lock table wf.workflow_instance in access exclusive mode")
        for thread in threads:
            thread.start()
        while narrow.app.pool.in_use < 2:
            time.sleep(0.01)
        answer = narrow.client.get("/v1/instances", headers=headers)
    for thread in threads:
        thread.join()

    assert (answer.status_code, answer.json()["code"]) == (503, "pool_exhausted")
    assert answer.headers["retry-after"] == "1"
    assert statuses == [200, 200]
    assert narrow.client.get("/v1/instances", headers=headers).status_code == 200


def test_connections_that_were_cut_are_made_anew(narrow: Running) -> None:
    headers = narrow.as_key("reader")
    narrow.client.get("/v1/instances", headers=headers).raise_for_status()
    with drive.connect(narrow.database) as connection:
        connection.execute(
            "select pg_terminate_backend(a.pid) from pg_stat_activity as a"
            " where a.datname = current_database() and a.pid <> pg_backend_pid()"
        )

    answers = [narrow.client.get("/v1/instances", headers=headers) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200] * 4


class Unplugged:
    """Connects while `is_plugged`."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.is_plugged = True

    def __call__(self) -> Any:
        if self.is_plugged:
            return connect_gateway(self.database)
        return DatabaseProblem("unreachable", "gone", "wait", retryable=True)


def test_a_database_that_is_away_is_answered_not_now(database: str) -> None:
    plug = Unplugged(database)
    plug.is_plugged = False
    running = serve(database, Settings(listen=FREE, pool_size=2), plug)
    try:
        health = running.client.get("/healthz")
        ready = running.client.get("/readyz")
        answer = running.client.get(
            "/v1/instances", headers={"Authorization": "Bearer wf_0123456789ab_" + "A" * 43}
        )
        plug.is_plugged = True
        again = running.client.get("/readyz")
    finally:
        running.client.close()
        running.stop()

    assert health.status_code == 200
    assert (ready.status_code, ready.json()["code"]) == (503, "database")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "gone" not in answer.text
    assert again.status_code == 200


def test_a_caller_that_is_too_quick_is_told_to_wait(database: str) -> None:
    running = serve(database, Settings(listen=FREE, pool_size=2, rate=0.01))
    reset(running)
    try:
        headers = running.as_key("reader")
        answers = [running.client.get("/v1/instances", headers=headers) for _ in range(4)]
        other = running.client.get("/v1/instances", headers=running.as_key("author"))
    finally:
        running.client.close()
        running.stop()

    assert [answer.status_code for answer in answers] == [200, 429, 429, 429]
    assert answers[3].json()["code"] == "rate"
    assert 90 <= int(answers[3].headers["retry-after"]) <= 100
    assert other.status_code == 200


def test_a_bucket_fills_again_with_time() -> None:
    now = 0.0
    limit = RateLimit(2.0, lambda: now)

    assert [limit.take(b"a") for _ in range(5)] == [0, 0, 0, 0, 1]
    assert limit.take(b"b") == 0
    now = 0.5
    assert [limit.take(b"a") for _ in range(2)] == [0, 1]


def test_a_start_without_a_business_key_is_not_made_twice(database: str) -> None:
    """The connection is lost after the instance was made: whether it stands nobody knows."""
    made: list[Any] = []

    class Lost:
        def __init__(self, client: Any) -> None:
            self._client = client

        def __getattr__(self, name: str) -> Any:
            return getattr(self._client, name)

        def create_and_start(self, *args: Any, **options: Any) -> Any:
            made.append(self._client.create_and_start(*args, **options))
            return DatabaseProblem("unreachable", "lost", "again", retryable=True)

    running = serve(
        database, Settings(listen=FREE, pool_size=1), lambda: Lost(connect_gateway(database))
    )
    reset(running)
    try:
        headers = running.as_key("operator")
        without = running.client.post("/v1/instances", headers=headers, json={"workflow": "pair"})
        count = len(made)
        running.client.post(
            "/v1/instances",
            headers=headers,
            json={"workflow": "pair", "business_key": "only-once"},
        )
    finally:
        running.client.close()
        running.stop()

    assert without.status_code == 503
    assert count == 1
    assert [each.created for each in made] == [True, True, False]
    with_client(database, lambda client: client.cancel_instance(made[0].instance_id))

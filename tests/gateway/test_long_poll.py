"""Long polls through a gateway and its database."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.gateway.conftest import Running, with_client
from tests.runtime_sql import drive


def address(gateway: Running) -> tuple[str, int]:
    url = httpx.URL(gateway.url)
    assert url.port is not None
    return url.host, url.port


def poll_text(headers: dict[str, str]) -> bytes:
    """A poll of w1 as it goes over the wire."""
    body = b'{"worker_id": "w1", "wait_seconds": 30}'
    head = (
        "POST /v1/workers/tasks/request HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: {headers['Authorization']}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def length(head: str) -> str:
    return next(
        line.partition(":")[2] for line in head.lower().splitlines() if line.startswith("content-l")
    )


def wait_until_waiting(gateway: Running, count: int) -> None:
    give_up_at = time.monotonic() + 20
    while gateway.app.hub.waiting_count != count:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_a_poll_is_answered_when_there_is_something_to_claim(gateway: Running) -> None:
    gateway.worker()
    with ThreadPoolExecutor() as threads:
        poll = threads.submit(gateway.request, wait_seconds=30)
        wait_until_waiting(gateway, 1)
        instance = gateway.start()
        [task] = poll.result(20)["tasks"]

    assert task["instance_id"] == instance


def test_a_poll_hears_of_what_happened_elsewhere(gateway: Running) -> None:
    gateway.worker()
    with ThreadPoolExecutor() as threads, drive.connect(gateway.database) as connection:
        poll = threads.submit(gateway.request, wait_seconds=30)
        wait_until_waiting(gateway, 1)
        drive.start(connection, "pair", {})
        [task] = poll.result(20)["tasks"]

    assert task["node_key"] == "first"


def test_a_poll_without_work_ends_with_its_time(gateway: Running) -> None:
    began = time.monotonic()

    answer = gateway.request(wait_seconds=1)

    assert answer["tasks"] == []
    assert 0.9 < time.monotonic() - began < 10


def test_a_command_ends_the_waiting(gateway: Running) -> None:
    gateway.worker()
    with ThreadPoolExecutor() as threads:
        poll = threads.submit(gateway.request, wait_seconds=30)
        wait_until_waiting(gateway, 1)
        with_client(gateway.database, lambda client: client.set_worker_state("w1", "STOPPING"))
        answer = poll.result(20)

    assert answer == {"tasks": [], "desired_state": "STOPPING", "command": "STOP"}


def test_a_lease_that_runs_out_wakes_a_waiting_poll(gateway: Running) -> None:
    gateway.start()
    gateway.worker("w2")
    lost = gateway.request("w1", lease_seconds=1)["tasks"][0]

    [task] = gateway.request("w2", wait_seconds=30)["tasks"]

    assert task["task_id"] == lost["task_id"]


def test_what_was_claimed_for_a_client_that_went_away_is_given_back(gateway: Running) -> None:
    headers = gateway.worker()
    with socket.create_connection(address(gateway)) as connection:
        connection.sendall(poll_text(headers))
        wait_until_waiting(gateway, 1)
    wait_until_waiting(gateway, 0)

    instance = gateway.start()

    assert gateway.claim()["instance_id"] == instance


def test_hundreds_of_idle_polls_do_not_ask_the_database_one_by_one(gateway: Running) -> None:
    headers = gateway.worker()
    count = 300

    answers: list[str] = []

    async def poll() -> None:
        reader, writer = await asyncio.open_connection(*address(gateway))
        writer.write(poll_text(headers))
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        answers.append((await reader.readexactly(int(length(head)))).decode())
        writer.close()

    async def run() -> None:
        await asyncio.gather(*(poll() for _ in range(count)))

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    give_up_at = time.monotonic() + 60
    while gateway.app.hub.waiting_count < count and time.monotonic() < give_up_at:
        time.sleep(0.05)
    waiting = gateway.app.hub.waiting_count
    looks, claims = gateway.app.hub.poll_count, claim_count(gateway)
    time.sleep(2.0)
    asked = gateway.app.hub.poll_count - looks
    claimed = claim_count(gateway) - claims
    with_client(gateway.database, lambda client: client.set_worker_state("w1", "STOPPING"))
    thread.join(60)

    assert waiting == count
    assert claimed == 0
    assert 2 <= asked <= 6
    told = '{"tasks":[],"desired_state":"STOPPING","command":"STOP"}'
    assert answers == [told] * count


def claim_count(gateway: Running) -> float:
    metrics = gateway.app.gateway.metrics
    return sum(
        sample.value
        for metric in metrics.claim_seconds.collect()
        for sample in metric.samples
        if sample.name.endswith("_count")
    )

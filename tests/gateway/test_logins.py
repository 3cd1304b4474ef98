"""What the login of a gateway must be allowed to do, and what happens when it is not."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.gateway.conftest import Running, serve
from tests.runtime_sql import drive
from wfsql.gateway.settings import Address, Settings

LOGIN = "gateway_login"


@pytest.fixture
def as_gateway(gateway: Running) -> Iterator[Running]:
    """A gateway whose login is a member of wf_gateway and of nothing else."""
    with drive.connect(gateway.database) as connection:
        connection.execute(f"drop role if exists {LOGIN}".encode())
        connection.execute(f"create role {LOGIN} login in role wf_gateway".encode())
    url = gateway.database.replace("postgres@", f"{LOGIN}@")
    running = serve(url, Settings(listen=(Address("127.0.0.1", 0),), pool_size=2))
    running.database = gateway.database  # keys are made by the owner
    try:
        yield running
    finally:
        running.client.close()
        running.stop()
        with drive.connect(gateway.database) as connection:
            connection.execute(f"drop role {LOGIN}".encode())


def grant(running: Running, role: str) -> None:
    with psycopg.connect(running.database, autocommit=True) as connection:
        connection.execute(f"grant {role} to {LOGIN}".encode())


def test_a_member_of_wf_gateway_serves_workers_events_and_starts(as_gateway: Running) -> None:
    instance = as_gateway.start(business_key="b")
    task = as_gateway.request(wait_seconds=1)["tasks"][0]
    assert as_gateway.request(wait_seconds=1)["tasks"] == []
    as_gateway.call(task, "heartbeat").raise_for_status()
    as_gateway.call(task, "submit", result_code=0).raise_for_status()
    as_gateway.client.get(
        "/v1/actions", headers={**as_gateway.worker(), "X-Worker-Id": "w1"}
    ).raise_for_status()
    as_gateway.client.post(
        "/v1/events",
        headers=as_gateway.as_key("event_source"),
        json={"event_type": "ring", "source": "shop", "idempotency_key": "e"},
    ).raise_for_status()
    reader = as_gateway.as_key("reader")
    as_gateway.client.get(f"/v1/instances/{instance}", headers=reader).raise_for_status()
    as_gateway.client.get("/v1/instances", headers=reader).raise_for_status()

    assert as_gateway.client.get("/readyz").status_code == 200
    assert "wf_queue_known 1.0" in as_gateway.client.get("/metrics").text
    assert '"level": "error"' not in as_gateway.log.getvalue()


def test_what_the_login_may_not_do_is_said_to_be_the_gateways_fault(as_gateway: Running) -> None:
    instance = as_gateway.start()
    operator = as_gateway.as_key("operator")

    trace = as_gateway.client.get(f"/v1/instances/{instance}/trace", headers=operator)
    cancel = as_gateway.client.post(f"/v1/instances/{instance}/cancel", headers=operator)

    assert (trace.status_code, trace.json()["code"]) == (500, "login_not_allowed")
    assert (cancel.status_code, cancel.json()["code"]) == (500, "login_not_allowed")
    assert "permission" not in cancel.text


def test_a_reader_shows_traces_and_an_operator_cancels(as_gateway: Running) -> None:
    instance = as_gateway.start()
    operator = as_gateway.as_key("operator")
    grant(as_gateway, "wf_reader")
    grant(as_gateway, "wf_operator")

    trace = as_gateway.client.get(f"/v1/instances/{instance}/trace", headers=operator)
    cancel = as_gateway.client.post(f"/v1/instances/{instance}/cancel", headers=operator)

    assert (trace.status_code, cancel.status_code) == (200, 200)

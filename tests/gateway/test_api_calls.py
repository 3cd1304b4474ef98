"""What the owners of keys call: events, instances, and what operators do with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.gateway.conftest import Running
from tests.runtime_sql import drive

EVENT = {"event_type": "bell", "source": "shop", "idempotency_key": "e1", "correlation_key": "k"}


def send(gateway: Running, **more: Any) -> httpx.Response:
    return gateway.client.post(
        "/v1/events", headers=gateway.as_key("event_source"), json={**EVENT, **more}
    )


def operate(gateway: Running, instance: int, what: str, **body: Any) -> httpx.Response:
    return gateway.client.post(
        f"/v1/instances/{instance}/{what}", headers=gateway.as_key("operator"), json=body
    )


def test_an_event_completes_the_wait_that_it_is_for(gateway: Running) -> None:
    instance = gateway.start("waits")

    answer = send(gateway, payload={"by": "post"})

    assert answer.status_code == 202
    assert answer.json()["applied_count"] == 1
    assert answer.json()["duplicate"] is False
    shown = gateway.client.get(f"/v1/instances/{instance}", headers=gateway.as_key("reader"))
    assert shown.json()["status"] == "SUCCEEDED"


def test_the_same_event_again_is_a_duplicate(gateway: Running) -> None:
    first = send(gateway)
    second = send(gateway)

    assert (second.status_code, second.json()["duplicate"]) == (202, True)
    assert second.json()["differs"] is False
    assert second.json()["event_id"] == first.json()["event_id"]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"payload": {"n": 1}}, {"n": 1}),
        ({"payload_json": '{"n": 1}'}, {"n": 1}),
        ({"payload": [1]}, [1]),
        ({}, {}),
        ({"payload": None}, {}),
    ],
)
def test_a_payload_is_a_value_or_json_text(
    gateway: Running, given: dict[str, Any], stored: Any
) -> None:
    send(gateway, **given).raise_for_status()

    with drive.connect(gateway.database) as connection:
        assert connection.execute("select e.payload_json from wf.event as e").fetchall() == [
            (stored,)
        ]


def test_payload_and_payload_json_together_are_refused(gateway: Running) -> None:
    answer = send(gateway, payload={}, payload_json="{}")

    assert (answer.status_code, answer.json()["code"]) == (400, 20004)


def test_a_payload_json_that_is_no_json_is_refused(gateway: Running) -> None:
    answer = send(gateway, payload_json="{")

    assert (answer.status_code, answer.json()["code"]) == (400, "not_json")
    assert answer.json()["errors"][0]["pointer"] == "/payload_json"


def test_the_time_of_an_event_is_kept(gateway: Running) -> None:
    send(gateway, occurred_at_utc="2026-01-31T12:00:00+02:00").raise_for_status()

    with drive.connect(gateway.database) as connection:
        [row] = connection.execute("select e.occurred_at from wf.event as e").fetchall()
    assert row[0] == datetime(2026, 1, 31, 10, tzinfo=UTC)


@pytest.mark.parametrize("at", ["2026-01-31", "2026-01-31T12:00:00", "soon", 5])
def test_a_time_without_a_zone_or_none_at_all_is_refused(gateway: Running, at: Any) -> None:
    answer = send(gateway, occurred_at_utc=at)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "/occurred_at_utc"


def test_an_instance_is_started_shown_and_listed(gateway: Running) -> None:
    instance = gateway.start(context={"amount": 2}, business_key="order-1", priority=3)

    shown = gateway.client.get(f"/v1/instances/{instance}", headers=gateway.as_key("reader"))
    listed = gateway.client.get(
        "/v1/instances?status=RUNNING&workflow=pair&limit=5", headers=gateway.as_key("author")
    )

    assert shown.json()["workflow"] == "pair"
    assert shown.json()["business_key"] == "order-1"
    assert shown.json()["created_at"].endswith("Z")
    assert shown.json()["output"] is None
    assert [each["instance_id"] for each in listed.json()["instances"]] == [instance]


def test_the_same_business_key_answers_the_instance_that_is_there(gateway: Running) -> None:
    first = gateway.start(business_key="order-1")

    answer = gateway.client.post(
        "/v1/instances",
        headers=gateway.as_key("operator"),
        json={"workflow": "pair", "business_key": "order-1"},
    )

    assert answer.json()["instance_id"] == first
    assert answer.json()["created"] is False


def test_instances_are_listed_page_by_page(gateway: Running) -> None:
    first, second = gateway.start(), gateway.start()
    headers = gateway.as_key("reader")

    page = gateway.client.get("/v1/instances?limit=1", headers=headers).json()["instances"]
    rest = gateway.client.get(f"/v1/instances?before={second}", headers=headers).json()

    assert [each["instance_id"] for each in page] == [second]
    assert [each["instance_id"] for each in rest["instances"]] == [first]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=-1",
        "before=0",
        "status=GONE",
        "what=1",
        "limit=1&limit=2",
        "workflow=%00",
        "workflow=%ff",
        "limit",
    ],
)
def test_a_query_that_makes_no_sense_is_refused(gateway: Running, query: str) -> None:
    answer = gateway.client.get(f"/v1/instances?{query}", headers=gateway.as_key("reader"))

    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_input_that_does_not_fit_starts_nothing(gateway: Running) -> None:
    answer = gateway.client.post(
        "/v1/instances",
        headers=gateway.as_key("operator"),
        json={"workflow": "pair", "context": {"amount": "much"}},
    )

    assert (answer.status_code, answer.json()["code"]) == (400, 10015)
    listed = gateway.client.get("/v1/instances", headers=gateway.as_key("reader"))
    assert listed.json() == {"instances": []}


def test_an_unknown_workflow_is_not_found(gateway: Running) -> None:
    answer = gateway.client.post(
        "/v1/instances", headers=gateway.as_key("operator"), json={"workflow": "nothing"}
    )

    assert (answer.status_code, answer.json()["code"]) == (404, 20002)


def test_the_trace_is_the_databases_document(gateway: Running) -> None:
    instance = gateway.start()

    answer = gateway.client.get(f"/v1/instances/{instance}/trace", headers=gateway.as_key("reader"))

    with drive.connect(gateway.database) as connection:
        row = connection.execute("select wf.wf_trace_instance(%s)::text", (instance,)).fetchone()
    assert row is not None
    assert answer.text == row[0]


def test_an_operator_pauses_resumes_and_cancels(gateway: Running) -> None:
    instance = gateway.start()

    statuses = [
        operate(gateway, instance, what).json()["status"]
        for what in ("pause", "resume", "cancel", "cancel")
    ]

    assert statuses == ["PAUSED", "RUNNING", "CANCELLED", "CANCELLED"]


def test_a_body_may_be_left_out_where_nothing_has_to_be_said(gateway: Running) -> None:
    instance = gateway.start()

    answer = gateway.client.post(
        f"/v1/instances/{instance}/pause", headers=gateway.as_key("operator")
    )

    assert answer.json() == {"status": "PAUSED"}


def test_a_failed_instance_is_retried(gateway: Running) -> None:
    instance = gateway.start()
    gateway.call(gateway.claim(), "fail", result_code=-2, message="no")

    answer = operate(gateway, instance, "retry")

    assert answer.json() == {"status": "RUNNING", "retried_count": 1}
    assert gateway.claim()["attempt"] == 2


def test_what_is_not_in_the_right_state_is_a_conflict(gateway: Running) -> None:
    instance = gateway.start()
    operate(gateway, instance, "cancel", reason="enough").raise_for_status()

    answer = operate(gateway, instance, "pause")

    assert (answer.status_code, answer.json()["code"]) == (409, 20003)


@pytest.mark.parametrize("what", ["", "/trace"])
@pytest.mark.parametrize("instance", ["999", "0", "-1", "1.0", "x", "9" * 30, "007"])
def test_an_instance_that_is_not_there_is_not_found(
    gateway: Running, instance: str, what: str
) -> None:
    answer = gateway.client.get(f"/v1/instances/{instance}{what}", headers=gateway.as_key("reader"))

    assert (answer.status_code, answer.json()["code"]) == (404, 20002)


def test_health_and_readiness_are_open(gateway: Running) -> None:
    assert gateway.client.get("/healthz").json() == {"status": "ok"}
    assert gateway.client.get("/readyz").json()["status"] == "ready"

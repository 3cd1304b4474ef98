"""What a gateway counts, and the page that says so."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from tests.gateway.conftest import Running, serve
from wfsql.gateway.settings import Address, Settings

PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"


def metrics(gateway: Running) -> str:
    return gateway.client.get("/metrics").text


def value(gateway: Running, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", metrics(gateway), re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_the_page_lists_the_metrics_with_their_labels(gateway: Running) -> None:
    gateway.start()
    gateway.call(gateway.claim(), "heartbeat")
    stated = {
        name: set(re.findall(r"`(\w+)`", labels))
        for name, labels in re.findall(r"^\| `(wf_\w+)` \|([^|]*)\|", PAGE.read_text(), re.M)
    }
    given = {
        name.removesuffix("_total"): (name, kind)
        for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", metrics(gateway), re.MULTILINE)
        if not name.endswith("_created")
    }

    assert set(stated) == {name for name, _kind in given.values()}


def test_labels_are_those_of_the_page(gateway: Running) -> None:
    gateway.start()
    task = gateway.claim()
    gateway.call(task, "submit", result_code=0)
    gateway.call({**task, "lease_token": 9}, "submit", result_code=0)
    gateway.client.post(
        "/v1/events",
        headers=gateway.as_key("event_source"),
        json={"event_type": "bell", "source": "shop", "idempotency_key": "e"},
    )
    stated = {
        name: set(re.findall(r"`(\w+)`", labels))
        for name, labels in re.findall(r"^\| `(wf_\w+)` \|([^|]*)\|", PAGE.read_text(), re.M)
    }
    seen: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(wf_\w+)(?:\{(.*)\})? ", metrics(gateway), re.MULTILINE):
        stem = re.sub(r"_(bucket|sum|count|created)$", "", name)
        stem = f"{stem}_total" if f"{stem}_total" in stated else stem
        seen.setdefault(stem, set()).update(set(re.findall(r"(\w+)=", labels)) - {"le"})

    assert {name: seen[name] for name in stated if name in seen} == {
        name: labels for name, labels in stated.items() if name in seen
    }


def test_claims_results_and_lost_leases_are_counted(gateway: Running) -> None:
    names = (
        'wf_gateway_results_total{reason="OK"}',
        'wf_gateway_results_total{reason="STALE"}',
        'wf_gateway_leases_lost_total{call="submit"}',
        'wf_gateway_leases_lost_total{call="heartbeat"}',
        "wf_gateway_tasks_claimed_total",
        'wf_gateway_claim_seconds_count{found="yes"}',
    )
    before = [value(gateway, name) for name in names]
    gateway.start()
    task = gateway.claim()
    stale = {**task, "lease_token": task["lease_token"] + 1}
    gateway.call(stale, "submit", result_code=0)
    gateway.call(stale, "heartbeat")
    gateway.call(task, "submit", result_code=0)

    after = [value(gateway, name) for name in names]

    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("key", "outcome"), [("first", "kept"), ("first", "duplicate"), ("bad", "refused")]
)
def test_events_are_counted_by_outcome(gateway: Running, key: str, outcome: str) -> None:
    name = f'wf_gateway_events_total{{outcome="{outcome}"}}'
    before = value(gateway, name)
    source = "other" if key == "bad" else "shop"
    for _ in range(2 if outcome == "duplicate" else 1):
        answer = gateway.client.post(
            "/v1/events",
            headers=gateway.as_key("event_source"),
            json={"event_type": "ring", "source": source, "idempotency_key": key},
        )
    assert answer.status_code == (403 if key == "bad" else 202), answer.text

    assert value(gateway, name) - before == 1


def test_requests_are_counted_by_route_not_by_path(gateway: Running) -> None:
    name = 'wf_gateway_requests_total{route="/v1/instances/{instance_id}",status="404"}'
    before = value(gateway, name)
    for instance in (991, 992):
        gateway.client.get(f"/v1/instances/{instance}", headers=gateway.as_key("reader"))

    assert value(gateway, name) - before == 2
    # Labels only: a time or a number of seconds may hold these digits by chance.
    labels = re.findall(r"\{(.*)\}", metrics(gateway))
    assert not [label for label in labels if "991" in label or "992" in label]


def test_the_queue_is_shown_by_capability(gateway: Running) -> None:
    gateway.start()
    gateway.start()
    gateway.claim()
    gateway.app.gateway.metrics._asked_at = float("-inf")

    assert value(gateway, 'wf_queue_ready{capability="t"}') == 1
    assert value(gateway, 'wf_queue_leased{capability="t"}') == 1
    assert value(gateway, "wf_queue_known") == 1


def test_off_loopback_the_metrics_need_a_key_of_a_reader(database: str) -> None:
    settings = Settings(listen=(Address("127.0.0.1", 0),), pool_size=2, behind_proxy=True)
    running = serve(database, settings)
    try:
        nobody = running.client.get("/metrics")
        author = running.client.get("/metrics", headers=running.as_key("author"))
        reader = running.client.get("/metrics", headers=running.as_key("reader"))
        named = httpx.get(f"{running.url}/healthz", headers={"Host": "api.example.org"})
    finally:
        running.client.close()
        running.stop()

    assert (nobody.status_code, author.status_code, reader.status_code) == (401, 403, 200)
    assert reader.headers["content-type"].startswith("text/plain")
    assert named.status_code == 200

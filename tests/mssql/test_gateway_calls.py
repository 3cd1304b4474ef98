"""Keys, enrolment and a gateway's questions on the SQL Server of the run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from runtime_sql.failures import ApiError
from runtime_sql.gateway_client import Event, GatewayClient, KeyGrant, connect_gateway
from wfsql.gateway.keys import new_key

TOKEN = "wf_0123456789ab_" + "t" * 43


@pytest.fixture
def client(mssql_url: str) -> Iterator[GatewayClient]:
    found = connect_gateway(mssql_url)
    assert not hasattr(found, "message"), found
    yield found  # type: ignore[misc]
    found.close()  # type: ignore[union-attr]


def refused(answer: object) -> int | None:
    return answer.code if isinstance(answer, ApiError) else None


def test_a_key_says_what_its_owner_may_until_it_is_revoked(client: GatewayClient) -> None:
    key = new_key()
    ends = datetime.now(UTC) + timedelta(days=1)
    grant = KeyGrant(
        name=f"shop {key[3:15]}",
        roles=("enroll", "event_source"),
        source="shop",
        event_types=("ring", "bell", "ring"),
        capabilities=("b", "a"),
        expires_at=ends,
    )

    key_id = client.create_api_key(key, grant)
    owner = client.authenticate_key(key)

    assert key_id == key[3:15]
    assert owner.roles == {"enroll", "event_source"}  # type: ignore[union-attr]
    assert owner.event_types == {"bell", "ring"}  # type: ignore[union-attr]
    assert owner.capabilities == {"a", "b"}  # type: ignore[union-attr]
    assert abs(owner.expires_at - ends) < timedelta(seconds=1)  # type: ignore[union-attr, operator]
    other = "A" if key[-1] != "A" else "B"
    assert refused(client.authenticate_key(key[:-1] + other)) == 20001
    assert refused(client.create_api_key(key, grant)) == 20010
    assert client.revoke_api_key(str(key_id)) is None
    assert refused(client.authenticate_key(key)) == 20001


@pytest.mark.parametrize(
    "grant",
    [
        KeyGrant(name="x", roles=()),
        KeyGrant(name="x", roles=("owner",)),
        KeyGrant(name="x", roles=("event_source",), source="shop"),
        KeyGrant(name="x", roles=("reader",), source="shop"),
        KeyGrant(name="x", roles=("enroll",)),
        KeyGrant(name="x", roles=("reader",), capabilities=("a",)),
        KeyGrant(name="x ", roles=("reader",)),
    ],
)
def test_roles_and_what_binds_them_must_fit(client: GatewayClient, grant: KeyGrant) -> None:
    assert refused(client.create_api_key(new_key(), grant)) == 20004


def test_a_key_enrolls_workers_within_its_capabilities(client: GatewayClient) -> None:
    key = new_key()
    name = f"w {key[3:15]}"
    client.create_api_key(key, KeyGrant(name=name, roles=("enroll",), capabilities=("a",)))

    assert client.enroll_worker(key, name, TOKEN, ["a"], 2) is None
    assert refused(client.enroll_worker(key, name, TOKEN, ["a", "b"], 2)) == 20008
    profile = client.worker_profile(name, TOKEN)
    assert profile.capabilities == {"a"}  # type: ignore[union-attr]
    assert client.register_worker(name, TOKEN, ["a", "c"], 2) is None
    assert refused(client.enroll_worker(key, name, TOKEN, ["a"], 2)) == 20008
    assert client.revoke_worker_token(name) == 2
    assert refused(client.worker_profile(name, TOKEN)) == 20001


def test_a_worker_that_is_told_something_has_a_row(client: GatewayClient) -> None:
    name = new_key()[3:15]
    client.register_worker(name, TOKEN, ["a"], 1)
    client.set_worker_state(name, "DRAINING")

    rows = client.claimable()

    assert (None, name, 0) in [(r.capability, r.worker_id, r.task_count) for r in rows]  # type: ignore[union-attr]


def test_the_time_of_an_event_is_taken(client: GatewayClient) -> None:
    event = Event(
        event_type="bell",
        source="shop",
        idempotency_key=new_key()[3:15],
        payload_json="{}",
        occurred_at=datetime(2026, 1, 31, 12, tzinfo=UTC),
    )

    first, second = client.take_event(event), client.take_event(event)

    assert (first.duplicate, second.duplicate) == (False, True)  # type: ignore[union-attr]

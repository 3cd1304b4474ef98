"""Keys, enrolment, the life of workers' tokens, and what a gateway asks for many polls."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from tests.runtime_sql import drive

if TYPE_CHECKING:
    from wfsql.embedded import EmbeddedServer

KEY = "wf_0123456789ab_" + "A-_z" * 10 + "end"
OTHER = "wf_ba9876543210_" + "B" * 43
NOW = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def shared(pg_server: EmbeddedServer, pg_template: str) -> Iterator[psycopg.Connection[Any]]:
    name = f"api_keys_{os.getpid()}"
    with drive.connect(pg_server.create_database(name, pg_template)) as connection:
        yield connection
    pg_server.drop_database(name)


@pytest.fixture
def connection(shared: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """A transaction that is rolled back, with a clock that stands."""
    with shared.transaction(force_rollback=True):
        at(shared, NOW)
        yield shared


def at(connection: psycopg.Connection[Any], now: str) -> None:
    connection.execute(
        "insert into wf.wf_setting (name, value) values ('now', %s)"
        " on conflict (name) do update set value = excluded.value",
        (now,),
    )


def refusal(connection: psycopg.Connection[Any], query: str, *values: Any) -> str | None:
    """The code with which a call is refused, None when it is not."""
    try:
        with connection.transaction():
            connection.execute(query.encode(), values)
    except psycopg.DatabaseError as error:
        return error.diag.message_detail
    return None


CREATE = "select key_id from wf.sp_create_api_key(%s, %s, %s, %s, %s, %s, %s)"
AUTHENTICATE = "select * from wf.wf_api_key_authenticate(%s)"
ENROLL = "select wf.sp_enroll_worker(%s, %s, %s, %s, 2)"


def create(
    connection: psycopg.Connection[Any],
    key: str = KEY,
    name: str = "ci",
    roles: tuple[str, ...] = ("operator",),
    source: str | None = None,
    types: tuple[str, ...] = (),
    capabilities: tuple[str, ...] = (),
    expires: str | None = None,
) -> str:
    row = connection.execute(
        CREATE, (key, name, list(roles), source, list(types), list(capabilities), expires)
    ).fetchone()
    assert row is not None
    return str(row[0])


def test_a_key_says_what_its_owner_may(connection: psycopg.Connection[Any]) -> None:
    create(
        connection,
        roles=("event_source", "enroll", "event_source"),
        source="shop",
        types=("ring", "bell", "ring"),
        capabilities=("b", "a"),
        expires="2026-02-01T00:00:00Z",
    )

    row = connection.execute(AUTHENTICATE, (KEY,)).fetchone()

    assert row is not None
    assert row[:6] == (
        "0123456789ab",
        "ci",
        ["enroll", "event_source"],
        "shop",
        ["bell", "ring"],
        ["a", "b"],
    )


def test_neither_rows_nor_the_view_hold_the_key(connection: psycopg.Connection[Any]) -> None:
    create(connection)

    stored = connection.execute("select k::text from wf.api_key as k").fetchall()
    shown = connection.execute("select k::text from wf.v_api_key as k").fetchall()

    secret = KEY.rpartition("_")[2]
    assert secret not in str(stored)
    assert "key_hash" not in str(shown)
    assert secret not in str(shown)


def test_keys_that_differ_in_the_last_character_only_differ(
    connection: psycopg.Connection[Any],
) -> None:
    create(connection)

    assert refusal(connection, AUTHENTICATE, KEY) is None
    assert refusal(connection, AUTHENTICATE, KEY[:-1] + "D") == "20001"
    assert refusal(connection, AUTHENTICATE, KEY[:-1]) == "20001"


def test_an_expired_key_is_nobodys(connection: psycopg.Connection[Any]) -> None:
    create(connection, expires="2026-01-01T00:01:00Z")

    at(connection, "2026-01-01T00:00:59Z")
    assert refusal(connection, AUTHENTICATE, KEY) is None
    at(connection, "2026-01-01T00:01:00Z")
    assert refusal(connection, AUTHENTICATE, KEY) == "20001"


def test_a_revoked_key_is_nobodys_and_stays_in_the_list(
    connection: psycopg.Connection[Any],
) -> None:
    key_id = create(connection)

    connection.execute("select wf.sp_revoke_api_key(%s)", (key_id,))
    at(connection, "2026-01-02T00:00:00Z")
    connection.execute("select wf.sp_revoke_api_key(%s)", (key_id,))

    assert refusal(connection, AUTHENTICATE, KEY) == "20001"
    row = connection.execute(
        "select k.is_live, k.revoked_at = %s from wf.v_api_key as k", (NOW,)
    ).fetchone()
    assert row == (False, True)


def test_a_name_is_free_again_when_its_key_was_revoked(
    connection: psycopg.Connection[Any],
) -> None:
    key_id = create(connection)
    values = (OTHER, "ci", ["reader"], None, [], [], None)

    assert refusal(connection, CREATE, *values) == "20010"
    connection.execute("select wf.sp_revoke_api_key(%s)", (key_id,))
    assert refusal(connection, CREATE, *values) is None


@pytest.mark.parametrize(
    ("roles", "source", "types", "capabilities"),
    [
        ([], None, [], []),
        (["owner"], None, [], []),
        (["reader", None], None, [], []),
        (["event_source"], None, ["bell"], []),
        (["event_source"], "shop", [], []),
        (["reader"], "shop", [], []),
        (["reader"], None, ["bell"], []),
        (["enroll"], None, [], []),
        (["reader"], None, [], ["a"]),
        (["event_source"], "shop ", ["bell"], []),
        (["event_source"], "shop", ["bell", ""], []),
        (["enroll"], None, [], ["a", None]),
    ],
)
def test_roles_and_what_binds_them_must_fit(
    connection: psycopg.Connection[Any],
    roles: list[Any],
    source: str | None,
    types: list[Any],
    capabilities: list[Any],
) -> None:
    values = (KEY, "ci", roles, source, types, capabilities, None)

    assert refusal(connection, CREATE, *values) == "20004"


@pytest.mark.parametrize(
    "key",
    [
        "wf_0123456789ab_" + "A" * 42,
        "wf_0123456789ab_" + "A" * 44,
        "wf_0123456_" + "A" * 43,
        "wf_0123456789AB_" + "A" * 43,
        "xx_0123456789ab_" + "A" * 43,
        "wf_0123456789ab_" + "A" * 42 + "\n",
        "\nwf_0123456789ab_" + "A" * 43,
        "wf_0123456789ab_" + "A" * 42 + "é",
    ],
)
def test_a_key_of_another_form_is_refused(connection: psycopg.Connection[Any], key: str) -> None:
    assert refusal(connection, CREATE, key, "ci", ["reader"], None, [], [], None) == "20004"
    assert refusal(connection, AUTHENTICATE, key) == "20001"


def test_a_key_that_has_ended_already_is_refused(connection: psycopg.Connection[Any]) -> None:
    assert refusal(connection, CREATE, KEY, "ci", ["reader"], None, [], [], NOW) == "20004"


# Enrolment -----------------------------------------------------------------------------------


def capabilities_of(connection: psycopg.Connection[Any], worker: str) -> list[str]:
    rows = connection.execute(
        "select c.capability from wf.worker_capability as c where c.worker_id = %s order by 1",
        (worker,),
    ).fetchall()
    return [row[0] for row in rows]


def test_an_enrolled_worker_may_claim(connection: psycopg.Connection[Any]) -> None:
    create(connection, roles=("enroll",), capabilities=("a", "b"))

    assert refusal(connection, ENROLL, KEY, "w1", drive.TOKEN, ["a"]) is None

    row = connection.execute(
        "select capabilities, desired_state from wf.wf_worker_profile(%s, %s)",
        ("w1", drive.TOKEN),
    ).fetchone()
    assert row == (["a"], "ACTIVE")


@pytest.mark.parametrize("capabilities", [["c"], ["a", "c"], ["*"]])
def test_a_key_gives_no_more_than_it_names(
    connection: psycopg.Connection[Any], capabilities: list[str]
) -> None:
    create(connection, roles=("enroll",), capabilities=("a", "b"))

    assert refusal(connection, ENROLL, KEY, "w1", drive.TOKEN, capabilities) == "20008"
    assert capabilities_of(connection, "w1") == []


def test_a_worker_of_another_kind_cannot_be_taken_over(
    connection: psycopg.Connection[Any],
) -> None:
    create(connection, roles=("enroll",), capabilities=("a",))
    connection.execute("select wf.sp_register_worker('w1', %s, array['a', 'c'])", (drive.TOKEN,))

    assert refusal(connection, ENROLL, KEY, "w1", "t" * 43, ["a"]) == "20008"
    assert capabilities_of(connection, "w1") == ["a", "c"]


def test_a_key_for_all_capabilities_may_renew_any_worker(
    connection: psycopg.Connection[Any],
) -> None:
    create(connection, roles=("enroll",), capabilities=("*",))
    connection.execute("select wf.sp_register_worker('w1', %s, array['a', 'c'])", (drive.TOKEN,))

    assert refusal(connection, ENROLL, KEY, "w1", "t" * 43, ["*"]) is None
    assert capabilities_of(connection, "w1") == ["*"]


def test_a_key_without_the_role_enrolls_nobody(connection: psycopg.Connection[Any]) -> None:
    create(connection)

    assert refusal(connection, ENROLL, KEY, "w1", drive.TOKEN, ["a"]) == "20008"
    assert refusal(connection, ENROLL, OTHER, "w1", drive.TOKEN, ["a"]) == "20001"


# Tokens of workers ---------------------------------------------------------------------------

IS_GOOD = "select wf.wf_worker_authenticate(%s, %s)"


def test_a_workers_token_ends_when_it_was_told_to(connection: psycopg.Connection[Any]) -> None:
    row = connection.execute(
        "select token_count from wf.sp_set_worker_token_expiry(%s, %s)",
        (drive.WORKER, "2026-01-01T00:01:00Z"),
    ).fetchone()

    assert row == (1,)
    assert refusal(connection, IS_GOOD, drive.WORKER, drive.TOKEN) is None
    at(connection, "2026-01-01T00:01:00Z")
    assert refusal(connection, IS_GOOD, drive.WORKER, drive.TOKEN) == "20001"


def test_one_of_two_tokens_can_be_revoked(connection: psycopg.Connection[Any]) -> None:
    new = "n" * 43
    [old_id] = connection.execute(
        "select t.token_id from wf.v_worker_token as t where t.worker_id = %s", (drive.WORKER,)
    ).fetchall()[0]
    connection.execute("select wf.sp_register_worker(%s, %s, array['*'])", (drive.WORKER, new))

    connection.execute("select wf.sp_revoke_worker_token(%s, %s)", (drive.WORKER, old_id))

    assert refusal(connection, IS_GOOD, drive.WORKER, drive.TOKEN) == "20001"
    assert refusal(connection, IS_GOOD, drive.WORKER, new) is None


def test_all_tokens_of_a_worker_can_be_revoked(connection: psycopg.Connection[Any]) -> None:
    revoke = "select wf.sp_revoke_worker_token(%s)"

    assert refusal(connection, revoke, drive.WORKER) is None
    assert refusal(connection, IS_GOOD, drive.WORKER, drive.TOKEN) == "20001"
    assert refusal(connection, revoke, drive.WORKER) == "20002"


# What a gateway asks -------------------------------------------------------------------------

FLOW = """
    workflow w {
      parallel {
        action a = t.do()
        action b = t.do()
        action c = u.do()
      }
    }
"""
CATALOG = """
actions:
  - {name: t.do, capability: t}
  - {name: u.do, capability: u}
"""


@pytest.fixture
def started(connection: psycopg.Connection[Any], tmp_path: Path) -> int:
    script = drive.emit(drive.compile_text(tmp_path, FLOW, CATALOG))
    inner = script.replace("\nbegin;", "").replace("\ncommit;", "")
    connection.execute(inner.encode())
    return drive.start(connection, "w", {})


def claimable(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    rows = connection.execute(
        "select capability, worker_id, task_count from wf.wf_claimable_capabilities()"
    ).fetchall()
    return sorted(rows, key=str)


def test_what_can_be_claimed_is_counted_by_capability(
    connection: psycopg.Connection[Any], started: int
) -> None:
    assert claimable(connection) == [("t", None, 2), ("u", None, 1)]

    drive.claim(connection)

    assert claimable(connection) == [("t", None, 1), ("u", None, 1)]


def test_what_is_paused_counts_for_nothing(
    connection: psycopg.Connection[Any], started: int
) -> None:
    connection.execute("update wf.workflow_action set paused = true where action_name = 'u.do'")
    assert claimable(connection) == [("t", None, 2)]

    connection.execute("select wf.sp_pause_workflow_instance(%s)", (started,))
    assert claimable(connection) == []


def test_a_pinned_task_counts_for_its_worker_alone(
    connection: psycopg.Connection[Any], started: int
) -> None:
    connection.execute(
        "update wf.task set pinned_worker_id = 'w9' where node_execution_id ="
        " (select max(node_execution_id) from wf.task)"
    )

    assert claimable(connection) == [("t", None, 2), ("u", "w9", 1)]


def test_a_worker_that_is_told_something_has_a_row(connection: psycopg.Connection[Any]) -> None:
    drive.claim(connection)
    connection.execute("select wf.sp_set_worker_state(%s, 'STOPPING')", (drive.WORKER,))
    assert claimable(connection) == [(None, drive.WORKER, 0)]

    at(connection, "2026-01-01T00:05:01Z")
    assert claimable(connection) == []


def test_the_depth_of_the_queue_is_told_by_capability(
    connection: psycopg.Connection[Any], started: int
) -> None:
    drive.claim(connection, lease_seconds=60)
    at(connection, "2026-01-01T00:01:30Z")

    rows = connection.execute(
        "select capability, ready_count, oldest_ready_ms, leased_count, expired_count"
        " from wf.wf_queue_depth()"
    ).fetchall()

    assert sorted(rows) == [("t", 1, 90_000, 1, 1), ("u", 1, 90_000, 0, 0)]

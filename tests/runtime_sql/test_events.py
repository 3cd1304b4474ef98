"""Events and WAIT_EVENT in PostgreSQL: before, during and after the wait (R2, R33)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.runtime_sql import drive
from tests.runtime_sql.sessions import meet

WAITING = """
    workflow delivery {
      input { order_id: any }
      output { at = var.at, who = ctx.event.source }
      action book = t.do()
      wait_event delivered on "courier.delivered" {
        correlate var.order_id
        set at  = event.payload.at
        set how = event.type
      }
      action confirm = t.do(at: var.at, event: ctx.event.payload)
    }
"""


@pytest.fixture
def connection(any_url: str) -> Iterator[psycopg.Connection[Any]]:
    with drive.connect(any_url) as connection:
        yield connection


@pytest.fixture
def deployed(connection: psycopg.Connection[Any], tmp_path: Path) -> str:
    drive.deploy(connection, drive.compile_text(tmp_path, WAITING))
    return "delivery"


def send(
    connection: psycopg.Connection[Any],
    key: str | None,
    idempotency_key: str = "e1",
    payload: Any = None,
) -> tuple[Any, ...]:
    row = connection.execute(
        "select duplicate, applied_count, ignored_count"
        " from wf.sp_ingest_event('courier.delivered', 'courier', %s, %s, %s)",
        (idempotency_key, drive.json(payload or {"at": "noon"}), key),
    ).fetchone()
    assert row is not None
    return row


def to_the_wait(connection: psycopg.Connection[Any], context: dict[str, Any]) -> int:
    instance = drive.start(connection, "delivery", context)
    drive.submit(connection, drive.claim(connection) or {}, 0)
    return instance


def test_an_event_completes_the_wait_it_matches(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    waiting = to_the_wait(connection, {"order_id": "A1"})
    other = to_the_wait(connection, {"order_id": "A2"})

    assert send(connection, "A1") == (False, 1, 0)
    drive.drain(connection, drive.Scripted())

    document = drive.trace(connection, waiting)
    assert document["status"] == "SUCCEEDED"
    assert document["output"] == {"at": "noon", "who": "courier"}
    assert document["variables"]["how"] == "courier.delivered"
    wait = next(n for n in document["nodes"] if n["type"] == "WAIT_EVENT")
    assert (wait["status"], wait["result_code"], wait["output"]) == ("SUCCEEDED", 0, {"at": "noon"})
    assert drive.trace(connection, other)["status"] == "RUNNING"


def test_an_event_before_the_wait_is_taken_at_its_activation(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    instance = drive.start(connection, deployed, {"order_id": "A1"})
    assert send(connection, "A1") == (False, 0, 1)

    drive.drain(connection, drive.Scripted())

    assert drive.trace(connection, instance)["status"] == "SUCCEEDED"


def test_an_event_before_the_start_is_not_taken(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    send(connection, "A1")

    instance = to_the_wait(connection, {"order_id": "A1"})

    assert drive.trace(connection, instance)["status"] == "RUNNING"


def test_the_oldest_early_event_is_taken_first(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    instance = drive.start(connection, deployed, {"order_id": "A1"})
    send(connection, "A1", "first", {"at": "first"})
    send(connection, "A1", "second", {"at": "second"})

    drive.drain(connection, drive.Scripted())

    assert drive.trace(connection, instance)["variables"]["at"] == "first"


def test_a_duplicate_has_no_effect(connection: psycopg.Connection[Any], deployed: str) -> None:
    to_the_wait(connection, {"order_id": "A1"})
    send(connection, "A9")

    assert send(connection, "A1") == (True, 0, 0)
    row = connection.execute("select count(*), max(duplicate_count) from wf.event").fetchone()
    assert row == (1, 1)


def test_an_event_without_correlation_does_not_match_a_correlated_wait(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    to_the_wait(connection, {"order_id": "A1"})

    assert send(connection, None) == (False, 0, 1)


def test_an_integer_correlates_by_its_text(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    to_the_wait(connection, {"order_id": 42})

    assert send(connection, "42") == (False, 1, 0)


def test_a_null_correlation_matches_nothing(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    instance = to_the_wait(connection, {"order_id": None})

    assert send(connection, "null") == (False, 0, 1)
    assert send(connection, None, "e2") == (False, 0, 1)
    assert drive.trace(connection, instance)["status"] == "RUNNING"


def test_a_correlation_of_another_type_fails_the_wait(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    instance = to_the_wait(connection, {"order_id": [1]})

    error = drive.trace(connection, instance)["error"]
    assert (error["engine_code"], error["message"]) == (
        10010,
        "delivery/delivered: correlate takes a string or an integer, not array",
    )


def test_an_event_goes_to_one_wait_of_an_instance_the_first_activated(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    text = """
        workflow pair {
          parallel {
            wait_event one on "courier.delivered" { set a = event.payload.at }
            wait_event two on "courier.delivered" { correlate "A1"  set b = event.payload.at }
          }
        }
    """
    drive.deploy(connection, drive.compile_text(tmp_path, text))
    instance = drive.start(connection, "pair", {})

    assert send(connection, "A1", "e1", {"at": 1}) == (False, 1, 0)
    assert send(connection, "A1", "e2", {"at": 2}) == (False, 1, 0)

    document = drive.trace(connection, instance)
    assert document["status"] == "SUCCEEDED"
    outputs = {n["path"]: n["output"] for n in document["nodes"] if n["type"] == "WAIT_EVENT"}
    assert outputs == {"pair/parallel_1/one": {"at": 1}, "pair/parallel_1/two": {"at": 2}}


def test_a_set_that_fails_fails_the_wait(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    instance = to_the_wait(connection, {"order_id": "A1"})

    send(connection, "A1", payload={"else": 1})

    error = drive.trace(connection, instance)["error"]
    assert (error["engine_code"], error["path"]) == (10001, "delivery/delivered")


def test_every_application_leaves_a_delivery_row(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    instance = to_the_wait(connection, {"order_id": "A1"})
    send(connection, "A1")

    rows = connection.execute(
        "select workflow_instance_id, outcome from wf.event_delivery"
    ).fetchall()

    assert rows == [(instance, "applied")]


@pytest.mark.parametrize(
    ("event_type", "source", "key", "correlation"),
    [
        (None, "s", "k", None),
        ("", "s", "k", None),
        ("t", None, "k", None),
        ("t", "s", None, None),
        ("t", "s", "k ", None),
        ("t", "s", "k", ""),
        ("t" * 201, "s", "k", None),
        ("t\u0007", "s", "k", None),
    ],
)
def test_an_event_without_proper_keys_is_refused(
    connection: psycopg.Connection[Any],
    event_type: str | None,
    source: str | None,
    key: str | None,
    correlation: str | None,
) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(
            "select wf.sp_ingest_event(%s, %s, %s, '{}', %s)",
            (event_type, source, key, correlation),
        )

    assert refused.value.diag.message_detail == "20004"
    assert connection.execute("select count(*) from wf.event").fetchone() == (0,)


def test_a_signal_that_meets_no_wait_is_an_ignored_delivery(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    assert send(connection, "A1") == (False, 0, 1)

    row = connection.execute("select outcome, reason from wf.event_delivery").fetchone()
    assert row == ("ignored", "nothing was waiting")


def test_a_signal_completes_the_wait_of_one_instance(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    first = to_the_wait(connection, {"order_id": "A1"})
    second = to_the_wait(connection, {"order_id": "A1"})

    row = connection.execute(
        "select applied_count from wf.sp_signal_wait('courier.delivered', 'A1', %s, %s)",
        (drive.json({"at": "now"}), second),
    ).fetchone()
    drive.drain(connection, drive.Scripted())

    assert row == (1,)
    assert drive.trace(connection, second)["status"] == "SUCCEEDED"
    assert drive.trace(connection, first)["status"] == "RUNNING"


def signal(connection: psycopg.Connection[Any], key: str | None, instance: int | None) -> int:
    row = connection.execute(
        "select applied_count from wf.sp_signal_wait('courier.delivered', %s, %s, %s)",
        (key, drive.json({"at": "now"}), instance),
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_signal_to_one_instance_is_not_taken_by_a_wait_of_another_that_opens_later(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    later = drive.start(connection, deployed, {"order_id": "A1"})
    task = drive.claim(connection)
    waiting = to_the_wait(connection, {"order_id": "A1"})
    assert signal(connection, "A1", waiting) == 1

    drive.submit(connection, task or {}, 0)

    waits = connection.execute("select workflow_instance_id from wf.event_wait").fetchall()
    assert waits == [(later,)]


def test_a_signal_before_the_wait_of_its_instance_is_taken_at_its_activation(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    instance = drive.start(connection, deployed, {"order_id": "A1"})
    task = drive.claim(connection)
    assert signal(connection, "A1", instance) == 0

    drive.submit(connection, task or {}, 0)

    assert (drive.claim(connection) or {})["node_key"] == "confirm"


# Outcomes ----------------------------------------------------------------------------------------

TIMED = """
    workflow delivery {
      wait_event delivered on "courier.delivered" { correlate "A1"  timeout 10s { sequence { } } }
      action confirm = t.do()
    }
"""


def outcomes(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    """The delivery rows: instance, key of the wait, outcome, reason."""
    return connection.execute(
        "select d.workflow_instance_id, n.node_key, d.outcome, d.reason"
        "  from wf.event_delivery d"
        "  left join wf.node_execution e on e.node_execution_id = d.node_execution_id"
        "  left join wf.workflow_node n on n.node_id = e.node_id"
        " order by d.event_id, d.delivery_no"
    ).fetchall()


def move_clock(connection: psycopg.Connection[Any], seconds: int) -> None:
    connection.execute(
        "update wf.wf_setting set value = (wf.wf_now() + %s * interval '1 s')::text"
        " where name = 'now'",
        (seconds,),
    )


def test_an_event_that_loses_against_a_time_out_leaves_an_ignored_delivery(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, TIMED))
    drive.stop_clock(connection)
    instance = drive.start(connection, "delivery", {})
    move_clock(connection, 10)

    assert send(connection, "A1") == (False, 0, 1)

    assert outcomes(connection) == [(instance, "delivered", "ignored", "timeout")]
    assert (drive.claim(connection) or {})["node_key"] == "confirm"


def test_a_signal_that_loses_against_a_time_out_leaves_an_ignored_delivery(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, TIMED))
    drive.stop_clock(connection)
    instance = drive.start(connection, "delivery", {})
    move_clock(connection, 10)

    assert signal(connection, "A1", instance) == 0

    assert outcomes(connection) == [(instance, "delivered", "ignored", "timeout")]


@pytest.mark.parametrize(
    ("event_type", "key", "payload", "differs"),
    [
        ("bell", "K", '{"a": 1, "b": [2]}', False),
        ("bell", "K", '{"b": [2], "a": 1}', False),
        ("bell", "K", '{"a": 1, "b": [3]}', True),
        ("bell", None, '{"a": 1, "b": [2]}', True),
        ("ring", "K", '{"a": 1, "b": [2]}', True),
    ],
)
def test_a_duplicate_says_whether_it_is_another_event(
    connection: psycopg.Connection[Any],
    event_type: str,
    key: str | None,
    payload: str,
    differs: bool,
) -> None:
    ingest = "select duplicate, differs from wf.sp_ingest_event(%s, 's', 'e1', %s, %s)"
    first = connection.execute(ingest, ("bell", '{"a": 1, "b": [2]}', "K")).fetchone()
    assert first == (False, False)
    assert connection.execute(ingest, (event_type, payload, key)).fetchone() == (True, differs)


def test_a_duplicate_is_counted_and_leaves_no_delivery(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    instance = to_the_wait(connection, {"order_id": "A1"})
    send(connection, "A1")

    assert [send(connection, "A1"), send(connection, "A1")] == [(True, 0, 0), (True, 0, 0)]

    assert outcomes(connection) == [(instance, "delivered", "applied", None)]
    assert connection.execute("select duplicate_count from wf.event").fetchone() == (2,)


def test_one_event_tells_each_outcome_apart(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    drive.deploy(
        connection,
        drive.compile_text(
            tmp_path,
            """
            workflow starts {
              input { n: int }
              on event "courier.delivered" start { input { n = event.payload.n } }
            }
            """,
        ),
    )
    drive.deploy(connection, drive.compile_text(tmp_path, WAITING))
    first = to_the_wait(connection, {"order_id": "A1"})
    second = to_the_wait(connection, {"order_id": "A1"})

    assert send(connection, "A1", payload={"at": "noon", "n": "no number"}) == (False, 2, 1)

    assert outcomes(connection) == [
        (first, "delivered", "applied", None),
        (second, "delivered", "applied", None),
        (None, None, "ignored", "input n: must be an integer, not string"),
    ]


# How long events are kept (R33) -------------------------------------------------------------------

DAY = 86_400


def purge(connection: psycopg.Connection[Any], limit: int = 1000) -> int:
    row = connection.execute("select purged_count from wf.sp_purge_events(%s)", (limit,)).fetchone()
    assert row is not None
    return int(row[0])


def keep(connection: psycopg.Connection[Any], seconds: int | None) -> None:
    connection.execute("select wf.wf_repo_upsert_event_type('courier.delivered', %s)", (seconds,))


@pytest.mark.parametrize(("days", "taken"), [(29, True), (30, False)])
def test_an_event_is_kept_for_a_wait_for_thirty_days(
    connection: psycopg.Connection[Any], deployed: str, days: int, taken: bool
) -> None:
    drive.stop_clock(connection)
    drive.start(connection, deployed, {"order_id": "A1"})
    send(connection, "A1")
    move_clock(connection, days * DAY)

    drive.submit(connection, drive.claim(connection) or {}, 0)

    assert (drive.claim(connection) is not None) is taken


@pytest.mark.parametrize(("seconds", "taken"), [(0, False), (61, True), (60, False)])
def test_a_type_says_for_how_long_its_events_are_kept(
    connection: psycopg.Connection[Any], deployed: str, seconds: int, taken: bool
) -> None:
    keep(connection, 5)
    keep(connection, seconds)
    drive.stop_clock(connection)
    drive.start(connection, deployed, {"order_id": "A1"})
    send(connection, "A1")
    move_clock(connection, 60)

    drive.submit(connection, drive.claim(connection) or {}, 0)

    assert (drive.claim(connection) is not None) is taken


def test_an_event_that_waits_when_it_comes_needs_not_be_kept(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    keep(connection, 0)
    to_the_wait(connection, {"order_id": "A1"})

    assert send(connection, "A1") == (False, 1, 0)


def test_purging_removes_events_whose_time_is_over_a_few_at_a_time(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    drive.stop_clock(connection)
    for n in range(3):
        send(connection, "A1", f"old{n}")
    move_clock(connection, 30 * DAY)
    send(connection, "A1", "new")

    assert [purge(connection, 2), purge(connection, 2), purge(connection, 2)] == [2, 1, 0]

    assert connection.execute("select idempotency_key from wf.event").fetchall() == [("new",)]
    assert connection.execute("select count(*) from wf.event_delivery").fetchone() == (1,)


def test_an_event_stays_as_long_as_an_instance_that_took_it(
    connection: psycopg.Connection[Any], deployed: str
) -> None:
    drive.stop_clock(connection)
    instance = to_the_wait(connection, {"order_id": "A1"})
    send(connection, "A1")
    move_clock(connection, 31 * DAY)
    assert purge(connection) == 0
    connection.execute("select wf.sp_cancel_workflow_instance(%s)", (instance,))
    move_clock(connection, 1)
    connection.execute("select wf.sp_purge_instances(wf.wf_now())")

    assert purge(connection) == 1


def test_an_event_that_is_being_removed_is_not_taken(
    connection: psycopg.Connection[Any], any_url: str, deployed: str
) -> None:
    drive.stop_clock(connection)
    drive.start(connection, deployed, {"order_id": "A1"})
    task = drive.claim(connection) or {}
    send(connection, "A1")

    def remove() -> int:
        move_clock(connection, 30 * DAY)
        return purge(connection)

    with drive.connect(any_url) as other, drive.connect(any_url) as observer:
        removed, _ = meet(connection, remove, other, lambda: drive.submit(other, task, 0), observer)

        assert removed == 1
        assert drive.claim(other) is None


# Subscriptions (S8.2) ----------------------------------------------------------------------------

STARTED = """
    workflow fulfil {
      input { order_id: string, region: string = "none" }
      output { order_id = var.order_id, region = var.region, by = ctx.event.type }
      on event "order.created" start {
        where region == "eu"
        input { order_id = event.payload.id  region = event.payload.region }
      }
      action a = t.do()
    }
"""


def order(connection: psycopg.Connection[Any], payload: Any, key: str = "o1") -> tuple[Any, ...]:
    row = connection.execute(
        "select duplicate, applied_count, ignored_count"
        " from wf.sp_ingest_event('order.created', 'shop', %s, %s)",
        (key, drive.json(payload)),
    ).fetchone()
    assert row is not None
    return row


def instances(connection: psycopg.Connection[Any]) -> list[int]:
    rows = connection.execute(
        "select workflow_instance_id from wf.workflow_instance order by 1"
    ).fetchall()
    return [row[0] for row in rows]


def test_an_event_starts_an_instance_with_its_inputs(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, STARTED))

    assert order(connection, {"id": "A1", "region": "eu"}) == (False, 1, 0)
    drive.drain(connection, drive.Scripted())

    (instance,) = instances(connection)
    document = drive.trace(connection, instance)
    assert document["status"] == "SUCCEEDED"
    assert document["output"] == {"order_id": "A1", "region": "eu", "by": "order.created"}


@pytest.mark.parametrize(
    "payload", [{"id": "A1", "region": "us"}, {"id": "A1"}, {"id": "A1", "region": None}]
)
def test_an_event_that_the_filter_does_not_fit_starts_nothing(
    connection: psycopg.Connection[Any], tmp_path: Path, payload: Any
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, STARTED))

    assert order(connection, payload) == (False, 0, 0)
    assert instances(connection) == []


def test_a_duplicate_starts_nothing_again(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, STARTED))
    order(connection, {"id": "A1", "region": "eu"})

    assert order(connection, {"id": "A1", "region": "eu"}) == (True, 0, 0)
    assert len(instances(connection)) == 1


def test_an_event_whose_input_does_not_fit_is_an_ignored_delivery(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, STARTED))

    assert order(connection, {"id": 7, "region": "eu"}) == (False, 0, 1)

    assert instances(connection) == []
    row = connection.execute("select outcome, reason from wf.event_delivery").fetchone()
    assert row == ("ignored", "input order_id: must be string, not integer")


def test_only_the_active_version_is_started(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, STARTED))
    newer = STARTED.replace("action a = t.do()", "action b = t.do()")
    drive.deploy(connection, drive.compile_text(tmp_path, newer))

    assert order(connection, {"id": "A1", "region": "eu"}) == (False, 1, 0)

    (instance,) = instances(connection)
    assert drive.trace(connection, instance)["nodes"][1]["path"] == "fulfil/b"


def test_start_or_signal_signals_who_waits_and_starts_otherwise(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    text = """
        workflow both {
          on event "courier.delivered" start_or_signal { input { } }
          wait_event again on "courier.delivered" { correlate "A1" }
        }
    """
    drive.deploy(connection, drive.compile_text(tmp_path, text))

    assert send(connection, "A1", "e1") == (False, 1, 0)
    (first,) = instances(connection)
    assert drive.trace(connection, first)["status"] == "RUNNING"

    assert send(connection, "A1", "e2") == (False, 1, 0)
    assert instances(connection) == [first]
    assert drive.trace(connection, first)["status"] == "SUCCEEDED"


def test_a_signal_filter_narrows_the_waits_of_its_workflow(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    text = """
        workflow narrow {
          on event "courier.delivered" signal { where at == "noon" }
          wait_event w on "courier.delivered" { correlate "A1" }
        }
    """
    drive.deploy(connection, drive.compile_text(tmp_path, text))
    instance = drive.start(connection, "narrow", {})

    assert send(connection, "A1", "e1", {"at": "dawn"}) == (False, 0, 0)
    assert send(connection, "A1", "e2", {"at": "noon"}) == (False, 1, 0)
    assert drive.trace(connection, instance)["status"] == "SUCCEEDED"


def test_a_variable_that_cannot_be_computed_is_an_ignored_delivery_too(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    text = """
        workflow divide {
          input { n: int }
          var q: int = 1 // var.n
          on event "order.created" start { input { n = event.payload.n } }
          action a = t.do(q: var.q)
        }
    """
    drive.deploy(connection, drive.compile_text(tmp_path, text))

    assert order(connection, {"n": 0}) == (False, 0, 1)
    assert order(connection, {"n": 1}, "o2") == (False, 1, 0)
    row = connection.execute("select reason from wf.event_delivery where outcome = 'ignored'")
    assert row.fetchone() == ("division by zero",)

"""What workers call, through a gateway that listens on a socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from runtime_sql.trace_ids import header, node_span_id, trace_id
from tests.gateway.conftest import Running, with_client
from tests.runtime_sql import drive


def test_a_worker_claims_submits_and_the_workflow_ends(gateway: Running) -> None:
    instance = gateway.start(context={"amount": 3})

    first = gateway.claim()
    answer = gateway.call(first, "submit", result_code=0, output={"paid": True})
    second = gateway.claim()
    end = gateway.call(second, "submit", result_code=0)

    assert first["instance_id"] == instance
    assert first["node_key"] == "first"
    assert first["action"] == "t.do"
    assert first["input"] == {"amount": 3}
    assert first["attempt"] == 1
    assert answer.json() == {
        "accepted": True,
        "reason": "OK",
        "instance_status": "RUNNING",
        "next_ready_count": 1,
    }
    assert end.json()["instance_status"] == "SUCCEEDED"


def test_numbers_keep_their_digits_both_ways(gateway: Running) -> None:
    digits = "12345678901234567890.12345678901234567890"
    gateway.client.post(
        "/v1/instances",
        headers={**gateway.as_key("operator"), "Content-Type": "application/json"},
        content=f'{{"workflow": "pair", "context": {{"amount": {digits}}}}}',
    ).raise_for_status()
    answer = gateway.client.post(
        "/v1/workers/tasks/request", headers=gateway.worker(), json={"worker_id": "w1"}
    )
    assert f'"input":{{"amount": {digits}}}' in answer.text


def test_a_request_without_work_is_answered_at_once(gateway: Running) -> None:
    assert gateway.request() == {"tasks": [], "desired_state": "ACTIVE", "command": "NONE"}


def test_a_repeated_submit_is_answered_as_the_first(gateway: Running) -> None:
    gateway.start()
    task = gateway.claim()

    gateway.call(task, "submit", result_code=0, output={"n": 1})
    again = gateway.call(task, "submit", result_code=0, output={"n": 1})
    other = gateway.call(task, "submit", result_code=0, output={"n": 2})

    assert (again.status_code, again.json()["accepted"]) == (200, True)
    assert again.json()["reason"] == "REPEATED"
    assert (other.status_code, other.json()["accepted"]) == (200, False)
    assert other.json()["reason"] == "STALE"


def test_a_failed_task_fails_its_instance(gateway: Running) -> None:
    gateway.start()

    answer = gateway.call(gateway.claim(), "fail", result_code=-7, message="no money")

    assert answer.json()["accepted"] is True
    assert answer.json()["instance_status"] == "FAILED"


def test_failing_with_a_positive_code_fails_with_minus_one(gateway: Running) -> None:
    instance = gateway.start()

    gateway.call(gateway.claim(), "fail", result_code=3, message="odd").raise_for_status()

    shown = gateway.client.get(f"/v1/instances/{instance}", headers=gateway.as_key("reader"))
    assert shown.json()["error_code"] == -1


def test_a_released_task_can_be_claimed_again_as_the_same_attempt(gateway: Running) -> None:
    gateway.start()
    task = gateway.claim()

    answer = gateway.call(task, "release")
    again = gateway.claim()

    assert answer.json() == {"accepted": True, "reason": "OK"}
    assert (again["task_id"], again["attempt"]) == (task["task_id"], task["attempt"])
    assert again["lease_token"] == task["lease_token"] + 1
    assert gateway.call(task, "release").json() == {"accepted": False, "reason": "STALE"}


def test_a_heartbeat_extends_a_lease_and_says_when_it_is_lost(gateway: Running) -> None:
    instance = gateway.start()
    task = gateway.claim()

    held = gateway.call(task, "heartbeat", extend_seconds=600)
    gateway.client.post(
        f"/v1/instances/{instance}/cancel", headers=gateway.as_key("operator"), json={}
    ).raise_for_status()
    lost = gateway.call(task, "heartbeat")

    assert held.json() == {"rows_updated": 1, "desired_state": "ACTIVE", "command": "NONE"}
    assert lost.json()["rows_updated"] == 0
    assert lost.json()["command"] == "CANCEL"


def test_many_leases_are_extended_in_one_call(gateway: Running) -> None:
    gateway.start()
    task = gateway.claim()
    leases = [
        {"task_id": task["task_id"], "lease_token": task["lease_token"]},
        {"task_id": task["task_id"], "lease_token": task["lease_token"] + 1},
    ]

    answer = gateway.client.post(
        "/v1/workers/tasks/heartbeat",
        headers=gateway.worker(),
        json={"worker_id": "w1", "leases": leases},
    )

    assert [a["rows_updated"] for a in answer.json()["answers"]] == [1, 0]
    assert [a["command"] for a in answer.json()["answers"]] == ["NONE", "CANCEL"]


def submit_many(gateway: Running, results: list[dict[str, Any]]) -> Any:
    return gateway.client.post(
        "/v1/workers/tasks/submit",
        headers=gateway.worker(),
        json={"worker_id": "w1", "results": results},
    )


def result(task: Any, **more: Any) -> dict[str, Any]:
    return {
        "task_id": task["task_id"],
        "lease_token": task["lease_token"],
        "result_code": 0,
        **more,
    }


def test_many_results_are_handed_in_by_one_call(gateway: Running) -> None:
    gateway.start()
    gateway.start()
    tasks = gateway.request(max_tasks=2)["tasks"]

    answer = submit_many(gateway, [result(task, output={"n": 1.50}) for task in tasks])

    assert [a["accepted"] for a in answer.json()["answers"]] == [True, True]
    assert [a["task_id"] for a in answer.json()["answers"]] == [t["task_id"] for t in tasks]


def test_one_bad_result_of_a_batch_does_not_hold_up_the_others(gateway: Running) -> None:
    gateway.start()
    task = gateway.claim()

    answer = submit_many(gateway, [result({"task_id": 999, "lease_token": 1}), result(task)])

    refused, taken = answer.json()["answers"]
    assert answer.status_code == 200
    assert (refused["accepted"], refused["problem"]["code"]) == (False, 20002)
    assert (taken["accepted"], taken["reason"]) == (True, "OK")


def test_a_draining_worker_is_told_so_though_there_is_nothing_to_claim(gateway: Running) -> None:
    gateway.request()
    with_client(gateway.database, lambda client: client.set_worker_state("w1", "DRAINING"))

    answer = gateway.request()

    assert answer == {"tasks": [], "desired_state": "DRAINING", "command": "DRAIN"}


def test_a_worker_reads_the_actions_with_its_token(gateway: Running) -> None:
    answer = gateway.client.get("/v1/actions", headers={**gateway.worker(), "X-Worker-Id": "w1"})

    assert answer.json() == {"actions": [{"action": "t.do", "capability": "t"}]}


def test_the_owner_of_any_key_reads_the_actions(gateway: Running) -> None:
    answer = gateway.client.get("/v1/actions", headers=gateway.as_key("event_source"))

    assert answer.status_code == 200


def test_a_worker_gets_only_what_it_was_enrolled_for(gateway: Running) -> None:
    gateway.start()
    gateway.worker("other", ("paint",))

    assert gateway.request("other")["tasks"] == []
    assert len(gateway.request("w1")["tasks"]) == 1


def start_under_a_scope(connection: psycopg.Connection[Any]) -> None:
    instance = connection.execute(
        "select workflow_instance_id from wf.wf_repo_create_workflow_instance('pair', '{}')"
    ).fetchone()
    assert instance is not None
    connection.execute("select wf.wf_apply_execution_scope(%s, 'night', '{}')", instance)
    connection.execute("select wf.sp_start_workflow_instance(%s)", instance)


def test_an_accepted_result_is_written_down_under_its_scope(gateway: Running) -> None:
    with drive.connect(gateway.database) as connection:
        start_under_a_scope(connection)
        gateway.call(gateway.claim(), "submit", result_code=0, output={"n": 1})
        rows = connection.execute(
            "select a.action_name, a.output_json from wf.execution_scope_action_entry as a"
        ).fetchall()

    assert rows == [("t.do", {"n": 1})]


def test_what_fails_while_writing_down_does_not_reach_the_worker(gateway: Running) -> None:
    gateway.start()
    task = gateway.claim()
    name = "sync_execution_scope_action_entry_after_submit"
    with drive.connect(gateway.database) as connection:
        connection.execute(f"alter function wf.{name} rename to put_aside".encode())
        try:
            answer = gateway.call(task, "submit", result_code=0)
        finally:
            connection.execute(f"alter function wf.put_aside rename to {name}".encode())

    assert (answer.status_code, answer.json()["accepted"]) == (200, True)
    assert '"event": "scope_sync_failed"' in gateway.log.getvalue()


def test_what_could_not_be_written_down_goes_with_the_next_result(gateway: Running) -> None:
    name = "sync_execution_scope_action_entry_after_submit"
    with drive.connect(gateway.database) as connection:
        for _ in range(2):
            start_under_a_scope(connection)
        connection.execute(f"alter function wf.{name} rename to put_aside".encode())
        try:
            gateway.call(gateway.claim(), "submit", result_code=0, output={"n": 1})
        finally:
            connection.execute(f"alter function wf.put_aside rename to {name}".encode())
        gateway.call(gateway.claim(), "submit", result_code=0, output={"n": 2})
        rows = connection.execute(
            "select a.output_json from wf.execution_scope_action_entry as a"
            " order by a.node_execution_id"
        ).fetchall()

    assert sorted(row[0]["n"] for row in rows) == [1, 2]


@pytest.mark.parametrize("worker_id", ["w1", "wörker 1"])
def test_enrolment_answers_what_was_registered(gateway: Running, worker_id: str) -> None:
    answer = gateway.client.post(
        "/v1/workers/enroll",
        headers=gateway.as_key("enroll"),
        json={
            "worker_id": worker_id,
            "worker_token": "t" * 43,
            "capabilities": ["b", "a", "a"],
            "max_concurrency": 3,
        },
    )

    assert answer.json() == {
        "worker_id": worker_id,
        "capabilities": ["a", "b"],
        "max_concurrency": 3,
    }


def test_every_task_has_the_fields_of_its_model(gateway: Running, tmp_path: Path) -> None:
    from wfsql.gateway.models import TaskOut

    gateway.start()

    assert set(gateway.claim()) == set(TaskOut.model_fields)


def test_a_task_has_the_trace_context_of_its_node(gateway: Running) -> None:
    instance = gateway.start()
    task = gateway.claim()
    name = with_client(gateway.database, lambda client: client.database_id())
    node = node_span_id(name, task["task_id"])
    assert task["trace_parent"] == header(trace_id(name, instance), node)

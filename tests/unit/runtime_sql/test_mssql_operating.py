"""The operators' calls as SQL Server is asked them, and what is made of its answers."""

from __future__ import annotations

from datetime import UTC, datetime

from runtime_sql.failures import ApiError
from runtime_sql.mssql_client import MssqlClient
from runtime_sql.mssql_driver import MssqlError
from runtime_sql.operator_rows import InstanceFilter, Retried
from tests.unit.runtime_sql.test_mssql_client import Answers

NOON = datetime(2030, 1, 2, 12)


def test_a_change_calls_its_procedure_by_name() -> None:
    answers = Answers([("CANCELLED",)])
    assert MssqlClient(answers).cancel_instance(7, "why not") == "CANCELLED"
    assert answers.asked == [
        (
            "exec wf.sp_cancel_workflow_instance @workflow_instance_id = %s, @reason = %s",
            (7, "why not"),
        )
    ]


def test_a_refusal_is_a_value() -> None:
    answers = Answers(MssqlError(70003, "instance 7 is running, not failed"))
    answer = MssqlClient(answers).retry_instance(7)
    assert answer == ApiError(20003, "instance 7 is running, not failed")


def test_a_retry_answers_both_columns() -> None:
    assert MssqlClient(Answers([("RUNNING", 2)])).retry_instance(7) == Retried("RUNNING", 2)


def test_a_worker_has_its_capabilities_from_json_and_times_in_utc() -> None:
    row = ("w1", "ACTIVE", 4, '["t", "u"]', 1, False, NOON, True, None, NOON)
    answers = Answers([row])
    found = MssqlClient(answers).list_workers(5)
    assert isinstance(found, list)
    assert (found[0].capabilities, found[0].last_seen_at) == (("t", "u"), NOON.replace(tzinfo=UTC))
    assert answers.asked[0][0].startswith("select top (5) w.worker_id")


def test_a_filter_is_asked_with_parameters_in_their_order() -> None:
    answers = Answers([])
    wanted = InstanceFilter(statuses=("FAILED",), workflow="w", business_key="k", before_id=9)
    MssqlClient(answers).list_instances(wanted, 10)
    [(statement, parameters)] = answers.asked
    assert parameters == (10, "w", "k", 9, "FAILED")
    assert statement.count("%s") == len(parameters)


def test_open_instances_are_looked_for_where_the_index_has_them() -> None:
    answers = Answers([])
    MssqlClient(answers).list_instances(InstanceFilter(statuses=("RUNNING", "PAUSED")), 10)
    assert "i.ended_at is null" in answers.asked[0][0]

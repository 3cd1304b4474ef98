"""What a driver's exception means to the user."""

from __future__ import annotations

import psycopg
import pytest

from runtime_sql.failures import ApiError, DatabaseProblem, Failure, from_driver_error


def failure_of(url: str, statement: str) -> Failure | None:
    with psycopg.connect(url, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(statement.encode())
        return from_driver_error(caught.value)


def raising(state: str, detail: str = "") -> str:
    using = f"errcode = '{state}', message = 'told so'"
    return f"do $$ begin raise exception using {using}, detail = '{detail}'; end $$"


def test_the_code_of_the_runtime_stands_in_the_detail(empty_pg_url: str) -> None:
    assert failure_of(empty_pg_url, raising("WA001", "20007")) == ApiError(20007, "told so")


@pytest.mark.parametrize(("state", "code"), [("WA003", 20003), ("WF015", 10015)])
def test_without_a_detail_the_state_tells_the_code(
    empty_pg_url: str, state: str, code: int
) -> None:
    assert failure_of(empty_pg_url, raising(state)) == ApiError(code, "told so")


@pytest.mark.parametrize("state", ["40001", "40P01", "55P03"])
def test_what_another_try_may_mend_is_retryable(empty_pg_url: str, state: str) -> None:
    found = failure_of(empty_pg_url, raising(state))
    assert isinstance(found, DatabaseProblem)
    assert (found.kind, found.retryable) == ("server", True)


def test_a_server_that_shuts_down_is_unreachable_and_retryable(empty_pg_url: str) -> None:
    found = failure_of(empty_pg_url, raising("57P01"))
    assert isinstance(found, DatabaseProblem)
    assert (found.kind, found.retryable) == ("unreachable", True)


def test_a_missing_routine_is_a_damaged_runtime(empty_pg_url: str) -> None:
    found = failure_of(empty_pg_url, "select wf.sp_tick()")
    assert isinstance(found, DatabaseProblem)
    assert (found.kind, found.retryable) == ("damaged_runtime", False)


def test_missing_rights_are_said_so(empty_pg_url: str) -> None:
    found = failure_of(empty_pg_url, raising("42501"))
    assert isinstance(found, DatabaseProblem)
    assert found.kind == "not_allowed"


def test_what_nobody_expects_is_left_to_be_raised(empty_pg_url: str) -> None:
    assert failure_of(empty_pg_url, "select 1/0") is None

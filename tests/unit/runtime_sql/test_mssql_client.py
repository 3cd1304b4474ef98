"""What the client makes of the server's answers; the server is a list of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from runtime_sql.failures import DAMAGED, ApiError, DatabaseProblem
from runtime_sql.mssql_client import MssqlClient, Patience
from runtime_sql.mssql_driver import MssqlError

DEADLOCK = MssqlError(1205, "deadlock victim")


class Answers:
    """A connection that gives what it was told to give, and keeps what it was asked."""

    def __init__(self, *answers: list[Any] | MssqlError) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, tuple[object, ...]]] = []

    def rows(self, statement: str, *parameters: object) -> list[Any]:
        self.asked.append((statement, parameters))
        answer = self.answers.pop(0)
        if isinstance(answer, MssqlError):
            raise answer
        return answer

    def close(self) -> None: ...


def client(answers: Answers, pauses: list[float], draws: Sequence[float] = ()) -> MssqlClient:
    left = list(draws)
    return MssqlClient(
        answers, Patience(pause=pauses.append, draw=lambda: left.pop(0) if left else 1.0)
    )


@pytest.mark.parametrize("number", [1205, 1222, 3960, 70009])
def test_what_may_pass_is_tried_again(number: int) -> None:
    answers, pauses = Answers(MssqlError(number, "not now"), []), list[float]()
    assert client(answers, pauses).tick() is None
    assert [statement for statement, _ in answers.asked] == ["exec wf.sp_tick"] * 2
    assert len(pauses) == 1


def test_pauses_grow_and_are_drawn() -> None:
    answers, pauses = Answers(*[DEADLOCK] * 4, []), list[float]()
    client(answers, pauses, [1.0, 1.0, 1.0, 0.0]).tick()
    assert pauses == [0.02, 0.04, 0.08, 0.08]


def test_patience_ends() -> None:
    answers, pauses = Answers(*[DEADLOCK] * 6), list[float]()
    failure = client(answers, pauses).tick()
    assert isinstance(failure, DatabaseProblem)
    assert (failure.kind, failure.retryable, len(pauses)) == ("server", True, 5)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (70003, ApiError(20003, "no")),
        (60001, ApiError(10001, "no")),
        (60018, ApiError(10018, "no")),
        (208, DAMAGED),
        (2812, DAMAGED),
    ],
)
def test_an_answer_of_the_runtime_is_not_repeated(number: int, expected: object) -> None:
    answers = Answers(MssqlError(number, "no"))
    assert client(answers, []).tick() == expected
    assert len(answers.asked) == 1


@pytest.mark.parametrize(
    ("number", "kind", "retryable"),
    [(None, "unreachable", True), (18456, "unreachable", True), (229, "not_allowed", False)],
)
def test_what_is_around_the_runtime(number: int | None, kind: str, retryable: bool) -> None:
    failure = client(Answers(MssqlError(number, "no")), []).tick()
    assert isinstance(failure, DatabaseProblem)
    assert (failure.kind, failure.retryable) == (kind, retryable)


def test_what_nobody_expects_is_raised() -> None:
    with pytest.raises(MssqlError):
        client(Answers(MssqlError(8134, "divide by zero")), []).tick()


def test_creating_and_starting_is_one_transaction() -> None:
    answers = Answers([], [(1, 2, True)], [("RUNNING", 1)], [])
    client(answers, []).create_and_start("a", "{}")
    asked = [statement for statement, _ in answers.asked]
    assert (asked[0], asked[-1]) == ("begin transaction;", "commit transaction;")


def test_a_start_that_fails_takes_the_instance_along() -> None:
    answers = Answers([], [(1, 2, True)], MssqlError(60015, "misfit"), [])
    failure = client(answers, []).create_and_start("a", "{}")
    assert failure == ApiError(10015, "misfit")
    assert answers.asked[-1][0] == "if @@trancount > 0 rollback transaction;"


def test_a_script_that_fails_is_rolled_back_and_its_rest_is_not_run() -> None:
    answers = Answers([], MssqlError(70007, "refused"), [])
    failure = client(answers, []).run_script("begin transaction;\nGO\nselect 1;\nGO\nselect 2;")
    assert failure == ApiError(20007, "refused")
    asked = [statement for statement, _ in answers.asked]
    assert asked[1:] == ["select 1;", "if @@trancount > 0 rollback transaction;"]


def test_times_are_utc() -> None:
    at = datetime(2026, 1, 1, 12)
    row = (1, 2, "a", "x.y", "c", 1, "{}", None, "ACTIVE", "NONE", 7, at, None, "/a")
    claim = client(Answers([row]), []).request_tasks("w", "t", None, 60, 1)
    assert not isinstance(claim, ApiError | DatabaseProblem)
    [task] = claim.tasks
    assert (task.lease_until, task.lease_token) == (at.replace(tzinfo=UTC), 7)


def test_a_claim_without_work_carries_the_command() -> None:
    row = (None,) * 8 + ("DRAINING", "DRAIN") + (None,) * 4
    claim = client(Answers([row]), []).request_tasks("w", "t", None, 60, 1)
    assert not isinstance(claim, ApiError | DatabaseProblem)
    assert (claim.tasks, claim.command) == ((), "DRAIN")


def test_capabilities_go_in_as_json() -> None:
    answers = Answers([])
    client(answers, []).register_worker("w", "token", ["a", "*"], 3)
    [(statement, parameters)] = answers.asked
    assert statement.startswith("exec wf.sp_register_worker @worker_id = %s")
    assert '["a", "*"]' in parameters

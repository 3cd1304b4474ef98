"""Handlers with type hints, and async ones."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from local_runner.engine import LocalWorkflowEngine, RunResult
from local_runner.handlers import Handlers, Outcome, Result, TaskContext
from tests.unit.local_runner.graphs import action, workflow


class Line(BaseModel):
    sku: str
    qty: int


class _Unknown:
    """A class that pydantic knows nothing of."""


def call(function: Any, **input: Any) -> Outcome:
    return Handlers.from_functions({"do": function}).invoke("do", input, TaskContext("w/a", 1, "i"))


def test_a_value_is_made_what_its_hint_says() -> None:
    seen: list[Any] = []

    def do(price: float, lines: list[Line], note: str | None = None) -> None:
        seen.extend([price, lines, note])

    assert call(do, price=Decimal("1.5"), lines=[{"sku": "S", "qty": 2}]).code == 0
    assert seen == [1.5, [Line(sku="S", qty=2)], None]


def test_a_value_that_does_not_fit_its_hint_is_a_failure_with_its_place() -> None:
    def do(lines: list[Line]) -> None:
        raise AssertionError("not called")

    outcome = call(do, lines=[{"sku": "S", "qty": "many"}])
    assert outcome.code == -1
    assert outcome.message == (
        "argument lines[0].qty: input should be a valid integer,"
        " unable to parse string as an integer"
    )


def test_constraints_of_a_hint_are_checked() -> None:
    def do(n: Annotated[int, Field(gt=3)]) -> int:
        return n

    assert call(do, n=4).output == 4
    assert call(do, n=3).message == "argument n: input should be greater than 3"


def test_a_hint_that_pydantic_does_not_know_leaves_the_argument() -> None:
    def do(n: _Unknown, m: int) -> Any:
        return [n, m]

    assert call(do, n=1, m=2).output == [1, 2]


def test_a_hint_that_cannot_be_resolved_leaves_the_argument() -> None:
    def do(n: NotThere) -> Any:  # type: ignore[name-defined]  # noqa: F821
        return n

    assert call(do, n="x").output == "x"


def test_the_context_is_no_argument_of_the_input() -> None:
    def do(task: TaskContext, n: int) -> Any:
        return [task.path, n]

    assert call(do, n=1).output == ["w/a", 1]


def test_a_model_may_be_returned() -> None:
    assert call(lambda: Line(sku="S", qty=1)).output == {"sku": "S", "qty": 1}
    assert call(lambda: Result(2, Line(sku="S", qty=1))) == Outcome(2, {"sku": "S", "qty": 1}, None)


async def double(n: int) -> int:
    await asyncio.sleep(0)
    return 2 * n


async def breaking() -> None:
    raise ValueError("no")


def test_an_async_handler_is_awaited() -> None:
    assert call(double, n=4).output == 8


def test_an_async_handler_that_raises_is_a_failure() -> None:
    outcome = call(breaking)
    assert (outcome.code, outcome.message) == (-1, "ValueError: no")


def test_a_handler_that_is_cancelled_from_inside_is_a_failure() -> None:
    async def do() -> None:
        raise asyncio.CancelledError

    assert call(do).code == -1


@pytest.mark.parametrize("workers", [1, 2])
def test_an_engine_inside_a_running_loop_runs_async_handlers(workers: int) -> None:
    spec = workflow([action("a", template={"n": 4}, sets=[("x", [["out", []]])])])

    async def main() -> Any:
        return LocalWorkflowEngine(spec, {"do": double}, parallel_workers=workers).run({})

    result = asyncio.run(main())
    assert isinstance(result, RunResult)
    assert result.trace["nodes"][1]["output"] == 8

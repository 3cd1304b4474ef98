"""From `.wf` text to the trace: the compiler's graphs mean what the text says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_file
from compiler.spec import GraphSpec
from local_runner.engine import LocalWorkflowEngine, RunResult
from local_runner.handlers import Result

PROGRAM = Path(__file__).with_name("programs") / "orchard.wf"
TREES = [{"name": "old", "branches": [3, 1]}, {"name": "young", "branches": []}]


@pytest.fixture(scope="module")
def orchard() -> GraphSpec:
    compiled = compile_file(PROGRAM)
    assert [found for found in compiled.diagnostics if found.severity == "error"] == []
    return compiled.specs[0]


def handlers(sort: Callable[[int], Any], order: list[str]) -> dict[str, Callable[..., Any]]:
    return {
        "orchard.pick": lambda apples, label: {"apples": apples, "label": label},
        "orchard.sort": lambda round: sort(round),
        "orchard.squeeze": lambda turn: order.append(f"squeeze {turn}"),
        "orchard.rake": lambda: order.append("rake"),
    }


def run(spec: GraphSpec, sort: Callable[[int], Any], **context: Any) -> tuple[RunResult, list[str]]:
    order: list[str] = []
    engine = LocalWorkflowEngine(spec, handlers(sort, order), parallel_workers=1)
    result = engine.run({"trees": TREES, **context})
    assert isinstance(result, RunResult)
    return result, order


def rows(result: RunResult) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in result.trace["nodes"]}


def test_output_collects_nested_loops(orchard: GraphSpec) -> None:
    result, _ = run(orchard, lambda round: {"better": 6})
    assert (result.status, result.output) == (
        "SUCCEEDED",
        {
            "baskets": [{"tree": "old", "picked": [3, 1]}, {"tree": "young", "picked": []}],
            "quality": 12,
            "note": "good after 12",
            "unset": None,
        },
    )


def test_paths_carry_the_iterations(orchard: GraphSpec) -> None:
    result, _ = run(orchard, lambda round: {"better": 6})
    row = rows(result)["orchard/foreach_1[0]/foreach_2[1]/pick"]
    assert row["input"] == {"apples": 1, "label": "old-0.1"}
    assert "orchard/grade[1]/sort" in rows(result)
    assert "orchard/grade[2]" not in rows(result)


def test_scopes_of_iterations_stand_in_the_trace(orchard: GraphSpec) -> None:
    result, _ = run(orchard, lambda round: {"better": 6})
    assert rows(result)["orchard/foreach_1[0]"]["variables"] == {
        "tree": TREES[0],
        "t": 0,
        "picked": [3, 1],
    }


def test_priority_puts_a_later_branch_first(orchard: GraphSpec) -> None:
    _, order = run(orchard, lambda round: {"better": 10}, limit=2)
    assert order == ["rake", "squeeze 0", "squeeze 1"]


def test_switch_goes_by_the_names_of_result_codes(orchard: GraphSpec) -> None:
    result, _ = run(orchard, lambda round: Result(1, {"better": 10}))
    assert result.trace["variables"]["note"] == "poor"


def test_fail_ends_the_instance_with_its_message(orchard: GraphSpec) -> None:
    result, order = run(orchard, lambda round: Result(1, {"better": 10}), season="spring")
    assert result.error is not None
    assert (result.error.code, result.error.message) == (-7, "poor in spring")
    assert (result.trace["error"]["node"], order) == (result.error.node, [])
    assert rows(result)["orchard"]["result_code"] == -7


def test_a_loop_without_progress_passes_its_max(orchard: GraphSpec) -> None:
    result, _ = run(orchard, lambda round: {"better": 0})
    assert result.error is not None
    assert result.error.message == "orchard/grade: while passed its max of 5"


def test_an_input_that_does_not_fit_starts_nothing(orchard: GraphSpec) -> None:
    result, order = run(orchard, lambda round: {"better": 9}, season="winter")
    assert result.error is not None
    assert (result.status, result.error.message) == (
        "CREATED",
        'input season: must be one of "spring", "autumn"',
    )
    assert (result.trace["nodes"], order) == ([], [])


def test_four_workers_leave_the_trace_of_one(orchard: GraphSpec) -> None:
    one, _ = run(orchard, lambda round: {"better": 6})
    engine = LocalWorkflowEngine(
        orchard, handlers(lambda round: {"better": 6}, []), parallel_workers=4
    )
    four = engine.run({"trees": TREES})
    assert isinstance(four, RunResult)
    assert four.trace == one.trace

"""From `.wf` text to the trace: the attributes that take time or bear failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_file
from compiler.spec import GraphSpec
from local_runner.clock import VirtualClock
from local_runner.engine import LocalWorkflowEngine, RunResult
from local_runner.handlers import Result

PROGRAM = Path(__file__).with_name("programs") / "cellar.wf"


@pytest.fixture
def cellar() -> GraphSpec:
    compiled = compile_file(PROGRAM)
    assert [found.message for found in compiled.diagnostics if found.severity == "error"] == []
    return compiled.specs[0]


def run(spec: GraphSpec, **changed: Any) -> tuple[RunResult, int]:
    crushed = iter([Result(-2), "must"])
    handlers = {
        "cellar.crush": lambda kilos: next(crushed),
        "cellar.rinse": lambda where: where,
        "cellar.taste": sum_of,
        "cellar.bottle": lambda line: f"line {line}",
        "cellar.label": lambda: None,
    }
    clock = VirtualClock()
    engine = LocalWorkflowEngine(spec, handlers | changed)
    result = engine.run({"barrels": [3, 4, 0, 0, 6]}, clock=clock)
    assert isinstance(result, RunResult)
    return result, clock.now_ms()


def sum_of(barrels: list[int]) -> Any:
    return sum(barrels) or Result(-1, message="empty")


def rows(result: RunResult) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in result.trace["nodes"]}


def test_the_output_shows_what_was_borne(cellar: GraphSpec) -> None:
    result, _ = run(cellar)
    assert (result.status, result.output) == (
        "SUCCEEDED",
        {
            "tasted": [7, None, 6],
            "note": "-7: 1998 is lost at cellar/press/press.fail_1",
            "first": "line 1",
        },
    )


def test_delay_backoff_and_sleep_are_all_the_time_it_takes(cellar: GraphSpec) -> None:
    _, passed_ms = run(cellar)
    assert passed_ms == 20_000 + 10_000 + 30_000


def test_the_trace_counts_attempts_and_keeps_what_finallys_did(cellar: GraphSpec) -> None:
    found = rows(run(cellar)[0])
    assert found["cellar/press/crush"]["attempts"] == 2
    assert found["cellar/press/rinse"]["output"] == "press"
    assert found["cellar/race/slow"]["status"] == "CANCELLED"
    assert found["cellar/race/slow/stop"]["status"] == "SUCCEEDED"
    assert "cellar/race/slow/late" not in found
    assert [path for path in found if path.startswith("cellar/repeat_1[")] == [
        "cellar/repeat_1[2]",
        "cellar/repeat_1[2]/label",
        "cellar/repeat_1[3]",
        "cellar/repeat_1[3]/label",
    ]


def test_too_many_failures_are_not_borne(cellar: GraphSpec) -> None:
    result, _ = run(cellar, **{"cellar.taste": lambda barrels: Result(-1, message="corked")})
    assert result.error is not None
    assert (result.error.message, result.error.path) == ("corked", "cellar/foreach_1[0]/taste")
    # With keep_going every batch was tasted all the same.
    assert rows(result)["cellar/foreach_1[2]"]["status"] == "FAILED"

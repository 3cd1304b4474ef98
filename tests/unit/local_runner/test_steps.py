"""How much work a node is: counted in calls of functions, which no other load of a machine changes.

The seconds stand in docs/performance.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from benchmarks.runner.ours import compiled, played
from local_runner.engine import LocalWorkflowEngine
from local_runner.graph import load_graph

SHAPES = ["chain", "foreach", "map"]


def calls_of(work: Callable[[], object]) -> int:
    """Returns how many functions of Python, and methods written in C, were called."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def context_of(shape: str, count: int) -> dict[str, Any]:
    return {} if shape == "chain" else {"items": list(range(count))}


def calls_by_node(shape: str, count: int) -> float:
    graph, context = load_graph(compiled(shape, count)), context_of(shape, count)
    nodes = len(played(graph, context).executions)
    return calls_of(lambda: played(graph, context)) / nodes


@pytest.mark.parametrize("shape", SHAPES)
def test_the_state_machine_takes_the_same_work_for_a_node_however_many_there_are(
    shape: str,
) -> None:
    few, many = calls_by_node(shape, 50), calls_by_node(shape, 2_000)
    assert many <= few
    # 34 to 37 now; more than a fifth more would be seen in docs/performance.md.
    assert many < 45


def calls_by_action(shape: str, count: int) -> float:
    engine = LocalWorkflowEngine(compiled(shape, count), {"t.do": lambda x: None})
    context = context_of(shape, count)
    return calls_of(lambda: engine.run(context)) / count


@pytest.mark.parametrize("shape", SHAPES)
def test_a_whole_run_takes_the_same_work_for_an_action_however_many_there_are(shape: str) -> None:
    assert calls_by_action(shape, 2_000) <= calls_by_action(shape, 50)

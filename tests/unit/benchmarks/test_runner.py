"""The local runner's benchmark: what it runs again, when it gives up, and what its table says."""

from __future__ import annotations

import sys

import pytest

from benchmarks.runner.__main__ import _is_wanted, _line, _run
from benchmarks.runner.ours import compiled, played
from local_runner.graph import load_graph

GOOD = {
    "count": 1000,
    "wall_seconds": 0.5,
    "cpu_seconds": 0.04,
    "peak_bytes": 50e6,
    "nodes": 2000,
    "graph_cpu_seconds": 0.0,
    "engine_cpu_seconds": 0.01,
}


@pytest.mark.parametrize(("shape", "nodes"), [("chain", 5), ("foreach", 10), ("map", 10)])
def test_a_shape_runs_an_action_for_each_count(shape: str, nodes: int) -> None:
    context = {} if shape == "chain" else {"items": list(range(5))}
    machine = played(load_graph(compiled(shape, 5)), context)
    actions = [e for e in machine.executions.values() if e.node.type == "ACTION"]
    assert (machine.status, len(actions)) == ("SUCCEEDED", 5)
    # The workflow itself, and the loop.
    assert len(machine.executions) - nodes == (1 if shape == "chain" else 2)


def test_the_table_has_the_engine_apart_from_the_whole() -> None:
    line = _line(("foreach", 1000, "wf"), [GOOD, GOOD])
    assert line == "| foreach | 1,000 | wf | 5.0 | 20.0 | 40.0 | 40.0–40.0 | 0.50 | 50 |"


def test_a_run_past_its_limit_is_ended_and_not_run_again() -> None:
    late = _run([sys.executable, "-c", "while True: pass"], 0.5)
    assert late == {"failed": "more than 1 s"}
    assert not _is_wanted(("map", 1000, "moto"), [late])


def test_the_largest_size_has_one_round() -> None:
    assert _is_wanted(("foreach", 1_000_000, "wf"), [])
    assert not _is_wanted(("foreach", 1_000_000, "wf"), [GOOD])
    assert _is_wanted(("foreach", 100_000, "wf"), [GOOD])

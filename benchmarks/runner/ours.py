"""Runs a shape on the local runner and prints what it took, as JSON: `ours.py SHAPE COUNT`.

Three things are measured, one after the other:

- `cpu_seconds`: everything that `LocalWorkflowEngine.run` does from the call to the result, with
  the graph made ready, the driver, the calls of the handlers, the timeline and the trace;
- `graph_cpu_seconds`: making the graph ready alone;
- `engine_cpu_seconds`: the state machine alone, in other instances over a graph that is ready.
  Results go in and commands come out, in a loop that does nothing else. A small shape is played
  many times, as the clock of the processor may move in steps; this is the time of one.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from pathlib import Path

from benchmarks.runner.taken import print_sample, taken_by
from compiler.pipeline import compile_text
from compiler.spec import GraphSpec
from local_runner.commands import RunAction
from local_runner.engine import LocalWorkflowEngine, RunResult, patient_collector
from local_runner.graph import Graph, load_graph
from local_runner.machine import Machine
from local_runner.values import JsonValue

# Actions that take long enough to be measured.
_ENOUGH = 20_000
CATALOG = "actions:\n  - name: t.do\n    capability: t\n"


def text(shape: str, count: int) -> str:
    """Returns a workflow of `count` actions."""
    if shape == "chain":
        body = "\n".join(f"  action a{number} = t.do(x: {number})" for number in range(count))
        return f"workflow w {{\n{body}\n}}\n"
    loop = "parallel " if shape == "map" else ""
    return (
        "workflow w {\n  input { items : list<any> }\n"
        f"  foreach x in var.items {loop}{{ action a = t.do(x: var.x) }}\n}}\n"
    )


def compiled(shape: str, count: int) -> GraphSpec:
    with tempfile.TemporaryDirectory() as folder:
        catalog = Path(folder) / "w.actions.yaml"
        catalog.write_text(CATALOG, encoding="utf-8")
        (spec,) = compile_text(text(shape, count), "w.wf", [catalog]).specs
    return spec


def played(graph: Graph, context: dict[str, JsonValue]) -> Machine:
    """Answers every action of one instance at once, in the order in which they are offered."""
    machine = Machine(graph, "bench", context)
    commands = deque(machine.start())
    while commands:
        command = commands.popleft()
        if isinstance(command, RunAction):
            machine.begin(command.execution_id, 0)
            commands.extend(machine.complete(command.execution_id, 0, None, None, 0))
    return machine


def main(shape: str, count: int) -> None:
    spec = compiled(shape, count)
    engine = LocalWorkflowEngine(spec, {"t.do": lambda x: None})
    context: dict[str, JsonValue] = {} if shape == "chain" else {"items": list(range(count))}
    # Not kept: the peak of memory shall be that of one run.
    sample = taken_by(lambda: _succeeded(engine.run(context)), count)
    with patient_collector():
        began = time.process_time()
        graph = load_graph(spec)
        ready = time.process_time()
        repeats = max(1, _ENOUGH // count)
        for _ in range(repeats):
            machine = played(graph, context)
        ended = time.process_time()
    assert machine.status == "SUCCEEDED"
    sample |= {
        "nodes": len(machine.executions),
        "graph_cpu_seconds": ready - began,
        "engine_cpu_seconds": (ended - ready) / repeats,
    }
    print_sample(sample)


def _succeeded(result: object) -> None:
    assert isinstance(result, RunResult)
    assert result.status == "SUCCEEDED"


if __name__ == "__main__":
    import sys

    main(sys.argv[1], int(sys.argv[2]))

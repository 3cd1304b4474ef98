"""Runs a shape on the local runner and prints what it took, as JSON: `ours.py SHAPE COUNT`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.runner.taken import report
from compiler.pipeline import compile_text
from local_runner.engine import LocalWorkflowEngine, RunResult

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


def main(shape: str, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        catalog = Path(folder) / "w.actions.yaml"
        catalog.write_text(CATALOG, encoding="utf-8")
        (spec,) = compile_text(text(shape, count), "w.wf", [catalog]).specs
    engine = LocalWorkflowEngine(spec, {"t.do": lambda x: None})
    context = {} if shape == "chain" else {"items": list(range(count))}

    def run() -> None:
        result = engine.run(context)
        assert isinstance(result, RunResult)
        assert result.status == "SUCCEEDED"

    report(run, count)


if __name__ == "__main__":
    import sys

    main(sys.argv[1], int(sys.argv[2]))

"""Runs a shape on SpiffWorkflow: `spiff.py SHAPE COUNT`. Its tasks do nothing."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from SpiffWorkflow.specs.MultiInstance import MultiInstance  # type: ignore[import-not-found]
from SpiffWorkflow.specs.Simple import Simple  # type: ignore[import-not-found]
from SpiffWorkflow.specs.WorkflowSpec import WorkflowSpec  # type: ignore[import-not-found]
from SpiffWorkflow.workflow import Workflow  # type: ignore[import-not-found]
from taken import print_sample, taken_by  # type: ignore[import-not-found]


def main(shape: str, count: int) -> None:
    spec = WorkflowSpec(name="w", addstart=True)
    before = spec.start
    if shape == "chain":
        for number in range(count):
            task = Simple(spec, f"a{number}")
            before.connect(task)
            before = task
    else:
        many = MultiInstance(spec, "each", times=count)
        before.connect(many)
        many.connect(Simple(spec, "a"))

    def run() -> None:
        workflow = Workflow(spec)
        workflow.run_all()
        assert workflow.is_completed()

    # Deep chains recurse in it.
    sys.setrecursionlimit(1_000_000)
    print_sample(taken_by(run, count))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

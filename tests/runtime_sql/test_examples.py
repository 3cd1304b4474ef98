"""Every example that needs no event leaves equal traces in PostgreSQL and in the local runner.

The database is driven task by task with the example's own handlers; the local runner runs them in
its thread pool. Both use the same files below one work folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compiler import json_values
from compiler.pipeline import compile_file
from local_runner.engine import LocalWorkflowEngine, RunResult
from local_runner.handlers import Handlers, TaskContext, load_handlers
from tests.runtime_sql import drive

EXAMPLES = Path(__file__).parents[2] / "examples"
DATABASE_ONLY = {"order_delivery"}
INPUTS = sorted(
    path for path in EXAMPLES.glob("*/inputs/*.json") if path.parts[-3] not in DATABASE_ONLY
)


def test_there_are_examples() -> None:
    assert {path.parts[-3] for path in INPUTS} == {"order_fulfilment", "sample_preparation"}


@pytest.mark.parametrize("given", INPUTS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
@pytest.mark.parametrize("parallel_workers", [1, 4])
def test_traces_are_equal(
    given: Path,
    parallel_workers: int,
    pg_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WFSQL_WORK", str(tmp_path))
    folder = given.parents[1]
    spec = compile_file(folder / f"{folder.name}.wf").specs[0]
    handlers = load_handlers(str(folder / "handlers.py"))
    assert isinstance(handlers, Handlers)
    context = json_values.loads(given.read_text(encoding="utf-8"))

    with drive.connect(pg_url) as connection:
        drive.deploy(connection, spec)
        instance_id = drive.start(connection, spec.name, context)
        while (task := drive.claim(connection)) is not None:
            drive.submit(connection, task, *invoke(handlers, task))
        in_pg = drive.trace(connection, instance_id)
    engine = LocalWorkflowEngine(spec, handlers, parallel_workers=parallel_workers)
    local = engine.run(context, instance_id=str(instance_id))

    assert isinstance(local, RunResult)
    assert drive.readable(in_pg) == drive.readable(local.trace)


def invoke(handlers: Handlers, task: dict[str, Any]) -> tuple[int, Any, str | None]:
    context = TaskContext(
        path=task["path"],
        attempt=task["attempt_no"],
        instance_id=str(task["workflow_instance_id"]),
    )
    result = handlers.invoke(task["action_name"], task["input_json"], context)
    return result.code, result.output, result.message

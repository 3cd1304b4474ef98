"""Runs Python handlers for claimed tasks.

The input comes as JSON text and is read with exact numbers; the output goes back the same way.
"""

from __future__ import annotations

from threading import Event

from compiler import json_values
from local_runner.handlers import Handlers, TaskContext
from runtime_sql.connection import Task
from wfsql.worker.process import Invoke, Outcome


def invoke_with(handlers: Handlers) -> Invoke:
    """Returns the function that a `Worker` calls for each task."""

    def invoke(task: Task, cancelled: Event) -> Outcome | None:
        if handlers.missing((task.action,)):
            return None
        context = TaskContext(
            task.path, task.attempt, str(task.instance_id), cancelled, task.trace_parent
        )
        outcome = handlers.invoke(task.action, json_values.read_stored(task.input_json), context)
        output = None if outcome.output is None else json_values.dumps(outcome.output)
        return Outcome(outcome.code, output, outcome.message)

    return invoke

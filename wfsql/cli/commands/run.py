"""`wf run`: runs a workflow in this process, without a database."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from compiler import json_values
from wfsql.cli.context import ContextFileOption, ContextOption, read_context
from wfsql.cli.database import JsonOption
from wfsql.cli.handlers import HandlersOption, load
from wfsql.cli.main import CommandError
from wfsql.cli.output import say, write
from wfsql.cli.sources import CatalogOption, WorkflowOption, compile_specs, pick_workflow

if TYPE_CHECKING:
    from local_runner.driver import Event
    from local_runner.engine import Refusal, RunResult


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", show_default=False)],
    handlers: HandlersOption = None,
    context: ContextOption = None,
    context_file: ContextFileOption = None,
    catalog: CatalogOption = None,
    workflow: WorkflowOption = None,
    parallel_workers: Annotated[
        int, typer.Option(min=1, max=1000, help="How many handlers may run at a time.")
    ] = 1,
    trace: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the trace document there.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    json: JsonOption = False,
) -> int:
    """Run a workflow in this process, with Python handlers, and write its output.

    It does what the database would do and leaves the same trace. The exit code is 1 when the
    workflow fails.

    Example:  wf run order.wf --handlers handlers.py --context '{"order_id": "A1"}'
    """
    from local_runner.engine import LocalWorkflowEngine, RunResult

    start = read_context(context, context_file)
    spec = pick_workflow(compile_specs(file, catalog), workflow, file)
    engine = LocalWorkflowEngine(
        spec,
        load(handlers),
        parallel_workers=parallel_workers,
        on_event=None if quiet or json else _show_event,
    )
    result = engine.run(start)
    if not isinstance(result, RunResult):
        raise _refused(result)
    if trace is not None:
        _write_trace(trace, json_values.dumps(result.trace, indent=2) + "\n")
    _report(spec.name, result, json)
    if result.status == "CANCELLED":
        return 130
    return 0 if result.status == "SUCCEEDED" else 1


def _refused(refusal: Refusal) -> CommandError:
    from local_runner.engine import MissingHandlers, WaitEventUnsupported

    hint = None
    if isinstance(refusal, MissingHandlers):
        hint = "name a module with @action functions for them with --handlers"
    elif isinstance(refusal, WaitEventUnsupported):
        hint = 'use "wf deploy" and "wf start"'
    return CommandError(refusal.message, hint)


def _show_event(event: Event) -> None:
    from local_runner.driver import ActionFinished

    if isinstance(event, ActionFinished):
        note = f": {event.message}" if event.message else ""
        say(f"  {event.path}  {event.action} -> {event.result_code}{note}")


def _report(name: str, result: RunResult, as_json: bool) -> None:
    error = result.trace["error"]
    if as_json:
        report = {"workflow": name, "status": result.status, "output": result.output}
        write(json_values.dumps(report | {"error": error}))
        return
    say(f"{name}: {result.status}")
    if error is not None:
        code = error["engine_code"] if error["code"] is None else error["code"]
        say(f"error {code}: {error['message']}")
    if result.output is not None:
        write(json_values.dumps(result.output, indent=2))


def _write_trace(name: str, text: str) -> None:
    from wfsql.cli.files import save

    if name == "-":
        sys.stdout.write(text)
    else:
        save(name, text)

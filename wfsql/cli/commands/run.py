"""`wf run`: runs a workflow in this process, without a database."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compiler import json_values
from wfsql.cli.context import (
    ContextFileOption,
    ContextOption,
    parse_json,
    read_context,
    read_text,
    shown,
)
from wfsql.cli.database import JsonOption
from wfsql.cli.files import check_writable
from wfsql.cli.handlers import HandlersOption, load
from wfsql.cli.inputs import unknown_keys
from wfsql.cli.main import EXIT_INTERRUPTED, CommandError, wrong_use
from wfsql.cli.output import one_line, safe_json, say, write, write_json
from wfsql.cli.project import ProjectRootOption, find_project_root
from wfsql.cli.sources import (
    CatalogOption,
    WorkflowOption,
    compile_specs,
    files_read,
    pick_workflow,
)

if TYPE_CHECKING:
    from compiler.spec import GraphSpec
    from local_runner.dry_run import Scripts
    from local_runner.engine import DryRunResult, Refusal, RunResult


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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Call no handler; print each input that is built.")
    ] = False,
    results: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="For --dry-run: JSON with the results to assume, by node key or path; - is stdin.",
        ),
    ] = None,
    force_rerun: Annotated[
        bool, typer.Option("--force-rerun", help="Set forceRerun in the context.")
    ] = False,
    journal: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Keep a journal there; a run that was killed goes on from it."
        ),
    ] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the trace document there.")
    ] = None,
    timeline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write who was busy when there, as SVG.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    project_root: ProjectRootOption = None,
    json: JsonOption = False,
) -> int:
    """Run a workflow in this process, with Python handlers, and write its output.

    It does what the database would do and leaves the same trace. The exit code is 1 when the
    workflow fails.

    Example:  wf run order.wf --handlers handlers.py --context '{"order_id": "A1"}'

    Example:  wf run order.wf --dry-run --context-file order.json --results results.json
    """
    start = read_context(context, context_file)
    if force_rerun:
        start = start | {"forceRerun": True}
    reads = files_read(file, catalog, context_file, *(handlers or ()))
    for written in (trace, timeline):
        if written not in (None, "-"):
            check_writable(str(written), inputs=reads)
    spec = pick_workflow(compile_specs(file, catalog), workflow, file)
    for line in unknown_keys(start, [row.name for row in spec.inputs]):
        say(f"note: {line}")
    if dry_run:
        _refuse_with_dry_run({"--journal": journal, "--timeline": timeline})
        return _dry_run(spec, start, results, trace, json)
    if results is not None:
        raise wrong_use("--results needs --dry-run", "handlers give the results of a real run")
    result = _run(
        spec,
        start,
        handlers,
        parallel_workers,
        journal,
        _root_of(file, project_root),
        quiet or json,
    )
    _report(spec.name, result, json)
    if trace is not None:
        _save(trace, json_values.dumps(result.trace, indent=2) + "\n", reads)
    if timeline is not None:
        from local_runner.timeline_svg import timeline_svg

        _save(timeline, timeline_svg(result.timeline), reads)
    if result.status == "CANCELLED":
        return EXIT_INTERRUPTED
    return 0 if result.status == "SUCCEEDED" else 1


def _run(
    spec: GraphSpec,
    context: dict[str, Any],
    handlers: list[str] | None,
    parallel_workers: int,
    journal: str | None,
    root: Path,
    is_silent: bool,
) -> RunResult:
    from local_runner.bundles import FileBundles
    from local_runner.engine import LocalWorkflowEngine, RunResult
    from wfsql.cli.run_progress import progress, show_summary

    loaded = load(handlers)
    with nullcontext() if is_silent else progress() as listener:
        engine = LocalWorkflowEngine(
            spec, loaded, parallel_workers=parallel_workers, on_event=listener
        )
        bundles = FileBundles(root, lambda problem: say(f"warning: {problem}"))
        folder = None if journal is None else Path(journal)
        try:
            # What a handler prints must not stand in the output document.
            with redirect_stdout(sys.stderr):
                result = engine.run(context, journal=folder, bundles=bundles)
        except KeyboardInterrupt:
            # The second one: handlers had their chance. Typer would end this with code 0.
            raise CommandError(
                "interrupted while handlers were running", None, EXIT_INTERRUPTED
            ) from None
        except OSError as error:
            if journal is None:
                raise
            raise CommandError(
                f"{journal}: the journal cannot be written: {error.strerror or error}".lower(),
                "make room and run the same command again: it goes on from what is written",
            ) from error
    if not isinstance(result, RunResult):
        raise _refused(result)
    if not is_silent:
        show_summary(result)
    return result


def _root_of(file: str, given: str | None) -> Path:
    return find_project_root(Path() if file == "-" else Path(file).parent, given)


def _refused(refusal: Refusal) -> CommandError:
    from local_runner.engine import MissingHandlers, WaitEventUnsupported

    hint = None
    if isinstance(refusal, MissingHandlers):
        hint = "name a module with @action functions for them with --handlers"
    elif isinstance(refusal, WaitEventUnsupported):
        hint = 'use "wf deploy" and "wf start"'
    return CommandError(refusal.message, hint)


def _report(name: str, result: RunResult | DryRunResult, as_json: bool) -> None:
    error = result.trace["error"]
    if as_json:
        report = {"workflow": name, "status": result.status, "output": result.output}
        write_json(report | {"error": error})
        return
    say(f"{name}: {result.status}")
    if error is not None:
        code = error["engine_code"] if error["code"] is None else error["code"]
        say(f"error {code}: {error['message']}")
        # The engine's own messages begin with the path.
        if error["path"] and code is not None and code < 0:
            say(f"  at {error['path']}")
    if result.output is not None:
        write_json(result.output, indent=2)


def _save(name: str, text: str, reads: Iterable[Path] = ()) -> None:
    from wfsql.cli.files import save

    if name == "-":
        write(safe_json(text))
    else:
        save(name, text, inputs=reads)


# Dry run ----------------------------------------------------------------------------------------


def _refuse_with_dry_run(given: dict[str, str | None]) -> None:
    for option, value in given.items():
        if value is not None:
            raise wrong_use(f"--dry-run and {option} exclude each other", "a dry run does no work")


def _dry_run(
    spec: GraphSpec,
    context: dict[str, Any],
    results: str | None,
    trace: str | None,
    as_json: bool,
) -> int:
    from local_runner.engine import DryRunResult, LocalWorkflowEngine

    result = LocalWorkflowEngine(spec, {}).dry_run(context, _scripts(spec, results))
    if not isinstance(result, DryRunResult):
        raise _refused(result)
    if trace is not None:
        _save(trace, json_values.dumps(result.trace, indent=2) + "\n")
    if as_json:
        write_json(_dry_document(spec.name, result))
    else:
        for step in result.steps:
            again = f"  attempt {step.attempt}" if step.attempt > 1 else ""
            write(one_line(f"{step.path}  {step.action}{again}"))
            write("  " + json_values.dumps(step.input, indent=2).replace("\n", "\n  "))
        _report(spec.name, result, False)
    return 0 if result.status == "SUCCEEDED" else 1


def _dry_document(name: str, result: DryRunResult) -> dict[str, Any]:
    return {
        "workflow": name,
        "status": result.status,
        "output": result.output,
        "error": result.trace["error"],
        "steps": [
            {
                "path": step.path,
                "action": step.action,
                "attempt": step.attempt,
                "input": step.input,
                "assumed": {"code": step.code, "output": step.output},
            }
            for step in result.steps
        ],
    }


def _scripts(spec: GraphSpec, file: str | None) -> Scripts | None:
    if file is None:
        return None
    from difflib import get_close_matches

    from local_runner.dry_run import read_scripts

    scripts = read_scripts(parse_json(read_text(file), shown(file)))
    if isinstance(scripts, str):
        raise wrong_use(
            f"{shown(file)}: {scripts}", 'such as {"reserve": {"code": 0, "output": {}}}'
        )
    keys = [node.key for node in spec.nodes if node.type == "ACTION"]
    for name in scripts.by_name:
        key = name.rpartition("/")[2]
        if key not in keys:
            close = get_close_matches(key, keys, n=1)
            hint = f"did you mean {close[0]}?" if close else "name the key of an action"
            raise wrong_use(f"{shown(file)}: {spec.name} has no action {name}", hint)
    return scripts

"""`wf test`: runs the cases of `*.wftest.yaml` files on an engine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compiler import json_values
from wfsql.cli.context import ContextFileOption, ContextOption, read_context
from wfsql.cli.files import save
from wfsql.cli.findings import show_diagnostics
from wfsql.cli.handlers import HandlersOption, load
from wfsql.cli.main import CommandError, wrong_use
from wfsql.cli.output import say, write, write_json
from wfsql.cli.sources import CatalogOption, WorkflowOption, compile_specs, pick_workflow

if TYPE_CHECKING:
    from wfsql.testing.cases import CaseFile, Schedule
    from wfsql.testing.engines import Engine
    from wfsql.testing.runner import CaseResult


class EngineName(StrEnum):
    local = "local"
    pg = "pg"
    mssql = "mssql"


def command(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH...", help="Test files and folders.", show_default=False),
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="Where the cases run.")] = EngineName.local,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="With --engine pg: a server, where a scratch database is made and dropped; without"
            " it an embedded one.",
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(metavar="ORDER", help='Another order of results: reverse, or "seed N".'),
    ] = None,
    only: Annotated[
        str | None, typer.Option("-k", metavar="TEXT", help="Only cases with this in their name.")
    ] = None,
    strict: Annotated[bool, typer.Option(help="Warnings, as of unused scripts, fail.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Name every case.")] = False,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="Say which edges no case took.")
    ] = False,
    junit: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a JUnit report there.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")] = False,
    record: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Run PATH, a workflow, and write a test file of it."),
    ] = None,
    handlers: HandlersOption = None,
    context: ContextOption = None,
    context_file: ContextFileOption = None,
    catalog: CatalogOption = None,
    workflow: WorkflowOption = None,
) -> int:
    """Run the cases of *.wftest.yaml files, with scripted results of the actions.

    The last line is "N passed, N failed"; the exit code is 1 when a case failed or a file is wrong.
    --record takes the options of "wf run": --handlers, --context, --context-file, --catalog and
    --workflow.

    Example:  wf test flows/ --engine pg --coverage

    Example:  wf test order.wf --record order.wftest.yaml --handlers order.py
    """
    given = paths or ["."]
    if record is not None:
        start = read_context(context, context_file)
        return _record(record, given, handlers, start, catalog, workflow)
    files, has_broken = _read(given)
    opened = _open_engine(engine, url)
    try:
        results = _run(opened, files, _schedule(order), only, strict, quiet=json, verbose=verbose)
    finally:
        opened.close()
    _report(results, coverage, junit, json)
    return 1 if has_broken or any(result.verdict == "failed" for result in results) else 0


def _read(paths: list[str]) -> tuple[list[CaseFile], bool]:
    """Reads every test file; what is wrong with one is shown and spoils none of the others."""
    from wfsql.testing.reader import read_cases
    from wfsql.testing.runner import find_files

    for path in paths:
        if not Path(path).exists():
            raise wrong_use(f"{path}: there is no such file or folder", "check the path")
    found = find_files([Path(path) for path in paths])
    if not found:
        raise wrong_use(f"no test files in {', '.join(paths)}", "their names end in .wftest.yaml")
    files: list[CaseFile] = []
    for file in found:
        result = read_cases(file)
        show_diagnostics(result.diagnostics)
        if result.file is not None:
            files.append(result.file)
    return files, len(files) < len(found)


def _schedule(text: str | None) -> Schedule | None:
    from wfsql.testing.reader import parse_schedule

    if text is None:
        return None
    schedule = parse_schedule(text)
    if schedule is None:
        raise wrong_use(f'--order "{text}" is not known', 'use in_order, reverse or "seed N"')
    return schedule


def _open_engine(name: EngineName, url: str | None) -> Engine:
    from wfsql.testing.engines import EngineProblem

    if name is EngineName.local:
        from wfsql.testing.local import LocalEngine

        if url is not None:
            raise wrong_use("--url goes with --engine pg", "add --engine pg, or leave --url out")
        return LocalEngine()
    try:
        if name is EngineName.mssql:
            from wfsql.testing.mssql import open_mssql

            return open_mssql(url)
        from wfsql.testing.postgres import ScratchPostgres

        return ScratchPostgres(url)
    except EngineProblem as problem:
        raise CommandError(problem.message, problem.hint) from problem


def _run(
    engine: Engine,
    files: list[CaseFile],
    schedule: Schedule | None,
    only: str | None,
    strict: bool,
    *,
    quiet: bool,
    verbose: bool,
) -> list[CaseResult]:
    from wfsql.testing.report import text_of
    from wfsql.testing.runner import Runner
    from wfsql.testing.workflows import Workflows

    runner = Runner(engine, Workflows(), schedule, strict)
    results: list[CaseResult] = []
    for file in files:
        for result in runner.run_file(file, only):
            results.append(result)
            text = text_of(result)
            if verbose and not text:
                text = f"{result.verdict.upper()} {file.source.name}: {result.case.name}\n"
            if text and not quiet:
                write(text)
    return results


def _report(results: list[CaseResult], coverage: bool, junit: str | None, as_json: bool) -> None:
    from wfsql.testing.coverage import measure
    from wfsql.testing.report import coverage_text, json_of, junit_of, summary

    measured = measure(results) if coverage else None
    if junit is not None:
        save(junit, junit_of(results))
    if as_json:
        write_json(json_of(results, measured), indent=2)
        return
    if measured:
        write(coverage_text(measured))
    write(summary(results))


def _record(
    target: str,
    paths: list[str],
    handlers: list[str] | None,
    context: dict[str, json_values.JsonValue],
    catalog: list[str] | None,
    workflow: str | None,
) -> int:
    """Writes a test file from a run; an existing file is never touched."""
    from wfsql.testing.record import record

    if len(paths) != 1 or not paths[0].endswith(".wf"):
        raise wrong_use("--record takes one workflow file", "such as wf test order.wf --record …")
    if target != "-" and Path(target).exists():
        raise wrong_use(f"{target} is there already", "name another file")
    specs = compile_specs(paths[0], catalog)
    spec = pick_workflow(specs, workflow, paths[0])
    shown = _relative(paths[0], target)
    if len(specs) > 1:
        shown += f"#{spec.name}"
    text = record(spec, load(handlers), context, "recorded", shown)
    if not isinstance(text, str):
        raise CommandError(text.message)
    if target == "-":
        write(text)
    else:
        save(target, text)
        say(f"{target}: one case")
    return 0


def _relative(workflow: str, target: str) -> str:
    """Returns the workflow's path as the test file has to name it."""
    import os

    folder = Path(target).parent if target != "-" else Path()
    return Path(os.path.relpath(workflow, folder)).as_posix()

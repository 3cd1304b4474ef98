"""`wf compile`: writes the SQL script or the GraphSpec of a workflow."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wfsql.cli.files import save
from wfsql.cli.garbage import uncollected
from wfsql.cli.main import CommandError, wrong_use
from wfsql.cli.output import one_line, say, write
from wfsql.cli.sources import (
    CatalogOption,
    WorkflowOption,
    compile_specs,
    deploy_script,
    files_read,
    pick_workflow,
)

if TYPE_CHECKING:
    from compiler.spec import GraphSpec


class Target(StrEnum):
    pg = "pg"
    mssql = "mssql"
    spec = "spec"


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", show_default=False)],
    dialect: Annotated[Target, typer.Option("--dialect", help="What to write.")] = Target.pg,
    catalog: CatalogOption = None,
    workflow: WorkflowOption = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to this file instead of stdout."
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; exit with 1 when FILE's output is another."),
    ] = False,
) -> int:
    """Compile a workflow to a script for psql (pg) or sqlcmd (mssql), or to its graph as JSON.

    The same file gives the same bytes on every machine, so that --check can tell whether a script
    that is kept beside its source is current.

    Example:  wf compile order.wf --dialect pg -o order.sql

    Example:  wf compile order.wf --dialect pg -o order.sql --check
    """
    if check and output in (None, "-"):
        raise wrong_use("--check compares with a file", "name it with --output")
    with uncollected():
        spec = pick_workflow(compile_specs(file, catalog), workflow, file)
        text = _text(spec, dialect)
    if check:
        assert output is not None
        return _compare(output, text)
    if output is None or output == "-":
        write(text)
    else:
        save(output, text, inputs=files_read(file, catalog))
    return 0


def _text(spec: GraphSpec, target: Target) -> str:
    if target is Target.spec:
        from compiler.spec import dump_spec

        return dump_spec(spec)
    return deploy_script([spec], "pg" if target is Target.pg else "mssql")


def _compare(name: str, text: str) -> int:
    """Shows how a file differs from what it should be; 0 when it does not."""
    from difflib import unified_diff

    try:
        kept = Path(name).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise CommandError(f"{name}: there is no such file", "write it without --check") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise CommandError(f"{name}: cannot be read: {reason.lower()}") from error
    if kept == text:
        return 0
    old, new = kept.splitlines(keepends=True), text.splitlines(keepends=True)
    for line in unified_diff(old, new, f"{name} (on disk)", f"{name} (from source)"):
        write(one_line(line.removesuffix("\n")))
    say(f"{name}: not what the source gives")
    return 1

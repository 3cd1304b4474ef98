"""`wf compile`: writes the SQL script or the GraphSpec of a workflow."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from wfsql.cli.files import save
from wfsql.cli.output import write
from wfsql.cli.sources import (
    CatalogOption,
    WorkflowOption,
    compile_specs,
    deploy_script,
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
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Not to stdout.")
    ] = None,
) -> int:
    """Compile a workflow to a script for psql (pg) or sqlcmd (mssql), or to its graph as JSON.

    The same file gives the same bytes on every machine.

    Example:  wf compile order.wf --dialect pg -o order.sql
    """
    spec = pick_workflow(compile_specs(file, catalog), workflow, file)
    text = _text(spec, dialect)
    if output is None or output == "-":
        write(text)
    else:
        save(output, text)
    return 0


def _text(spec: GraphSpec, target: Target) -> str:
    if target is Target.spec:
        from compiler.spec import dump_spec

        return dump_spec(spec)
    return deploy_script(spec, "pg" if target is Target.pg else "mssql")

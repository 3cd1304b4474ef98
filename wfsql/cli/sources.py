"""What the authors' commands share: compiling files and showing what is wrong with them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from wfsql.cli.findings import count_text, show_briefly
from wfsql.cli.main import CommandError, wrong_use

if TYPE_CHECKING:
    from compiler.spec import GraphSpec

CatalogOption = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog",
        metavar="FILE",
        help="An action catalog; without it every *.actions.yaml beside the file.",
    ),
]
WorkflowOption = Annotated[
    str | None,
    typer.Option(
        "--workflow", metavar="NAME", help="The workflow to take, when the file has several."
    ),
]


def compile_specs(file: str, catalogs: list[str] | None = None) -> tuple[GraphSpec, ...]:
    """Compiles a file, shows its findings, and ends the command when there is an error."""
    from compiler.pipeline import compile_file, compile_text
    from dsl.diagnostics import has_errors

    if file == "-":
        result = compile_text(sys.stdin.buffer.read(), "<stdin>", catalogs or ())
    else:
        result = compile_file(file, catalogs)
    show_briefly(result.diagnostics, file)
    if has_errors(result.diagnostics):
        raise CommandError(f"{file}: {count_text(result.diagnostics)}")
    return result.specs


def files_read(file: str, catalogs: list[str] | None = None, *others: str | None) -> list[Path]:
    """Returns what a command reads, so that its output does not replace any of it.

    Args:
      others: further files, such as that of the context; None and `-` are none.
    """
    from compiler.catalog import discover_catalogs

    found = [Path(name) for name in (file, *(catalogs or ()), *others) if name and name != "-"]
    return found if catalogs or file == "-" else [*found, *discover_catalogs(Path(file))]


def pick_workflow(specs: Sequence[GraphSpec], name: str | None, file: str) -> GraphSpec:
    """Returns the workflow of that name, or the only one."""
    names = ", ".join(spec.name for spec in specs)
    if name is None:
        if len(specs) == 1:
            return specs[0]
        raise wrong_use(f"{file} has several workflows", f"give --workflow with one of: {names}")
    for spec in specs:
        if spec.name == name:
            return spec
    raise wrong_use(f'{file} has no workflow "{name}"', f"it has: {names}")


def deploy_script(
    specs: Sequence[GraphSpec],
    dialect: Literal["pg", "mssql"] = "pg",
    *,
    activate: bool = True,
    update_actions: bool = False,
) -> str:
    """Returns the script that puts workflows into a database: all or none."""
    if dialect == "pg":
        from emit_pg.emitter import emit_all as emit_pg

        return emit_pg(specs, activate=activate, update_actions=update_actions)
    from emit_mssql.emitter import emit_all as emit_mssql

    return emit_mssql(specs, activate=activate, update_actions=update_actions)

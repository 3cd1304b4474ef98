"""`wf schema`: writes the JSON Schema of what a workflow takes, or of what it gives."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wfsql.cli.arguments import Parser
from wfsql.cli.findings import count_text, show_diagnostics
from wfsql.cli.main import CommandError, wrong_use
from wfsql.cli.output import write_json

if TYPE_CHECKING:
    from compiler.model import Model


def run(arguments: Sequence[str]) -> int:
    """Writes one schema to stdout; a file with an error has none."""
    options = _parser().parse_args(arguments)
    model = _picked(_checked(options.file, options.catalog), options.workflow, options.file)
    from compiler.json_schema import input_schema, output_schema

    write_json((output_schema if options.of == "output" else input_schema)(model), indent=2)
    return 0


def _parser() -> Parser:
    parser = Parser(
        "schema",
        "FILE",
        "Write the JSON Schema 2020-12 of a workflow's inputs, for tools that make or\n"
        "check a start context.",
        "wf schema order.wf\n          wf schema order.wf --of output",
    )
    parser.add_argument("file", metavar="FILE", help="A workflow file; - is stdin.")
    parser.add_argument(
        "--of",
        choices=("input", "output"),
        default="input",
        help="Of the start context (the default), or of the output of an instance.",
    )
    parser.add_argument("--workflow", metavar="NAME", help="One of several in the file.")
    parser.add_argument(
        "--catalog",
        metavar="FILE",
        action="append",
        help="An action catalog, may be repeated; without it every *.actions.yaml beside the file.",
    )
    return parser


def _checked(file: str, catalogs: list[str] | None) -> tuple[Model, ...]:
    from compiler.pipeline import check_file, check_text
    from dsl.diagnostics import has_errors

    if file == "-":
        result = check_text(sys.stdin.buffer.read(), "<stdin>", catalogs or ())
    else:
        result = check_file(file, catalogs)
    show_diagnostics(result.diagnostics)
    if has_errors(result.diagnostics):
        raise CommandError(f"{file}: {count_text(result.diagnostics)}")
    return result.models


def _picked(models: Sequence[Model], name: str | None, file: str) -> Model:
    names = ", ".join(model.root.key for model in models)
    if name is None and len(models) > 1:
        raise wrong_use(f"{file} has several workflows", f"give --workflow with one of: {names}")
    if not models:
        raise wrong_use(f"{file} has no workflow", "name a file with one")
    for model in models:
        if name in (None, model.root.key):
            return model
    raise wrong_use(f'{file} has no workflow "{name}"', f"it has: {names}")

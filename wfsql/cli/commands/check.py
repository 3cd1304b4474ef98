"""`wf check`: reads workflow files and says what is wrong with them.

Editors and hooks run it on every change, so it imports neither Typer nor anything that only
lowering needs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wfsql.cli.arguments import Parser
from wfsql.cli.findings import count_text, show_diagnostics
from wfsql.cli.garbage import uncollected
from wfsql.cli.output import counted, write_json

if TYPE_CHECKING:
    from dsl.diagnostics import Diagnostic


def run(arguments: Sequence[str]) -> int:
    """Checks the files named; 1 when one has an error, warnings alone are fine."""
    options = _parser().parse_args(arguments)
    from dsl.diagnostics import has_errors

    found: list[Diagnostic] = []
    with uncollected():
        for file in options.files:
            found += _check(file, options.catalog)
    _write(found, options.format, len(options.files))
    return 1 if has_errors(found) else 0


def _parser() -> Parser:
    parser = Parser(
        "check",
        "FILE...",
        "Read workflow files and their catalogs and say what is wrong, all at once.\n"
        "A file that ends in .json is a graph, as `wf compile --dialect spec` writes it.\n\n"
        "The exit code is 1 when there is an error; warnings alone are fine.",
        "wf check flows/*.wf",
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="A workflow file, or a graph as .json; - is stdin."
    )
    parser.add_argument(
        "--catalog",
        metavar="FILE",
        action="append",
        help="An action catalog, may be repeated; without it every *.actions.yaml beside the file.",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "github", "sarif"),
        default="text",
        help="Write the findings as text to stderr (the default), or to stdout as JSON, as SARIF, "
        "or as annotations for a GitHub workflow.",
    )
    parser.add_argument(
        "--json",
        action="store_const",
        const="json",
        dest="format",
        help="Write JSON, for programs: the same as --format json.",
    )
    return parser


def _check(file: str, catalogs: list[str] | None) -> tuple[Diagnostic, ...]:
    if file.endswith(".json"):
        return _check_graph(file)
    from compiler.pipeline import check_file, check_text

    if file != "-":
        return check_file(file, catalogs).diagnostics
    return check_text(sys.stdin.buffer.read(), "<stdin>", catalogs or ()).diagnostics


def _check_graph(file: str) -> tuple[Diagnostic, ...]:
    """Checks a graph that `wf compile --dialect spec`, or something else, has written."""
    from pathlib import Path

    from compiler.spec_check import check_spec

    try:
        data = Path(file).read_bytes()
    except OSError as error:
        from wfsql.cli.main import CommandError

        reason = (error.strerror or "it cannot be read").lower()
        raise CommandError(f"{file}: {reason}") from error
    return check_spec(data, file)


def _write(found: list[Diagnostic], format_: str, file_count: int) -> None:
    if format_ == "json":
        from dsl.render import render_data

        write_json(render_data(found), indent=2)
        return
    if format_ == "sarif":
        sys.stdout.write(_sarif(found))
        return
    if format_ == "github":
        from dsl.render_machine import render_github

        sys.stdout.write(render_github(found))
    else:
        show_diagnostics(found)
    verdict = count_text(found) or "no findings"
    sys.stderr.write(f"{counted(file_count, 'file')}: {verdict}\n")


def _sarif(found: list[Diagnostic]) -> str:
    from importlib.metadata import PackageNotFoundError, version

    from compiler.codes import COMPILER_CODES
    from dsl.codes import SYNTAX_CODES
    from dsl.render_machine import render_sarif

    titles = {code.code: code.title for code in (*SYNTAX_CODES, *COMPILER_CODES)}
    try:
        return render_sarif(found, titles, version("wfsql"))
    except PackageNotFoundError:
        return render_sarif(found, titles, "0")

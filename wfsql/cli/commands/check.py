"""`wf check`: reads workflow files and says what is wrong with them.

Editors and hooks run it on every change, so it imports neither Typer nor anything that only
lowering needs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wfsql.cli.findings import count_text, show_diagnostics

if TYPE_CHECKING:
    from compiler.pipeline import CheckResult
    from dsl.diagnostics import Diagnostic


def run(arguments: Sequence[str]) -> int:
    """Checks the files named; 1 when one has an error, warnings alone are fine."""
    options = _parser().parse_args(arguments)
    from dsl.diagnostics import has_errors

    found: list[Diagnostic] = []
    for file in options.files:
        found += _check(file, options.catalog).diagnostics
    _write(found, options.format, len(options.files))
    return 1 if has_errors(found) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wf check",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Read workflow files and their catalogs and say what is wrong, all at once.\n\n"
        "The exit code is 1 when there is an error; warnings alone are fine.",
        epilog="Example:  wf check flows/*.wf",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="a workflow file; - is stdin")
    parser.add_argument(
        "--catalog",
        metavar="FILE",
        action="append",
        help="an action catalog, may be repeated; without it every *.actions.yaml beside the file",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    return parser


def _check(file: str, catalogs: list[str] | None) -> CheckResult:
    from compiler.pipeline import check_file, check_text

    if file != "-":
        return check_file(file, catalogs)
    return check_text(sys.stdin.buffer.read(), "<stdin>", catalogs or ())


def _write(found: list[Diagnostic], format_: str, file_count: int) -> None:
    if format_ == "json":
        from compiler import json_values
        from dsl.render import render_data

        sys.stdout.write(json_values.dumps(render_data(found), indent=2) + "\n")
        return
    show_diagnostics(found)
    verdict = count_text(found) or "no findings"
    files = "1 file" if file_count == 1 else f"{file_count} files"
    sys.stderr.write(f"{files}: {verdict}\n")

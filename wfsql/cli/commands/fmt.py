"""`wf fmt`: writes workflow files in the canonical form.

Editors run it on every save, so it imports neither Typer nor the compiler.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wfsql.cli.arguments import Parser
from wfsql.cli.findings import show_diagnostics
from wfsql.cli.garbage import uncollected
from wfsql.cli.main import wrong_use
from wfsql.cli.output import say

if TYPE_CHECKING:
    from dsl.printer import FormatResult


def run(arguments: Sequence[str]) -> int:
    """Formats the files named; 1 when one has an error, or with --check would change."""
    options = _parser().parse_args(arguments)
    with uncollected():
        return _format(options)


def _format(options: argparse.Namespace) -> int:
    if "-" in options.paths:
        if len(options.paths) > 1:
            raise wrong_use("- cannot stand beside other paths", "format them one by one")
        return _format_stdin(options)
    files = list(dict.fromkeys(file for path in options.paths for file in _files(Path(path))))
    changed = broken = 0
    for file in files:
        result = _format_file(file, options)
        broken += result.text is None
        changed += result.text is not None and result.changed
    _say_verdict(len(files), changed, broken, options)
    return 1 if broken or (changed and options.check) else 0


def _parser() -> Parser:
    parser = Parser(
        "fmt",
        "PATH...",
        "Write workflow files in the canonical form, in place.\n\n"
        "The meaning, every comment and the blank lines between groups stay. A file with a\n"
        "syntax error is left as it is, and the exit code is 1.",
        "wf fmt flows/ order.wf\n"
        "          wf fmt --check --diff .      in a hook: 1 when a file is not formatted",
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="A file, or a folder for every *.wf below it; - reads stdin and writes stdout.",
    )
    parser.add_argument(
        "--check", action="store_true", help="Change nothing; exit 1 when a file would change."
    )
    parser.add_argument(
        "--diff", action="store_true", help="Change nothing; write what would change to stdout."
    )
    return parser


def _files(path: Path) -> Iterator[Path]:
    """The file itself, or the workflow files below a folder, in the order of their names."""
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(".wf"))


def _format_file(file: Path, options: argparse.Namespace) -> FormatResult:
    from dsl.printer import format_file

    result = format_file(file)
    if result.text is None:
        show_diagnostics(result.diagnostics)
    elif result.changed:
        if options.diff:
            _write_diff(result, str(file))
        if options.check:
            say(f"{file}: would change")
        if not (options.check or options.diff):
            _rewrite(file, result.text)
            say(f"{file}: formatted")
    return result


def _format_stdin(options: argparse.Namespace) -> int:
    from dsl.printer import format_text

    result = format_text(sys.stdin.buffer.read(), "<stdin>")
    if result.text is None:
        show_diagnostics(result.diagnostics)
        return 1
    if options.diff:
        _write_diff(result, "<stdin>")
    elif not options.check:
        sys.stdout.write(result.text)
    return 1 if options.check and result.changed else 0


def _rewrite(file: Path, text: str) -> None:
    """Puts the text where the file is, through links, with the rights it has."""
    from wfsql.cli.files import save

    place = file.resolve()
    mode = stat.S_IMODE(place.stat().st_mode)
    save(str(place), text)
    place.chmod(mode)


def _write_diff(result: FormatResult, name: str) -> None:
    from difflib import unified_diff

    before = (result.before or "").splitlines(keepends=True)
    after = (result.text or "").splitlines(keepends=True)
    for line in unified_diff(before, after, f"{name} (as it is)", f"{name} (formatted)"):
        shown = line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
        sys.stdout.write(_safe(shown) if sys.stdout.isatty() else shown)


def _safe(line: str) -> str:
    from dsl.plain import plain

    return "\t".join(plain(part) for part in line.removesuffix("\n").split("\t")) + "\n"


def _say_verdict(count: int, changed: int, broken: int, options: argparse.Namespace) -> None:
    files = "1 file" if count == 1 else f"{count} files"
    would = "would change" if options.check or options.diff else "changed"
    verdict = f"{changed} {would}" if changed else "nothing to change"
    say(f"{files}: {verdict}" + (f", {broken} with errors" if broken else ""))

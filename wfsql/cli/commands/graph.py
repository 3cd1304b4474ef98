"""`wf graph`: draws a workflow.

A picture needs a file that parses and nothing else, so neither catalogs nor the compiler's checks
are asked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from wfsql.cli.arguments import Parser
from wfsql.cli.findings import count_text, show_diagnostics
from wfsql.cli.garbage import uncollected
from wfsql.cli.main import CommandError, wrong_use
from wfsql.cli.output import say, write

if TYPE_CHECKING:
    from compiler.picture.model import Picture
    from dsl.nodes import Workflow
    from dsl.parser import ParseResult

_FORMATS = ("tree", "dot", "mermaid", "svg")


def run(arguments: Sequence[str]) -> int:
    """Draws the workflow named, or all of a file as trees."""
    options = _parser().parse_args(arguments)
    with uncollected():
        text = _drawn(options)
    if options.output is None or options.output == "-":
        write(text)
    else:
        from wfsql.cli.files import save
        from wfsql.cli.sources import files_read

        save(options.output, text, inputs=files_read(options.file))
    return 0


def _drawn(options: argparse.Namespace) -> str:
    parsed = _parse(options.file)
    workflows = _picked(parsed, options)
    from compiler.picture.model import draw

    render = _renderer(options.format)
    return "\n".join(render(draw(workflow, parsed.source)) for workflow in workflows)


def _parser() -> Parser:
    parser = Parser(
        "graph",
        "FILE",
        "Draw a workflow: every node once, inside the nodes that contain it.\n\n"
        "The file has to parse; it may be unfinished otherwise.",
        "wf graph order.wf\n          wf graph order.wf --format svg -o order.svg",
    )
    parser.add_argument("file", metavar="FILE", help="A workflow file; - is stdin.")
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        default="tree",
        help="A tree of lines (the default), Graphviz, Mermaid, or an SVG that stands alone.",
    )
    parser.add_argument("--workflow", metavar="NAME", help="One of several in the file.")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="Write to this file instead of stdout."
    )
    return parser


def _parse(file: str) -> ParseResult:
    from dsl.parser import parse_file, parse_text

    parsed = parse_text(sys.stdin.buffer.read(), "<stdin>") if file == "-" else parse_file(file)
    show_diagnostics(parsed.diagnostics)
    if parsed.file is None:
        raise CommandError(f"{file}: {count_text(parsed.diagnostics)}")
    return parsed


def _picked(parsed: ParseResult, options: argparse.Namespace) -> tuple[Workflow, ...]:
    """The workflow asked for; without a name all of them as trees, or the only one."""
    found = parsed.file.workflows if parsed.file is not None else ()
    names = ", ".join(workflow.name.text for workflow in found)
    if not found:
        raise CommandError(f"{options.file}: there is no workflow in it")
    if options.workflow is not None:
        found = tuple(w for w in found if w.name.text == options.workflow)
        if not found:
            message = f'{options.file} has no workflow "{options.workflow}"'
            raise wrong_use(message, f"it has: {names}")
    elif len(found) > 1 and options.format != "tree":
        hint = f"give --workflow with one of: {names}"
        raise wrong_use(f"{options.file} has several workflows", hint)
    return found if options.format == "tree" else found[:1]


def _renderer(format_: str) -> Callable[[Picture], str]:
    match format_:
        case "dot":
            from compiler.picture.dot import render_dot

            return render_dot
        case "mermaid":
            return _mermaid
        case "svg":
            from compiler.picture.svg import render_svg

            return render_svg
        case _:
            from compiler.picture.tree import render_tree

            return render_tree


def _mermaid(picture: Picture) -> str:
    from compiler.picture.mermaid import render_mermaid, too_large

    text = render_mermaid(picture)
    if too_large(picture, text):
        say("warning: Mermaid refuses a picture of this size unless maxTextSize and maxEdges allow")
        say("hint: use --format svg or dot")
    return text

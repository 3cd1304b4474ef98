"""`wf explain`: says what a diagnostic code means and how to mend it.

The text is the code's section of `compiler/diagnostics.md`, which ships with the package and of
which `docs/diagnostics.md` is the copy to read. Where a code has no section its title is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wfsql.cli.arguments import Parser
from wfsql.cli.main import wrong_use
from wfsql.cli.output import write

if TYPE_CHECKING:
    from dsl.codes import Code

_HEADING = re.compile(r"(#+) .*?\b(WF[0-9]{3})\b")
_ANY_HEADING = re.compile(r"(#+) ")
_FENCE = re.compile(r"(`{3,}|~{3,})")


def run(arguments: Sequence[str]) -> int:
    """Explains the codes named, or lists all of them."""
    options = _parser().parse_args(arguments)
    known = _codes()
    if not options.codes:
        write("\n".join(_title(code) for _, code in sorted(known.items())))
        return 0
    wanted = [_wanted(code, known) for code in options.codes]
    page = sections(_page())
    write("\n".join(page.get(code) or _title(known[code]) + "\n" for code in wanted).rstrip("\n"))
    return 0


def _parser() -> Parser:
    parser = Parser(
        "explain",
        "[CODE...]",
        "Say what a diagnostic code means, with a program that has the fault, what\n"
        "wf check says about it, and how to mend it. Without a code all are listed.",
        "wf explain WF104",
    )
    parser.add_argument("codes", metavar="CODE", nargs="*", help="Such as WF104, or 104.")
    return parser


def sections(page: str) -> dict[str, str]:
    """Returns the sections of a page of diagnostics by code, each with its heading."""
    found: dict[str, str] = {}
    code, level, lines = "", 0, list[str]()
    for line, depth in _lines_with_depth(page):
        if depth and (not code or depth <= level):
            if code:
                found[code] = "\n".join(lines).strip("\n") + "\n"
            match = _HEADING.match(line)
            code, level, lines = (match.group(2) if match else ""), depth, []
        lines.append(line)
    if code:
        found[code] = "\n".join(lines).strip("\n") + "\n"
    return found


def _lines_with_depth(page: str) -> Iterator[tuple[str, int]]:
    """Each line, and the level of the heading it is; lines of fenced programs are none."""
    fence = ""
    for line in page.split("\n"):
        marks = _FENCE.match(line)
        if fence:
            yield line, 0
            if line.rstrip() == fence:
                fence = ""
            continue
        fence = marks.group(1) if marks else ""
        heading = _ANY_HEADING.match(line)
        yield line, len(heading.group(1)) if heading else 0


def _page() -> str:
    import compiler

    path = Path(compiler.__file__).with_name("diagnostics.md")
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _codes() -> dict[str, Code]:
    from compiler.codes import COMPILER_CODES
    from dsl.codes import SYNTAX_CODES

    return {code.code: code for code in (*SYNTAX_CODES, *COMPILER_CODES)}


def _wanted(typed: str, known: Mapping[str, Code]) -> str:
    code = typed.upper()
    code = code if code.startswith("WF") else f"WF{code}"
    if code in known:
        return code
    from difflib import get_close_matches

    close = get_close_matches(code, known, n=1, cutoff=0.7)
    hint = f"did you mean {close[0]}?" if close else 'see "wf explain" for all codes'
    raise wrong_use(f'there is no diagnostic code "{typed}"', hint)


def _title(code: Code) -> str:
    return f"{code.code}  {code.severity:<7}  {code.title}"

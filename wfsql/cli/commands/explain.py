"""`wf explain`: says what a code means and how to mend it.

The text is the code's section of `compiler/diagnostics.md`, or of `runtime_sql/errors.md` where
the engine, the database or the gateway answers it. Both ship with the packages; `docs` has the
copies to read. Where a code has no section its title is shown.
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
_ERROR = re.compile(r"## (\S+)(?: (.*))?")
_NUMBER = re.compile(r"(?:WF)?[0-9]+", re.I)
_SQLSTATE = re.compile(r"WA([0-9]{3})")
_ANY_HEADING = re.compile(r"(#+) ")
_FENCE = re.compile(r"(`{3,}|~{3,})")


def run(arguments: Sequence[str]) -> int:
    """Explains the codes named, or lists all of them."""
    options = _parser().parse_args(arguments)
    diagnostics, errors = _codes(), error_sections(_errors_page())
    titles = {code.code: _title(code) for code in diagnostics.values()}
    titles = dict(sorted(titles.items())) | {code: _error_title(errors[code]) for code in errors}
    if not options.codes:
        write("\n".join(titles.values()))
        return 0
    wanted = [_wanted(code, titles) for code in options.codes]
    page = sections(_page()) | errors
    write("\n".join(page.get(code) or titles[code] + "\n" for code in wanted).rstrip("\n"))
    return 0


def _parser() -> Parser:
    parser = Parser(
        "explain",
        "[CODE...]",
        "Say what a code means and how to mend it: of a diagnostic, with a program\n"
        "that has the fault and what wf check says about it, or of an error of the\n"
        "engine, the database or the gateway. Without a code all are listed.",
        "wf explain WF104",
    )
    parser.add_argument(
        "codes",
        metavar="CODE",
        nargs="*",
        help="Such as WF104 or 104, 10015, 20002, pool_exhausted.",
    )
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


def error_sections(page: str) -> dict[str, str]:
    """Returns the sections of the page of runtime errors by code, each with its heading."""
    texts = [f"## {text}".strip("\n") + "\n" for text in page.split("\n## ")[1:]]
    return {found[1]: text for text in texts if (found := _ERROR.match(text))}


def _page() -> str:
    import compiler

    return _read(Path(compiler.__file__).with_name("diagnostics.md"))


def _errors_page() -> str:
    import runtime_sql

    return _read(Path(runtime_sql.__file__).with_name("errors.md"))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _codes() -> dict[str, Code]:
    from compiler.codes import COMPILER_CODES
    from dsl.codes import SYNTAX_CODES
    from wfsql.testing.codes import TEST_CODES

    return {code.code: code for code in (*SYNTAX_CODES, *COMPILER_CODES, *TEST_CODES)}


def _wanted(typed: str, known: Mapping[str, str]) -> str:
    forms = [typed.lower(), typed.upper(), f"WF{typed}"]
    if found := _SQLSTATE.fullmatch(typed.upper()):
        forms.append(f"20{found[1]}")
    for form in forms:
        if form in known:
            return form
    from difflib import get_close_matches

    # The neighbour of a number is another error altogether, and no guess.
    close = [] if _NUMBER.fullmatch(typed) else get_close_matches(typed, known, n=1, cutoff=0.7)
    hint = f"did you mean {close[0]}?" if close else 'see "wf explain" for all codes'
    raise wrong_use(f'there is no code "{typed}"', hint)


def _title(code: Code) -> str:
    return f"{code.code}  {code.severity:<7}  {code.title}"


def _error_title(section: str) -> str:
    found = _ERROR.match(section)
    assert found is not None
    if found[2]:
        return f"{found[1]}  error    {found[2]}"
    return f"{found[1]:<17} {section.split('**Means:** ')[1].splitlines()[0].rstrip('.')}"

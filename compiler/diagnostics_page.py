"""Writes `docs/diagnostics.md`, and its copy in the package: `python -m compiler.diagnostics_page`.

One section per code, made of `tests/corpus/err/<code>`: `fix.md`, and the first case there with
its exact output. `--update` computes the outputs (`*.out`) anew first. A case is checked with the
catalog `<case>.actions.yaml` beside it, else with that of the whole corpus. A case of a code for
graphs is a GraphSpec, `<case>.spec.json`.
"""

from __future__ import annotations

import sys
from contextlib import chdir
from pathlib import Path

from compiler import codes
from compiler.pipeline import check_file
from compiler.spec_check import check_spec
from dsl.codes import SYNTAX_CODES, Code
from dsl.render import render_text

ROOT = Path(__file__).parents[1]
CASES = ROOT / "tests" / "corpus" / "err"
CATALOG = "../../corpus.actions.yaml"
PAGES = (ROOT / "docs" / "diagnostics.md", ROOT / "compiler" / "diagnostics.md")
ALL_CODES: tuple[Code, ...] = (*SYNTAX_CODES, *codes.COMPILER_CODES)

WITHOUT_CASE = frozenset({codes.TOO_DEEP.code, codes.NOT_YET.code, codes.GRAPH_TOO_DEEP.code})
"""No file can show them, or none that is worth reading: of the first the parser says it before
(WF007), nothing is left that the second would be about, and the third needs 512 levels."""

_HEAD = """\
# Diagnostics

Everything `wf check` can say, by code. `wf explain WF104` prints one section. A warning is silenced
by a comment in its line, `# wf: allow WF220`; an error never is.

The codes from WF601 on are about graphs that were not compiled from a `.wf` file: `wf check
graph.spec.json` gives them all, and a database that is handed such a graph gives those that its
engine could not run, in an error 20007 (WF602: 20006) whose text begins with the code.

<!-- Written by `python -m compiler.diagnostics_page` from tests/corpus/err; edit there. -->
"""

_LEFT_OUT = """\
## Rules left out

Some rules that other linters have are not among these, because the language leaves no room for the
fault: there are no jumps, so a node is never unreachable by a missing edge, no target dangles, and
no join can name a branch that is not there; bodies are nested, so graphs have no cycles; only a
reference stands in a placeholder, so text around a condition is a type error (WF212). Left out as
matters of taste: missing descriptions, line width and indentation (`wf fmt` writes them), a
`parallel` with one branch, unnamed nodes whose keys change when a node is inserted before them.
An `if` with two equal branches could hold no action, for keys are unique. An action whose output is
not read is no finding: most are run for what they do. Two waits for one event type in different
branches may well be meant: each event goes to the one that waits longest. A `lease` may be longer
than a `timeout`, which ends the attempt on its own. Left out because a file alone cannot know:
events that nobody sends, secrets in literals, sizes of payloads, conditions that only data makes
constant.
"""


def cases_of(code: str) -> list[Path]:
    folder = CASES / code
    return sorted([*folder.glob("*.wf"), *folder.glob("*.spec.json")])


def case_output(path: Path) -> str:
    """Returns what `wf check` says of a case, run in its own folder."""
    if path.suffix == ".json":
        return render_text(check_spec(path.read_bytes(), path.name))
    own = path.with_suffix(".actions.yaml")
    code = path.parent.name
    catalogs = [own.name] if own.exists() else [CATALOG]
    if code == codes.NO_CATALOG.code:
        catalogs = []
    with chdir(path.parent):
        return render_text(check_file(path.name, catalogs).diagnostics)


def page_text() -> str:
    """Returns the page as it should be."""
    return "\n".join([_HEAD, *map(_section, ALL_CODES), _LEFT_OUT])


def _section(code: Code) -> str:
    parts = [f"## {code.code} {code.title}\n"]
    if code.severity == "warning":
        parts.append("A warning.\n")
    parts.append((CASES / code.code / "fix.md").read_text("utf-8"))
    for path in cases_of(code.code)[:1]:
        parts += _example(path)
    return "\n".join(parts)


def _example(path: Path) -> list[str]:
    own = path.with_suffix(".actions.yaml")
    shown = []
    if path.stem != "not_utf8":
        language = "json" if path.suffix == ".json" else "wf"
        shown.append(_fenced(language, path.read_text("utf-8")))
        if own.exists():
            shown.append(_fenced("yaml", own.read_text("utf-8")))
    shown.append(_fenced("text", path.with_suffix(".out").read_text("utf-8")))
    return shown


def _fenced(language: str, text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def main() -> None:
    if "--update" in sys.argv[1:]:
        for code in codes.COMPILER_CODES:
            for path in cases_of(code.code):
                path.with_suffix(".out").write_text(case_output(path), "utf-8", newline="\n")
    text = page_text()
    for page in PAGES:
        page.write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    main()

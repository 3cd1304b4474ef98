"""The corpus: every good file parses, every bad one gives exactly the findings beside it.

`tests/corpus/err/WFnnn/name.out` is the text rendering of what `name.wf` gives. To rewrite them
after a change that was looked at: `WFSQL_UPDATE_CORPUS=1 pytest tests/unit/dsl/test_corpus.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsl.codes import SYNTAX_CODES
from dsl.parser import parse_file
from dsl.render import MOST_SHOWN, render_text

CORPUS = Path(__file__).parents[2] / "corpus"
GOOD = sorted((CORPUS / "good").glob("*.wf"))
SYNTAX = {code.code for code in SYNTAX_CODES}
BAD = sorted(p for p in (CORPUS / "err").glob("WF0*/*.wf") if p.parent.name in SYNTAX)


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_a_good_file_parses(path: Path) -> None:
    result = parse_file(path, path.name)
    assert render_text(result.diagnostics) == ""
    assert result.file is not None


@pytest.mark.parametrize("path", BAD, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_bad_file_gives_its_findings(path: Path) -> None:
    result = parse_file(path, path.name)
    shown = render_text(result.diagnostics)
    expected = path.with_suffix(".out")
    if os.environ.get("WFSQL_UPDATE_CORPUS"):
        expected.write_text(shown, encoding="utf-8")
    assert shown == expected.read_text(encoding="utf-8")
    assert len(result.diagnostics) <= MOST_SHOWN
    assert path.parent.name in {found.code for found in result.diagnostics}
    assert result.file is None


def test_every_syntax_code_has_a_case() -> None:
    assert {path.parent.name for path in BAD} == SYNTAX

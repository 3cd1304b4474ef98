"""The corpus: every case gives exactly the findings beside it, and the page of codes is current.

After a change that was looked at: `python -m compiler.diagnostics_page --update`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler import codes
from compiler.diagnostics_page import (
    ALL_CODES,
    CASES,
    PAGES,
    WITHOUT_CASE,
    case_output,
    cases_of,
    page_text,
)

COMPILER = {code.code for code in codes.COMPILER_CODES}
PATHS = [path for code in codes.COMPILER_CODES for path in cases_of(code.code)]


@pytest.mark.parametrize("path", PATHS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_case_gives_its_findings(path: Path) -> None:
    shown = case_output(path)
    assert shown == path.with_suffix(".out").read_text("utf-8")
    assert f"[{path.parent.name}]" in shown


@pytest.mark.parametrize("code", [code.code for code in ALL_CODES if code.code not in WITHOUT_CASE])
def test_code_has_a_case(code: str) -> None:
    assert cases_of(code) != []


def test_no_folder_is_about_an_unknown_code() -> None:
    assert {path.name for path in CASES.iterdir()} == {code.code for code in ALL_CODES}


def test_corpus_has_150_programs() -> None:
    assert len(list(CASES.parent.rglob("*.wf"))) >= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.parent.name)
def test_page_is_current(page: Path) -> None:
    assert page.read_text("utf-8") == page_text()


def test_every_code_has_a_section_in_order() -> None:
    headings = [line for line in page_text().splitlines() if line.startswith("## WF")]
    assert headings == [f"## {code.code} {code.title}" for code in ALL_CODES]


def test_codes_are_given_once() -> None:
    assert len({code.code for code in ALL_CODES}) == len(ALL_CODES)

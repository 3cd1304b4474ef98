"""Fixtures of the compiler's tests: programs with the place of a finding marked in them.

`«…»` marks the span a diagnostic must have; the marks are taken out before compiling.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compiler.pipeline import CompileResult, check_text, compile_text
from compiler.spec import GraphSpec
from dsl.diagnostics import Diagnostic
from dsl.source import Span

CATALOG = """\
actions:
  - name: stock.reserve
    capability: stock
    input: "{ order_id: string, items?: list<{ sku: string, qty: int }>, mode?: 'a' }"
    output: "{ reservation: string, left: int, rows: list<{ id: string }> }"
    result_codes: {0: ok, 1: short, -7: broken}
  - name: mail.send
    input: "{ to: string, subject?: string, tags?: list<string> }"
  - name: any.thing
""".replace("mode?: 'a'", 'mode?: \\"a\\" | \\"b\\"')


@pytest.fixture
def catalog_path(tmp_path: Path) -> Path:
    path = tmp_path / "test.actions.yaml"
    path.write_text(CATALOG, "utf-8")
    return path


@pytest.fixture
def check(catalog_path: Path) -> Callable[[str], tuple[Diagnostic, ...]]:
    """Checks a text against the catalog of the tests."""
    return lambda text: check_text(text, "test.wf", [catalog_path]).diagnostics


@pytest.fixture
def compiled(catalog_path: Path) -> Callable[[str], GraphSpec]:
    """Compiles a text with one workflow and no error to its spec."""

    def compile_one(text: str) -> GraphSpec:
        result: CompileResult = compile_text(text, "test.wf", [catalog_path])
        errors = [found.message for found in result.diagnostics if found.severity == "error"]
        assert errors == []
        (spec,) = result.specs
        return spec

    return compile_one


def take_mark(marked: str) -> tuple[str, Span]:
    """Returns a text without its marks, and the span that they marked."""
    start = marked.index("«")
    end = marked.index("»") - 1
    return marked.replace("«", "").replace("»", ""), Span(start, end)


@pytest.fixture
def assert_found(
    check: Callable[[str], tuple[Diagnostic, ...]],
) -> Callable[[str, str, str], Diagnostic]:
    """Asserts that a marked text gives exactly one diagnostic of a code, at the mark."""

    def assert_one(marked: str, code: str, message: str) -> Diagnostic:
        text, span = take_mark(marked)
        everything = check(text)
        found = [diagnostic for diagnostic in everything if diagnostic.code == code]
        assert [(d.message, d.span) for d in found] == [(message, span)], everything
        return found[0]

    return assert_one

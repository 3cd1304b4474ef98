"""A folder with one workflow, and the ways to read and run a test file beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dsl.diagnostics import Diagnostic
from wfsql.testing.cases import CaseFile, Schedule
from wfsql.testing.local import LocalEngine
from wfsql.testing.reader import read_cases
from wfsql.testing.runner import CaseResult, Runner
from wfsql.testing.workflows import Workflows

CATALOG = """\
actions:
  - name: t.do
    result_codes: { 0: ok, 1: short }
"""
WORKFLOW = """\
workflow order {
  input { items : list<any> = [], fail_code : int = 0 }
  var total : any = 0
  output { total = var.total, packed = var.packed }
  action reserve = t.do(items: var.items)
  if var.fail_code != 0 { fail -20 "cannot" }
  foreach item in var.items {
    action pack = t.do(item: var.item)
    collect packed = ctx.task.pack.output.parcel
  }
  parallel {
    action book = t.do()
    action bill = t.do() { set total = out.sum ?? 1.0 }
  }
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "order.wf").write_text(WORKFLOW, encoding="utf-8")
    (tmp_path / "order.actions.yaml").write_text(CATALOG, encoding="utf-8")
    return tmp_path


Read = Callable[[str], tuple[CaseFile | None, tuple[Diagnostic, ...]]]
Run = Callable[..., CaseResult]


@pytest.fixture
def read(folder: Path) -> Read:
    """Reads a text as order.wftest.yaml."""

    def call(text: str) -> tuple[CaseFile | None, tuple[Diagnostic, ...]]:
        path = folder / "order.wftest.yaml"
        path.write_text(text, encoding="utf-8")
        result = read_cases(path, path.name)
        return result.file, result.diagnostics

    return call


@pytest.fixture
def run(read: Read) -> Run:
    """Runs the first case of a text on the local runner."""

    def call(text: str, schedule: Schedule | None = None, is_strict: bool = False) -> CaseResult:
        file, found = read(text)
        assert file is not None, [d.message for d in found]
        runner = Runner(LocalEngine(), Workflows(), schedule, is_strict)
        return runner.run_case(file, file.cases[0])

    return call


def case(body: str) -> str:
    """A test file of one case whose further lines are `body`, indented by four."""
    return "workflow: order.wf\ncases:\n  - name: one\n" + body


def where(found: Diagnostic) -> tuple[int, int]:
    place = found.source.position(found.span.start)
    return place.line, place.column

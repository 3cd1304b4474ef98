"""`wf compile` writes the same bytes on every machine, so a script can be kept and compared."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOW = """\
type T = { a: int, b: string? }
workflow w {
  input { x : T, names : list<string> = ["b", "a"] }
  output { c = var.c }
  foreach n in var.names parallel 2 {
    action one = t.one(x: var.x.a, n: var.n) { retry 2 }
    collect c = ctx.task.one.output.v
  }
  action two = u.two(c: var.c)
}
"""
CATALOGS = {
    "t.actions.yaml": 'actions:\n  - name: t.one\n    output: "{ v: int }"\n    capability: t\n',
    "u.actions.yaml": "actions:\n  - name: u.two\n    result_codes: { 2: late, 1: early }\n",
}
DIALECTS = ("pg", "mssql", "spec")
Wf = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "\n")
    return tmp_path


def write(folder: Path, line_end: str) -> None:
    for name, text in (CATALOGS | {"w.wf": WORKFLOW}).items():
        (folder / name).write_bytes(text.replace("\n", line_end).encode())


def compiled_by(folder: Path, dialect: str, seed: str) -> bytes:
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "wfsql", "compile", "w.wf", "--dialect", dialect]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return done.stdout


@pytest.mark.parametrize("dialect", DIALECTS)
def test_hash_seed_and_folder_change_nothing(dialect: str, tmp_path: Path) -> None:
    found = set()
    for name, seed in (("a", "0"), ("other folder", "1"), ("é", "random")):
        (tmp_path / name).mkdir()
        write(tmp_path / name, "\n")
        found.add(compiled_by(tmp_path / name, dialect, seed))
    assert len(found) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_line_ends_change_nothing(wf: Wf, folder: Path, dialect: str, line_end: str) -> None:
    before = wf("compile", "w.wf", "--dialect", dialect)
    write(folder, line_end)
    assert wf("compile", "w.wf", "--dialect", dialect) == before
    assert before.code == 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_order_of_catalogs_changes_nothing(wf: Wf, folder: Path, dialect: str) -> None:
    names = sorted(CATALOGS)

    def compiled(order: list[str]) -> Any:
        told = [word for name in order for word in ("--catalog", name)]
        return wf("compile", "w.wf", "--dialect", dialect, *told)

    assert compiled(names) == compiled(names[::-1]) == wf("compile", "w.wf", "--dialect", dialect)

"""The pipeline as a whole: damaged programs, and what a check may import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compiler.pipeline import compile_file, compile_text
from dsl.diagnostics import has_errors

FOLDER = Path(__file__).parents[2] / "golden" / "spec" / "programs"
PROGRAMS = sorted(FOLDER.glob("*.wf"))
CATALOG = FOLDER / "golden.actions.yaml"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_without_one_of_its_lines_gives_specs_or_errors(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines(keepends=True)
    for number in range(len(lines)):
        text = "".join(lines[:number] + lines[number + 1 :])
        result = compile_text(text, path.name, [CATALOG])
        assert bool(result.specs) != has_errors(result.diagnostics), f"without line {number + 1}"


def test_check_imports_nothing_heavy() -> None:
    code = (
        "import sys; from compiler.pipeline import check_file; "
        f"check_file({str(PROGRAMS[0])!r}); "
        "print([m for m in ('pydantic', 'networkx', 'jsonschema', 'sqlglot') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_missing_file_gives_one_diagnostic(tmp_path: Path) -> None:
    result = compile_file(tmp_path / "gone.wf")
    assert (len(result.diagnostics), result.specs) == (1, ())

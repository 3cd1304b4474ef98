"""Imports go one way, and a command imports only what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    "psycopg",
    "networkx",
    "sqlglot",
    "pydantic",
    "rich",
    "typer",
    "lark",
    "jsonschema",
)


def test_layer_contracts_hold() -> None:
    from importlinter.cli import lint_imports

    script = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    assert callable(lint_imports)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def imported_by_check(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The modules that `wf check` on a small file with a catalog leaves imported."""
    folder = tmp_path_factory.mktemp("check")
    (folder / "small.wf").write_text("workflow small { action a = act.it(x: 1) }\n")
    (folder / "small.actions.yaml").write_text(
        'actions:\n  - name: act.it\n    capability: c\n    input: "{ x: int }"\n'
    )
    script = (
        "import sys; from wfsql.cli.main import main; code = main(['check', 'small.wf']);"
        "print('\\n'.join(sys.modules)); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines())


@pytest.mark.parametrize("module", HEAVY)
def test_check_does_not_import(imported_by_check: set[str], module: str) -> None:
    assert module not in imported_by_check


def test_check_does_import_the_parser(imported_by_check: set[str]) -> None:
    assert "dsl.parser" in imported_by_check

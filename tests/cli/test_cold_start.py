"""What keeps `wf check` quick: the modules that it does without."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples/order_fulfilment/order_fulfilment.wf"
# `dataclasses` brings `inspect`; `shutil` the libraries of three kinds of archive.
HEAVY = (
    *("dataclasses", "hashlib", "inspect", "jsonschema", "lark", "networkx"),
    *("psycopg", "pydantic", "rich", "shutil", "sqlglot", "subprocess", "typer"),
)


@cache
def _imported() -> frozenset[str]:
    program = (
        "import sys; from wfsql.cli.main import main; "
        f"code = main(['check', {str(FILE)!r}]); "
        "print(*sys.modules); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return frozenset(done.stdout.split())


@pytest.mark.parametrize("module", HEAVY)
def test_a_check_does_without(module: str) -> None:
    assert "compiler.checks" in _imported()
    assert module not in _imported()

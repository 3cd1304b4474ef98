"""Every T-SQL batch, hand-written or emitted, is accepted by the grammar of SQL Server 2019.

The grammar is Microsoft's, in the command `maxdop`; without it these tests are skipped.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from emit_mssql.emitter import emit
from tests.unit.emit.small_specs import NODE_TYPES, awkward, wide

MAXDOP = shutil.which("maxdop", path=str(Path(sys.executable).parent)) or shutil.which("maxdop")
TREE = sorted(p.name for p in (files("runtime_sql") / "mssql").iterdir() if p.name.endswith(".sql"))
EMITTED = NODE_TYPES | {"awkward": awkward(), "wide": wide(1_100)}

needs_grammar = pytest.mark.skipif(
    MAXDOP is None, reason="maxdop, which has the grammar, is not here"
)


def _complaints(script: str) -> list[str]:
    """What the grammar says of each GO batch, with lines counted in the whole script."""
    found = []
    lines_before = 0
    for batch in re.split(r"^GO$\n?", script, flags=re.M):
        if batch.strip():
            done = subprocess.run(
                [str(MAXDOP), "--parser-version", "150"],
                input="\n" * lines_before + batch,
                capture_output=True,
                text=True,
                encoding="utf-8",
            )
            if done.returncode != 0:
                found.append(done.stderr.strip())
        lines_before += batch.count("\n") + 1
    return found


@needs_grammar
def test_the_grammar_finds_an_error_and_its_line() -> None:
    [complaint] = _complaints("select 1;\nGO\nselect from;\nGO\n")
    assert re.search(r"\b3:\d+", complaint)


@needs_grammar
@pytest.mark.parametrize("name", TREE)
def test_the_runtime_is_in_the_grammar(name: str) -> None:
    script = (files("runtime_sql") / "mssql" / name).read_text(encoding="utf-8")
    assert _complaints(script) == []


@needs_grammar
@pytest.mark.parametrize("name", EMITTED)
def test_emitted_scripts_are_in_the_grammar(name: str) -> None:
    assert _complaints(emit(EMITTED[name])) == []

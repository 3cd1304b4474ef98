"""No good program lacks one of its golden files: the tree, the spec, the SQL of each dialect."""

from __future__ import annotations

from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent
GOOD = sorted((GOLDEN.parent / "corpus" / "good").glob("*.wf"))
FILES = (
    "ast/__snapshots__/test_trees/test_tree_is_the_reviewed_one[{}].ast",
    "spec/__snapshots__/test_specs/test_spec_is_the_reviewed_one[{}].json",
    "sql/test_snapshots/test_good_program[{}-pg].sql",
    "sql/test_snapshots/test_good_program[{}-mssql].sql",
)


def test_there_are_good_programs() -> None:
    assert GOOD


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("program", [path.stem for path in GOOD])
def test_a_good_program_has_its_golden_file(program: str, file: str) -> None:
    assert (GOLDEN / file.format(program)).is_file()

"""The AST of each good program is the reviewed one (`--snapshot-update` writes them anew)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from dsl import nodes
from dsl.parser import parse_file
from tests.golden.ast.tree_text import tree_text

TESTS = Path(__file__).parents[2]
PROGRAMS = sorted(
    [*TESTS.glob("corpus/good/*.wf"), *TESTS.glob("golden/spec/programs/**/*.wf")],
    key=lambda path: path.stem,
)
CLASSES = {
    name
    for name, value in vars(nodes).items()
    if isinstance(value, type) and value.__module__ == nodes.__name__
}


class TreeFile(SingleFileSnapshotExtension):
    """One `.ast` file per program."""

    _write_mode = WriteMode.TEXT
    file_extension = "ast"

    def serialize(self, data: Any, **_options: Any) -> str:
        return str(data)


def tree_of(path: Path) -> str:
    result = parse_file(path, path.name)
    assert result.file is not None
    return tree_text(result.file, result.source)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_tree_is_the_reviewed_one(path: Path, snapshot: SnapshotAssertion) -> None:
    assert tree_of(path) == snapshot(extension_class=TreeFile)


def test_good_programs_have_every_class_of_the_tree() -> None:
    lines = [line for path in PROGRAMS for line in tree_of(path).splitlines()]
    found = {line.split(": ", 1)[1].split(" ")[0] for line in lines}
    assert CLASSES - found == set()

"""The spec of each golden program is the reviewed one (`--snapshot-update` writes them anew)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from compiler.pipeline import compile_file
from compiler.spec import dump_spec

TESTS = Path(__file__).parents[2]
PROGRAMS = sorted(
    [*TESTS.glob("corpus/good/*.wf"), *TESTS.glob("golden/spec/programs/*.wf")],
    key=lambda path: path.stem,
)


class SpecFile(SingleFileSnapshotExtension):
    """One `.json` file per program."""

    _write_mode = WriteMode.TEXT
    file_extension = "json"

    def serialize(self, data: Any, **_options: Any) -> str:
        return str(data)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_spec_is_the_reviewed_one(path: Path, snapshot: SnapshotAssertion) -> None:
    result = compile_file(path)
    assert [found.message for found in result.diagnostics if found.severity == "error"] == []
    text = "".join(dump_spec(spec) for spec in result.specs)
    assert text == snapshot(extension_class=SpecFile)


def test_golden_programs_cover_every_node_type() -> None:
    found = {node.type for path in PROGRAMS for s in compile_file(path).specs for node in s.nodes}
    assert found == {
        "ACTION",
        "SEQUENCE",
        "PARALLEL",
        "IF",
        "SWITCH",
        "REPEAT",
        "WHILE",
        "FOREACH",
        "WAIT_EVENT",
    }

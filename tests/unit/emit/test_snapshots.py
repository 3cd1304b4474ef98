"""The emitted scripts themselves, one file per case and dialect, reviewed like code.

`pytest tests/unit/emit/test_snapshots.py --snapshot-update` rewrites them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation

import emit_mssql.emitter as mssql
import emit_pg.emitter as pg
from compiler.pipeline import compile_file
from tests.unit.emit.small_specs import AWKWARD_TEXTS, NODE_TYPES, awkward

GOLDEN = Path(__file__).parents[2] / "golden" / "sql"
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*/*.wf"))
PROGRAMS = sorted(
    [
        *(GOLDEN.parents[1] / "corpus" / "good").glob("*.wf"),
        *(GOLDEN.parent / "spec" / "programs").glob("*.wf"),
    ],
    key=lambda path: path.stem,
)
EMITTERS = {"pg": pg.emit, "mssql": mssql.emit}


class SqlFile(SingleFileSnapshotExtension):
    """Snapshots as `tests/golden/sql/<test file>/<test>[<case>].sql`."""

    _write_mode = WriteMode.TEXT
    file_extension = "sql"

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(GOLDEN / test_location.basename)


@pytest.fixture
def sql_file(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(SqlFile)


@pytest.mark.parametrize("dialect", EMITTERS)
@pytest.mark.parametrize("name", NODE_TYPES)
def test_node_type(name: str, dialect: str, sql_file: SnapshotAssertion) -> None:
    assert EMITTERS[dialect](NODE_TYPES[name]) == sql_file


@pytest.mark.parametrize("dialect", EMITTERS)
def test_awkward_texts(dialect: str, sql_file: SnapshotAssertion) -> None:
    assert EMITTERS[dialect](awkward(AWKWARD_TEXTS)) == sql_file


@pytest.mark.parametrize("dialect", EMITTERS)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, dialect: str, sql_file: SnapshotAssertion) -> None:
    [graph] = compile_file(path).specs
    assert EMITTERS[dialect](graph) == sql_file


@pytest.mark.parametrize("dialect", EMITTERS)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_good_program(path: Path, dialect: str, sql_file: SnapshotAssertion) -> None:
    scripts = [EMITTERS[dialect](graph) for graph in compile_file(path).specs]
    assert "".join(scripts) == sql_file


def test_there_are_examples_to_compare() -> None:
    assert [path.stem for path in EXAMPLES] == [
        "order_delivery",
        "order_fulfilment",
        "sample_preparation",
    ]

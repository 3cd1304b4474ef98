"""The local runner and PostgreSQL leave equal traces for the same scripted results.

The programs are tests/corpus/run/*.wf; the .json beside each holds the start context and the
results of its actions by node key: a list of [code, output] or [code, output, message], used up by
visits, the last one repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from compiler import json_values
from tests.runtime_sql import drive

CORPUS = Path(__file__).parents[1] / "corpus" / "run"


@pytest.fixture
def connection(pg_url: str) -> Iterator[psycopg.Connection[Any]]:
    with drive.connect(pg_url) as connection:
        yield connection


@pytest.mark.parametrize("program", sorted(CORPUS.glob("*.wf")), ids=lambda path: path.stem)
def test_traces_are_equal(
    program: Path, tmp_path: Path, connection: psycopg.Connection[Any]
) -> None:
    case = json_values.loads(program.with_suffix(".json").read_text(encoding="utf-8"))
    results = {key: [tuple(r) for r in listed] for key, listed in case["results"].items()}
    spec = drive.compile_text(tmp_path, program.read_text(encoding="utf-8"))

    in_pg = drive.run_pg(connection, spec, case["context"], drive.Scripted(results))
    local = drive.run_local(spec, case["context"], drive.Scripted(dict(results)))

    assert in_pg["status"] in ("SUCCEEDED", "FAILED")
    assert drive.readable(in_pg) == drive.readable(local)

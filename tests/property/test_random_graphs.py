"""Random programs leave equal traces on the local runner and in PostgreSQL.

`make test` plays the same few programs each time; `WFSQL_FUZZ=N` plays N new ones. What a run finds
is printed as a short `.wf` with the results of its actions, and becomes a case of the conformance
suite.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings

from compiler import json_values
from compiler.pipeline import compile_text
from dsl.source import Span
from tests.property.program_strategy import CATALOG, RandomProgram, programs
from wfsql.compare import differences
from wfsql.embedded import EmbeddedServer
from wfsql.testing.cases import Case, Expectations, Script, ScriptedResult, WorkflowRef
from wfsql.testing.driver import Played, play
from wfsql.testing.graph_index import GraphIndex
from wfsql.testing.local import LocalEngine
from wfsql.testing.postgres import PostgresEngine

_FUZZ = os.environ.get("WFSQL_FUZZ")
_HERE = Span(0, 1)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("random") / "random.actions.yaml"
    path.write_text(CATALOG, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def postgres(pg_server: EmbeddedServer, pg_template: str) -> Iterator[PostgresEngine]:
    name = f"random_{os.getpid()}"
    engine = PostgresEngine(pg_server.create_database(name, pg_template))
    yield engine
    engine.close()
    pg_server.drop_database(name)


def _case(program: RandomProgram) -> Case:
    scripts = tuple(
        Script(
            place=key,
            results=(
                ScriptedResult(code=code, output=output, message=None, takes_ms=0, span=_HERE),
            ),
            is_list=False,
            span=_HERE,
        )
        for key, (code, output) in program.results.items()
    )
    return Case(
        name="random",
        workflow=WorkflowRef(file="w.wf", name=None, span=_HERE),
        input=program.context,
        input_text=None,
        scripts=scripts,
        steps=(),
        expect=Expectations(),
        engines=(),
        schedule=program.schedule,
        rules=(),
        known_faults={},
        span=_HERE,
    )


def _trace(played: Played) -> object:
    assert not played.is_broken, played.problems
    assert played.remains is not None, played.not_started
    return played.remains.trace


@settings(
    max_examples=int(_FUZZ) if _FUZZ else 60,
    derandomize=_FUZZ is None,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(program=programs())
def test_random_programs_leave_equal_traces(
    program: RandomProgram, catalog: Path, postgres: PostgresEngine
) -> None:
    note(program.text)
    note(json_values.dumps({key: list(result) for key, result in program.results.items()}))
    note(f"input {json_values.dumps(program.context)}, order {program.schedule}")
    compiled = compile_text(program.text, "w.wf", [catalog])
    errors = [d for d in compiled.diagnostics if d.severity == "error"]
    assert not errors, [(d.code, d.message, d.source.position(d.span.start)) for d in errors]
    index, case = GraphIndex(compiled.specs[0]), _case(program)

    local = play(LocalEngine(), index, case, program.schedule)
    in_database = play(postgres, index, case, program.schedule)

    assert differences(_trace(local), _trace(in_database)) == []
    assert local.visited == in_database.visited

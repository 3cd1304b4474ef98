"""A graph that was tampered with is refused by the verifier, or PostgreSQL deploys and runs it.

The graphs are the golden ones, the mutations blind: rows and fields are dropped, doubled, swapped,
and replaced by values that stand elsewhere in the same document, so that they look right.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

from compiler import json_values
from compiler.spec_check import read_spec
from tests.runtime_sql import drive
from wfsql.embedded import EmbeddedServer

GOLDEN = Path(__file__).parents[1] / "golden" / "spec" / "__snapshots__" / "test_specs"
_MOST_CLAIMS = 25
_KINDS = ("drop", "double", "swap", "value", *["borrow"] * 6)
_FUZZ = int(os.environ.get("WFSQL_FUZZ") or 0)


def golden_documents() -> list[str]:
    """The documents of all golden specs; a file may hold several, one after the other."""
    found = []
    decoder = json.JSONDecoder()
    for path in sorted(GOLDEN.glob("*.json")):
        text = path.read_text("utf-8")
        while text:
            document, end = decoder.raw_decode(text)
            del document["source_map"]
            found.append(json.dumps(document | {"source_map": None}))
            text = text[end:].lstrip()
    return found


DOCUMENTS = golden_documents()
Place = tuple[Any, Any]  # a container, and the key or index of one of its values


def places_of(document: Any) -> list[Place]:
    found: list[Place] = []
    pending = [document]
    while pending:
        value = pending.pop()
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in keys:
            found.append((value, key))
            if isinstance(value[key], dict | list):
                pending.append(value[key])
    return found


def mutate(draw: st.DrawFn, document: dict[str, Any]) -> None:
    places = places_of(document)
    container, key = places[draw(st.integers(0, len(places) - 1))]
    if container is document and not isinstance(document[key], list):
        return
    kind = draw(st.sampled_from(_KINDS))
    same = [c[k] for c, k in places if k == key and type(c[k]) is type(container[key])]
    match kind:
        case "drop" if isinstance(container, list) or draw(st.booleans()):
            del container[key]
        case "double" if isinstance(container, list):
            container.append(_copy(container[key]))
        case "swap" if isinstance(container, list) and len(container) > 1:
            other = draw(st.integers(0, len(container) - 1))
            container[key], container[other] = container[other], container[key]
        case "value":
            container[key] = draw(st.sampled_from([None, True, 0, 1, -1, 2**40, "", "x", [], {}]))
        case _ if isinstance(container[key], int) and not isinstance(container[key], bool):
            container[key] += draw(st.sampled_from([-1, 1, 2]))
        case _:
            container[key] = _copy(draw(st.sampled_from(same)))


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


@st.composite
def mutants(draw: st.DrawFn) -> str:
    document = json.loads(draw(st.sampled_from(DOCUMENTS)))
    for _ in range(draw(st.integers(1, 3))):
        mutate(draw, document)
    return json.dumps(document)


@pytest.fixture(scope="module")
def connection(pg_server: EmbeddedServer, pg_template: str) -> Iterator[psycopg.Connection[Any]]:
    name = f"mutants_{os.getpid()}"
    with drive.connect(pg_server.create_database(name, pg_template)) as opened:
        drive.stop_clock(opened)
        yield opened
    pg_server.drop_database(name)


@given(mutants())
@settings(
    max_examples=_FUZZ or 100,
    deadline=None,
    derandomize=not _FUZZ,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_mutant_is_refused_or_runs(connection: psycopg.Connection[Any], text: str) -> None:
    spec, found = read_spec(text, "mutant.spec.json")
    note(text)
    if spec is None:
        event(found[0].code)
        assert _answer(connection, text) in (None, "WA005", "WA006", "WA007", "WA010")
        return
    event("sound")
    with connection.transaction():
        _create(connection, text)
        _run(connection, spec.name)
        raise psycopg.Rollback


def _answer(connection: psycopg.Connection[Any], text: str) -> str | None:
    """Returns the state of the error that a document gives; none when only the compiler knows."""
    try:
        with connection.transaction():
            _create(connection, text)
            raise psycopg.Rollback
    except psycopg.Error as error:
        return error.sqlstate
    return None


def _create(connection: psycopg.Connection[Any], text: str) -> None:
    connection.execute("select wf.wf_repo_create_workflow_graph(%s::jsonb)", [text])


def _run(connection: psycopg.Connection[Any], name: str) -> None:
    """Starts an instance and serves it; only the engine's own errors may come."""
    try:
        with connection.transaction():
            instance = drive.start(connection, name, {})
    except psycopg.Error as error:
        if not (error.sqlstate or "").startswith("WF"):
            raise
        return
    for _ in range(_MOST_CLAIMS):
        task = drive.claim(connection)
        if task is not None:
            drive.submit(connection, task, 0, {"text": "x", "items": [1, 2]})
        elif not drive.move_clock_to_next_due(connection):
            break
    assert drive.trace(connection, instance)["status"] in ("RUNNING", "SUCCEEDED", "FAILED")


def test_the_golden_graphs_are_sound() -> None:
    assert len(DOCUMENTS) > 8
    for text in DOCUMENTS:
        assert read_spec(text, "golden")[1] == (), json_values.loads(text)["name"]

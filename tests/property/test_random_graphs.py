"""Random programs leave equal traces on the local runner and in PostgreSQL, and nothing open.

`make test` plays the same 300 programs each time, each in the order that was drawn for it; `make
fuzz` plays 1000 new ones, in order and in their own. One with `reuse` is played twice, so that
the second run finds what the first has stored. Programs with WAIT_EVENT run in PostgreSQL only:
there each must leave the same when played again, and the same in another order where R12 says so.
Some play on SQL Server too, where `WF_MSSQL_URL` names one.
What a run finds is printed as a short `.wf` with the results of its actions, and becomes a case of
the conformance suite.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, note, seed, settings

from compiler import json_values
from compiler.pipeline import compile_text
from dsl.source import Span
from tests.mssql_server import open_connection
from tests.property.program_strategy import CATALOG, RandomProgram, RandomResult, programs
from tests.runtime_sql.tsql import empty
from wfsql.compare import differences
from wfsql.embedded import EmbeddedServer
from wfsql.testing.cases import (
    IN_ORDER,
    Case,
    Expectations,
    Schedule,
    Script,
    ScriptedResult,
    SendEvent,
    WorkflowRef,
)
from wfsql.testing.database import DatabaseSession
from wfsql.testing.driver import Played, play
from wfsql.testing.engines import Remains
from wfsql.testing.graph_index import GraphIndex
from wfsql.testing.local import LocalEngine
from wfsql.testing.mssql import MssqlEngine
from wfsql.testing.postgres import PostgresEngine

_FUZZ = os.environ.get("WFSQL_FUZZ")
_COUNT = int(_FUZZ) if _FUZZ else 300
# Each part is a test of its own, so that two processes can share them.
_PARTS = 6
_HERE = Span(0, 1)
Check = Callable[[RandomProgram], None]
_VISITS = 300
_END_STATES = {"SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"}

# What only an open instance has, of the instance that began last; but for how far failed composites
# had come, and those that a failure cancelled, which a retry would need (R14).
_KEPT = ("join_counter", "loop_state", "foreach_item")
_LEFTOVERS = " union all ".join(
    f"select '{table}', l.node_execution_id from wf.{table} as l"
    " join wf.node_execution as e on e.node_execution_id = l.node_execution_id"
    " where e.workflow_instance_id = (select max(workflow_instance_id) from wf.workflow_instance)"
    + (" and e.status not in ('FAILED', 'CANCELLED')" if table in _KEPT else "")
    for table in (
        "task",
        "join_counter",
        "loop_state",
        "foreach_item",
        "event_wait",
        "timer",
        "pending_end",
    )
)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("random") / "random.actions.yaml"
    path.write_text(CATALOG, encoding="utf-8")
    return path


@dataclass(frozen=True)
class _Watched:
    """An engine, and what the instances of the last play left in the engine's own tables."""

    engine: PostgresEngine | MssqlEngine
    leftovers: list[tuple[str, int]]


@pytest.fixture(scope="module")
def postgres(pg_server: EmbeddedServer, pg_template: str) -> Iterator[_Watched]:
    name = f"random_{os.getpid()}"
    url = pg_server.create_database(name, pg_template)
    engine, leftovers = PostgresEngine(url), list[tuple[str, int]]()
    abandon = DatabaseSession.abandon

    # The last moment before the session clears up after itself.
    def note_and_abandon(session: DatabaseSession) -> None:
        leftovers[:] = connection.execute(_LEFTOVERS).fetchall()
        abandon(session)

    with psycopg.connect(url, autocommit=True) as connection, pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseSession, "abandon", note_and_abandon)
        yield _Watched(engine, leftovers)
    engine.close()
    pg_server.drop_database(name)


def _case(program: RandomProgram) -> Case:
    case = _run(program)
    return replace(case, before=(case,)) if program.reuses else case


def _run(program: RandomProgram) -> Case:
    return Case(
        name="random",
        workflow=WorkflowRef(file="w.wf", name=None, span=_HERE),
        input=program.context,
        input_text=None,
        scripts=tuple(_script(key, results) for key, results in program.results.items()),
        steps=tuple(map(_event, program.events)),
        expect=Expectations(),
        engines=(),
        schedule=program.schedule,
        rules=(),
        known_faults={},
        span=_HERE,
    )


def _event(key: str) -> SendEvent:
    return SendEvent(
        type=key,
        source="random",
        idempotency_key=None,
        correlation_key=None,
        payload={"v": 1},
        when=None,
        after=None,
        span=_HERE,
    )


def _script(key: str, results: tuple[RandomResult, ...]) -> Script:
    """A script that never runs out: several results follow each other over and over."""
    scripted = tuple(
        ScriptedResult(
            code=result.code,
            output=result.output,
            message=None,
            takes_ms=result.takes_ms,
            span=_HERE,
        )
        for result in results
    )
    is_list = len(scripted) > 1
    return Script(
        place=key, results=scripted * (_VISITS if is_list else 1), is_list=is_list, span=_HERE
    )


def _remains(played: Played) -> Remains:
    assert not played.is_broken, played.problems
    assert played.remains is not None, played.not_started
    return played.remains


def _texts(program: RandomProgram) -> Iterator[str]:
    yield program.text
    for key, results in program.results.items():
        answers = [f"{r.code} {json_values.dumps(r.output)} {r.takes_ms} ms" for r in results]
        yield f"{key}: {', '.join(answers)}"
    if program.events:
        yield f"events {', '.join(program.events)}"
    yield f"input {json_values.dumps(program.context)}, order {program.schedule}"


_SETTINGS = settings(
    derandomize=_FUZZ is None,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def _index(program: RandomProgram, catalog: Path) -> GraphIndex:
    for text in _texts(program):
        note(text)
    compiled = compile_text(program.text, "w.wf", [catalog])
    errors = [d for d in compiled.diagnostics if d.severity == "error"]
    assert not errors, [(d.code, d.message, d.source.position(d.span.start)) for d in errors]
    return GraphIndex(compiled.specs[0])


def _played_by(check: Check, seed_number: int, count: int, *, has_waits: bool = False) -> None:
    """Draws `count` programs and checks each; the same every time, but for `make fuzz`."""
    drawn = given(program=programs(has_waits=has_waits))(check)
    drawn = settings(_SETTINGS, max_examples=count)(drawn)
    (drawn if _FUZZ else seed(seed_number)(drawn))()


@pytest.mark.parametrize("part", range(_PARTS))
def test_random_programs_leave_equal_traces(part: int, catalog: Path, postgres: _Watched) -> None:
    def check(program: RandomProgram) -> None:
        index, case = _index(program, catalog), _case(program)
        for schedule in dict.fromkeys(
            [IN_ORDER, program.schedule] if _FUZZ else [program.schedule]
        ):
            note(f"played {schedule}")
            _assert_engines_agree(index, case, schedule, postgres)

    _played_by(check, part, _COUNT // _PARTS)


def _assert_engines_agree(
    index: GraphIndex, case: Case, schedule: Schedule, watched: _Watched
) -> None:
    local = play(LocalEngine(), index, case, schedule)
    in_database = play(watched.engine, index, case, schedule)

    assert differences(_remains(local).trace, _remains(in_database).trace) == []
    assert local.visited == in_database.visited
    assert _remains(local).trace["status"] in ("SUCCEEDED", "FAILED")
    for remains in (_remains(local), _remains(in_database)):
        assert {e.status for e in remains.executions} <= _END_STATES
    assert watched.leftovers == []


def test_random_programs_leave_equal_traces_on_sql_server(catalog: Path, mssql_url: str) -> None:
    """Some of them: a call there costs more, and the cases of conformance run there too."""
    empty(mssql_url)
    engine, leftovers = MssqlEngine(mssql_url), list[tuple[str, int]]()
    abandon = DatabaseSession.abandon

    def note_and_abandon(session: DatabaseSession) -> None:
        leftovers[:] = connection.rows(_LEFTOVERS)
        abandon(session)

    def check(program: RandomProgram) -> None:
        index, case = _index(program, catalog), _case(program)
        _assert_engines_agree(index, case, program.schedule, _Watched(engine, leftovers))

    connection = open_connection(mssql_url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseSession, "abandon", note_and_abandon)
        _played_by(check, _PARTS, _COUNT // 10)
    connection.close()
    engine.close()


def _agrees_in_every_order(remains: Remains, program: RandomProgram) -> bool:
    """Whether R12 wants this result in each schedule.

    No branch failed, no script tells one visit from another, and no time is of account: with one
    worker the times at which results come depend on their order.
    """
    is_timed = any(word in program.text for word in ("timeout", "delay", "sleep", "join"))
    is_scripted = any(len(results) > 1 for results in program.results.values())
    all_went = all(row["status"] == "SUCCEEDED" for row in remains.trace["nodes"])
    return all_went and not is_timed and not is_scripted


def test_random_programs_that_wait_leave_the_same_again(catalog: Path, postgres: _Watched) -> None:
    def check(program: RandomProgram) -> None:
        index, case = _index(program, catalog), _case(program)
        once = _remains(play(postgres.engine, index, case, IN_ORDER))
        has_ended = once.trace["status"] in ("SUCCEEDED", "FAILED")
        assert has_ended or once.trace["status"] == "RUNNING"
        assert not has_ended or postgres.leftovers == []
        again = _remains(play(postgres.engine, index, case, IN_ORDER))
        assert differences(once.trace, again.trace) == []
        other = _remains(play(postgres.engine, index, case, program.schedule))
        if _agrees_in_every_order(once, program):
            assert differences(once.trace, other.trace) == []

    _played_by(check, 0, _COUNT // 5, has_waits=True)

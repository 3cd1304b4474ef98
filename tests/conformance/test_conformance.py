"""Every case passes on every engine, and the engines leave equal traces, in every schedule.

A case is one test: it is played on the local runner and in PostgreSQL, in its own order of results
and, where actions can stand open side by side, in four others (R12).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from wfsql.compare import differences
from wfsql.testing.cases import LOCAL, MSSQL, POSTGRES, REVERSE, Case, CaseFile, Schedule
from wfsql.testing.engines import Engine
from wfsql.testing.graph_index import GraphIndex
from wfsql.testing.local import LocalEngine
from wfsql.testing.mssql import MssqlEngine
from wfsql.testing.postgres import PostgresEngine
from wfsql.testing.reader import read_cases
from wfsql.testing.report import text_of
from wfsql.testing.runner import CaseResult, Runner, find_files
from wfsql.testing.workflows import Workflows

HERE = Path(__file__).parent
ORDERS = (REVERSE, *(Schedule(kind="seed", seed=number) for number in (1, 2, 3)))


def _read(path: Path) -> CaseFile:
    result = read_cases(path, path.name)
    assert result.file is not None, [(d.message, d.span) for d in result.diagnostics]
    return result.file


FILES = tuple(_read(path) for path in find_files([HERE]))
CASES = [
    pytest.param(file, case, id=f"{file.path.name.partition('.')[0]}: {case.name}")
    for file in FILES
    for case in file.cases
]


def _play(
    engine: Engine, workflows: Workflows, file: CaseFile, case: Case, schedule: Schedule
) -> CaseResult:
    result = Runner(engine, workflows, schedule, is_strict=True).run_case(file, case)
    assert result.verdict in ("passed", "skipped", "known_fault"), "\n" + text_of(result)
    return result


def _assert_equal_traces(one: CaseResult, other: CaseResult) -> None:
    assert one.played is not None
    assert other.played is not None
    if one.played.remains is None or other.played.remains is None:
        assert one.played.not_started == other.played.not_started
        return
    assert differences(one.played.remains.trace, other.played.remains.trace) == []
    assert one.played.visited == other.played.visited


def _runs_side_by_side(index: GraphIndex) -> bool:
    if not any(node.type == "ACTION" for node in index.spec.nodes):
        return False
    return any(
        node.type == "PARALLEL"
        or (node.type == "FOREACH" and node.attributes.get("parallel", 1) != 1)
        for node in index.spec.nodes
    )


def _must_agree_in_every_order(result: CaseResult, case: Case) -> bool:
    """Whether R12 wants this result in each schedule: no branch failed, no script is used up."""
    remains = result.played.remains if result.played is not None else None
    if remains is None or any(script.is_list for script in case.scripts):
        return False
    return all(row["status"] == "SUCCEEDED" for row in remains.trace["nodes"])


@pytest.mark.parametrize(("file", "case"), CASES)
def test_engines_agree(
    file: CaseFile,
    case: Case,
    workflows: Workflows,
    local_engine: LocalEngine,
    postgres_engine: PostgresEngine,
) -> None:
    engines: list[Engine] = [
        engine for engine in (local_engine, postgres_engine) if engine.name in case.engines
    ]
    own = [_play(engine, workflows, file, case, case.schedule) for engine in engines]
    if case.known_faults:
        return
    for other in own[1:]:
        _assert_equal_traces(own[0], other)
    index = own[0].index
    if index is None or not _runs_side_by_side(index):
        return
    for schedule in ORDERS:
        _compare_schedule(engines, workflows, file, case, schedule, own[0])


def _compare_schedule(
    engines: list[Engine],
    workflows: Workflows,
    file: CaseFile,
    case: Case,
    schedule: Schedule,
    own: CaseResult,
) -> None:
    """Plays another order; what is expected need not hold there, but the engines must agree."""
    runners = [Runner(engine, workflows, schedule) for engine in engines]
    results = [runner.run_case(file, case) for runner in runners]
    assert len({result.verdict for result in results}) == 1
    if any(result.played is None or result.played.is_broken for result in results):
        return  # another order may need scripts that the case does not have
    for other in results[1:]:
        _assert_equal_traces(results[0], other)
    if _must_agree_in_every_order(own, case):
        assert own.played is not None
        assert own.played.remains is not None
        assert results[0].played is not None
        assert results[0].played.remains is not None
        traces = own.played.remains.trace, results[0].played.remains.trace
        assert differences(*traces) == []


ON_MSSQL = [param for param in CASES if MSSQL in param.values[1].engines]


@pytest.mark.parametrize(("file", "case"), ON_MSSQL)
def test_sql_server_agrees(
    file: CaseFile,
    case: Case,
    workflows: Workflows,
    local_engine: LocalEngine,
    mssql_engine: MssqlEngine,
) -> None:
    """Every case that names SQL Server leaves there what the local runner leaves."""
    own = _play(mssql_engine, workflows, file, case, case.schedule)
    if not case.known_faults and LOCAL in case.engines:
        _assert_equal_traces(_play(local_engine, workflows, file, case, case.schedule), own)


def test_the_suite_has_enough_cases() -> None:
    assert len(CASES) >= 200


def test_most_cases_run_on_every_engine() -> None:
    everywhere = [
        case for file in FILES for case in file.cases if {LOCAL, POSTGRES} <= set(case.engines)
    ]
    assert len(everywhere) > len(CASES) * 0.9

"""The PostgreSQL deploy script, executed by psql as a user would, and by a driver."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import tuple_row

from compiler import json_values
from compiler.emit.plan import plan_deploy
from compiler.pipeline import compile_file
from compiler.spec import Dispatch, GraphSpec
from emit_pg.emitter import emit
from runtime_sql.scripts import RUNTIME_VERSION
from tests.unit.emit.read_back import Rows, comparable, planned_rows
from tests.unit.emit.small_specs import NODE_TYPES, action, awkward, catalog_row, edges, node, spec

EXAMPLES = Path(__file__).parents[2] / "examples"
Counts = dict[str, int]


@dataclass(frozen=True, slots=True)
class Database:
    """A database with the runtime, reached by psql for scripts and by psycopg for questions."""

    url: str
    psql: Path
    connection: psycopg.Connection[Any]

    def start(self, script: str) -> subprocess.Popen[str]:
        command = [
            str(self.psql),
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-f",
            "-",
            self.url,
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        assert process.stdin is not None
        process.stdin.write(script)
        process.stdin.close()
        process.stdin = None
        return process

    def run(self, script: str) -> tuple[int, str, str]:
        process = self.start(script)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def deploy(self, graph: GraphSpec, **options: bool) -> tuple[int, bool]:
        """Returns the version number and whether it was new, as the script's last row says."""
        code, out, err = self.run(emit(graph, **options))
        assert code == 0, err
        _version_id, number, was_new = out.strip().splitlines()[-1].split("|")
        return int(number), was_new == "t"

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(query, values).fetchall()  # type: ignore[arg-type]

    def counts(self) -> Counts:
        tables = self.ask("select tablename from pg_tables where schemaname = 'wf' order by 1")
        return {t: self.ask(f"select count(*) from wf.{t}")[0][0] for (t,) in tables}

    def versions(self, name: str) -> list[tuple[int, bool]]:
        return self.ask(
            "select v.version_no, v.is_active from wf.workflow_version v"
            " join wf.workflow_def d using (workflow_def_id) where d.name = %s order by 1",
            name,
        )


@pytest.fixture
def database(pg_url: str, psql: Path) -> Iterator[Database]:
    with psycopg.connect(pg_url, autocommit=True, row_factory=tuple_row) as connection:
        yield Database(url=pg_url, psql=psql, connection=connection)


def changed(graph: GraphSpec) -> GraphSpec:
    """The same workflow with other content."""
    attributes = graph.nodes[-1].attributes | {"priority": 9}
    last = graph.nodes[-1].model_copy(update={"attributes": attributes})
    return graph.model_copy(update={"nodes": [*graph.nodes[:-1], last]})


@pytest.mark.parametrize("name", NODE_TYPES)
def test_a_second_run_changes_no_row_count(name: str, database: Database) -> None:
    assert database.deploy(NODE_TYPES[name]) == (1, True)
    before = database.counts()
    assert database.deploy(NODE_TYPES[name]) == (1, False)
    assert database.counts() == before


def test_the_rows_in_the_database_are_the_rows_of_the_plan(database: Database) -> None:
    plan = plan_deploy(awkward())
    database.deploy(awkward())
    stored = {}
    for insert in plan.inserts:
        columns = ", ".join(
            f"{c.name}::text" if c.kind == "json" else c.name for c in insert.table.columns
        )
        rows = database.ask(f"select {columns} from wf.{insert.table.name} ")
        names = [c.name for c in insert.table.columns]
        stored[insert.table.name] = [dict(zip(names, row, strict=True)) for row in rows]
    assert _sorted(comparable(stored)) == _sorted(comparable(planned_rows(plan)))


def _sorted(rows: Rows) -> Rows:
    return {table: sorted(found, key=repr) for table, found in rows.items()}


def test_notes_keep_every_character(database: Database) -> None:
    database.deploy(awkward())
    [(description, source_map)] = database.ask(
        "select d.description, v.source_map::text from wf.workflow_def d"
        " join wf.workflow_version v using (workflow_def_id)"
    )
    assert description == awkward().description
    assert json_values.loads(source_map)["file"] == "it's $(x).wf"


def test_new_content_is_a_new_active_version_and_the_old_rows_stay(database: Database) -> None:
    graph = NODE_TYPES["foreach"]
    rows_of_first = (
        "select md5(string_agg(n::text, '|' order by n.node_id)) from wf.workflow_node n"
        " join wf.workflow_version v using (workflow_version_id) where v.version_no = 1"
    )
    database.deploy(graph)
    before = database.ask(rows_of_first)
    assert database.deploy(changed(graph)) == (2, True)
    assert database.versions("each") == [(1, False), (2, True)]
    assert database.ask(rows_of_first) == before


def test_deploying_known_content_makes_it_active_again(database: Database) -> None:
    graph = NODE_TYPES["foreach"]
    database.deploy(graph)
    database.deploy(changed(graph))
    assert database.deploy(graph) == (1, False)
    assert database.versions("each") == [(1, True), (2, False)]


def test_a_deploy_without_activation_leaves_the_active_version(database: Database) -> None:
    graph = NODE_TYPES["foreach"]
    database.deploy(graph)
    database.deploy(changed(graph), activate=False)
    assert database.versions("each") == [(1, True), (2, False)]


def test_other_positions_and_descriptions_are_no_new_version(database: Database) -> None:
    graph = NODE_TYPES["action"]
    database.deploy(graph)
    moved = graph.model_copy(update={"source_map": None, "description": "said better"})
    assert database.deploy(moved) == (1, False)
    assert database.ask("select description from wf.workflow_def") == [("said better",)]


def test_a_failing_statement_leaves_nothing_behind_even_when_psql_goes_on(
    database: Database,
) -> None:
    before = database.counts()
    script = emit(NODE_TYPES["foreach"]).replace("'FOREACH'", "'FOREVER'")
    without_stop = [str(database.psql), "-X", "-q", "-f", "-", database.url]
    done = subprocess.run(
        without_stop, input=script, capture_output=True, text=True, encoding="utf-8", timeout=60
    )
    assert "ck_workflow_node_type" in done.stderr
    assert database.counts() == before


def test_with_on_error_stop_psql_says_that_the_deploy_failed(database: Database) -> None:
    code, _out, err = database.run(emit(NODE_TYPES["if"]).replace("'THEN'", "'BODY'"))
    assert code == 3
    assert "WF608: node if_1, of type IF, has an edge of kind BODY" in err


def _with_dispatch(dispatch: Dispatch) -> GraphSpec:
    nodes = [node("r", "SEQUENCE"), action("a", name="x.y")]
    actions = [catalog_row("x.y", dispatch=dispatch)]
    return spec("dispatching", nodes, edges(("r", "a", "SEQUENCE")), actions=actions)


def test_another_dispatch_of_a_known_action_is_refused(database: Database) -> None:
    database.deploy(_with_dispatch(Dispatch()))
    code, _out, err = database.run(emit(_with_dispatch(Dispatch(max_per_worker=3))))
    assert code == 3
    assert "20010" in err
    assert database.ask("select max_per_worker from wf.workflow_action") == [(None,)]


def test_another_dispatch_is_taken_over_when_the_deploy_says_so(database: Database) -> None:
    database.deploy(_with_dispatch(Dispatch()))
    database.deploy(_with_dispatch(Dispatch(max_per_worker=3)), update_actions=True)
    assert database.ask("select max_per_worker from wf.workflow_action") == [(3,)]


def test_a_driver_runs_the_script_in_one_call(database: Database) -> None:
    database.connection.execute(emit(awkward()).encode())
    assert database.versions("awkward") == [(1, True)]


def test_four_deploys_of_one_content_at_once_make_one_version(database: Database) -> None:
    script = emit(NODE_TYPES["switch"])
    processes = [database.start(script) for _ in range(4)]
    ends = [(p.communicate(timeout=60), p.returncode) for p in processes]
    assert [code for _, code in ends] == [0] * 4, ends
    assert database.versions("cases") == [(1, True)]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.wf")), ids=lambda path: path.stem)
def test_every_example_deploys_twice(path: Path, database: Database) -> None:
    [graph] = compile_file(path).specs
    assert database.deploy(graph) == (1, True)
    before = database.counts()
    assert database.deploy(graph) == (1, False)
    assert database.counts() == before


WHOLE = Path(__file__).parents[1] / "unit" / "compiler" / "programs" / "whole" / "whole.wf"


def test_all_of_the_language_deploys(database: Database) -> None:
    one, two = compile_file(WHOLE).specs
    assert (database.deploy(one), database.deploy(two)) == ((1, True), (1, True))


def test_a_script_is_refused_by_an_older_runtime(pg_url: str) -> None:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        version = connection.execute("select wf.wf_runtime_version()").fetchone()
        assert version == (RUNTIME_VERSION,)
        connection.execute("select wf.wf_require_runtime(%s)", version)
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("select wf.wf_require_runtime(%s)", (RUNTIME_VERSION + 1,))
    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (
        "WA006",
        f"this script needs runtime version {RUNTIME_VERSION + 1}, the database has"
        f" {RUNTIME_VERSION}",
    )

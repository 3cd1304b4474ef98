"""A database with the runtime's SQL, and a builder of small graphs and execution trees in it.

The builder writes the rows that publishing and the engine would write, derived columns included,
so that the routines below the engine can be tested on their own. Each test runs in a transaction
that is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest

from compiler import json_values

if TYPE_CHECKING:
    from wfsql.embedded import EmbeddedServer

LOOPS = ("FOREACH", "REPEAT", "WHILE")
CONTENT_HASH = "0123456789abcdef" * 4


class GraphDatabase:
    """One workflow `w` with one instance, in one open transaction."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.nodes: dict[str, dict[str, Any]] = {}
        self.executions: dict[int, dict[str, Any]] = {}
        self.rows("insert into wf.workflow_def (name) values (%s)", "w")
        (self.version_id,) = self.row(
            "insert into wf.workflow_version"
            " (workflow_def_id, version_no, content_hash, spec_format)"
            " select workflow_def_id, 1, %s, 1 from wf.workflow_def returning workflow_version_id",
            CONTENT_HASH,
        )
        (self.instance_id,) = self.row(
            "insert into wf.workflow_instance"
            " (workflow_def_id, workflow_version_id, spec_format, status, created_at)"
            " select workflow_def_id, workflow_version_id, 1, 'RUNNING', now()"
            "  from wf.workflow_version returning workflow_instance_id"
        )
        self.context({})

    # SQL --------------------------------------------------------------------------------------

    def rows(self, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement, arguments)
        return cursor.fetchall() if cursor.description else []

    def row(self, statement: str, *arguments: Any) -> tuple[Any, ...]:
        return self.rows(statement, *arguments)[0]

    # Definition -------------------------------------------------------------------------------

    def node(
        self,
        key: str,
        type: str,
        parent: str | None = None,
        edge: str = "SEQUENCE",
        **attributes: Any,
    ) -> int:
        """Adds a node as the next child of its parent; loop bodies and branches are generated."""
        above = self.nodes.get(parent or "")
        order = None
        if above is not None:
            order = above["child_count"]
            above["child_count"] += 1
        is_body = above is not None and edge == "BODY" and above["type"] in LOOPS
        generated = edge in ("BODY", "THEN", "ELSE", "CASE", "DEFAULT")
        if type == "ACTION":
            self.rows(
                "insert into wf.workflow_action (action_name, capability) values ('a.b', 'c')"
                " on conflict do nothing"
            )
            self.rows(
                "insert into wf.workflow_action_revision (action_name, revision)"
                " values ('a.b', %s) on conflict do nothing",
                CONTENT_HASH,
            )
        action = ("a.b", CONTENT_HASH) if type == "ACTION" else (None, None)
        (node_id,) = self.row(
            "insert into wf.workflow_node (workflow_version_id, node_key, node_type,"
            " is_generated, action_name, action_revision, attributes_json, parent_node_id,"
            " parent_type, edge_kind, child_order, is_loop_body, depth, opens_scope)"
            " values (%s, %s, %s, %s, %s, %s, %s::jsonb, %s, %s, %s, %s, %s, %s, %s)"
            " returning node_id",
            self.version_id,
            key,
            type,
            generated,
            *action,
            json_values.dumps(attributes),
            None if above is None else above["id"],
            None if above is None else above["type"],
            None if above is None else edge,
            order,
            is_body,
            0 if above is None else above["depth"] + 1,
            above is None or is_body,
        )
        self.nodes[key] = {
            "id": node_id,
            "type": type,
            "child_count": 0,
            "depth": 0 if above is None else above["depth"] + 1,
            "opens_scope": above is None or is_body,
        }
        if above is None:
            self.rows("update wf.workflow_version set root_node_id = %s", node_id)
        return int(node_id)

    def variable(
        self,
        owner: str,
        name: str,
        kind: str = "var",
        program: Any = None,
        type_id: int | None = None,
        required: bool = False,
    ) -> None:
        (order,) = self.row(
            "select count(*) from wf.node_scope_default"
            " where owner_key = %s and variable_kind = %s",
            owner,
            kind,
        )
        self.rows(
            "insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order,"
            " name, variable_kind, type_id, is_required, program_json, node_id)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s::jsonb, %s)",
            self.version_id,
            owner,
            order,
            name,
            kind,
            type_id,
            required,
            None if program is None else json_values.dumps(program),
            self.nodes[owner]["id"],
        )

    def type_rows(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Adds rows (id, parent, kind, name, base, required, nullable, enum) of the type table."""
        for *plain, enum in rows:
            self.rows(
                "insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind,"
                " name, base_type, is_required, is_nullable, enum_json)"
                " values (%s, %s, %s, %s, %s, %s, %s, %s, %s::jsonb)",
                self.version_id,
                *plain,
                None if enum is None else json_values.dumps(enum),
            )

    # Run time ---------------------------------------------------------------------------------

    def context(self, context: Any, event: Any = None) -> None:
        self.rows(
            "insert into wf.execution_context (workflow_instance_id, context_json, event_json)"
            " values (%s, %s::jsonb, %s::jsonb) on conflict (workflow_instance_id)"
            " do update set context_json = excluded.context_json, event_json = excluded.event_json",
            self.instance_id,
            json_values.dumps(context),
            None if event is None else json_values.dumps(event),
        )

    def execution(
        self,
        key: str,
        parent: int = 0,
        iteration: int = 0,
        status: str = "RUNNING",
        result_code: int | None = None,
        output: Any = None,
    ) -> int:
        """Adds an execution, with its scope when its node opens one."""
        node = self.nodes[key]
        (execution_id,) = self.row("select nextval('wf.node_execution_id_seq')")
        outer = self.executions[parent]["scope"] if parent else 0
        scope = execution_id if node["opens_scope"] else outer
        self.rows(
            "insert into wf.node_execution (node_execution_id, workflow_instance_id,"
            " parent_execution_id, node_id, iteration_no, scope_id, status, attempt_no,"
            " result_code, output_json, created_at)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s::jsonb, now())",
            execution_id,
            self.instance_id,
            parent,
            node["id"],
            iteration,
            scope,
            status,
            1 if node["type"] == "ACTION" else 0,
            result_code,
            None if output is None else json_values.dumps(output),
        )
        if node["opens_scope"]:
            self.rows(
                "insert into wf.scope values (%s, %s, %s, %s)",
                execution_id,
                outer,
                self.instance_id,
                key,
            )
        if not parent:
            self.rows("update wf.workflow_instance set root_execution_id = %s", execution_id)
        self.executions[execution_id] = {"scope": scope}
        return int(execution_id)

    def give(self, scope_id: int, **values: Any) -> None:
        """Writes variables into a scope."""
        for name, value in values.items():
            self.rows(
                "insert into wf.scope_variable values (%s, %s, %s::jsonb)",
                scope_id,
                name,
                json_values.dumps(value),
            )

    def template(self, key: str, template: Any, programs: dict[str, Any]) -> None:
        """Gives an ACTION its input: a template, and programs by their pointer."""
        self.rows(
            "insert into wf.workflow_input_template values (%s, %s, %s::jsonb)",
            self.version_id,
            key,
            json_values.dumps(template),
        )
        for pointer, program in programs.items():
            self.rows(
                "insert into wf.workflow_input_binding"
                " (workflow_version_id, node_key, pointer, program_json, path, node_id)"
                " values (%s, %s, %s, %s::jsonb, %s, %s)",
                self.version_id,
                key,
                pointer,
                json_values.dumps(program),
                pointer.split("/")[1:],
                self.nodes[key]["id"],
            )

    def attribute(self, key: str, **attributes: Any) -> None:
        """Replaces the attributes of a node."""
        self.rows(
            "update wf.workflow_node set attributes_json = %s::jsonb where node_key = %s",
            json_values.dumps(attributes),
            key,
        )

    def variables(self, scope_id: int) -> dict[str, Any]:
        """Returns the variables of a scope by name."""
        return dict(
            self.rows(
                "select name, value_json from wf.scope_variable where scope_id = %s", scope_id
            )
        )

    # What is tested ---------------------------------------------------------------------------

    def answer(self, routine: str, **arguments: Any) -> Any:
        """Returns the value_json of a routine, or (error_code, error_message)."""
        return outcome(*self.call(routine, "value_json::text error_code error_message", arguments))

    def call(self, routine: str, columns: str, arguments: dict[str, Any]) -> tuple[Any, ...]:
        """Returns columns of the row that a routine answers to arguments given by name."""
        named = ", ".join(f"p_{name} => %s" for name in arguments)
        return self.row(
            f"select {columns.replace(' ', ', ')} from wf.{routine}({named})", *arguments.values()
        )

    def evaluate(
        self,
        program: Any,
        execution_id: int,
        output: Any = None,
        code: Any = None,
        event: Any = None,
        unset_is_null: bool = False,
    ) -> Any:
        """Evaluates one program: its value, or (error_code, error_message)."""
        return self.answer(
            "wf_eval_expression",
            program=json_values.dumps(program),
            execution_id=execution_id,
            output_json=None if output is None else json_values.dumps(output),
            result_code=code,
            event_json=None if event is None else json_values.dumps(event),
            unset_is_null=unset_is_null,
        )

    def evaluate_all(self, programs: Sequence[Any], execution_id: int) -> list[Any]:
        """Evaluates many programs in one statement."""
        return [
            outcome(*row)
            for row in self.rows(
                "select r.value_json::text, r.error_code, r.error_message"
                "  from unnest(%s::text[]) with ordinality p(program, ordinal)"
                " cross join lateral wf.wf_eval_expression(p.program::jsonb, %s) r"
                " order by p.ordinal",
                [json_values.dumps(program) for program in programs],
                execution_id,
            )
        ]

    def set_variable(self, scope_id: int, owner_key: str, name: str, value: Any) -> bool:
        """Writes a variable as `set` does; answers whether its scope is open."""
        (is_set,) = self.row(
            "select wf.wf_set_scope_variable(%s, %s, %s, %s::jsonb)",
            scope_id,
            owner_key,
            name,
            json_values.dumps(value),
        )
        return bool(is_set)

    def compiled(self, text: str, key: str) -> Any:
        """Returns the program of a template string of a node, or (error_code, error_message)."""
        program, code, message = self.row(
            "select program_json::text, error_code, error_message"
            "  from wf.wf_compile_template_string(%s, %s, %s)",
            text,
            self.version_id,
            self.nodes[key]["id"],
        )
        return outcome(program, code, message)

    def template_bindings(self, template: str) -> list[tuple[str, list[str], str]]:
        """Returns (pointer, path, text) of the strings that hold a placeholder."""
        return self.rows(  # type: ignore[return-value]
            'select * from wf.wf_template_bindings(%s::jsonb) order by pointer collate "C"',
            template,
        )

    def misfit(self, type_id: int, value: Any) -> str | None:
        """Returns what is wrong with an input `x` by its type, or None."""
        (text,) = self.row(
            "select wf.wf_check_value_type(%s, %s, %s::jsonb, 'x')",
            self.version_id,
            type_id,
            json_values.dumps(value),
        )
        return None if text is None else str(text)

    def start(self, context: Any, root_execution_id: int) -> tuple[Any, ...]:
        """Opens the instance's scope before the root has an execution: its error, twice None."""
        self.context(context)
        return self.row(
            "select * from wf.wf_init_instance_scope_from_context(%s, %s)",
            self.instance_id,
            root_execution_id,
        )

    def open_scopes(self, execution_ids: list[int]) -> list[tuple[Any, ...]]:
        """Fills the scopes of executions: (execution, code, message) of those that failed."""
        return self.rows("select * from wf.wf_open_scopes(%s)", execution_ids)


def outcome(value: str | None, code: int | None, message: str | None) -> Any:
    if code is not None:
        assert value is None
        return (code, message)
    return None if value is None else json_values.loads(value)


@pytest.fixture(scope="module")
def runtime_connection(
    pg_server: EmbeddedServer, pg_template: str
) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a database with the runtime, never committed to."""
    name = f"routines_{uuid4().hex}"
    with psycopg.connect(pg_server.create_database(name, pg_template)) as connection:
        yield connection
    pg_server.drop_database(name)


@pytest.fixture
def database(runtime_connection: psycopg.Connection[Any]) -> Iterator[GraphDatabase]:
    """A workflow and an instance without nodes; all of it is rolled back."""
    try:
        yield GraphDatabase(runtime_connection)
    finally:
        runtime_connection.rollback()


@pytest.fixture(params=["pg", "sql_server"])
def any_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database with the runtime, on PostgreSQL and on SQL Server."""
    if request.param == "pg":
        return str(request.getfixturevalue("pg_url"))
    from tests.runtime_sql.tsql import empty

    url = str(request.getfixturevalue("mssql_url"))
    empty(url)
    return url


@pytest.fixture(params=["pg", "sql_server"])
def rolled_back(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a database with the runtime that has lost, after the test, what it did: on
    PostgreSQL to the module's, in a transaction, on SQL Server to one that was emptied before."""
    from tests.runtime_sql import drive
    from tests.runtime_sql.tsql import empty

    if request.param == "pg":
        database = str(request.getfixturevalue("module_url"))
        with drive.connect(database) as opened, opened.transaction(force_rollback=True):
            yield opened
        return
    url = str(request.getfixturevalue("mssql_url"))
    empty(url)
    with drive.connect(url) as opened:
        yield opened


@pytest.fixture(scope="module")
def module_url(pg_server: EmbeddedServer, pg_template: str) -> Iterator[str]:
    """The URL of a PostgreSQL database with the runtime, for all tests of a module."""
    name = f"module_{uuid4().hex}"
    yield pg_server.create_database(name, pg_template)
    pg_server.drop_database(name)

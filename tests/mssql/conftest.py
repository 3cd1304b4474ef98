"""The runtime's routines on the server that WF_MSSQL_URL names, with the builder of small graphs.

The builder is that of tests/runtime_sql with other words, so that one table of cases serves both
dialects. Each test runs in a transaction that is rolled back. Without WF_MSSQL_URL the tests are
skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from compiler import json_values
from tests.runtime_sql.conftest import CONTENT_HASH, LOOPS, GraphDatabase, outcome
from tests.runtime_sql.tsql import empty

OUTPUTS = {
    "value_json": "nvarchar(max)",
    "program_json": "nvarchar(max)",
    "error_code": "int",
    "error_message": "nvarchar(max)",
    "misfit": "nvarchar(max)",
    "is_set": "bit",
}


def execute(connection: Any, statement: str, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Runs one batch and returns the rows of its last result set."""
    found: list[tuple[Any, ...]] = []
    with connection.cursor() as cursor:
        cursor.execute(statement, arguments)
        while True:
            if cursor.description:
                found = [tuple(row) for row in cursor.fetchall()]
            if not cursor.nextset():
                return found


class MssqlGraphDatabase(GraphDatabase):
    """The same small graphs in T-SQL."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.nodes = {}
        self.executions = {}
        (def_id,) = self.row(
            "insert into wf.workflow_def (name) output inserted.workflow_def_id values ('w')"
        )
        (self.version_id,) = self.row(
            "insert into wf.workflow_version"
            " (workflow_def_id, version_no, content_hash, spec_format)"
            " output inserted.workflow_version_id values (%s, 1, %s, 1)",
            def_id,
            CONTENT_HASH,
        )
        (self.instance_id,) = self.row(
            "insert into wf.workflow_instance"
            " (workflow_def_id, workflow_version_id, spec_format, status, created_at)"
            " output inserted.workflow_instance_id values (%s, %s, 1, 'RUNNING', wf.wf_now())",
            def_id,
            self.version_id,
        )
        self.context({})

    def rows(self, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
        return execute(self.connection, statement, arguments)

    # Definition -------------------------------------------------------------------------------

    def node(
        self,
        key: str,
        type: str,
        parent: str | None = None,
        edge: str = "SEQUENCE",
        **attributes: Any,
    ) -> int:
        above = self.nodes.get(parent or "")
        order = None
        if above is not None:
            order = above["child_count"]
            above["child_count"] += 1
        is_body = above is not None and edge == "BODY" and above["type"] in LOOPS
        if type == "ACTION":
            self.rows(
                "if not exists (select 1 from wf.workflow_action where action_name = 'a.b')"
                " insert into wf.workflow_action (action_name, capability) values ('a.b', 'c');"
                " if not exists (select 1 from wf.workflow_action_revision"
                " where action_name = 'a.b') insert into wf.workflow_action_revision"
                " (action_name, revision) values ('a.b', %s)",
                CONTENT_HASH,
            )
        action = ("a.b", CONTENT_HASH) if type == "ACTION" else (None, None)
        depth = 0 if above is None else above["depth"] + 1
        (node_id,) = self.row(
            "insert into wf.workflow_node (workflow_version_id, node_key, node_type,"
            " is_generated, action_name, action_revision, attributes_json, parent_node_id,"
            " parent_type, edge_kind, child_order, is_loop_body, depth, opens_scope)"
            " output inserted.node_id"
            " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            self.version_id,
            key,
            type,
            edge in ("BODY", "THEN", "ELSE", "CASE", "DEFAULT"),
            *action,
            json_values.dumps(attributes),
            None if above is None else above["id"],
            None if above is None else above["type"],
            None if above is None else edge,
            order,
            is_body,
            depth,
            above is None or is_body,
        )
        self.nodes[key] = {
            "id": node_id,
            "type": type,
            "child_count": 0,
            "depth": depth,
            "opens_scope": above is None or is_body,
        }
        if above is None:
            self.rows(
                "update wf.workflow_version set root_node_id = %s where workflow_version_id = %s",
                node_id,
                self.version_id,
            )
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
        self.rows(
            "insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order,"
            " name, variable_kind, type_id, is_required, program_json, node_id)"
            " select %s, %s, count(*), %s, %s, %s, %s, %s, %s from wf.node_scope_default as d"
            "  where d.owner_key = %s and d.variable_kind = %s",
            self.version_id,
            owner,
            name,
            kind,
            type_id,
            required,
            None if program is None else json_values.dumps(program),
            self.nodes[owner]["id"],
            owner,
            kind,
        )

    def type_rows(self, rows: Sequence[tuple[Any, ...]]) -> None:
        for *plain, enum in rows:
            self.rows(
                "insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind,"
                " name, base_type, is_required, is_nullable, enum_json)"
                " values (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                self.version_id,
                *plain,
                None if enum is None else json_values.dumps(enum),
            )

    def template(self, key: str, template: Any, programs: dict[str, Any]) -> None:
        self.rows(
            "insert into wf.workflow_input_template values (%s, %s, %s)",
            self.version_id,
            key,
            json_values.dumps(template),
        )
        for pointer, program in programs.items():
            self.rows(
                "insert into wf.workflow_input_binding"
                " (workflow_version_id, node_key, pointer, program_json, path, node_id)"
                " values (%s, %s, %s, %s, %s, %s)",
                self.version_id,
                key,
                pointer,
                json_values.dumps(program),
                json_values.dumps(pointer.split("/")[1:]),
                self.nodes[key]["id"],
            )

    def attribute(self, key: str, **attributes: Any) -> None:
        self.rows(
            "update wf.workflow_node set attributes_json = %s where node_id = %s",
            json_values.dumps(attributes),
            self.nodes[key]["id"],
        )

    # Run time ---------------------------------------------------------------------------------

    def context(self, context: Any, event: Any = None) -> None:
        self.rows(
            "delete from wf.execution_context where workflow_instance_id = %s;"
            " insert into wf.execution_context (workflow_instance_id, context_json, event_json)"
            " values (%s, %s, %s)",
            self.instance_id,
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
        node = self.nodes[key]
        (execution_id,) = self.row("select next value for wf.node_execution_id_seq")
        outer = self.executions[parent]["scope"] if parent else 0
        scope = execution_id if node["opens_scope"] else outer
        self.rows(
            "insert into wf.node_execution (node_execution_id, workflow_instance_id,"
            " parent_execution_id, node_id, iteration_no, scope_id, status, attempt_no,"
            " result_code, output_json, created_at)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, wf.wf_now())",
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
        self.executions[execution_id] = {"scope": scope}
        return int(execution_id)

    def give(self, scope_id: int, **values: Any) -> None:
        for name, value in values.items():
            self.rows(
                "insert into wf.scope_variable values (%s, %s, %s)",
                scope_id,
                name,
                json_values.dumps(value),
            )

    def variables(self, scope_id: int) -> dict[str, Any]:
        rows = self.rows(
            "select name, value_json from wf.scope_variable where scope_id = %s", scope_id
        )
        return {name: json_values.loads(value) for name, value in rows}

    # What is tested ---------------------------------------------------------------------------

    def answer(self, routine: str, **arguments: Any) -> Any:
        return outcome(*self.call(routine, "value_json error_code error_message", arguments))

    def call(self, routine: str, columns: str, arguments: dict[str, Any]) -> tuple[Any, ...]:
        """Executes a procedure and returns its output parameters."""
        names = columns.split()
        declared = " ".join(f"declare @{name} {OUTPUTS[name]};" for name in names)
        given = [f"@{name} = %s" for name in arguments]
        given += [f"@{name} = @{name} output" for name in names]
        return self.row(
            f"{declared} exec wf.{routine} {', '.join(given)};"
            f" select {', '.join('@' + name for name in names)}",
            *arguments.values(),
        )

    def evaluate_all(self, programs: Sequence[Any], execution_id: int) -> list[Any]:
        """Evaluates many programs in one batch."""
        rows = self.rows(
            "declare @programs nvarchar(max) = %s, @execution_id bigint = %s;"
            " declare @at int = 0, @size int = (select count(*) from openjson(@programs));"
            " declare @program nvarchar(max), @v nvarchar(max), @c int, @m nvarchar(max);"
            " declare @found table (place int, v nvarchar(max), c int, m nvarchar(max));"
            " declare @all table (place int not null primary key, program nvarchar(max));"
            " insert into @all select cast([key] as int), value from openjson(@programs);"
            " while @at < @size begin"
            "  select @program = program from @all where place = @at;"
            "  exec wf.wf_eval_expression @program = @program, @execution_id = @execution_id,"
            "   @value_json = @v output, @error_code = @c output, @error_message = @m output;"
            "  insert into @found values (@at, @v, @c, @m); set @at = @at + 1; end;"
            " select v, c, m from @found order by place",
            json_values.dumps(list(programs)),
            execution_id,
        )
        return [outcome(*row) for row in rows]

    def set_variable(self, scope_id: int, owner_key: str, name: str, value: Any) -> bool:
        (is_set,) = self.call(
            "wf_set_scope_variable",
            "is_set",
            {
                "scope_id": scope_id,
                "owner_key": owner_key,
                "name": name,
                "value": json_values.dumps(value),
            },
        )
        return bool(is_set)

    def compiled(self, text: str, key: str) -> Any:
        row = self.call(
            "wf_compile_template_string",
            "program_json error_code error_message",
            {"text": text, "version_id": self.version_id, "node_id": self.nodes[key]["id"]},
        )
        return outcome(*row)

    def template_bindings(self, template: str) -> list[tuple[str, list[str], str]]:
        rows = self.rows(
            "select pointer, path, text_value from wf.wf_template_bindings(%s) order by pointer",
            template,
        )
        return [(pointer, json_values.loads(path), text) for pointer, path, text in rows]

    def misfit(self, type_id: int, value: Any) -> str | None:
        (text,) = self.call(
            "wf_check_value_type",
            "misfit",
            {
                "version_id": self.version_id,
                "type_id": type_id,
                "value": json_values.dumps(value),
                "name": "x",
            },
        )
        return None if text is None else str(text)

    def start(self, context: Any, root_execution_id: int) -> tuple[Any, ...]:
        self.context(context)
        return self.call(
            "wf_init_instance_scope_from_context",
            "error_code error_message",
            {"instance_id": self.instance_id, "root_execution_id": root_execution_id},
        )

    def open_scopes(self, execution_ids: list[int]) -> list[tuple[Any, ...]]:
        return self.rows(
            "create table #open (ordinal int not null, node_execution_id bigint not null,"
            " error_code int null, error_message nvarchar(max) null);"
            " insert into #open (ordinal, node_execution_id)"
            " select cast(e.[key] as int), cast(e.value as bigint) from openjson(%s) as e;"
            " exec wf.wf_open_scopes;"
            " select o.node_execution_id, o.error_code, o.error_message from #open as o"
            "  where o.error_code is not null order by o.ordinal; drop table #open",
            json_values.dumps(execution_ids),
        )


def connect(url: str) -> Any:
    """Opens a connection that begins a transaction by itself."""
    pytds = pytest.importorskip("pytds", reason="python-tds is not installed")
    parts = urlsplit(url)
    return pytds.connect(
        parts.hostname,
        parts.path.lstrip("/"),
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        port=parts.port or 1433,
        autocommit=False,
    )


@pytest.fixture(scope="session")
def mssql_connection(mssql_url: str) -> Iterator[Any]:
    """A connection to a database with the runtime, in which no other test left anything."""
    empty(mssql_url)
    with connect(mssql_url) as connection:
        yield connection


@pytest.fixture
def database(mssql_connection: Any) -> Iterator[MssqlGraphDatabase]:
    """A workflow and an instance without nodes; all of it is rolled back."""
    try:
        yield MssqlGraphDatabase(mssql_connection)
    finally:
        mssql_connection.rollback()

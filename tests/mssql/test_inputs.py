"""wf.wf_build_inputs: the inputs of many ACTIONs at once, as a set where bindings are variables."""

from __future__ import annotations

from typing import Any

import pytest

from compiler import json_values
from tests.mssql.conftest import MssqlGraphDatabase


@pytest.fixture
def actions(database: MssqlGraphDatabase) -> list[int]:
    """Two executions of an ACTION whose input is `x` from variable `n`, beside what is fixed."""
    database.node("w", "SEQUENCE")
    database.node("a", "ACTION", "w")
    root = database.execution("w")
    executions = [database.execution("a", root, i) for i in range(2)]
    database.give(root, n=41)
    database.template(
        "a", {"x": None, "keep": ["é", None], "x ": 2}, {"/x": [["var", "n", "w", []]]}
    )
    database.rows(
        "update wf.workflow_node set has_plain_inputs = 1 where node_id = %s",
        database.nodes["a"]["id"],
    )
    database.rows(
        "update wf.workflow_input_binding set variable_name = 'n', variable_owner = 'w'"
        " where node_id = %s",
        database.nodes["a"]["id"],
    )
    return executions


def built(database: MssqlGraphDatabase, executions: list[int]) -> list[Any]:
    rows = database.rows(
        "create table #input (node_execution_id bigint not null primary key,"
        " value_json nvarchar(max) null, error_code int null, error_message nvarchar(max) null);"
        " insert into #input (node_execution_id)"
        " select cast(e.value as bigint) from openjson(%s) as e; exec wf.wf_build_inputs;"
        " select value_json, error_code, error_message from #input order by node_execution_id;"
        " drop table #input",
        json_values.dumps(executions),
    )
    return [
        (code, text) if value is None else json_values.loads(value) for value, code, text in rows
    ]


def test_a_variable_replaces_the_member_of_the_template_with_this_very_key(
    database: MssqlGraphDatabase, actions: list[int]
) -> None:
    assert built(database, actions) == [{"x": 41, "keep": ["é", None], "x ": 2}] * 2


def test_a_large_value_is_built_apart_and_alike(
    database: MssqlGraphDatabase, actions: list[int]
) -> None:
    database.rows("update wf.scope_variable set value_json = %s", f'"{"y" * 5_000}"')
    assert [value["x"] for value in built(database, actions)] == ["y" * 5_000] * 2


def test_a_variable_without_a_value_is_the_error_of_each_execution(
    database: MssqlGraphDatabase, actions: list[int]
) -> None:
    database.rows("delete from wf.scope_variable")
    assert built(database, actions) == [(10001, "var.n is not there")] * 2

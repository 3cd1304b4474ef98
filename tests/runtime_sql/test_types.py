"""The type table, the start context and the opening of scopes in a database.

tests/mssql/test_types.py runs these cases on SQL Server; here they run in PostgreSQL.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.spec import TypeRow
from local_runner.type_table import check_inputs, load_types
from local_runner.values import EngineError

if TYPE_CHECKING:
    from tests.runtime_sql.conftest import GraphDatabase

# id, parent, kind, name, base, required, nullable, enum
ROWS: list[tuple[Any, ...]] = [
    (1, None, "root", None, "string", True, False, None),
    (2, None, "root", None, "int", True, True, None),
    (3, None, "root", None, "number", True, False, None),
    (4, None, "root", None, "bool", True, False, None),
    (5, None, "root", None, "any", True, False, None),
    (6, None, "root", None, "string", True, True, ["eu", 'u"s']),
    (7, None, "root", None, "list", True, False, None),
    (8, 7, "item", None, "object", True, False, None),
    (9, 8, "field", "sku", "string", True, False, None),
    (10, 8, "field", "qty", "int", False, True, None),
    (11, 8, "field", "odd key", "list", False, False, None),
    (12, 11, "item", None, "bool", True, False, None),
]


@pytest.fixture
def typed(database: GraphDatabase) -> GraphDatabase:
    database.node("w", "SEQUENCE")
    database.type_rows(ROWS)
    return database


def misfit(database: GraphDatabase, type_id: int, value: Any) -> str | None:
    return database.misfit(type_id, value)


@pytest.mark.parametrize(
    ("type_id", "value", "expected"),
    [
        (1, "", None),
        (1, None, "must be string, not null"),
        (1, 1, "must be string, not integer"),
        (2, 2**70, None),
        (2, None, None),
        (2, Decimal("1.0"), "must be an integer or null, not decimal"),
        (2, True, "must be an integer or null, not boolean"),
        (3, 1, None),
        (3, Decimal("0.5"), None),
        (3, "1", "must be a number, not string"),
        (4, False, None),
        (4, 0, "must be a boolean, not integer"),
        (5, None, None),
        (5, {"a": [1]}, None),
        (6, "eu", None),
        (6, None, None),
        (6, "EU", 'must be one of "eu", "u\\"s" or null'),
        (6, 3, 'must be one of "eu", "u\\"s" or null'),
        (7, [], None),
        (7, {}, "must be a list, not object"),
    ],
)
def test_a_value_fits_its_type_or_is_told_what_it_must_be(
    typed: GraphDatabase, type_id: int, value: Any, expected: str | None
) -> None:
    assert misfit(typed, type_id, value) == (expected and f"input x: {expected}")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([{"sku": "a", "surplus": 1}], None),
        ([{"sku": "a", "qty": None}], None),
        ([1], "[0]: must be an object, not integer"),
        ([{"sku": "a"}, {}], "[1].sku: is missing"),
        ([{"sku": "a", "qty": "1"}], "[0].qty: must be an integer or null, not string"),
        (
            [{"sku": "a", "odd key": [True, 1]}],
            '[0]["odd key"][1]: must be a boolean, not integer',
        ),
    ],
)
def test_a_misfit_inside_is_named_by_its_place(
    typed: GraphDatabase, value: Any, expected: str | None
) -> None:
    assert misfit(typed, 7, value) == (expected and f"input x{expected}")


def test_the_higher_level_reports_before_the_lower(typed: GraphDatabase) -> None:
    value = [{"sku": 1, "odd key": [1]}, "late"]
    assert misfit(typed, 7, value) == "input x[1]: must be an object, not string"


def test_within_a_level_the_order_of_items_then_fields_decides(typed: GraphDatabase) -> None:
    value = [{"sku": "a", "qty": "bad"}, {"sku": 1}]
    assert misfit(typed, 7, value) == "input x[0].qty: must be an integer or null, not string"


JSON = st.recursive(
    st.sampled_from([None, True, 0, Decimal("1.0"), "eu", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["sku", "qty", "odd key"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    type_id=st.sampled_from([1, 2, 3, 4, 5, 6, 7]),
    value=JSON | st.lists(st.dictionaries(st.sampled_from(["sku", "qty", "odd key"]), JSON)),
)
def test_both_engines_report_the_same_misfit(
    typed: GraphDatabase, type_id: int, value: Any
) -> None:
    names = ("id", "parent", "kind", "name", "base", "required", "nullable", "enum")
    types = load_types([TypeRow(**dict(zip(names, row, strict=True))) for row in ROWS])
    local = check_inputs([("x", types[type_id], value)])
    assert misfit(typed, type_id, value) == (local.text if isinstance(local, EngineError) else None)


# The start context --------------------------------------------------------------------------------


def start(database: GraphDatabase, context: Any) -> tuple[Any, ...]:
    """Opens the instance's scope before the root has an execution: (error_code, error_message)."""
    return database.start(context, 4711)


def variables(database: GraphDatabase, scope_id: int = 4711) -> dict[str, Any]:
    return database.variables(scope_id)


def test_inputs_come_from_the_context_or_their_default_and_vars_see_them(
    typed: GraphDatabase,
) -> None:
    typed.variable("w", "given", "input", type_id=2, required=True)
    typed.variable("w", "other", "input", [["var", "given", "w", []]], type_id=2)
    typed.variable("w", "sum", "var", [["var", "given", "w", []], ["lit", 1], ["add"]])
    typed.variable("w", "again", "var", [["var", "sum", "w", []]])
    typed.variable("w", "unset", "var")
    assert start(typed, {"given": 4, "surplus": True}) == (None, None)
    assert variables(typed) == {"given": 4, "other": 4, "sum": 5, "again": 5}
    assert typed.rows("select scope_id, parent_scope_id, owner_key from wf.scope") == [
        (4711, 0, "w")
    ]


def test_a_null_in_the_context_is_a_value_and_takes_no_default(typed: GraphDatabase) -> None:
    typed.variable("w", "n", "input", [["lit", 1]], type_id=2)
    assert start(typed, {"n": None}) == (None, None)
    assert variables(typed) == {"n": None}


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({}, "input a: is missing"),
        ({"a": 1}, "input a: must be string, not integer"),
        ({"a": "x", "b": 1}, "input b: must be a list, not integer"),
        ({"a": "x", "b": [{}]}, "input b[0].sku: is missing"),
        ({"a": 1, "b": 1}, "input a: must be string, not integer"),
        (["a"], "input a: is missing"),
    ],
)
def test_an_input_that_does_not_fit_is_10015_and_leaves_nothing(
    typed: GraphDatabase, context: Any, message: str
) -> None:
    typed.variable("w", "a", "input", type_id=1, required=True)
    typed.variable("w", "b", "input", [["lit", []]], type_id=7)
    assert start(typed, context) == (10015, message)
    assert typed.rows("select 1 from wf.scope union all select 1 from wf.scope_variable") == []


def test_all_inputs_are_looked_at_before_anything_inside_them(typed: GraphDatabase) -> None:
    typed.variable("w", "a", "input", type_id=7, required=True)
    typed.variable("w", "b", "input", type_id=1, required=True)
    assert start(typed, {"a": [1]}) == (10015, "input b: is missing")


def test_an_initialiser_that_fails_reports_its_own_error(typed: GraphDatabase) -> None:
    typed.variable("w", "a", "var", [["lit", 1], ["lit", 0], ["div"]])
    assert start(typed, {}) == (10011, "division by zero")
    assert typed.rows("select 1 from wf.scope") == []


# Scopes of bodies ---------------------------------------------------------------------------------


@pytest.fixture
def bodies(typed: GraphDatabase) -> list[int]:
    typed.node("loop", "REPEAT", "w")
    typed.node("loop.body", "SEQUENCE", "loop", "BODY")
    root = typed.execution("w")
    typed.give(root, n=10)
    loop = typed.execution("loop", root)
    return [typed.execution("loop.body", loop, i) for i in range(3)]


def opened(database: GraphDatabase, executions: list[int]) -> list[tuple[Any, ...]]:
    return database.open_scopes(executions)


def test_literal_initialisers_fill_every_scope(typed: GraphDatabase, bodies: list[int]) -> None:
    typed.variable("loop.body", "a", "var", [["lit", None]])
    typed.variable("loop.body", "b", "var", [["lit", "x"]])
    typed.variable("loop.body", "unset", "var")
    assert opened(typed, bodies) == []
    assert [variables(typed, body) for body in bodies] == [{"a": None, "b": "x"}] * 3


def test_initialisers_are_evaluated_in_order_in_each_scope(
    typed: GraphDatabase, bodies: list[int]
) -> None:
    typed.variable("loop.body", "a", "var", [["ctx", "index", []]])
    typed.variable(
        "loop.body", "b", "var", [["var", "a", "loop.body", []], ["var", "n", "w", []], ["add"]]
    )
    assert opened(typed, bodies) == []
    assert [variables(typed, body) for body in bodies] == [
        {"a": 0, "b": 10},
        {"a": 1, "b": 11},
        {"a": 2, "b": 12},
    ]


def test_only_scopes_whose_initialiser_fails_are_answered(
    typed: GraphDatabase, bodies: list[int]
) -> None:
    typed.variable("loop.body", "a", "var", [["lit", 10], ["ctx", "index", []], ["div"]])
    assert opened(typed, bodies) == [(bodies[0], 10011, "division by zero")]
    assert [variables(typed, body) for body in bodies] == [{}, {"a": 10}, {"a": 5}]

"""Inputs: defaults, and the type table (10015)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from local_runner.machine import Machine
from local_runner.trace import trace_document
from tests.unit.local_runner.graphs import action, lit, var, workflow
from tests.unit.local_runner.play import play, variables


def row(id: int, base: str, **more: Any) -> dict[str, Any]:
    parent = more.get("parent")
    return {
        "id": id,
        "parent": parent,
        "kind": "root" if parent is None else "field",
        "name": None,
        "base": base,
        "required": True,
        "nullable": False,
        "enum": None,
        **more,
    }


def refusal(types: list[dict[str, Any]], value: Any) -> str | None:
    """Starts a workflow with the one input `x` of the first type; returns the error's message."""
    inputs = [{"name": "x", "type": 1, "required": True, "program": None}]
    spec = workflow([action("a")], inputs=inputs, types=types)
    machine = Machine(spec, "i", {} if value is Ellipsis else {"x": value})
    machine.start()
    if machine.error is None:
        return None
    assert (machine.status, machine.error.engine_code) == ("CREATED", 10015)
    return machine.error.message


@pytest.mark.parametrize(
    ("base", "good", "bad", "what"),
    [
        ("string", "a", 1, "string, not integer"),
        ("int", 2**70, Decimal("2.0"), "an integer, not decimal"),
        ("number", Decimal("2.5"), True, "a number, not boolean"),
        ("bool", False, 0, "a boolean, not integer"),
        ("object", {}, [], "an object, not array"),
        ("list", [], {}, "a list, not object"),
        ("string", "", None, "string, not null"),
    ],
)
def test_base_types(base: str, good: Any, bad: Any, what: str) -> None:
    assert refusal([row(1, base)], good) is None
    assert refusal([row(1, base)], bad) == f"input x: must be {what}"


def test_any_takes_everything() -> None:
    assert refusal([row(1, "any")], None) is None


def test_nullable_takes_null_and_says_so() -> None:
    types = [row(1, "int", nullable=True)]
    assert refusal(types, None) is None
    assert refusal(types, "1") == "input x: must be an integer or null, not string"


def test_a_missing_input() -> None:
    assert refusal([row(1, "int")], ...) == "input x: is missing"


def test_an_enum() -> None:
    types = [row(1, "string", enum=["a", 'b"'])]
    assert refusal(types, "a") is None
    assert refusal(types, "c") == 'input x: must be one of "a", "b\\""'


NESTED = [
    row(1, "list"),
    row(2, "object", parent=1, kind="item"),
    row(3, "int", parent=2, name="qty"),
    row(4, "string", parent=2, name="odd key", required=False),
]


def test_fields_and_items_are_named_by_their_steps() -> None:
    value = [{"qty": 1}, {"qty": 1, "odd key": 2}]
    assert refusal(NESTED, value) == 'input x[1]["odd key"]: must be string, not integer'


def test_a_missing_field() -> None:
    assert refusal(NESTED, [{"qty": 1}, {}]) == "input x[1].qty: is missing"


def test_optional_and_surplus_fields_are_fine() -> None:
    assert refusal(NESTED, [{"qty": 1, "more": None}]) is None


def test_the_upper_level_is_reported_first() -> None:
    assert refusal(NESTED, [{}, "text"]) == "input x[1]: must be an object, not string"


def test_inputs_are_checked_before_what_is_in_them() -> None:
    inputs = [
        {"name": "x", "type": 1, "required": True, "program": None},
        {"name": "y", "type": 3, "required": True, "program": None},
    ]
    machine = Machine(workflow([], inputs=inputs, types=NESTED), "i", {"x": [3]})
    machine.start()
    assert machine.error is not None
    assert machine.error.message == "input y: is missing"


DEFAULTS = [
    {"name": "n", "type": 1, "required": True, "program": None},
    {"name": "m", "type": 1, "required": False, "program": [*var("n"), ["lit", 1], ["add"]]},
]


def test_a_default_stands_in_for_what_is_not_given() -> None:
    spec = workflow([], inputs=DEFAULTS, types=[row(1, "int")])
    assert variables(play(spec, {"n": 1})) == {"n": 1, "m": 2}
    assert variables(play(spec, {"n": 1, "m": 7})) == {"n": 1, "m": 7}


def test_a_default_that_cannot_be_made_refuses_the_start() -> None:
    machine = play(workflow([], inputs=DEFAULTS, types=[row(1, "int")]), {"n": 2**63 - 1})
    assert machine.error is not None
    assert (machine.status, machine.error.engine_code) == ("CREATED", 10011)


def test_a_variable_that_cannot_be_made_refuses_the_start() -> None:
    machine = play(workflow([], variables=[("n", "var", var("m")), ("m", "var", lit(1))]))
    assert machine.error is not None
    assert (machine.status, machine.error.message) == ("CREATED", "var.m is not there")


def test_null_is_given_and_takes_no_default() -> None:
    spec = workflow([], inputs=DEFAULTS, types=[row(1, "int")])
    machine = play(spec, {"n": 1, "m": None})
    assert machine.error is not None
    assert machine.error.message == "input m: must be an integer, not null"


def test_variables_see_inputs() -> None:
    spec = workflow(
        [], inputs=DEFAULTS[:1], types=[row(1, "int")], variables=[("v", "var", var("n"))]
    )
    assert variables(play(spec, {"n": 3})) == {"n": 3, "v": 3}


def test_the_trace_of_a_refused_start_has_no_nodes() -> None:
    machine = play(workflow([action("a")], inputs=DEFAULTS, types=[row(1, "int")]))
    document = trace_document(machine)
    assert (document["status"], document["nodes"], document["variables"]) == ("CREATED", [], {})


def test_surplus_context_is_kept_out_of_the_variables() -> None:
    machine = play(workflow([], variables=[("v", "var", lit(1))]), {"other": 1})
    assert variables(machine) == {"v": 1}

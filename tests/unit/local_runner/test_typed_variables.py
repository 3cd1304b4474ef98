"""Variables with a type (R5): each value they shall get is checked, by its path and code."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from compiler.spec import GraphSpec
from local_runner.machine import Machine
from tests.unit.local_runner.graphs import (
    Part,
    action,
    assign,
    ctx,
    foreach,
    guarded,
    lit,
    repeat,
    var,
    workflow,
)
from tests.unit.local_runner.play import play, variables
from tests.unit.local_runner.test_inputs import NESTED, row

OUT = [["out", []]]


def typed(spec: GraphSpec, **types: int) -> GraphSpec:
    """Gives declared variables the type of a row of the table."""
    rows = [v.model_copy(update={"type": types.get(v.name, v.type)}) for v in spec.vars]
    return spec.model_copy(update={"vars": rows})


def with_x(children: list[Part], type_rows: list[dict[str, Any]], start: Any = 0) -> GraphSpec:
    spec = workflow(children, variables=[("x", "var", lit(start))], types=type_rows)
    return typed(spec, x=1)


def error(machine: Machine) -> tuple[int | None, str, str]:
    assert machine.error is not None
    return machine.error.engine_code, machine.error.message, machine.error.path


SETS = [
    ([row(1, "int")], 0, Decimal("1.5"), "var x: must be an integer, not decimal"),
    ([row(1, "string", enum=["a", "b"])], "a", "c", 'var x: must be one of "a", "b"'),
    ([row(1, "int", nullable=True)], None, "c", "var x: must be an integer or null, not string"),
    (NESTED, [], [{"qty": 1}, {}], "var x[1].qty: is missing"),
    (NESTED, [], [{"qty": 1, "odd key": 2}], 'var x[0]["odd key"]: must be string, not integer'),
]


@pytest.mark.parametrize(("types", "start", "value", "text"), SETS)
def test_a_set_that_does_not_fit_fails_its_node(
    types: list[dict[str, Any]], start: Any, value: Any, text: str
) -> None:
    spec = with_x([action("a", sets=[("x", OUT)])], types, start)
    machine = play(spec, answer=lambda _command: (0, value))
    assert error(machine) == (10015, f"w/a: {text}", "w/a")
    assert variables(machine)["x"] == start


def test_what_was_set_before_stays_set() -> None:
    spec = with_x([action("a", sets=[("x", lit(1)), ("x", lit("b"))])], [row(1, "int")])
    machine = play(spec)
    assert (variables(machine)["x"], machine.status) == (1, "FAILED")


def test_a_set_between_nodes_is_checked() -> None:
    machine = play(with_x([assign("set_1", "x", lit(True))], [row(1, "int")]))
    assert error(machine)[1] == "w/set_1: var x: must be an integer, not boolean"


def test_on_error_may_take_it() -> None:
    spec = with_x([guarded("s", [assign("set_1", "x", lit("b"))], on_error=[])], [row(1, "int")])
    assert play(spec).status == "SUCCEEDED"


def test_a_misfit_is_not_tried_again() -> None:
    retry = {"limit": 3}
    spec = with_x([action("a", sets=[("x", lit("b"))], retry=retry)], [row(1, "int")])
    machine = play(spec)
    assert [e.attempts for e in machine.executions.values() if e.node.key == "a"] == [1]


def test_an_initialiser_of_the_workflow_leaves_the_instance_created() -> None:
    spec = workflow([], variables=[("x", "var", ctx("context", "n"))], types=[row(1, "int")])
    machine = Machine(typed(spec, x=1), "i", {"n": "b"})
    machine.start()
    assert (machine.status, error(machine)[:2]) == (
        "CREATED",
        (10015, "var x: must be an integer, not string"),
    )
    assert machine.executions == {}


def test_an_initialiser_is_checked_before_the_next_one_reads_it() -> None:
    spec = workflow(
        [],
        variables=[("x", "var", lit("b")), ("y", "var", [*var("x"), ["neg"]])],
        types=[row(1, "int")],
    )
    machine = Machine(typed(spec, x=1), "i", {})
    machine.start()
    assert error(machine)[:2] == (10015, "var x: must be an integer, not string")


def test_an_initialiser_of_a_body_fails_the_iteration() -> None:
    loop = repeat("r", lit(1), [])
    loop.edges[0][2].variables.append(("x", "var", lit("b")))
    machine = play(typed(workflow([loop], types=[row(1, "int")]), x=1))
    assert error(machine) == (10015, "w/r[0]: var x: must be an integer, not string", "w/r[0]")


def test_an_array_that_does_not_fit_fails_the_foreach() -> None:
    loop = foreach("f", "i", lit([1, 2]), [action("a")], collects=[("x", ctx("item"))])
    types = [row(1, "list"), row(2, "string", parent=1, kind="item")]
    machine = play(with_x([loop], types, []))
    assert error(machine) == (10015, "w/f: var x[0]: must be string, not integer", "w/f")
    assert variables(machine)["x"] == []


def test_loop_variables_have_no_type() -> None:
    loop = foreach("f", "x", lit(["b"]), [action("a")])
    assert play(typed(workflow([loop], types=[row(1, "int")]), x=1)).status == "SUCCEEDED"

"""The meaning of every operator and reference (semantics §3)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from local_runner.expressions import compile_program, evaluate
from local_runner.values import MISSING, EngineError

D = Decimal


class Names:
    """A reader over plain dictionaries."""

    out = code = event = MISSING

    def __init__(self, **values: Any) -> None:
        self._values = values

    def variable(self, owner: str, name: str) -> Any:
        return self._values.get(name, MISSING)

    def context(self, root: str, head: tuple[str, ...]) -> Any:
        return self._values.get("/".join((root, *head)), MISSING)


def run(*instructions: list[Any], **values: Any) -> Any:
    return evaluate(compile_program(instructions), Names(**values))


def binary(operator: str, left: Any, right: Any) -> Any:
    return run(["lit", left], ["lit", right], [operator])


EQUALITY = [
    (1, 1, True),
    (1, D("1.0"), True),
    (D("1.10"), D("1.1"), True),
    (2**53 + 1, 2**53, False),
    (1, "1", False),
    (1, True, False),
    (0, False, False),
    ("a", "a", True),
    ("a", "A", False),
    ("a", "a ", False),
    ("é", "e\u0301", False),
    (None, None, True),
    (None, 0, False),
    (None, {}, False),
    ([], None, False),
    (True, True, True),
]


@pytest.mark.parametrize(("left", "right", "expected"), EQUALITY)
def test_equality_by_value_within_a_type(left: Any, right: Any, expected: bool) -> None:
    assert binary("eq", left, right) is expected
    assert binary("ne", left, right) is not expected


@pytest.mark.parametrize("operator", ["eq", "ne"])
@pytest.mark.parametrize(
    ("left", "right", "words"),
    [({}, 1, "object with integer"), ("a", [], "string with array"), ([], {}, "array with object")],
)
def test_containers_are_not_comparable(operator: str, left: Any, right: Any, words: str) -> None:
    assert binary(operator, left, right) == EngineError(10010, f"cannot compare {words}")


@pytest.mark.parametrize(
    ("left", "right", "less"),
    [
        (1, 2, True),
        (2, D("1.5"), False),
        (D("0.1"), D("0.10"), False),
        ("a", "b", True),
        ("Z", "a", True),
        ("\uffff", "\U00010000", True),
    ],
)
def test_order_of_numbers_and_strings(left: Any, right: Any, less: bool) -> None:
    assert binary("lt", left, right) is less
    assert binary("ge", left, right) is not less


def test_order_at_equal_values() -> None:
    assert binary("le", 1, D("1.0")) is True
    assert binary("gt", 1, D("1.0")) is False


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (1, "1", "integer with string"),
        (None, 1, "null with integer"),
        (True, False, "boolean with boolean"),
        (D("1.5"), [], "decimal with array"),
    ],
)
def test_order_of_anything_else_fails(left: Any, right: Any, words: str) -> None:
    assert binary("lt", left, right) == EngineError(10010, f"cannot compare {words}")


def test_in_compares_scalars_by_value() -> None:
    assert binary("in", 1, ["1", D("1.0")]) is True
    assert binary("in", None, [1, None]) is True
    assert binary("in", True, [1]) is False


def test_in_finds_no_containers() -> None:
    assert binary("in", 1, [[1], {"a": 1}]) is False


def test_in_refuses_a_container_on_the_left_first() -> None:
    expected = EngineError(10010, "in takes a scalar on the left, not object")
    assert binary("in", {}, 1) == expected


def test_in_refuses_what_is_no_array_on_the_right() -> None:
    expected = EngineError(10010, "in takes an array on the right, not string")
    assert binary("in", "a", "abc") == expected


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        ("add", 2, 3, 5),
        ("sub", 2, 3, -1),
        ("mul", -2, 3, -6),
        ("div", 7, 2, 3),
        ("div", -7, 2, -4),
        ("div", 7, -2, -4),
        ("mod", -7, 3, 2),
        ("mod", 7, -3, -2),
        ("add", 2**63 - 2, 1, 2**63 - 1),
        ("mod", -(2**63), -1, 0),
    ],
)
def test_arithmetic(operator: str, left: int, right: int, expected: int) -> None:
    assert binary(operator, left, right) == expected


@pytest.mark.parametrize(
    ("operator", "left", "right", "text"),
    [
        ("add", 2**63 - 1, 1, "integer overflow in +"),
        ("sub", -(2**63), 1, "integer overflow in -"),
        ("mul", 2**62, 2, "integer overflow in *"),
        ("div", -(2**63), -1, "integer overflow in //"),
        ("add", 2**63, 0, "integer overflow in +"),
        ("div", 1, 0, "division by zero"),
        ("mod", 1, 0, "division by zero"),
        ("add", D("2.0"), 1, "+ takes integers, not decimal"),
        ("add", "a", None, "+ takes integers, not string"),
        ("mul", 1, True, "* takes integers, not boolean"),
        ("div", 1, [], "// takes integers, not array"),
        ("mod", None, 1, "% takes integers, not null"),
    ],
)
def test_arithmetic_that_cannot_be_done(operator: str, left: Any, right: Any, text: str) -> None:
    assert binary(operator, left, right) == EngineError(10011, text)


def test_negation() -> None:
    assert run(["lit", 5], ["neg"]) == -5
    assert run(["lit", -(2**63)], ["neg"]) == EngineError(10011, "integer overflow in -")
    assert run(["lit", "5"], ["neg"]) == EngineError(10011, "- takes integers, not string")


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), (1, True), (-1, True), (0, False), (None, False)]
)
def test_truth(value: Any, expected: bool) -> None:
    assert run(["lit", value], ["bool"]) is expected
    assert run(["lit", value], ["not"]) is not expected


@pytest.mark.parametrize(
    ("value", "word"),
    [("false", "string"), (D("1.0"), "decimal"), ([], "array"), ({}, "object")],
)
def test_other_values_have_no_truth(value: Any, word: str) -> None:
    text = f"a condition takes a boolean, an integer or null, not {word}"
    assert run(["lit", value], ["not"]) == EngineError(10010, text)


def conjunction(left: Any, right: Any) -> Any:
    return run(["lit", left], ["jf", 2], ["lit", right], ["bool"])


def disjunction(left: Any, right: Any) -> Any:
    return run(["lit", left], ["jt", 2], ["lit", right], ["bool"])


def test_and_or_give_booleans() -> None:
    assert conjunction(1, 5) is True
    assert conjunction(1, None) is False
    assert disjunction(0, 7) is True
    assert disjunction(None, 0) is False


def test_and_or_do_not_look_at_the_right_when_the_left_decides() -> None:
    assert conjunction(0, "text") is False
    assert disjunction(1, "text") is True


def test_and_checks_the_right_when_the_left_does_not_decide() -> None:
    assert conjunction(1, "text").code == 10010


def test_alternative_takes_what_is_there_and_not_null() -> None:
    program = (["var", "a", "w", ["b"]], ["alt", 1], ["lit", 7])
    assert run(*program, a={"b": 3}) == 3
    assert run(*program, a={"b": None}) == 7
    assert run(*program, a={}) == 7
    assert run(*program) == 7


def test_alternative_lets_false_stand() -> None:
    assert run(["lit", False], ["alt", 1], ["lit", 7]) is False


def test_alternative_keeps_other_errors() -> None:
    program = (["lit", 1], ["lit", 0], ["div"], ["alt", 1], ["lit", 7])
    assert run(*program) == EngineError(10011, "division by zero")


def test_chained_alternatives() -> None:
    program = (
        ["var", "a", "w", []],
        ["alt", 1],
        ["var", "b", "w", []],
        ["alt", 1],
        ["lit", 9],
    )
    assert run(*program) == 9
    assert run(*program, b=2) == 2
    assert run(*program, a=1, b=2) == 1


def test_defined() -> None:
    program = ["defined", ["var", "a", "w", ["b"]]]
    assert run(program, a={"b": None}) is True
    assert run(program, a={"c": 1}) is False
    assert run(program) is False


def test_len() -> None:
    assert run(["lit", "aé\U0001f600"], ["len"]) == 3
    assert run(["lit", [1, 2]], ["len"]) == 2
    assert run(["lit", {"a": 1}], ["len"]) == 1
    text = "len takes a string, an array or an object, not null"
    assert run(["lit", None], ["len"]) == EngineError(10010, text)


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (["item", "sku"], "var.a.item.sku"),
        (["items", 3], "var.a.items[3]"),
        (["odd key"], 'var.a["odd key"]'),
        (['say "é"'], 'var.a["say \\"é\\""]'),
        ([["var", "i", "w", []]], "var.a[var.i]"),
    ],
)
def test_what_is_not_there_is_named_whole(steps: list[Any], text: str) -> None:
    found = run(["var", "a", "w", steps], a={}, i=0)
    assert found == EngineError(10001, f"{text} is not there")


def test_context_references_are_named_with_their_entry() -> None:
    found = run(["ctx", "task", ["pack", "output", "parcel"]])
    assert found == EngineError(10001, "ctx.task.pack.output.parcel is not there")


def test_a_step_into_a_scalar_finds_nothing() -> None:
    assert run(["var", "a", "w", ["x"]], a="text").code == 10001


def test_an_index_finds_elements_of_arrays_only() -> None:
    assert run(["var", "a", "w", [1]], a=[5, 6]) == 6
    assert run(["var", "a", "w", [2]], a=[5, 6]).code == 10001
    assert run(["var", "a", "w", [0]], a={"0": 5}).code == 10001


def test_a_variable_can_be_an_index() -> None:
    program = ["var", "a", "w", [["var", "i", "w", []], "x"]]
    assert run(program, a=[{"x": 1}, {"x": 2}], i=1) == 2
    assert run(program, a=[], i=-1) == EngineError(10001, "var.a[var.i].x is not there")


def test_an_index_that_is_not_there_is_named_itself() -> None:
    program = ["var", "a", "w", [["var", "i", "w", []]]]
    assert run(program, a=[1]) == EngineError(10001, "var.i is not there")


@pytest.mark.parametrize(
    ("index", "word"), [("0", "string"), (True, "boolean"), (D("0.0"), "decimal")]
)
def test_an_index_must_be_an_integer(index: Any, word: str) -> None:
    program = ["var", "a", "w", [["var", "i", "w", []]]]
    expected = EngineError(10010, f"an index takes an integer, not {word}")
    assert run(program, a=[1], i=index) == expected


def test_joined_strings_write_numbers_and_booleans() -> None:
    program = (["lit", "a"], ["lit", D("1.50")], ["lit", True], ["lit", -3], ["cat", 4])
    assert run(*program) == "a1.50true-3"


@pytest.mark.parametrize(("value", "word"), [(None, "null"), ([], "array"), ({}, "object")])
def test_other_values_cannot_stand_in_a_string(value: Any, word: str) -> None:
    expected = EngineError(10017, f"{word} cannot stand inside a string")
    assert run(["lit", "a"], ["lit", value], ["cat", 2]) == expected


def test_arrays_and_objects_are_built_in_order() -> None:
    program = (["lit", 1], ["lit", 2], ["arr", 2], ["lit", 3], ["obj", ["a", "b"]])
    assert run(*program) == {"a": [1, 2], "b": 3}


def test_an_unset_variable_reads_as_null_where_the_output_says_so() -> None:
    program = compile_program([["var", "a", "w", ["x"]]], frozenset({("w", "a")}))
    assert evaluate(program, Names()) is None
    assert evaluate(program, Names(a={})).code == 10001

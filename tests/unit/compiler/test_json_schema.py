"""The JSON Schema of inputs and outputs; inputs are accepted as by the type table."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from compiler.json_schema import input_schema, output_schema
from compiler.model import Model
from compiler.pipeline import check_text
from compiler.spec import TypeRow
from compiler.type_model import Field, Type, json_schema, type_rows
from local_runner.type_table import check_inputs, load_types


def model_of(text: str) -> Model:
    checked = check_text(text)
    assert [found for found in checked.diagnostics if found.severity == "error"] == []
    return checked.models[0]


def inputs_of(declared: str) -> dict[str, Any]:
    schema = input_schema(model_of(f"workflow w {{ input {{ {declared} }} set q = 1 }}"))
    Draft202012Validator.check_schema(schema)
    return schema


INPUTS = {
    "a : string": {"type": "string"},
    "a : int?": {"type": ["integer", "null"]},
    "a : any": {},
    'a : "x" | "y"': {"type": "string", "enum": ["x", "y"]},
    "a : list<number>": {"type": "array", "items": {"type": "number"}},
    "a : { b: bool, c?: string }": {
        "type": "object",
        "properties": {"b": {"type": "boolean"}, "c": {"type": "string"}},
        "required": ["b"],
    },
    "a : object": {"type": "object"},
    'a : string = "x"': {"type": "string", "default": "x"},
    "a : int = -5": {"type": "integer", "default": -5},
    "a : any = null": {"default": None},
    "a : list<int> = [1, 2]": {
        "type": "array",
        "items": {"type": "integer"},
        "default": [1, 2],
    },
    'a : any = { b: [true, { c: 1.50 }], "d e": "x" }': {
        "default": {"b": [True, {"c": Decimal("1.50")}], "d e": "x"}
    },
    "a : any = [1 + 1]": {},
}


@pytest.mark.parametrize(("declared", "schema"), INPUTS.items(), ids=INPUTS.keys())
def test_input_has_this_schema(declared: str, schema: dict[str, Any]) -> None:
    assert inputs_of(declared)["properties"] == {"a": schema}


def test_inputs_without_default_are_required() -> None:
    assert inputs_of("a : int b : int? c : int = 1")["required"] == ["a", "b"]


def test_nothing_is_required_of_inputs_with_defaults() -> None:
    assert "required" not in inputs_of("a : int = 1")


def test_nullable_enum_takes_null() -> None:
    schema = json_schema(Type("string", nullable=True, enum=("x",)))
    validator = Draft202012Validator(schema)
    assert [validator.is_valid(value) for value in ("x", None, "y", 1)] == [
        True,
        True,
        False,
        False,
    ]


def test_surplus_keys_are_allowed() -> None:
    assert Draft202012Validator(inputs_of("a : { b: int }")).is_valid(
        {"a": {"b": 1, "c": 2}, "d": 3}
    )


def outputs_of(text: str) -> dict[str, Any]:
    schema = output_schema(model_of(text))
    Draft202012Validator.check_schema(schema)
    return schema


OUTPUTS = {
    "var.n": {"type": "integer"},
    "var.n + 1": {"type": "integer"},
    "var.t": {"type": ["string", "null"]},
    "var.s": {"type": "string"},
    '"${var.t}"': {"type": ["string", "null"]},
    '"n is ${var.n}"': {"type": "string"},
    "len(var.s) > 1": {"type": "boolean"},
    'var.t ?? "x"': {"type": "string"},
    "var.t ?? var.o": {"type": ["string", "null"]},
    "var.later": {"type": ["string", "null"]},
    "[var.n, 2]": {"type": "array", "items": {"type": "integer"}},
    "[var.t]": {"type": "array", "items": {"type": ["string", "null"]}},
    "{ a: var.n, b: { c: var.t } }": {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {
                "type": "object",
                "properties": {"c": {"type": ["string", "null"]}},
                "required": ["c"],
            },
        },
        "required": ["a", "b"],
    },
}


@pytest.mark.parametrize(("value", "schema"), OUTPUTS.items(), ids=OUTPUTS.keys())
def test_output_has_this_schema(value: str, schema: dict[str, Any]) -> None:
    text = (
        "workflow w { input { n : int o : string? = null }\n"
        'var s : string = "x" var t : string\n'
        f"output {{ r = {value} }}\nset t = var.s if var.n {{ set later = var.o }} }}"
    )
    found = outputs_of(text)
    assert (found["properties"], found["required"]) == ({"r": schema}, ["r"])


def test_workflow_without_output_gives_null() -> None:
    assert outputs_of("workflow w { set q = 1 }")["type"] == "null"


# --- the same values as the type table ----------------------------------------------------------

_NAMES = st.sampled_from(["a", "b", "c d"])


def _objects(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    fields = st.dictionaries(_NAMES, st.tuples(st.booleans(), inner), max_size=3)
    return fields.map(
        lambda found: Type("object", fields=tuple(Field(n, o, t) for n, (o, t) in found.items()))
    )


def _nullable(types: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.builds(
        lambda t, n: Type(t.base, nullable=n, enum=t.enum, fields=t.fields, item=t.item),
        types,
        st.booleans(),
    )


SIMPLE = st.sampled_from([Type(base) for base in ("string", "int", "number", "bool", "object")])
ENUMS = st.sampled_from([Type("string", enum=("x",)), Type("string", enum=("x", "y"))])
TYPES = st.recursive(
    _nullable(SIMPLE | ENUMS) | st.just(Type("any")),
    lambda inner: _nullable(_objects(inner) | inner.map(lambda item: Type("list", item=item))),
    max_leaves=6,
)
SCALARS = st.sampled_from([None, True, False, 0, 7, -(2**70), Decimal("1.5"), "x", "y", ""])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def fitting(draw: st.DrawFn, type_: Type) -> Any:
    """A value that mostly fits a type: without this nearly all would be refused at once."""
    if draw(st.integers(0, 9)) == 0:
        return draw(VALUES)
    if type_.nullable and draw(st.booleans()):
        return None
    match type_.base:
        case "object":
            fields = [f for f in type_.fields or () if not f.optional or draw(st.booleans())]
            return {field.name: draw(fitting(field.type)) for field in fields}
        case "list":
            return [
                draw(fitting(type_.item or Type("any"))) for _ in range(draw(st.integers(0, 2)))
            ]
        case "string":
            return draw(st.sampled_from(type_.enum or ("", "z")))
        case "any":
            return draw(VALUES)
        case base:
            values = {"int": [0, 2**70], "number": [1, Decimal("1.5")], "bool": [True, False]}
            return draw(st.sampled_from(values[base]))


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_schema_accepts_what_the_type_table_accepts(data: st.DataObject) -> None:
    type_ = data.draw(TYPES)
    value = data.draw(fitting(type_) | VALUES)
    types = load_types([TypeRow(**row) for row in type_rows(type_, 1)])
    by_table = check_inputs([("x", types[1], value)]) is None
    assert Draft202012Validator(json_schema(type_)).is_valid(value) == by_table


def test_the_one_difference_is_a_whole_number_with_a_point() -> None:
    types = load_types([TypeRow(**row) for row in type_rows(Type("int"), 1)])
    assert check_inputs([("x", types[1], Decimal("2.0"))]) is not None
    assert Draft202012Validator({"type": "integer"}).is_valid(2.0)

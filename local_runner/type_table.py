"""The type table (R5) and its check of a start context's inputs and of declared variables.

The check goes level by level: all inputs, then their fields and items, and so on, so that each
engine can do it without recursion and reports the same first misfit: (level, declaration order,
index).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from compiler import json_values
from local_runner.references import render_step
from local_runner.values import MISSING, EngineError, JsonValue, type_word

if TYPE_CHECKING:
    from compiler.spec import TypeRow

_PYTHON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "int": (int,),
    "number": (int, Decimal),
    "bool": (bool,),
    "object": (dict,),
    "list": (list,),
}
_CONTAINERS: Final = frozenset({dict, list})
_WORDS: Final = {
    "string": "string",
    "int": "an integer",
    "number": "a number",
    "bool": "a boolean",
    "object": "an object",
    "list": "a list",
}


@dataclass(slots=True)
class TypeNode:
    """One row of the table with its fields or its item below."""

    base: str
    required: bool
    nullable: bool
    enum: tuple[str, ...] | None
    name: str | None
    fields: list[TypeNode] = field(default_factory=list)
    item: TypeNode | None = None


def load_types(rows: Sequence[TypeRow]) -> dict[int, TypeNode]:
    """Links the rows of the table; every row can be found by its id."""
    types = {
        row.id: TypeNode(
            row.base, row.required, row.nullable, tuple(row.enum) if row.enum else None, row.name
        )
        for row in rows
    }
    below: dict[int, list[TypeRow]] = defaultdict(list)
    for row in rows:
        if row.parent is not None:
            below[row.parent].append(row)
    for parent, children in below.items():
        types[parent].fields = [types[row.id] for row in children if row.kind == "field"]
        types[parent].item = next((types[r.id] for r in children if r.kind == "item"), None)
    return types


def check_inputs(values: Iterable[tuple[str, TypeNode, JsonValue]]) -> EngineError | None:
    """Returns the first misfit as 10015, or None. A value that is not there is `MISSING`."""
    return _first_misfit([(f"input {name}", expected, value) for name, expected, value in values])


def check_variable(name: str, expected: TypeNode, value: JsonValue) -> EngineError | None:
    """Returns the first misfit of a value that a declared variable shall get, as 10015."""
    return _first_misfit([(f"var {name}", expected, value)])


def _first_misfit(level: list[tuple[str, TypeNode, JsonValue]]) -> EngineError | None:
    while level:
        following: list[tuple[str, TypeNode, JsonValue]] = []
        for place, expected, value in level:
            problem = _misfit(expected, value)
            if problem is not None:
                return EngineError(10015, f"{place}: {problem}")
            following.extend(_below(place, expected, value))
        level = following
    return None


def _misfit(expected: TypeNode, value: JsonValue) -> str | None:
    if value is MISSING:
        return "is missing" if expected.required else None
    if expected.base == "any" or (value is None and expected.nullable):
        return None
    suffix = " or null" if expected.nullable else ""
    if type(value) not in _PYTHON_TYPES[expected.base]:
        if expected.enum is None:
            return f"must be {_WORDS[expected.base]}{suffix}, not {type_word(value)}"
    elif expected.enum is None or value in expected.enum:
        return None
    listed = ", ".join(json_values.dumps(text) for text in expected.enum)
    return f"must be one of {listed}{suffix}"


def _below(
    place: str, expected: TypeNode, value: JsonValue
) -> Iterable[tuple[str, TypeNode, JsonValue]]:
    if type(value) is dict:
        for row in expected.fields:
            name = row.name or ""
            yield place + render_step(name), row, value.get(name, MISSING)
    elif type(value) is list and expected.item is not None:
        item = expected.item
        if item.base == "any":
            return
        for index, element in enumerate(value):
            # A scalar that fits has nothing below, and needs no name of its place.
            if type(element) in _CONTAINERS or _misfit(item, element) is not None:
                yield f"{place}[{index}]", item, element

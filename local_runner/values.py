"""The values that expressions work on: their type words, truth, text, and the error value.

JSON values are plain Python (`None bool int Decimal str list dict`) and are never changed once they
exist, so that variables, inputs and outputs may share them. What can go wrong in an engine is an
`EngineError`, returned like any value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from compiler import json_values

JsonValue = Any


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""What a reference gives that finds nothing; no JSON value."""


@dataclass(frozen=True, slots=True)
class EngineError:
    """A fault while a workflow runs: an engine code (semantics §5) and a text without the path."""

    code: int
    text: str


_TYPE_WORDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    Decimal: "decimal",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
}


_HOLDERS: Final = frozenset({dict, list, tuple})


def type_word(value: JsonValue) -> str:
    """Returns the word that messages use for the type of a value."""
    return _TYPE_WORDS[type(value)]


def truth(value: JsonValue) -> bool | EngineError:
    """Returns the truth value (S3.4): only booleans, integers and null have one."""
    if value is True or value is False:
        return bool(value)
    if value is None:
        return False
    if type(value) is int:
        return value != 0
    return EngineError(
        10010, f"a condition takes a boolean, an integer or null, not {type_word(value)}"
    )


def text_of(value: JsonValue) -> str | EngineError:
    """Returns the text that a value gives inside a longer string (S3.8)."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Decimal:
        return json_values.normal_number(value)
    return EngineError(10017, f"{type_word(value)} cannot stand inside a string")


def map_strings(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    """Returns a deep copy in which each string value (no key) went through `change`.

    Works off a list, because a workflow may build a value deeper than the Python stack.
    """
    result: list[JsonValue] = [None]
    pending: list[tuple[Any, Any, JsonValue]] = [(result, 0, value)]
    while pending:
        holder, place, item = pending.pop()
        kind = type(item)
        if kind is str:
            holder[place] = change(item)
        elif kind is dict:
            # The keys are put in first so that their order stays.
            copy: dict[str, JsonValue] = dict.fromkeys(item)
            holder[place] = copy
            pending.extend((copy, key, child) for key, child in item.items())
        elif kind is list or kind is tuple:
            elements: list[JsonValue] = [None] * len(item)
            holder[place] = elements
            pending.extend((elements, index, child) for index, child in enumerate(item))
        else:
            holder[place] = item
    return result[0]


def copy_value(value: JsonValue) -> JsonValue:
    """Returns a deep copy, for code that may change what it is given."""
    if type(value) is dict and not any(type(child) in _HOLDERS for child in value.values()):
        return dict(value)
    return map_strings(value, lambda text: text)

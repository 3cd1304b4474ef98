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


_FEW: Final = 1000


def holds_scalars(value: JsonValue) -> bool:
    """Whether a value is an object of scalars, which most inputs and outputs are."""
    return type(value) is dict and _HOLDERS.isdisjoint(map(type, value.values()))


def _is_small(value: dict[str, JsonValue]) -> bool:
    """Whether an object has few values, all of them scalars and none of them long."""
    for item in value.values():
        kind = type(item)
        if kind in _HOLDERS or (kind is str and len(item) >= _FEW):
            return False
    return len(value) < _FEW


_LONG_TEXT: Final = 4 * 1024 * 1024


def storable_problem(value: JsonValue) -> EngineError | None:
    """Says why a value that an instance has built cannot be stored (R7, 10018), or None.

    More than 100 nested containers, or more than 16 MB as JSON text. The exact length is only
    worked out where the strings alone are long.
    """
    if type(value) is dict and _is_small(value):
        return None
    pending: list[tuple[JsonValue, int]] = [(value, 1)]
    characters = 0
    while pending:
        item, depth = pending.pop()
        kind = type(item)
        if kind is str:
            characters += len(item)
        elif kind is dict or kind is list or kind is tuple:
            if depth > json_values.MAX_DEPTH:
                text = f"a value nested deeper than {json_values.MAX_DEPTH} levels cannot be stored"
                return EngineError(10018, text)
            children = item.values() if kind is dict else item
            characters += len(item)
            pending.extend((child, depth + 1) for child in children)
    if characters > _LONG_TEXT and len(json_values.dumps(value).encode()) > _MAX_BYTES:
        return TOO_LONG
    return None


_MAX_BYTES: Final = json_values.MAX_DOCUMENT_BYTES
TOO_LONG: Final = EngineError(10018, "a value of more than 16 MB cannot be stored")


def joined_text(texts: list[str]) -> str | EngineError:
    """Joins pieces of text, unless the result could not be stored (10018)."""
    length = 0
    for text in texts:
        length += len(text) if text.isascii() else len(text.encode())
    return TOO_LONG if length > _MAX_BYTES else "".join(texts)


def map_strings(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    """Returns a deep copy in which each string value (no key) went through `change`.

    Works off a list, because a workflow may build a value deeper than the Python stack.
    """
    if holds_scalars(value):
        return {key: change(item) if type(item) is str else item for key, item in value.items()}
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
    if holds_scalars(value):
        return dict(value)
    return map_strings(value, lambda text: text)

"""JSON values as every part of wfsql carries them.

Numbers are `int` or `Decimal`, never float, and keep their digits: `1` and `1.0` differ as text
and are equal as values. `loads` is a door (ruling R7): what no engine can store is refused there
with engine code 10018. `dumps` writes numbers in normal form (R6), `canonical` is the form that
hashes are made over (R35).
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, NoReturn

JsonValue = Any
"""dict[str, JsonValue] | list[JsonValue] | str | int | Decimal | bool | None"""

MAX_DEPTH = 100
MAX_KEY_LENGTH = 256
MAX_NUMBER_LENGTH = 400
_TOO_LONG = f"more than {MAX_NUMBER_LENGTH} characters when written out"
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class UnstorableValue(Exception):
    """A value that cannot be stored (engine code 10018). The message says which and why."""

    code = 10018


def _refuse(reason: str) -> NoReturn:
    raise UnstorableValue(reason)


def normal_number(value: int | Decimal) -> str:
    """Returns the normal form of a number (R6): plain decimal, fraction digits kept, no `-0`."""
    if isinstance(value, int):
        return str(value)
    text = format(value, "f")
    return text[1:] if value == 0 and text.startswith("-") else text


def parse_number(text: str) -> int | Decimal:
    """Returns the number a JSON number literal stands for; `1e3` is the integer 1000.

    Raises:
      UnstorableValue: its normal form is longer than 400 characters. The exponent is judged
        before anything is expanded.
    """
    mantissa, _, exponent = text.lower().partition("e")
    if exponent and (len(exponent) > 6 or abs(int(exponent)) > MAX_NUMBER_LENGTH * 2):
        if mantissa.strip("-0.") == "" and len(exponent) <= 6 and int(exponent) > 0:
            return 0
        _refuse(f"number {text[:40]} takes {_TOO_LONG}")
    if len(text) > MAX_NUMBER_LENGTH * 3:
        _refuse(f"number {text[:40]}… takes {_TOO_LONG}")
    number = Decimal(text)
    normal = normal_number(number)
    if len(normal) > MAX_NUMBER_LENGTH:
        _refuse(f"number {text[:40]} takes {_TOO_LONG}")
    return Decimal(normal) if "." in normal else int(normal)


def _parse_integer(text: str) -> int | Decimal:
    """Does so for digits alone; most numbers are short, and need no look at their normal form."""
    return int(text) if len(text) <= MAX_NUMBER_LENGTH else parse_number(text)


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _value in pairs:
            if key in seen:
                _refuse(f"key {json.dumps(key)} stands twice in one object")
            seen.add(key)
    return result


def check_storable(value: JsonValue) -> None:
    """Walks a value without recursion and refuses what R7 lists.

    Raises:
      UnstorableValue: U+0000, a lone surrogate, a key over 256 characters, depth over 100, NaN or
        infinity, a Python type that is not JSON.
    """
    pending: list[tuple[JsonValue, int]] = [(value, 1)]
    while pending:
        item, depth = pending.pop()
        if depth > MAX_DEPTH and isinstance(item, dict | list | tuple):
            _refuse(f"nested deeper than {MAX_DEPTH} levels")
        match item:
            case str():
                _check_text(item)
            case dict():
                for key, child in item.items():
                    if not isinstance(key, str):
                        _refuse(f"object key {key!r} is not a string")
                    _check_text(key)
                    if len(key) > MAX_KEY_LENGTH:
                        _refuse(f"a key has more than {MAX_KEY_LENGTH} characters")
                    pending.append((child, depth + 1))
            case list() | tuple():
                pending.extend((child, depth + 1) for child in item)
            case Decimal():
                if not item.is_finite():
                    _refuse(f"number {item} is not finite")
                if len(normal_number(item)) > MAX_NUMBER_LENGTH:
                    _refuse(f"a number has more than {MAX_NUMBER_LENGTH} characters")
            case bool() | None:
                pass
            case int():
                if item.bit_length() > 1400 or len(str(item)) > MAX_NUMBER_LENGTH:
                    _refuse(f"a number has more than {MAX_NUMBER_LENGTH} characters")
            case _:
                _refuse(f"a value of type {type(item).__name__} is not JSON")


def _check_text(text: str) -> None:
    found = _UNSTORABLE.search(text)
    if found is not None:
        _refuse(f"a string contains U+{ord(found.group()):04X}")


def loads(text: str) -> JsonValue:
    """Parses one JSON document.

    Raises:
      UnstorableValue: well-formed JSON that R7 refuses.
      json.JSONDecodeError: not JSON.
    """
    if len(text) > MAX_DOCUMENT_BYTES or len(text.encode("utf-8", "replace")) > MAX_DOCUMENT_BYTES:
        _refuse("a document has more than 16 MB")
    try:
        value = json.loads(
            text,
            parse_float=parse_number,
            parse_int=_parse_integer,
            parse_constant=lambda name: _refuse(f"number {name} is not finite"),
            object_pairs_hook=_object,
        )
    except RecursionError:
        _refuse(f"nested deeper than {MAX_DEPTH} levels")
    check_storable(value)
    return value


def read_stored(text: str) -> JsonValue:
    """Parses a document that a database or a runner wrote, such as a trace or a task's input.

    It is no door: what is stored has passed one, and a document that holds several stored values
    may be larger and deeper than each of them may be.

    Raises:
      json.JSONDecodeError: not JSON.
    """
    return json.loads(text, parse_float=parse_number, parse_int=_parse_integer)


def from_python(value: object) -> JsonValue:
    """Turns what Python code returned into a JSON value: floats become numbers, tuples lists.

    Raises:
      UnstorableValue: as `loads`, and for a float that is not finite or a value that is not JSON.
    """
    copy, size = _copied(value, 1)
    if size <= MAX_DOCUMENT_BYTES:
        return copy
    return loads(
        _write(_plain(value), ascii_only=False, canonical=False, sort_keys=False, indent=None)
    )


_TOO_MUCH = MAX_DOCUMENT_BYTES + 1


def _copied(value: Any, depth: int) -> tuple[JsonValue, int]:
    """Copies a value of which nothing can be refused, as nearly every one is.

    Returns:
      The copy, and a bound on its size as a document. One above the limit says nothing: the value
      has to be written down to know, or is to be refused.
    """
    kind = type(value)
    if kind is str:
        # As a document each character takes six bytes at most.
        return value, _TOO_MUCH if _UNSTORABLE.search(value) else 6 * len(value) + 2
    if kind is int:
        if -1_000_000 < value < 1_000_000:
            return value, 7
        return value, 20 if -(2**63) <= value < 2**63 else _TOO_MUCH
    if value is None or kind is bool:
        return value, 5
    if depth > MAX_DEPTH:
        return None, _TOO_MUCH
    if kind is dict:
        return _copied_object(value, depth)
    return _copied_array(value, depth) if kind is list or kind is tuple else (None, _TOO_MUCH)


def _copied_array(value: Any, depth: int) -> tuple[JsonValue, int]:
    elements: list[JsonValue] = []
    size = 2
    for child in value:
        copy, length = _copied(child, depth + 1)
        elements.append(copy)
        size += length + 2
        if size > MAX_DOCUMENT_BYTES:
            break
    return elements, size


def _copied_object(value: dict[Any, Any], depth: int) -> tuple[JsonValue, int]:
    members: dict[str, JsonValue] = {}
    size = 2
    for key, child in value.items():
        if type(key) is not str or len(key) > MAX_KEY_LENGTH:
            return None, _TOO_MUCH
        copy, length = _copied(child, depth + 1)
        members[key] = copy
        size += length + _copied(key, depth)[1] + 4
        if size > MAX_DOCUMENT_BYTES:
            break
    return members, size


def _plain(value: object, depth: int = 0) -> JsonValue:
    if depth > MAX_DEPTH + 1:
        _refuse(f"nested deeper than {MAX_DEPTH} levels")
    match value:
        case float():
            if value != value or value in (float("inf"), float("-inf")):
                _refuse(f"number {value} is not finite")
            return parse_number(repr(value))
        case Decimal():
            if not value.is_finite():
                _refuse(f"number {value} is not finite")
            return parse_number(str(value))
        case dict():
            for key in value:
                if not isinstance(key, str):
                    _refuse(f"object key {key!r} is not a string")
            return {key: _plain(child, depth + 1) for key, child in value.items()}
        case list() | tuple():
            return [_plain(child, depth + 1) for child in value]
        case None | bool() | int() | str():
            return value
        case _:
            _refuse(f"a value of type {type(value).__name__} is not JSON")


def dumps(value: JsonValue, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """Writes a JSON value: numbers in normal form, other text unescaped where JSON allows."""
    return _write(value, ascii_only=False, canonical=False, sort_keys=sort_keys, indent=indent)


def canonical(value: JsonValue) -> str:
    """Writes canonical JSON (R35): ASCII, keys sorted by escaped form, trailing zeros dropped."""
    return _write(value, ascii_only=True, canonical=True, sort_keys=True, indent=None)


def sha256_hex(value: JsonValue) -> str:
    """Returns the SHA-256 of the canonical JSON of a value as 64 lower-case hex digits."""
    import hashlib

    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def exact_sha256_hex(value: JsonValue) -> str:
    """Does so over canonical JSON that keeps zeros at the end: `1` and `1.0` differ (R6)."""
    import hashlib

    text = _write(value, ascii_only=True, canonical=True, sort_keys=True, indent=None, exact=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _canonical_number(value: int | Decimal) -> str:
    text = normal_number(value)
    if "." in text:
        text = text.rstrip("0").rstrip(".")
        if text == "-0":
            text = "0"
    return text


def _write(
    value: JsonValue,
    *,
    ascii_only: bool,
    canonical: bool,
    sort_keys: bool,
    indent: int | None,
    exact: bool = False,
) -> str:
    """Serialises iteratively, so that the depth of a value is no concern of the stack."""
    out: list[str] = []
    number = _canonical_number if canonical and not exact else normal_number

    def text_of(text: str) -> str:
        return json.dumps(text, ensure_ascii=ascii_only)

    def line(depth: int) -> str:
        return "" if indent is None else "\n" + " " * (indent * depth)

    colon = ":" if canonical or indent is None else ": "
    pending: list[tuple[str, JsonValue, int]] = [("value", value, 0)]
    while pending:
        kind, item, depth = pending.pop()
        if kind == "text":
            out.append(item)
            continue
        if item is None:
            out.append("null")
        elif item is True:
            out.append("true")
        elif item is False:
            out.append("false")
        elif isinstance(item, str):
            out.append(text_of(item))
        elif isinstance(item, int | Decimal):
            out.append(number(item))
        elif isinstance(item, dict):
            if not item:
                out.append("{}")
                continue
            entries = [(text_of(key), child) for key, child in item.items()]
            if sort_keys:
                entries.sort(key=lambda entry: entry[0])
            pending.append(("text", line(depth) + "}", 0))
            for position in range(len(entries) - 1, -1, -1):
                key, child = entries[position]
                pending.append(("value", child, depth + 1))
                pending.append(
                    ("text", ("," if position else "{") + line(depth + 1) + key + colon, 0)
                )
        elif isinstance(item, list | tuple):
            if not item:
                out.append("[]")
                continue
            pending.append(("text", line(depth) + "]", 0))
            for position in range(len(item) - 1, -1, -1):
                pending.append(("value", item[position], depth + 1))
                pending.append(("text", ("," if position else "[") + line(depth + 1), 0))
        else:
            raise TypeError(f"a value of type {type(item).__name__} is not JSON")
    return "".join(out)

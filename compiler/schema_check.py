"""Checks a document against a JSON Schema that ships with wfsql.

`accepts` knows just the keywords those schemas use and answers in microseconds, so that a good file
never pays for importing jsonschema. What it does not accept goes to jsonschema, whose findings
`misfits` turns into our words. A test holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from compiler.suggest import did_you_mean
from dsl.quick_class import dataclass

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Misfit:
    """One finding: the path of the value, whether it is about its key, and what is wrong."""

    path: tuple[str | int, ...]
    at_key: bool
    message: str
    hint: str | None = None


def accepts(root: Schema, value: Any) -> bool:
    """Returns whether a value fits; the depth of the value is bounded by its reader."""
    return _fits(root, root, value)


def _fits(root: Schema, schema: Schema, value: Any) -> bool:
    reference = schema.get("$ref")
    if reference is not None:
        return _fits(root, root["$defs"][reference.removeprefix("#/$defs/")], value)
    if "type" in schema and not _is_of(schema["type"], value):
        return False
    if isinstance(value, str):
        return _string_fits(schema, value)
    if isinstance(value, dict):
        return _object_fits(root, schema, value)
    if isinstance(value, list):
        return "items" not in schema or all(_fits(root, schema["items"], item) for item in value)
    return _number_fits(schema, value)


def _string_fits(schema: Schema, value: str) -> bool:
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return False
    return bool(schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)))


def _number_fits(schema: Schema, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return True
    return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))


def _object_fits(root: Schema, schema: Schema, value: dict[str, Any]) -> bool:
    if any(name not in value for name in schema.get("required", ())):
        return False
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", {})
    for key, child in value.items():
        rule = properties.get(key, others)
        if rule is False or not _fits(root, rule, child):
            return False
        if "propertyNames" in schema and not _string_fits(schema["propertyNames"], key):
            return False
    return True


def _is_of(names: str | list[str], value: Any) -> bool:
    return any(
        name in _json_types(value) for name in ([names] if isinstance(names, str) else names)
    )


def _json_types(value: Any) -> tuple[str, ...]:
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean",)
        case int():
            return ("integer", "number")
        case Decimal():
            return ("number",)
        case str():
            return ("string",)
        case list():
            return ("array",)
        case _:
            return ("object",)


def misfits(schema: Schema, value: Any) -> list[Misfit]:
    """Returns every finding of jsonschema in our words, in the order of the document's paths."""
    import jsonschema

    found: list[Misfit] = []
    for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
        found.extend(_in_our_words(error))
    return found


def schema_problem(schema: Any) -> str | None:
    """Returns what keeps a value from being a JSON Schema 2020-12, or None when it is one."""
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        place = "/".join(str(step) for step in error.absolute_path)
        return f"{place}: {error.message}" if place else str(error.message)
    return None


_PLAIN_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


def is_plain_schema(schema: Any) -> bool:
    """Whether a value is a JSON Schema of everyday keywords only, and so a valid one for sure.

    Like `accepts` it spares a good catalog the import of jsonschema; the reader bounds the depth.
    """
    if not isinstance(schema, dict):
        return isinstance(schema, bool)
    return all(_is_plain_keyword(word, value) for word, value in schema.items())


def _is_plain_keyword(word: str, value: Any) -> bool:
    match word:
        case "type":
            names = value if isinstance(value, list) and value else [value]
            known = all(isinstance(name, str) and name in _PLAIN_TYPES for name in names)
            return known and len(set(names)) == len(names)
        case "properties":
            return isinstance(value, dict) and all(map(is_plain_schema, value.values()))
        case "items" | "additionalProperties":
            return is_plain_schema(value)
        case "required":
            strings = isinstance(value, list) and all(isinstance(name, str) for name in value)
            return strings and len(set(value)) == len(value)
        case "enum":
            return isinstance(value, list)
        case "title" | "description":
            return isinstance(value, str)
        case _:
            return False


_WORDS = {
    "null": "null",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "array": "a list",
    "object": "a mapping",
}


def _in_our_words(error: Any) -> Iterator[Misfit]:
    path = tuple(error.absolute_path)
    allowed = error.validator_value
    match error.validator:
        case "required":
            yield from (
                Misfit(path, False, f'"{name}" is missing', f"add `{name}: …`")
                for name in allowed
                if name not in error.instance
            )
        case "additionalProperties":
            known = error.schema.get("properties", {})
            yield from (
                Misfit((*path, key), True, f'unknown key "{key}"', did_you_mean(key, known))
                for key in error.instance
                if key not in known
            )
        case "type":
            names = [allowed] if isinstance(allowed, str) else allowed
            wanted = " or ".join(_WORDS[name] for name in names)
            yield Misfit(path, False, f"{wanted} is wanted here, not {_found(error.instance)}")
        case "pattern" if "propertyNames" in error.absolute_schema_path:
            yield Misfit(path, False, f'"{error.instance}" is no result code', "use an integer")
        case "pattern":
            yield Misfit(
                path, False, f'"{error.instance}" has not the form wanted here', _form(path)
            )
        case "minimum" | "maximum":
            bound = "least" if error.validator == "minimum" else "most"
            yield Misfit(path, False, f"{error.instance} is out of range: at {bound} {allowed}")
        case "minLength":
            yield Misfit(path, False, "an empty string may not stand here")
        case "maxLength":
            yield Misfit(path, False, f"longer than {allowed} characters")
        case _:
            yield Misfit(path, False, str(error.message))


def _found(value: Any) -> str:
    return _WORDS[_json_types(value)[0]]


def _form(path: tuple[str | int, ...]) -> str | None:
    forms: dict[str | int, str] = {
        "name": "dotted names such as `stock.reserve`",
        "timeout": "a duration such as `30s` or `1h30m`",
        "backoff": "a duration such as `2s`",
        "max": "a duration such as `5m`",
    }
    if len(path) > 1 and path[-2] == "result_codes":
        return "a name such as `short`"
    if len(path) > 1 and path[-2] == "sensitive":
        return "a JSON pointer such as `/input/card` or `/output/token`"
    return forms.get(path[-1]) if path else None

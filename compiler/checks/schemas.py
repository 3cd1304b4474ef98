"""Checks of written-out arguments against what a catalog's JSON Schema says beyond types.

Bounds, patterns, lengths, constants, `oneOf` and the like: the type model has no words for them, so
a literal is handed to jsonschema, with nothing it could fetch. A schema that types say all of costs
nothing here; neither does an argument that is not a literal all through.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from compiler import codes
from compiler.catalog import CatalogAction
from compiler.checks.finding import finding
from compiler.expressions import NOT_LITERAL, literal_value
from compiler.model import Model
from dsl.diagnostics import Diagnostic
from dsl.nodes import Action, Argument, Expr, ListExpr, ObjectExpr
from dsl.source import Span

_SAID_BY_TYPES = frozenset(
    (
        *("type", "properties", "items", "required", "additionalProperties", "title"),
        *("description", "$ref", "$defs", "definitions", "$schema", "$id", "$comment", "default"),
        *("examples", "deprecated", "readOnly", "writeOnly"),
    )
)
_SAID_BY_MISFITS = frozenset(("type", "required", "additionalProperties"))
_LONGEST = 80  # characters of a value's description that are shown


def check_schemas(model: Model) -> Iterator[Diagnostic]:
    says_more: dict[str, bool] = {}
    for node in model.nodes:
        action = node.statement
        if not isinstance(action, Action):
            continue
        described = model.actions.get(action.action.text)
        if described is None or described.input_schema is None:
            continue
        if described.name not in says_more:
            says_more[described.name] = _says_more(described.input_schema)
        if says_more[described.name]:
            for argument in action.arguments:
                yield from _check_argument(model, described, argument)


def _says_more(root: object) -> bool:
    """Whether a schema has rules that types have no words for."""
    pending = [root]
    while pending:
        schema = pending.pop()
        for word, value in schema.items() if isinstance(schema, dict) else ():
            if word not in _SAID_BY_TYPES and not (word == "enum" and _are_strings(value)):
                return True
            if word in ("properties", "$defs", "definitions") and isinstance(value, dict):
                pending += value.values()
            elif word in ("items", "additionalProperties"):
                pending.append(value)
    return False


def _check_argument(
    model: Model, described: CatalogAction, argument: Argument
) -> Iterator[Diagnostic]:
    value, name = _written_value(argument.value), argument.name.text
    if value is NOT_LITERAL:
        return
    for path, keyword, allowed in _misfits(described.input_schema, name, value):
        if keyword in _SAID_BY_MISFITS or (keyword == "enum" and _are_strings(allowed)):
            continue
        span = _place_of(argument.value, path[1:])
        message = f'argument "{name}" of {described.name} does not fit its schema'
        yield finding(model, codes.WRONG_TYPE, span, message, _rule(keyword, allowed))


def _misfits(
    schema: Any, name: str, value: Any
) -> Iterator[tuple[tuple[str | int, ...], str, Any]]:
    """Yields path, keyword and its value for each rule that an argument breaks."""
    import jsonschema
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    # An empty registry: what a `$ref` to elsewhere means is never fetched, so never judged.
    validator = jsonschema.Draft202012Validator(schema, registry=Registry())
    try:
        for error in validator.iter_errors({name: value}):
            path = tuple(error.absolute_path)
            if path[:1] == (name,):
                yield path, str(error.validator), error.validator_value
    except (Unresolvable, RecursionError):
        return  # a value nested that deep is refused elsewhere (WF215)


def _written_value(expr: Expr) -> Any:
    """Returns the JSON value of an expression that is a literal all through, else NOT_LITERAL."""
    made: dict[int, Any] = {}
    pending: list[tuple[Expr, bool]] = [(expr, False)]
    while pending:
        current, opened = pending.pop()
        parts = _parts(current)
        if parts is None:
            literal = literal_value(current)
            if literal is NOT_LITERAL:
                return NOT_LITERAL
            made[id(current)] = float(literal) if isinstance(literal, Decimal) else literal
        elif not opened:
            pending.append((current, True))
            pending += [(part, False) for part in parts]
        elif isinstance(current, ListExpr):
            made[id(current)] = [made[id(item)] for item in current.items]
        elif isinstance(current, ObjectExpr):
            made[id(current)] = {entry.key: made[id(entry.value)] for entry in current.entries}
    return made[id(expr)]


def _parts(expr: Expr) -> tuple[Expr, ...] | None:
    if isinstance(expr, ListExpr):
        return expr.items
    if isinstance(expr, ObjectExpr):
        return tuple(entry.value for entry in expr.entries)
    return None


def _place_of(expr: Expr, path: tuple[str | int, ...]) -> Span:
    """Where the value at a path stands; what has no place of its own is shown by what holds it."""
    for step in path:
        if isinstance(expr, ListExpr) and isinstance(step, int) and step < len(expr.items):
            expr = expr.items[step]
        elif isinstance(expr, ObjectExpr):
            found = next((entry for entry in expr.entries if entry.key == step), None)
            if found is None:
                break
            expr = found.value
    return expr.span


def _are_strings(allowed: Any) -> bool:
    return isinstance(allowed, list) and all(isinstance(value, str) for value in allowed)


_RULES = {
    "minimum": "it is at least {}",
    "maximum": "it is at most {}",
    "exclusiveMinimum": "it is more than {}",
    "exclusiveMaximum": "it is less than {}",
    "multipleOf": "it is a multiple of {}",
    "minLength": "it has at least {} characters",
    "maxLength": "it has at most {} characters",
    "pattern": "it matches {}",
    "minItems": "it has at least {} items",
    "maxItems": "it has at most {} items",
    "uniqueItems": "no item stands twice",
    "const": "it is {}",
    "enum": "it is one of {}",
    "format": "it has the format {}",
}


def _rule(keyword: str, allowed: Any) -> str:
    """The rule that is broken, as a hint."""
    from compiler.json_values import dumps

    if keyword == "enum" and isinstance(allowed, list):
        shown = ", ".join(dumps(value) for value in allowed)
    else:
        shown = dumps(allowed) if not isinstance(allowed, float) else str(allowed)
    if len(shown) > _LONGEST:
        shown = shown[:_LONGEST] + "…"
    return _RULES.get(keyword, f"the schema has a rule for it: `{keyword}`").format(shown)

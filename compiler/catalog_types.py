"""The short types of a catalog, `input: "{ sku: string }"`, and where in YAML their parts stand.

Flow: all short types of a catalog are parsed in one go, as aliases of a workflow; only when that
fails, each on its own, for the parser's reason. Places in the parsed text are moved into the YAML
file as long as the string stands there as it is read (one line, no escapes).
"""

from __future__ import annotations

import re

from compiler.yaml_reader import YamlNode
from dsl.nodes import TypeExpr
from dsl.quick_class import dataclass
from dsl.source import SourceFile, Span

_PREFIX = "workflow catalog_types {\n"
_LONGEST_SHOWN = 60  # characters of a type in a hint
_TYPE_WORD = re.compile(r"(string|int|integer|number|bool|boolean|any|object|list<.+>)\??\Z")
_SCHEMAS = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
)
_DATA = frozenset(("enum", "const", "default", "examples"))  # what they hold is no schema
# What may stand in a schema: a name outside of these is nothing that JSON Schema knows.
_KEYWORDS = _SCHEMAS | frozenset(
    (
        *("$id", "$schema", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary"),
        *("$comment", "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum"),
        *("minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems"),
        *("minItems", "uniqueItems", "maxContains", "minContains", "maxProperties"),
        *("minProperties", "required", "dependentRequired", "allOf", "anyOf", "oneOf", "not"),
        *("if", "then", "else", "prefixItems", "items", "contains", "additionalProperties"),
        *("propertyNames", "unevaluatedItems", "unevaluatedProperties", "title", "description"),
        *("default", "deprecated", "readOnly", "writeOnly", "examples", "format"),
        *("contentEncoding", "contentMediaType", "contentSchema"),
    )
)


@dataclass(frozen=True, slots=True)
class ShortType:
    """A parsed type; `base` is where its text begins in what was parsed."""

    expr: TypeExpr
    base: int


@dataclass(frozen=True, slots=True)
class NoType:
    """Why a text is no type, and where in it; the span is None when all of it is meant."""

    reason: str | None
    span: Span | None
    hint: str | None


def parse_short_types(texts: list[str]) -> list[ShortType] | NoType:
    """Parses types by way of aliases; a reason when any of them is not a type."""
    from dsl.parser import parse_text

    if not texts:
        return []
    heads = [f"type T{number} = " for number in range(len(texts))]
    bases, body = [], _PREFIX
    for head, text in zip(heads, texts, strict=True):
        bases.append(len(body) + len(head))
        body += f"{head}{text}\n"
    result = parse_text(body + "}\n", "catalog types")
    errors = [found for found in result.diagnostics if found.severity == "error"]
    if result.file is None or errors:
        return _no_type(errors[0].message, errors[0].span, errors[0].hint, bases[0], texts[0])
    aliases = [alias for workflow in result.file.workflows for alias in workflow.types]
    if len(aliases) != len(texts):
        # A text such as `int type B = int` must not pass for one type.
        return NoType(None, None, None)
    return [ShortType(alias.type, base) for alias, base in zip(aliases, bases, strict=True)]


def _no_type(message: str, span: Span, hint: str | None, base: int, text: str) -> NoType:
    start, end = span.start - base, span.end - base
    if not 0 <= start <= len(text):
        return NoType(None, None, None)  # it is about what was put around the text
    if start >= len(text.rstrip()):
        return NoType("the type ends too early", Span(len(text), len(text)), None)
    return NoType(message, Span(start, min(end, len(text))), hint)


def place_in_yaml(source: SourceFile, node: YamlNode, span: Span) -> Span:
    """Returns where a part of a string stands in its YAML file; the whole string if unknown."""
    written = source.text[node.span.start : node.span.end]
    begin = written.find(node.content)
    if begin not in (0, 1) or not node.content:
        return node.span
    start = node.span.start + begin + span.start
    return Span(start, max(start + 1, node.span.start + begin + span.end))


def unquoted_type(schema: YamlNode) -> tuple[Span, str, str] | None:
    """Finds a type that was meant to be a string in what YAML reads as a mapping.

    `input: { sku: string }` is a mapping, and as a JSON Schema it would allow everything. Returns
    the place of the first such key, the key, and a hint.
    """
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node.content, tuple):
            pending += reversed(node.content)
        if not isinstance(node.content, dict):
            continue
        for key, child in node.content.items():
            if key not in _KEYWORDS and not key.startswith("x-") and _is_type_word(child):
                return node.key_spans[key], key, _quoted(schema)
        for key, child in reversed(node.content.items()):
            if key in _SCHEMAS and isinstance(child.content, dict):
                pending += reversed(child.content.values())
            elif key not in _DATA and not key.startswith("x-"):
                pending.append(child)
    return None


def _is_type_word(node: YamlNode) -> bool:
    return isinstance(node.content, str) and _TYPE_WORD.match(node.content) is not None


def _quoted(schema: YamlNode) -> str:
    written = _written(schema.value(), 0)
    if len(written) > _LONGEST_SHOWN or not written.isprintable():
        written = "{ text: string }"
    return f'put the type in quotes: "{written}"'


def _written(value: object, depth: int) -> str:
    if isinstance(value, dict) and depth < 4:
        return "{ " + ", ".join(f"{k}: {_written(v, depth + 1)}" for k, v in value.items()) + " }"
    return value if isinstance(value, str) and '"' not in value else "any"

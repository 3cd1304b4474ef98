"""Checks a GraphSpec that stands in a file: `wf check order.spec.json`.

Flow: bytes → text → JSON → the shape of the document (`spec`) → `verify_spec`. Each step stops the
rest when it finds something. Findings are diagnostics with the line and column of their row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from compiler import codes, json_values
from compiler.json_places import places
from dsl.codes import Code
from dsl.diagnostics import Diagnostic
from dsl.source import SourceFile, Span

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from compiler.spec import GraphSpec

_WANTED = {
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "string_type": "a text",
    "int_type": "an integer",
    "bool_type": "true or false",
}
MOST_MISFITS = 50
"""Of a document that is something else altogether, more says nothing more."""


def check_spec(data: str | bytes, name: str) -> tuple[Diagnostic, ...]:
    """Returns what is wrong with a GraphSpec document, sorted by place."""
    return read_spec(data, name)[1]


def read_spec(data: str | bytes, name: str) -> tuple[GraphSpec | None, tuple[Diagnostic, ...]]:
    """Reads and verifies a GraphSpec document; the spec is None when anything is wrong."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return None, (_whole(SourceFile(name, ""), f"byte {error.start} is not UTF-8"),)
    source = SourceFile(name, text)
    try:
        document = json_values.loads(text)
    except json.JSONDecodeError as error:
        span = Span(error.pos, error.pos + 1)
        return None, (_diagnostic(source, codes.NO_GRAPH, f"no JSON: {_lower(error.msg)}", span),)
    except json_values.UnstorableValue as error:
        return None, (_whole(source, str(error)),)
    spec, found = _read_document(document)
    if not found:
        return spec, ()
    where = places(text)
    whole = where[""]
    shown = {_diagnostic(source, c, m, where.get(place, whole)): None for c, m, place in found}
    return None, tuple(sorted(shown, key=lambda diagnostic: diagnostic.sort_key))


_Found = list[tuple[Code, str, str]]


def _read_document(document: Any) -> tuple[GraphSpec | None, _Found]:
    """Returns the spec, or code, message and place of what is wrong with the document."""
    from pydantic import ValidationError

    from compiler.spec import SPEC_FORMAT, GraphSpec
    from compiler.verify import verify_spec

    if isinstance(document, dict):
        given = document.get("spec_format")
        if isinstance(given, int) and not isinstance(given, bool) and given != SPEC_FORMAT:
            message = f"spec_format {given} is not known; {SPEC_FORMAT} is"
            return None, [(codes.UNKNOWN_FORMAT, message, "/spec_format")]
    try:
        spec = GraphSpec.model_validate(document)
    except ValidationError as error:
        return None, list(_misfits(error.errors()[:MOST_MISFITS]))
    return spec, [(found.code, found.message, found.place) for found in verify_spec(spec)]


def _misfits(errors: Iterable[ErrorDetails]) -> Iterable[tuple[Code, str, str]]:
    missing: dict[str, list[str]] = {}
    for error in errors:
        steps = [str(step).replace("~", "~0").replace("/", "~1") for step in error["loc"]]
        place = "".join(f"/{step}" for step in steps)
        name = "a graph" if not steps else steps[-1]
        if steps and isinstance(error["loc"][-1], int):
            name = f"row {name} of {steps[-2]}"
        if error["type"] == "missing":
            missing.setdefault(place.rpartition("/")[0], []).append(name)
        elif error["type"] == "extra_forbidden":
            yield codes.NO_GRAPH, f"{name} is not known here", place
        else:
            yield codes.NO_GRAPH, _told(error, name), place
    for place, names in missing.items():
        yield codes.NO_GRAPH, f"missing here: {', '.join(names)}", place


def _told(error: ErrorDetails, name: str) -> str:
    """What pydantic says, in the words of a JSON document."""
    wanted = _WANTED.get(error["type"])
    if wanted is not None:
        return f"{name} should be {wanted}"
    return _lower(error["msg"].replace("Input should", f"{name} should"))


def _diagnostic(source: SourceFile, code: Code, message: str, span: Span) -> Diagnostic:
    return Diagnostic(
        code=code.code, severity=code.severity, message=message, source=source, span=span
    )


def _whole(source: SourceFile, message: str) -> Diagnostic:
    return _diagnostic(source, codes.NO_GRAPH, message, Span(0, min(1, len(source.text))))


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]

"""Diagnostics for other programs: GitHub's workflow commands, and SARIF 2.1.0.

Both formats have rules of their own for what a text may hold: GitHub's commands end at a line end,
so `%`, CR and LF are escaped; SARIF is JSON, its columns count UTF-16 units and its file names are
URIs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from dsl.diagnostics import Diagnostic
from dsl.plain import plain
from dsl.source import SourceFile, Span

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render_github(diagnostics: Iterable[Diagnostic]) -> str:
    """Returns one workflow command per finding, each ending in a newline."""
    return "".join(_command(found) for found in diagnostics)


def _command(found: Diagnostic) -> str:
    start, end = _region(found.source, found.span)
    properties = {
        "file": found.source.name,
        "line": str(start.line),
        "col": str(start.column),
        "endLine": str(end.line),
        "endColumn": str(end.column),
        "title": found.code,
    }
    written = ",".join(f"{name}={_escape_property(text)}" for name, text in properties.items())
    message = found.message if found.hint is None else f"{found.message}\nhint: {found.hint}"
    return f"::{found.severity} {written}::{_escape(message)}\n"


def _region(source: SourceFile, span: Span) -> tuple[Any, Any]:
    return source.position(span.start), source.position(span.end)


def _escape(text: str) -> str:
    lines = [plain(line) for line in text.split("\n")]
    return "\n".join(lines).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(plain(text)).replace(":", "%3A").replace(",", "%2C")


def render_sarif(diagnostics: Iterable[Diagnostic], titles: Mapping[str, str], version: str) -> str:
    """Returns a SARIF log with one run; `titles` names the codes, by code."""
    found = list(diagnostics)
    codes = sorted({one.code for one in found})
    places = {code: number for number, code in enumerate(codes)}
    log = {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "wfsql",
                        "version": version,
                        "rules": [_rule(code, titles.get(code, code)) for code in codes],
                    }
                },
                "columnKind": "utf16CodeUnits",
                "results": [_result(one, places[one.code]) for one in found],
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def _rule(code: str, title: str) -> dict[str, Any]:
    return {"id": code, "shortDescription": {"text": title}}


def _result(found: Diagnostic, rule: int) -> dict[str, Any]:
    text = found.message if found.hint is None else f"{found.message} (hint: {found.hint})"
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": rule,
        "level": found.severity,
        "message": {"text": text},
        "locations": [{"physicalLocation": _location(found.source, found.span)}],
    }
    if found.labels:
        result["relatedLocations"] = [
            {
                "message": {"text": label.message},
                "physicalLocation": _location(found.source, label.span),
            }
            for label in found.labels
        ]
    return result


def _location(source: SourceFile, span: Span) -> dict[str, Any]:
    start, end = _region(source, span)
    return {
        "artifactLocation": {"uri": quote(source.name.replace("\\", "/"))},
        "region": {
            "startLine": start.line,
            "startColumn": start.utf16_column,
            "endLine": end.line,
            "endColumn": end.utf16_column,
        },
    }

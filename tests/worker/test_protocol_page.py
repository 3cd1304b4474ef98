"""docs/worker-protocol.md says what is so: its examples fit the gateway's OpenAPI document."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compiler import json_values

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "worker-protocol.md"
_EXAMPLE = re.compile(
    r"<!-- example: (?:(\d+) )?(GET|POST) (\S+) -->\n```json\n(.*?)\n```", re.DOTALL
)


@dataclass(frozen=True)
class Example:
    """A body of the page: of a request, or of the answer with this status."""

    status: str | None
    method: str
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.status or 'request'} {self.method} {self.path}"


def examples() -> list[Example]:
    return [Example(*found) for found in _EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def openapi() -> Any:
    from wfsql.gateway.openapi import document

    return document()


def schema_of(example: Example, openapi: Any) -> Any:
    operation = openapi["paths"][example.path][example.method.lower()]
    part = (
        operation["requestBody"] if not example.status else operation["responses"][example.status]
    )
    return part["content"]["application/json"]["schema"]


@pytest.mark.parametrize("example", examples(), ids=str)
def test_an_example_fits_the_openapi_document(example: Example, openapi: Any) -> None:
    import jsonschema

    schema = {**schema_of(example, openapi), "components": openapi["components"]}
    value = json_values.loads(example.text)
    jsonschema.Draft202012Validator(schema).validate(value)


def test_every_json_example_is_checked() -> None:
    text = PAGE.read_text(encoding="utf-8")
    at_line_starts = text.count("\n```json\n")
    assert len(examples()) == at_line_starts > 15


def test_every_call_of_a_worker_stands_on_the_page(openapi: Any) -> None:
    shown = {(example.method, example.path) for example in examples() if example.status}
    calls = {
        (method.upper(), path)
        for path, methods in openapi["paths"].items()
        for method in methods
        if path.startswith("/v1/workers/") or path == "/v1/actions"
    }
    assert shown == calls


def test_every_reason_and_command_is_explained() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for word in (
        "OK",
        "REPEATED",
        "STALE",
        "CANCELLED",
        "ENDED",
        "NONE",
        "DRAIN",
        "STOP",
        "CANCEL",
    ):
        assert f"| `{word}` |" in text

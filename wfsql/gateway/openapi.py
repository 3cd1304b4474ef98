"""The OpenAPI 3.1 description, made from the operations and their models.

`python -m wfsql.gateway.openapi docs/openapi.json` writes it; a test compares the file.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from wfsql.gateway.models import ProblemOut
from wfsql.gateway.operations import Operation
from wfsql.gateway.problems import TITLES

_REF = "#/components/schemas/{model}"
_COMMON = (400, 405, 421, 500, 503)
_WITH_TOKEN = (401, 429)
_WITH_BODY = (408, 413, 415)


@cache
def document_bytes() -> bytes:
    """Returns the description as the gateway serves it."""
    return (json.dumps(document(), indent=1, ensure_ascii=False) + "\n").encode()


def document() -> dict[str, Any]:
    """Returns the description as a value."""
    from wfsql.gateway.app import OPERATIONS

    names, schemas = _schemas(OPERATIONS)
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        entry = _operation(operation, names)
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "wfsql gateway",
            "version": "1",
            "description": "Workers claim tasks and hand in results; programs send events, start"
            " instances and look at them. Numbers keep their digits, times are RFC 3339 in UTC.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": _problems(names),
            "securitySchemes": {
                "worker_token": {"type": "http", "scheme": "bearer"},
                "api_key": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _schemas(operations: tuple[Operation, ...]) -> tuple[dict[Any, str], Any]:
    bodies = {o.body for o in operations if o.body is not None}
    answers = {o.answer for o in operations if o.answer is not None} | {ProblemOut}
    wanted = sorted(
        [(model, "validation") for model in bodies]
        + [(model, "serialization") for model in answers],
        key=lambda pair: (pair[0].__name__, pair[1]),
    )
    names, found = models_json_schema(wanted, ref_template=_REF)  # type: ignore[arg-type]
    by_model = {model: str(ref["$ref"]).rpartition("/")[2] for (model, _), ref in names.items()}
    return by_model, dict(sorted(found["$defs"].items()))


def _operation(operation: Operation, names: dict[type[BaseModel], str]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": _parameters(operation),
        "responses": _responses(operation, names),
    }
    if operation.roles:
        entry["description"] = f"Needs a key with the role {' or '.join(sorted(operation.roles))}."
    if security := _security(operation):
        entry["security"] = security
    if operation.body is not None:
        entry["requestBody"] = {
            "required": operation.needs_body,
            "content": {"application/json": {"schema": _ref(names[operation.body])}},
        }
    return entry


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    match operation.caller:
        case "worker":
            return [{"worker_token": []}]
        case "key":
            return [{"api_key": []}]
        case "worker_or_key":
            return [{"api_key": []}, {"worker_token": []}]
        case "monitor":
            return [{}, {"api_key": []}]
        case "anybody":
            return []


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 1, "maximum": 10**18 - 1},
        }
        for name in re.findall(r"\{(\w+)\}", operation.path)
    ]
    found += [
        {"name": p.name, "in": "query", "description": p.description, "schema": dict(p.schema)}
        for p in operation.query
    ]
    if operation.caller == "worker_or_key":
        found.append(
            {
                "name": "X-Worker-Id",
                "in": "header",
                "description": "with a worker's token: which worker",
                "schema": {"type": "string"},
            }
        )
    return found


def _responses(operation: Operation, names: dict[type[BaseModel], str]) -> dict[str, Any]:
    kind = "text/plain" if operation.name == "metrics" else "application/json"
    schema: dict[str, Any] = {"type": "string"} if operation.name == "metrics" else {}
    if operation.answer is not None:
        schema = _ref(names[operation.answer])
    found = {str(operation.status): {"description": "done", "content": {kind: {"schema": schema}}}}
    statuses = {*_COMMON, *operation.refusals}
    if operation.caller != "anybody":
        statuses |= {*_WITH_TOKEN}
    if operation.roles:
        statuses |= {403}
    if operation.body is not None:
        statuses |= {*_WITH_BODY, 404}
    for status in sorted(statuses):
        found[str(status)] = {"$ref": f"#/components/responses/Problem{status}"}
    return found


def _problems(names: dict[Any, str]) -> dict[str, Any]:
    problem = {"application/problem+json": {"schema": _ref(names[ProblemOut])}}
    return {
        f"Problem{status}": {"description": title, "content": problem}
        for status, title in TITLES.items()
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": _REF.format(model=name)}


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(document_bytes())

"""The description of the API: it is the one that is checked in, and the gateway keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi import checks

from tests.gateway.conftest import Running
from tests.gateway.test_security import OPERATIONS, assert_problem, good_headers
from wfsql.gateway import openapi
from wfsql.gateway.keys import new_key

FILE = Path(__file__).parents[2] / "docs" / "openapi.json"
DESCRIPTION = openapi.document()
BY_PATH = {(o.path, o.method): o for o in OPERATIONS}

schema = schemathesis.openapi.from_dict(DESCRIPTION)


def test_the_file_is_what_the_gateway_serves(gateway: Running) -> None:
    """`python -m wfsql.gateway.openapi docs/openapi.json` writes it."""
    assert gateway.client.get("/openapi.json").content == FILE.read_bytes()


def test_every_operation_is_described_once() -> None:
    names = [
        entry["operationId"]
        for methods in DESCRIPTION["paths"].values()
        for entry in methods.values()
    ]

    assert sorted(names) == sorted(operation.name for operation in OPERATIONS)


@pytest.fixture
def busy(gateway: Running) -> Running:
    """A gateway with an instance, a leased task, a worker and keys: ids from 1 on are there."""
    gateway.start()
    gateway.claim()
    return gateway


@schema.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_the_gateway_keeps_its_description(case: Any, busy: Running) -> None:
    """No answer but those described, whatever is sent; never a fault."""
    operation = BY_PATH.get((case.path, case.method.upper()))
    if operation is None:
        assert case.call(base_url=busy.url).status_code == 405
        return
    headers = {} if operation.caller in ("anybody", "monitor") else good_headers(busy, operation)
    if isinstance(case.body, dict) and "wait_seconds" in case.body:
        case.body["wait_seconds"] = 0

    answer = case.call(base_url=busy.url, headers=headers)

    assert answer.status_code < 500, answer.text
    case.validate_response(
        answer,
        checks=[
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_schema_conformance,
        ],
    )


def test_answers_fit_their_models(gateway: Running) -> None:
    from jsonschema import Draft202012Validator

    def check(name: str, value: Any) -> None:
        found = {"$ref": f"#/components/schemas/{name}", "components": DESCRIPTION["components"]}
        Draft202012Validator(found).validate(value)

    instance = gateway.start(context={"amount": 1})
    reader = gateway.as_key("reader")
    check("Instances", gateway.client.get("/v1/instances", headers=reader).json())
    shown = gateway.client.get(f"/v1/instances/{instance}", headers=reader).json()
    check("InstanceWithOutput", shown)
    tasks = gateway.request()
    check("Tasks", tasks)
    check("HeartbeatAnswer", gateway.call(tasks["tasks"][0], "heartbeat").json())
    check("SubmitAnswer", gateway.call(tasks["tasks"][0], "submit", result_code=0).json())
    refused = gateway.client.get("/v1/instances", headers={"Authorization": f"Bearer {new_key()}"})
    check("ProblemOut", refused.json())
    assert_problem(refused, 401)

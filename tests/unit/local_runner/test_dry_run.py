"""The dry run: inputs along the way that assumed results lead."""

from __future__ import annotations

from typing import Any

import pytest

from local_runner.dry_run import Scripts, read_scripts, sample
from local_runner.engine import DryRunResult, LocalWorkflowEngine, WaitEventUnsupported
from tests.unit.local_runner.graphs import (
    Part,
    action,
    ctx,
    foreach,
    if_,
    lit,
    sleep,
    workflow,
)


def dry(spec: Any, scripts: Any = None, context: Any = None) -> DryRunResult:
    read = read_scripts(scripts or {})
    assert isinstance(read, Scripts)
    result = LocalWorkflowEngine(spec, {}).dry_run(context or {}, read)
    assert isinstance(result, DryRunResult)
    return result


def described(spec: Any, output_schema: Any) -> Any:
    row = {
        "name": "do",
        "revision": "r",
        "description": None,
        "version": None,
        "capability": "t",
        "input_schema": None,
        "output_schema": output_schema,
        "result_codes": {},
        "idempotent": True,
        "timeout_ms": None,
        "sensitive": [],
        "dispatch": {},
    }
    return type(spec).model_validate({**spec.to_json_value(), "actions": [row]})


def test_every_input_on_the_way_is_built() -> None:
    spec = workflow(
        [
            action("a", template={"n": 1}, sets=[("x", [["out", ["n"]]])]),
            action("b", template={"x": "${var.x}"}),
        ],
        variables=[("x", "set", None)],
    )
    result = dry(spec, {"a": {"output": {"n": 7}}})
    assert result.status == "SUCCEEDED"
    assert [(step.path, step.input) for step in result.steps] == [
        ("w/a", {"n": 1}),
        ("w/b", {"x": 7}),
    ]


def test_a_result_code_leads_to_its_branch() -> None:
    spec = workflow(
        [
            action("a"),
            if_("i", ctx("task", "a", "resultCode"), [action("yes")], [action("no")]),
        ]
    )
    assert [step.path for step in dry(spec, {"a": {"code": 2}}).steps] == ["w/a", "w/i/yes"]


def test_a_default_output_is_a_sample_of_the_schema() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    spec = workflow([action("a", sets=[("x", [["out", ["id"]]])])])
    assert dry(described(spec, schema)).trace["variables"] == {"x": ""}


def test_a_list_gives_successive_visits_and_its_last_repeats() -> None:
    spec = workflow([foreach("f", "x", lit([1, 2, 3]), [action("a")])])
    result = dry(spec, {"a": [{"output": "one"}, {"output": "more"}]})
    assert [step.output for step in result.steps] == ["one", "more", "more"]


@pytest.mark.parametrize("path", ["w/f[1]/a", "f[1]/a"])
def test_a_path_comes_before_a_key(path: str) -> None:
    spec = workflow([foreach("f", "x", lit([1, 2]), [action("a")])])
    result = dry(spec, {"a": {"output": 0}, path: {"output": 5}})
    assert [step.output for step in result.steps] == [0, 5]


def test_retries_and_sleeps_take_no_time() -> None:
    retry = {"limit": 1, "backoff_ms": 3_600_000, "on": ["any"]}
    spec = workflow([sleep("s", 86_400_000), action("a", retry=retry)])
    result = dry(spec, {"a": [{"code": -1}, {"code": 0}]})
    assert [(step.attempt, step.code) for step in result.steps] == [(1, -1), (2, 0)]


def test_an_input_that_cannot_be_built_fails_the_dry_run() -> None:
    spec = workflow([action("a", template={"x": "${var.x.y}"})], variables=[("x", "var", lit({}))])
    result = dry(spec)
    assert result.error is not None
    assert (result.status, result.error.message) == ("FAILED", "w/a: var.x.y is not there")


def test_a_workflow_that_waits_is_refused() -> None:
    spec = workflow([Part("paid", "WAIT_EVENT", {"event_type": "e"})])
    assert LocalWorkflowEngine(spec, {}).dry_run({}) == WaitEventUnsupported("w", ("paid",))


@pytest.mark.parametrize(
    "value", [[], {"a": 1}, {"a": []}, {"a": {"code": "1"}}, {"a": {"codes": 1}}, {"a": [{}, 1]}]
)
def test_results_of_another_shape_are_refused(value: Any) -> None:
    assert isinstance(read_scripts(value), str)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (None, {}),
        ({}, {}),
        ({"type": "array", "items": {}}, []),
        ({"enum": ["b", "a"]}, "b"),
        ({"const": 4}, 4),
        ({"default": None}, None),
        ({"type": ["null", "string"]}, None),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 0),
        ({"type": "object", "properties": {"a": {"type": "number"}, "b": {}}}, {"a": 0, "b": None}),
    ],
)
def test_a_sample_fits_its_schema(schema: Any, value: Any) -> None:
    assert sample(schema) == value

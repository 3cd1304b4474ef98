"""The verifier finds what is broken in a spec from elsewhere, and nothing in our own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from compiler.spec import GraphSpec
from compiler.verify import verify_spec
from compiler.verify_programs import check_program

Compiled = Callable[[str], GraphSpec]

TEXT = """\
workflow w {
  input { list : list<int> = [1] }
  var v : int = 0
  output { o = var.v }
  action a = any.thing(x: var.v + 1) { set v = code }
  switch a { case 0 { set v = 1 } case 1 {} default { fail -2 "no" } }
  if var.v { set v = 2 }
  parallel { sequence s {} sequence t {} }
  foreach i in var.list { set y = var.i collect c = var.y }
}
"""


@pytest.fixture
def document(compiled: Compiled) -> dict[str, Any]:
    return copy.deepcopy(compiled(TEXT).to_json_value())


def messages(document: dict[str, Any]) -> list[str]:
    found = verify_spec(GraphSpec.model_validate(document))
    return [f"{finding.node}: {finding.message}" for finding in found]


def row(document: dict[str, Any], field: str, **values: Any) -> dict[str, Any]:
    """Returns the one row of a list that has these values."""
    found: dict[str, Any]
    (found,) = [
        candidate
        for candidate in document[field]
        if all(candidate[name] == value for name, value in values.items())
    ]
    return found


def test_own_spec_is_sound(document: dict[str, Any]) -> None:
    assert messages(document) == []


def test_two_roots(document: dict[str, Any]) -> None:
    document["edges"] = [edge for edge in document["edges"] if edge["child"] != "a"]
    assert "w: there must be one root, not 2" in messages(document)


def test_two_parents(document: dict[str, Any]) -> None:
    document["edges"].append(
        {"parent": "s", "child": "a", "kind": "SEQUENCE", "order": 0, "case": None}
    )
    assert messages(document) == ["a: node a has 2 parents"]


def test_cycle_apart_from_the_root(document: dict[str, Any]) -> None:
    row(document, "edges", child="s")["parent"] = "t"
    row(document, "edges", child="t")["parent"] = "s"
    assert "s: nodes contain each other: s > t" in messages(document)


def test_unknown_node_in_an_edge(document: dict[str, Any]) -> None:
    row(document, "edges", child="a")["parent"] = "nowhere"
    assert messages(document) == ["nowhere: an edge names node nowhere, which is not there"]


def test_key_of_two_nodes(document: dict[str, Any]) -> None:
    row(document, "nodes", key="t")["key"] = "s"
    assert "s: key s is that of 2 nodes" in messages(document)


def test_edge_that_the_parent_cannot_have(document: dict[str, Any]) -> None:
    row(document, "edges", child="s")["kind"] = "THEN"
    assert "parallel_1: a PARALLEL has no THEN edge" in messages(document)


def test_if_without_then(document: dict[str, Any]) -> None:
    row(document, "edges", child="if_1.then")["kind"] = "ELSE"
    assert messages(document) == ["if_1: an IF needs a THEN edge"]


def test_order_with_a_gap(document: dict[str, Any]) -> None:
    row(document, "edges", child="t")["order"] = 2
    assert messages(document) == ["parallel_1: the orders of its edges do not count up from 0"]


def test_equal_case_values(document: dict[str, Any]) -> None:
    row(document, "edges", child="switch_1.case_1")["case"] = [0]
    assert messages(document) == ["switch_1: case 0 stands twice"]


def test_true_and_1_are_different_cases(document: dict[str, Any]) -> None:
    row(document, "edges", child="switch_1.case_1")["case"] = [1, True]
    assert messages(document) == []


def test_variable_of_a_node_that_is_not_around(document: dict[str, Any]) -> None:
    document["outputs"][0]["program"] = [["var", "y", "foreach_1.body", []]]
    assert messages(document) == ["w: program of output o: foreach_1.body is not around it"]


def test_unknown_variable(document: dict[str, Any]) -> None:
    document["outputs"][0]["program"] = [["var", "nope", "w", []]]
    assert messages(document) == ["w: program of output o: no variable nope of w"]


def test_unknown_owner(document: dict[str, Any]) -> None:
    row(document, "vars", name="c")["owner"] = "nowhere"
    assert "None: variable c belongs to node nowhere, which is not there" in messages(document)


def test_unknown_task(document: dict[str, Any]) -> None:
    document["outputs"][0]["program"] = [["ctx", "task", ["zz", "resultCode"]]]
    assert messages(document) == ["w: program of output o: no node zz"]


def test_attribute_that_is_missing(document: dict[str, Any]) -> None:
    del row(document, "nodes", key="if_1")["attributes"]["condition"]
    assert messages(document) == ["if_1: an IF needs attribute condition"]


def test_action_that_is_not_described(document: dict[str, Any]) -> None:
    document["actions"] = []
    assert messages(document) == ["a: action any.thing is not described"]


def test_pointer_that_leads_nowhere(document: dict[str, Any]) -> None:
    document["input_bindings"][0]["pointer"] = "/y"
    assert messages(document) == ["a: input binding /y points nowhere"]


def test_foreach_without_a_collection(document: dict[str, Any]) -> None:
    document["collection_bindings"] = []
    assert messages(document) == ["foreach_1: a FOREACH needs one collection binding, not 0"]


def test_type_without_its_root(document: dict[str, Any]) -> None:
    document["inputs"][0]["type"] = 99
    assert messages(document) == ["None: type 99 is used and is no root type"]


def test_deep_tree_is_refused_without_recursion(document: dict[str, Any]) -> None:
    node = {"type": "SEQUENCE", "generated": False, "attributes": {}}
    parent = "s"
    for number in range(3000):
        key = f"deep{number}"
        document["nodes"].append({"key": key, **node})
        document["edges"].append(
            {"parent": parent, "child": key, "kind": "SEQUENCE", "order": 0, "case": None}
        )
        parent = key
    assert messages(document) == ["deep510: node deep510 is nested deeper than 512 levels"]


PROGRAMS: dict[str, tuple[Any, str | None]] = {
    "empty": ([], "it must be a list of instructions"),
    "no list": ("x", "it must be a list of instructions"),
    "one value": ([["lit", 1]], None),
    "two values": ([["lit", 1], ["lit", 2]], "it leaves 2 values, not 1"),
    "nothing to take": ([["not"]], "instruction 0 needs 1 values and finds 0"),
    "unknown": ([["sql", "x"]], "instruction 0: 'sql' is not known"),
    "operands": ([["lit"]], "instruction 0: lit has 1 operands"),
    "jump back": ([["lit", 1], ["jf", -1]], "instruction 1: jf takes a count"),
    "jump too far": (
        [["lit", 1], ["jf", 3], ["lit", 2], ["bool"]],
        "instruction 1 jumps out of the program",
    ),
    "uneven ways": (
        [["lit", 1], ["jf", 2], ["lit", 2], ["lit", 3], ["add"]],
        "the ways to instruction 4 leave different stacks",
    ),
    "and": ([["lit", 1], ["jf", 2], ["lit", 2], ["bool"]], None),
    "alternatives": ([["code"], ["alt", 1], ["lit", 2]], None),
    "negative index": ([["out", [-1]]], "instruction 0: a step is a key, an index or a reference"),
    "program as an index": ([["out", [["lit", 1]]]], "instruction 0: a reference is wanted"),
    "object with a key twice": (
        [["lit", 1], ["lit", 2], ["obj", ["a", "a"]]],
        "instruction 2: obj has a key twice",
    ),
}


@pytest.mark.parametrize(("program", "problem"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_program_is_checked(program: Any, problem: str | None) -> None:
    problems, _references = check_program(program)
    assert problems == ([] if problem is None else [problem])


RETRY = {
    "limit": 1,
    "backoff_ms": 0,
    "factor_hundredths": 100,
    "max_ms": 0,
    "jitter": False,
    "on": ["any"],
}
BAD_ATTRIBUTES = [
    ("a", {"timeout_ms": 0}, "timeout_ms must be an integer of at least 1"),
    ("a", {"delay_ms": True}, "delay_ms must be an integer of at least 0"),
    (
        "a",
        {"retry": {"limit": 1}},
        "retry has limit, backoff_ms, factor_hundredths, max_ms, jitter and on",
    ),
    ("a", {"retry": RETRY | {"limit": 0}}, "limit of retry must be an integer of at least 1"),
    (
        "a",
        {"retry": RETRY | {"factor_hundredths": 10_001}},
        "factor_hundredths of retry must be at most 10000",
    ),
    ("a", {"retry": RETRY | {"jitter": 1}}, "jitter of retry must be true or false"),
    (
        "a",
        {"retry": RETRY | {"on": [10009]}},
        "on of retry lists any, lease, negative codes or 10013",
    ),
    ("a", {"dispatch": {"colour": 1}}, "dispatch has no column colour"),
    ("a", {"dispatch": {}}, "dispatch is an object with at least one column"),
    ("a", {"dispatch": {"max_deliveries": 2**31}}, "max_deliveries must be at most 2147483647"),
    ("a", {"timeout_ms": 10**15}, "timeout_ms must be at most 3162240000000"),
    ("a", {"branch_variable": 1}, "branch_variable must be a text"),
    ("a", {"priority": "1"}, "priority must be an integer"),
    (
        "a",
        {"dispatch": {"max_concurrent": 0}},
        "max_concurrent of dispatch must be an integer of at least 1",
    ),
    (
        "a",
        {"dispatch": {"max_deliveries": True}},
        "max_deliveries of dispatch must be an integer of at least 1",
    ),
    ("a", {"dispatch": {"idempotent": 1}}, "idempotent of dispatch must be true or false"),
    (
        "a",
        {"dispatch": {"affinity_key_field": ""}},
        "affinity_key_field of dispatch must be the name of a field",
    ),
    ("s", {"sleep_ms": -1}, "sleep_ms must be an integer of at least 0"),
    ("w", {"sleep_ms": 1}, "a SEQUENCE that fails or sleeps has no children"),
    ("parallel_1", {"join": 3}, "join 3 is more than its 2 branches"),
    ("parallel_1", {"keep_going": False}, "keep_going is true or left out"),
    ("foreach_1", {"batch": 0}, "batch must be an integer of at least 1"),
    ("foreach_1", {"tolerate": 3}, "tolerate has count or percent"),
    (
        "foreach_1",
        {"tolerate": {"percent": 101}},
        "tolerate takes an integer from 0, and at most 100 percent",
    ),
    ("if_1", {"timeout_ms": 1}, "an IF has no attribute timeout_ms"),
]


@pytest.mark.parametrize(("key", "change", "message"), BAD_ATTRIBUTES)
def test_bad_attribute(
    document: dict[str, Any], key: str, change: dict[str, Any], message: str
) -> None:
    row(document, "nodes", key=key)["attributes"] |= change
    assert messages(document) == [f"{key}: {message}"]


def test_timeout_edge_needs_a_timeout(compiled: Compiled) -> None:
    text = 'workflow w { wait_event k on "e" { timeout 1s { fail -1 } } }'
    document = copy.deepcopy(compiled(text).to_json_value())
    del row(document, "nodes", key="k")["attributes"]["timeout_ms"]
    assert messages(document) == ["k: a TIMEOUT edge needs timeout_ms"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"filter": [{"path": [], "value": 1}]}, "a filter has a path of keys and a value"),
        ({"filter": [{"path": ["a"], "value": []}]}, "the value of a filter must be a scalar"),
        ({"inputs": [{"name": "x", "program": [["lit", 1]]}]}, "there is no input x"),
        ({"inputs": [{"name": "list"}]}, "an input has a name and a program"),
    ],
)
def test_bad_subscription(document: dict[str, Any], change: dict[str, Any], message: str) -> None:
    known = {"event_type": "e", "mode": "start_instance", "filter": [], "inputs": []}
    document["subscriptions"] = [known | change]
    assert messages(document) == [f"None: subscription to e: {message}"]

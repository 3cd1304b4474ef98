"""Nodes are sound: their edges by kind, number and order, the values of cases, attributes.

What is said here of edges stands a second time in the view wf.edge_rule of both SQL trees; a test
compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from compiler import codes
from compiler.spec import EdgeRow, NodeRow
from compiler.verify_attributes import attribute_problems, is_integer
from compiler.verify_finding import Findings
from compiler.verify_tree import Tree

LEGAL_EDGES: dict[str, tuple[str, ...]] = {
    "ACTION": (),
    "SEQUENCE": ("SEQUENCE", "ON_ERROR", "FINALLY"),
    "PARALLEL": ("PARALLEL",),
    "IF": ("THEN", "ELSE"),
    "SWITCH": ("CASE", "DEFAULT"),
    "REPEAT": ("BODY",),
    "WHILE": ("BODY",),
    "FOREACH": ("BODY",),
    "WAIT_EVENT": ("TIMEOUT",),
}
"""Which edges a node may have, in the order in which they stand."""

MANY = ("SEQUENCE", "PARALLEL", "CASE")
NEEDED = ("THEN", "BODY", "PARALLEL")
TO_ANY_NODE = ("SEQUENCE", "PARALLEL")
"""Every other edge leads to a body, one generated SEQUENCE (R9)."""

ATTRIBUTES: dict[str, tuple[str, str]] = {
    "ACTION": (
        "action revision",
        "priority lease_ms timeout_ms delay_ms retry dispatch branch_variable",
    ),
    "SEQUENCE": ("", "fail sleep_ms timeout_ms"),
    "PARALLEL": ("", "limit join keep_going timeout_ms"),
    "IF": ("condition", ""),
    "SWITCH": ("subject", ""),
    "REPEAT": ("count", "counter keep timeout_ms"),
    "WHILE": ("condition max", "keep timeout_ms"),
    "FOREACH": ("item parallel", "index batch tolerate keep_going reuse timeout_ms"),
    "WAIT_EVENT": ("event_type", "correlate timeout_ms"),
}
"""By type of node: the attributes it must have, and those it may have."""

TEXTS = ("action", "revision", "item", "index", "counter", "branch_variable", "event_type")
MOST_INTEGER = 2**31 - 1
MOST_MILLISECONDS = 100 * 366 * 24 * 3600 * 1000
"""A hundred years: what is later than that is no date in every database."""


def check_nodes(tree: Tree) -> Findings:
    for node in tree.spec.nodes:
        yield from _check_edges(tree, node)
        for problem in _problems_of_attributes(tree, node):
            yield tree.at_node(codes.WRONG_ATTRIBUTE, problem, node.key)


def _check_edges(tree: Tree, node: NodeRow) -> Findings:
    edges = tree.edges[node.key]
    key = node.key
    if [edge.order for edge in edges] != list(range(len(edges))):
        message = "the orders of its edges do not count up from 0"
        yield tree.at_node(codes.ORDER_GAP, message, key)
    wrong = list(_wrong_edges(tree, node, edges))
    for message in wrong:
        yield tree.at_node(codes.WRONG_EDGE, message, key)
    kinds = [edge.kind for edge in edges]
    for needed in NEEDED:
        # A branch of the wrong kind is one fault, not two.
        if not wrong and needed in LEGAL_EDGES[node.type] and needed not in kinds:
            message = f"{_a(node)} needs a {needed} edge"
            yield tree.at_node(codes.MISSING_BRANCH, message, key)
    for message in _wrong_cases(edges):
        yield tree.at_node(codes.WRONG_CASE, message, key)


def _wrong_edges(tree: Tree, node: NodeRow, edges: list[EdgeRow]) -> Iterator[str]:
    legal = LEGAL_EDGES[node.type]
    kinds = [edge.kind for edge in edges]
    for kind in dict.fromkeys(kinds):
        if kind not in legal:
            yield f"{_a(node)} has no {kind} edge"
        elif kind not in MANY and kinds.count(kind) > 1:
            yield f"{_a(node)} has at most one {kind} edge"
    ranks = [legal.index(kind) for kind in kinds if kind in legal]
    if ranks != sorted(ranks):
        yield f"its edges stand in another order than {', '.join(legal)}"
    for edge in edges:
        child = tree.nodes[edge.child]
        is_body = child.type == "SEQUENCE" and child.generated
        if edge.kind in legal and edge.kind not in TO_ANY_NODE and not is_body:
            yield f"its {edge.kind} edge leads to {edge.child}, which is no generated SEQUENCE"


def _wrong_cases(edges: list[EdgeRow]) -> Iterator[str]:
    seen: set[Any] = set()
    for edge in edges:
        if (edge.kind == "CASE") != (edge.case is not None) or edge.case == []:
            yield "a CASE edge, and no other, has values"
        for value in edge.case or ():
            if not isinstance(value, str | int | Decimal | bool | None):
                yield "a case value must be a scalar"
                continue
            # S3.1: numbers by value, and never equal to a boolean.
            identity = (isinstance(value, bool), value)
            if identity in seen:
                yield f"case {value!r} stands twice"
            seen.add(identity)


def _problems_of_attributes(tree: Tree, node: NodeRow) -> Iterator[str]:
    needed, allowed = (frozenset(names.split()) for names in ATTRIBUTES[node.type])
    given = node.attributes
    for name in sorted(needed - set(given)):
        yield f"{_a(node)} needs attribute {name}"
    for name in sorted(set(given) - needed - allowed):
        yield f"{_a(node)} has no attribute {name}"
    for name in TEXTS:
        if name in given and not (isinstance(given[name], str) and given[name]):
            yield f"{name} must be a text"
    if "fail" in given:
        yield from _problems_of_fail(given["fail"])
    yield from _ranges(given)
    yield from attribute_problems(node, [edge.kind for edge in tree.edges[node.key]])


def _ranges(given: dict[str, Any]) -> Iterator[str]:
    """Numbers fit the columns they go to. What is no integer at all is found elsewhere."""
    if "priority" in given and not is_integer(given["priority"]):
        yield "priority must be an integer"
    numbers = [*given.items()]
    for owner in ("retry", "dispatch", "tolerate"):
        inner = given.get(owner)
        numbers += inner.items() if isinstance(inner, dict) else ()
    for name, value in numbers:
        if not is_integer(value):
            continue
        most = MOST_MILLISECONDS if name.endswith("_ms") else MOST_INTEGER
        if abs(value) > most:
            yield f"{name} must be at most {most}"


def _problems_of_fail(fail: Any) -> Iterator[str]:
    if not isinstance(fail, dict) or set(fail) != {"code", "message"}:
        yield "fail has code and message"
        return
    code = fail["code"]
    if not is_integer(code) or not -MOST_INTEGER - 1 <= code < 0:
        yield "the code of fail must be a negative integer"


def _a(node: NodeRow) -> str:
    return f"{'an' if node.type in ('ACTION', 'IF') else 'a'} {node.type}"

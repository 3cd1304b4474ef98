"""The verifier: a GraphSpec is sound, whoever made it.

Every spec the compiler makes goes through it (a finding is then our own fault), and so do specs
from elsewhere. Flow: keys and edges, then the tree, then what hangs on its nodes: attributes,
templates, bindings, variables, types, programs. When the tree is broken the rest is not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from compiler import graph as graphs
from compiler.spec import SPEC_FORMAT, EdgeRow, GraphSpec, NodeRow
from compiler.verify_attributes import attribute_problems, is_integer, subscription_problems
from compiler.verify_programs import Reference, check_program

MAX_NESTING = 512

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
NEEDED = ("THEN", "BODY")

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


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a spec, and the node it is about when it is about one."""

    message: str
    node: str | None = None


def verify_spec(spec: GraphSpec) -> tuple[Finding, ...]:
    """Returns everything that keeps a spec from being run; nothing when it is sound."""
    if spec.spec_format != SPEC_FORMAT:
        return (Finding(f"spec_format {spec.spec_format} is not known; {SPEC_FORMAT} is"),)
    found = [*_check_keys(spec)]
    if found:
        return tuple(found)
    found = [*_check_tree(spec)]
    if found:
        return tuple(found)
    return tuple(_Verifier(spec).findings())


def _check_keys(spec: GraphSpec) -> Iterator[Finding]:
    keys = Counter(node.key for node in spec.nodes)
    for key, count in keys.items():
        if count > 1:
            yield Finding(f"key {key} is that of {count} nodes", key)
        if not 1 <= len(key) <= 200 or key != key.strip():
            yield Finding("a key has 1 to 200 characters and no space at its ends", key)
    parents = Counter(edge.child for edge in spec.edges)
    for edge in spec.edges:
        for key in (edge.parent, edge.child):
            if key not in keys:
                yield Finding(f"an edge names node {key}, which is not there", key)
    for key, count in parents.items():
        if count > 1:
            yield Finding(f"node {key} has {count} parents", key)
    if not spec.nodes:
        yield Finding("there are no nodes")


def _check_tree(spec: GraphSpec) -> Iterator[Finding]:
    graph = graphs.containment(spec)
    tops = graphs.roots(graph)
    if len(tops) != 1:
        yield Finding(f"there must be one root, not {len(tops)}", tops[0] if tops else None)
    if not graphs.is_tree(graph):
        circle = graphs.cycle(graph)
        if circle:
            yield Finding("nodes contain each other: " + " > ".join(circle), circle[0])
        if len(tops) == 1:
            for key in graphs.unreached(graph, tops[0]):
                yield Finding(f"node {key} is not reached from the root", key)
    elif tops:
        generated = {node.key: node.generated for node in spec.nodes}
        for key, level in graphs.levels(graph, tops[0], generated).items():
            if level > MAX_NESTING:
                yield Finding(f"node {key} is nested deeper than {MAX_NESTING} levels", key)
                break


class _Verifier:
    """Checks what hangs on the nodes of a sound tree."""

    def __init__(self, spec: GraphSpec) -> None:
        self._spec = spec
        self._nodes = {node.key: node for node in spec.nodes}
        self._parents = {edge.child: edge.parent for edge in spec.edges}
        self._edges: dict[str, list[EdgeRow]] = {key: [] for key in self._nodes}
        for edge in spec.edges:
            self._edges[edge.parent].append(edge)
        self._root = next(key for key in self._nodes if key not in self._parents)
        self._variables = {(row.owner, row.name) for row in spec.vars}
        self._variables |= {(self._root, row.name) for row in spec.inputs}

    def findings(self) -> Iterator[Finding]:
        if self._nodes[self._root].type != "SEQUENCE":
            yield Finding("the root must be a SEQUENCE", self._root)
        for node in self._spec.nodes:
            yield from self._check_edges(node)
            yield from self._check_attributes(node)
        yield from self._check_types()
        yield from self._check_variables()
        yield from self._check_templates()
        yield from self._check_bindings()
        yield from self._check_subscriptions()

    # --- nodes and edges ---

    def _check_edges(self, node: NodeRow) -> Iterator[Finding]:
        edges = sorted(self._edges[node.key], key=lambda edge: edge.order)
        if [edge.order for edge in edges] != list(range(len(edges))):
            yield Finding("the orders of its edges do not count up from 0", node.key)
        legal = LEGAL_EDGES[node.type]
        kinds = [edge.kind for edge in edges]
        for kind in dict.fromkeys(kinds):
            if kind not in legal:
                yield Finding(f"a {node.type} has no {kind} edge", node.key)
            elif kind not in MANY and kinds.count(kind) > 1:
                yield Finding(f"a {node.type} has at most one {kind} edge", node.key)
        ranks = [legal.index(kind) for kind in kinds if kind in legal]
        if ranks != sorted(ranks):
            yield Finding(f"its edges stand in another order than {', '.join(legal)}", node.key)
        for needed in NEEDED:
            if needed in legal and needed not in kinds:
                yield Finding(f"a {node.type} needs a {needed} edge", node.key)
        yield from self._check_cases(node, edges)

    def _check_cases(self, node: NodeRow, edges: list[EdgeRow]) -> Iterator[Finding]:
        seen: set[Any] = set()
        for edge in edges:
            if (edge.kind == "CASE") != (edge.case is not None) or edge.case == []:
                yield Finding("a CASE edge, and no other, has values", node.key)
            for value in edge.case or ():
                if not isinstance(value, str | int | Decimal | bool | None):
                    yield Finding("a case value must be a scalar", node.key)
                    continue
                # S3.1: numbers by value, and never equal to a boolean.
                identity = (isinstance(value, bool), value)
                if identity in seen:
                    yield Finding(f"case {value!r} stands twice", node.key)
                seen.add(identity)

    def _check_attributes(self, node: NodeRow) -> Iterator[Finding]:
        needed, allowed = (frozenset(names.split()) for names in ATTRIBUTES[node.type])
        given = set(node.attributes)
        for name in sorted(needed - given):
            yield Finding(f"a {node.type} needs attribute {name}", node.key)
        for name in sorted(given - needed - allowed):
            yield Finding(f"a {node.type} has no attribute {name}", node.key)
        for name in ("condition", "subject", "count", "correlate"):
            if name in given:
                yield from self._check_program(node.attributes[name], node.key, name)
        if "fail" in given:
            yield from self._check_fail(node)
        kinds = [edge.kind for edge in self._edges[node.key]]
        for problem in attribute_problems(node, kinds):
            yield Finding(problem, node.key)

    def _check_fail(self, node: NodeRow) -> Iterator[Finding]:
        fail = node.attributes["fail"]
        if not isinstance(fail, dict) or set(fail) != {"code", "message"}:
            yield Finding("fail has code and message", node.key)
            return
        if not is_integer(fail["code"]) or fail["code"] >= 0:
            yield Finding("the code of fail must be a negative integer", node.key)
        yield from self._check_program(fail["message"], node.key, "message")

    # --- data ---

    def _check_types(self) -> Iterator[Finding]:
        known: dict[int, str] = {}
        for row in self._spec.types:
            if row.id in known:
                yield Finding(f"type {row.id} stands twice")
            if (row.kind == "root") != (row.parent is None):
                yield Finding(f"type {row.id} is a root or has a parent, not both")
            elif row.parent is not None and row.parent not in known:
                yield Finding(f"type {row.id} stands before its parent {row.parent}")
            if (row.kind == "field") != (row.name is not None):
                yield Finding(f"type {row.id}: a field, and nothing else, has a name")
            known[row.id] = row.kind
        used: list[int | None] = [row.type for row in self._spec.inputs]
        used += [row.type for row in self._spec.vars]
        for type_id in used:
            if type_id is not None and known.get(type_id) != "root":
                yield Finding(f"type {type_id} is used and is no root type")

    def _check_variables(self) -> Iterator[Finding]:
        names = [(self._root, row.name) for row in self._spec.inputs]
        names += [(row.owner, row.name) for row in self._spec.vars]
        for (owner, name), count in Counter(names).items():
            if owner not in self._nodes:
                yield Finding(f"variable {name} belongs to node {owner}, which is not there")
            if count > 1:
                yield Finding(f"variable {name} stands twice in one scope", owner)
        orders: dict[str, list[int]] = {}
        for row in self._spec.vars:
            orders.setdefault(row.owner, []).append(row.order)
            if row.program is not None and row.owner in self._nodes:
                yield from self._check_program(row.program, row.owner, f"variable {row.name}")
        for owner, found in orders.items():
            if sorted(found) != list(range(len(found))):
                yield Finding("the orders of its variables do not count up from 0", owner)
        for item in self._spec.inputs:
            if item.program is not None:
                yield from self._check_program(item.program, self._root, f"input {item.name}")
        for output in self._spec.outputs:
            yield from self._check_program(output.program, self._root, f"output {output.name}")

    def _check_templates(self) -> Iterator[Finding]:
        actions = {node.key for node in self._spec.nodes if node.type == "ACTION"}
        counts = Counter(row.node for row in self._spec.templates)
        yield from self._one_each(actions, counts, "template", "an ACTION")
        described = {(row.name, row.revision) for row in self._spec.actions}
        if len({row.name for row in self._spec.actions}) != len(self._spec.actions):
            yield Finding("an action is described twice")
        for key in actions:
            attributes = self._nodes[key].attributes
            if (attributes.get("action"), attributes.get("revision")) not in described:
                yield Finding(f"action {attributes.get('action')} is not described", key)

    def _one_each(
        self, wanted: Iterable[str], counts: Counter[str], what: str, kind: str
    ) -> Iterator[Finding]:
        wanted = set(wanted)
        for key in sorted(wanted):
            if counts[key] != 1:
                yield Finding(f"{kind} needs one {what}, not {counts[key]}", key)
        for key in counts:
            if key not in wanted:
                yield Finding(f"a {what} belongs to {kind}, and {key} is none", key)

    def _check_bindings(self) -> Iterator[Finding]:
        templates = {row.node: row.json_ for row in self._spec.templates}
        for row in self._spec.input_bindings:
            if row.node not in templates or not _points_into(templates[row.node], row.pointer):
                yield Finding(f"input binding {row.pointer} points nowhere", row.node)
            if row.node in self._nodes:
                yield from self._check_program(row.program, row.node, row.pointer)
        loops = {node.key for node in self._spec.nodes if node.type == "FOREACH"}
        counts = Counter(row.node for row in self._spec.collection_bindings)
        yield from self._one_each(loops, counts, "collection binding", "a FOREACH")
        for collection in self._spec.collection_bindings:
            if collection.node in self._nodes:
                yield from self._check_program(collection.program, collection.node, "collection")
        yield from self._check_output_bindings()

    def _check_output_bindings(self) -> Iterator[Finding]:
        orders: dict[str, list[int]] = {}
        for row in self._spec.output_bindings:
            node = self._nodes.get(row.node)
            orders.setdefault(row.node, []).append(row.order)
            if node is None:
                yield Finding(f"a binding names node {row.node}, which is not there", row.node)
                continue
            if row.kind == "collect" and node.type != "FOREACH":
                yield Finding("a collect belongs to a FOREACH", row.node)
            if row.kind == "var" and (node.type == "FOREACH" or node.generated):
                yield Finding("a set belongs to no FOREACH and no generated node", row.node)
            if (row.owner, row.name) not in self._variables:
                yield Finding(f"{row.kind} {row.name}: no such variable of {row.owner}", row.node)
            elif not self._is_visible(row.owner, row.node):
                yield Finding(f"{row.kind} {row.name}: {row.owner} is not around it", row.node)
            place = self._edges[row.node][0].child if row.kind == "collect" else row.node
            yield from self._check_program(row.program, place, f"{row.kind} {row.name}")
        for key, found in orders.items():
            if sorted(found) != list(range(len(found))):
                yield Finding("the orders of its bindings do not count up from 0", key)

    def _check_subscriptions(self) -> Iterator[Finding]:
        inputs = {row.name for row in self._spec.inputs}
        for row in self._spec.subscriptions:
            problems, programs = subscription_problems(row, inputs)
            for problem in problems:
                yield Finding(f"subscription to {row.event_type}: {problem}")
            for name, program in programs:
                yield from self._check_program(program, self._root, f"event input {name}")

    # --- programs ---

    def _check_program(self, program: Any, node: str, what: str) -> Iterator[Finding]:
        problems, references = check_program(program)
        for problem in problems:
            yield Finding(f"program of {what}: {problem}", node)
        for reference in references:
            yield from self._check_reference(reference, node, what)

    def _check_reference(self, reference: Reference, node: str, what: str) -> Iterator[Finding]:
        if reference.kind == "task":
            if reference.name not in self._nodes:
                yield Finding(f"program of {what}: no node {reference.name}", node)
            return
        if (reference.owner, reference.name) not in self._variables:
            message = f"program of {what}: no variable {reference.name} of {reference.owner}"
            yield Finding(message, node)
        elif not self._is_visible(reference.owner, node):
            yield Finding(f"program of {what}: {reference.owner} is not around it", node)

    def _is_visible(self, owner: str | None, node: str) -> bool:
        current: str | None = node
        while current is not None:
            if current == owner:
                return True
            current = self._parents.get(current)
        return False


def _points_into(template: Any, pointer: str) -> bool:
    """Whether a JSON pointer names a place of a template, and that place is null."""
    current = template
    if not pointer.startswith("/"):
        return False
    for step in pointer[1:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(current, dict) and key in current:
            current = current[key]
        elif isinstance(current, list) and key.isdecimal() and int(key) < len(current):
            current = current[int(key)]
        else:
            return False
    return current is None

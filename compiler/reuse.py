"""What `reuse` of a FOREACH comes to in its row: a fingerprint of the body, and what it reads.

An engine skips an iteration whose content key (S9.1) it has seen before. The key is made of the
item, of what the body *is*, and of every value the body reads from outside; the compiler knows the
latter two:

    foreach box in var.boxes reuse { action a = pack(box: var.box, to: var.to, n: ctx.index) }
    {"fingerprint": "9c41…", "reads": [["ctx", "index", []], ["var", "to", "w", []]]}

The fingerprint is made of rows, so that it changes with all that can change what an iteration does,
and with nothing else: no positions, no descriptions, no rows outside of the body. What the catalog
freezes of an action enters by the `version` that the catalog gives it alone (R8), so that a schema
or a name of a result code may be mended without doing all work anew; a time-out and a retry of the
catalog stand in the node, and count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from compiler import json_values
from compiler.checks.reuse import RUN_BOUND, body_of
from compiler.expressions import step_key
from compiler.model import Model, Node, Site, Variable
from compiler.programs import Instruction, lower_reference, result_code_of
from dsl.nodes import BareKey, Foreach, Reference

if TYPE_CHECKING:
    from compiler.spec import GraphSpec

_NEVER_READS = frozenset(RUN_BOUND) | {"workflow", "node"}
_BY_EDGE = {
    "sequenceIndex": frozenset({"SEQUENCE"}),
    "parallelIndex": frozenset({"PARALLEL"}),
    "error": frozenset({"ON_ERROR", "FINALLY"}),
}
"""Entries that are of the nearest node on such an edge, the reader included."""


def reads_of(model: Model, loop: Node) -> list[Instruction]:
    """Returns what the body of a FOREACH reads from outside, once each, by canonical text.

    An engine evaluates them at the opening of an iteration, in its scope. The item and those of the
    FOREACHs around are no reads: they are in every key.
    """
    body = body_of(loop)
    found = {
        json_values.canonical(instruction): instruction
        for site in model.sites
        if body.holds(site.node)
        for instruction in _outer_reads(model, site, body)
    }
    return [found[text] for text in sorted(found)]


def _outer_reads(model: Model, site: Site, body: Node) -> Iterator[Instruction]:
    if isinstance(site.expr, BareKey):
        if not _is_inside(model, site.expr.name, body):
            yield result_code_of(site.expr.name)
        return
    for reference in site.references:
        if _is_outer(model, site, reference, body):
            yield _cut(lower_reference(model, reference))


def _cut(instruction: Instruction) -> Instruction:
    """Ends a reference before its first computed index, which is a reference of its own."""
    *names, steps = instruction
    computed = (place for place, step in enumerate(steps) if isinstance(step, list))
    return [*names, steps[: next(computed, len(steps))]]


def _is_outer(model: Model, site: Site, reference: Reference, body: Node) -> bool:
    if reference.root == "var":
        variable = model.resolved.get(id(reference))
        return variable is not None and _is_outer_variable(variable, body)
    return reference.root == "ctx" and _is_outer_entry(model, site, reference, body)


def _is_outer_variable(variable: Variable, body: Node) -> bool:
    loop = variable.owner.parent
    is_item = (
        variable.kind == "loop"
        and loop is not None
        and isinstance(loop.statement, Foreach)
        and loop.statement.item.text == variable.name
    )
    if variable.owner is body:
        return variable.kind == "loop" and not is_item
    # An item that is written to is no longer the one in the key.
    return not body.holds(variable.owner) and not (is_item and not variable.writes)


def _is_outer_entry(model: Model, site: Site, reference: Reference, body: Node) -> bool:
    name = step_key(reference, 0)
    if name is None or name in _NEVER_READS:
        return False
    if name == "task":
        return not _is_inside(model, step_key(reference, 1), body)
    if name in ("item", "index", "iterationNo"):
        return name != "item" and _nearest_loop_body(site.node) is body
    if name == "parent":
        return site.node is body
    edges = _BY_EDGE.get(name)
    return edges is None or not any(node.edge in edges for node in _up_to(site.node, body))


def _is_inside(model: Model, key: str | None, body: Node) -> bool:
    task = None if key is None else model.by_key.get(key)
    return task is not None and body.holds(task)


def _nearest_loop_body(node: Node) -> Node | None:
    current: Node | None = node
    while current is not None and not current.is_loop_body:
        current = current.parent
    return current


def _up_to(node: Node, body: Node) -> Iterator[Node]:
    """Yields a node and those around it, below `body`."""
    current: Node | None = node
    while current is not None and current is not body:
        yield current
        current = current.parent


# --- fingerprints ------------------------------------------------------------------------------


class Fingerprints:
    """Makes the fingerprints of the loops of one GraphSpec.

    `nodes` of the spec are in pre-order, so that a body is a slice of them.
    """

    def __init__(self, spec: GraphSpec) -> None:
        self._spec = spec
        self._versions = {action.name: action.version for action in spec.actions}
        self._types = _types_by_root(spec)
        self._rows: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(dict)
        self._file("edges", "parent", spec.edges)
        self._file("templates", "node", spec.templates)
        self._file("input_bindings", "node", spec.input_bindings)
        self._file("output_bindings", "node", spec.output_bindings)
        self._file("collection_bindings", "node", spec.collection_bindings)
        self._file("vars", "owner", spec.vars)

    def _file(self, kind: str, key: str, rows: Iterable[Any]) -> None:
        for row in rows:
            document = row.model_dump(mode="python", by_alias=True)
            if kind == "vars" and row.type is not None:
                document["type"] = self._types[row.type]
            self._rows[document[key]].setdefault(kind, []).append(document)

    def of(self, loop: Node) -> str:
        """Returns SHA-256 over the canonical JSON of a loop's body, as 64 hex digits."""
        body = body_of(loop)
        nodes = self._spec.nodes[body.index : body.last + 1]
        actions = {node.attributes["action"] for node in nodes if node.type == "ACTION"}
        collects = self._rows[loop.key].get("output_bindings", [])
        return json_values.exact_sha256_hex(
            {
                "nodes": [self._node(node.key, node.type, node.attributes) for node in nodes],
                "collects": [{**row, "node": None} for row in collects],
                "actions": [[name, self._versions[name]] for name in sorted(actions)],
            }
        )

    def _node(self, key: str, type_: str, attributes: dict[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in attributes.items() if name != "revision"}
        if "reuse" in kept:
            kept["reuse"] = True  # what it comes to follows from these same rows
        return {"key": key, "type": type_, "attributes": kept, **self._rows[key]}


def _types_by_root(spec: GraphSpec) -> dict[int, list[dict[str, Any]]]:
    """Returns the rows of each type, with ids counted from its root."""
    found: dict[int, list[dict[str, Any]]] = {}
    root = 0
    for row in spec.types:
        if row.parent is None:
            root = row.id
        parent = None if row.parent is None else row.parent - root
        document = {**row.model_dump(mode="python"), "id": row.id - root, "parent": parent}
        found.setdefault(root, []).append(document)
    return found

"""The GraphSpec made ready to run: `load_graph` turns its flat rows into linked `Node`s.

Everything that can be known before an instance starts is worked out here once: children in order,
static depth, which node opens a scope, programs compiled, templates turned into programs.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from compiler.templates import template_program
from local_runner.execution import BODY, FINALLY, ON_ERROR
from local_runner.expressions import Program, compile_program
from local_runner.type_table import TypeNode, load_types

if TYPE_CHECKING:
    from compiler.spec import GraphSpec, NodeRow, VarRow

LOOPS: Final = frozenset({"FOREACH", "REPEAT", "WHILE"})

_RUN_EDGES: Final = frozenset(
    {
        "SEQUENCE",
        "PARALLEL",
        "THEN",
        "ELSE",
        "CASE",
        "DEFAULT",
        "BODY",
        "ON_ERROR",
        "FINALLY",
    }
)
_HEARD_IN: Final = {"ON_ERROR": ON_ERROR, "FINALLY": FINALLY}
_UNSUPPORTED_ATTRIBUTES: Final = ("branch_variable",)


@dataclass(slots=True)
class Binding:
    """A `set` or `collect`: `program` gives variable `name` of the scope that `owner` opens.

    `type` is what the variable was declared with, if it was.
    """

    name: str
    owner: str
    program: Program
    type: TypeNode | None = None


@dataclass(slots=True)
class Initialiser:
    """The value that a variable has from the opening of its scope on."""

    name: str
    program: Program
    type: TypeNode | None


@dataclass(frozen=True, slots=True)
class Reuse:
    """What the content key of an iteration covers besides its items (S9.1)."""

    fingerprint: str
    reads: tuple[Program, ...]


@dataclass(frozen=True, slots=True)
class Retry:
    """When and how often an ACTION is tried again (R20); `on` holds words and codes."""

    limit: int
    backoff_ms: int
    factor_hundredths: int
    max_ms: int
    has_jitter: bool
    on: frozenset[str | int]

    def matches(self, code: int | None) -> bool:
        return "any" in self.on or code in self.on

    def delay_ms(self, failure_count: int, salt: str) -> int:
        """Returns the wait after the k-th failure; `salt` is `instance_id/path`."""
        delay = self.backoff_ms
        for _ in range(failure_count - 1):
            if delay >= self.max_ms or self.factor_hundredths == 100:
                break
            grown = delay * self.factor_hundredths // 100
            if grown == delay:
                break
            delay = grown
        delay = min(delay, self.max_ms)
        if not self.has_jitter:
            return delay
        digest = hashlib.sha256(f"{salt}#{failure_count}".encode()).digest()
        return delay * (512 + int.from_bytes(digest[:2], "big") % 513) // 1024


@dataclass(slots=True)
class Node:
    """One node of the graph. Fields past `bindings` belong to the types that use them."""

    key: str
    type: str
    generated: bool
    attributes: Mapping[str, Any]
    parent: Node | None = None
    edge: str = ""
    heard_in: str = BODY  # the phase in which its parent listens to it
    order: int = 0
    depth: int = 0
    is_iteration: bool = False
    opens_scope: bool = False
    children: list[Node] = field(default_factory=list)
    initialisers: list[Initialiser] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)

    timeout_ms: int | None = None
    action: str = ""
    sensitive: tuple[str, ...] = ()  # JSON pointers to what the trace masks
    priority: int = 0
    delay_ms: int = 0
    retry: Retry | None = None
    sleep_ms: int | None = None
    steps: list[Node] = field(default_factory=list)  # SEQUENCE: the children of its body
    on_error: Node | None = None
    final: Node | None = None
    program: Program | None = None  # input, condition, subject, count, collection, fail message
    fail_code: int | None = None
    then: Node | None = None
    otherwise: Node | None = None  # ELSE or DEFAULT
    cases: list[tuple[list[Any], Node]] = field(default_factory=list)
    body: Node | None = None
    parallel: int = 1  # FOREACH and PARALLEL: how many at a time, 0 for all
    needed: int = 0  # PARALLEL: how many branches must succeed
    tolerated_count: int = 0  # FOREACH: how many iterations may fail …
    tolerated_percent: int | None = None  # … or how many of a hundred
    keep_going: bool = False
    batch: int | None = None
    max_iterations: int = 0
    keep: int | None = None  # REPEAT and WHILE: how many finished iterations stay
    item: str | None = None
    index: str | None = None  # FOREACH's index variable, REPEAT's counter
    collects: list[Binding] = field(default_factory=list)
    reuse: Reuse | None = None  # FOREACH


@dataclass(frozen=True, slots=True)
class InputDeclaration:
    name: str
    type: TypeNode
    program: Program | None


@dataclass(frozen=True)
class Graph:
    """A workflow ready to run."""

    spec: GraphSpec
    name: str
    root: Node
    nodes: Mapping[str, Node]
    inputs: tuple[InputDeclaration, ...]
    outputs: tuple[tuple[str, Program], ...]

    @cached_property
    def version(self) -> str:
        """What `ctx.version` gives; made when asked for, because hashing a graph is slow."""
        return self.spec.content_hash()[:12]

    @property
    def action_names(self) -> tuple[str, ...]:
        """The names of all actions that some node calls, sorted."""
        return tuple(sorted({n.action for n in self.nodes.values() if n.type == "ACTION"}))


def unsupported_parts(spec: GraphSpec) -> tuple[str, ...]:
    """Names what the local runner does not run yet; a graph may come without the compiler."""
    found = [
        f"edge {edge.kind} of {edge.parent}" for edge in spec.edges if edge.kind not in _RUN_EDGES
    ]
    for node in spec.nodes:
        found += [
            f"{name} of {node.key}" for name in _UNSUPPORTED_ATTRIBUTES if name in node.attributes
        ]
    return tuple(found)


def wait_event_keys(spec: GraphSpec) -> tuple[str, ...]:
    """Returns the keys of all WAIT_EVENTs, in tree order."""
    return tuple(node.key for node in spec.nodes if node.type == "WAIT_EVENT")


def load_graph(spec: GraphSpec) -> Graph:
    """Makes a GraphSpec ready; the graph is trusted to have passed the compiler's checks."""
    nodes = {row.key: Node(row.key, row.type, row.generated, row.attributes) for row in spec.nodes}
    _link(spec, nodes)
    root = next(node for node in nodes.values() if node.parent is None)
    types = load_types(spec.types)
    _declare_scopes(spec, nodes, root, types)
    for row in spec.nodes:
        _read_attributes(row, nodes[row.key])
    _name_sensitive(spec, nodes)
    _read_bindings(spec, nodes, types)
    _read_templates(spec, nodes, root)
    unset = frozenset((var.owner, var.name) for var in spec.vars if var.kind == "set")
    return Graph(
        spec=spec,
        name=spec.name,
        root=root,
        nodes=nodes,
        inputs=tuple(
            InputDeclaration(
                row.name, types[row.type], compile_program(row.program) if row.program else None
            )
            for row in sorted(spec.inputs, key=lambda row: row.order)
        ),
        outputs=tuple(
            (row.name, compile_program(row.program, unset))
            for row in sorted(spec.outputs, key=lambda row: row.order)
        ),
    )


def _link(spec: GraphSpec, nodes: dict[str, Node]) -> None:
    for edge in sorted(spec.edges, key=lambda edge: edge.order):
        parent, child = nodes[edge.parent], nodes[edge.child]
        child.parent, child.edge, child.order = parent, edge.kind, edge.order
        child.is_iteration = edge.kind == "BODY" and parent.type in LOOPS
        child.heard_in = _HEARD_IN.get(edge.kind, BODY)
        parent.children.append(child)
        match edge.kind:
            case "THEN":
                parent.then = child
            case "ELSE" | "DEFAULT":
                parent.otherwise = child
            case "CASE":
                parent.cases.append((list(edge.case or []), child))
            case "BODY":
                parent.body = child
            case "ON_ERROR":
                parent.on_error = child
            case "FINALLY":
                parent.final = child
            case "SEQUENCE":
                parent.steps.append(child)
    pending = [node for node in nodes.values() if node.parent is None]
    while pending:
        node = pending.pop()
        for child in node.children:
            child.depth = node.depth + 1
            pending.append(child)


def _declare_scopes(
    spec: GraphSpec, nodes: Mapping[str, Node], root: Node, types: Mapping[int, TypeNode]
) -> None:
    root.opens_scope = True
    for var in sorted(spec.vars, key=lambda var: var.order):
        owner = nodes[var.owner]
        owner.opens_scope = True
        if var.program is not None:
            program = compile_program(var.program)
            owner.initialisers.append(Initialiser(var.name, program, _type_of(var, types)))


def _type_of(var: VarRow, types: Mapping[int, TypeNode]) -> TypeNode | None:
    """Returns what a declared variable must be; loop variables and those of R16 have no type."""
    return types[var.type] if var.kind == "var" and var.type is not None else None


def _name_sensitive(spec: GraphSpec, nodes: Mapping[str, Node]) -> None:
    pointers = {action.name: tuple(action.sensitive) for action in spec.actions}
    for node in nodes.values():
        if node.type == "ACTION":
            node.sensitive = pointers.get(node.action, ())


def _read_attributes(row: NodeRow, node: Node) -> None:
    attributes = row.attributes
    node.timeout_ms = attributes.get("timeout_ms")
    match row.type:
        case "ACTION":
            node.action = attributes["action"]
            node.priority = attributes.get("priority", 0)
            node.delay_ms = attributes.get("delay_ms") or 0
            node.retry = _retry(attributes.get("retry"))
        case "SEQUENCE":
            node.sleep_ms = attributes.get("sleep_ms")
            if attributes.get("fail") is not None:
                node.fail_code = attributes["fail"]["code"]
                node.program = compile_program(attributes["fail"]["message"])
        case "PARALLEL":
            node.parallel = attributes.get("limit") or 0
            node.needed = min(attributes.get("join") or len(node.children), len(node.children))
            node.keep_going = bool(attributes.get("keep_going"))
        case "IF":
            node.program = compile_program(attributes["condition"])
        case "WHILE":
            node.program = compile_program(attributes["condition"])
            node.max_iterations = attributes.get("max") or 10_000
            node.keep = attributes.get("keep")
        case "SWITCH":
            node.program = compile_program(attributes["subject"])
        case "REPEAT":
            node.program = compile_program(attributes["count"])
            node.index = attributes.get("counter")
            node.keep = attributes.get("keep")
        case "FOREACH":
            node.parallel = attributes.get("parallel", 1)
            node.item = attributes["item"]
            node.index = attributes.get("index")
            tolerate = attributes.get("tolerate") or {}
            node.tolerated_count = tolerate.get("count", 0)
            node.tolerated_percent = tolerate.get("percent")
            node.keep_going = bool(attributes.get("keep_going"))
            node.batch = attributes.get("batch")
            node.reuse = _reuse(attributes.get("reuse"))


def _reuse(written: Mapping[str, Any] | None) -> Reuse | None:
    if not written:
        return None
    reads = tuple(compile_program([reference]) for reference in written["reads"])
    return Reuse(written["fingerprint"], reads)


def _retry(written: Mapping[str, Any] | None) -> Retry | None:
    if written is None:
        return None
    return Retry(
        limit=written["limit"],
        backoff_ms=written.get("backoff_ms", 1000),
        factor_hundredths=written.get("factor_hundredths", 100),
        max_ms=written.get("max_ms", 3_600_000),
        has_jitter=bool(written.get("jitter")),
        on=frozenset(written.get("on") or ("any",)),
    )


def _read_bindings(
    spec: GraphSpec, nodes: Mapping[str, Node], types: Mapping[int, TypeNode]
) -> None:
    declared = {(var.owner, var.name): _type_of(var, types) for var in spec.vars}
    for row in sorted(spec.output_bindings, key=lambda row: row.order):
        node = nodes[row.node]
        target = node.bindings if row.kind == "var" else node.collects
        expected = declared.get((row.owner, row.name))
        target.append(Binding(row.name, row.owner, compile_program(row.program), expected))
    for collection in spec.collection_bindings:
        nodes[collection.node].program = compile_program(collection.program)


def _read_templates(spec: GraphSpec, nodes: Mapping[str, Node], root: Node) -> None:
    declared: dict[str, set[str]] = defaultdict(set)
    for var in spec.vars:
        declared[var.owner].add(var.name)
    declared[root.key].update(row.name for row in spec.inputs)
    pointers: dict[str, dict[str, list[list[Any]]]] = defaultdict(dict)
    for binding in spec.input_bindings:
        pointers[binding.node][binding.pointer] = binding.program
    templates = {row.node: row.json_ for row in spec.templates}
    for node in nodes.values():
        if node.type == "ACTION":
            instructions = template_program(
                templates.get(node.key, {}), pointers[node.key], _OwnerFinder(node, declared)
            )
            node.program = compile_program(instructions)


class _OwnerFinder:
    """Finds the nearest scope around a node, its own included, that declares a name."""

    def __init__(self, node: Node, declared: Mapping[str, Iterable[str]]) -> None:
        self._node = node
        self._declared = declared

    def __call__(self, name: str) -> str | None:
        node: Node | None = self._node
        while node is not None and name not in self._declared.get(node.key, ()):
            node = node.parent
        return None if node is None else node.key

"""What is known of one workflow: its nodes, scopes, variables, and where each expression stands.

Made by `symbols.py` and `bindings.py`, read by the checks and the lowering. `nodes` is in pre-order
and `node.last` is the index of its last descendant, so that "is inside" is two comparisons.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from compiler.attributes import find, literal_integer
from compiler.catalog import CatalogAction
from compiler.expressions import post_order
from compiler.file_aliases import FileAliases
from compiler.type_model import Type
from dsl.nodes import (
    BareKey,
    Binding,
    Block,
    Case,
    Expr,
    Foreach,
    Name,
    Reference,
    Statement,
    Workflow,
)
from dsl.quick_class import dataclass, field
from dsl.source import SourceFile, Span

if TYPE_CHECKING:
    from compiler.flow import FlowResult

MAX_NESTING = 512

NodeType = Literal[
    "ACTION",
    "SEQUENCE",
    "PARALLEL",
    "IF",
    "SWITCH",
    "REPEAT",
    "WHILE",
    "FOREACH",
    "WAIT_EVENT",
]
EdgeKind = Literal[
    "SEQUENCE",
    "PARALLEL",
    "THEN",
    "ELSE",
    "CASE",
    "DEFAULT",
    "BODY",
    "ON_ERROR",
    "FINALLY",
    "TIMEOUT",
]
Use = Literal[
    "argument",
    "binding",
    "collect",
    "collection",
    "condition",
    "correlate",
    "count",
    "default",
    "event_input",
    "initial",
    "message",
    "output",
    "set",
    "subject",
]


@dataclass(slots=True, eq=False)
class Variable:
    """A name that a scope holds. `initial` is its default or initialiser."""

    name: str
    owner: Node
    kind: Literal["input", "var", "loop", "set"]
    span: Span
    type: Type
    order: int
    initial: Expr | None = None
    reads: list[Access] = field(default_factory=list)
    writes: list[Access] = field(default_factory=list)
    _written_by: list[int] = field(default_factory=list)

    def is_written_in(self, node: Node) -> bool:
        """Whether a node or one below it writes the variable."""
        if len(self._written_by) != len(self.writes):
            self._written_by = sorted(write.node.index for write in self.writes)
        first = bisect_left(self._written_by, node.index)
        return first < len(self._written_by) and self._written_by[first] <= node.last


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A read or a write of a variable: by which node, and where in the file."""

    node: Node
    span: Span


@dataclass(slots=True, eq=False)
class Node:
    """A node of the graph to be. A generated body has no statement."""

    index: int
    key: str
    type: NodeType
    parent: Node | None
    edge: EdgeKind | None
    span: Span
    statement: Statement | None = None
    author_key: Name | None = None
    block: Block | None = None
    case: Case | None = None
    generated: bool = False
    level: int = 0
    last: int = 0
    children: list[Node] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    input_count: int = 0
    fork: Node | None = None
    """The nearest of itself and its ancestors that runs beside others: a PARALLEL branch or the
    body of a parallel FOREACH."""

    def holds(self, other: Node) -> bool:
        """Whether `other` is this node or below it."""
        return self.index <= other.index <= self.last

    @property
    def next_order(self) -> int:
        """The order of the next variable of its scope; inputs are counted apart."""
        return len(self.variables) - self.input_count

    @property
    def is_loop_body(self) -> bool:
        return self.edge == "BODY"

    @property
    def described(self) -> str:
        """The node in the words of a message: `action "pack"`, `foreach`."""
        kind = "workflow" if self.parent is None else self.type.lower()
        return f'{kind} "{self.key}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """An expression and the place where it is evaluated.

    `before` limits an initialiser to the variables of its own scope declared before it. Every
    check walks the expressions, so their parts (post-order) and references are kept here.
    """

    expr: Expr | BareKey
    node: Node
    use: Use
    before: Variable | None = None
    target: Variable | None = None
    parts: tuple[Expr, ...] = field(init=False)
    references: tuple[Reference, ...] = field(init=False)

    def __post_init__(self) -> None:
        parts = () if isinstance(self.expr, BareKey) else tuple(post_order(self.expr))
        object.__setattr__(self, "parts", parts)
        found = tuple(part for part in parts if type(part) is Reference)
        object.__setattr__(self, "references", found)


@dataclass(frozen=True, slots=True)
class Clash:
    """A name that was declared twice in one scope."""

    what: str
    name: Name
    first: Span


@dataclass(frozen=True, slots=True)
class TypeMisfit:
    kind: str
    span: Span
    name: str


@dataclass(frozen=True, slots=True)
class Target:
    """A `set` (`node` is the one whose completion runs it) or a `collect` (the FOREACH)."""

    binding: Binding
    node: Node
    kind: Literal["var", "collect"]
    variable: Variable


@dataclass(slots=True, eq=False)
class Model:
    """What the checks and the lowering know of one workflow."""

    workflow: Workflow
    source: SourceFile
    actions: Mapping[str, CatalogAction]
    catalog: Literal["ok", "missing", "broken"] = "ok"
    nodes: list[Node] = field(default_factory=list)
    keyed: list[Node] = field(default_factory=list)
    by_key: dict[str, Node] = field(default_factory=dict)
    sites: list[Site] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    clashes: list[Clash] = field(default_factory=list)
    type_misfits: list[TypeMisfit] = field(default_factory=list)
    stray_collects: list[Binding] = field(default_factory=list)
    too_deep: list[Span] = field(default_factory=list)
    file_aliases: FileAliases = field(default_factory=lambda: FileAliases({}))
    used_types: frozenset[str] = frozenset()
    known: dict[int, dict[int, Type]] = field(default_factory=dict)
    """By `id` of a site's expression: the types of its parts, once loop variables have theirs."""
    resolved: dict[int, Variable | None] = field(default_factory=dict)
    """By `id` of a `var` reference: its variable, or None when there is no such name."""
    names: dict[Node | None, tuple[str, ...]] = field(default_factory=dict)
    """What is suggested for an unknown name: the variables in sight of a scope, by its node; the
    keys, under None. Thousands of names may be unknown in one scope."""
    flow: FlowResult | None = None
    """What `flow.analyse` found, once it was asked for."""

    @property
    def root(self) -> Node:
        return self.nodes[0]

    def all_variables(self) -> Iterator[Variable]:
        for node in self.nodes:
            yield from node.variables.values()


def find_variable(node: Node, name: str, before: Variable | None = None) -> Variable | None:
    """Returns the variable a name means at a node: that of the nearest scope that has it."""
    current: Node | None = node
    while current is not None:
        found = current.variables.get(name)
        if found is not None and _is_visible(found, before):
            return found
        current = current.parent
    return None


def _is_visible(found: Variable, before: Variable | None) -> bool:
    if before is None or found.owner is not before.owner:
        return True
    return found.kind != "set" and _rank(found) < _rank(before)


def _rank(variable: Variable) -> tuple[bool, int]:
    return (variable.kind == "var", variable.order)


def visible_names(model: Model, node: Node) -> tuple[str, ...]:
    """Returns every variable name in sight of a node, nearest scope first."""
    scope: Node | None = node
    while scope is not None and not scope.variables:
        scope = scope.parent
    if scope is None:
        return ()
    if scope not in model.names:
        names: dict[str, None] = {}
        current: Node | None = scope
        while current is not None:
            names.update(dict.fromkeys(current.variables))
            current = current.parent
        model.names[scope] = tuple(names)
    return model.names[scope]


def is_parallel_foreach(node: Node | None) -> bool:
    """Whether a node is a FOREACH whose iterations run beside each other."""
    return (
        node is not None
        and isinstance(node.statement, Foreach)
        and foreach_parallel(node.statement) != 1
    )


def foreach_parallel(statement: Foreach) -> int:
    """Returns 1 for one after the other, 0 for all at once, n for at most n."""
    written = find(statement.attributes, "parallel")
    if written is None:
        return 1
    number = literal_integer(written.values[0]) if written.values else None
    return number if number is not None and number > 0 else 0

"""Names: from the AST of one workflow to its tree of nodes, scopes and expression sites.

Flow: `build_model` walks the statements once in pre-order and makes a `Node` for everything that
will be a row (generated bodies too), with its key (R9); it notes every expression with the place
where it is evaluated (`Site`) and every target of a `set` or `collect`. Then targets are bound to
variables, undeclared ones declared (R16), and references to variables resolved.

Invariant: `nodes` is in pre-order and `node.last` is the index of its last descendant, so that
"is inside" is two comparisons. Nothing is reported here: what does not fit is kept in the model
for the checks. No walk recurses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, assert_never

from compiler.catalog import CatalogAction
from compiler.expressions import literal_value, references, step_key
from compiler.type_model import ANY, Type, TypeResolver
from dsl.nodes import (
    Action,
    BareKey,
    Binding,
    Block,
    Case,
    Expr,
    Fail,
    Foreach,
    If,
    Name,
    Parallel,
    Reference,
    Repeat,
    Sequence,
    Set,
    Sleep,
    Statement,
    Switch,
    TypeExpr,
    VarDecl,
    WaitEvent,
    While,
    Workflow,
)
from dsl.source import SourceFile, Span

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

    `before` limits an initialiser to the variables of its own scope declared before it.
    """

    expr: Expr | BareKey
    node: Node
    use: Use
    before: Variable | None = None
    target: Variable | None = None


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
    type_names: frozenset[str] = frozenset()
    resolved: dict[int, Variable | None] = field(default_factory=dict)
    """By `id` of a `var` reference: its variable, or None when there is no such name."""

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


def visible_names(node: Node) -> list[str]:
    """Returns every variable name in sight of a node, nearest scope first."""
    names: dict[str, None] = {}
    current: Node | None = node
    while current is not None:
        names.update(dict.fromkeys(current.variables))
        current = current.parent
    return list(names)


def is_parallel_foreach(node: Node | None) -> bool:
    """Whether a node is a FOREACH whose iterations run beside each other."""
    return (
        node is not None
        and isinstance(node.statement, Foreach)
        and foreach_parallel(node.statement) != 1
    )


def foreach_parallel(statement: Foreach) -> int:
    """Returns 1 for one after the other, 0 for all at once, n for at most n."""
    for attribute in statement.attributes:
        if attribute.name.text == "parallel":
            if not attribute.values:
                return 0
            value = attribute.values[0]
            number = None
            if not hasattr(value, "milliseconds") and not isinstance(value, Name):
                number = literal_value(value)
            return number if isinstance(number, int) and number > 0 else 0
    return 1


def build_model(
    workflow: Workflow,
    source: SourceFile,
    file_types: Mapping[str, TypeExpr],
    actions: Mapping[str, CatalogAction],
) -> Model:
    """Builds the model of one workflow; `file_types` are the aliases of the whole file."""
    model = Model(workflow, source, actions)
    _Builder(model, file_types).build()
    _bind_targets(model)
    _resolve_references(model)
    return model


_KIND: dict[type, tuple[NodeType, str]] = {
    Action: ("ACTION", "action"),
    Sequence: ("SEQUENCE", "sequence"),
    Parallel: ("PARALLEL", "parallel"),
    If: ("IF", "if"),
    Switch: ("SWITCH", "switch"),
    Repeat: ("REPEAT", "repeat"),
    While: ("WHILE", "while"),
    Foreach: ("FOREACH", "foreach"),
    WaitEvent: ("WAIT_EVENT", "wait_event"),
    Set: ("SEQUENCE", "set"),
    Fail: ("SEQUENCE", "fail"),
    Sleep: ("SEQUENCE", "sleep"),
}


@dataclass(frozen=True, slots=True)
class _Pending:
    """A statement or a `{…}` body that still has to become a node."""

    item: Statement | Block
    parent: Node
    edge: EdgeKind
    suffix: str = ""
    case: Case | None = None


class _Builder:
    def __init__(self, model: Model, file_types: Mapping[str, TypeExpr]) -> None:
        self._model = model
        self._aliases = dict(file_types)
        # A workflow's own alias hides one of the file; of two equal names the first counts.
        self._aliases.update((a.name.text, a.type) for a in reversed(model.workflow.types))
        model.type_names = frozenset(self._aliases)
        self._types = TypeResolver(self._aliases, self._misfit)
        self._types.check_aliases()
        self._counts: dict[tuple[int, str], int] = {}
        self._keyed_above: dict[int, Node] = {}
        self._pending: list[_Pending] = []

    def _misfit(self, kind: str, span: Span, name: str) -> None:
        self._model.type_misfits.append(TypeMisfit(kind, span, name))

    # --- the tree ---

    def build(self) -> None:
        workflow = self._model.workflow
        root = Node(0, workflow.name.text, "SEQUENCE", None, None, workflow.name.span)
        root.author_key = workflow.name
        root.block = workflow.body
        self._add(root)
        self._declare_root(root, workflow)
        self._stray(workflow.body)
        self._push_statements(root, workflow.body, "SEQUENCE")
        while self._pending:
            self._take(self._pending.pop())
        for node in reversed(self._model.nodes):
            node.last = node.children[-1].last if node.children else node.index
        for output in workflow.outputs:
            self._site(output.value, root, "output")

    def _add(self, node: Node) -> None:
        model = self._model
        model.nodes.append(node)
        if node.parent is not None:
            node.parent.children.append(node)
        if node.author_key is not None:
            model.keyed.append(node)
            model.by_key.setdefault(node.key, node)
            self._keyed_above[node.index] = node
        elif node.parent is not None:
            self._keyed_above[node.index] = self._keyed_above[node.parent.index]
        runs_beside = node.edge == "PARALLEL" or (
            node.edge == "BODY" and is_parallel_foreach(node.parent)
        )
        node.fork = node if runs_beside else node.parent.fork if node.parent else None

    def _push_statements(self, parent: Node, block: Block, edge: EdgeKind) -> None:
        self._pending.extend(
            _Pending(statement, parent, edge) for statement in reversed(block.statements)
        )

    def _take(self, pending: _Pending) -> None:
        if isinstance(pending.item, Block):
            self._take_body(pending.item, pending)
        else:
            self._take_statement(pending.item, pending)

    def _take_body(self, block: Block, pending: _Pending) -> None:
        parent = pending.parent
        body = Node(
            len(self._model.nodes),
            f"{parent.key}.{pending.suffix}",
            "SEQUENCE",
            parent,
            pending.edge,
            block.span,
            block=block,
            case=pending.case,
            generated=True,
            level=parent.level,
        )
        self._add(body)
        if pending.edge == "BODY":
            self._declare_loop(body)
        self._declare_block(body, block)
        if not isinstance(parent.statement, Foreach):
            self._stray(block)
        self._push_statements(body, block, "SEQUENCE")

    def _take_statement(self, statement: Statement, pending: _Pending) -> None:
        parent = pending.parent
        if parent.level >= MAX_NESTING:
            self._model.too_deep.append(statement.span)
            return
        node_type, kind = _KIND[type(statement)]
        author_key = getattr(statement, "key", None)
        index = len(self._model.nodes)
        key = author_key.text if author_key is not None else self._automatic_key(parent, kind)
        span = author_key.span if author_key is not None else statement.span
        node = Node(index, key, node_type, parent, pending.edge, span)
        node.statement, node.author_key, node.level = statement, author_key, parent.level + 1
        self._add(node)
        self._open(node, statement)

    def _automatic_key(self, parent: Node, kind: str) -> str:
        above = self._keyed_above[parent.index]
        count = self._counts.get((above.index, kind), 0) + 1
        self._counts[above.index, kind] = count
        return f"{kind}_{count}" if above.parent is None else f"{above.key}.{kind}_{count}"

    def _open(self, node: Node, statement: Statement) -> None:
        """Notes the expressions of a statement and queues what is below it; the sites of `set`s
        are noted when their targets are bound."""
        match statement:
            case Action(arguments=arguments):
                for argument in arguments:
                    self._site(argument.value, node, "argument")
            case WaitEvent(correlate=correlate, timeout_body=body):
                if correlate is not None:
                    self._site(correlate, node, "correlate")
                self._bodies(node, ("TIMEOUT", "timeout", body))
            case Sequence(body=body):
                node.block = body
                self._declare_block(node, body)
                self._stray(body)
                self._bodies(
                    node,
                    ("ON_ERROR", "on_error", statement.on_error),
                    ("FINALLY", "finally", statement.finally_),
                )
                self._push_statements(node, body, "SEQUENCE")
            case Parallel(branches=branches):
                node.block = branches
                self._declare_block(node, branches)
                self._stray(branches)
                self._push_statements(node, branches, "PARALLEL")
            case If(condition=condition):
                self._site(condition, node, "condition")
                self._bodies(
                    node, ("THEN", "then", statement.then), ("ELSE", "else", statement.otherwise)
                )
            case Switch(subject=subject):
                self._site(subject, node, "subject")
                self._cases(node, statement)
            case Repeat(count=count, body=body):
                self._site(count, node, "count")
                self._bodies(node, ("BODY", "body", body))
            case While(condition=condition, body=body):
                self._site(condition, node, "condition")
                self._bodies(node, ("BODY", "body", body))
            case Foreach(collection=collection, body=body):
                self._site(collection, node, "collection")
                self._bodies(node, ("BODY", "body", body))
            case Fail(message=message):
                if message is not None:
                    self._site(message, node, "message")
            case Set() | Sleep():
                pass
            case _:
                assert_never(statement)

    def _bodies(self, node: Node, *bodies: tuple[EdgeKind, str, Block | None]) -> None:
        for edge, suffix, block in reversed(bodies):
            if block is not None:
                self._pending.append(_Pending(block, node, edge, suffix))

    def _cases(self, node: Node, switch: Switch) -> None:
        self._bodies(node, ("DEFAULT", "default", switch.default))
        for number, case in reversed(list(enumerate(switch.cases))):
            self._pending.append(_Pending(case.body, node, "CASE", f"case_{number}", case))

    def _stray(self, block: Block) -> None:
        self._model.stray_collects.extend(block.collects)

    # --- names ---

    def _site(self, expr: Expr | BareKey, node: Node, use: Use) -> None:
        self._model.sites.append(Site(expr=expr, node=node, use=use))

    def _declare(self, variable: Variable, name: Name, what: str) -> Variable | None:
        known = variable.owner.variables.get(name.text)
        if known is not None:
            self._model.clashes.append(Clash(what, name, known.span))
            return None
        variable.owner.variables[name.text] = variable
        return variable

    def _declare_root(self, root: Node, workflow: Workflow) -> None:
        for order, item in enumerate(workflow.inputs):
            declared = Variable(
                item.name.text,
                root,
                "input",
                item.name.span,
                self._types.resolve(item.type),
                order,
                item.default,
            )
            if self._declare(declared, item.name, "input") and item.default is not None:
                self._initial(declared, "default")
        root.input_count = len(root.variables)
        self._declare_vars(root, workflow.variables)
        self._declare_vars(root, workflow.body.variables)

    def _declare_block(self, node: Node, block: Block) -> None:
        self._declare_vars(node, block.variables)

    def _declare_vars(self, node: Node, variables: tuple[VarDecl, ...]) -> None:
        for item in variables:
            order = node.next_order
            declared = Variable(
                item.name.text,
                node,
                "var",
                item.name.span,
                self._types.resolve(item.type),
                order,
                item.initial,
            )
            if self._declare(declared, item.name, "variable") and item.initial is not None:
                self._initial(declared, "initial")

    def _initial(self, variable: Variable, use: Use) -> None:
        assert variable.initial is not None
        self._model.sites.append(
            Site(
                expr=variable.initial,
                node=variable.owner,
                use=use,
                before=variable,
                target=variable,
            )
        )

    def _declare_loop(self, body: Node) -> None:
        assert body.parent is not None
        statement = body.parent.statement
        names: tuple[Name | None, ...] = ()
        if isinstance(statement, Foreach):
            names = (statement.item, statement.index)
        elif isinstance(statement, Repeat):
            names = (statement.counter,)
        for name in names:
            if name is not None:
                variable = Variable(name.text, body, "loop", name.span, ANY, body.next_order)
                self._declare(variable, name, "loop variable")


def _bindings_of(node: Node) -> tuple[Binding, ...]:
    statement = node.statement
    if isinstance(statement, Action | WaitEvent):
        return statement.bindings
    if isinstance(statement, Set):
        return (Binding(name=statement.name, value=statement.value, span=statement.span),)
    return ()


def _bind_targets(model: Model) -> None:
    """Binds every `set` and `collect` to a variable, in the order of the source."""
    open_loops: list[Node] = []
    for node in model.nodes:
        while open_loops and open_loops[-1].last < node.index:
            _bind_collects(model, open_loops.pop())
        if isinstance(node.statement, Foreach):
            open_loops.append(node)
        alone = isinstance(node.statement, Set)
        for binding in _bindings_of(node):
            target = _bind(model, binding, node, "var")
            model.sites.append(
                Site(
                    expr=binding.value,
                    node=node,
                    use="set" if alone else "binding",
                    target=target.variable,
                )
            )
    while open_loops:
        _bind_collects(model, open_loops.pop())


def _bind_collects(model: Model, node: Node) -> None:
    assert isinstance(node.statement, Foreach)
    seen: dict[str, Span] = {}
    for binding in node.statement.body.collects:
        if binding.name.text in seen:
            model.clashes.append(Clash("collect", binding.name, seen[binding.name.text]))
            continue
        seen[binding.name.text] = binding.name.span
        _bind(model, binding, node, "collect")
        if node.children:
            model.sites.append(Site(expr=binding.value, node=node.children[0], use="collect"))


def _bind(model: Model, binding: Binding, node: Node, kind: Literal["var", "collect"]) -> Target:
    variable = find_variable(node, binding.name.text)
    if variable is None:
        owner = _undeclared_owner(node)
        span = binding.name.span
        variable = Variable(binding.name.text, owner, "set", span, ANY, owner.next_order)
        owner.variables[variable.name] = variable
    variable.writes.append(Access(node, binding.name.span))
    target = Target(binding, node, kind, variable)
    model.targets.append(target)
    return target


def _undeclared_owner(node: Node) -> Node:
    """Returns the nearest iteration body, PARALLEL branch or root at or above a node (R16)."""
    current = node
    while current.parent is not None and current.edge not in ("BODY", "PARALLEL"):
        current = current.parent
    return current


def _resolve_references(model: Model) -> None:
    for site in model.sites:
        for reference in references(site.expr):
            if reference.root == "var":
                _resolve(model, site, reference)


def _resolve(model: Model, site: Site, reference: Reference) -> None:
    name = step_key(reference, 0)
    found = None if name is None else find_variable(site.node, name, site.before)
    model.resolved[id(reference)] = found
    if found is not None:
        found.reads.append(Access(site.node, reference.span))

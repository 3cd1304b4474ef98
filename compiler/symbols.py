"""Names: from the AST of one workflow to its model.

Flow: `build_model` walks the statements once in pre-order and makes a `Node` for everything that
will be a row (generated bodies too), with its key (R9); it notes every expression with the place
where it is evaluated (`Site`). Then `bindings.py` binds the targets of `set` and `collect` and
resolves references. Nothing is reported here: what does not fit is kept in the model for the
checks. No walk recurses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from compiler.bindings import bind_targets, resolve_references
from compiler.catalog import CatalogAction
from compiler.file_aliases import FileAliases
from compiler.model import (
    MAX_NESTING,
    Clash,
    EdgeKind,
    Model,
    Node,
    NodeType,
    Site,
    TypeMisfit,
    Use,
    Variable,
    is_parallel_foreach,
)
from compiler.type_model import ANY
from dsl.nodes import (
    Action,
    BareKey,
    Block,
    Case,
    Expr,
    Fail,
    Foreach,
    If,
    Name,
    Parallel,
    Repeat,
    Sequence,
    Set,
    Sleep,
    Statement,
    Switch,
    VarDecl,
    WaitEvent,
    While,
    Workflow,
)
from dsl.quick_class import dataclass
from dsl.source import SourceFile, Span


def build_model(
    workflow: Workflow,
    source: SourceFile,
    file_aliases: FileAliases,
    actions: Mapping[str, CatalogAction],
) -> Model:
    """Builds the model of one workflow; `file_aliases` is handed from one of a file to the next."""
    model = Model(workflow, source, actions)
    _Builder(model, file_aliases).build()
    bind_targets(model)
    resolve_references(model)
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
    def __init__(self, model: Model, file_aliases: FileAliases) -> None:
        self._model = model
        model.file_aliases = file_aliases
        self._types = file_aliases.resolver(model.workflow.types, self._misfit)
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
        self._model.used_types = frozenset(self._types.used)
        for output in workflow.outputs:
            self._site(output.value, root, "output")
        for subscription in workflow.subscriptions:
            for item in subscription.inputs:
                self._site(item.value, root, "event_input")

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

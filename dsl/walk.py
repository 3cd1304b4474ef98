"""Walks over the AST that never recurse, however deep it is.

All walks are in pre-order, in the order of the source. `walk_expressions` and `walk_statements`
give each node with its parent; `fold` computes a value for each expression from those of its
children, bottom up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar, assert_never

from dsl import nodes
from dsl.quick_class import dataclass

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExprVisit:
    """An expression in its place: `role` says what it is to `parent` (`left`, `item`, …)."""

    expr: nodes.Expr
    parent: nodes.Expr | None
    role: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementVisit:
    """A statement in its place.

    `block` is the body it stands in and `role` what that body is to `parent` (`body`, `then`,
    `else`, `case_0`, `default`, `on_error`, `finally`, `timeout`, `branch`); `parent` is the visit
    of the statement around it, so that the chain of `parent`s leads to the workflow's body.
    `position` counts the statements of the block from 0, `depth` the statements around this one.
    """

    statement: nodes.Statement
    parent: StatementVisit | None
    block: nodes.Block
    role: str
    position: int
    depth: int

    def ancestors(self) -> Iterator[StatementVisit]:
        """The visits around this one, nearest first."""
        visit = self.parent
        while visit is not None:
            yield visit
            visit = visit.parent


def expr_children(expr: nodes.Expr) -> tuple[tuple[str, nodes.Expr], ...]:
    """The direct children of an expression with their roles, in the order of the source."""
    match expr:
        case nodes.LiteralExpr():
            return ()
        case nodes.Reference():
            return tuple(
                ("index", step.index) for step in expr.steps if isinstance(step, nodes.IndexStep)
            )
        case nodes.TemplateString():
            return tuple(("part", part) for part in expr.parts if isinstance(part, nodes.Reference))
        case nodes.ListExpr():
            return tuple(("item", item) for item in expr.items)
        case nodes.ObjectExpr():
            return tuple(("entry", entry.value) for entry in expr.entries)
        case nodes.Unary():
            return (("operand", expr.operand),)
        case nodes.Binary():
            return (("left", expr.left), ("right", expr.right))
        case nodes.Call():
            return tuple(("argument", argument) for argument in expr.arguments)
        case _:
            assert_never(expr)


def walk_expressions(root: nodes.Expr) -> Iterator[ExprVisit]:
    """Every expression under `root`, itself first."""
    pending = [ExprVisit(expr=root, parent=None, role="root", position=0)]
    while pending:
        visit = pending.pop()
        yield visit
        children = expr_children(visit.expr)
        for position in range(len(children) - 1, -1, -1):
            role, child = children[position]
            pending.append(ExprVisit(expr=child, parent=visit.expr, role=role, position=position))


def walk_expr(root: nodes.Expr) -> Iterator[nodes.Expr]:
    """Every expression under `root`, itself first, without its place."""
    return (visit.expr for visit in walk_expressions(root))


def references(root: nodes.Expr) -> Iterator[nodes.Reference]:
    """Every reference in an expression, those in indexes and strings included."""
    return (expr for expr in walk_expr(root) if isinstance(expr, nodes.Reference))


def fold(root: nodes.Expr, combine: Callable[[nodes.Expr, list[_T]], _T]) -> _T:
    """Computes a value bottom up: `combine` gets an expression and the values of its children."""
    results: list[_T] = []
    pending: list[tuple[nodes.Expr, bool]] = [(root, False)]
    while pending:
        expr, ready = pending.pop()
        children = expr_children(expr)
        if ready or not children:
            count = len(children)
            values = results[len(results) - count :]
            del results[len(results) - count :]
            results.append(combine(expr, values))
            continue
        pending.append((expr, True))
        pending.extend((child, False) for _, child in reversed(children))
    return results[0]


def statement_blocks(statement: nodes.Statement) -> tuple[tuple[str, nodes.Block], ...]:
    """The bodies of a statement with their roles, in the order of the source."""
    match statement:
        case nodes.Sequence():
            found = [("body", statement.body)]
            if statement.on_error is not None:
                found.append(("on_error", statement.on_error))
            if statement.finally_ is not None:
                found.append(("finally", statement.finally_))
            return tuple(found)
        case nodes.Parallel():
            return (("branch", statement.branches),)
        case nodes.If():
            then = ("then", statement.then)
            return (then,) if statement.otherwise is None else (then, ("else", statement.otherwise))
        case nodes.Switch():
            cases = tuple((f"case_{n}", case.body) for n, case in enumerate(statement.cases))
            default = statement.default
            return cases if default is None else (*cases, ("default", default))
        case nodes.Repeat() | nodes.While() | nodes.Foreach():
            return (("body", statement.body),)
        case nodes.WaitEvent():
            body = statement.timeout_body
            return () if body is None else (("timeout", body),)
        case nodes.Action() | nodes.Set() | nodes.Fail() | nodes.Sleep():
            return ()
        case _:
            assert_never(statement)


def walk_statements(root: nodes.Workflow | nodes.Block) -> Iterator[StatementVisit]:
    """Every statement of a workflow or a body."""
    block = root.body if isinstance(root, nodes.Workflow) else root
    pending = list(_visits(block, "body", None))
    while pending:
        visit = pending.pop()
        yield visit
        for role, inner in reversed(statement_blocks(visit.statement)):
            pending.extend(_visits(inner, role, visit))


def _visits(
    block: nodes.Block, role: str, parent: StatementVisit | None
) -> Iterator[StatementVisit]:
    """The visits of a block's own statements, last first, for a stack."""
    depth = 0 if parent is None else parent.depth + 1
    for position in range(len(block.statements) - 1, -1, -1):
        yield StatementVisit(
            statement=block.statements[position],
            parent=parent,
            block=block,
            role=role,
            position=position,
            depth=depth,
        )


def statement_expressions(statement: nodes.Statement) -> tuple[tuple[str, nodes.Expr], ...]:
    """The expressions a statement itself holds (not those of its bodies), with their roles."""
    match statement:
        case nodes.Action():
            arguments = tuple((f"argument {a.name.text}", a.value) for a in statement.arguments)
            return (*arguments, *_bindings(statement.bindings))
        case nodes.WaitEvent():
            head = () if statement.correlate is None else (("correlate", statement.correlate),)
            return (*head, *_bindings(statement.bindings))
        case nodes.If() | nodes.While():
            return _unless_key("condition", statement.condition)
        case nodes.Switch():
            return _unless_key("subject", statement.subject)
        case nodes.Repeat():
            return (("count", statement.count),)
        case nodes.Foreach():
            return (("collection", statement.collection),)
        case nodes.Set():
            return (("value", statement.value),)
        case nodes.Fail():
            code = ("code", statement.code)
            return (code,) if statement.message is None else (code, ("message", statement.message))
        case nodes.Sequence() | nodes.Parallel() | nodes.Sleep():
            return ()
        case _:
            assert_never(statement)


def _bindings(bindings: tuple[nodes.Binding, ...]) -> tuple[tuple[str, nodes.Expr], ...]:
    return tuple((f"set {b.name.text}", b.value) for b in bindings)


def _unless_key(role: str, value: nodes.Expr | nodes.BareKey) -> tuple[tuple[str, nodes.Expr], ...]:
    return () if isinstance(value, nodes.BareKey) else ((role, value),)

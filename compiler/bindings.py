"""Binding: the target of every `set` and `collect`, and the variable of every reference.

Undeclared targets are declared on the way (R16). Runs once the tree of nodes is there.
"""

from __future__ import annotations

from typing import Literal

from compiler.expressions import step_key
from compiler.model import Access, Clash, Model, Node, Site, Target, Variable, find_variable
from compiler.type_model import ANY
from dsl.nodes import Action, Binding, Foreach, Reference, Set, WaitEvent
from dsl.source import Span


def _bindings_of(node: Node) -> tuple[Binding, ...]:
    statement = node.statement
    if isinstance(statement, Action | WaitEvent):
        return statement.bindings
    if isinstance(statement, Set):
        return (Binding(name=statement.name, value=statement.value, span=statement.span),)
    return ()


def bind_targets(model: Model) -> None:
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


def resolve_references(model: Model) -> None:
    for site in model.sites:
        for reference in site.references:
            if reference.root == "var":
                _resolve(model, site, reference)


def _resolve(model: Model, site: Site, reference: Reference) -> None:
    name = step_key(reference, 0)
    found = None if name is None else find_variable(site.node, name, site.before)
    model.resolved[id(reference)] = found
    if found is not None:
        found.reads.append(Access(site.node, reference.span))

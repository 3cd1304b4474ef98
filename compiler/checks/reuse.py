"""Checks of `foreach … reuse`: a skipped iteration must leave what one that ran would have left.

So its `collect` is the only way out of the body, and what it depends on must stand in its key (R8).
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler import codes
from compiler.attributes import has
from compiler.checks.finding import finding
from compiler.checks.references import beside
from compiler.expressions import step_key, task_key
from compiler.model import Model, Node, Site, is_parallel_foreach
from dsl.diagnostics import Diagnostic
from dsl.nodes import BareKey, Foreach, WaitEvent
from dsl.source import Span

RUN_BOUND = {
    "instance_id": "leave it out: it differs from instance to instance",
    "attempt": "leave it out: a stored value would keep the attempts of another run",
    "version": "leave it out: any change of the workflow would undo the reuse",
    "event": "take what is wanted of it into a variable before the foreach",
}
"""Entries of `ctx` that differ from run to run and stand in no key, and what to do about each."""


def body_of(loop: Node) -> Node:
    """Returns the generated body of a FOREACH."""
    return loop.children[0]


def reusing_loops(model: Model) -> list[Node]:
    return [
        node
        for node in model.nodes
        if isinstance(node.statement, Foreach)
        and has(node.statement.attributes, "reuse")
        and node.children
    ]


def check_reuse(model: Model) -> Iterator[Diagnostic]:
    loops = reusing_loops(model)
    if not loops:
        return
    yield from _check_writes(model, loops)
    yield from _check_waits(model, loops)
    for site in model.sites:
        yield from _check_entries(model, loops, site)
        yield from _check_tasks(model, loops, site)


def _innermost(loops: list[Node], node: Node) -> Node | None:
    """Returns the innermost of the loops, in pre-order, whose body holds a node."""
    return next((loop for loop in reversed(loops) if body_of(loop).holds(node)), None)


def _check_writes(model: Model, loops: list[Node]) -> Iterator[Diagnostic]:
    for target in model.targets:
        variable = target.variable
        left = next(
            (
                loop
                for loop in reversed(loops)
                if body_of(loop).holds(target.node) and not body_of(loop).holds(variable.owner)
            ),
            None,
        )
        # Of a parallel loop WF207 says it.
        if left is not None and not is_parallel_foreach(left):
            message = f'a foreach with `reuse` cannot write "{variable.name}", declared outside'
            hint = "hand it out with `collect`, or declare it inside"
            span = target.binding.name.span
            yield finding(model, codes.REUSE_WRITES, span, message, hint, variable.span)


def _check_waits(model: Model, loops: list[Node]) -> Iterator[Diagnostic]:
    for node in model.nodes:
        if isinstance(node.statement, WaitEvent) and _innermost(loops, node) is not None:
            message = f"{node.described} cannot stand in a foreach with `reuse`"
            hint = "wait before or after the foreach"
            yield finding(model, codes.REUSE_WAITS, node.span, message, hint)


def _check_entries(model: Model, loops: list[Node], site: Site) -> Iterator[Diagnostic]:
    for reference in site.references:
        name = step_key(reference, 0)
        if reference.root != "ctx" or name not in RUN_BOUND:
            continue
        if _innermost(loops, site.node) is not None:
            message = f"`ctx.{name}` cannot be read in a foreach with `reuse`"
            hint = RUN_BOUND[name]
            yield finding(model, codes.REUSE_READS_RUN, reference.span, message, hint)


def _check_tasks(model: Model, loops: list[Node], site: Site) -> Iterator[Diagnostic]:
    for key, span in _tasks_of(site):
        task = model.by_key.get(key)
        loop = None if task is None else _innermost(loops, task)
        while loop is not None and body_of(loop).holds(site.node):
            loop = _innermost(loops, loop)
        # Of a task that ran beside the reader WF209 says it.
        if task is not None and loop is not None and beside(site.node, task) is None:
            message = f'"{key}" may be skipped by the `reuse` of the foreach around it'
            hint = "gather its results with `collect`"
            yield finding(model, codes.REUSE_TASK, span, message, hint)


def _tasks_of(site: Site) -> Iterator[tuple[str, Span]]:
    if isinstance(site.expr, BareKey):
        yield site.expr.name, site.expr.span
    for reference in site.references:
        key = task_key(reference)
        if key is not None:
            yield key, reference.span

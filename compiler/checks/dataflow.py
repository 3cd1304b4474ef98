"""Checks of who writes and reads a variable: nothing may depend on which branch ends first."""

from __future__ import annotations

from collections.abc import Iterator

from compiler import codes
from compiler.checks.finding import finding
from compiler.expressions import step_key
from compiler.model import (
    Access,
    Model,
    Node,
    Variable,
    find_variable,
    is_parallel_foreach,
)
from dsl.diagnostics import Diagnostic
from dsl.source import Span


def _forks(access: Access, owner: Node) -> Iterator[Node]:
    """Yields the PARALLEL branches and parallel iterations between an access and its variable."""
    fork = access.node.fork
    while fork is not None and not fork.holds(owner):
        yield fork
        fork = None if fork.parent is None else fork.parent.fork


def check_parallel_writes(model: Model) -> Iterator[Diagnostic]:
    """A parallel FOREACH body that writes outside; two branches that write; one that reads."""
    for variable in model.all_variables():
        if any(write.node.fork is not None for write in variable.writes):
            yield from _check_iterations(model, variable)
            yield from _check_branches(model, variable)


def _check_iterations(model: Model, variable: Variable) -> Iterator[Diagnostic]:
    for write in variable.writes:
        if any(is_parallel_foreach(fork.parent) for fork in _forks(write, variable.owner)):
            message = (
                f'a parallel foreach cannot write "{variable.name}", which is declared outside'
            )
            hint = "gather one value per iteration with `collect`, or declare it inside"
            yield finding(model, codes.ITERATIONS_WRITE, write.span, message, hint, variable.span)


def _check_branches(model: Model, variable: Variable) -> Iterator[Diagnostic]:
    written: dict[Node, dict[Node, Span]] = {}
    for write in variable.writes:
        for fork in _forks(write, variable.owner):
            if fork.edge == "PARALLEL" and fork.parent is not None:
                branches = written.setdefault(fork.parent, {})
                other = next(
                    (span for branch, span in branches.items() if branch is not fork), None
                )
                if fork not in branches and other is not None:
                    message = f'another branch of this parallel writes "{variable.name}" too'
                    hint = "write a variable of its own in each branch"
                    yield finding(model, codes.BRANCHES_WRITE, write.span, message, hint, other)
                branches.setdefault(fork, write.span)
    for read in variable.reads:
        yield from _check_read(model, variable, read, written)


def _check_read(
    model: Model, variable: Variable, read: Access, written: dict[Node, dict[Node, Span]]
) -> Iterator[Diagnostic]:
    for fork in _forks(read, variable.owner):
        branches = written.get(fork.parent) if fork.parent is not None else None
        if branches is not None and fork in branches:
            continue  # that both write is already said
        other = next(
            (span for branch, span in (branches or {}).items() if branch is not fork), None
        )
        if other is not None:
            message = f'another branch of this parallel writes "{variable.name}"'
            hint = "read it after the parallel"
            yield finding(model, codes.BRANCHES_READ, read.span, message, hint, other)
            return


def check_unused(model: Model) -> Iterator[Diagnostic]:
    missed = _missed_names(model)
    for variable in model.all_variables():
        if variable.reads or (variable.kind != "input" and variable.name in missed):
            continue
        if variable.kind == "input" and not variable.writes:
            message = f'input "{variable.name}" is never read'
            yield finding(model, codes.UNUSED_INPUT, variable.span, message)
        elif variable.kind == "var":
            message = f'variable "{variable.name}" is never read'
            yield finding(model, codes.UNUSED_VARIABLE, variable.span, message)
        elif variable.kind == "set":
            message = f'"{variable.name}" is set and never read'
            yield finding(model, codes.UNUSED_RESULT, variable.span, message)


def _missed_names(model: Model) -> set[str | None]:
    """The names of reads that found no variable: what they meant is not unused as well."""
    return {
        step_key(reference, 0)
        for site in model.sites
        for reference in site.references
        if reference.root == "var" and model.resolved.get(id(reference)) is None
    }


def check_shadowing(model: Model) -> Iterator[Diagnostic]:
    for variable in model.all_variables():
        above = variable.owner.parent
        if variable.kind == "set" or above is None:
            continue
        outer = find_variable(above, variable.name)
        if outer is not None and outer.kind != "set":
            message = f'"{variable.name}" hides the variable of that name outside'
            yield finding(model, codes.SHADOWED, variable.span, message, "rename one", outer.span)

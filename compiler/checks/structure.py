"""Checks of keys, bodies and nesting: what makes the tree of nodes a sound one."""

from __future__ import annotations

from collections.abc import Iterator

from compiler import codes
from compiler.checks.finding import finding
from compiler.expressions import NOT_LITERAL, literal_value
from compiler.model import MAX_NESTING, Model, Node
from dsl.diagnostics import Diagnostic
from dsl.nodes import Fail, Name, Parallel, Sequence
from dsl.source import Span

MAX_NAME = 120
RESERVED_KEYS = ("var", "ctx", "out", "code", "event")


def check_duplicate_keys(model: Model) -> Iterator[Diagnostic]:
    first: dict[str, Node] = {}
    automatic = {node.key: node for node in model.nodes if _is_automatic(node)}
    for node in model.keyed:
        if node.key in first:
            earlier = first[node.key]
            owner = "the workflow" if earlier.parent is None else "an earlier node"
            message = f'key "{node.key}" is already that of {owner}'
            yield finding(
                model, codes.DUPLICATE_KEY, node.span, message, "choose another key", earlier.span
            )
            continue
        first[node.key] = node
        if node.key in automatic:
            message = f'key "{node.key}" is the automatic key of a node without one'
            other = automatic[node.key].span
            yield finding(
                model, codes.DUPLICATE_KEY, node.span, message, "choose another key", other
            )


def _is_automatic(node: Node) -> bool:
    return node.statement is not None and node.author_key is None


def check_names(model: Model) -> Iterator[Diagnostic]:
    for node in model.keyed:
        if node.author_key is not None:
            yield from _check_name(model, node.author_key)
        if node.key in RESERVED_KEYS:
            message = f'"{node.key}" cannot be the key of a node: it begins a reference'
            yield finding(model, codes.BAD_NAME, node.span, message, "choose another key")
    for variable in model.all_variables():
        yield from _check_name(model, Name(text=variable.name, span=variable.span))
    for output in model.workflow.outputs:
        yield from _check_name(model, output.name)


def _check_name(model: Model, name: Name) -> Iterator[Diagnostic]:
    if len(name.text) > MAX_NAME:
        message = f"this name has {len(name.text)} characters; {MAX_NAME} are allowed"
        yield finding(model, codes.BAD_NAME, name.span, message, "shorten it")


def check_clashes(model: Model) -> Iterator[Diagnostic]:
    for clash in model.clashes:
        message = f'{clash.what} "{clash.name.text}" is declared twice'
        yield finding(
            model, codes.DUPLICATE_NAME, clash.name.span, message, "rename one", clash.first
        )
    yield from _check_outputs(model)
    yield from _check_type_names(model)


def _check_outputs(model: Model) -> Iterator[Diagnostic]:
    seen: dict[str, Span] = {}
    for output in model.workflow.outputs:
        name = output.name
        if name.text in seen:
            message = f'output "{name.text}" is declared twice'
            yield finding(
                model, codes.DUPLICATE_NAME, name.span, message, "rename one", seen[name.text]
            )
        seen.setdefault(name.text, name.span)


def _check_type_names(model: Model) -> Iterator[Diagnostic]:
    seen: dict[str, Span] = {}
    for alias in model.workflow.types:
        name = alias.name
        if name.text in seen:
            message = f'type "{name.text}" is declared twice'
            yield finding(
                model, codes.DUPLICATE_NAME, name.span, message, "rename one", seen[name.text]
            )
        seen.setdefault(name.text, name.span)


def check_bodies(model: Model) -> Iterator[Diagnostic]:
    """Empty bodies. An empty `case` or `default` says "do nothing", so it is none of them."""
    for node in model.nodes:
        if isinstance(node.statement, Parallel):
            if not node.statement.branches.statements:
                message = "a parallel needs at least one branch"
                yield finding(model, codes.EMPTY_PARALLEL, node.span, message, "add one or drop it")
            for variable in node.statement.branches.variables:
                message = "a parallel has no variables of its own"
                hint = "declare it outside, or inside a `sequence` branch"
                yield finding(model, codes.BAD_NAME, variable.name.span, message, hint)
        elif _is_empty_body(node):
            what = "the workflow" if node.parent is None else "this body"
            yield finding(model, codes.EMPTY_BODY, node.span, f"{what} is empty")


def _is_empty_body(node: Node) -> bool:
    if node.edge in ("CASE", "DEFAULT") or node.children:
        return False
    block = node.block
    has_body = block is not None and not block.statements and not block.collects
    return has_body and (node.statement is None or isinstance(node.statement, Sequence))


def check_stray_collects(model: Model) -> Iterator[Diagnostic]:
    for binding in model.stray_collects:
        message = "`collect` stands only at the top of a foreach body"
        yield finding(
            model, codes.STRAY_COLLECT, binding.span, message, "move it there, or use `set`"
        )


def check_fail_codes(model: Model) -> Iterator[Diagnostic]:
    for node in model.nodes:
        if not isinstance(node.statement, Fail):
            continue
        value = literal_value(node.statement.code)
        if value is NOT_LITERAL or not isinstance(value, int) or isinstance(value, bool):
            message = "`fail` takes a negative integer, written out"
        elif not -(2**31) <= value < 0:
            message = f"`fail` takes a negative integer of 32 bits, not {value}"
        else:
            continue
        hint = 'such as `fail -20 "what went wrong"`'
        yield finding(model, codes.BAD_FAIL_CODE, node.statement.code.span, message, hint)


def check_nesting(model: Model) -> Iterator[Diagnostic]:
    for span in model.too_deep[:1]:
        message = f"nested deeper than {MAX_NESTING} levels"
        yield finding(
            model, codes.TOO_DEEP, span, message, "move the inner part to its own workflow"
        )

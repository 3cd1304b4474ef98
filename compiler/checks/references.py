"""Checks of references: every name is there, may be read from here, and every call is one."""

from __future__ import annotations

from collections.abc import Iterator

from compiler import codes
from compiler.checks.finding import finding
from compiler.expressions import step_key, task_key
from compiler.infer import walk_reference
from compiler.model import (
    Model,
    Node,
    Site,
    Variable,
    find_variable,
    is_parallel_foreach,
    visible_names,
)
from compiler.suggest import did_you_mean
from dsl.diagnostics import Diagnostic
from dsl.nodes import Action, BareKey, Call, KeyStep, ObjectExpr, Reference, WaitEvent
from dsl.source import Span

CTX_NAMES = (
    "instance_id",
    "workflow",
    "version",
    "node",
    "attempt",
    "item",
    "index",
    "iterationNo",
    "sequenceIndex",
    "parallelIndex",
    "parent",
    "task",
    "event",
    "context",
    "forceRerun",
)
LOOP_NAMES = ("item", "index", "iterationNo")


def _references(model: Model) -> Iterator[tuple[Site, Reference]]:
    for site in model.sites:
        for reference in site.references:
            yield site, reference


def check_variables(model: Model) -> Iterator[Diagnostic]:
    elsewhere: dict[str, Variable] | None = None
    for site, reference in _references(model):
        if reference.root != "var" or model.resolved.get(id(reference)) is not None:
            continue
        name = step_key(reference, 0)
        if name is None:
            message = "`var` needs the name of a variable"
            yield finding(model, codes.UNKNOWN_VARIABLE, reference.span, message, "`var.NAME`")
            continue
        if site.target is not None and site.before is not None and name == site.target.name:
            message = f'variable "{name}" cannot be read in its own first value'
            yield finding(model, codes.UNKNOWN_VARIABLE, reference.span, message)
            continue
        if find_variable(site.node, name) is not None:
            message = f'variable "{name}" is declared after this'
            hint = "declare it before"
            yield finding(model, codes.UNKNOWN_VARIABLE, reference.span, message, hint)
            continue
        elsewhere = _variables_elsewhere(model) if elsewhere is None else elsewhere
        yield _unknown_variable(model, site, name, reference, elsewhere)


def _unknown_variable(
    model: Model, site: Site, name: str, reference: Reference, elsewhere: dict[str, Variable]
) -> Diagnostic:
    message, code = f'unknown variable "{name}"', codes.UNKNOWN_VARIABLE
    if name in model.by_key and isinstance(model.by_key[name].statement, Action | WaitEvent):
        hint = f"what the action gives is read as `ctx.task.{name}.output`"
        return finding(model, code, reference.span, message, hint)
    if name not in elsewhere:
        nearest = did_you_mean(name, visible_names(model, site.node))
        return finding(model, code, reference.span, message, nearest)
    other = elsewhere[name]
    label, hint = f"this one ends with its {_scope_of(other)}", "`set` it in there to another one"
    if other.kind in ("var", "set"):
        hint = f"declare it outside, before this and that: `var {name} : type = …`"
    return finding(model, code, reference.span, message, hint, other.span, label)


def _scope_of(variable: Variable) -> str:
    """What a variable lives in, in the words of a label."""
    match variable.owner.edge:
        case "PARALLEL":
            return "branch of the parallel"
        case "BODY":
            return "iteration of the loop"
        case _:
            return "body"


def _variables_elsewhere(model: Model) -> dict[str, Variable]:
    """Returns the variables of inner scopes by name, the first of each name."""
    found: dict[str, Variable] = {}
    for variable in model.all_variables():
        if variable.owner.parent is not None:
            found.setdefault(variable.name, variable)
    return found


def check_ctx(model: Model) -> Iterator[Diagnostic]:
    for site, reference in _references(model):
        if reference.root != "ctx":
            continue
        name = step_key(reference, 0)
        if name is None:
            message = "`ctx` needs the name of what to read"
            yield finding(model, codes.UNKNOWN_CTX, reference.span, message, "`ctx.instance_id`")
        elif name == "task":
            yield from _check_task(model, site, reference)
        elif name == "error" and not _inside_handler(site.node):
            message = "`ctx.error` stands only inside `on_error` and `finally`"
            yield finding(model, codes.MISPLACED_REFERENCE, reference.span, message)
        elif name == "error":
            continue
        elif name not in CTX_NAMES:
            message = f'unknown ctx path "ctx.{name}"'
            hint = did_you_mean(name, CTX_NAMES)
            if name in model.by_key and model.by_key[name].parent is not None:
                hint = f"what a node gives is read as `ctx.task.{name}.…`"
            yield finding(model, codes.UNKNOWN_CTX, reference.span, message, hint)
        else:
            yield from _check_ctx_path(model, site, reference, name)


def _inside_handler(node: Node | None) -> bool:
    while node is not None:
        if node.edge in ("ON_ERROR", "FINALLY"):
            return True
        node = node.parent
    return False


def _check_ctx_path(
    model: Model, site: Site, reference: Reference, name: str
) -> Iterator[Diagnostic]:
    if name == "parent" and (step_key(reference, 1) != "resultCode" or len(reference.steps) != 2):
        message = "`ctx.parent` has only `resultCode`"
        yield finding(model, codes.UNKNOWN_CTX, reference.span, message, "`ctx.parent.resultCode`")
    if name == "attempt" and site.use != "binding":
        message = "`ctx.attempt` stands only in a `set` on an action or wait_event"
        yield finding(model, codes.MISPLACED_REFERENCE, reference.span, message)
    if name in LOOP_NAMES and not inside_loop(site.node):
        message = f"`ctx.{name}` stands only inside a loop"
        yield finding(model, codes.MISPLACED_REFERENCE, reference.span, message)


def inside_loop(node: Node | None) -> bool:
    while node is not None:
        if node.is_loop_body:
            return True
        node = node.parent
    return False


def _check_task(model: Model, site: Site, reference: Reference) -> Iterator[Diagnostic]:
    key = task_key(reference)
    if key is None:
        message = "`ctx.task` needs the key of a node"
        hint = "`ctx.task.KEY.resultCode` or `ctx.task.KEY.output`"
        yield finding(model, codes.UNKNOWN_CTX, reference.span, message, hint)
        return
    task = model.by_key.get(key)
    if task is None or task.parent is None:
        yield _unknown_key(model, key, reference.span)
        return
    what = step_key(reference, 2)
    if what not in ("resultCode", "output") or (what == "resultCode" and len(reference.steps) > 3):
        message = f"`ctx.task.{key}` has only `resultCode` and `output`"
        yield finding(model, codes.UNKNOWN_CTX, reference.span, message)
    elif what == "output" and not isinstance(task.statement, Action | WaitEvent):
        message = f"{task.described} has no output; only actions and wait_events have"
        yield finding(model, codes.UNKNOWN_CTX, reference.span, message)
    yield from _check_reach(model, site, task, reference.span)


def _unknown_key(model: Model, key: str, span: Span) -> Diagnostic:
    if None not in model.names:
        model.names[None] = tuple(node.key for node in model.keyed if node.parent is not None)
    known = model.names[None]
    return finding(
        model, codes.UNKNOWN_KEY, span, f'no node has the key "{key}"', did_you_mean(key, known)
    )


def check_bare_keys(model: Model) -> Iterator[Diagnostic]:
    for site in model.sites:
        if not isinstance(site.expr, BareKey):
            continue
        task = model.by_key.get(site.expr.name)
        if task is None or task.parent is None:
            if find_variable(site.node, site.expr.name) is not None:
                message = f'no node has the key "{site.expr.name}"'
                hint = f"for the variable write `var.{site.expr.name}`"
                yield finding(model, codes.UNKNOWN_KEY, site.expr.span, message, hint)
            else:
                yield _unknown_bare_key(model, site.expr)
        elif not isinstance(task.statement, Action | WaitEvent):
            message = f"{task.described} is no action, so it has no result code to test"
            yield finding(model, codes.UNKNOWN_KEY, site.expr.span, message)
        else:
            yield from _check_reach(model, site, task, site.expr.span)


def _unknown_bare_key(model: Model, found: BareKey) -> Diagnostic:
    from dsl.slips import FOREIGN_LITERALS

    meant = FOREIGN_LITERALS.get(found.name)
    if meant is None:
        return _unknown_key(model, found.name, found.span)
    message = f'no node has the key "{found.name}"'
    return finding(model, codes.UNKNOWN_KEY, found.span, message, f"write `{meant}`")


def _check_reach(model: Model, site: Site, task: Node, span: Span) -> Iterator[Diagnostic]:
    """`ctx.task.K` where K ran beside the reader (R27); the rest is said by `checks/flow.py`."""
    found = beside(site.node, task)
    if found is not None:
        yield finding(model, codes.UNREACHABLE_TASK, span, *found)


def beside(reader: Node, task: Node) -> tuple[str, str] | None:
    """Returns message and hint when a task ran beside its reader."""
    fork = task.fork
    while fork is not None and not fork.holds(reader):
        parent = fork.parent
        if is_parallel_foreach(parent):
            message = f'"{task.key}" runs in a parallel foreach and cannot be read from outside it'
            return message, "gather its results with `collect`"
        if parent is not None and parent.holds(reader) and parent is not reader:
            message = f'"{task.key}" runs in another branch of the same parallel'
            return message, "read it after the parallel"
        fork = None if parent is None else parent.fork
    return None


def check_places(model: Model) -> Iterator[Diagnostic]:
    """`out`, `code` and `event` are there only while the node they belong to completes."""
    for site, reference in _references(model):
        if site.use == "event_input":
            if reference.root != "event":
                message = f"`{reference.root}` cannot be read here: only the event is there yet"
                hint = "such as `event.payload.order_id`"
                yield finding(model, codes.MISPLACED_REFERENCE, reference.span, message, hint)
            continue
        if reference.root in ("var", "ctx"):
            continue
        on_wait = isinstance(site.node.statement, WaitEvent)
        if site.use == "binding" and (reference.root != "event" or on_wait):
            continue
        if reference.root == "event":
            message = "`event` stands only in a `set` on a wait_event and in `on event`"
            hint = "elsewhere the event last taken is `ctx.event`"
        else:
            message = f"`{reference.root}` stands only in a `set` on an action or wait_event"
            hint = f"elsewhere write `ctx.task.KEY.{_ELSEWHERE[reference.root]}`"
        yield finding(model, codes.MISPLACED_REFERENCE, reference.span, message, hint)


_ELSEWHERE = {"out": "output", "code": "resultCode"}
_EVENT_FIELDS = ("type", "source", "correlation_key", "payload", "id", "occurred_at")


def check_fields(model: Model) -> Iterator[Diagnostic]:
    for site, reference in _references(model):
        node = site.node if site.use == "binding" else None
        if reference.root == "event":
            name = step_key(reference, 0)
            if name is not None and name not in _EVENT_FIELDS:
                message = f'an event has no field "{name}"'
                hint = did_you_mean(name, _EVENT_FIELDS)
                yield finding(model, codes.UNKNOWN_FIELD, reference.steps[0].span, message, hint)
            continue
        walk = walk_reference(model, reference, node)
        if walk.misfit is None:
            continue
        step = walk.misfit
        if isinstance(step, KeyStep) and walk.type.fields is not None:
            hint = did_you_mean(step.key, walk.type.field_names())
            message = f'unknown field "{step.key}"'
        else:
            what = f'field "{step.key}"' if isinstance(step, KeyStep) else "element"
            message, hint = f"{walk.type.describe()} has no {what}", None
        yield finding(model, codes.UNKNOWN_FIELD, step.span, message, hint)


FUNCTIONS = {"len": 1, "defined": 1}


def check_calls(model: Model) -> Iterator[Diagnostic]:
    for site in model.sites:
        if isinstance(site.expr, BareKey):
            continue
        for part in site.parts:
            if isinstance(part, Call):
                yield from _check_call(model, part)
            elif isinstance(part, ObjectExpr):
                yield from _check_object(model, part)


def _check_call(model: Model, call: Call) -> Iterator[Diagnostic]:
    name = call.function.text
    if name not in FUNCTIONS:
        message = f'unknown function "{name}"'
        hint = did_you_mean(name, FUNCTIONS)
        yield finding(model, codes.BAD_CALL, call.function.span, message, hint)
    elif len(call.arguments) != FUNCTIONS[name]:
        message = f"`{name}` takes 1 argument, not {len(call.arguments)}"
        yield finding(model, codes.BAD_CALL, call.span, message)
    elif name == "defined" and not isinstance(call.arguments[0], Reference):
        message = "`defined` takes a reference"
        hint = "such as `defined(var.x)`"
        yield finding(model, codes.BAD_CALL, call.arguments[0].span, message, hint)


def _check_object(model: Model, expr: ObjectExpr) -> Iterator[Diagnostic]:
    seen: dict[str, Span] = {}
    for entry in expr.entries:
        if entry.key in seen:
            message = f'key "{entry.key}" is given twice'
            first = seen[entry.key]
            yield finding(
                model, codes.DUPLICATE_OBJECT_KEY, entry.key_span, message, "remove one", first
            )
        seen.setdefault(entry.key, entry.key_span)

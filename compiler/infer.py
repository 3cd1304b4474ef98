"""What is known of the type of an expression before anything runs.

`ANY` means nothing is known; a check speaks up only about what is certain. No walk recurses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import assert_never

from compiler.attributes import find
from compiler.expressions import NOT_LITERAL, literal_value, post_order, step_key, task_key
from compiler.model import Model, Node, Site, Target, Variable
from compiler.type_model import ANY, MAX_TYPE_DEPTH, Field, Type
from dsl.nodes import (
    Action,
    Binary,
    Call,
    Expr,
    Foreach,
    IndexStep,
    KeyStep,
    ListExpr,
    LiteralExpr,
    ObjectExpr,
    Reference,
    Repeat,
    Step,
    TemplateString,
    Unary,
)
from dsl.quick_class import dataclass, replace

STRING, INT, NUMBER, BOOL = Type("string"), Type("int"), Type("number"), Type("bool")

_CTX: dict[str, Type] = {
    "instance_id": STRING,
    "workflow": STRING,
    "version": STRING,
    "node": STRING,
    "attempt": INT,
    "index": INT,
    "iterationNo": INT,
    "sequenceIndex": INT,
    "parallelIndex": INT,
    "error": Type(
        "object",
        fields=(
            Field("code", False, Type("int", nullable=True)),
            Field("engine_code", False, Type("int", nullable=True)),
            Field("message", False, STRING),
            Field("node", False, STRING),
            Field("path", False, STRING),
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Walk:
    """Where the steps of a reference lead: to `type`, or to a step that does not fit it."""

    type: Type
    misfit: Step | None = None


def follow(start: Type, steps: Sequence[Step]) -> Walk:
    """Follows steps through a type as far as it is known."""
    current = start
    for step in steps:
        if current.base == "any":
            return Walk(ANY)
        following = _step(current, step)
        if following is None:
            return Walk(current, step)
        current = following
    return Walk(current)


def _step(current: Type, step: Step) -> Type | None:
    match step:
        case KeyStep(key=key):
            if current.base != "object":
                return None
            if current.fields is None:
                return ANY
            found = current.field(key)
            if found is None:
                return None
            return replace(found.type, nullable=found.type.nullable or found.optional)
        case IndexStep():
            return (current.item or ANY) if current.base == "list" else None
        case _:
            assert_never(step)


def walk_reference(model: Model, reference: Reference, node: Node | None) -> Walk:
    """Returns where a reference leads; `node` is the one in whose `set` it stands, for `out`."""
    start, known = _start(model, reference, node)
    return follow(start, reference.steps[known:])


def nullable_parts(model: Model, reference: Reference, node: Node | None) -> Iterator[int]:
    """Yields how many steps of a reference lead to what may be null, where others follow."""
    if len(reference.steps) < 2 and reference.root != "out":
        return
    current, known = _start(model, reference, node)
    for count, step in enumerate(reference.steps[known:], known):
        if current.base == "any":
            return
        if current.nullable:
            yield count
        following = _step(current, step)
        if following is None:
            return
        current = following


def _start(model: Model, reference: Reference, node: Node | None) -> tuple[Type, int]:
    """Returns the type that the first steps of a reference lead to, and how many these are."""
    steps = reference.steps
    match reference.root:
        case "var":
            variable = model.resolved.get(id(reference))
            return (ANY, 1) if variable is None else (variable.type, 1)
        case "out":
            return _output_of(model, node), 0
        case "code":
            return INT, len(steps)
        case "event":
            return ANY, 0
        case "ctx":
            return _start_ctx(model, reference)
        case _:
            assert_never(reference.root)


def _start_ctx(model: Model, reference: Reference) -> tuple[Type, int]:
    key, whole = task_key(reference), len(reference.steps)
    if key is not None:
        field = step_key(reference, 2)
        if field == "output":
            return _output_of(model, model.by_key.get(key)), 3
        return (INT, whole) if field == "resultCode" else (ANY, whole)
    first = step_key(reference, 0) or ""
    return (INT, whole) if first == "parent" else (_CTX.get(first, ANY), 1)


def _output_of(model: Model, node: Node | None) -> Type:
    if node is None or not isinstance(node.statement, Action):
        return ANY
    action = model.actions.get(node.statement.action.text)
    return ANY if action is None else action.output_type


def type_of(model: Model, expr: Expr, node: Node | None = None) -> Type:
    """Returns the type of an expression, `ANY` where it is not known."""
    return types_of(model, expr, node)[id(expr)]


def types_of(model: Model, expr: Expr, node: Node | None = None) -> dict[int, Type]:
    """Returns the types of an expression and of all its parts, by `id`."""
    return _types(model, post_order(expr), node)


def types_at(model: Model, site: Site) -> dict[int, Type]:
    """Returns the types of a site's expression and of all its parts, by `id`."""
    known = model.known.get(id(site.expr))
    if known is None:
        known = _types(model, site.parts, site.node if site.use == "binding" else None)
        model.known[id(site.expr)] = known
    return known


def _types(model: Model, parts: Iterable[Expr], node: Node | None) -> dict[int, Type]:
    known: dict[int, Type] = {}
    levels: dict[int, int] = {}
    for part in parts:
        if type(part) in _NESTING:
            assert isinstance(part, ListExpr | ObjectExpr)
            inside = part.items if isinstance(part, ListExpr) else (e.value for e in part.entries)
            levels[id(part)] = 1 + max((levels.get(id(item), 0) for item in inside), default=0)
        # Types are compared and hashed by recursion, so what nests deeper is not known.
        is_deep = bool(levels) and levels.get(id(part), 0) > MAX_TYPE_DEPTH
        known[id(part)] = ANY if is_deep else _type(model, part, node, known)
    return known


_NESTING = (ListExpr, ObjectExpr)


def _type(model: Model, expr: Expr, node: Node | None, known: dict[int, Type]) -> Type:
    match expr:
        case LiteralExpr(value=value):
            return literal_type(value)
        case Reference():
            walk = walk_reference(model, expr, node)
            return ANY if walk.misfit is not None else walk.type
        case TemplateString(parts=parts):
            lone = parts[0] if len(parts) == 1 else ""
            return STRING if isinstance(lone, str) else known[id(lone)]
        case ListExpr(items=items):
            # Hashing a type takes time by its fields, and many items have the same one.
            types = set({id(known[id(item)]): known[id(item)] for item in items}.values())
            return Type("list", item=types.pop() if len(types) == 1 else None)
        case ObjectExpr(entries=entries):
            fields = tuple(Field(e.key, False, known[id(e.value)]) for e in entries)
            return Type("object", fields=fields)
        case Unary(operator=operator):
            literal = literal_value(expr)
            return BOOL if operator == "not" else literal_type(literal)
        case Binary():
            return _binary(expr, known)
        case Call(function=function):
            return {"len": INT, "defined": BOOL}.get(function.text, ANY)
        case _:
            assert_never(expr)


def literal_type(value: object) -> Type:
    """Returns the type of a JSON scalar; that of `null` is not known. No literal: an integer."""
    if value is NOT_LITERAL:
        return INT
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT
    if isinstance(value, Decimal):
        return NUMBER
    return STRING if isinstance(value, str) else ANY


def _binary(expr: Binary, known: dict[int, Type]) -> Type:
    match expr.operator:
        case "+" | "-" | "*" | "//" | "%":
            return INT
        case "??":
            left, right = replace(known[id(expr.left)], nullable=False), known[id(expr.right)]
            return right if left == replace(right, nullable=False) else ANY
        case _:
            return BOOL


def type_loop_variables(model: Model) -> None:
    """Gives FOREACH items and counters the type that is known of them, outer loops first.

    A loop variable that a `set` writes to stays `ANY`.
    """
    for node in model.nodes:
        if node.edge != "BODY" or node.parent is None:
            continue
        statement = node.parent.statement
        if isinstance(statement, Foreach):
            item = type_of(model, statement.collection).item or ANY
            if find(statement.attributes, "batch") is not None:
                item = Type("list", item=item)
            _give_type(node, statement.item.text, item)
            if statement.index is not None:
                _give_type(node, statement.index.text, INT)
        elif isinstance(statement, Repeat) and statement.counter is not None:
            _give_type(node, statement.counter.text, INT)


def type_set_variables(model: Model) -> None:
    """Gives variables that only `set` declares the type that all of their values have.

    In the order of the text: what is not known by then stays `ANY`, and so does one whose values
    have several types. Of objects only that they are objects is kept, of lists the scalar items:
    values may have more than the expression shows.
    """
    written: dict[Variable, list[Target]] = {}
    for target in model.targets:
        if target.variable.kind == "set":
            written.setdefault(target.variable, []).append(target)
    for variable, targets in written.items():
        types = [_value_type(model, target) for target in targets]
        first = replace(types[0], nullable=False)
        if all(replace(known, nullable=False) == first for known in types):
            variable.type = replace(first, nullable=any(known.nullable for known in types))


def _value_type(model: Model, target: Target) -> Type:
    if target.kind == "collect":
        return Type("list")
    known = _kept(type_of(model, target.binding.value, target.node))
    if known.base == "list":
        item = None if known.item is None else _kept(known.item)
        return replace(known, item=item if item is not None and item.base in _SCALARS else None)
    return known


def _kept(known: Type) -> Type:
    return replace(known, fields=None) if known.base == "object" else known


_SCALARS = ("string", "int", "number", "bool")


def _give_type(body: Node, name: str, known: Type) -> None:
    variable = body.variables.get(name)
    if variable is not None and variable.kind == "loop" and not variable.writes:
        variable.type = known

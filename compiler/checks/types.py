"""Checks of types: what is known not to fit where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from compiler import codes
from compiler.checks.finding import finding
from compiler.checks.nulls import check_null
from compiler.expressions import NOT_LITERAL, literal_value, lone_reference
from compiler.infer import types_at
from compiler.model import Model, Site
from compiler.suggest import did_you_mean
from compiler.type_model import BUILTIN, Type
from dsl.codes import Code
from dsl.diagnostics import Diagnostic
from dsl.nodes import (
    Action,
    BareKey,
    Binary,
    Call,
    Expr,
    IndexStep,
    ListExpr,
    LiteralExpr,
    ObjectExpr,
    Reference,
    TemplateString,
    Unary,
)


def check_type_names(model: Model) -> Iterator[Diagnostic]:
    if not model.type_misfits:
        return
    names = model.file_aliases.names(model.workflow.types)
    for misfit in model.type_misfits:
        code, message, hint = type_problem(misfit.kind, misfit.name, names)
        yield finding(model, code, misfit.span, message, hint)


def type_names(aliases: Iterable[str]) -> tuple[str, ...]:
    """Returns all names that a type can be given by."""
    return (*BUILTIN, *sorted(aliases))


def type_problem(kind: str, name: str, known: tuple[str, ...]) -> tuple[Code, str, str | None]:
    """Returns code, message and hint of what `TypeResolver` found; `known` is `type_names(…)`."""
    match kind:
        case "unknown":
            return codes.UNKNOWN_TYPE, f'unknown type "{name}"', did_you_mean(name, known)
        case "cycle":
            return codes.TYPE_CYCLE, f'type "{name}" contains itself', None
        case "duplicate":
            return codes.BAD_TYPE, f'"{name}" stands twice in this type', "remove one"
        case _:
            message = "this type is nested too deep or too large"
            return codes.BAD_TYPE, message, "use `any` inside"


def check_values(model: Model) -> Iterator[Diagnostic]:
    """Values against declared types: of variables, inputs, and arguments in the catalog."""
    for site in model.sites:
        if isinstance(site.expr, BareKey):
            continue
        target = site.target
        if target is not None and target.kind in ("input", "var"):
            yield from _misfits(model, site, site.expr, target.type, f'"{target.name}"')
    for site, name, expr, wanted in _arguments(model):
        yield from _misfits(model, site, expr, wanted, f'argument "{name}"')


def _arguments(model: Model) -> Iterator[tuple[Site, str, Expr, Type]]:
    actions = (n.statement for n in model.nodes if isinstance(n.statement, Action))
    given = {id(argument.value): argument for action in actions for argument in action.arguments}
    for site in model.sites:
        if site.use != "argument" or not isinstance(site.node.statement, Action):
            continue
        described = model.actions.get(site.node.statement.action.text)
        argument = given[id(site.expr)]
        field = None if described is None else described.input_type.field(argument.name.text)
        if field is not None:
            yield site, argument.name.text, argument.value, field.type


def _misfits(model: Model, site: Site, expr: Expr, wanted: Type, what: str) -> Iterator[Diagnostic]:
    types = types_at(model, site)
    pending = [(expr, wanted, what)]
    while pending:
        current, expected, name = pending.pop()
        if expected.base == "any":
            continue
        if isinstance(current, ListExpr) and expected.base == "list":
            if expected.item is not None:
                element = f"an element of {name}"
                pending.extend([(child, expected.item, element) for child in current.items])
        elif isinstance(current, ObjectExpr) and expected.base == "object":
            yield from _missing_fields(model, current, expected)
            for entry in current.entries:
                field = expected.field(entry.key)
                if field is not None:
                    pending.append((entry.value, field.type, f'field "{entry.key}"'))
                elif site.use == "argument" and expected.fields is not None:
                    message = f'{name} has no field "{entry.key}"'
                    hint = did_you_mean(entry.key, expected.field_names())
                    yield finding(model, codes.UNKNOWN_FIELD, entry.key_span, message, hint)
        else:
            actual = types[id(current)]
            misfit = _misfit(model, current, actual, expected, name)
            if misfit is not None:
                yield misfit
            elif actual.nullable and not expected.nullable:
                yield from check_null(model, site, current, actual, name)


def _missing_fields(model: Model, expr: ObjectExpr, wanted: Type) -> Iterator[Diagnostic]:
    given = {entry.key for entry in expr.entries}
    for field in wanted.fields or ():
        if not field.optional and field.name not in given:
            message = f'field "{field.name}" is missing here'
            yield finding(model, codes.WRONG_TYPE, expr.span, message, f"add `{field.name}: …`")


def _misfit(model: Model, expr: Expr, actual: Type, wanted: Type, name: str) -> Diagnostic | None:
    literal = literal_value(expr)
    if literal is None:
        if not wanted.nullable:
            return _wrong(model, expr, f"{name} takes {wanted.describe()}, not null")
    elif not _may_be(actual, wanted) or (isinstance(literal, Decimal) and wanted.base == "int"):
        return _wrong(model, expr, f"{name} takes {wanted.describe()}, not {_what(actual)}")
    elif (
        wanted.enum is not None
        and isinstance(literal, str)
        and not _is_one_of(literal, wanted.enum)
    ):
        message = f'{name} takes {wanted.describe()}, not "{literal}"'
        return _wrong(model, expr, message, did_you_mean(literal, wanted.enum))
    return None


_last_enum: list[tuple[tuple[str, ...], frozenset[str]]] = []


def _is_one_of(word: str, enum: tuple[str, ...]) -> bool:
    """Whether a word is in an enum. There may be thousands of both, so the last set is kept."""
    if not _last_enum or _last_enum[0][0] is not enum:
        _last_enum[:] = [(enum, frozenset(enum))]
    return word in _last_enum[0][1]


def _may_be(actual: Type, wanted: Type) -> bool:
    """Whether a value of one type can fit another; a `number` may turn out to be an integer."""
    if actual.base == wanted.base or "any" in (actual.base, wanted.base):
        return True
    return {actual.base, wanted.base} == {"int", "number"}


def _what(actual: Type) -> str:
    words = {
        "string": "a string",
        "int": "an integer",
        "number": "a number with a fraction",
        "bool": "a boolean",
        "object": "an object",
        "list": "a list",
    }
    return words.get(actual.base, "this")


def _wrong(model: Model, expr: Expr, message: str, hint: str | None = None) -> Diagnostic:
    return finding(model, codes.WRONG_TYPE, expr.span, message, hint)


def check_operands(model: Model) -> Iterator[Diagnostic]:
    """Operands, conditions, counts and collections that are known to fail when evaluated."""
    for site in model.sites:
        if isinstance(site.expr, BareKey):
            continue
        known = types_at(model, site)
        for part in site.parts:
            if type(part) is LiteralExpr:
                continue
            yield from _check_part(model, site, part, known)
            yield from _check_nulls(model, site, part, known)
        yield from _check_use(model, site, site.expr, known[id(site.expr)])


def _check_use(model: Model, site: Site, expr: Expr, actual: Type) -> Iterator[Diagnostic]:
    literal = literal_value(expr)
    match site.use:
        case "condition":
            yield from _check_truth(model, expr, actual, "a condition")
        case "count":
            if actual.base not in ("any", "int", "number") or isinstance(literal, Decimal):
                yield _wrong(model, expr, f"`repeat` takes an integer, not {_what(actual)}")
            elif actual.base != "any":
                yield from check_null(model, site, expr, actual, "`repeat`")
        case "collection":
            if actual.base not in ("any", "list"):
                yield _wrong(model, expr, f"`foreach` takes a list, not {_what(actual)}")
            elif actual.base != "any":
                yield from check_null(model, site, expr, actual, "`foreach`")
        case "correlate":
            if actual.base in ("bool", "object", "list") or isinstance(literal, Decimal):
                message = f"`correlate` takes a string or an integer, not {_what(actual)}"
                yield _wrong(model, expr, message)
        case "subject":
            if actual.base in ("object", "list"):
                yield _wrong(model, expr, f"`switch` takes a scalar, not {_what(actual)}")


def _check_truth(model: Model, expr: Expr, actual: Type, what: str) -> Iterator[Diagnostic]:
    is_fraction = isinstance(literal_value(expr), Decimal)
    if actual.base in ("string", "object", "list") or is_fraction:
        message = f"{what} takes a boolean, an integer or null, not {_what(actual)}"
        yield _wrong(model, expr, message, "compare it with something")


def _check_part(
    model: Model, site: Site, expr: Expr, known: dict[int, Type]
) -> Iterator[Diagnostic]:
    match expr:
        case TemplateString(parts=parts) if len(parts) > 1:
            for part in parts:
                if not isinstance(part, str) and known[id(part)].base in ("object", "list"):
                    message = f"{_what(known[id(part)])} cannot stand inside a string"
                    yield _wrong(model, part, message)
        case Reference(steps=steps):
            for step in steps:
                if isinstance(step, IndexStep) and isinstance(step.index, Reference):
                    actual = known[id(step.index)]
                    if actual.base not in ("any", "int", "number"):
                        message = f"an index takes an integer, not {_what(actual)}"
                        yield _wrong(model, step.index, message)
        case Unary(operator="not", operand=operand):
            yield from _check_truth(model, operand, known[id(operand)], "`not`")
        case Unary(operand=operand):
            if literal_value(expr) is NOT_LITERAL:
                yield from _check_integer(model, operand, known, "-")
        case Binary():
            yield from _check_binary(model, expr, known)
        case Call(arguments=arguments) if expr.function.text == "len" and len(arguments) == 1:
            actual = known[id(arguments[0])]
            if actual.base in ("int", "number", "bool"):
                message = f"`len` takes a string, a list or an object, not {_what(actual)}"
                yield _wrong(model, arguments[0], message)


def _check_nulls(
    model: Model, site: Site, expr: Expr, known: dict[int, Type]
) -> Iterator[Diagnostic]:
    """Operands that may be null where the operator fails with null."""
    operands: tuple[Expr, ...] = ()
    what = ""
    match expr:
        case TemplateString(parts=parts) if len(parts) > 1:
            operands = tuple(part for part in parts if not isinstance(part, str))
            what = "a longer string"
        case Reference(steps=steps):
            indexes = (step.index for step in steps if isinstance(step, IndexStep))
            operands = tuple(index for index in indexes if isinstance(index, Reference))
            what = "an index"
        case Unary(operator="-", operand=operand):
            operands, what = (operand,), "`-`"
        case Binary(operator="in", right=right):
            operands, what = (right,), "`in`"
        case Binary(operator=operator) if operator in _NULL_FAILS:
            operands, what = (expr.left, expr.right), f"`{operator}`"
        case Call(arguments=arguments) if expr.function.text == "len":
            operands, what = arguments, "`len`"
        case _:
            pass
    for part in operands:
        if known[id(part)].base != "any":
            yield from check_null(model, site, part, known[id(part)], what)


_NULL_FAILS = frozenset(("+", "-", "*", "//", "%", "<", "<=", ">", ">="))


def _check_integer(
    model: Model, expr: Expr, known: dict[int, Type], operator: str
) -> Iterator[Diagnostic]:
    actual = known[id(expr)]
    is_fraction = isinstance(literal_value(expr), Decimal)
    if actual.base in ("string", "bool", "object", "list") or is_fraction:
        hint = None
        if actual.base == "string" and operator == "+":
            hint = 'join strings as "${var.a}${var.b}"'
        yield _wrong(model, expr, f"`{operator}` takes integers, not {_what(actual)}", hint)


def _check_binary(model: Model, expr: Binary, known: dict[int, Type]) -> Iterator[Diagnostic]:
    left, right = known[id(expr.left)], known[id(expr.right)]
    match expr.operator:
        case "+" | "-" | "*" | "//" | "%":
            yield from _check_integer(model, expr.left, known, expr.operator)
            yield from _check_integer(model, expr.right, known, expr.operator)
            yield from _check_result(model, expr)
        case "and" | "or":
            yield from _check_truth(model, expr.left, left, f"`{expr.operator}`")
            yield from _check_truth(model, expr.right, right, f"`{expr.operator}`")
        case "<" | "<=" | ">" | ">=":
            if _never_ordered(left, right):
                message = f"cannot order {_what(left)} and {_what(right)}"
                yield _wrong(model, expr, message)
        case "==" | "!=":
            for side, actual in ((expr.left, left), (expr.right, right)):
                other = expr.right if side is expr.left else expr.left
                if actual.base in ("object", "list") and not _may_be_null(other, known):
                    message = f"{_what(actual)} can only be compared with null"
                    yield _wrong(model, side, message)
            yield from _check_equal(model, expr, left, right)
        case "in":
            if left.base in ("object", "list"):
                yield _wrong(model, expr.left, f"`in` takes a scalar, not {_what(left)}")
            if right.base not in ("any", "list"):
                yield _wrong(model, expr.right, f"`in` takes a list, not {_what(right)}")
            elif right.item is not None:
                yield from _check_never_in(model, expr, left, right.item)
        case "??":
            pass


def _check_result(model: Model, expr: Binary) -> Iterator[Diagnostic]:
    """Arithmetic that fails whatever happens: division by 0, literals past 64 bits."""
    left, right = literal_value(expr.left), literal_value(expr.right)
    if not isinstance(right, int) or isinstance(right, bool):
        return
    message = None
    if expr.operator in ("//", "%"):
        message = "division by 0 always fails" if right == 0 else None
    elif isinstance(left, int) and not isinstance(left, bool):
        results = {"+": left + right, "-": left - right, "*": left * right}
        if not -(2**63) <= results[expr.operator] < 2**63:
            message = "the result does not fit into 64 bits, so this always fails"
    if message is not None:
        yield finding(model, codes.ALWAYS_FAILS, expr.span, message)


_SCALARS = {"int": "number", "number": "number", "string": "string", "bool": "bool"}


def _check_equal(model: Model, expr: Binary, left: Type, right: Type) -> Iterator[Diagnostic]:
    """Scalars of two kinds, and words that are no value of an enum, are never equal."""
    kinds = _SCALARS.get(left.base), _SCALARS.get(right.base)
    if None in kinds or (left.nullable and right.nullable):
        return
    always = "false" if expr.operator == "==" else "true"
    if kinds[0] != kinds[1]:
        message = f"{_what(left)} and {_what(right)} are never equal, so this is always {always}"
        yield finding(model, codes.NEVER_EQUAL, expr.span, message)
        return
    for side, other in ((expr.left, right), (expr.right, left)):
        word = literal_value(side)
        if other.enum is not None and isinstance(word, str) and word not in other.enum:
            message = f'"{word}" is not one of its values, so this is always {always}'
            hint = did_you_mean(word, other.enum)
            yield finding(model, codes.NEVER_EQUAL, side.span, message, hint)


def _check_never_in(model: Model, expr: Binary, left: Type, item: Type) -> Iterator[Diagnostic]:
    kinds = _SCALARS.get(left.base), _SCALARS.get(item.base)
    if None in kinds or (left.nullable and item.nullable):
        return
    if kinds[0] != kinds[1]:
        message = f"{_what(left)} is never in a list of these, so this is always false"
        yield finding(model, codes.NEVER_EQUAL, expr.span, message)
    word = literal_value(expr.left)
    if item.enum is not None and isinstance(word, str) and word not in item.enum:
        message = f'"{word}" is not one of its values, so this is always false'
        hint = did_you_mean(word, item.enum)
        yield finding(model, codes.NEVER_EQUAL, expr.left.span, message, hint)


def _never_ordered(left: Type, right: Type) -> bool:
    groups = {"int": "number", "number": "number", "string": "string", "any": "any"}
    kinds = {groups.get(left.base, left.base), groups.get(right.base, right.base)}
    return bool(kinds & {"bool", "object", "list"}) or kinds == {"number", "string"}


def _may_be_null(expr: Expr, known: dict[int, Type]) -> bool:
    if literal_value(expr) is None:
        return True
    actual = known[id(expr)]
    return actual.base == "any" or actual.nullable or lone_reference(expr) is not None

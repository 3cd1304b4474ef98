"""Expressions to programs: postfix instructions for the engines' stack machine.

`var.n + 1 < 3` becomes `["var","n",owner,[]] ["lit",1] ["add"] ["lit",3] ["lt"]`. What the
instructions mean stands in `compiler/spec.py`. No walk recurses.
"""

from __future__ import annotations

from typing import Any, assert_never

from compiler.expressions import (
    NOT_LITERAL,
    is_plain,
    literal_value,
    lone_reference,
    post_order,
    reference_text,
)
from compiler.model import Model
from dsl.diagnostics import InternalError
from dsl.nodes import (
    BareKey,
    Binary,
    Call,
    Expr,
    IndexStep,
    KeyStep,
    ListExpr,
    LiteralExpr,
    ObjectExpr,
    Reference,
    TemplateString,
    Unary,
)

Instruction = list[Any]
Program = list[Instruction]

_OPERATORS = {
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "in": "in",
    "+": "add",
    "-": "sub",
    "*": "mul",
    "//": "div",
    "%": "mod",
}


def result_code_of(key: str) -> Instruction:
    """Returns the instruction that pushes a node's result code."""
    return ["ctx", "task", [key, "resultCode"]]


def lower_condition(model: Model, expr: Expr | BareKey) -> Program:
    """A bare key means "its result code is not 0"."""
    if isinstance(expr, BareKey):
        return [result_code_of(expr.name), ["lit", 0], ["ne"]]
    return lower_expr(model, expr)


def lower_subject(model: Model, expr: Expr | BareKey) -> Program:
    """A bare key means its result code."""
    return [result_code_of(expr.name)] if isinstance(expr, BareKey) else lower_expr(model, expr)


def lower_expr(model: Model, expr: Expr) -> Program:
    """Returns the program of an expression whose names are all resolved."""
    done: dict[int, Program] = {}
    for part in post_order(expr):
        done[id(part)] = _lower(model, part, done)
    return done[id(expr)]


def _lower(model: Model, expr: Expr, done: dict[int, Program]) -> Program:
    literal = literal_value(expr)
    if literal is not NOT_LITERAL:
        return [["lit", literal]]
    match expr:
        case LiteralExpr(value=value):
            return [["lit", value]]
        case Reference():
            return [_reference(model, expr, done)]
        case TemplateString():
            return _template(expr, done)
        case ListExpr(items=items):
            return [*_joined(items, done), ["arr", len(items)]]
        case ObjectExpr(entries=entries):
            values = _joined(tuple(entry.value for entry in entries), done)
            return [*values, ["obj", [entry.key for entry in entries]]]
        case Unary(operator=operator, operand=operand):
            return [*done[id(operand)], ["not" if operator == "not" else "neg"]]
        case Binary():
            return _binary(expr, done)
        case Call():
            return _call(expr, done)
        case _:
            assert_never(expr)


def _joined(parts: tuple[Expr, ...], done: dict[int, Program]) -> Program:
    return [instruction for part in parts for instruction in done[id(part)]]


def lower_reference(model: Model, reference: Reference) -> Instruction:
    """Returns the instruction of a reference whose names are all resolved."""
    return lower_expr(model, reference)[0]


def _reference(model: Model, reference: Reference, done: dict[int, Program]) -> Instruction:
    steps: list[Any] = []
    for step in reference.steps:
        match step:
            case KeyStep(key=key):
                steps.append(key)
            case IndexStep(index=LiteralExpr(value=value)):
                steps.append(value)
            case IndexStep(index=index):
                steps.append(done[id(index)][0])
    match reference.root:
        case "var":
            variable = model.resolved.get(id(reference))
            if variable is None:
                raise InternalError(f"a reference to {steps[:1]} was lowered unresolved")
            return ["var", variable.name, variable.owner.key, steps[1:]]
        case "ctx":
            return ["ctx", steps[0], steps[1:]]
        case "code":
            return ["code"]
        case "out" | "event":
            return [reference.root, steps]
        case _:
            assert_never(reference.root)


def _template(expr: TemplateString, done: dict[int, Program]) -> Program:
    lone = lone_reference(expr)
    if lone is not None:
        return done[id(lone)]
    program: Program = []
    for part in expr.parts:
        program.extend([["lit", part]] if isinstance(part, str) else done[id(part)])
    return [*program, ["cat", len(expr.parts)]]


def _binary(expr: Binary, done: dict[int, Program]) -> Program:
    left, right = done[id(expr.left)], done[id(expr.right)]
    match expr.operator:
        case "and":
            return [*left, ["jf", len(right) + 1], *right, ["bool"]]
        case "or":
            return [*left, ["jt", len(right) + 1], *right, ["bool"]]
        case "??":
            return [*left, ["alt", len(right)], *right]
        case _:
            return [*left, *right, [_OPERATORS[expr.operator]]]


def _call(expr: Call, done: dict[int, Program]) -> Program:
    argument = expr.arguments[0]
    if expr.function.text == "defined":
        return [["defined", done[id(argument)][0]]]
    return [*done[id(argument)], ["len"]]


# --- templates ---------------------------------------------------------------------------------


def escape_template(text: str) -> str:
    """Writes a literal piece of a template string: `$${` stands for `${`."""
    return text.replace("${", "$${")


def lower_arguments(
    model: Model, arguments: list[tuple[str, Expr]]
) -> tuple[dict[str, Any], list[tuple[str, Program]]]:
    """Returns an ACTION's template and the bindings (JSON pointer, program) of what it cannot say.

    Literals, and strings with plain references, go into the template; anything else is null there.
    """
    template: dict[str, Any] = {}
    bindings: list[tuple[str, Program]] = []
    # (container, key in it, JSON pointer, expression), taken in the order of the source.
    pending: list[tuple[Any, str | int, str, Expr]] = [
        (template, name, f"/{_pointer_step(name)}", expr) for name, expr in reversed(arguments)
    ]
    while pending:
        container, key, pointer, expr = pending.pop()
        match expr:
            case ListExpr(items=items):
                filled: Any = [None] * len(items)
                pending.extend(
                    (filled, position, f"{pointer}/{position}", items[position])
                    for position in range(len(items) - 1, -1, -1)
                )
            case ObjectExpr(entries=entries):
                filled = {}
                pending.extend(
                    (filled, entry.key, f"{pointer}/{_pointer_step(entry.key)}", entry.value)
                    for entry in reversed(entries)
                )
            case _:
                filled = _template_value(expr)
                if filled is NOT_LITERAL:
                    filled = None
                    bindings.append((pointer, lower_expr(model, expr)))
        container[key] = filled
    return template, bindings


def _template_value(expr: Expr) -> Any:
    """Returns what stands in the template for an expression, or NOT_LITERAL for a binding."""
    literal = literal_value(expr)
    if literal is not NOT_LITERAL:
        return escape_template(literal) if isinstance(literal, str) else literal
    if isinstance(expr, Reference):
        return _placeholder(expr) if is_plain(expr) else NOT_LITERAL
    if isinstance(expr, TemplateString):
        parts = expr.parts
        if all(isinstance(part, str) or is_plain(part) for part in parts):
            return "".join(
                escape_template(part) if isinstance(part, str) else _placeholder(part)
                for part in parts
            )
    return NOT_LITERAL


def _placeholder(reference: Reference) -> str:
    return "${" + reference_text(reference) + "}"


def _pointer_step(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")

"""Programs: made ready once (`compile_program`), then evaluated as often as needed (`evaluate`).

`["var", "n", "root", []], ["lit", 1], ["add"]`  becomes  a `Program`: a tuple of (operation,
argument) pairs with references resolved to `Reference` objects, and is run by one loop over a
stack. The meaning of the instructions stands in `compiler/spec.py`, that of the operators in the
semantics §3. Errors are values: `evaluate` returns an `EngineError` instead of raising.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Protocol

from compiler import json_values
from local_runner.values import (
    MISSING,
    EngineError,
    JsonValue,
    joined_text,
    storable_problem,
    text_of,
    truth,
    type_word,
)

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

# How many steps of a `ctx` reference name an entry of the engine rather than a part of a value.
_CONTEXT_HEADS: Final = {"task": 2, "parent": 1}


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference: what it starts from (`head`), and the steps down into that value."""

    kind: str
    name: str
    owner: str
    head: tuple[str, ...]
    steps: tuple[str | int | Reference, ...]
    text: str
    unset_is_null: bool = False


class Reader(Protocol):
    """Where references look: one node execution's view of the instance."""

    def variable(self, owner: str, name: str) -> JsonValue: ...

    def context(self, root: str, head: tuple[str, ...]) -> JsonValue: ...

    @property
    def out(self) -> JsonValue: ...

    @property
    def code(self) -> JsonValue: ...

    @property
    def event(self) -> JsonValue: ...


@dataclass(frozen=True, slots=True)
class Program:
    """A program made ready; `constant` is its value when it is one literal."""

    code: tuple[tuple[str, Any], ...]
    constant: JsonValue = MISSING
    builds: bool = False


def render_step(step: str | int | Reference) -> str:
    """Returns a step as an author writes it: `.name`, `[3]`, `["odd key"]`, `[var.i]`."""
    if isinstance(step, Reference):
        return f"[{step.text}]"
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_KEY.fullmatch(step) else f"[{json_values.dumps(step)}]"


_NO_NAMES: Final[frozenset[tuple[str, str]]] = frozenset()


def compile_reference(
    instruction: Sequence[Any], unset_is_null: frozenset[tuple[str, str]] = _NO_NAMES
) -> Reference:
    """Makes a `var`, `ctx`, `out`, `code` or `event` instruction ready."""
    kind = instruction[0]
    raw: Sequence[Any] = () if kind == "code" else instruction[-1]
    steps = tuple(compile_reference(step) if isinstance(step, list) else step for step in raw)
    name = instruction[1] if kind in ("var", "ctx") else ""
    owner = instruction[2] if kind == "var" else ""
    text = kind + (render_step(name) if name else "") + "".join(map(render_step, steps))
    heads = _CONTEXT_HEADS.get(name, 0) if kind == "ctx" else 0
    head = tuple(step for step in steps[:heads] if isinstance(step, str))
    return Reference(kind, name, owner, head, steps[heads:], text, (owner, name) in unset_is_null)


def compile_program(
    instructions: Sequence[Sequence[Any]], unset_is_null: frozenset[tuple[str, str]] = _NO_NAMES
) -> Program:
    """Makes a program ready.

    Args:
      unset_is_null: (owner, name) of variables that read as null while they were never set; the
        workflow's `output` reads so (R16).
    """
    code: list[tuple[str, Any]] = []
    for position, instruction in enumerate(instructions):
        operation = instruction[0]
        following = instructions[position + 1][0] if position + 1 < len(instructions) else ""
        match operation:
            case "var" | "ctx" | "out" | "code" | "event":
                reference = compile_reference(instruction, unset_is_null)
                code.append(("ref_or_missing" if following == "alt" else "ref", reference))
            case "defined":
                code.append(("defined", compile_reference(instruction[1])))
            case "lit" | "jf" | "jt" | "alt" | "arr" | "obj" | "cat":
                code.append((operation, instruction[1]))
            case "fault":
                code.append(("fault", EngineError(instruction[1], instruction[2])))
            case _:
                code.append(_operator(operation))
    constant = code[0][1] if len(code) == 1 and code[0][0] == "lit" else MISSING
    # Only arrays and objects can nest deeper than what they are built from.
    builds = any(operation in ("arr", "obj") for operation, _argument in code)
    return Program(tuple(code), constant, builds)


def _operator(operation: str) -> tuple[str, Any]:
    if operation in _UNARY:
        return ("unary", _UNARY[operation])
    return ("binary", _BINARY[operation])


def resolve(reference: Reference, reader: Reader) -> JsonValue:
    """Returns what a reference names, MISSING, or the error of an index on the way."""
    kind = reference.kind
    if kind == "var":
        value = reader.variable(reference.owner, reference.name)
        if value is MISSING and reference.unset_is_null:
            return None
    elif kind == "ctx":
        value = reader.context(reference.name, reference.head)
    elif kind == "out":
        value = reader.out
    elif kind == "code":
        value = reader.code
    else:
        value = reader.event
    for step in reference.steps:
        if value is MISSING:
            return MISSING
        value = _descend(value, step, reader)
        if type(value) is EngineError:
            return value
    return value


def _descend(value: JsonValue, step: str | int | Reference, reader: Reader) -> JsonValue:
    if type(step) is str:
        return value.get(step, MISSING) if type(value) is dict else MISSING
    if isinstance(step, Reference):
        index = resolve(step, reader)
        if type(index) is EngineError:
            return index
        if index is MISSING:
            return _not_there(step)
        if type(index) is not int:
            return EngineError(10010, f"an index takes an integer, not {type_word(index)}")
        step = index
    if type(value) is list and isinstance(step, int) and 0 <= step < len(value):
        return value[step]
    return MISSING


def _not_there(reference: Reference) -> EngineError:
    return EngineError(10001, f"{reference.text} is not there")


def read(reference: Reference, reader: Reader) -> JsonValue:
    """Returns what a reference names; nothing there is the error 10001."""
    value = resolve(reference, reader)
    return _not_there(reference) if value is MISSING else value


def _read_or_missing(reference: Reference, reader: Reader) -> JsonValue:
    value = resolve(reference, reader)
    # An index that is not there makes the whole reference not there; a wrong one stays an error.
    return MISSING if type(value) is EngineError and value.code == 10001 else value


def evaluate(program: Program, reader: Reader) -> JsonValue:
    """Runs a program and returns its value, or an `EngineError`."""
    if program.constant is not MISSING:
        return program.constant
    code = program.code
    stack: list[JsonValue] = []
    position, end = 0, len(code)
    while position < end:
        operation, argument = code[position]
        position += 1
        if operation == "ref":
            value = read(argument, reader)
        elif operation == "lit":
            value = argument
        elif operation == "binary":
            right = stack.pop()
            value = argument(stack.pop(), right)
        elif operation == "unary":
            value = argument(stack.pop())
        elif operation in ("jf", "jt"):
            value = truth(stack.pop())
            if type(value) is bool:
                if value is (operation == "jf"):
                    continue
                position += argument
        elif operation == "ref_or_missing":
            value = _read_or_missing(argument, reader)
        elif operation == "alt":
            value = stack.pop()
            if value is MISSING or value is None:
                continue
            position += argument
        elif operation == "defined":
            value = _read_or_missing(argument, reader)
            if type(value) is not EngineError:
                value = value is not MISSING
        elif operation == "fault":
            value = argument
        else:
            value = _gather(operation, argument, stack)
        if type(value) is EngineError:
            return value
        stack.append(value)
    if program.builds:
        problem = storable_problem(stack[-1])
        if problem is not None:
            return problem
    return stack[-1]


def _gather(operation: str, argument: Any, stack: list[JsonValue]) -> JsonValue:
    """Takes the operands of `arr`, `obj` or `cat` off the stack and joins them."""
    count = len(argument) if operation == "obj" else argument
    start = len(stack) - count
    values = stack[start:]
    del stack[start:]
    if operation == "arr":
        return values
    if operation == "obj":
        return dict(zip(argument, values, strict=True))
    return _join(values)


def _join(values: list[JsonValue]) -> str | EngineError:
    texts: list[str] = []
    for value in values:
        text = text_of(value)
        if isinstance(text, EngineError):
            return text
        texts.append(text)
    return joined_text(texts)


def _is_number(value: JsonValue) -> bool:
    return type(value) is int or type(value) is Decimal


def _same(left: JsonValue, right: JsonValue) -> bool:
    """Equality of scalars (S3.1); values of different types, and containers, are unequal."""
    if type(left) is type(right):
        return type(left) not in (dict, list) and bool(left == right)
    return _is_number(left) and _is_number(right) and bool(left == right)


def equal(left: JsonValue, right: JsonValue) -> bool | EngineError:
    """Returns `left == right`; an object or array compares with null only (10010)."""
    if left is not None and right is not None and (_is_container(left) or _is_container(right)):
        return _incomparable(left, right)
    return _same(left, right)


def _is_container(value: JsonValue) -> bool:
    return type(value) is dict or type(value) is list


def _incomparable(left: JsonValue, right: JsonValue) -> EngineError:
    return EngineError(10010, f"cannot compare {type_word(left)} with {type_word(right)}")


def _unequal(left: JsonValue, right: JsonValue) -> bool | EngineError:
    result = equal(left, right)
    return result if isinstance(result, EngineError) else not result


def _ordered(test: Callable[[Any, Any], bool]) -> Callable[[JsonValue, JsonValue], JsonValue]:
    def compare(left: JsonValue, right: JsonValue) -> JsonValue:
        if (_is_number(left) and _is_number(right)) or (type(left) is str and type(right) is str):
            return test(left, right)
        return _incomparable(left, right)

    return compare


def _contains(left: JsonValue, right: JsonValue) -> JsonValue:
    if _is_container(left):
        return EngineError(10010, f"in takes a scalar on the left, not {type_word(left)}")
    if type(right) is not list:
        return EngineError(10010, f"in takes an array on the right, not {type_word(right)}")
    return any(_same(left, element) for element in right)


def _arithmetic(sign: str, work: Callable[[int, int], int]) -> Callable[[Any, Any], JsonValue]:
    def compute(left: JsonValue, right: JsonValue) -> JsonValue:
        for operand in (left, right):
            if type(operand) is not int:
                return EngineError(10011, f"{sign} takes integers, not {type_word(operand)}")
        if _overflows(left) or _overflows(right):
            return EngineError(10011, f"integer overflow in {sign}")
        if right == 0 and sign in ("//", "%"):
            return EngineError(10011, "division by zero")
        result = work(left, right)
        return EngineError(10011, f"integer overflow in {sign}") if _overflows(result) else result

    return compute


def _overflows(value: int) -> bool:
    return not _INT64_MIN <= value <= _INT64_MAX


def _negate(value: JsonValue) -> JsonValue:
    if type(value) is not int:
        return EngineError(10011, f"- takes integers, not {type_word(value)}")
    if _overflows(value) or _overflows(-value):
        return EngineError(10011, "integer overflow in -")
    return -value


def _not(value: JsonValue) -> JsonValue:
    result = truth(value)
    return result if isinstance(result, EngineError) else not result


def _length(value: JsonValue) -> JsonValue:
    if type(value) in (str, list, dict):
        return len(value)
    return EngineError(10010, f"len takes a string, an array or an object, not {type_word(value)}")


_UNARY: Final[dict[str, Callable[[JsonValue], JsonValue]]] = {
    "not": _not,
    "bool": truth,
    "neg": _negate,
    "len": _length,
}
_BINARY: Final[dict[str, Callable[[JsonValue, JsonValue], JsonValue]]] = {
    "eq": equal,
    "ne": _unequal,
    "lt": _ordered(lambda left, right: left < right),
    "le": _ordered(lambda left, right: left <= right),
    "gt": _ordered(lambda left, right: left > right),
    "ge": _ordered(lambda left, right: left >= right),
    "in": _contains,
    "add": _arithmetic("+", lambda left, right: left + right),
    "sub": _arithmetic("-", lambda left, right: left - right),
    "mul": _arithmetic("*", lambda left, right: left * right),
    "div": _arithmetic("//", lambda left, right: left // right),
    "mod": _arithmetic("%", lambda left, right: left % right),
}

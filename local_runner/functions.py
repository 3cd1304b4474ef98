"""Programs as nested functions, for those that are evaluated again and again.

    ["var", "n", …], ["lit", 1], ["add"]   becomes   add(variable n, literal 1)

Flow: the operations are run once over a stack of functions in place of values; what a jump passes
over becomes a function of its own. Each function takes the reader and returns a value, MISSING or
an `EngineError`, which ends the one that has called it. A program nested deeper than `_DEEPEST`
is left to the loop of `expressions.py`, as functions call each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from local_runner.operators import join
from local_runner.references import Reader, Reference, read, read_or_missing
from local_runner.values import MISSING, EngineError, JsonValue, storable_problem, truth

Code = tuple[tuple[str, Any], ...]
Run = Callable[[Reader], JsonValue]

_DEEPEST: Final = 20


def function_of(code: Code, *, checks_size: bool) -> Run | None:
    """Returns the function of a program; None for one that only the loop can run.

    Args:
      checks_size: the program builds an array or object, which must be one that can be stored.
    """
    part = _part(code, _DEEPEST)
    if part is None:
        return None
    run = part[0]
    return _checked(run) if checks_size else run


# A function, and how many others are nested in it.
_Part = tuple[Run, int]


def _part(code: Sequence[tuple[str, Any]], deepest: int) -> _Part | None:
    """Returns the function of operations that leave one value and take none from before them."""
    stack: list[_Part] = []
    position = 0
    if deepest < 0:
        return None
    while position < len(code):
        operation, argument = code[position]
        position += 1
        if operation in _JUMPS:
            skipped = _part(code[position : position + argument], deepest - 1)
            if not stack or skipped is None or position + argument > len(code):
                return None
            position += argument
            taken = [stack.pop(), skipped]
            run = _JUMPS[operation](taken[0][0], taken[1][0])
        else:
            count = _operand_count(operation, argument)
            if count > len(stack):
                return None
            start = len(stack) - count
            taken = stack[start:]
            del stack[start:]
            run = _MAKERS[operation](argument, *(part[0] for part in taken))
        depth = 1 + max((part[1] for part in taken), default=0)
        if depth > deepest:
            return None
        stack.append((run, depth))
    return stack[0] if len(stack) == 1 else None


def _operand_count(operation: str, argument: Any) -> int:
    if operation in ("arr", "cat"):
        return int(argument)
    if operation == "obj":
        return len(argument)
    return {"unary": 1, "binary": 2}.get(operation, 0)


def _checked(run: Run) -> Run:
    def checked(reader: Reader) -> JsonValue:
        value = run(reader)
        if type(value) is EngineError:
            return value
        problem = storable_problem(value)
        return value if problem is None else problem

    return checked


def _reference(reference: Reference) -> Run:
    if reference.kind != "var" or reference.steps or reference.unset_is_null:
        return lambda reader: read(reference, reader)
    owner, name = reference.owner, reference.name

    def variable(reader: Reader) -> JsonValue:
        value = reader.variable(owner, name)
        return read(reference, reader) if value is MISSING else value

    return variable


def _defined(reference: Reference) -> Run:
    def defined(reader: Reader) -> JsonValue:
        value = read_or_missing(reference, reader)
        return value if type(value) is EngineError else value is not MISSING

    return defined


def _unary(operator: Callable[[JsonValue], JsonValue], operand: Run) -> Run:
    def unary(reader: Reader) -> JsonValue:
        value = operand(reader)
        return value if type(value) is EngineError else operator(value)

    return unary


def _binary(operator: Callable[[JsonValue, JsonValue], JsonValue], left: Run, right: Run) -> Run:
    def binary(reader: Reader) -> JsonValue:
        first = left(reader)
        if type(first) is EngineError:
            return first
        second = right(reader)
        return second if type(second) is EngineError else operator(first, second)

    return binary


def _array(_count: int, *parts: Run) -> Run:
    def array(reader: Reader) -> JsonValue:
        values: list[JsonValue] = []
        for part in parts:
            value = part(reader)
            if type(value) is EngineError:
                return value
            values.append(value)
        return values

    return array


def _object(keys: Sequence[str], *parts: Run) -> Run:
    entries = tuple(zip(keys, parts, strict=True))

    def build(reader: Reader) -> JsonValue:
        values: dict[str, JsonValue] = {}
        for key, part in entries:
            value = part(reader)
            if type(value) is EngineError:
                return value
            values[key] = value
        return values

    return build


def _text(count: int, *parts: Run) -> Run:
    values_of = _array(count, *parts)

    def text(reader: Reader) -> JsonValue:
        values = values_of(reader)
        return values if type(values) is EngineError else join(values)

    return text


def _and(left: Run, right: Run) -> Run:
    def both(reader: Reader) -> JsonValue:
        holds = _truth(left(reader))
        return right(reader) if holds is True else holds

    return both


def _or(left: Run, right: Run) -> Run:
    def either(reader: Reader) -> JsonValue:
        holds = _truth(left(reader))
        return right(reader) if holds is False else holds

    return either


def _truth(value: JsonValue) -> bool | EngineError:
    return value if type(value) is EngineError else truth(value)


def _alternative(left: Run, right: Run) -> Run:
    def alternative(reader: Reader) -> JsonValue:
        value = left(reader)
        return right(reader) if value is MISSING or value is None else value

    return alternative


_MAKERS: Final[dict[str, Callable[..., Run]]] = {
    "ref": _reference,
    "ref_or_missing": lambda reference: lambda reader: read_or_missing(reference, reader),
    "lit": lambda value: lambda _reader: value,
    "fault": lambda error: lambda _reader: error,
    "defined": _defined,
    "unary": _unary,
    "binary": _binary,
    "arr": _array,
    "obj": _object,
    "cat": _text,
}
_JUMPS: Final[dict[str, Callable[[Run, Run], Run]]] = {"jf": _and, "jt": _or, "alt": _alternative}

"""The operators of programs (semantics §3): what each gives for its operands.

An error is a value: an operator returns an `EngineError` instead of raising. `UNARY` and `BINARY`
are the tables by the name of the instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from local_runner.values import EngineError, JsonValue, joined_text, text_of, truth, type_word

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def join(values: list[JsonValue]) -> str | EngineError:
    """Returns the text that the pieces of a template string give together (S3.8)."""
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


UNARY: Final[dict[str, Callable[[JsonValue], JsonValue]]] = {
    "not": _not,
    "bool": truth,
    "neg": _negate,
    "len": _length,
}
BINARY: Final[dict[str, Callable[[JsonValue, JsonValue], JsonValue]]] = {
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

"""Attributes of statements as values: what `timeout 30s` or `retry 3 on lease` says.

The grammar settles their shape, `checks/attributes.py` reports what makes no sense, the lowering
writes what is left. Both read them here, so that they cannot read them differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from compiler.expressions import NOT_LITERAL, literal_value
from dsl.nodes import Attribute, Duration, Expr, LiteralExpr, Name
from dsl.quick_class import dataclass

DEFAULT_BACKOFF_MS = 1_000
DEFAULT_FACTOR_HUNDREDTHS = 100
DEFAULT_MAX_MS = 3_600_000
ENGINE_TIMEOUT = 10013
"""The one engine code that a retry may name: that of an attempt's own time-out."""

_COMMENT = re.compile(r"#[^\n]*")
_CLAUSES = ("backoff", "factor", "max", "jitter", "on")

Attributes = tuple[Attribute, ...]


def find(attributes: Attributes, name: str) -> Attribute | None:
    return next((found for found in attributes if found.name.text == name), None)


def has(attributes: Attributes, name: str) -> bool:
    """Whether a flag such as `keep_going` is set; `idempotent false` sets none."""
    found = find(attributes, name)
    return found is not None and flag_value(found)


def flag_value(attribute: Attribute) -> bool:
    value = attribute.values[0] if attribute.values else None
    return not (isinstance(value, LiteralExpr) and value.value is False)


def literal_integer(value: Duration | Expr | Name | None) -> int | None:
    """Returns the integer that is written out there, if one is."""
    if value is None or isinstance(value, Duration | Name):
        return None
    number = literal_value(value)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def integer(attributes: Attributes, name: str) -> int | None:
    found = find(attributes, name)
    return literal_integer(found.values[0]) if found is not None and found.values else None


def milliseconds(attributes: Attributes, name: str) -> int | None:
    found = find(attributes, name)
    value = found.values[0] if found is not None and found.values else None
    return value.milliseconds if isinstance(value, Duration) else None


def join_count(attributes: Attributes) -> int | None:
    """Returns how many branches must succeed, None when all must."""
    found = find(attributes, "join")
    if found is None:
        return None
    value = found.values[0]
    if isinstance(value, Name):
        return 1 if value.text == "any" else None
    return literal_integer(value)


def tolerance(attributes: Attributes) -> dict[str, int] | None:
    """Returns `{"count": n}` or `{"percent": p}`."""
    found = find(attributes, "tolerate")
    number = None if found is None else literal_integer(found.values[0])
    if found is None or number is None:
        return None
    return {"percent" if is_percent(found) else "count": number}


def is_percent(attribute: Attribute) -> bool:
    return len(attribute.values) > 1


def dispatch(attributes: Attributes, columns: Iterable[str]) -> dict[str, Any] | None:
    """Returns the catalog's dispatch columns that an action overrides."""
    wanted = frozenset(columns)
    found: dict[str, Any] = {}
    for attribute in attributes:
        name = attribute.name.text
        if name in wanted:
            value = attribute.values[0] if attribute.values else None
            literal = True if value is None else NOT_LITERAL
            if value is not None and not isinstance(value, Duration | Name):
                literal = literal_value(value)
            found[name] = literal
    return found or None


# --- retry -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The parts of a `retry` as written; `repeated` are clauses given a second time."""

    limit: Expr
    backoff: Duration | None
    factor: LiteralExpr | None
    max: Duration | None
    jitter: bool
    on: tuple[Name | Expr, ...]
    repeated: tuple[Name, ...]


def read_retry(attribute: Attribute, text: str) -> Retry:
    """Takes a `retry` apart. `text` is the file's: a comma in it tells a code from a clause."""
    values = attribute.values
    found: dict[str, Any] = {}
    repeated = []
    position = 1
    while position < len(values):
        clause = values[position]
        assert isinstance(clause, Name)
        position += 1
        if clause.text in found:
            repeated.append(clause)
        if clause.text == "on":
            end = _end_of_codes(values, position, text)
            found.setdefault("on", values[position:end])
        else:
            end = position if clause.text == "jitter" else position + 1
            found.setdefault(clause.text, values[position] if end > position else True)
        position = end
    return Retry(
        limit=values[0],  # type: ignore[arg-type]
        backoff=found.get("backoff"),
        factor=found.get("factor"),
        max=found.get("max"),
        jitter="jitter" in found,
        on=found.get("on", ()),
        repeated=tuple(repeated),
    )


def _end_of_codes(values: tuple[Duration | Expr | Name, ...], first: int, text: str) -> int:
    end = first + 1
    while end < len(values):
        between = text[values[end - 1].span.end : values[end].span.start]
        if "," not in _COMMENT.sub("", between):
            break
        end += 1
    return end


def factor_hundredths(factor: int | Decimal) -> int | None:
    """Returns a factor in hundredths; None when it has more than two places, or is out of range."""
    hundredths = Decimal(factor) * 100
    if hundredths != hundredths.to_integral_value() or not 100 <= hundredths <= 10_000:
        return None
    return int(hundredths)


def retry_value(
    limit: int,
    backoff_ms: int | None = None,
    factor: int | Decimal | None = None,
    max_ms: int | None = None,
    jitter: bool = False,
    on: Iterable[str | int] = (),
) -> dict[str, Any] | None:
    """Returns a retry as the GraphSpec writes it, None for one that never tries again."""
    if limit < 1:
        return None
    hundredths = DEFAULT_FACTOR_HUNDREDTHS if factor is None else factor_hundredths(factor)
    return {
        "limit": limit,
        "backoff_ms": DEFAULT_BACKOFF_MS if backoff_ms is None else backoff_ms,
        "factor_hundredths": hundredths,
        "max_ms": DEFAULT_MAX_MS if max_ms is None else max_ms,
        "jitter": jitter,
        "on": list(on) or ["any"],
    }

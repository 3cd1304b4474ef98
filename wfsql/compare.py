"""Compares trace documents, which are equal when two engines did the same.

`differences` walks two JSON values side by side and names every place where they differ, numbers
compared by their normal form as text (R6: `1` and `1.0` differ).
"""

from __future__ import annotations

from typing import Any

from compiler import json_values

_ABSENT = object()


def differences(left: Any, right: Any) -> list[tuple[str, str, str]]:
    """Returns (place, left, right) for every difference, in document order."""
    found: list[tuple[str, str, str]] = []
    pending: list[tuple[str, Any, Any]] = [("", left, right)]
    while pending:
        place, a, b = pending.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            keys = list(dict.fromkeys([*a, *b]))
            below = [(f"{place}.{k}", a.get(k, _ABSENT), b.get(k, _ABSENT)) for k in keys]
            pending.extend(reversed(below))
        elif isinstance(a, list) and isinstance(b, list):
            pending.extend(reversed(_items(place, a, b)))
        elif _text(a) != _text(b):
            found.append((place.removeprefix("."), _text(a), _text(b)))
    return found


def _items(place: str, a: list[Any], b: list[Any]) -> list[tuple[str, Any, Any]]:
    """Pairs list items; the nodes of a trace are paired by path, so that a surplus one is one
    difference and not many."""
    rows = [*a, *b]
    if rows and all(isinstance(row, dict) and "path" in row for row in rows):
        left, right = ({row["path"]: row for row in side} for side in (a, b))
        paths = list(dict.fromkeys([*left, *right]))
        pairs = [(f"{place}[{p}]", left.get(p, _ABSENT), right.get(p, _ABSENT)) for p in paths]
        if list(left) != list(right) and set(left) == set(right):
            pairs.append((f"{place}: order of paths", list(left), list(right)))
        return pairs
    size = max(len(a), len(b))
    padded = [side + [_ABSENT] * (size - len(side)) for side in (a, b)]
    return [(f"{place}[{i}]", padded[0][i], padded[1][i]) for i in range(size)]


def _text(value: Any) -> str:
    return "(absent)" if value is _ABSENT else json_values.dumps(value)

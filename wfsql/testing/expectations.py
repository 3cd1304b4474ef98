"""Compares what a case has left with what it expects.

Values are equal when their normal forms are (R6): `1` and `1.0` differ. Inputs and outputs are
compared whole; of variables, statuses, attempts and errors only what is named.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compiler import json_values
from dsl.source import Span
from wfsql.compare import differences
from wfsql.testing.cases import Expectations, Expected, PlacedExpectation
from wfsql.testing.driver import Played
from wfsql.testing.engines import NotStarted, Remains
from wfsql.testing.graph_index import GraphIndex, find_rows

_INSTANCE_PATHS = {"error", "output", "status"}


@dataclass(frozen=True, slots=True)
class Failure:
    """One expectation that was not met: which, and the lines that show it."""

    what: str
    span: Span
    lines: tuple[str, ...]


def unmet(expect: Expectations, played: Played, index: GraphIndex) -> list[Failure]:
    """Returns every expectation that was not met, in the order of the file."""
    if played.remains is None:
        assert played.not_started is not None
        found = list(_of_no_instance(expect, played.not_started))
    else:
        found = [
            *_of_instance(expect, played.remains),
            *_visits(expect, played, index),
            *_of_nodes(expect, played.remains, index),
        ]
    return sorted(found, key=lambda failure: failure.span.start)


def _of_no_instance(expect: Expectations, left: NotStarted) -> Iterator[Failure]:
    error = {"code": None, "engine_code": left.code, "message": left.message}
    if expect.status is not None and expect.status.value != left.status:
        lines = (*_lines(expect.status.value, left.status), left.message)
        yield Failure("status", expect.status.span, lines)
    if expect.error is not None:
        yield from _error("error", expect.error, error)
    for entry in (expect.output, expect.visited):
        if entry is not None and entry.value not in (None, []):
            yield Failure("output", entry.span, ("the instance did not start",))
    groups = (expect.inputs, expect.attempts, expect.statuses, expect.result_codes, expect.errors)
    for group in (*groups, expect.vars):
        for place in group:
            yield Failure(place.place, place.span, ("the instance did not start",))


def _of_instance(expect: Expectations, left: Remains) -> Iterator[Failure]:
    trace = left.trace
    if expect.status is not None and expect.status.value != trace["status"]:
        lines = [*_lines(expect.status.value, trace["status"])]
        if trace["error"] is not None:
            lines.append(f"error: {json_values.dumps(trace['error'])}")
        yield Failure("status", expect.status.span, tuple(lines))
    if expect.error is not None:
        yield from _error("error", expect.error, trace["error"])
    if expect.output is not None:
        yield from _value("output", expect.output.span, expect.output.value, trace["output"])
    for entry in expect.vars:
        if entry.place in trace["variables"]:
            actual = trace["variables"][entry.place]
            yield from _value(f"vars.{entry.place}", entry.span, entry.value, actual)
        else:
            yield Failure(f"vars.{entry.place}", entry.span, ("it has no value",))


def _error(what: str, expected: Expected, actual: dict[str, Any] | None) -> Iterator[Failure]:
    wanted = expected.value
    if wanted is None or actual is None:
        yield from _value(what, expected.span, wanted, actual)
        return
    shown = {key: actual.get(key) for key in wanted}
    if "code" in wanted and "engine_code" not in wanted and actual.get("code") is None:
        shown["code"] = actual.get("engine_code")  # whichever is there (R32)
    if json_values.dumps(shown) != json_values.dumps(wanted):
        lines = (*_lines(wanted, shown), f"whole error: {json_values.dumps(actual)}")
        yield Failure(what, expected.span, lines)


def _visits(expect: Expectations, played: Played, index: GraphIndex) -> Iterator[Failure]:
    if expect.visited is not None and list(played.visited) != expect.visited.value:
        lines = _lines(expect.visited.value, list(played.visited))
        yield Failure("visited", expect.visited.span, lines)
    assert played.remains is not None
    activated = {execution.node_key for execution in played.remains.executions}
    for entry in expect.not_visited:
        place = index.place(entry.place)
        if place is None:
            continue
        if place.path is not None:
            was_there = bool(find_rows(played.remains.trace["nodes"], place, index.root))
        elif index.types[place.node] in ("ACTION", "WAIT_EVENT"):
            was_there = place.node in played.visited
        else:
            was_there = place.node in activated
        if was_there:
            yield Failure("not_visited", entry.span, (f"{entry.place} was visited",))


def _of_nodes(expect: Expectations, left: Remains, index: GraphIndex) -> Iterator[Failure]:
    for entry in expect.inputs:
        yield from _inputs(entry, left, index)
    for name, group in (
        ("attempts", expect.attempts),
        ("status", expect.statuses),
        ("result_code", expect.result_codes),
    ):
        for entry in group:
            yield from _column(name, entry, left, index)
    for entry in expect.errors:
        row = _single_row(entry, left, index)
        if isinstance(row, Failure):
            yield row
        else:
            expected = Expected(entry.value, entry.span)
            yield from _error(f"errors.{entry.place}", expected, row["error"])


def _rows(entry: PlacedExpectation, left: Remains, index: GraphIndex) -> list[dict[str, Any]]:
    place = index.place(entry.place)
    return [] if place is None else find_rows(left.trace["nodes"], place, index.root)


def _inputs(entry: PlacedExpectation, left: Remains, index: GraphIndex) -> Iterator[Failure]:
    what = f"inputs.{entry.place}"
    if not isinstance(entry.value, list):
        row = _single_row(entry, left, index)
        if isinstance(row, Failure):
            yield row
        else:
            yield from _value(what, entry.span, entry.value, row["input"])
        return
    actual = [row["input"] for row in _rows(entry, left, index)]
    yield from _value(what, entry.span, entry.value, actual)


def _single_row(
    entry: PlacedExpectation, left: Remains, index: GraphIndex
) -> dict[str, Any] | Failure:
    rows = _rows(entry, left, index)
    if len(rows) == 1:
        return rows[0]
    if not rows:
        return Failure(entry.place, entry.span, ("nothing was activated there",))
    paths = ", ".join(row["path"] for row in rows[:4])
    return Failure(entry.place, entry.span, (f"it stands for several; say which: {paths}",))


def _column(
    name: str, entry: PlacedExpectation, left: Remains, index: GraphIndex
) -> Iterator[Failure]:
    """Compares one column of the rows at a place; all of them have to fit."""
    rows = _rows(entry, left, index)
    if not rows:
        yield Failure(entry.place, entry.span, ("nothing was activated there",))
    for row in rows:
        if row[name] != entry.value or isinstance(row[name], bool):
            what = f"{name} of {row['path']}"
            yield Failure(what, entry.span, _lines(entry.value, row[name]))


def _value(what: str, span: Span, expected: Any, actual: Any) -> Iterator[Failure]:
    if differences(expected, actual):
        yield Failure(what, span, _lines(expected, actual))


def _lines(expected: Any, actual: Any) -> tuple[str, ...]:
    """Both values as lines of a diff: `-` was expected, `+` is there, blank is in both."""
    wanted, found = (
        json_values.dumps(value, indent=2, sort_keys=True).splitlines()
        for value in (expected, actual)
    )
    lines = difflib.ndiff(wanted, found)
    return tuple(line.rstrip() for line in lines if not line.startswith("?"))

"""Finds what in a case does not fit its workflow, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from compiler.suggest import did_you_mean
from wfsql.testing import codes
from wfsql.testing.cases import Case, PlacedExpectation, SendEvent
from wfsql.testing.driver import Problem
from wfsql.testing.graph_index import GraphIndex

_VISITED_TYPES = ("ACTION", "WAIT_EVENT")


def find_misfits(case: Case, index: GraphIndex) -> list[Problem]:
    """Returns every name of a case that the workflow does not know, in file order."""
    found = [*_scripts(case, index), *_events(case, index), *_expectations(case, index)]
    for run in case.before:
        found += [*_scripts(run, index), *_events(run, index)]
    return sorted(found, key=lambda problem: problem.span.start)


def _scripts(case: Case, index: GraphIndex) -> Iterator[Problem]:
    for script in case.scripts:
        place = index.place(script.place)
        if place is None:
            hint = did_you_mean(script.place, index.action_keys)
            yield Problem(
                codes.UNKNOWN_NODE, script.span, f'there is no action "{script.place}"', hint
            )
        elif index.types[place.node] != "ACTION":
            kind = index.types[place.node]
            yield Problem(
                codes.WRONG_NODE, script.span, f'"{script.place}" is a {kind}, not an ACTION'
            )


def _events(case: Case, index: GraphIndex) -> Iterator[Problem]:
    for step in case.steps:
        if not isinstance(step, SendEvent):
            continue
        for key, wanted in ((step.when, ("WAIT_EVENT",)), (step.after, ("ACTION",))):
            if key is None:
                continue
            if key not in index.types:
                known = [k for k, type_ in index.types.items() if type_ in wanted]
                message = f'there is no {wanted[0]} "{key}"'
                yield Problem(codes.UNKNOWN_NODE, step.span, message, did_you_mean(key, known))
            elif index.types[key] not in wanted:
                message = f'"{key}" is a {index.types[key]}, not a {wanted[0]}'
                yield Problem(codes.WRONG_NODE, step.span, message)


def _expectations(case: Case, index: GraphIndex) -> Iterator[Problem]:
    expect = case.expect
    groups = (expect.inputs, expect.attempts, expect.statuses, expect.result_codes, expect.errors)
    for group in (*groups, expect.not_visited):
        yield from _unknown_places(group, index)
    for entry in expect.inputs:
        place = index.place(entry.place)
        if place is not None and index.types[place.node] != "ACTION":
            kind = index.types[place.node]
            message = f'"{entry.place}" is a {kind} and has no input'
            yield Problem(codes.WRONG_NODE, entry.span, message)
    for entry in expect.vars:
        if entry.place not in index.variables:
            message = f'the workflow has no variable "{entry.place}" of its own'
            hint = did_you_mean(entry.place, sorted(index.variables))
            yield Problem(codes.UNKNOWN_VARIABLE, entry.span, message, hint)
    if expect.visited is not None:
        yield from _unknown_visits(case, index)


def _unknown_places(entries: tuple[PlacedExpectation, ...], index: GraphIndex) -> Iterator[Problem]:
    for entry in entries:
        if index.place(entry.place) is None:
            hint = did_you_mean(entry.place, index.known_paths())
            message = f'there is no node "{entry.place}"'
            yield Problem(codes.UNKNOWN_NODE, entry.span, message, hint)


def _unknown_visits(case: Case, index: GraphIndex) -> Iterator[Problem]:
    visited = case.expect.visited
    assert visited is not None
    for key in visited.value:
        if index.types.get(key) not in _VISITED_TYPES:
            known = [k for k, type_ in index.types.items() if type_ in _VISITED_TYPES]
            message = f'there is no ACTION or WAIT_EVENT "{key}"'
            yield Problem(codes.UNKNOWN_NODE, visited.span, message, did_you_mean(key, known))

"""Attributes of nodes and subscriptions are sound: types, ranges, and what goes together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from typing import Any

from compiler.spec import Dispatch, NodeRow, SubscriptionRow
from compiler.verify_programs import check_program

LEAST = {
    "limit": 1,
    "join": 1,
    "max": 1,
    "keep": 1,
    "batch": 1,
    "parallel": 0,
    "lease_ms": 1,
    "timeout_ms": 1,
    "delay_ms": 0,
    "sleep_ms": 0,
}
FLAGS = ("keep_going",)
RETRY_LEAST = {"limit": 1, "backoff_ms": 0, "factor_hundredths": 100, "max_ms": 0}
ENGINE_TIMEOUT = 10013
MAX_FACTOR = 10_000
_SHA256 = re.compile("[0-9a-f]{64}")
_COLUMNS = frozenset(Dispatch.model_fields) | {"idempotent"}
_COUNTS = frozenset({"max_per_worker", "max_concurrent", "rate_per_minute", "max_deliveries"})
_FLAGS = _COLUMNS - _COUNTS - {"affinity_key_field"}


def is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def attribute_problems(node: NodeRow, edges: Sequence[str]) -> Iterator[str]:
    """Yields what is wrong with a node's attributes; `edges` are the kinds of its edges."""
    given = node.attributes
    for name, lowest in LEAST.items():
        value = given.get(name, lowest)
        if not is_integer(value) or value < lowest:
            yield f"{name} must be an integer of at least {lowest}"
    for name in FLAGS:
        if given.get(name, True) is not True:
            yield f"{name} is true or left out"
    if "retry" in given:
        yield from _retry_problems(given["retry"])
    if "tolerate" in given:
        yield from _tolerate_problems(given["tolerate"])
    if "dispatch" in given:
        yield from _dispatch_problems(given["dispatch"])
    if "reuse" in given:
        yield from _reuse_problems(given["reuse"])
    yield from _together(given, edges)


def _together(given: dict[str, Any], edges: Sequence[str]) -> Iterator[str]:
    if ("fail" in given or "sleep_ms" in given) and edges:
        yield "a SEQUENCE that fails or sleeps has no children"
    if "fail" in given and "sleep_ms" in given:
        yield "a SEQUENCE fails or sleeps, not both"
    branches = edges.count("PARALLEL")
    if is_integer(given.get("join")) and given["join"] > branches:
        yield f"join {given['join']} is more than its {branches} branches"
    if "TIMEOUT" in edges and "timeout_ms" not in given:
        yield "a TIMEOUT edge needs timeout_ms"


def _retry_problems(retry: Any) -> Iterator[str]:
    if not isinstance(retry, dict) or set(retry) != {*RETRY_LEAST, "jitter", "on"}:
        yield "retry has limit, backoff_ms, factor_hundredths, max_ms, jitter and on"
        return
    for name, lowest in RETRY_LEAST.items():
        if not is_integer(retry[name]) or retry[name] < lowest:
            yield f"{name} of retry must be an integer of at least {lowest}"
    if is_integer(retry["factor_hundredths"]) and retry["factor_hundredths"] > MAX_FACTOR:
        yield f"factor_hundredths of retry must be at most {MAX_FACTOR}"
    if not isinstance(retry["jitter"], bool):
        yield "jitter of retry must be true or false"
    codes = retry["on"]
    if not isinstance(codes, list) or not codes or not all(map(_is_retry_code, codes)):
        yield f"on of retry lists any, lease, negative codes or {ENGINE_TIMEOUT}"


def _is_retry_code(code: object) -> bool:
    if isinstance(code, str):
        return code in ("any", "lease")
    return (
        isinstance(code, int)
        and not isinstance(code, bool)
        and (code < 0 or code == ENGINE_TIMEOUT)
    )


def _tolerate_problems(tolerate: Any) -> Iterator[str]:
    known = isinstance(tolerate, dict) and set(tolerate) in ({"count"}, {"percent"})
    if not known:
        yield "tolerate has count or percent"
        return
    (number,) = tolerate.values()
    if not is_integer(number) or number < 0 or ("percent" in tolerate and number > 100):
        yield "tolerate takes an integer from 0, and at most 100 percent"


def _dispatch_problems(dispatch: Any) -> Iterator[str]:
    if not isinstance(dispatch, dict) or not dispatch:
        yield "dispatch is an object with at least one column"
        return
    for name, value in dispatch.items():
        if name not in _COLUMNS:
            yield f"dispatch has no column {name}"
        elif name in _COUNTS and (not is_integer(value) or value < 1):
            yield f"{name} of dispatch must be an integer of at least 1"
        elif name == "affinity_key_field" and not (isinstance(value, str) and value):
            yield f"{name} of dispatch must be the name of a field"
        elif name in _FLAGS and not isinstance(value, bool):
            yield f"{name} of dispatch must be true or false"


def _reuse_problems(reuse: Any) -> Iterator[str]:
    if not isinstance(reuse, dict) or set(reuse) != {"fingerprint", "reads"}:
        yield "reuse has fingerprint and reads"
        return
    fingerprint, reads = reuse["fingerprint"], reuse["reads"]
    if not isinstance(fingerprint, str) or not _SHA256.fullmatch(fingerprint):
        yield "the fingerprint of reuse has 64 hex digits in lower case"
    if not isinstance(reads, list):
        yield "reads of reuse lists references"
        return
    for place, read in enumerate(reads):
        if not isinstance(read, list) or read[:1] not in (["var"], ["ctx"]):
            yield f"read {place} of reuse is no var or ctx reference"
            continue
        for problem in check_program([read])[0]:
            yield f"read {place} of reuse: {problem}"


def subscription_problems(
    row: SubscriptionRow, inputs: Collection[str]
) -> tuple[list[str], list[tuple[str, Any]]]:
    """Returns what is wrong with a subscription, and the programs of its inputs by name."""
    problems = []
    for term in row.filter:
        path = term.get("path")
        is_path = isinstance(path, list) and path and all(isinstance(step, str) for step in path)
        if set(term) != {"path", "value"} or not is_path:
            problems.append("a filter has a path of keys and a value")
        elif not isinstance(term["value"], str | int | Decimal | bool | None):
            problems.append("the value of a filter must be a scalar")
    programs = []
    for given in row.inputs:
        if set(given) != {"name", "program"} or not isinstance(given["name"], str):
            problems.append("an input has a name and a program")
            continue
        if given["name"] not in inputs:
            problems.append(f"there is no input {given['name']}")
        programs.append((given["name"], given["program"]))
    names = [name for name, _program in programs]
    if len(set(names)) != len(names):
        problems.append("an input stands twice")
    return problems, programs

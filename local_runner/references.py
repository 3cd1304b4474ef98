"""References: what `var.n.items[0]` or `ctx.task.a.output` names, seen from one execution.

A `var`, `ctx`, `out`, `code` or `event` instruction becomes a `Reference` once, and is looked up
through a `Reader` as often as it is read. What is not there is `MISSING`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from compiler import json_values
from local_runner.values import MISSING, EngineError, JsonValue, type_word

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

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


def render_step(step: str | int | Reference) -> str:
    """Returns a step as an author writes it: `.name`, `[3]`, `["odd key"]`, `[var.i]`."""
    if isinstance(step, Reference):
        return f"[{step.text}]"
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_KEY.fullmatch(step) else f"[{json_values.dumps(step)}]"


NO_NAMES: Final[frozenset[tuple[str, str]]] = frozenset()


def compile_reference(
    instruction: Sequence[Any], unset_is_null: frozenset[tuple[str, str]] = NO_NAMES
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


def read_or_missing(reference: Reference, reader: Reader) -> JsonValue:
    value = resolve(reference, reader)
    # An index that is not there makes the whole reference not there; a wrong one stays an error.
    return MISSING if type(value) is EngineError and value.code == 10001 else value

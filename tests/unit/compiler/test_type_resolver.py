"""Resolving aliases: each once, and the same as if it were written out at every use."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from compiler.pipeline import compile_text
from compiler.type_model import TypeResolver


def calls_of_resolve(text: str) -> int:
    """Compiles a text and counts the type expressions that were resolved for it."""
    wanted = TypeResolver._resolve.__code__
    count = 0

    def watch(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is wanted

    sys.setprofile(watch)
    try:
        compile_text(text, "w.wf")
    finally:
        sys.setprofile(None)
    return count


def wide(fields: int, users: int) -> str:
    big = ", ".join(f"f{number} : int" for number in range(fields))
    uses = "".join(f"type B{number} = {{ a : Big }}\n" for number in range(users))
    return (
        f"type Big = {{ {big} }}\n{uses}workflow w {{ input {{ x : B1 }} output {{ y = var.x }} }}"
    )


def test_an_alias_that_many_use_is_resolved_once() -> None:
    assert calls_of_resolve(wide(200, 100)) < 200 + 10 * 100


def test_a_misfit_within_an_alias_is_found_at_its_place() -> None:
    text = "type A = { x : nope }\ntype B = { y : A }\nworkflow w { input { b : B } }"
    result = compile_text(text, "w.wf")
    (found,) = [d for d in result.diagnostics if d.severity == "error"]
    assert (found.code, text[found.span.start : found.span.end]) == ("WF210", "nope")


def test_the_levels_below_an_alias_count_where_it_is_used() -> None:
    def errors(levels: int) -> list[str]:
        chain = "".join(f"type T{n} = {{ a : T{n - 1} }}\n" for n in range(1, levels))
        text = f"type T0 = int\n{chain}workflow w {{ input {{ x : T{levels - 1} }} }}"
        return [d.code for d in compile_text(text, "w.wf").diagnostics if d.severity == "error"]

    # An alias is a level, and so is its field.
    assert errors(32) == []
    assert errors(33) == ["WF214"]

"""Checks take steps by the size of a text, not by its square: counted, for seconds differ."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from compiler.pipeline import check_text
from dsl.machine import Machine

_W = "workflow w {\n"


def calls(text: str) -> int:
    """Returns how many functions are called, Python's own included, to check a text."""
    count = 0

    def watch(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(watch)
    try:
        check_text(text, "w.wf")
    finally:
        sys.setprofile(None)
    return count


def wide(count: int) -> str:
    return "{ " + ", ".join(f"f{k} : int" for k in range(count)) + " }"


SHAPES: dict[str, Callable[[int], str]] = {
    "comparisons and-ed": lambda n: (
        f"{_W}var y : int = 0\nset x = {' and '.join(['var.y == 1'] * n)}\n}}\n"
    ),
    "one argument again and again": lambda n: f"{_W}action a = t.do({'x: 1, ' * n}y: 1)\n}}\n",
    "users of a wide type with a fault": lambda n: (
        f"type Big = {{ a : {wide(n)}, b : nope }}\n"
        + "".join(f"type B{k} = {{ a : Big }}\n" for k in range(n))
        + f"{_W}}}\n"
    ),
    "users of a wide circle": lambda n: (
        f"type Big = {{ a : {wide(n)}, b : Big }}\n"
        + "".join(f"type B{k} = {{ a : Big }}\n" for k in range(n))
        + f"{_W}}}\n"
    ),
    "types that nobody knows": lambda n: (
        "".join(f"type T{k} = {{ a : U{k}_x }}\n" for k in range(6 * n)) + f"{_W}}}\n"
    ),
    "workflows beside types": lambda n: (
        "".join(f"type T{k} = {{ a : int }}\n" for k in range(n))
        + "".join(f"workflow w{k} {{ }}\n" for k in range(n))
    ),
    "workflows with types of their own": lambda n: (
        "".join(f"type T{k} = {{ a : int }}\n" for k in range(n))
        + "".join(f"workflow w{k} {{ type A = T{k} }}\n" for k in range(n))
    ),
    "unknown types of workflows' own": lambda n: (
        "".join(f"type T{k} = {{ a : int }}\n" for k in range(6 * n))
        + "".join(f"workflow w{k} {{ type A{k} = U{k}_x }}\n" for k in range(n))
    ),
    "a type of workflows' own that all types of the file use": lambda n: (
        "".join(f"type T{k} = {{ a : A }}\n" for k in range(6 * n))
        + "".join(f"workflow w{k} {{ type A = int }}\n" for k in range(n))
    ),
    "loops over much that is known": lambda n: (
        f"{_W}input {{ {', '.join(f'o{k} : int?' for k in range(2 * n))} }}\n"
        + "".join(f'if var.o{k} == null {{ fail -1 "x" }}\n' for k in range(2 * n))
        + "while var.o1 < 3 max 5 { set z = 1 }\n" * 2 * n
        + "}\n"
    ),
    "references to a wide type": lambda n: (
        f"{_W}input {{ x : {wide(n)} }}\nvar l : any = [{'var.x, ' * n}1]\n}}\n"
    ),
    "loops over one variable": lambda n: (
        f"{_W}var n : int = 0\n" + "while var.n < 3 max 5 { set n = var.n + 1 }\n" * 6 * n + "}\n"
    ),
    "fields of a wide type": lambda n: (
        f"{_W}input {{ x : {wide(n)} }}\n"
        + "".join(f"set z = var.x.f{k}\n" for k in range(n))
        + "}\n"
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_twice_the_text_takes_twice_the_steps(name: str) -> None:
    shape = SHAPES[name]
    calls(shape(10))
    assert calls(shape(240)) < 2.6 * calls(shape(120))


def test_a_message_shows_some_of_very_many_values() -> None:
    values = " | ".join(f'"v{k}"' for k in range(1_000))
    (found,) = [
        d
        for d in check_text(f'{_W}var e : {values} = "x"\noutput {{ e = var.e }}\n}}\n').diagnostics
        if d.code == "WF212"
    ]
    assert '"v19", … (1000 values)' in found.message
    assert len(found.message) < 300


def test_one_alias_too_deep_is_not_said_of_all_that_use_it() -> None:
    chain = "".join(f"type T{k + 1} = {{ a : T{k} }}\n" for k in range(200))
    users = "".join(f"type U{k} = {{ a : T150 }}\n" for k in range(20))
    found = check_text(f"type T0 = int\n{chain}{users}{_W}}}\n").diagnostics
    assert 0 < len([d for d in found if d.code == "WF214"]) < 10


def test_what_could_follow_is_asked_once_for_all_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where n `else if` end at one token, that is n reductions, not n for each of 45 tokens."""
    reductions = 0
    reduce_ahead = Machine._reduce_ahead

    def counted(self: Machine, *args: Any) -> int:
        nonlocal reductions
        reductions += 1
        return reduce_ahead(self, *args)

    monkeypatch.setattr(Machine, "_reduce_ahead", counted)
    text = f"{_W}if true {{ }}\n" + "elif true { }\n" * 60 + "}\n"
    assert len([d for d in check_text(text).diagnostics if d.severity == "error"]) == 60
    assert reductions < 60 * 60 * 4

"""Large and deep workflows: the compiler takes them, in steps that grow with the text, flat.

No test looks at a clock. `calls` counts the Python functions that run, so a walk that is quadratic
or doubles with every node shows; `flat` takes the stack away, so recursion over the input does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from compiler.picture.model import draw
from compiler.picture.tree import render_tree
from compiler.pipeline import CompileResult, check_text, compile_text
from dsl.parser import parse_text
from dsl.printer import format_text
from dsl.render import render_text

# Frames that a walk may use, far fewer than the levels of any text below.
FRAMES = 150


def chain(count: int) -> str:
    steps = "".join(f"  set v{n % 7} = var.v{(n + 6) % 7} + 1\n" for n in range(count))
    begins = "".join(f"  var v{n} : int = 0\n" for n in range(7))
    return f"workflow w {{\n{begins}{steps}}}\n"


def fan_out(count: int) -> str:
    branches = "".join(f"    sleep {n + 1}s\n" for n in range(count))
    return f"workflow w {{\n  parallel {{\n{branches}  }}\n}}\n"


def diamonds(count: int) -> str:
    """Each sets in both branches what the next one reads: paths double, facts do not."""
    ifs = "".join(
        f"  if var.v{n} > 0 {{ set v{n + 1} = 1 }} else {{ set v{n + 1} = 2 }}\n"
        for n in range(count)
    )
    return f"workflow w {{\n  var v0 : int = 1\n  output {{ r = var.v{count} }}\n{ifs}}}\n"


def loops(count: int) -> str:
    bodies = "".join(
        f"  foreach i{n} in [1, 2] {{ collect c{n} = var.i{n} }}\n  set s{n} = len(var.c{n})\n"
        for n in range(count)
    )
    return f"workflow w {{\n{bodies}}}\n"


def switches(count: int) -> str:
    cases = "".join(f'    case "k{n}" {{ set r = {n} }}\n' for n in range(count))
    head = "  input { k : string }\n  output { r = var.r }\n"
    return (
        f"workflow w {{\n{head}  switch var.k {{\n{cases}    default {{ set r = -1 }}\n  }}\n}}\n"
    )


def workflows(count: int) -> str:
    return "".join(f"workflow w{n} {{\n  sleep 1s\n}}\n" for n in range(count))


def a_long_line(count: int) -> str:
    return "workflow w { var x : any = [" + "var.y, " * count + "] }\n"


def an_object(count: int) -> str:
    entries = ", ".join(f"k{n}: {n}" for n in range(count))
    return f"workflow w {{\n  output {{ o = {{ {entries} }} }}\n}}\n"


def errors(count: int) -> str:
    return "workflow w {\n" + "  set a 1\n  set b = var.nothing\n" * count + "}\n"


SHAPES: tuple[Callable[[int], str], ...] = (
    *(chain, fan_out, diamonds, loops, switches, workflows, a_long_line, an_object, errors),
)


def calls(work: Callable[[], Any]) -> int:
    """Returns how many functions of ours are called."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@contextmanager
def flat() -> Iterator[None]:
    """Leaves FRAMES frames of Python's stack."""
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@pytest.fixture(autouse=True, scope="module")
def _warm() -> None:
    """Modules are imported when they are first needed, which takes frames and calls."""
    for make in SHAPES:
        text = make(3)
        compile_text(text)
        render_text(check_text(text).diagnostics)
        format_text(text, "w.wf")


def errors_of(result: CompileResult) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in result.diagnostics if d.severity == "error"]


@pytest.mark.parametrize("make", SHAPES, ids=lambda make: make.__name__)
def test_ten_times_the_text_takes_at_most_twelve_times_the_steps(
    make: Callable[[int], str],
) -> None:
    small, large = make(40), make(400)

    def checked(text: str) -> int:
        return calls(lambda: render_text(check_text(text).diagnostics))

    assert checked(large) <= 12 * checked(small)


@pytest.mark.parametrize("make", SHAPES, ids=lambda make: make.__name__)
def test_formatting_takes_at_most_twelve_times_the_steps(make: Callable[[int], str]) -> None:
    small, large = make(40), make(400)
    assert calls(lambda: format_text(large, "w.wf")) <= 12 * calls(
        lambda: format_text(small, "w.wf")
    )


def test_28_diamonds_take_no_more_steps_each_than_14() -> None:
    twice = calls(lambda: check_text(diamonds(28)))
    assert twice <= 2.2 * calls(lambda: check_text(diamonds(14)))
    assert errors_of(compile_text(diamonds(28))) == []


@pytest.mark.parametrize("make", [chain, fan_out])
def test_ten_thousand_nodes_compile(make: Callable[[int], str]) -> None:
    with flat():
        result = compile_text(make(10_000))
    assert errors_of(result) == []
    assert len(result.specs[0].nodes) > 10_000


BODIES = {
    "sequence": ("sequence {", "sleep 1s", "}"),
    "parallel": ("parallel {", "sleep 1s", "}"),
    "if": ("if true {", "sleep 1s", "}"),
    "else": ("if var.x == 1 {} else {", "sleep 1s", "}"),
    "switch": ("switch var.x { case 1 {", "sleep 1s", "} default {} }"),
    "while": ("while var.x == 1 max 2 { set x = 2 ", "sleep 1s", "}"),
    "repeat": ("repeat 2 {", "sleep 1s", "}"),
    "foreach": ("foreach i in [1] {", "sleep 1s", "}"),
    "on_error": ("sequence { sleep 1s } on_error {", "sleep 1s", "}"),
    "finally": ("sequence { sleep 1s } finally {", "sleep 1s", "}"),
}


def nested(kind: str, levels: int) -> str:
    opener, inner, closer = BODIES[kind]
    return f"workflow w {{ var x : int = 0\n{opener * levels}{inner}{closer * levels} }}"


# The workflow is a level, and so is the pause within.
MOST = 511


@pytest.mark.parametrize("kind", BODIES)
def test_512_levels_compile_flat_and_513_are_one_error(kind: str) -> None:
    with flat():
        assert errors_of(compile_text(nested(kind, MOST))) == []
        found = errors_of(compile_text(nested(kind, MOST + 1)))
    assert found == [("WF117", "nested deeper than 512 levels")]


@pytest.mark.parametrize("levels", [513, 5_000])
def test_nesting_beyond_the_limit_is_one_finding(levels: int) -> None:
    with flat():
        found = parse_text("workflow w {" + "sequence {" * levels + "}" * (levels + 1), "w.wf")
    assert [d.code for d in found.diagnostics] == ["WF007"]


EXPRESSIONS = {
    "parentheses": "(" * 500 + "var.x" + ")" * 500,
    "sum": " + ".join(["var.x"] * 500),
    "or": " or ".join(["var.x == 1"] * 500),
    "list": "[" * 250 + "var.x" + "]" * 250,
    "object": "{ k: " * 250 + "var.x" + " }" * 250,
    "not": "not " * 500 + "true",
    "index": "var.x" + "[0]" * 500,
}


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_a_deep_expression_is_checked_formatted_and_drawn_flat(kind: str) -> None:
    text = f"workflow w {{ var x : any = 1\n  output {{ r = {EXPRESSIONS[kind]} }}\n}}\n"
    with flat():
        result = compile_text(text)
        formatted = format_text(text, "w.wf")
        parsed = parse_text(text, "w.wf")
        assert parsed.file is not None
        assert render_tree(draw(parsed.file.workflows[0], parsed.source))
    assert [m for code, m in errors_of(result) if code == "WF007"] == []
    assert formatted.text is not None


def test_a_very_long_line_is_read_and_its_fault_is_shown_short() -> None:
    text = "workflow w { var x : any = [" + "1," * 50_000 + "] set y 2 }\n"
    (found,) = check_text(text).diagnostics
    assert found.span.start == text.index(" 2 }")
    assert len(render_text([found])) < 1_000

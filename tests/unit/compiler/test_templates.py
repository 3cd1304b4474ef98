"""Templates become programs: placeholders keep their type, literals stay as they are."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.templates import string_program, template_program


def text(value: str) -> Any:
    return string_program(value, lambda name: "w")


def test_one_placeholder_keeps_the_type_of_what_it_names() -> None:
    assert text("${var.a.b}") == [["var", "a", "w", ["b"]]]


def test_a_longer_string_is_joined() -> None:
    expected = [["lit", "x "], ["var", "a", "w", []], ["lit", " y"], ["cat", 3]]
    assert text("x ${var.a} y") == expected


def test_two_placeholders_are_joined() -> None:
    expected = [["var", "a", "w", []], ["ctx", "node", []], ["cat", 2]]
    assert text("${var.a}${ctx.node}") == expected


def test_steps_of_a_placeholder() -> None:
    expected = [["var", "a", "w", [3, "odd }key", ["var", "i", "w", []], "x"]]]
    assert text('${var.a[3]["odd }key"][var.i].x}') == expected


def test_context_placeholder() -> None:
    assert text("${ctx.task.pack.output.id}") == [["ctx", "task", ["pack", "output", "id"]]]


def test_an_escaped_placeholder_is_text() -> None:
    assert text("$${var.a}") == [["lit", "${var.a}"]]


@pytest.mark.parametrize("value", ["", "$", "$$", "cost: $5", "{x}", "a$"])
def test_text_without_placeholder_is_a_literal(value: str) -> None:
    assert text(value) == [["lit", value]]


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("${var}", "${var}"),
        ("${env.HOME}", "${env.HOME}"),
        ("a ${var.x + 1} b", "${var.x + 1}"),
        ("${var.x", "${var.x"),
        ("${var.x[}", "${var.x[}"),
    ],
)
def test_what_is_no_reference_is_a_fault_of_the_string(value: str, token: str) -> None:
    assert text(value) == [["fault", 10002, f"unsupported placeholder {token}"]]


def test_a_name_that_no_scope_has_is_a_fault() -> None:
    expected = [["fault", 10002, "unsupported placeholder ${var.a}"]]
    assert string_program("${var.a}", lambda name: None) == expected


def test_places_are_filled_by_key_and_indexes_by_number() -> None:
    template = {"b": "${var.b}", "10": "${var.t}", "a": ["${var.x}", "${var.y}"], "9": "${var.n}"}
    program = template_program(template, {}, lambda name: "w")
    assert [step[1] for step in program if step[0] == "var"] == ["n", "t", "x", "y", "b"]


def test_literal_parts_become_one_literal() -> None:
    template = {"a": [1, {"b": "c"}], "d": None}
    assert template_program(template, {}, lambda name: "w") == [["lit", template]]


def test_input_bindings_fill_their_places() -> None:
    template = {"a/b": [None, 2], "c": "${var.x}"}
    bindings = {"/a~1b/0": [["lit", 1], ["neg"]]}
    assert template_program(template, bindings, lambda name: "w") == [
        ["lit", 1],
        ["neg"],
        ["lit", 2],
        ["arr", 2],
        ["var", "x", "w", []],
        ["obj", ["a/b", "c"]],
    ]

"""Programs with N faults planted in them give N findings, each where its fault is.

A program is generated as lines, sound ones first; then some of its statements, and some heads of
bodies, are exchanged for broken ones. `«…»` marks what must be marked. No fault may hide another,
and none may be told twice, whatever stands between them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from random import Random

import pytest

from dsl.parser import parse_text
from dsl.source import Span

RUNS = int(os.environ.get("WFSQL_FUZZ", "400"))
MOST_FAULTS = 10

SOUND = [
    "set a = 1",
    'set b = "text ${var.a} more"',
    "action {k} = shop.note(n: var.a, list: [1, 2], o: { a: 1 })",
    'action {k} = shop.note(text: "a") { timeout 5s retry 3 backoff 1s set c = out.c }',
    "sleep 5s",
    'fail -1 "over"',
    'wait_event {k} on "shop.done" { correlate var.a timeout 1d }',
    "sequence { }",
    "if var.a == 1 { set a = 2 } else { set a = 3 }",
]
HEADS = [
    "sequence {",
    "sequence {k} {",
    "parallel limit 2 {",
    "if var.a == 1 and not var.b {",
    "if {k}: var.a in [1, 2] {",
    "while var.a < 3 max 5 {",
    "repeat 3 as i {",
    "foreach item, i in var.items parallel 4 {",
]
BROKEN = [
    "set a« »1",
    "set a =«»",
    "set a = 1 +«»",
    "set a = (1 + 2«»",
    "set a = [1, 2«»",
    "set a = «b»",
    "set a = «True»",
    "set a := 1".replace(":=", "«:»="),
    "«a» = 2",
    "set a = var.a «&&» var.b",
    "set a = «'text'»",
    'set a = "no such «\\q»"',
    "set a = «012»",
    "set a = 1«;»",
    "«actoin» {k} = shop.note(n: 1)",
    "action {k} = shop.note(n: «b»)",
    "action {k} = shop.note(n «=» 1)",
    "action {k} = shop.note(«var»)",
    "action {k} = shop.note(n: 1«»",
    "action {k} = shop.note(n: 1 «m»: 2)".replace(" «m»", "«» m"),
    "«shop».note(n: 1)",
    "action {k} = shop.note(n: 1) { timeout «5» }",
    "action {k} = shop.note(n: 1) { timeout «5sec» }",
    "action {k} = shop.note(n: 1) { «on_error» { set a = 1 } }",
    "action {k} = shop.note(n: 1) «retry» 3",
    "sequence «retry» 3 backoff 5s { set a = 1 }",
    "sleep «5»",
    'sleep «"5s"»',
    "«return» var.a",
    "«throw» 3",
    "fail«»",
    'wait_event {k}« »"shop.done"',
    "if «b» == 1 { set a = 2 }",
    "if var.a «=» 1 { set a = 2 }",
    "if true { } «elif» true { }",
    "if true { } else if «k»: true { }",
    "sleep 5s «else» { set a = 1 }",
    "action {k} = shop.note(n: 1) { retry 3 «wait» 5s max 1m }",
    "foreach x«» [1] { set a = 2 }",
    "switch var.a { case 1«:» { } }",
]
BROKEN_HEADS = [
    "if «b» == 1 {",
    "if var.a «=» 1 {",
    "if« »{",
    "while var.a «&&» var.b {",
    "«unless» var.a {",
    "foreach x« »[1] {",
    "repeat «n» {",
    "«try» {",
    "sequence «retry» 3 {",
    "parallel limit«» {",
]


@dataclass
class Line:
    """One line; `is_head` opens a body that a later line closes."""

    text: str
    is_head: bool = False


def generated(random: Random) -> list[Line]:
    lines: list[Line] = []

    def body(depth: int) -> None:
        for _ in range(random.randint(1, 4)):
            if depth < 4 and random.random() < 0.4:
                lines.append(Line("  " * depth + random.choice(HEADS), is_head=True))
                body(depth + 1)
                lines.append(Line("  " * depth + "}"))
            else:
                lines.append(Line("  " * depth + random.choice(SOUND)))

    for _ in range(random.randint(3, 6)):
        body(1)
    return lines


def planted(random: Random) -> tuple[str, list[Span]]:
    """Returns a program with faults, and where they are."""
    lines = generated(random)
    spoil(random, lines)
    return read_marks(lines)


def spoil(random: Random, lines: list[Line]) -> None:
    """Exchanges some lines for broken ones."""
    places = [k for k, line in enumerate(lines) if line.text.strip() != "}"]
    for k in random.sample(places, min(len(places), random.randint(1, MOST_FAULTS))):
        kinds = BROKEN_HEADS if lines[k].is_head else BROKEN
        indent = len(lines[k].text) - len(lines[k].text.lstrip())
        lines[k].text = " " * indent + random.choice(kinds)


def read_marks(lines: list[Line]) -> tuple[str, list[Span]]:
    marked = "workflow w {\n" + "\n".join(
        line.text.replace("{k}", f"key{k}") for k, line in enumerate(lines)
    )
    marked += "\n}\n"
    spans, text = [], ""
    for piece in marked.split("«"):
        inside, closed, after = piece.partition("»")
        if closed:
            spans.append(Span(len(text), len(text) + len(inside.strip(" "))))
        text += inside + after
    return text, spans


@pytest.mark.parametrize("seed", range(RUNS))
def test_each_fault_is_found_once_and_in_its_place(seed: int) -> None:
    text, spans = planted(Random(seed))
    found = parse_text(text, "w.wf").diagnostics
    assert [d.span for d in found] == spans, (text, [d.message for d in found])


@pytest.mark.parametrize("seed", range(RUNS))
def test_a_body_left_open_is_one_more_fault_with_its_opener(seed: int) -> None:
    random = Random(seed)
    lines = generated(random)
    opened: list[int] = []
    bodies: list[tuple[int, int]] = []
    for k, line in enumerate(lines):
        if line.is_head:
            opened.append(k)
        elif line.text.strip() == "}":
            bodies.append((opened.pop(), k))
    if not bodies:
        lines += [Line("  sequence {", is_head=True), Line("    sleep 5s"), Line("  }")]
        bodies = [(len(lines) - 3, len(lines) - 1)]
    opener, closer = random.choice(bodies)
    lines[opener].text = lines[opener].text.replace("{k}", "key")
    spoil(random, [line for k, line in enumerate(lines) if k not in (opener, closer)])
    del lines[closer]
    text, spans = read_marks(lines)
    found = parse_text(text, "w.wf").diagnostics
    unclosed = [d for d in found if d.code == "WF003"]
    assert len(unclosed) == 1, (text, [d.message for d in found])
    brace = text.split("\n")[: opener + 2]
    place = sum(len(line) + 1 for line in brace[:-1]) + brace[-1].rindex("{")
    assert [label.span.start for label in unclosed[0].labels] == [place], text
    assert [d.span for d in found if d.code != "WF003"] == spans, text

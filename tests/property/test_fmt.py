"""`wf fmt` on any valid text: it settles at once, means the same, and loses no comment.

Texts are the corpus, the examples and generated programs, with other space and with comments
between any two of their tokens.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsl.lexer import Lexer
from dsl.parser import parse_text
from dsl.printer import comments_of, format_text
from dsl.table import load_table

ROOT = Path(__file__).parents[2]
# `make fuzz` tries more of each.
EXAMPLES = int(os.environ.get("WFSQL_FUZZ", "50"))
FILES = sorted(
    path
    for folder in ("examples", "tests/corpus")
    for path in (ROOT / folder).rglob("*.wf")
    if parse_text(path.read_bytes(), path.name).file is not None
)
LITERALS = load_table().literals

NAMES = ["a", "b_2", "longer_name", "input", "set", "limit", "on", "type", "code"]
KEYS = ["k", "reserve", "a_rather_long_key_for_a_node", "sku", "set"]
STRINGS = [
    '""',
    '"# no comment } {"',
    '"\\u00e9 \\" $${x}"',
    '"${ var . x } and ${var.a[\\"odd # key\\"]}"',
    '"""\n      Dear ${var.x},\n        "you"\n\n   \n      """',
    '"""  \n  last line ends it"""',
    '"""\n\ttab\n    blanks\n        """',
    '"""starts at once\n   # and goes on"""',
    '"' + "long " * 20 + '"',
]
SCALARS = [*STRINGS, "1", "-20", "1.50e1", "true", "null", "${var . a . b}"]
REFERENCES = ["var.x", "ctx.task.k.output.a", "var.a[0]", "var.a[var.i].b", 'var.a["odd key"]']
OPERATORS = ["??", "or", "and", "==", "in", "+", "-", "*", "//", "%"]
TYPES = [
    "string",
    "int ?",
    "list < int >",
    '"a" | "b"',
    "{ a : int, b ? : list<{ c: int }> }",
    "a? ?",
]
ATTRIBUTES = [
    "timeout 30s",
    "retry 3 backoff 2s factor 1.5 max 1m jitter on -3, any",
    "lease 5m",
    "priority -5",
    'description "x"',
]
GAPS = [" "] * 6 + ["\n", "\n\n", "\n\n\n\n", "\t \f", "\n  "]
# Two signs that would be another one. `>=` is not among them: it ends a type and begins its value.
JOINED = {"??", "==", "!=", "<=", "//", "--", "${", "||", ".."}
COMMENTS = [
    " # c\n",
    "  # wf: allow WF220\n",
    "\n# own line } {\n",
    "\n\n  # one \n\n# two\n\n\n",
    '#"${ quote\n# more\n',
    "#\n",
]


class Programs:
    """Makes valid texts of every form, different for each seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def _one(self, choices: list[str]) -> str:
        return self._random.choice(choices)

    def _some(self, make: Callable[[], str], most: int) -> list[str]:
        return [make() for _ in range(self._random.randint(0, most))]

    def _named(self, sign: str, make: Callable[[], str]) -> list[str]:
        names = self._random.sample(NAMES, self._random.randint(0, 3))
        return [f"{name}{sign} {make()}" for name in names]

    def _list(self, opener: str, parts: list[str], closer: str) -> str:
        trailing = "," if parts and self._random.random() < 0.3 else ""
        return opener + ", ".join(parts) + trailing + closer

    def expression(self, depth: int = 3) -> str:
        if depth == 0 or self._random.random() < 0.4:
            return self._one(SCALARS + REFERENCES)

        def inner() -> str:
            return self.expression(depth - 1)

        makers: list[Callable[[], str]] = [
            lambda: self._list("[", self._some(inner, 4), "]"),
            lambda: self._list("{", self._named(":", inner), "}"),
            lambda: f"({inner()}) {self._one(OPERATORS)} {self._one(REFERENCES)}",
            lambda: f" {self._one(['or', 'and', '??'])} ".join([self._one(REFERENCES)] * 6),
            lambda: f"not ({inner()})",
            lambda: f"- ({inner()})",
            lambda: f"len({inner()})",
        ]
        return self._random.choice(makers)()

    def body(self, depth: int) -> str:
        parts = self._some(lambda: self.statement(depth), 3)
        if self._random.random() < 0.2:
            parts.insert(0, f"var v : {self._one(TYPES)}")
        return "{ " + " ".join(parts) + " }"

    def binding(self) -> str:
        return f"set {self._one(NAMES)} = {self.expression()}"

    def action(self) -> str:
        arguments = self._list("(", self._named(":", self.expression), ")")
        head = f"action {self._one(KEYS)} = a.b-c{arguments}"
        if self._random.random() < 0.5:
            return head
        items = self._random.sample(ATTRIBUTES, self._random.randint(0, 2))
        return f"{head} {{ {' '.join(items + self._some(self.binding, 3))} }}"

    def statement(self, depth: int = 3) -> str:
        makers: list[Callable[[], str]] = [
            self.action,
            self.binding,
            lambda: f'fail -3 "{self._one(["x", "${var.x}"])}"',
            lambda: "sleep 1h30m",
        ]
        if depth > 0:
            makers += self._composites(lambda: self.body(depth - 1))
        return self._random.choice(makers)()

    def _composites(self, body: Callable[[], str]) -> list[Callable[[], str]]:
        ref, value = self._one(REFERENCES), self.expression
        return [
            lambda: f"sequence {body()} on_error {body()} finally {body()}",
            lambda: f"parallel both limit 4 join any {{ {' '.join(self._some(self.action, 3))} }}",
            lambda: f"if {ref} {body()}",
            lambda: f"if k: {value()} {body()} else if {ref} {body()} else {body()}",
            lambda: f"switch {ref} {{ case ok, 2, {body()} default {body()} }}",
            lambda: f"repeat 3 as i {body()}",
            lambda: f"while {ref} or ({value()}) max 3 {body()}",
            lambda: f"foreach x, i in {ref} parallel 4 tolerate 10 % {body()}",
            lambda: f'wait_event w on "e" {{ correlate {ref} timeout 3d {body()} set a = code }}',
        ]

    def program(self) -> str:
        comma = self._one([" ", ", "])
        inputs = self._named(" :", lambda: f"{self._one(TYPES)} = {self.expression()}")
        outputs = self._named(" =", self.expression)
        head = f"input {{ {comma.join(inputs)} }} output {{ {comma.join(outputs)} }}"
        body = " ".join(self._some(self.statement, 4))
        text = f"workflow w {{ {head} {body} }}"
        return text + self._one(["", " workflow second { }", " type T = string"])

    def scatter(self, text: str, comments: float) -> str:
        """Puts other space between the tokens, and comments into so many of the places."""
        parts, done = [], 0
        for start, end in _places(text):
            commented = self._random.random() < comments
            parts += [text[done:start], self._one(COMMENTS if commented else GAPS)]
            done = end
        return "".join(parts) + text[done:]

    def squeeze(self, text: str) -> str:
        """Takes out all space between two tokens that are not one without it."""
        parts, done = [], 0
        for start, end in _places(text):
            pair = text[start - 1 : start] + text[end : end + 1]
            one = pair in JOINED or all(c.isalnum() or c in '_"-' for c in pair)
            parts.append(text[done:start] + (text[start:end] if one else ""))
            done = end
        return "".join(parts) + text[done:]


def _places(text: str) -> list[tuple[int, int]]:
    """Where any space may stand: outside of strings, and neither beside a keyword that is a name
    only because of the dot right before it, or of the sign right after it, nor beside `//`, which
    at the begin or end of a line is taken for a comment."""
    tokens = Lexer(text, LITERALS, lambda *_found: None).run()
    found, in_string = [], False
    for before, token in pairwise(tokens):
        in_string = before.type != "TEMPLATE_END" and (in_string or before.type == "TEMPLATE_START")
        pair = (before, token)
        kept = any(t.type == "//" or (t.type == "NAME" and t.text in LITERALS) for t in pair)
        if not in_string and not kept:
            found.append((before.end, token.start))
    return found


def _formatted(text: str) -> str:
    result = format_text(text, "x.wf")
    assert result.text is not None, (text, result.diagnostics)
    return result.text


def _assert_canonical_form_keeps(text: str) -> None:
    result = _formatted(text)
    assert _formatted(result) == result
    assert comments_of(result) == comments_of(text)
    assert parse_text(result, "x.wf").file == parse_text(text, "x.wf").file


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_of_ours_keeps_its_meaning_and_comments(path: Path) -> None:
    _assert_canonical_form_keeps(path.read_text())


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 2**32))
def test_generated_programs_keep_their_meaning(seed: int) -> None:
    _assert_canonical_form_keeps(Programs(seed).program())


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.05, 0.5, 1.0]))
def test_comments_between_any_two_tokens_are_kept(seed: int, comments: float) -> None:
    programs = Programs(seed)
    _assert_canonical_form_keeps(programs.scatter(programs.program(), comments))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 2**32))
def test_space_that_was_left_out_is_put_in(seed: int) -> None:
    programs = Programs(seed)
    text = programs.program()
    squeezed = programs.squeeze(text)
    _assert_canonical_form_keeps(squeezed)
    assert _formatted(squeezed) == _formatted(text)


def test_a_sign_that_ends_a_type_and_begins_its_value_is_two() -> None:
    tight = "workflow w{input{a:list<list<int>>=[[3]]} var b:list<int>=[3]}"
    shown = "  input { a : list<list<int>> = [[3]] }\n  var b : list<int> = [3]\n"
    assert _formatted(tight) == f"workflow w {{\n{shown}}}\n"


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(st.sampled_from(FILES), st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 1.0]))
def test_comments_anywhere_in_our_files_are_kept(path: Path, seed: int, comments: float) -> None:
    _assert_canonical_form_keeps(Programs(seed).scatter(path.read_text(), comments))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 200), st.binary(max_size=3))
def test_any_text_is_formatted_or_has_findings(start: int, length: int, instead: bytes) -> None:
    text = (ROOT / "tests/corpus/good/every_form.wf").read_bytes()
    start %= len(text)
    result = format_text(text[:start] + instead + text[start + length :], "x.wf")
    assert (result.text is None) == any(d.severity == "error" for d in result.diagnostics)

"""Slips of people who come from other languages: one finding, at the slip, with what to write."""

from __future__ import annotations

import pytest

from dsl.parser import parse_text

_ONLY_ACTIONS = "only an action has it: put it into the braces of the action"
_BARE_K = (
    "what the action gives is read as `ctx.task.k.output.…`,"
    " its result code as `ctx.task.k.resultCode`"
)
_OF_K = "what the action gives is read as `ctx.task.k.{}`"

# What was written, the part that is marked, and the hint.
SLIPS = [
    ("if n == 0 { set a = 1 }", "n", "a variable is read as `var.n`"),
    ("if not n { set a = 1 }", "n", "a variable is read as `var.n`"),
    ("while n < 3 { set a = 1 }", "n", "a variable is read as `var.n`"),
    ("repeat n { set a = 1 }", "n", "a variable is read as `var.n`"),
    ("foreach x in order.items { }", "order", "a variable is read as `var.order`"),
    ("set x = n + 1", "n", "a variable is read as `var.n`"),
    ('set x = "${n}"', "n", "a variable is read as `var.n`"),
    ("set x = True", "True", "write `true`"),
    ("set x = [False]", "False", "write `false`"),
    ("set x = None", "None", "write `null`"),
    ("set x = {a: nil}", "nil", "write `null`"),
    ("if true { } elif true { } else { }", "elif", "write `else if`"),
    ("if true { }\nelseif true { }\nelse { }", "elseif", "write `else if`"),
    ("// it's a { comment", "//", "comments begin with `#`"),
    ("set a = 1 // half", "//", "comments begin with `#`"),
    ("set a = 1\n  // Then b.\nset b = 1", "//", "comments begin with `#`"),
    ("/* it's a\n { comment */", "/*", "comments begin with `#`"),
    ("-- a comment", "--", "comments begin with `#`"),
    ("a = 2", "a", "write `set a = …`"),
    ("let a = 2", "let", "write `set a = …`"),
    ("set var.a = 4", "var.a", "write `set a = …`"),
    ("var.a = 4", "var.a", "write `set a = …`"),
    ("a += 1", "a", "write `set a = var.a + 1`"),
    ("set a += 1", "+", "write `set a = var.a + …`"),
    ("set a := 1", ":", "write `=`"),
    ("var a = 1", "=", "a type stands before the value: `a: int = …`"),
    ("shop.note(a: 1)", "shop", "write `action key = shop.note(…)`"),
    ("note(a: 1)", "note", "write `action key = note(…)`"),
    ("action note(a: 1)", "note", "write `action key = note(…)`"),
    ("x = shop.note(a: 1)", "x", "write `action x = shop.note(…)`"),
    ("action x = note(var.a)", "var", "arguments are written `name: value`"),
    ('action x = note("a", 2)', '"a"', "arguments are written `name: value`"),
    ("action x = note(text = 1)", "=", "arguments are written `name: value`"),
    ("action x = note(text)", "text", "arguments are written `name: value`"),
    ("set a = {b = 1}", "=", "entries are written `name: value`"),
    ("set a = var.x && var.y", "&&", "write `and`"),
    ("set a = !var.x", "!", "write `not`"),
    ("set a = 'text'", "'text'", 'strings are written with double quotes: "…"'),
    ("if var.x === 2 { }", "===", "write `==`"),
    ("if var.x !== 2 { }", "!==", "write `!=`"),
    ("if var.x <> 2 { }", "<>", "write `!=`"),
    ("if var.x = 2 { }", "=", "comparison is `==`"),
    ("set a = 2;", ";", "nothing needs to end a statement: leave it out"),
    ("return var.a", "return", "what a workflow gives back stands in its `output { … }`"),
    ("throw 3", "throw", 'write `fail CODE "message"`'),
    ("try { } catch (e) { }", "try", "write `sequence { … } on_error { … }`"),
    ("catch { }", "catch", "write `sequence { … } on_error { … }`"),
    ("unless var.x { }", "unless", "write `if not …`"),
    ("parallel { branch { } }", "branch", "write `sequence { … }`"),
    ("switch var.x { when 1 { } }", "when", "write `case`"),
    ("switch var.x { case 1 { } else { } }", "else", "write `default`"),
    ("else { }", "else", "`else` follows the `}` of an `if`"),
    ("if var.x:\nset a = 1", ":", "a body stands in braces: `{ … }`"),
    ("if var.x then set a = 1", "then", "a body stands in braces: `{ … }`"),
    ("switch var.x { case 1: { } }", ":", "leave the `:` out"),
    ("sleep 5", "5", "write `5s`"),
    ("sleep 5 minutes", "5", "write `5m`"),
    ("sleep 5sec", "5sec", "write `5s`"),
    ("sleep 90sec", "90sec", "write `1m30s`"),
    ("sleep 1.5h", "1.5h", "write `1h30m`"),
    ("sleep 2weeks", "2weeks", "write `14d`"),
    ('sleep "5 min"', '"5 min"', "write `5m`, without quotes"),
    ("sleep var.x.y", "var", None),
    ("action x = a.b() retry 3 on any, lost", "retry", "write `{ retry … }`"),
    ("action x = a.b() { retries 3 }", "retries", "did you mean `retry`?"),
    ("action x = a.b() { retry max 3 }", "max", "such as `retry 3 backoff 2s max 1m`"),
    ("action x = a.b() { retry {n: 3} }", "{", "such as `retry 3 backoff 2s max 1m`"),
    ("action x = a.b() { retry 3, jitter }", ",", "no comma stands here: leave it out"),
    ("action x = a.b() on_error { }", "on_error", "write `sequence { … } on_error { … }`"),
    ("action x = a.b() { finally { } }", "finally", "write `sequence { … } finally { … }`"),
    ("parallel { } on_error { }", "on_error", "write `sequence { … } on_error { … }`"),
    ("sequence { } finally { } on_error { }", "on_error", "swap the two"),
    ("sequence s retry 3 { }", "retry", _ONLY_ACTIONS),
    ("sequence { retry 3 backoff 2s on any }", "retry", _ONLY_ACTIONS),
    ("parallel retry 3 { }", "retry", _ONLY_ACTIONS),
    ("foreach x in [1] retry 3 { }", "retry", _ONLY_ACTIONS),
    ("if true lease 3s { }", "lease", _ONLY_ACTIONS),
    ("if true delay 3s { }", "delay", "only an action has one; put a `sleep` before this"),
    ("if true timeout 3s { }", "timeout", "put it into a `sequence { timeout … }` around this"),
    ("switch 1 limit 3 { default { } }", "limit", "`parallel` takes it"),
    ("action k = a.b() set x = k", "k", _BARE_K),
    ("action k = a.b(n: k.output.n)", "k", _OF_K.format("output.n")),
    ("action k = a.b(n: k.n)", "k", _OF_K.format("output.n")),
    ('action k = a.b(n: "is ${k.resultCode}")', "k", _OF_K.format("resultCode")),
]


@pytest.mark.parametrize(("slip", "marked", "hint"), SLIPS)
def test_a_slip_gives_one_finding_at_its_place(slip: str, marked: str, hint: str) -> None:
    text = f"workflow w {{\n{slip}\nset last = 1\n}}\n"
    (found,) = parse_text(text, "t").diagnostics
    assert (found.source.text[found.span.start : found.span.end], found.hint) == (marked, hint)


@pytest.mark.parametrize(("slip", "marked", "hint"), SLIPS)
def test_a_slip_hides_nothing_behind_it(slip: str, marked: str, hint: str) -> None:
    text = f"workflow w {{\n{slip}\nset last 1\n}}\nworkflow v {{ set last 2 }}\n"
    found = parse_text(text, "t").diagnostics
    assert [d.message for d in found[1:]] == ['expected `=` after "last"'] * 2


@pytest.mark.parametrize("loop", ["break", "continue"])
def test_a_loop_cannot_be_left_early(loop: str) -> None:
    (found,) = parse_text(f"workflow w {{ repeat 3 {{\n{loop}\n}} }}", "t").diagnostics
    assert found.hint is not None
    assert found.hint.startswith("a loop cannot be left early")


@pytest.mark.parametrize("head", ["for z in var.xs", "for k, z in var.xs", "for i = 1 to 9"])
def test_a_for_gives_one_finding_and_its_body_is_read(head: str) -> None:
    found = parse_text(f"workflow w {{\n{head} {{ set a 1 }}\n}}", "t").diagnostics
    assert found[0].hint == "write `foreach item in … { … }`, or `repeat n as i { … }` to count"
    assert [d.message for d in found[1:]] == ['expected `=` after "a"']


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("int[]", "a list is written `list<int>`"),
        ("list[int]", "a list is written `list<int>`"),
        ("string | null", "a type that takes null is written `string?`"),
    ],
)
def test_a_type_of_another_language_gives_one_finding(written: str, hint: str) -> None:
    text = f"workflow w {{ input {{ a: {written}, b: int }} }}"
    (found,) = parse_text(text, "t").diagnostics
    assert found.hint == hint


@pytest.mark.parametrize("head", ["workflow w", "workflow w:"])
@pytest.mark.parametrize("end", ["", "}\n"])
def test_a_workflow_without_its_brace_gives_one_finding(head: str, end: str) -> None:
    text = f"{head}\n  set a = 1\n  if true {{ set b = 2 }}\n{end}workflow v {{ set c = 3 }}\n"
    (found,) = parse_text(text, "t").diagnostics
    assert found.message.startswith("expected `{`")


def test_an_action_behind_the_workflow_gives_one_finding_at_its_word() -> None:
    text = 'workflow y { }\naction p = text.count-words(text: "abc")\n'
    (found,) = parse_text(text, "t").diagnostics
    assert found.message == "`action` stands outside of a workflow"
    assert (found.span.start, found.span.end) == (15, 21)


def test_a_file_without_a_workflow_gives_one_finding() -> None:
    text = "input { a: int }\naction p = b.c(a: (1))\nif true { set d = 1 }\n"
    (found,) = parse_text(text, "t").diagnostics
    assert found.message == "`input` stands outside of a workflow"


def test_a_bracket_that_is_closed_is_never_called_unclosed() -> None:
    text = "workflow y {\n  if true { }\n  what ever\n  set a = (1)\n}\n"
    assert [d.code for d in parse_text(text, "t").diagnostics] == ["WF001"]


@pytest.mark.parametrize(
    "sum_",
    [
        "7 // 2",
        "7 // var.x",
        "7 // ${var.x} // 3",
        "7 // code",
        "7 // code and code // 7 == 1",
        "7 // len(var.x)",
        "7 // (1)",
        "var.x\n  // 3",
        "var.x //\n  3",
        "var.x\n  --2",
        "true // 2",
        "var.limit // var.in",
        "7 --2",
        "7 --${var.x}",
        "--7",
    ],
)
def test_arithmetic_is_no_comment(sum_: str) -> None:
    assert parse_text(f"workflow w {{ set a = {sum_} }}", "t").diagnostics == ()


def test_arithmetic_is_no_comment_in_a_file_with_a_fault_behind_it() -> None:
    text = "workflow w {\n  set a = var.x //\n    3\n  bogus word\n}\n"
    (found,) = parse_text(text, "t").diagnostics
    assert found.source.position(found.span.start).line == 4


def test_a_comment_behind_arithmetic_is_one() -> None:
    text = "workflow w {\n  set a = var.x //\n    3 // the half of it\n}\n"
    (found,) = parse_text(text, "t").diagnostics
    place = found.source.position(found.span.start)
    assert (place.line, place.column, found.hint) == (3, 7, "comments begin with `#`")


def test_a_division_by_one_stroke_is_told_of_the_other() -> None:
    (found,) = parse_text("workflow w {\n  set a = var.x / 2\n}\n", "t").diagnostics
    assert found.hint == "integers divide with `//`"


def test_the_wrong_word_is_marked_not_the_line_before() -> None:
    (found,) = parse_text("workflow w {\n  set a = 1\n  bogus word\n}\n", "t").diagnostics
    place = found.source.position(found.span.start)
    assert (place.line, place.column, found.span.end - found.span.start) == (3, 3, 5)


def test_a_missing_sign_is_marked_behind_the_word_before() -> None:
    (found,) = parse_text("workflow w {\n  set a = (1\n  set b = 2\n}\n", "t").diagnostics
    place = found.source.position(found.span.start)
    assert (place.line, place.column, found.message) == (2, 13, "expected `)` after `1`")


def test_a_type_may_end_right_before_the_equals_sign() -> None:
    text = "workflow w { input { a: list<int>= [1], b: list<list<int>>=[] } }"
    result = parse_text(text, "t")
    assert result.file is not None
    assert [i.default is not None for i in result.file.workflows[0].inputs] == [True, True]

"""Files that cannot be read, limits, and texts broken at random: findings, never a traceback."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from dsl.parser import parse_file, parse_text
from dsl.render import render_text

EVERY_FORM = Path(__file__).parents[2] / "corpus" / "good" / "every_form.wf"
INTERNAL_NAME = re.compile(r"\b[A-Z]{2,}(_[A-Z]+)*\b|__|@")


def only(path: Path) -> tuple[str, str]:
    result = parse_file(path, "x.wf")
    assert result.file is None
    (found,) = result.diagnostics
    return found.code, found.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\xffb", "the file is not UTF-8: byte 0xff at offset 1 (line 1)"),
        (b"\xff\xfew\0", "the file is UTF-16, not UTF-8"),
        (b"w\0o\0", "the file seems to be UTF-16, not UTF-8"),
        (b"\x7fELF\0\0", "the file is binary, not text"),
        (b"x" * 5_000_001, "the file has 5.0 MB, and at most 5 MB are read"),
    ],
)
def test_an_unreadable_file_gives_one_finding(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "x.wf"
    path.write_bytes(data)
    assert only(path) == ("WF004", message)


def test_a_missing_file_gives_one_finding(tmp_path: Path) -> None:
    assert only(tmp_path / "none.wf") == ("WF004", "there is no such file")


def test_a_directory_gives_one_finding(tmp_path: Path) -> None:
    assert only(tmp_path) == ("WF004", "this is a directory, not a file")


def test_a_path_with_nul_gives_one_finding() -> None:
    assert only(Path("a\0b")) == ("WF004", "the file cannot be read: the path is not valid")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.wf"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    assert only(path) == ("WF004", "the file has 50.0 MB, and at most 5 MB are read")


def test_a_byte_order_mark_and_carriage_returns_take_no_column() -> None:
    result = parse_text(b"\xef\xbb\xbfworkflow w {\r\n  set x 1\r}", "t")
    (found,) = result.diagnostics
    place = result.source.position(found.span.start)
    assert (place.line, place.column, place.offset) == (2, 8, 20)


@pytest.mark.parametrize(
    ("opener", "inner", "closer"),
    [("sequence {", "", "}"), ("if true {} else ", "if true {}", "")],
)
def test_512_levels_parse_and_513_give_one_finding(opener: str, inner: str, closer: str) -> None:
    def codes(levels: int) -> list[str]:
        text = "workflow w {" + opener * levels + inner + closer * levels + "}"
        return [found.code for found in parse_text(text, "t").diagnostics]

    assert codes(500) == []
    assert codes(514) == ["WF007"]


def test_exactly_512_bodies_are_allowed() -> None:
    assert parse_text("workflow w {" + "sequence {" * 512 + "}" * 513, "t").file is not None
    assert parse_text("workflow w {" + "sequence {" * 513 + "}" * 514, "t").file is None


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "1" + ")" * 10_000,
        "[" * 600 + "1" + "]" * 600,
        "1" + " + 1" * 10_000,
        "not " * 10_000 + "1",
        "- " * 10_000 + "1",
        "var.a[" * 600 + "1" + "]" * 600,
    ],
    ids=["parentheses", "lists", "sum", "not", "minus", "indexes"],
)
def test_a_deep_expression_gives_one_finding(text: str) -> None:
    found = parse_text(f"workflow w {{ set x = {text} }}", "t").diagnostics
    assert [d.code for d in found] == ["WF007"]


@pytest.mark.parametrize(
    ("before", "opener", "sign", "closer"),
    [
        ("set x = ", "(", "(", ")"),
        ("set x = ", "[", "[", "]"),
        ("set x = ", "not ", "not", ""),
        ("set x = ", "1 + ", "+", ""),
        ("", "sequence {", "{", "}"),
    ],
)
@pytest.mark.parametrize("levels", [513, 700, 3_000])
def test_a_depth_finding_points_at_level_513(
    before: str, opener: str, sign: str, closer: str, levels: int
) -> None:
    head = "workflow w { " + before
    inner = "1" if before else ""
    text = head + opener * levels + inner + closer * levels + "}"
    (found,) = parse_text(text, "t").diagnostics
    assert found.span.start == len(head) + 512 * len(opener) + opener.index(sign)


@pytest.mark.parametrize("count", [1, 2, 19, 20, 21, 60])
def test_independent_errors_are_counted_exactly(count: int) -> None:
    text = "workflow w {\n" + "set a 1\nset b = 2\n" * count + "}"
    assert len(parse_text(text, "t").diagnostics) == count


def check_sound(text: str) -> None:
    """A result has an AST or findings, and no message shows what is internal."""
    result = parse_text(text, "t")
    assert (result.file is None) == bool(result.diagnostics)
    for found in result.diagnostics:
        quoted_out = re.sub(r'"[^"]*"|`[^`]*`|U\+0000|UTF-\d+', "", found.message)
        assert not INTERNAL_NAME.search(quoted_out), found.message
        assert 0 <= found.span.start <= found.span.end <= len(result.source.text)
    assert render_text(result.diagnostics, most=1_000).count("[WF") == len(result.diagnostics)


BROKEN = (
    "set x 5",
    "set x =",
    "set y = (1 + 2",
    "set y = [1, 2",
    "set z = {a: 1, b}",
    "action a = b.c(x: 1, y 2)",
    "action a = b.c(x: 1 {\n set q = 1\n}",
    "action a b.c(x: 1)",
    "acton a = b.c(x: 1)",
    'action a = b.c(x: "open)',
    'set s = "${var.x + 1}"',
    "if var.x = 3 { set q = 1 } else { set q = 2 }",
    "if { set q = 1 }",
    "while true max { set q = 1 }",
    "foreach in var.xs { set q = 1 }",
    "foreach x in { set q = 1 }",
    "switch var.x y { case 1 { set q = 1 } }",
    "switch k { case { set q = 1 } default { set q = 2 } }",
    "repeat as i { set q = 1 }",
    "sequence 5 { set q = 1 }",
    "wait_event on { set q = 1 }",
    "fail",
    "sleep 30",
    "call other(x: 1)",
    "set x = 12abc",
    "set x = 1 2",
    ")",
)


@pytest.mark.parametrize("broken", BROKEN)
def test_each_broken_statement_gives_one_finding_and_hides_no_other(broken: str) -> None:
    body = f"{broken}\nset good = 1\nsequence {{\n{broken}\nset good = 2\n}}\nset bad 3\n"
    found = parse_text(f"workflow w {{\n{body}}}\nworkflow v {{ set bad 4 }}", "t").diagnostics
    assert len(found) == 4, [d.message for d in found]


@pytest.mark.parametrize("inside", ['\\\\\\"a\\"', "'\\\"'\\\"", '\\\\"k"', '\\\\\\" } \\"'])
@pytest.mark.parametrize("quote", ['"', '"""'])
def test_a_stray_sign_before_a_quoted_key_is_sound(inside: str, quote: str) -> None:
    check_sound(f"workflow w {{ set a = {quote}x ${{ {inside} }} y{quote} }}")


def test_truncation_at_any_offset_is_sound() -> None:
    text = EVERY_FORM.read_text(encoding="utf-8")
    for end in range(0, len(text), 7):
        check_sound(text[:end])


def test_random_edits_are_sound() -> None:
    tokens = re.findall(r'\s+|\w+|"[^"]*"|.', EVERY_FORM.read_text(encoding="utf-8"))
    choose = random.Random(20)
    for _ in range(150):
        edited = list(tokens)
        for _ in range(choose.randint(1, 4)):
            place = choose.randrange(len(edited))
            edited[place : place + choose.randint(0, 1)] = choose.sample([*tokens[:50], ""], 1)
        check_sound("".join(edited))


def test_random_characters_are_sound() -> None:
    choose = random.Random(4)
    alphabet = (
        'workflow w { set x = "${var.a}" \\ """ #\n\t[](),.:<>=+-*/%?|!&;\'é漢\x00\x1b\u202e 0129e'
    )
    for _ in range(300):
        check_sound("".join(choose.choices(alphabet, k=choose.randint(1, 80))))

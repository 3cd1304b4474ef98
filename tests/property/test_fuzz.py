"""Broken texts: findings or a good workflow, never a traceback, and never a name of the inside.

Texts are the good ones of the corpus and the examples, broken in every way a machine can think of.
`make test` tries the same few each time, `make fuzz` more, and new ones.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.picture.model import draw
from compiler.picture.tree import render_tree
from compiler.pipeline import check_text
from dsl.parser import parse_text
from dsl.printer import format_text
from dsl.render import render_data, render_text
from tests.property.test_sizes import calls
from wfsql.cli.main import main

ROOT = Path(__file__).parents[2]
FUZZ = os.environ.get("WFSQL_FUZZ")
EXAMPLES = int(FUZZ or "15")
# How far apart the offsets are at which a text is cut; 1 is every one.
STRIDE = 1 if FUZZ else 331
GOOD = sorted((ROOT / "tests/corpus/good").glob("*.wf")) + sorted(ROOT.glob("examples/*/*.wf"))
PIECE = re.compile(r'\s+|\w+|"[^"\n]*"|.', re.DOTALL)
INTERNAL_NAME = re.compile(r"\b[A-Z]{2,}(_[A-Z]+)*\b|__|\$END|@\w|<class|object at 0x")
# What a message may say in capitals without quotes: words of the language and of formats.
KNOWN_WORDS = re.compile(
    r"\b(JSON|UTF|YAML|SQL|ACTION|SEQUENCE|PARALLEL|FOREACH|WHILE|REPEAT|SWITCH|IF|WAIT_EVENT|BODY)\b"
    r"|U\+[0-9A-F]{4}"
)
SETTINGS = settings(max_examples=EXAMPLES, deadline=None, derandomize=FUZZ is None, database=None)


def assert_sound(text: str | bytes, path: Path) -> None:
    """Checks, formats and draws; a text has an error, or all three take it."""
    catalogs = sorted(path.parent.glob("*.actions.yaml"))
    checked = check_text(text, "x.wf", catalogs)
    for found in checked.diagnostics:
        said = KNOWN_WORDS.sub("", re.sub(r'"[^"]*"|`[^`]*`', "", found.message))
        assert not INTERNAL_NAME.search(said), found.message
        assert 0 <= found.span.start <= found.span.end <= len(found.source.text)
    render_text(checked.diagnostics)
    render_data(checked.diagnostics)
    parsed = parse_text(text, "x.wf")
    formatted = format_text(text, "x.wf")
    assert (parsed.file is None) == (formatted.text is None)
    if parsed.file is None:
        assert any(d.severity == "error" for d in checked.diagnostics)
        return
    for workflow in parsed.file.workflows:
        render_tree(draw(workflow, parsed.source))


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name)
def test_a_text_may_end_anywhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for end in range(Random(path.name).randrange(STRIDE), len(text), STRIDE):
        assert_sound(text[:end], path)


@SETTINGS
@given(st.sampled_from(GOOD), st.integers(0, 2**32), st.integers(1, 5))
def test_tokens_may_be_missing(path: Path, seed: int, count: int) -> None:
    pieces, random = PIECE.findall(path.read_text(encoding="utf-8")), Random(seed)
    for _ in range(count):
        del pieces[random.randrange(len(pieces))]
    assert_sound("".join(pieces), path)


@SETTINGS
@given(st.sampled_from(GOOD), st.integers(0, 2**32), st.integers(1, 5))
def test_tokens_may_be_doubled_or_moved(path: Path, seed: int, count: int) -> None:
    pieces, random = PIECE.findall(path.read_text(encoding="utf-8")), Random(seed)
    for _ in range(count):
        piece = random.choice(pieces)
        pieces.insert(random.randrange(len(pieces)), piece)
    assert_sound("".join(pieces), path)


@SETTINGS
@given(st.sampled_from(GOOD), st.integers(0, 10**6), st.binary(max_size=4), st.integers(0, 3))
def test_bytes_may_be_anything(path: Path, at: int, put: bytes, taken: int) -> None:
    data = path.read_bytes()
    at %= len(data)
    assert_sound(data[:at] + put + data[at + taken :], path)


@SETTINGS
@given(st.text(max_size=200))
def test_any_text_at_all(text: str) -> None:
    assert_sound(text, GOOD[0])


OPENERS = (
    *("sequence {", "parallel {", "if var.x {", "else {", "switch var.x {", "case 1 {"),
    *("foreach i in var.x {", "repeat 2 {", "while true max 2 {", "on_error {", "finally {"),
    *("set x = (", "set x = [", "set x = {", "action a = b.c(", 'set x = "${', '"""', "}", ")"),
    *("]", "workflow v {", "input {", "type T = list<", "default {", "#", '"'),
)


@SETTINGS
@given(st.lists(st.sampled_from(OPENERS), max_size=60), st.sampled_from([" ", "\n"]))
def test_brackets_of_any_kind_in_any_order(parts: list[str], between: str) -> None:
    assert_sound("workflow w {" + between + between.join(parts), GOOD[0])


def _noise(size: int, alphabet: str) -> str:
    return "".join(Random(size).choices(alphabet, k=size))


ALPHABETS = {
    "letters": "abcdefgh \n",
    "signs": '{}()[]<>=:,.?|+-*%/"$#\\ \n',
    "all": "".join(map(chr, range(1, 0x250))),
    "quotes": '"\\\n${}',
    "brackets": "({[<\n",
    "digits": "0123456789.eE-_",
}


@pytest.mark.parametrize("kind", ALPHABETS)
def test_noise_takes_steps_by_its_size(kind: str) -> None:
    def steps(size: int) -> int:
        text = _noise(size, ALPHABETS[kind])
        return calls(lambda: render_text(check_text(text).diagnostics))

    small = max(steps(2_000), 2_000)
    assert steps(20_000) <= 12 * small


@pytest.mark.parametrize("kind", ALPHABETS)
def test_100_kb_of_noise_is_refused(kind: str) -> None:
    assert_sound(_noise(100_000, ALPHABETS[kind]), GOOD[0])


@pytest.mark.parametrize(
    "broken",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("{", "", 3),
        lambda text: text.replace(" ", "\x00", 9),
        lambda _text: "\x1b]0;title\x07" * 50,
    ],
    ids=["half", "braces", "nul", "terminal"],
)
@pytest.mark.parametrize("command", ["check", "fmt", "graph", "compile", "run"])
def test_each_command_ends_with_1_and_no_traceback(
    broken: Callable[[str], str],
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.wf").write_text(broken(GOOD[1].read_text(encoding="utf-8")), encoding="utf-8")
    assert main([command, "x.wf"]) == 1
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err + shown.out
    assert not set(shown.err + shown.out) & set("\x00\x07\x1b")
    assert "error[WF" in shown.err

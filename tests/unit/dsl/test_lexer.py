"""Where words, comments and lines end."""

from __future__ import annotations

from itertools import product

import pytest

from dsl.lexer import Lexer
from dsl.parser import parse_text
from dsl.table import load_table

LITERALS = load_table().literals
KEYWORDS = sorted(word for word in LITERALS if word.isidentifier())
TEXT = 'workflow w {\n  set a = "x" # } ${ "\n\n  if var.a == 1 {\n    set b = 2\n  }\n}\n'


def types(text: str) -> list[str]:
    return [token.type for token in Lexer(text, LITERALS, lambda *_found: None).run()]


@pytest.mark.parametrize("word", KEYWORDS)
def test_a_keyword_that_goes_on_is_a_name(word: str) -> None:
    for suffix in ("s", "_", "8", "In", "_if", *KEYWORDS[::7]):
        assert types(f"{word}{suffix} ") in (["NAME", "$END"], [word + suffix, "$END"])
        assert types(f"_{word}") == ["NAME", "$END"]


@pytest.mark.parametrize("text", ['"# no comment"', '"""\n# none\n"""', '"}" # "'])
def test_a_sign_of_comments_in_a_string_is_text(text: str) -> None:
    assert types(text) == ["STRING", "$END"]


@pytest.mark.parametrize("comment", ['# } ) ]"', "# ${ {", '# """', "# // /* --"])
def test_signs_in_a_comment_mean_nothing(comment: str) -> None:
    result = parse_text(f"workflow w {{ {comment}\n  set a = 1 {comment}\n}} {comment}", "t")
    assert result.diagnostics == ()


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_other_line_ends_give_the_same_tree_and_places(line_end: str) -> None:
    plain, other = parse_text(TEXT, "t"), parse_text(TEXT.replace("\n", line_end), "t")
    assert other.file == plain.file
    assert other.source.text == plain.source.text


def test_line_ends_may_be_mixed() -> None:
    pieces = TEXT.split("\n")
    mixed = "".join(a + b for a, b in zip(pieces, ["\r\n", "\r", "\n"] * 3, strict=False))
    assert parse_text(mixed, "t").file == parse_text(TEXT, "t").file


def test_space_and_comments_of_any_kind_part_tokens() -> None:
    for before, after in product((" ", "\t", "\f", "\n", "# c\n", "\n#\n \t"), repeat=2):
        assert types(f"set{before}a{after}=") == ["set", "NAME", "=", "$END"]


def test_the_first_token_of_a_line_knows_it() -> None:
    tokens = Lexer("a b # c\nd\n# e\n\n(f\n) 1", LITERALS, lambda *_found: None).run()
    assert [t.text for t in tokens if t.first] == ["a", "d", "(", ")", ""]

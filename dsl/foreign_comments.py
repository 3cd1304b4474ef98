"""Comments as other languages write them: `// …`, `-- …` and `/* … */`.

They are found on the tokens: what stands in a comment is prose, and each of its words would be a
fault of its own. A `//` or `--` with an operand on either side is left alone, for it may be
arithmetic. The parser drops those of them again that the grammar takes, such as a `//` whose right
side stands on the next line.
"""

from __future__ import annotations

import re

from dsl.expected import ROOT_WORDS
from dsl.source import Span
from dsl.tokens import Token

_MAYBE = re.compile(r"//|--|/\*")
_OPERAND_ENDS = ROOT_WORDS | {"NAME", "INT", "DECIMAL", "STRING", "TEMPLATE_END", ")", "]"}
_OPERAND_STARTS = frozenset(
    ("INT", "DECIMAL", "STRING", "TEMPLATE_START", "(", "[", "{", "${", "-")
)
_JOINING_WORDS = frozenset(("and", "or", "in"))


def foreign_comments(text: str, tokens: list[Token]) -> list[Span]:
    """Returns the comments, in order; `tokens` may hold tokens that stand inside them."""
    found: list[Span] = []
    if not _MAYBE.search(text):
        return found
    end = 0
    for k, token in enumerate(tokens):
        if token.start < end or token.inside:
            continue
        if text.startswith("/*", token.start) and token.type == "//":
            close = text.find("*/", token.start + 2)
            end = len(text) if close < 0 else close + 2
        elif _begins_line_comment(text, tokens, k):
            newline = text.find("\n", token.start)
            end = len(text) if newline < 0 else newline
        else:
            continue
        found.append(Span(token.start, end))
    return found


def without(tokens: list[Token], comments: list[Span]) -> list[Token]:
    """Returns the tokens that stand outside the comments."""
    kept: list[Token] = []
    ahead = iter(comments)
    comment = next(ahead, None)
    first = False
    for token in tokens:
        while comment is not None and token.start >= comment.end:
            comment = next(ahead, None)
        if comment is not None and token.start >= comment.start:
            first = first or token.first
            continue
        token.first = token.first or first
        first = False
        kept.append(token)
    return kept


def _begins_line_comment(text: str, tokens: list[Token], k: int) -> bool:
    token = tokens[k]
    if token.type == "//" and token.text == "//":
        return not (_ends_operand(tokens, k) and _starts_operand(tokens, k + 1))
    if token.type != "-" or not text.startswith("--", token.start):
        return False
    return token.first or not _starts_operand(tokens, k + 2)


def _ends_operand(tokens: list[Token], k: int) -> bool:
    """Whether an operand ends before token `k`. A `}` on an earlier line ends a body."""
    before = tokens[k - 1].type if k else ""
    return before in _OPERAND_ENDS or (before == "}" and not tokens[k].first)


def _starts_operand(tokens: list[Token], k: int) -> bool:
    """Whether token `k` begins an operand on the same line."""
    token, following = tokens[k], tokens[min(k + 1, len(tokens) - 1)]
    if token.first or token.broken:
        return False
    if token.type in ROOT_WORDS:
        word = following.text.isidentifier() and not following.first
        return not word or following.type in _JOINING_WORDS
    if token.type == "NAME":
        return following.type == "("
    return token.type in _OPERAND_STARTS

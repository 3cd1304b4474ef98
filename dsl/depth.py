"""Where a text first nests too deep: the bracket or prefix operator that begins the level beyond.

The machine knows that a limit is passed only when it reduces, from the inside out. A second look
at the tokens from the outside in finds the place an author would point at.
"""

from __future__ import annotations

from dsl.source import Span
from dsl.tokens import Token, opens_body

_OPENERS = frozenset(("(", "[", "{"))
_CLOSERS = frozenset((")", "]", "}"))
_OPERAND_ENDS = frozenset(
    ("NAME", "INT", "DECIMAL", "STRING", "TEMPLATE_END", ")", "]", "}", "true", "false", "null")
)
_BODY, _SWITCH, _BRACKET, _PREFIX, _ARGUMENTS = range(5)


def first_beyond(tokens: list[Token], most: int) -> Span | None:
    """Returns the place that opens level `most` + 1 of bodies or of one expression, if found."""
    open_: list[int] = []
    bodies = -1  # the body of the workflow itself is no level
    levels: list[int] = [0]  # of the expression at hand, and of those around it
    for i, token in enumerate(tokens):
        kind = _kind(tokens, i)
        if kind is not None:
            open_.append(kind)
            bodies += kind == _BODY
            if kind in (_BRACKET, _PREFIX):
                levels[-1] += 1
            else:
                levels.append(0)
        elif token.type in _CLOSERS:
            _drop_prefixes(open_, levels)
            closed = open_.pop() if open_ else _SWITCH
            bodies -= closed == _BODY
            if closed == _BRACKET:
                levels[-1] -= 1
            elif len(levels) > 1:
                levels.pop()
        if token.type in _OPERAND_ENDS:
            _drop_prefixes(open_, levels)
        if bodies > most or levels[-1] > most:
            return Span(token.start, token.end)
    return None


def _kind(tokens: list[Token], i: int) -> int | None:
    """What token `i` opens, if it opens anything."""
    token, before = tokens[i], tokens[i - 1].type if i else ""
    if token.type == "not" or (token.type == "-" and before not in _OPERAND_ENDS):
        return _PREFIX
    if token.type not in _OPENERS or token.inside:
        return None
    if token.type == "{" and opens_body(tokens, i):
        inner = tokens[i + 1].type if i + 1 < len(tokens) else ""
        return _SWITCH if inner in ("case", "default") else _BODY
    return _ARGUMENTS if before == "ACTION_NAME" else _BRACKET


def _drop_prefixes(open_: list[int], levels: list[int]) -> None:
    while open_ and open_[-1] == _PREFIX:
        open_.pop()
        levels[-1] -= 1

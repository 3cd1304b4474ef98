"""What the lexer hands to the parser: tokens, and how brackets pair up.

A token's `type` is the word or sign itself (`action`, `{`) or one of the declared terminals
(`NAME`, `STRING`, …). Brackets are paired before parsing, on the tokens alone, so that recovery
after a syntax error knows where the broken statement ends.
"""

from __future__ import annotations

from typing import Any

from dsl.quick_class import dataclass

# A `{` after one of these opens an object or an object type, never a body.
_VALUE_FOLLOWS = frozenset(
    (
        *("=", ":", ",", "(", "[", "<", "??", "or", "and", "not", "==", "!=", "<=", ">", ">="),
        *("in", "+", "-", "*", "//", "%", "correlate"),
    )
)
# Signs and words that a value follows.
_OPERAND_FOLLOWS = (_VALUE_FOLLOWS - {",", ":", "(", "[", "<", "correlate"}) | {"fail"}
# What stands behind the first word of a statement, and never behind a name that is a value.
_STATEMENT_FOLLOWS = frozenset(
    ("NAME", "=", "if", "{", "var", "ctx", "not", "INT", "STRING", "true", "false", "null")
)
_CONDITION_FOLLOWS = frozenset(("if", "while", "switch", "repeat", "in"))
# A name may follow, right before a body: there the words above are names, too.
_NAME_FOLLOWS = frozenset(("workflow", "as", "sequence", "parallel", "if", "while", "switch", ":"))
_OPENERS = {"(": ")", "[": "]", "{": "}", "${": "}", "TEMPLATE_START": "TEMPLATE_END"}
_CLOSERS = {")": "([", "]": "([", "}": "{${", "TEMPLATE_END": "TEMPLATE_START"}


@dataclass(slots=True)
class Token:
    """One token; `value` is the meaning of a literal.

    `first` says that it is the first on its line, `inside` that it stands in a placeholder of a
    string, `broken` that the lexer has already complained about it.
    """

    type: str
    text: str
    start: int
    end: int
    value: Any = None
    first: bool = False
    inside: bool = False
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Brackets:
    """`closer_of[i]` is the index of the token that closes opener `i`; openers without one are
    absent. `bodies` are the `{` that open a body. `suspect` is the opener that indentation says
    was never closed."""

    closer_of: dict[int, int]
    bodies: frozenset[int]
    suspect: int | None

    def lacking_value(self, tokens: list[Token]) -> frozenset[int]:
        """The tokens before which a value is missing, although they could begin one."""
        names = (i for i, token in enumerate(tokens) if token.first and token.type == "NAME")
        return frozenset(i for i in (*self.bodies, *names) if self._lacks_value(i, tokens))

    def _lacks_value(self, i: int, tokens: list[Token]) -> bool:
        """Whether a value should stand before token `i`, although the token could begin one: in
        `if { … }`, and in `set a =` with a line behind it that looks like a statement."""
        if i == 0:
            return False
        before, token = tokens[i - 1], tokens[i]
        if i in self.bodies and before.type in _CONDITION_FOLLOWS:
            return tokens[i - 2].type not in _NAME_FOLLOWS
        if token.type != "NAME" or not token.first or before.type not in _OPERAND_FOLLOWS:
            return False
        return tokens[i + 1].type in _STATEMENT_FOLLOWS or _is_dotted_call(tokens, i)


def _is_dotted_call(tokens: list[Token], i: int) -> bool:
    """Whether `shop.note(` begins at token `i`."""
    k = i
    while tokens[k + 1].type in (".", "-") and tokens[k + 1].start == tokens[k].end:
        k += 2
        if k + 1 >= len(tokens):
            return False
    return k > i and tokens[k + 1].type == "("


def pair_brackets(tokens: list[Token], text: str) -> Brackets:
    """Pairs brackets as well as broken text allows."""
    closer_of: dict[int, int] = {}
    bodies: set[int] = set()
    open_: list[int] = []
    suspect: int | None = None
    for i, token in enumerate(tokens):
        if token.type in _OPENERS:
            open_.append(i)
            if token.type == "{" and opens_body(tokens, i):
                bodies.add(i)
        elif token.type in _CLOSERS:
            if not open_ or _OPENERS[tokens[open_[-1]].type] != token.type:
                _drop_unclosed(tokens, open_, bodies, token.type)
            if open_ and _OPENERS[tokens[open_[-1]].type] == token.type:
                opener = open_.pop()
                closer_of[opener] = i
                if suspect is None and _looks_unclosed(text, tokens[opener], token):
                    suspect = opener
    return Brackets(closer_of, frozenset(bodies), suspect)


def opens_body(tokens: list[Token], i: int) -> bool:
    """Whether the `{` at `i` opens a body, rather than an object or an object type."""
    before = tokens[i - 1].type if i else ""
    if before == "in":
        # `foreach item in {`: no object can be walked over, so the collection is missing.
        return any(token.type == "foreach" for token in tokens[max(0, i - 7) : i - 1])
    return before not in _VALUE_FOLLOWS


def _drop_unclosed(tokens: list[Token], open_: list[int], bodies: set[int], closer: str) -> None:
    """A `}` ends parentheses left open in its body; a `)` ends objects left open inside it."""
    kinds = [tokens[i].type for i in open_[-8:]]
    wanted = [kind for kind, ends in _OPENERS.items() if ends == closer]
    if not any(kind in wanted for kind in kinds):
        return
    while tokens[open_[-1]].type not in wanted:
        if open_[-1] in bodies:
            return
        open_.pop()


def _looks_unclosed(text: str, opener: Token, closer: Token) -> bool:
    """A closer that starts its line left of the line of its opener belongs to an outer one."""
    if not closer.first:
        return False
    return _indent(text, closer.start) < _indent(text, opener.start)


def _indent(text: str, offset: int) -> int:
    start = text.rfind("\n", 0, offset) + 1
    line = text[start : offset + 1]
    return len(line) - len(line.lstrip(" \t"))

"""Says in the author's words what could have stood at a place, and what was found there.

Nothing internal (the names of terminals or rules) may pass through here into a message.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from dsl.plain import plain
from dsl.tokens import Token

STATEMENT_WORDS = frozenset(
    (
        "action",
        "sequence",
        "parallel",
        "if",
        "switch",
        "repeat",
        "while",
        "foreach",
        "wait_event",
        "set",
        "fail",
        "sleep",
    )
)
_BODY_WORDS = STATEMENT_WORDS | {"var", "collect", "description", "timeout"}
_VALUE_STARTS = frozenset(("INT", "DECIMAL", "true", "null"))
OPERATORS = frozenset(
    ("??", "or", "and", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "//", "%", ".", "[")
)
ROOT_WORDS = frozenset(("var", "ctx", "out", "code", "event"))
ACTION_ATTRIBUTES = frozenset(
    (
        "retry",
        "lease",
        "priority",
        "delay",
        "timeout",
        "max_per_worker",
        "max_concurrent",
        "rate_per_minute",
        "max_deliveries",
        "affinity_key_field",
        "exclusive_worker",
        "prefer_previous_worker",
        "prefer_continue_group",
        "require_previous_worker",
        "idempotent",
    )
)
HEAD_ATTRIBUTES = frozenset(
    (
        *("timeout", "limit", "join", "keep_going", "max", "keep", "parallel", "batch"),
        *("tolerate", "reuse"),
    )
)
_NAME_SIGN = frozenset(("NAME", "import"))
_PHRASES = {
    "NAME": "a name",
    "ACTION_NAME": "the name of an action",
    "INT": "an integer",
    "DECIMAL": "a number",
    "DURATION": "a duration such as 30s",
    "STRING": "a string",
    "TEMPLATE_END": "the end of the string",
    "$END": "the end of the file",
}
HIDDEN = frozenset(("PIECE", "TEMPLATE_START", "TEMPLATE_END", "${"))
_MOST_ALTERNATIVES = 8
_LONGEST_FOUND = 40


def phrase_expected(accepted: AbstractSet[str]) -> str:
    """Returns a phrase for a set of acceptable token types, such as "a name or `{`"."""
    if accepted >= _VALUE_STARTS:
        return "a value"
    rest = set(accepted)
    phrases: list[str] = []
    if rest >= STATEMENT_WORDS and not rest >= _NAME_SIGN:
        phrases += ["a declaration", "a statement"] if "input" in rest else ["a statement"]
        rest -= _BODY_WORDS | {"type", "input", "output", "on"}
    if rest >= ACTION_ATTRIBUTES and not rest >= _NAME_SIGN:
        phrases.append("an attribute such as `timeout` or `retry`")
        rest -= ACTION_ATTRIBUTES
    if rest >= HEAD_ATTRIBUTES and not rest >= _NAME_SIGN:
        phrases.append("an attribute such as `timeout` or `max`")
        rest -= HEAD_ATTRIBUTES
    if rest >= ROOT_WORDS and not rest >= _NAME_SIGN:
        phrases.append("a reference")
        rest -= ROOT_WORDS | {"${"}
    if rest >= _NAME_SIGN:
        phrases.append("a type" if {"STRING", "{"} <= rest and ":" not in rest else "a name")
        if phrases[-1] == "a type":
            rest -= {"STRING", "{"}
        rest = {t for t in rest if not (t.isidentifier() and t != "STRING")}
    if len(rest) > len(rest & OPERATORS) or phrases:
        rest -= OPERATORS
    elif rest & {"+", "=="}:
        return "an operator"
    phrases += [type_phrase(t) for t in sorted(rest - HIDDEN, key=_rank)]
    if not phrases:
        return "something else"
    phrases = list(dict.fromkeys(phrases))
    if len(phrases) > _MOST_ALTERNATIVES:
        phrases = [*phrases[:_MOST_ALTERNATIVES], "…"]
    return _either(phrases)


def type_phrase(token_type: str) -> str:
    """Returns what a token type is called: "a name", "`{`", …"""
    return _PHRASES.get(token_type) or f"`{token_type}`"


def phrase_found(token: Token) -> str:
    """Returns what to call the token that was found."""
    if token.type == "$END":
        return "the end of the file"
    if token.type in ("TEMPLATE_START", "TEMPLATE_END", "PIECE", "STRING"):
        return "a string" if token.type != "TEMPLATE_END" else "the end of the string"
    text = plain(token.text)
    if len(text) > _LONGEST_FOUND:
        text = text[:_LONGEST_FOUND] + "…"
    return f'"{text}"' if token.type in ("NAME", "ACTION_NAME") else f"`{text}`"


def _rank(token_type: str) -> tuple[int, str]:
    """Names and literals first, then words, then signs."""
    if token_type in _PHRASES:
        return (0, token_type)
    return (1 if token_type.isidentifier() else 2, token_type)


def _either(phrases: list[str]) -> str:
    if len(phrases) == 1:
        return phrases[0]
    if phrases[-1] == "…":
        return ", ".join(phrases)
    return ", ".join(phrases[:-1]) + " or " + phrases[-1]

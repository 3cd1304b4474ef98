"""Text to tokens.

Words become keywords wherever they stand, except where only a name can be meant (after a dot,
and operator words before `:` or `=`); the grammar takes keywords as names where that is clear.
Action names, which may hold `-`, are recognised by what stands before them. Each fault in a
string or a number is reported here, once, and still yields a token, so that parsing goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dsl import codes
from dsl.literals import duration_milliseconds, is_duration, meant_duration, number_value
from dsl.plain import plain
from dsl.strings import StringLexer
from dsl.tokens import Token

Report = Callable[[codes.Code, str, int, int, str | None], None]

MAX_BRACKETS = 2_000  # far above what the limits of nesting allow; keeps memory small

_SHORT = 15  # digits of an integer that is storable for sure
_BEGINS_SPACE = frozenset(" \t\n\r\f#")
_BRACKETS = frozenset("{}()[]")
_SINGLE = frozenset("{}()[]:,.+-*%")  # signs that begin no longer one
# What most of a text is made of: space, then a word, a sign that begins no longer one, or a number
# of so few digits that nothing can be wrong with it.
_COMMON = re.compile(
    r"((?:[ \t\n\r\f]+|#[^\n]*)*)"
    r"(?:([A-Za-z_]\w*)|([{}()\[\]:,.+*%-])|((?:0|[1-9][0-9]{0,14})(?![\w.])))?",
    re.DOTALL,
)
_SPACE = re.compile(r"(?:[ \t\n\r\f]+|#[^\n]*)+")
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"[0-9](?:[eE][+-](?=[0-9])|[0-9A-Za-z_]|\.(?=[0-9]))*")
_SIGN = re.compile(r"\?\?|==|!=|<=|>=|//|\$\{|[{}()\[\]<>=:,.?|+\-*%]")
_ACTION_NAME = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*", re.ASCII)
_ACTION_CALL = re.compile(_ACTION_NAME.pattern + r"[ \t]*\(", re.ASCII)
_NAME_BEFORE = re.compile(r"\s*(?:\??\s*:|=(?!=))")
_OPERATOR_WORDS = frozenset(("and", "or", "not", "in", "true", "false", "null"))
_OPERAND_ENDS = frozenset(
    ("NAME", "INT", "DECIMAL", "STRING", "TEMPLATE_END", ")", "]", "}", "true", "false", "null")
)
_SINGLE_QUOTED = re.compile(r"'[^'\n]*'?")
_STRAY = re.compile(r"[^\w\s\"#{}()\[\]<>=:,.?|+*%$/!&;'-]+|&&|\|\||.", re.DOTALL)
# Signs of other languages: what was meant by them.
_MEANT = {"&&": "and", "&": "and", "||": "or", "!": "not", "/": "//"}
_STRAY_HINTS = {
    "/": "integers divide with `//`",
    ";": "nothing needs to end a statement: leave it out",
    "`": 'strings are written with double quotes: "…"',
    "$": "a reference is written `var.name`, or `${var.name}` in a string",
}


class Lexer:
    """Lexes one text. `report` is called with code, message, start, end and hint."""

    def __init__(self, text: str, literals: frozenset[str], report: Report) -> None:
        self.text = text
        self.literals = literals
        self.report = report
        self.tokens: list[Token] = []
        self.too_deep: int | None = None
        self._depth = 0
        self._after_stray = False
        self._strings = StringLexer(self)

    def run(self) -> list[Token]:
        """Returns all tokens, the last of them `$END`."""
        text, tokens, literals, common = self.text, self.tokens, self.literals, _COMMON.match
        pos, length = 0, len(text)
        while pos < length and self.too_deep is None:
            match = common(text, pos)
            assert match is not None  # it takes nothing, too
            pos = match.end()
            kind = match.lastindex or 1
            if kind == 1:
                if pos < length:
                    pos = self.next_token(pos, inside=False)
                continue
            word, start, value = match[kind], match.start(kind), None
            type_ = word
            if kind == 3:
                if word in _BRACKETS:
                    self._count_brackets(word, start)
            elif kind == 4:
                type_, value = "INT", int(word)
            elif not word.isascii() or (tokens and tokens[-1].type == "="):
                pos = self.next_token(start, inside=False)
                continue
            else:
                type_ = self._word_type(word, start, pos) if word in literals else "NAME"
            if self._after_stray or not tokens:
                first, broken = self._flags(start)
                tokens.append(Token(type_, word, start, pos, value, first, False, broken))
            else:
                tokens.append(Token(type_, word, start, pos, value, "\n" in match[1]))
        tokens.append(Token("$END", "", length, length, first=True))
        return tokens

    def _flags(self, start: int) -> tuple[bool, bool]:
        """Whether the token that starts here is the first on its line, and whether it is broken."""
        last = self.tokens[-1].end if self.tokens else 0
        first = not self.tokens or "\n" in self.text[last:start]
        broken, self._after_stray = self._after_stray and not first, False
        return first, broken

    def next_token(self, pos: int, inside: bool) -> int:
        """Lexes one token (or a stretch of space) at `pos` and returns where it ends."""
        text = self.text
        char = text[pos]
        if char in _BEGINS_SPACE:
            match = _SPACE.match(text, pos)
            assert match is not None
            return match.end()
        if char in _SINGLE:
            self._count_brackets(char, pos)
            return self.add(char, pos, pos + 1, inside=inside)
        if match := _WORD.match(text, pos):
            return self._word(match, inside)
        if match := _NUMBER.match(text, pos):
            return self._number(match, inside)
        if char == '"':
            return self._strings.lex(pos)
        if text.startswith("||", pos):
            return self._stray("||", pos)
        if match := _SIGN.match(text, pos):
            self._count_brackets(match.group(), pos)
            return self.add(match.group(), pos, match.end(), inside=inside)
        return self._unknown(pos)

    def add(
        self,
        type_: str,
        start: int,
        end: int,
        *,
        value: object = None,
        inside: bool = False,
        broken: bool = False,
    ) -> int:
        """Appends a token and returns its end."""
        tokens = self.tokens
        last = tokens[-1].end if tokens else 0
        first = not tokens or (last < start and "\n" in self.text[last:start])
        text = self.text[start:end]
        broken = broken or (self._after_stray and not first)
        self._after_stray = False
        tokens.append(Token(type_, text, start, end, value, first, inside, broken))
        return end

    def _word(self, match: re.Match[str], inside: bool) -> int:
        start, end, word = match.start(), match.end(), match.group()
        if self._action_name_follows(start):
            whole = _ACTION_NAME.match(self.text, start)
            if whole and word.isascii():
                return self.add("ACTION_NAME", start, whole.end())
        if not word.isascii():
            self.report(
                codes.UNEXPECTED,
                f'"{plain(word)}" is not a name',
                start,
                end,
                "names are made of the letters a-z and A-Z, digits and `_`",
            )
            return self.add("NAME", start, end, inside=inside, broken=True)
        return self.add(self._word_type(word, start, end), start, end, inside=inside)

    def _word_type(self, word: str, start: int, end: int) -> str:
        if word not in self.literals:
            return "NAME"
        last = self.tokens[-1] if self.tokens else None
        if last and last.type == "." and "\n" not in self.text[last.end : start]:
            return "NAME"
        if word in _OPERATOR_WORDS and _NAME_BEFORE.match(self.text, end):
            return "NAME"
        return word

    def _action_name_follows(self, start: int) -> bool:
        """Whether the tokens so far end in `action KEY =`, or in what was meant to be that."""
        tokens = self.tokens
        if len(tokens) < 3 or tokens[-1].type != "=" or not tokens[-2].text.isidentifier():
            return False
        if tokens[-3].type == "action":
            return True
        misspelt = tokens[-3].type == "NAME" and tokens[-3].first
        if misspelt and len(tokens) > 3 and tokens[-4].type == ".":
            return False  # a step of a reference, whose dot ends the line before
        return misspelt and _ACTION_CALL.match(self.text, start) is not None

    def _number(self, match: re.Match[str], inside: bool) -> int:
        start, end, written = match.start(), match.end(), match.group()
        if len(written) <= _SHORT and written.isdigit() and (written[0] != "0" or end - start == 1):
            return self.add("INT", start, end, value=int(written), inside=inside)
        if is_duration(written):
            found = duration_milliseconds(written)
            if isinstance(found, int):
                return self.add("DURATION", start, end, value=found)
            self.report(codes.BAD_LITERAL, found, start, end, None)
            return self.add("DURATION", start, end, value=0, broken=True)
        value = number_value(written, self._minus_stands_before())
        if isinstance(value, str) and (meant := meant_duration(written)):
            message = "durations are written like 500ms, 30s or 1h30m"
            self.report(codes.BAD_LITERAL, message, start, end, f"write `{meant}`")
            return self.add("DURATION", start, end, value=0, inside=inside, broken=True)
        if isinstance(value, str):
            self.report(codes.BAD_LITERAL, value, start, end, None)
            return self.add("INT", start, end, value=0, inside=inside, broken=True)
        type_ = "INT" if isinstance(value, int) else "DECIMAL"
        return self.add(type_, start, end, value=value, inside=inside)

    def _minus_stands_before(self) -> bool:
        """Whether the last token is a sign rather than a subtraction."""
        tokens = self.tokens
        if not tokens or tokens[-1].type != "-":
            return False
        return len(tokens) < 2 or tokens[-2].type not in _OPERAND_ENDS

    def _count_brackets(self, sign: str, pos: int) -> None:
        if sign in ("(", "[", "{"):
            self._depth += 1
            if self._depth > MAX_BRACKETS:
                self.too_deep = pos
        elif sign in (")", "]", "}"):
            self._depth = max(0, self._depth - 1)

    def _unknown(self, pos: int) -> int:
        if match := _SINGLE_QUOTED.match(self.text, pos):
            hint = 'strings are written with double quotes: "…"'
            self.report(codes.UNEXPECTED, "unexpected `'`", pos, match.end(), hint)
            return self.add("STRING", pos, match.end(), value="", broken=True)
        match = _STRAY.match(self.text, pos)
        assert match is not None  # its last alternative takes any character
        return self._stray(match.group(), pos)

    def _stray(self, text: str, pos: int) -> int:
        shown = plain(text if len(text) <= 12 else text[:12] + "…")
        end = pos + len(text)
        meant = _MEANT.get(text)
        hint = _STRAY_HINTS.get(text) or (f"write `{meant}`" if meant else None)
        self.report(codes.UNEXPECTED, f"unexpected `{shown}`", pos, end, hint)
        if meant:
            return self.add(meant, pos, end, broken=True)
        self._after_stray = True
        return end

"""Strings: escapes, placeholders, block strings.

A string without placeholders is one STRING token. With placeholders it is TEMPLATE_START, then
PIECE tokens and `${` reference `}`, then TEMPLATE_END; references inside are lexed like any other
text, but for `\\"`, which stands for the quote of an odd key.

A block string drops the line end after its opening quotes, and from each line the indentation that
all its lines share, that of the closing quotes included. Escapes and placeholders work as in any
string.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsl import codes

if TYPE_CHECKING:
    from dsl.lexer import Lexer

_RUN = re.compile('[^"\\\\\n$\x00-\x08\x0b-\x1f\ud800-\udfff]+')
_ESCAPES = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}
_UNICODE = re.compile(r"\\u([0-9A-Fa-f]{4})")
_PAIR = re.compile(r"\\u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})")
_BLOCK_BODY = re.compile(r'(?:[^"\\]|\\.|"(?!""))*', re.DOTALL)
_TAIL = re.compile(r"[)\]}\s,]*\{?[ \t]*\Z")
_INDENT = re.compile(r"[ \t]*")
FIRST_LINE = re.compile(r"[ \t]*\n")


class StringLexer:
    """The part of a Lexer that reads from an opening quote to its end."""

    def __init__(self, lexer: Lexer) -> None:
        self.lexer = lexer
        self.text = lexer.text

    def lex(self, pos: int) -> int:
        """Lexes the string that opens at `pos` and returns its end."""
        if self.text.startswith('"""', pos):
            return self._block(pos)
        return self._line(pos)

    def _line(self, pos: int) -> int:
        newline = self.text.find("\n", pos)
        limit = len(self.text) if newline < 0 else newline
        reader = _Reader(self, pos, pos + 1, limit, quote='"', indent=0)
        end = reader.run()
        if end is None:
            end = limit - len(_tail(self.text, pos + 1, limit))
            self.lexer.report(
                codes.UNTERMINATED_STRING,
                'the string has no closing `"`',
                pos,
                end,
                'a string ends on its line; longer text stands in """ … """',
            )
            self._restart(reader.first_token)
            return self.lexer.add("STRING", pos, end, value="", broken=True)
        return end

    def _block(self, pos: int) -> int:
        match = _BLOCK_BODY.match(self.text, pos + 3)
        end = match.end() if match else pos + 3
        if not self.text.startswith('"""', end):
            self.lexer.report(
                codes.UNTERMINATED_STRING,
                'the block string has no closing `"""`',
                pos,
                pos + 3,
                None,
            )
            return self.lexer.add("STRING", pos, len(self.text), value="", broken=True)
        start = pos + 3
        indent = 0
        if first := FIRST_LINE.match(self.text, start):
            indent = shared_indent(self.text[first.end() : end])
            start = skip_indent(self.text, first.end(), indent)
        _Reader(self, pos, start, end, quote='"""', indent=indent).run()
        return end + 3

    def _restart(self, first_token: int) -> None:
        del self.lexer.tokens[first_token:]


class _Reader:
    """Reads the inside of one string up to its quote; `limit` is where it must have ended."""

    def __init__(
        self, owner: StringLexer, opened: int, start: int, limit: int, *, quote: str, indent: int
    ) -> None:
        self.lexer = owner.lexer
        self.text = owner.text
        self.opened = opened
        self.pos = start
        self.limit = limit
        self.quote = quote
        self.indent = indent
        self.first_token = len(self.lexer.tokens)
        self.buffer: list[str] = []
        self.piece_start = start
        self.templated = False
        self.broken = False

    def run(self) -> int | None:
        """Adds the tokens and returns the end, or None when the quote is not there."""
        while self.pos < self.limit:
            char = self.text[self.pos]
            if char == '"' and self.quote == '"':
                break
            self._step(char)
        if self.quote == '"' and (self.pos >= self.limit or self.text[self.pos] != '"'):
            return None
        self.pos = self.pos if self.quote == '"' else self.limit
        return self._finish(self.pos + len(self.quote))

    def _finish(self, end: int) -> int:
        if not self.templated:
            value = "".join(self.buffer)
            return self.lexer.add("STRING", self.opened, end, value=value, broken=self.broken)
        self._flush(self.pos)
        return self.lexer.add("TEMPLATE_END", self.pos, end)

    def _step(self, char: str) -> None:
        if run := _RUN.match(self.text, self.pos, self.limit):
            self.buffer.append(run.group())
            self.pos = run.end()
        elif char == "\\":
            self._escape()
        elif char == "$":
            self._dollar()
        elif char == "\n":
            self.buffer.append("\n")
            self.pos = skip_indent(self.text, self.pos + 1, self.indent)
        elif char == '"':
            self._take(1, '"')
        else:
            self._fault("this character must be written as an escape", 1)

    def _take(self, length: int, meaning: str) -> None:
        self.buffer.append(meaning)
        self.pos += length

    def _fault(self, message: str, length: int, hint: str | None = None) -> None:
        self.lexer.report(codes.BAD_STRING, message, self.pos, self.pos + length, hint)
        self.broken = True
        self.pos += length

    def _escape(self) -> None:
        following = self.text[self.pos + 1 : min(self.pos + 2, self.limit)]
        if following in _ESCAPES and following:
            self._take(2, _ESCAPES[following])
        elif pair := _PAIR.match(self.text, self.pos, self.limit):
            self._take(12, _join_pair(pair.group(1), pair.group(2)))
        elif code := _UNICODE.match(self.text, self.pos, self.limit):
            self._code_point(int(code.group(1), 16))
        elif following == "u":
            self._fault("`\\u` takes four hexadecimal digits", 2)
        else:
            hint = 'escapes are \\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX'
            self._fault("unknown escape", 1 + len(following.strip("\n")), hint)

    def _code_point(self, code: int) -> None:
        if code == 0 or 0xD800 <= code <= 0xDFFF:
            what = "U+0000" if code == 0 else "half of a surrogate pair"
            self._fault(f"{what} cannot be stored", 6)
        else:
            self._take(6, chr(code))

    def _dollar(self) -> None:
        if self.text.startswith("$${", self.pos):
            self._take(3, "${")
        elif self.text.startswith("${", self.pos):
            self._placeholder()
        else:
            self._take(1, "$")

    def _placeholder(self) -> None:
        end = self._placeholder_end()
        if end is None:
            self._fault("the placeholder has no closing `}`", 2, "a literal `${` is written `$${`")
            return
        if not self.templated:
            self.templated = True
            self.lexer.add("TEMPLATE_START", self.opened, self.opened + len(self.quote))
        self._flush(self.pos)
        self.lexer.add("${", self.pos, self.pos + 2, inside=True)
        self.pos += 2
        while self.pos < end:
            self.pos = self._inner_token(end)
        self.lexer.add("}", end, end + 1, inside=True)
        self.pos = self.piece_start = end + 1

    def _placeholder_end(self) -> int | None:
        """Finds the `}` of the placeholder at `pos`, looking past quoted keys."""
        pos = self.pos + 2
        while pos < self.limit:
            char = self.text[pos]
            if char == "}":
                return pos
            if (quote := self._key_quote(pos)) is not None:
                close = self.text.find(quote, pos + len(quote), self.limit)
                if close < 0:
                    return None
                pos = close + len(quote)
                continue
            if char in '"\n' or self.text.startswith("${", pos):
                return None
            pos += 1
        return None

    def _key_quote(self, pos: int) -> str | None:
        if self.text.startswith('\\"', pos):
            return '\\"'
        return '"' if self.quote == '"""' and self.text[pos] == '"' else None

    def _inner_token(self, end: int) -> int:
        quote = self._key_quote(self.pos)
        if quote is None:
            if self.text[self.pos] == "#":
                self.lexer.report(codes.BAD_STRING, "unexpected `#`", self.pos, self.pos + 1, None)
                return self.pos + 1
            return min(self.lexer.next_token(self.pos, inside=True), end)
        start = self.pos + len(quote)
        close = self.text.find(quote, start, end)
        if close < 0:
            # A stray sign before it, such as a backslash, took the quote that opened the key.
            self.lexer.report(codes.BAD_STRING, 'unexpected `"`', self.pos, start, None)
            return start
        key = self.text[start:close]
        return self.lexer.add("STRING", self.pos, close + len(quote), value=key, inside=True)

    def _flush(self, end: int) -> None:
        if self.buffer:
            value = "".join(self.buffer)
            self.buffer.clear()
            self.lexer.add("PIECE", self.piece_start, end, value=value)


def _join_pair(high: str, low: str) -> str:
    return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)


def shared_indent(body: str) -> int:
    """The smallest indentation of the lines with text, and of the last, which ends in quotes."""
    lines = body.split("\n")
    widths = [len(line) - len(line.lstrip(" \t")) for line in lines if line.strip(" \t")]
    if not lines[-1].strip(" \t"):
        widths.append(len(lines[-1]))
    return min(widths, default=0)


def skip_indent(text: str, pos: int, indent: int) -> int:
    match = _INDENT.match(text, pos, pos + indent)
    return match.end() if match else pos


def _tail(text: str, start: int, limit: int) -> str:
    """The closing signs at the end of a line whose string was never closed."""
    match = _TAIL.search(text[start:limit])
    return match.group() if match else ""

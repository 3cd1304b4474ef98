"""Where the values of a JSON document stand in its text, by JSON pointer.

Only for text that a JSON parser has accepted: this one checks nothing. It does not recurse.
"""

from __future__ import annotations

import json
import re

from dsl.source import Span

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


def places(text: str) -> dict[str, Span]:
    """Returns the span of every value by its pointer; '' is the document."""
    found: dict[str, Span] = {}
    # What is open around the token: its pointer, where it starts, and the index of an array's
    # next item. `pointer` is that of the next value.
    opened: list[tuple[str, int, int]] = []
    pointer, is_key = "", False
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in "{[":
            opened.append((pointer, token.start(), 0 if word == "[" else -1))
            is_key = word == "{"
            pointer = f"{pointer}/0"
        elif word in "}]":
            own, start, _index = opened.pop()
            found[own] = Span(start, token.end())
        elif word == ",":
            own, start, index = opened.pop()
            index += 1 if index >= 0 else 0
            opened.append((own, start, index))
            is_key = index < 0
            pointer = f"{own}/{index}"
        elif is_key and word != ":":
            key = str(json.loads(word, strict=False)).replace("~", "~0").replace("/", "~1")
            pointer, is_key = f"{opened[-1][0]}/{key}", False
        elif word != ":":
            found[pointer] = token_span(token)
    return found


def token_span(token: re.Match[str]) -> Span:
    return Span(token.start(), token.end())

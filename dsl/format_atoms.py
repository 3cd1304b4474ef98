"""The pieces of a text that a layout may move but never change: atoms, and what stands between.

An atom is a token, or a whole string with its placeholders. Comments belong to the atom after
them; a token that the canonical text leaves out hands its comments on. The atom already has
the text it will have, so widths can be summed before a line is made.
"""

from __future__ import annotations

import re

from dsl.format_marks import Marks
from dsl.quick_class import dataclass, field
from dsl.strings import FIRST_LINE, shared_indent, skip_indent
from dsl.tokens import Token

_QUOTES = '"' * 3
_COMMENT = re.compile(r"#[^\n]*")


@dataclass(slots=True)
class Comment:
    """`lines_before` counts the line ends between it and what comes before it."""

    text: str
    lines_before: int


@dataclass(slots=True)
class Atom:
    """`start` and `end` are places in the source; `text` may span lines only in a block string.

    `lines_before` counts the line ends right before it, after the last comment; `broken` says
    that any line end stands between it and the atom before, `after_comma` that a comma does which
    the layout will write itself.
    """

    type: str
    text: str
    start: int
    end: int
    comments: list[Comment] = field(default_factory=list)
    lines_before: int = 0
    broken: bool = False
    after_comma: bool = False

    @property
    def tall(self) -> bool:
        return "\n" in self.text

    @property
    def width(self) -> int:
        """The columns of its first line, without the blanks that a block string loses there."""
        first, tall, _ = self.text.partition("\n")
        return len(_QUOTES) if tall and first.rstrip() == _QUOTES else len(first)


def make_atoms(text: str, tokens: list[Token], marks: Marks) -> list[Atom]:
    """Returns the atoms of a valid text, the last of them its end."""
    atoms: list[Atom] = []
    gap, end, i, comma = "", 0, 0, False
    while i < len(tokens):
        token = tokens[i]
        gap += text[end : token.start]
        last = _end_of_string(tokens, i)
        end = tokens[last].end
        if token.start not in marks.dropped:
            atom = Atom(token.type, _text_of(text, tokens, i, last), token.start, end)
            _take_gap(atom, gap)
            atom.after_comma = comma
            atoms.append(atom)
            gap, comma = "", False
        elif token.type == ",":
            comma = True
        i = last + 1
    return atoms


def _end_of_string(tokens: list[Token], i: int) -> int:
    if tokens[i].type == "TEMPLATE_START":
        while tokens[i].type != "TEMPLATE_END":
            i += 1
    return i


def _text_of(text: str, tokens: list[Token], first: int, last: int) -> str:
    if first == last:
        return text[tokens[first].start : tokens[first].end]
    parts: list[str] = []
    done = tokens[first].start
    for token in tokens[first : last + 1]:
        if token.inside:
            # Placeholders hold no blanks; what stands between two of their tokens is space.
            parts.append(text[done : token.start] if token.type == "${" else "")
            parts.append(text[token.start : token.end])
            done = token.end
    parts.append(text[done : tokens[last].end])
    return "".join(parts)


def _take_gap(atom: Atom, gap: str) -> None:
    end = 0
    for match in _COMMENT.finditer(gap):
        lines = gap.count("\n", end, match.start())
        atom.comments.append(Comment(match.group().rstrip(), lines))
        end = match.end()
    atom.lines_before = gap.count("\n", end)
    atom.broken = "\n" in gap


def indent_block(text: str, indent: int) -> str:
    """Returns a block string as it reads when its lines stand at `indent`, meaning the same.

    A block string whose text begins right after the quotes has no indentation to lose.
    """
    match = FIRST_LINE.match(text, 3)
    if match is None:
        return text
    body = text[match.end() : -3]
    width = shared_indent(body)
    lines = [line[skip_indent(line, 0, width) :] for line in body.split("\n")]
    margin = " " * indent
    shown = [margin + line if line else "" for line in lines[:-1]]
    return "\n".join((_QUOTES, *shown, margin + lines[-1] + _QUOTES))

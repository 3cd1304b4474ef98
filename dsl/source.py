"""Source text and places in it.

A `Span` is a half-open range of code-point offsets into one `SourceFile`; lines and columns are
computed only when somebody wants to read them. Offsets count code points of the decoded text,
after a byte-order mark is dropped and every line end has become LF.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from dsl.quick_class import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range `[start, end)` of code-point offsets."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Position:
    """A place for people: line and columns count from 1, the offset from 0."""

    line: int
    column: int
    utf16_column: int
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class SourceFile:
    """One decoded `.wf` file. `name` is what messages show, usually the path as it was given."""

    name: str
    text: str
    _line_starts: list[int] = field(init=False, repr=False)
    _ascii: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        object.__setattr__(self, "_line_starts", starts)
        object.__setattr__(self, "_ascii", self.text.isascii())

    def position(self, offset: int) -> Position:
        """Returns the line and columns of a code-point offset (clamped to the text)."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._line_starts, offset)
        start = self._line_starts[line - 1]
        column = offset - start + 1
        if self._ascii:
            return Position(line, column, column, offset)
        before = self.text[start:offset]
        utf16 = len(before.encode("utf-16-le", "surrogatepass")) // 2
        return Position(line, column, utf16 + 1, offset)

    def line_text(self, line: int) -> str:
        """Returns line `line` (from 1) without its line end."""
        return self.text[self._line_starts[line - 1] : self.line_end(line)]

    def line_end(self, line: int) -> int:
        """Returns the offset at which line `line` (from 1) ends, before its line end."""
        following = line < len(self._line_starts)
        return self._line_starts[line] - 1 if following else len(self.text)

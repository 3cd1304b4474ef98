"""The registry of diagnostic codes: what each means, and how severe it is.

This file holds the codes of reading and syntax (`WF0nn`); the compiler's stand in
`compiler/codes.py`, in the same dataclass. A code is never given a second meaning.
"""

from __future__ import annotations

from dsl.diagnostics import Severity
from dsl.quick_class import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of finding. `title` is the heading of its section in docs/diagnostics.md."""

    code: str
    title: str
    severity: Severity = "error"


UNEXPECTED = Code("WF001", "unexpected text")
UNTERMINATED_STRING = Code("WF002", "string without an end")
MISSING_BRACE = Code("WF003", "missing closing bracket")
UNREADABLE = Code("WF004", "the file cannot be read")
BAD_STRING = Code("WF005", "bad escape or placeholder in a string")
BAD_LITERAL = Code("WF006", "bad number or duration")
TOO_DEEP = Code("WF007", "nesting deeper than 512 levels")
EMPTY_FILE = Code("WF008", "the file is empty")
LATE_HEAD = Code("WF009", "declaration after the first node")
RESERVED_WORD = Code("WF010", "word reserved for later")
MISPLACED = Code("WF011", "not allowed in this place")
GIVEN_TWICE = Code("WF012", "given twice")

SYNTAX_CODES: tuple[Code, ...] = (
    UNEXPECTED,
    UNTERMINATED_STRING,
    MISSING_BRACE,
    UNREADABLE,
    BAD_STRING,
    BAD_LITERAL,
    TOO_DEEP,
    EMPTY_FILE,
    LATE_HEAD,
    RESERVED_WORD,
    MISPLACED,
    GIVEN_TWICE,
)

"""A slip: something known that was written wrong, and how to go on as if it stood there right."""

from __future__ import annotations

from dsl import codes
from dsl.quick_class import dataclass
from dsl.source import Span
from dsl.tokens import Token


@dataclass(frozen=True, slots=True)
class Slip:
    """`drop` values are taken off the machine and tokens of the types `feed` put in; then parsing
    goes on at token `resume`, or after the statement when there is none. A slip without a message
    belongs to one that was reported."""

    message: str
    span: Span
    hint: str | None = None
    drop: int = 0
    feed: tuple[str, ...] = ()
    resume: int | None = None
    code: codes.Code = codes.UNEXPECTED


def span_of(token: Token) -> Span:
    return Span(token.start, token.end)

"""User errors are values: a `Diagnostic` says what was found, where, and what to do."""

from __future__ import annotations

from typing import Literal

from dsl.quick_class import dataclass
from dsl.source import SourceFile, Span

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A second place that belongs to the message, such as the first declaration of a name."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding. `message` is lower case without a full stop; `hint` is an action."""

    code: str
    severity: Severity
    message: str
    source: SourceFile
    span: Span
    hint: str | None = None
    labels: tuple[Label, ...] = ()

    @property
    def sort_key(self) -> tuple[str, int, int, str]:
        return (self.source.name, self.span.start, self.span.end, self.code)


def has_errors(diagnostics: tuple[Diagnostic, ...] | list[Diagnostic]) -> bool:
    """Returns whether any of the findings is an error."""
    return any(found.severity == "error" for found in diagnostics)


class InternalError(Exception):
    """A fault of wfsql itself, never of the user's file; the command exits with 70."""

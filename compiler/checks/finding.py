"""How a check makes a diagnostic: code and severity from the registry, source from the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compiler.model import Model
from dsl.codes import Code
from dsl.diagnostics import Diagnostic, Label
from dsl.source import SourceFile, Span

Check = Callable[[Model], Iterator[Diagnostic]]


def finding(
    place: Model | SourceFile,
    code: Code,
    span: Span,
    message: str,
    hint: str | None = None,
    first: Span | None = None,
    label: str = "first here",
) -> Diagnostic:
    """Returns a diagnostic in a file, or in the model's; `first` is an earlier declaration, or
    another place that `label` says something of."""
    labels = () if first is None else (Label(span=first, message=label),)
    return Diagnostic(
        code=code.code,
        severity=code.severity,
        message=message,
        source=place if isinstance(place, SourceFile) else place.source,
        span=span,
        hint=hint,
        labels=labels,
    )

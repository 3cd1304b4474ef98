"""Loads the handlers of several modules as one set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from local_runner.handlers import (
    HandlerError,
    Handlers,
    Result,
    TaskContext,
    load_handlers,
)


def load_all(references: Sequence[str]) -> Handlers | HandlerError:
    """Loads modules by dotted name or path; an action may have its handler in one of them only."""
    functions: dict[str, Callable[..., Any]] = {}
    homes: dict[str, str] = {}
    for reference in references:
        loaded = load_handlers(reference)
        if isinstance(loaded, HandlerError):
            return loaded
        if len(references) == 1:
            return loaded
        for name in loaded.names:
            if name in homes:
                return HandlerError(f'action "{name}" is in {homes[name]} and in {reference}')
            homes[name] = reference
            functions[name] = _passed_on(loaded, name)
    return Handlers.from_functions(functions)


def _passed_on(handlers: Handlers, name: str) -> Callable[..., Result]:
    def call(context: TaskContext, /, **arguments: Any) -> Result:
        outcome = handlers.invoke(name, arguments, context)
        return Result(outcome.code, outcome.output, outcome.message)

    return call

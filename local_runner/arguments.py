"""Arguments of handlers by their type hints, checked and made by pydantic.

pydantic is imported with the first call that needs it. A hint that cannot be resolved, or that
pydantic knows nothing of, leaves its argument as it came.
"""

from __future__ import annotations

import threading
import typing
from collections.abc import Callable
from typing import Any

from local_runner.values import JsonValue


class ArgumentTypes:
    """The hinted parameters of one function."""

    def __init__(self, function: Callable[..., Any], names: tuple[str, ...]) -> None:
        self._function = function
        self._names = names
        self._adapters: dict[str, Any] | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[ArgumentTypes], tuple[Callable[..., Any], tuple[str, ...]]]:
        return ArgumentTypes, (self._function, self._names)

    def convert(self, given: dict[str, JsonValue]) -> str | None:
        """Puts the checked values in place; returns what is wrong with the first that is not."""
        from pydantic import ValidationError

        for name, adapter in self._ready().items():
            if name not in given:
                continue
            try:
                given[name] = adapter.validate_python(given[name])
            except ValidationError as error:
                return _described(name, error.errors(include_url=False, include_input=False)[0])
        return None

    def _ready(self) -> dict[str, Any]:
        with self._lock:
            if self._adapters is None:
                self._adapters = self._make()
            return self._adapters

    def _make(self) -> dict[str, Any]:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

        try:
            hints = typing.get_type_hints(self._function, include_extras=True)
        except (NameError, TypeError, AttributeError):
            return {}
        adapters: dict[str, Any] = {}
        for name in self._names:
            try:
                adapters[name] = TypeAdapter(hints[name])
            except (KeyError, PydanticSchemaGenerationError, PydanticUserError):
                continue
        return adapters


def _described(name: str, problem: Any) -> str:
    """Returns `argument items[0].qty: input should be a valid integer`."""
    place = name
    for step in problem["loc"]:
        place += f"[{step}]" if isinstance(step, int) else f".{step}"
    text = str(problem["msg"])
    return f"argument {place}: {text[:1].lower()}{text[1:]}"

"""Handlers: the Python functions that do the work of actions.

    from wfsql import action

    @action("inventory.reserve")
    def reserve(order_id, items):
        return {"reservation_id": "R1"}

A handler gets the action's input as keyword arguments (integers as `int`, other numbers as
`Decimal`) and returns the output, or a `Result` with a result code. It may be `async`, and is then
cancelled when its result is no longer wanted. Arguments that have a type hint are checked, and made
what the hint says, by pydantic. A first parameter annotated `TaskContext` gets the task's
surroundings. An exception is result code -1, or its attribute `result_code` if that is negative,
with the message `TypeName: text` and the last lines of its traceback as the output. A program as a
handler is declared with `command`, see `command_handlers.py`. The local runner and the worker use
this module alike, so it knows nothing of either.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

from compiler import json_values
from local_runner.arguments import ArgumentTypes
from local_runner.values import JsonValue, copy_value, holds_scalars

COMMANDS_NAME = "__wfsql_commands__"
"""The name in a module's globals under which `command` lists what it has declared."""

_MARK = "__wfsql_actions__"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# So much of an exception goes into the trace: its text, and the innermost frames.
_MESSAGE_CHARACTERS = 10_000
_FRAMES = 5
# So often an async handler's context is looked at.
_LOOK_SECONDS = 0.2
_LOG = logging.getLogger("wfsql.handlers")

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Result:
    """What a handler returns when the output alone does not say it: a negative code fails."""

    code: int = 0
    output: Any = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Where a handler runs: the node's path, the attempt, and whether it is still wanted.

    In another process `cancelled` is never set: an event does not reach that far. `trace_parent` is
    the header `traceparent` for what the handler calls; None where nothing is traced.
    """

    path: str
    attempt: int
    instance_id: str
    cancelled: threading.Event = field(default_factory=threading.Event)
    trace_parent: str | None = None

    def __reduce__(self) -> tuple[Callable[..., TaskContext], tuple[str, int, str, str | None]]:
        return _elsewhere, (self.path, self.attempt, self.instance_id, self.trace_parent)


def _elsewhere(path: str, attempt: int, instance_id: str, trace_parent: str | None) -> TaskContext:
    return TaskContext(path, attempt, instance_id, trace_parent=trace_parent)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one call of a handler, ready to be submitted."""

    code: int
    output: JsonValue
    message: str | None


@dataclass(frozen=True, slots=True)
class HandlerError:
    """Why handlers could not be loaded; one line for the user."""

    message: str


@dataclass(frozen=True, slots=True)
class Handler:
    """A function ready to be called."""

    function: Callable[..., Any]
    wants_context: bool
    is_async: bool = False
    arguments: ArgumentTypes | None = None


def action(name: str) -> Callable[[Function], Function]:
    """Marks a function as the handler of action `name`; it may carry several names."""

    def mark(function: Function) -> Function:
        setattr(function, _MARK, (*getattr(function, _MARK, ()), name))
        return function

    return mark


class Handlers:
    """Handlers by the name of their action."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = dict(handlers)

    @classmethod
    def from_functions(cls, functions: Mapping[str, Callable[..., Any]]) -> Handlers:
        """Makes handlers of plain functions by action name."""
        return cls({name: _handler(function) for name, function in functions.items()})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._handlers))

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Returns those of `names` that have no handler, sorted."""
        return tuple(sorted(set(names) - self._handlers.keys()))

    def get(self, name: str) -> Handler:
        """Returns the handler of action `name`, for `invoke` somewhere else."""
        return self._handlers[name]

    def wants_context(self, name: str) -> bool:
        """Whether the handler has a first parameter for the task's surroundings."""
        return self._handlers[name].wants_context

    def is_plain(self, name: str) -> bool:
        """Whether the handler is a function that needs no event loop of its own."""
        return not self._handlers[name].is_async

    def invoke(self, name: str, input: JsonValue, context: TaskContext | None) -> Outcome:
        """Calls the handler of action `name`; whatever happens inside becomes an `Outcome`."""
        return invoke(self._handlers[name], name, input, context)


def invoke(handler: Handler, name: str, input: JsonValue, context: TaskContext | None) -> Outcome:
    """Calls a handler, here or in another process; whatever happens inside becomes an `Outcome`.

    `context` may be None for a handler that asks for none.
    """
    if not isinstance(input, dict):
        return failure("TypeError: the input of an action is an object")
    given: dict[str, Any] = input
    # A copy, because a handler may change what it gets; the call itself copies scalars.
    if handler.arguments is not None or not holds_scalars(input):
        given = copy_value(input)
    if handler.arguments is not None:
        misfit = handler.arguments.convert(given)
        if misfit is not None:
            return failure(misfit)
    try:
        if handler.wants_context:
            returned = handler.function(context, **given)
        else:
            returned = handler.function(**given)
        if returned is None:
            return _NOTHING
        if hasattr(returned, "__await__"):
            returned = _finish_async(returned, None if context is None else context.cancelled)
    except (Exception, SystemExit) as error:
        _LOG.debug("handler of %s failed", name, exc_info=True)
        return _raised(error)
    return _outcome(returned)


def _handler(function: Callable[..., Any]) -> Handler:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return Handler(function, wants_context=False)
    wants_context = bool(parameters) and _is_context(parameters[0].annotation)
    hinted = [
        parameter.name
        for parameter in parameters[1 if wants_context else 0 :]
        if parameter.annotation is not parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    return Handler(
        function,
        wants_context,
        inspect.iscoroutinefunction(function),
        ArgumentTypes(function, tuple(hinted)) if hinted else None,
    )


def _finish_async(awaitable: Awaitable[Any], cancelled: threading.Event | None) -> Any:
    """Runs what an async handler has returned, in a loop of its own.

    It is cancelled, once, when its result is no longer wanted.
    """
    import asyncio

    async def wait() -> Any:
        task = asyncio.ensure_future(awaitable)
        while cancelled is not None:
            await asyncio.wait({task}, timeout=_LOOK_SECONDS)
            if task.done() or cancelled.is_set():
                # Without effect on one that is done.
                task.cancel()
                break
        try:
            return await task
        except asyncio.CancelledError:
            return Result(-1, message="CancelledError")

    return asyncio.run(wait())


def _is_context(annotation: object) -> bool:
    if isinstance(annotation, str):  # `from __future__ import annotations`
        return annotation.strip("'\"").rpartition(".")[2] == TaskContext.__name__
    return annotation is TaskContext


_NOTHING: Final = Outcome(0, None, None)


def _outcome(returned: object) -> Outcome:
    result = returned if isinstance(returned, Result) else Result(output=returned)
    if hasattr(type(result.output), "model_dump"):  # a pydantic model
        result = replace(result, output=result.output.model_dump())
    if type(result.code) is not int or not -(2**31) <= result.code < 2**31:
        return failure(f"the result code {result.code!r} is not a 32-bit integer")
    try:
        # Most handlers return nothing much; what cannot go wrong takes the short way.
        is_plain = result.output is None or type(result.output) is bool
        output = result.output if is_plain else json_values.from_python(result.output)
    except json_values.UnstorableValue as error:
        return failure(f"the output cannot be stored: {error}")
    except RecursionError:
        return failure("the output cannot be stored: it is nested too deeply")
    message = None if result.message is None else _storable(str(result.message))
    return Outcome(result.code, output, message)


def failure(message: str) -> Outcome:
    """Returns what a handler has left that gave no result."""
    return Outcome(-1, None, _storable(message))


def _raised(error: BaseException) -> Outcome:
    """Returns what an exception leaves: its own `result_code` if that is one that fails."""
    code = getattr(error, "result_code", -1)
    if type(code) is not int or not -(2**31) <= code < 0:
        code = -1
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and f"{os.sep}asyncio{os.sep}" not in frame.filename
    ]
    lines = [
        _storable(f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line or ''}")
        for frame in frames[-_FRAMES:]
    ]
    return Outcome(code, {"traceback": lines} if lines else None, _storable(_described(error)))


def _described(error: BaseException) -> str:
    # A SyntaxError's own text repeats the place, which stands behind it.
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def _storable(text: str) -> str:
    if len(text) > _MESSAGE_CHARACTERS:
        text = text[:_MESSAGE_CHARACTERS] + "…"
    return _UNSTORABLE.sub("\ufffd", text)


def load_handlers(reference: str) -> Handlers | HandlerError:
    """Imports a module, by dotted name or file path, and collects the handlers declared in it."""
    module = _load_module(reference)
    if isinstance(module, HandlerError):
        return module
    found: dict[str, Handler] = {}
    for name, function in _declared(module):
        if name in found and found[name].function is not function:
            return HandlerError(f"{reference}: action {name!r} has two handlers")
        found[name] = _handler(function)
    if not found:
        return HandlerError(f"{reference}: no function is marked with @action")
    return Handlers(found)


def _declared(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for value in filter(callable, vars(module).values()):
        names = getattr(value, _MARK, ())
        yield from ((name, value) for name in (names if isinstance(names, tuple) else ()))
    yield from vars(module).get(COMMANDS_NAME, ())


def _load_module(reference: str) -> ModuleType | HandlerError:
    try:
        if reference.endswith(".py") or "/" in reference or "\\" in reference:
            return _import_file(Path(reference))
        return _import_name(reference)
    except (Exception, SystemExit) as error:
        return HandlerError(f"{reference}: {_described(error)}{_where(error)}")


def _import_file(path: Path) -> ModuleType | HandlerError:
    if not path.is_file():
        return HandlerError(f"{path}: no such file")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # Two handler files of one name must not shadow each other in `sys.modules`.
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
    name = f"wfsql_handlers_{path.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return HandlerError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import_name(name: str) -> ModuleType | HandlerError:
    here = str(Path.cwd())
    if "" not in sys.path and here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            return HandlerError(
                f"{name}: no such module; give its dotted name or a path to a .py file"
            )
        raise


def _where(error: BaseException) -> str:
    """Returns ` (file:line)` of the innermost frame, which is where the user has to look."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or frames[-1].filename.startswith("<"):
        return ""
    return f" ({frames[-1].filename}:{frames[-1].lineno})"

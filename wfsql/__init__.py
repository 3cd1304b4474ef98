"""wfsql: workflows that run inside your database.

The names below are what code outside is meant to import. They are looked up when they are first
used, so that `import wfsql` costs nothing (the command starts with it).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.pipeline import check_file as check_file
    from compiler.pipeline import compile_file as compile_file
    from compiler.spec import GraphSpec as GraphSpec
    from compiler.spec import dump_spec as dump_spec
    from compiler.spec import parse_spec as parse_spec
    from local_runner.command_handlers import command as command
    from local_runner.engine import LocalWorkflowEngine as LocalWorkflowEngine
    from local_runner.engine import RunResult as RunResult
    from local_runner.handlers import Handlers as Handlers
    from local_runner.handlers import Result as Result
    from local_runner.handlers import TaskContext as TaskContext
    from local_runner.handlers import action as action
    from local_runner.handlers import load_handlers as load_handlers

_HOMES = {
    "GraphSpec": "compiler.spec",
    "Handlers": "local_runner.handlers",
    "LocalWorkflowEngine": "local_runner.engine",
    "Result": "local_runner.handlers",
    "RunResult": "local_runner.engine",
    "TaskContext": "local_runner.handlers",
    "action": "local_runner.handlers",
    "check_file": "compiler.pipeline",
    "command": "local_runner.command_handlers",
    "compile_file": "compiler.pipeline",
    "dump_spec": "compiler.spec",
    "load_handlers": "local_runner.handlers",
    "parse_spec": "compiler.spec",
}

__all__ = [
    "GraphSpec",
    "Handlers",
    "LocalWorkflowEngine",
    "Result",
    "RunResult",
    "TaskContext",
    "action",
    "check_file",
    "command",
    "compile_file",
    "dump_spec",
    "load_handlers",
    "parse_spec",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'wfsql' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})

"""Programs as handlers.

    from wfsql import command

    command("sample.trim", ["trim-tool", "--json"])

declares, in a handlers module and nowhere else, that action `sample.trim` is done by that program:
its input is JSON on stdin, its output JSON on stdout (nothing is null), its exit code the result
code. TRACEPARENT in its environment is the trace that it belongs to. The arguments are fixed and go
to no shell; data stands on stdin only. A program that is not wanted any more is asked to end, and
killed if it does not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from compiler import json_values
from local_runner.handlers import COMMANDS_NAME, Result, TaskContext

_KILL_AFTER_SECONDS = 5.0
_LOOK_SECONDS = 0.2


def command(name: str, argv: Sequence[str]) -> Callable[..., Result]:
    """Declares a program as the handler of action `name`, in the module that calls this.

    Raises:
      TypeError: `argv` is a text, or holds what is no text; a list of arguments is wanted.
    """
    if isinstance(argv, str | bytes) or not all(isinstance(part, str) for part in argv):
        raise TypeError(f"command {name!r} wants its program and arguments as a list of texts")
    if not argv:
        raise TypeError(f"command {name!r} names no program")
    program = tuple(argv)

    def run_program(task: TaskContext, /, **input: Any) -> Result:
        return _run(program, input, task)

    declared = sys._getframe(1).f_globals.setdefault(COMMANDS_NAME, [])
    declared.append((name, run_program))
    return run_program


def _run(argv: tuple[str, ...], input: dict[str, Any], task: TaskContext) -> Result:
    text = json_values.dumps(input)
    traced = {} if task.trace_parent is None else {"TRACEPARENT": task.trace_parent}
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **traced} if traced else None,
        )
    except OSError as error:
        return Result(-1, message=f"{argv[0]}: {(error.strerror or str(error)).lower()}")
    with process:
        out, errors = _communicate(process, text.encode(), task.cancelled)
    message = _last_line(errors) if process.returncode else None
    if process.returncode < 0:
        return Result(-1, message=f"{argv[0]} was ended by signal {-process.returncode}")
    return _result(argv[0], process.returncode, out, message)


def _communicate(
    process: subprocess.Popen[bytes], given: bytes, cancelled: threading.Event
) -> tuple[bytes, bytes]:
    wait: float = _LOOK_SECONDS
    first: bytes | None = given
    while True:
        try:
            return process.communicate(first, timeout=wait)
        except subprocess.TimeoutExpired:
            # What was given once is kept; `communicate` takes it up again.
            first = None
            if wait == _KILL_AFTER_SECONDS:
                process.kill()
            elif cancelled.is_set():
                process.terminate()
                wait = _KILL_AFTER_SECONDS


def _result(program: str, code: int, out: bytes, message: str | None) -> Result:
    if not out.strip():
        return Result(code, None, message)
    try:
        return Result(code, json_values.loads(out.decode()), message)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        return Result(-1, message=f"{program} wrote what is no JSON: {error}")
    except json_values.UnstorableValue as error:
        return Result(-1, message=f"{program} wrote what cannot be stored: {error}")


def _last_line(text: bytes) -> str | None:
    lines = text.decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), None)

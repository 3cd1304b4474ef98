"""Handlers for tests with processes: functions of a module, so that they can be pickled."""

from __future__ import annotations

import os
import signal
import time
from decimal import Decimal
from typing import Any

from local_runner.handlers import Result, TaskContext, action


@action("square")
def square(x: int) -> dict[str, Any]:
    return {"square": x * x, "process": os.getpid()}


@action("where")
def where(task: TaskContext, x: int) -> Result:
    return Result(2, {"path": task.path, "attempt": task.attempt, "x": Decimal("1.50")}, "note")


@action("later")
async def later(x: int) -> int:
    return x + 1


@action("die")
def die(x: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@action("raise")
def fail(x: int) -> None:
    raise ValueError(f"no {x}")


@action("slow")
def slow(x: int) -> None:
    time.sleep(1.5)

"""The handler of the workload. It takes a while, and tells the test that it has been called.

What it tells goes through a Unix datagram socket: a kill of the worker takes nothing back that has
been told, and it needs no room on a disk.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any

from wfsql import TaskContext, action

TOLD_TO = os.environ.get("FAULTS_EFFECTS")
WORK_SECONDS = float(os.environ.get("FAULTS_WORK_SECONDS", "0"))


@action("fan.do")
def do(task: TaskContext, order: int, step: str) -> dict[str, Any]:
    if TOLD_TO:
        _tell(f"begin {task.instance_id} {task.path} {time.time():.6f}")
    time.sleep(WORK_SECONDS)
    if TOLD_TO:
        _tell(f"end {task.instance_id} {task.path} {time.time():.6f}")
    return {"value": order * 10 + len(step)}


def _tell(text: str) -> None:
    worker = os.environ["FAULTS_WORKER"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.connect(TOLD_TO or "")
        out.send(f"{worker} {text}".encode())

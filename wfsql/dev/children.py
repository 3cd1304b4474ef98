"""The processes that `wf dev` runs: their lines go to the log, and none is left behind.

Flow: `start` → a thread passes on every line → `retire` asks one to end and lets it finish what it
has in hand, `stop` also waits, and kills what does not end. A child runs in a session of its own,
so Ctrl-C reaches `wf dev` alone, which then ends them in order; a child whose stdin is closed knows
that `wf dev` has died.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Thread

from wfsql.dev.log import DevLog

_STOP_SECONDS = 10.0
NOT_OF_THE_SHELL = {"WF_URL": "", "WF_GATEWAY": "", "WF_WORKER_TOKEN": "", "WF_API_KEY": ""}
"""What the shell may have for another database, and children of ours shall not see."""


@dataclass(slots=True)
class Child:
    """A running `wf` command. `name` is how the log calls it."""

    name: str
    process: subprocess.Popen[str]
    reader: Thread
    is_retired: bool = field(default=False)

    @property
    def exit_code(self) -> int | None:
        """What it ended with; None while it runs."""
        return self.process.poll()


def start(
    name: str, arguments: Sequence[str], environment: Mapping[str, str], log: DevLog
) -> Child:
    """Starts `wf ARGUMENTS`; what it writes appears in the log under `name`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "wfsql", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, **environment},
        start_new_session=True,
    )
    reader = Thread(target=_pass_on, args=(name, process, log), daemon=True)
    reader.start()
    return Child(name, process, reader)


def retire(child: Child) -> None:
    """Asks a child to end after what it has in hand; does not wait."""
    child.is_retired = True
    if child.exit_code is None:
        child.process.terminate()


def stop(child: Child) -> None:
    """Ends a child and waits for it; one that does not end within ten seconds is killed."""
    retire(child)
    try:
        child.process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.process.kill()
        child.process.wait()
    child.reader.join(1.0)
    if child.process.stdin is not None:
        with suppress(BrokenPipeError):
            child.process.stdin.close()


def _pass_on(name: str, process: subprocess.Popen[str], log: DevLog) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        log.write(name, line.rstrip("\n"))

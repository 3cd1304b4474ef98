"""How a driver of a peer and the benchmark speak, over standard input and output.

A driver is started with one argument of JSON: `url`, `workload`, `variant`, `sql` (a file, or
null), and the sizes. It prints `{"mark": "begin"}` and `{"mark": "end"}` around the load and waits
for a line after each, while the meters are read; then `{"result": …}` with `units`, `seconds` and
`latencies_ms`, a list.
A worker of a driver is the same script with a `role`; it prints `ready`, and ends with its input.

Standard library alone: it runs in each peer's own environment.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

RESULT = {"ok": True}
_GIVE_UP_SECONDS = 200.0


def orders() -> SimpleNamespace:
    """What this process was told."""
    return SimpleNamespace(**({"role": "main", "index": 0} | json.loads(sys.argv[1])))


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def mark(name: str) -> None:
    say(mark=name)
    if not sys.stdin.readline():
        os._exit(1)


@contextmanager
def load() -> Iterator[SimpleNamespace]:
    """The measured part; `seconds` of what it gives is set when it ends."""
    taken = SimpleNamespace(seconds=0.0)
    mark("begin")
    began = time.time()
    yield taken
    taken.seconds = time.time() - began
    mark("end")


def answer(units: int, seconds: float, latencies_ms: list[float] | None = None) -> None:
    say(result={"units": units, "seconds": seconds, "latencies_ms": latencies_ms or []})


def require(found: object, wanted: object) -> None:
    """Ends the driver when the database does not hold what the load should have made."""
    if found != wanted:
        sys.exit(f"found {found}, wanted {wanted}")


@contextmanager
def team(
    script: str, told: SimpleNamespace, count: int, role: str = "worker"
) -> Iterator[list[Any]]:
    """`count` worker processes that are ready; they end when this one is done with them."""
    members = []
    for index in range(count):
        argument = json.dumps(vars(told) | {"role": role, "index": index})
        members.append(
            subprocess.Popen(
                [sys.executable, script, argument],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    try:
        for member in members:
            expect(member, "ready")
        yield members
    finally:
        for member in members:
            member.terminate()
        for member in members:
            try:
                member.wait(10)
            except subprocess.TimeoutExpired:
                member.kill()
                member.wait()


def expect(member: Any, word: str) -> str:
    """The rest of the next line that begins with the word."""
    for line in member.stdout:
        if line.startswith(word):
            return str(line[len(word) :]).strip()
    sys.exit(f"a worker ended before it said {word}")


def get_ready() -> None:
    print("ready", flush=True)


def end_with_parent() -> None:
    """In a worker: leaves at once when the driver is gone."""

    def wait() -> None:
        while sys.stdin.readline():
            pass
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def until(done: Callable[[], bool], pause_seconds: float) -> None:
    give_up_at = time.monotonic() + _GIVE_UP_SECONDS
    while not done():
        if time.monotonic() > give_up_at:
            sys.exit("the load does not end")
        time.sleep(pause_seconds)


def idle(told: SimpleNamespace, start: Callable[[int], Callable[[], bool]]) -> None:
    """One at a time, with random pauses: from before `start` until what it gives says done."""
    random.seed(8)
    found = []
    with load() as taken:
        for number in range(told.samples):
            time.sleep(random.uniform(0.03, 0.08))
            began = time.perf_counter()
            done = start(number)
            until(done, 0.0005)
            found.append(1000 * (time.perf_counter() - began))
    answer(told.samples, taken.seconds, found)


def drain(told: SimpleNamespace, count: Callable[[], int]) -> None:
    """How many are done within a window, or until nearly all are; the workers run already."""
    until(lambda: count() >= told.jobs // 100, 0.02)
    with load():
        first, began = count(), time.time()
        last, now = first, began
        while now - began < told.drain_seconds and last < told.jobs * 0.9:
            time.sleep(0.1)
            last, now = count(), time.time()
    answer(last - first, now - began)

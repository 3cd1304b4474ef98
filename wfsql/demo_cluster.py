"""The gateways and workers of the demo, and what is done to them on the way.

    worker-1 worker-2 ─ gateway-1 ─┐
                                   ├─ PostgreSQL
    worker-3 worker-4 ─ gateway-2 ─┘

Flow: `Cluster.start` → `look` again and again: kills worker-1 while it has a task in hand, stops
gateway-1 a little later, and sees that the others live → `stop`. All are children with a pipe for
stdin, so they end when the demo dies.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from wfsql.dev.children import NOT_OF_THE_SHELL
from wfsql.dev.gateway import DevKeys, make_keys

WORKER_COUNT = 4
GATEWAY_COUNT = 2
# So long others wait for what a killed worker had in hand.
LEASE_SECONDS = 5
_START_SECONDS = 30.0
_STOP_SECONDS = 10.0

HeldBy = Callable[[str], Sequence[str] | None]
"""Returns the paths of the tasks that a worker has in hand; None when it has done nothing yet."""


class ClusterFailed(Exception):
    """A process did not do what it should; the message is for the user."""


@dataclass(slots=True)
class Child:
    """A gateway or a worker. `is_expected_to_run` is false from when the demo has ended it."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    is_expected_to_run: bool = True

    def tail(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return " / ".join(lines[-4:])

    def end(self) -> None:
        """Ends it and waits; one that does not end is killed."""
        self.is_expected_to_run = False
        if self.process.poll() is None:
            self.process.terminate()
            # One that was made to stand still hears it only then.
            self.process.send_signal(signal.SIGCONT)
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        self.is_expected_to_run = False
        self.process.kill()
        self.process.wait()


@dataclass(slots=True)
class Cluster:
    """What runs. `killed_with`: the path of the task that the killed worker had in hand."""

    gateways: list[Child]
    workers: list[Child]
    killed_with: str | None = None
    is_gateway_stopped: bool = False
    is_victim_still: bool = False

    @classmethod
    def start(cls, cleanup: ExitStack, url: str, handlers: Sequence[Path], folder: Path) -> Cluster:
        """Starts all; `cleanup` ends them.

        Raises:
          ClusterFailed: one of them does not start.
        """
        keys = make_keys(url, folder / "keys")
        if not isinstance(keys, DevKeys):
            raise ClusterFailed(keys.message)
        options: tuple[str, ...]
        gateways, workers = [], []
        for number in range(1, GATEWAY_COUNT + 1):
            options = ("gateway", "--listen", "127.0.0.1:0", "--pool", "4", "--end-with-stdin")
            gateways.append(_spawn(cleanup, f"gateway-{number}", options, folder, {"WF_URL": url}))
        addresses = [_address(gateway) for gateway in gateways]
        for number in range(1, WORKER_COUNT + 1):
            name = f"worker-{number}"
            options = (
                *("worker", "--worker-id", name, "--state", str(folder / name)),
                *("--enroll-key-file", str(keys.enroll), "--lease", str(LEASE_SECONDS)),
                *(part for path in handlers for part in ("--handlers", str(path))),
                "--end-with-stdin",
            )
            address = addresses[(number - 1) * GATEWAY_COUNT // WORKER_COUNT]
            workers.append(_spawn(cleanup, name, options, folder, {"WF_GATEWAY": address}))
        # The work is over in seconds: one that comes late would have no part in it.
        for worker in workers:
            _until_it_says(worker, r"claims ")
        return cls(gateways, workers)

    def look(self, held_by: HeldBy) -> str | None:
        """Does what is next to be done to them; returns a line that says so.

        Raises:
          ClusterFailed: one has ended by itself.
        """
        for child in (*self.gateways, *self.workers):
            if child.is_expected_to_run and child.process.poll() is not None:
                raise ClusterFailed(
                    f"{child.name} ended with {child.process.returncode}: {child.tail()}"
                )
        if self.killed_with is None:
            return self._kill_a_worker(held_by)
        if not self.is_gateway_stopped:
            self.is_gateway_stopped = True
            gateway, left = self.gateways[0], self.workers[1]
            gateway.end()
            return f"{gateway.name} is stopped, and {left.name} has none now"
        return None

    def _kill_a_worker(self, held_by: HeldBy) -> str | None:
        victim = self.workers[0]
        held = held_by(victim.name)
        if held and self.is_victim_still:
            self.killed_with = held[0]
            victim.kill()
            return f"{victim.name} is killed (kill -9) with {self.killed_with} in hand"
        # It is made to stand still and looked at again, so that what it has then it has at its end.
        # If that is nothing, its waiting request gets the next task meanwhile.
        self._let_stand(victim, held is not None)
        return None

    def _let_stand(self, victim: Child, still: bool) -> None:
        if still != self.is_victim_still:
            victim.process.send_signal(signal.SIGSTOP if still else signal.SIGCONT)
            self.is_victim_still = still

    def stop(self) -> None:
        """Ends the workers that have a gateway in order, then all else.

        Raises:
          ClusterFailed: one of them did not end well.
        """
        if self.is_gateway_stopped:
            # It would wait for its gateway with what others have done meanwhile.
            self.workers[1].kill()
        if self.killed_with is None:
            self._let_stand(self.workers[0], False)
        at_work = [worker for worker in self.workers if worker.is_expected_to_run]
        for worker in at_work:
            worker.process.terminate()
        for worker in at_work:
            code = worker.process.wait(_STOP_SECONDS)
            worker.is_expected_to_run = False
            if code != 0:
                raise ClusterFailed(f"{worker.name} ended with {code}: {worker.tail()}")
        for gateway in self.gateways:
            gateway.end()

    def tails(self) -> str:
        return " | ".join(child.tail() for child in (*self.gateways, *self.workers))


def _spawn(
    cleanup: ExitStack, name: str, options: Sequence[str], folder: Path, environment: dict[str, str]
) -> Child:
    log_path = folder / f"{name}.log"
    log = cleanup.enter_context(log_path.open("wb"))
    # A group of its own: Ctrl-C reaches the demo alone, which then ends the others in order.
    process = subprocess.Popen(
        [sys.executable, "-m", "wfsql", *options],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        env=os.environ | NOT_OF_THE_SHELL | environment,
        start_new_session=True,
    )
    child = Child(name, process, log_path)
    cleanup.callback(_let_go, child)
    return child


def _let_go(child: Child) -> None:
    with suppress(ProcessLookupError):
        # One that stands still would not hear anything else.
        child.process.send_signal(signal.SIGCONT)
    child.end()


def _address(gateway: Child) -> str:
    """Waits until a gateway says where it listens."""
    return _until_it_says(gateway, r"listens on (http://\S+);")[1]


def _until_it_says(child: Child, pattern: str) -> re.Match[str]:
    give_up_at = time.monotonic() + _START_SECONDS
    while child.process.poll() is None and time.monotonic() < give_up_at:
        found = re.search(pattern, child.log.read_text(encoding="utf-8", errors="replace"))
        if found is not None:
            return found
        time.sleep(0.02)
    raise ClusterFailed(f"{child.name} does not start: {child.tail()}")

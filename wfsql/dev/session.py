"""The session of `wf dev`: a database, a gateway and workers that follow a folder's files.

Flow: start PostgreSQL (its data stay until the next time) → install or upgrade the runtime → deploy
every workflow → start the gateway and the workers → for each group of changed files: deploy what
has changed, and put new workers in the place of the old, which finish what they have in hand →
at the end stop everything, newest first.

Nothing that an author writes ends the session: a file that does not compile, handlers that do not
load, an action without a handler are reported, and tried again at the next change.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TypeVar

from runtime_sql.connection import RuntimeClient, connect
from runtime_sql.failures import ApiError, DatabaseProblem
from wfsql.dev import children, deploying
from wfsql.dev.children import Child
from wfsql.dev.gateway import DevKeys, is_ready, make_keys
from wfsql.dev.log import DevLog
from wfsql.dev.watching import Changes, changes

T = TypeVar("T")

_DATABASE = "dev"
_PARTS = ("pg", "pg-run", "keys", "workers")
_GATEWAY_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DevSettings:
    """What to run. `handlers` empty: the `handlers.py` beside each workflow.

    `data`: where the database lives; `fresh`: begin with an empty one.
    """

    folder: Path
    data: Path
    listen: str
    handlers: tuple[str, ...] = ()
    worker_count: int = 1
    concurrency: int = 4
    fresh: bool = False


class DevFailed(Exception):
    """Ends the session; the message is for the user."""


def default_data(folder: Path) -> Path:
    """Returns where the database of a folder lives: outside of it, one for each folder."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]
    return state / "wfsql" / "dev" / f"{folder.resolve().name or 'root'}-{digest}"


class DevSession:
    """One run of `wf dev`. `stop()` may be called from any thread."""

    def __init__(self, settings: DevSettings, log: DevLog) -> None:
        self._settings = settings
        self._log = log
        self._stop = Event()
        self._workers: list[Child] = []
        self._retired: list[Child] = []
        self._gateway: Child | None = None
        self._broken: set[Path] = set()
        self._started = 0
        self._unheard: set[str] = set()
        self._unserved: tuple[str, ...] = ()

    def stop(self) -> None:
        self._stop.set()

    def run(self) -> None:
        """Runs until `stop`.

        Raises:
          DevFailed: the database or the gateway cannot be had.
          EmbeddedUnavailable: there is no embedded PostgreSQL here.
        """
        began = time.monotonic()
        with ExitStack() as cleanup:
            # From here on: what changes while the rest starts is not lost.
            watch = changes(self._settings.folder, self._stop)
            next(watch, None)
            url = self._start_database(cleanup)
            client = _good(connect(url))
            cleanup.callback(client.close)
            self._deploy(client, deploying.workflow_files(self._settings.folder))
            keys = _good(make_keys(url, self._settings.data / "keys"))
            self._start_gateway(cleanup, url, keys)
            cleanup.callback(self._stop_workers)
            self._renew_workers(keys)
            self._log.say(f"ready in {time.monotonic() - began:.1f} s; Ctrl-C ends it")
            self._follow(watch, client, keys)
            self._log.say("stopping")

    # The parts ----------------------------------------------------------------------------------

    def _start_database(self, cleanup: ExitStack) -> str:
        from runtime_sql.installer import install, installed_version, upgrade
        from wfsql.embedded import EmbeddedServer

        data = self._settings.data
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        cleanup.callback(os.close, _lock(data))
        if self._settings.fresh:
            for part in _PARTS:
                shutil.rmtree(data / part, ignore_errors=True)
        server = EmbeddedServer.start(data / "pg", durable=False, keep=True)
        cleanup.callback(server.stop)
        url = server.url(_DATABASE)
        if server.has_database(_DATABASE):
            _good(upgrade(url, roles=False))
        else:
            server.create_database(_DATABASE)
            _good(install(url, roles=False))
        version = _good(installed_version(url))
        self._log.say(f"PostgreSQL with runtime version {version}; in another terminal:")
        self._log.say(f"  export WF_URL='{url}'")
        return url

    def _start_gateway(self, cleanup: ExitStack, url: str, keys: DevKeys) -> None:
        if is_ready(self._address):
            raise DevFailed(
                f"another gateway answers at {self._address}; name a free one by --listen"
            )
        arguments = ["gateway", "--listen", self._settings.listen, "--quiet", "--end-with-stdin"]
        self._gateway = children.start("gateway", arguments, {"WF_URL": url}, self._log)
        cleanup.callback(children.stop, self._gateway)
        self._wait_for_gateway(self._gateway)
        self._log.say(f"gateway at {self._address}, with a key for everything but events:")
        self._log.say(f"  export WF_API_KEY=$(cat '{keys.everyday}')")

    @property
    def _address(self) -> str:
        return f"http://{self._settings.listen}"

    def _wait_for_gateway(self, gateway: Child) -> None:
        give_up_at = time.monotonic() + _GATEWAY_SECONDS
        while not is_ready(self._address):
            if gateway.exit_code is not None:
                raise DevFailed(f"the gateway ended with {gateway.exit_code}; see its lines above")
            if time.monotonic() > give_up_at:
                raise DevFailed(f"the gateway does not answer at {self._address}")
            if self._stop.wait(0.1):
                return

    def _renew_workers(self, keys: DevKeys) -> None:
        """Puts new workers in the place of those that run, which end after what they have."""
        handlers = self._handlers()
        for worker in self._workers:
            children.retire(worker)
        self._retired += self._workers
        self._workers = []
        self._unheard = set()
        if not handlers:
            self._log.say(
                "no handlers.py beside a workflow, and no --handlers: nobody works on actions"
            )
            return
        arguments = ["worker", "--gateway", self._address, "--enroll-key-file", str(keys.enroll)]
        arguments += ["--concurrency", str(self._settings.concurrency), "--end-with-stdin"]
        for name in handlers:
            arguments += ["--handlers", name]
        for number in range(1, self._settings.worker_count + 1):
            self._started += 1
            # A name of its own: the one before may still be at work under its token.
            worker_id = f"dev-{os.getpid()}-{self._started}"
            self._unheard.add(worker_id)
            state = str(self._settings.data / "workers" / worker_id)
            own = [*arguments, "--worker-id", worker_id, "--state", state]
            self._workers.append(
                children.start(f"worker-{number}", own, children.NOT_OF_THE_SHELL, self._log)
            )

    def _handlers(self) -> list[str]:
        if self._settings.handlers:
            return list(self._settings.handlers)
        files = deploying.workflow_files(self._settings.folder)
        return [str(path) for path in deploying.handler_files(files)]

    def _stop_workers(self) -> None:
        everyone = [*self._workers, *self._retired]
        for worker in everyone:
            children.retire(worker)
        for worker in everyone:
            children.stop(worker)

    # Following the files ------------------------------------------------------------------------

    def _follow(
        self, watch: Iterator[Changes | None], client: RuntimeClient, keys: DevKeys
    ) -> None:
        for change in watch:
            if change is None:
                self._look_after_children()
                self._tell_what_is_unserved(client)
            elif self._deploy(client, self._touched(change)) or change.handlers:
                self._renew_workers(keys)

    def _touched(self, change: Changes) -> list[Path]:
        """A catalog concerns what stands beside it, a workflow also those that import it."""
        if change.catalogs or change.workflows:
            return deploying.workflow_files(self._settings.folder)
        return []

    def _deploy(self, client: RuntimeClient, paths: Iterable[Path]) -> bool:
        """Deploys files; returns whether something new is in the database."""
        changed = False
        for path in paths:
            reports = deploying.deploy(client, path)
            # Told is what is new: also that a file is whole again, and at the start everything.
            is_news = path in self._broken or self._started == 0
            self._broken.discard(path)
            for report in reports:
                changed |= report.changed
                if report.failed:
                    self._broken.add(path)
                if is_news or report.changed or report.failed:
                    self._log.write("deploy", report.text)
        return changed

    def _look_after_children(self) -> None:
        if self._gateway is not None and self._gateway.exit_code is not None:
            raise DevFailed(f"the gateway ended with {self._gateway.exit_code}")
        for worker in _ended(self._workers):
            self._log.say(
                f"{worker.name} ended with {worker.exit_code}; change a file to try again"
            )
            self._workers.remove(worker)
        for worker in _ended(self._retired):
            self._retired.remove(worker)

    def _tell_what_is_unserved(self, client: RuntimeClient) -> None:
        """Says, once the new workers have enrolled, which actions none of them has a handler for.

        A worker claims what its handlers can do, so a new action without one would only wait.
        """
        if not self._unheard:
            return
        workers, actions = client.list_workers(), client.action_capabilities()
        if isinstance(workers, ApiError | DatabaseProblem) or isinstance(
            actions, ApiError | DatabaseProblem
        ):
            return
        ours = [worker for worker in workers if worker.worker_id in self._unheard]
        if len(ours) < len(self._unheard):
            return
        self._unheard = set()
        served = {name for worker in ours for name in worker.capabilities}
        left = tuple(sorted(name for name, one in actions.items() if one not in served))
        if left and left != self._unserved and "*" not in served:
            self._log.say(f"no handler for {', '.join(left)}: instances that come there wait")
        self._unserved = left


def _lock(data: Path) -> int:
    """Keeps the folder for this session until the handle is closed."""
    handle = os.open(data / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise DevFailed(f"wf dev runs here already, with the data in {data}") from error
    os.set_inheritable(handle, False)
    return handle


def _ended(workers: Iterable[Child]) -> Iterator[Child]:
    return iter([worker for worker in workers if worker.exit_code is not None])


def _good(answer: T | ApiError | DatabaseProblem) -> T:
    if isinstance(answer, ApiError | DatabaseProblem):
        raise DevFailed(answer.message)
    return answer

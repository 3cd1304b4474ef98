"""Puts a worker together from the options of `wf worker`, and runs it.

Flow: gateway or database → handlers → who it is (enrolled, or registered) → what it claims → run,
with the signals that end it → exit code.
"""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import NoReturn, TypeVar
from urllib.parse import urlsplit

from local_runner.handlers import Handlers
from runtime_sql.connection import RuntimeClient, connect
from runtime_sql.failures import ApiError, DatabaseProblem
from wfsql.cli.commands.worker_claims import choose_capabilities
from wfsql.cli.commands.worker_watching import Watching, watched
from wfsql.cli.database import good, need_url, open_client
from wfsql.cli.handlers import load
from wfsql.cli.main import EXIT_OUR_FAULT, CommandError, wrong_use
from wfsql.cli.operating import MOST_ROWS, span
from wfsql.cli.output import counted, say
from wfsql.worker.database_source import DatabaseSource
from wfsql.worker.enrolment import Credentials, Enrolment, new_token, read_secret
from wfsql.worker.gateway_source import GatewayAddress, GatewaySource
from wfsql.worker.heartbeat import HeartProcess
from wfsql.worker.log import JsonLog, TextLog, WorkerLog
from wfsql.worker.process import Stopped, Worker, WorkerSettings
from wfsql.worker.python_handlers import invoke_with
from wfsql.worker.source import Trouble
from wfsql.worker.spool import Spool
from wfsql.worker.state import StateFolder, StateProblem

T = TypeVar("T")

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# A worker that was told twice to end, and cannot say so to the other end, ends without.
_LAST_SECONDS = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    gateway: str | None
    url: str | None
    handlers: tuple[str, ...]
    capabilities: tuple[str, ...]
    concurrency: int
    worker_id: str | None
    token_file: Path | None
    enroll_key_file: Path | None
    ca_file: Path | None
    state: Path | None
    lease_seconds: int
    idle_exit_seconds: float | None
    writes_json: bool
    is_quiet: bool
    ends_with_stdin: bool
    otlp: str | None = None
    metrics: str | None = None

    @property
    def settings(self) -> WorkerSettings:
        return WorkerSettings(
            concurrency=self.concurrency,
            lease_seconds=self.lease_seconds,
            idle_exit_seconds=self.idle_exit_seconds,
        )

    def log(self, worker_id: str) -> WorkerLog:
        if self.writes_json:
            return JsonLog(worker_id, is_quiet=self.is_quiet)
        return TextLog(say, is_quiet=self.is_quiet)

    def watched(self, found: Handlers, log: WorkerLog, worker_id: str) -> Watching:
        return watched(invoke_with(found), log, worker_id, otlp=self.otlp, metrics=self.metrics)


def run_worker(options: Options) -> int:
    """Runs a worker to its end and returns the command's exit code."""
    found = load(list(options.handlers))
    worker, watching, greeting = (_at_gateway if options.gateway else _at_database)(options, found)
    return _run(worker, watching, greeting, options.ends_with_stdin)


# At a database -----------------------------------------------------------------------------------


def _at_database(options: Options, found: Handlers) -> tuple[Worker, Watching, str]:
    target = need_url(options.url)
    client = open_client(options.url)
    chosen = choose_capabilities(good(client.action_capabilities()), found, options.capabilities)
    name = options.worker_id or _name_of(options.state)
    log = options.log(name)
    folder = None if options.state is None else _open(options.state)
    token = new_token()
    namesake = _heard_of(client, name)
    good(client.register_worker(name, token, chosen, options.concurrency))
    client.close()
    source = DatabaseSource(lambda: connect(target), name, token, options.lease_seconds, log.note)
    start = {
        "worker_id": name,
        "token": token,
        "extend_seconds": options.lease_seconds,
        "url": target,
    }
    owner = f"{name} at {without_secrets(target)}"
    watching = options.watched(found, log, name)
    spool = None if folder is None else Spool(folder.path, owner, log.note)
    worker = Worker(
        options.settings,
        source,
        watching.invoke,
        HeartProcess(start),
        watching.log,
        spool=spool,
        tick=source.tick,
    )
    watching.attach(worker, spool)
    if namesake is not None:
        log.note(namesake)
    return worker, watching, _claims(name, chosen)


def _heard_of(client: RuntimeClient, name: str) -> str | None:
    """Returns a warning when a worker of this name may still run.

    It is no error: one that was killed and starts again was heard of, too. The rest of the runtime
    takes two of a name for one, so an operator's drain and `max_per_worker` are about both.
    """
    known, now = client.list_workers(MOST_ROWS), client.now()
    if isinstance(known, ApiError | DatabaseProblem) or isinstance(now, ApiError | DatabaseProblem):
        return None  # the call that follows will say what is wrong
    seen = next((w.last_seen_at for w in known if w.worker_id == name and w.is_present), None)
    if seen is None:
        return None
    ago = span(max((now - seen).total_seconds(), 0.0))
    return (
        f"warning: a worker {name} was heard of {ago} ago; if it still runs, end one of the two,"
        " or start this one with another --worker-id"
    )


def _name_of(state: Path | None) -> str:
    """Returns a name: the same at each start where there is a folder, else one of the process."""
    host = socket.gethostname()[:100]
    if state is None:
        return f"{host}-{os.getpid()}"
    return f"{host}-{hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:8]}"


def without_secrets(url: str) -> str:
    """Returns which database a URL names, without user, password and options."""
    parts = urlsplit(url)
    if not parts.scheme:
        return hashlib.sha256(url.encode()).hexdigest()[:16]
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


# At a gateway ------------------------------------------------------------------------------------


def _at_gateway(options: Options, found: Handlers) -> tuple[Worker, Watching, str]:
    address = _address(options)
    folder = _open(options.state or _default_folder(options.worker_id))
    enrolment = Enrolment(address, _credentials(options), folder, options.lease_seconds)
    _stop_if(enrolment.problem(), 2)
    log = options.log(enrolment.worker_id)
    token = _readable(enrolment.token)
    source = GatewaySource(
        address, enrolment.worker_id, token, options.lease_seconds, enrolment.renewed
    )
    chosen = choose_capabilities(
        _good(enrolment.actions(source)), found, _wanted(options, enrolment)
    )
    _stop_if(enrolment.enrol(source, chosen, options.concurrency))
    heart = HeartProcess(
        {
            "worker_id": enrolment.worker_id,
            "token": source.token,
            "extend_seconds": options.lease_seconds,
            "gateway": address.url,
            "ca_file": address.ca_file,
        }
    )
    source.on_token = heart.use_token
    owner = f"{enrolment.worker_id} at {address.url}"
    watching = options.watched(found, log, enrolment.worker_id)
    spool = Spool(folder.path, owner, log.note)
    worker = Worker(options.settings, source, watching.invoke, heart, watching.log, spool=spool)
    watching.attach(worker, spool)
    return worker, watching, _claims(enrolment.worker_id, chosen)


def _address(options: Options) -> GatewayAddress:
    text = (options.gateway or "").rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise wrong_use(f'"{text}" is not the URL of a gateway', "write it as https://host:port")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise wrong_use(
            "the gateway's URL has a part that it must not have",
            "write it as https://host:port; a token goes into --token-file or WF_WORKER_TOKEN",
        )
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        say("warning: the worker's token goes to the gateway unencrypted; use https://")
    address = GatewayAddress(text, str(options.ca_file) if options.ca_file else None)
    _readable(address.context)
    return address


def _credentials(options: Options) -> Credentials:
    key = options.enroll_key_file
    return Credentials(
        worker_id=options.worker_id,
        token=None if options.token_file else os.environ.get("WF_WORKER_TOKEN") or None,
        token_file=options.token_file,
        key=_readable(lambda: read_secret(key)) if key else os.environ.get("WF_API_KEY") or None,
    )


def _wanted(options: Options, enrolment: Enrolment) -> tuple[str, ...]:
    """Returns the capabilities that are named, or those that the worker is bound to."""
    return options.capabilities or enrolment.kept_capabilities or ()


def _default_folder(worker_id: str | None) -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    name = worker_id or "worker"
    if not all(c.isalnum() or c in "-_." for c in name) or name.startswith("."):
        name = hashlib.sha256(name.encode()).hexdigest()[:16]
    return Path(base) / "wfsql" / "workers" / name


def _open(path: Path) -> StateFolder:
    folder = StateFolder.open(path)
    if isinstance(folder, StateProblem):
        raise CommandError(folder.message, folder.hint)
    return folder


def _readable(read: Callable[[], T]) -> T:
    try:
        return read()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        reason = str(error.strerror or error)
        raise wrong_use(f"{where}{reason.lower()}", "check the file's name and rights") from error


def _good(answer: Mapping[str, str] | Trouble) -> Mapping[str, str]:
    if isinstance(answer, Trouble):
        _stop_with(answer)
    return answer


def _stop_if(trouble: Trouble | None, code: int = 1) -> None:
    if trouble is not None:
        _stop_with(trouble, code)


def _stop_with(trouble: Trouble, code: int = 1) -> NoReturn:
    number = f" ({trouble.code})" if trouble.code else ""
    raise CommandError(f"{trouble.message}{number}", trouble.hint, code)


# Running -----------------------------------------------------------------------------------------


def _claims(name: str, capabilities: list[str]) -> str:
    return f"worker {name} claims {', '.join(capabilities)}; Ctrl-C ends it"


def _run(worker: Worker, watching: Watching, greeting: str, ends_with_stdin: bool) -> int:
    log = watching.log
    signals = _Signals(worker, log)
    signals.take()
    log.note(greeting)
    if ends_with_stdin:
        Thread(target=_stop_at_end_of_stdin, args=(worker,), daemon=True).start()
    reason = worker.run()
    if worker.abandoned:
        # Handlers whose tasks were given back still run in their threads; nobody wants them.
        _leave(reason, signals, log)
    watching.end()
    if reason is None:
        log.note(f"ended after {counted(worker.finished_count, 'task')}")
        return 0
    code = EXIT_OUR_FAULT if reason.is_fault else 1
    raise CommandError(reason.message, reason.hint, code)


def _leave(reason: Stopped | None, signals: _Signals, log: WorkerLog) -> NoReturn:
    if reason is not None:
        log.note(reason.message)
    os._exit(signals.exit_code or (0 if reason is None else 1))


class _Signals:
    """The first one drains, the second gives back what is in hand, the third ends at once.

    The handler only writes to a pipe: taking a lock there could meet one that is held.
    """

    def __init__(self, worker: Worker, log: WorkerLog) -> None:
        self._worker = worker
        self._log = log
        self._reader, self._writer = os.pipe()
        self._asked: list[int] = []

    def take(self) -> None:
        Thread(target=self._watch, name="signals", daemon=True).start()
        signal.signal(signal.SIGTERM, self._note)
        signal.signal(signal.SIGINT, self._note)

    @property
    def exit_code(self) -> int | None:
        """The exit code of a second signal."""
        return 128 + self._asked[1] if len(self._asked) > 1 else None

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._asked.append(number)
        if len(self._asked) > 2:
            os._exit(128 + number)
        os.write(self._writer, b"!")

    def _watch(self) -> None:
        os.read(self._reader, 1)
        in_hand = self._worker.in_hand_count
        if in_hand:
            self._log.note(f"finishing {counted(in_hand, 'task')}; again to end at once")
        self._worker.stop()
        os.read(self._reader, 1)
        self._worker.abandon()
        time.sleep(_LAST_SECONDS)
        os._exit(self.exit_code or 1)


def _stop_at_end_of_stdin(worker: Worker) -> None:
    while os.read(0, 4096):
        pass
    worker.stop()

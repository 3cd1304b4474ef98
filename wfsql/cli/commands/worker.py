"""`wf worker`: claims tasks and runs Python handlers for them."""

from __future__ import annotations

import os
import signal
import socket
from threading import Thread
from types import FrameType
from typing import Annotated

import typer

from local_runner.handlers import Handlers
from runtime_sql.connection import RuntimeClient, connect
from wfsql.cli.database import UrlOption, good, need_url, open_client
from wfsql.cli.handlers import HandlersOption, load
from wfsql.cli.main import EXIT_OUR_FAULT, CommandError, wrong_use
from wfsql.cli.output import counted, did_you_mean, say
from wfsql.worker.process import Worker, WorkerSettings
from wfsql.worker.python_handlers import invoke_with, new_token


def command(
    url: UrlOption = None,
    handlers: HandlersOption = None,
    capability: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A capability to claim, may be repeated; by default those of its handlers.",
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="How many tasks to work on at a time.")
    ] = 1,
    worker_id: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Its own name; by default made of host and process."),
    ] = None,
    lease: Annotated[
        int,
        typer.Option(
            min=3,
            max=86400,
            metavar="SECONDS",
            help="How long a task is held; extended while its handler runs.",
        ),
    ] = 60,
    idle_exit: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="End after this long without work."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Write no line per task.")] = False,
    end_with_stdin: Annotated[
        bool,
        typer.Option(
            "--end-with-stdin",
            help="End when stdin is closed, as it is when the program that started it dies.",
        ),
    ] = False,
) -> int:
    """Claim tasks from a database, run their handlers, hand in the results.

    SIGTERM or Ctrl-C ends the claiming; the task in hand is finished first, and the exit code is 0.
    A second one ends it at once. The worker registers itself, for which the login needs the
    rights of the runtime's owner.

    Example:  wf worker --handlers handlers.py --concurrency 4
    """
    if not handlers:
        raise wrong_use("no handlers are named", "give --handlers MODULE, or a path to a .py file")
    found = load(handlers)
    target = need_url(url)
    client = open_client(url)
    capabilities = _capabilities(client, found, capability)
    name = worker_id or f"{socket.gethostname()}-{os.getpid()}"
    settings = WorkerSettings(
        worker_id=name,
        token=new_token(),
        capability=None,
        concurrency=concurrency,
        lease_seconds=lease,
        idle_exit_seconds=idle_exit,
    )
    good(client.register_worker(name, settings.token, capabilities, concurrency))
    client.close()
    worker = Worker(
        settings, lambda: connect(target), invoke_with(found), _nothing if quiet else say
    )
    say(f"worker {name} claims {', '.join(capabilities)}; Ctrl-C ends it")
    return _run(worker, end_with_stdin)


def _nothing(_text: str) -> None:
    pass


def _run(worker: Worker, end_with_stdin: bool) -> int:
    _stop_on_signals(worker)
    if end_with_stdin:
        Thread(target=_stop_at_end_of_stdin, args=(worker,), daemon=True).start()
    reason = worker.run()
    if worker.abandoned:
        # Handlers whose tasks were given back still run in their threads; nobody wants them.
        os._exit(0)
    if reason is None:
        say(f"ended after {counted(worker.finished_count, 'task')}")
        return 0
    code = EXIT_OUR_FAULT if reason.is_fault else 1
    raise CommandError(reason.message, reason.hint, code)


def _stop_on_signals(worker: Worker) -> None:
    """The handler only writes to a pipe: taking a lock there could meet one that is held."""
    reader, writer = os.pipe()
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        if asked:
            os._exit(128 + number)
        asked.append(number)
        os.write(writer, b"!")

    def wait_for_note() -> None:
        os.read(reader, 1)
        in_hand = worker.in_hand_count
        if in_hand:
            say(f"finishing {counted(in_hand, 'task')}; again to end at once")
        worker.stop()

    Thread(target=wait_for_note, name="signals", daemon=True).start()
    signal.signal(signal.SIGTERM, note)
    signal.signal(signal.SIGINT, note)


def _stop_at_end_of_stdin(worker: Worker) -> None:
    while os.read(0, 4096):
        pass
    worker.stop()


def _capabilities(client: RuntimeClient, found: Handlers, wanted: list[str] | None) -> list[str]:
    """Returns what to claim, and refuses what would bring a task that nobody here can do."""
    actions = good(client.action_capabilities())
    chosen = wanted or sorted({actions[name] for name in found.names if name in actions})
    if not chosen:
        raise CommandError(
            f"none of the handlers ({', '.join(found.names)}) is for an action in the database"
            f" ({', '.join(sorted(actions)) or 'it has none'})",
            _slips(found, actions)
            or "deploy a workflow first, or name what to claim with --capability",
        )
    _warn_of_unknown(chosen, set(actions.values()))
    everything = "*" in chosen
    missing = found.missing(
        name for name, capability in actions.items() if everything or capability in chosen
    )
    if missing:
        named = ", ".join(f"{name} ({actions[name]})" for name in missing)
        raise CommandError(
            f"no handler for these actions (and their capability): {named}",
            _slips(found, {name: actions[name] for name in missing})
            or "add them to a --handlers module, or claim other capabilities with --capability",
        )
    return chosen


def _warn_of_unknown(chosen: list[str], known: set[str]) -> None:
    for capability in chosen:
        if capability != "*" and capability not in known:
            near = did_you_mean(capability, known)
            say(
                f'warning: no action in the database asks for the capability "{capability}"'
                + (f"; {near}" if near else "")
            )


def _slips(found: Handlers, actions: dict[str, str]) -> str | None:
    """Returns a hint that sets handlers without an action against actions of a like name."""
    pairs = ((name, did_you_mean(name, actions)) for name in found.names if name not in actions)
    slips = [f'there is a handler for "{name}"; {near}' for name, near in pairs if near]
    return " ".join(slips) or None

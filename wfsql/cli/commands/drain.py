"""`wf drain`: tells a worker to finish what it has and end, to stop, or to go on."""

from __future__ import annotations

from collections.abc import Sequence

from runtime_sql.connection import RuntimeClient
from runtime_sql.failures import ApiError
from runtime_sql.operator_rows import WorkerRow, WorkerState
from wfsql.cli.database import good, open_client
from wfsql.cli.main import CommandError
from wfsql.cli.operating import MOST_ROWS, operator_parser
from wfsql.cli.output import counted, did_you_mean, say, short_time, write_json

_UNKNOWN = 20002


def run(arguments: Sequence[str]) -> int:
    """Sets the state that a worker is told at its next claim or heartbeat."""
    parser = operator_parser(
        "drain",
        "WORKER",
        "Tell a worker to take nothing new, finish what it has in hand, and end.\n\n"
        "It hears of it when it next asks for work or sends a heartbeat.",
        "wf drain crane-2",
    )
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--undo", action="store_true", help="Let it go on taking tasks.")
    either.add_argument(
        "--stop", action="store_true", help="Give its tasks back and end without waiting for them."
    )
    parser.add_argument("worker", metavar="WORKER", help='Its name, as "wf workers" shows it.')
    options = parser.parse_args(arguments)
    state: WorkerState = "ACTIVE" if options.undo else "STOPPING" if options.stop else "DRAINING"
    client = open_client(options.url)
    answer = client.set_worker_state(options.worker, state)
    if isinstance(answer, ApiError) and answer.code == _UNKNOWN:
        raise _unknown(client, options.worker, answer)
    good(answer)
    if options.json:
        write_json({"worker_id": options.worker, "state": state})
    else:
        say(f"worker {options.worker} is {state}{_outlook(client, options.worker, state)}")
    return 0


def _unknown(client: RuntimeClient, name: str, answer: ApiError) -> CommandError:
    names = [row.worker_id for row in good(client.list_workers())]
    hint = did_you_mean(name, names) or '"wf workers" lists those that are registered'
    return CommandError(f"{answer.message} ({answer.code})", hint)


def _outlook(client: RuntimeClient, name: str, state: WorkerState) -> str:
    """Says what happens next; nothing, when the worker is gone."""
    found = next((w for w in good(client.list_workers(MOST_ROWS)) if w.worker_id == name), None)
    if found is not None and not found.is_present:
        return f", but {_gone(found)}"
    if state == "ACTIVE":
        return ": it may take tasks again"
    held = 0 if found is None else found.lease_count
    tasks = counted(held, "task")
    if state == "STOPPING":
        return f": it gives {tasks} back and ends" if held else ": it ends"
    return f": it finishes {tasks} and ends" if held else ": it has nothing in hand and ends"


def _gone(found: WorkerRow) -> str:
    """Says since when nobody hears of a worker, and what becomes of what it has."""
    since = short_time(found.last_seen_at)
    text = f"it is gone: nobody has heard of it since {since}" if since else "it was never there"
    if not found.lease_count:
        return text
    return f"{text}; its {counted(found.lease_count, 'task')} will be taken back as leases end"

"""`make demo`: every example, in PostgreSQL and in this process, with equal traces.

Flow: start an embedded PostgreSQL in a temporary folder → install → compile and deploy every
example → two gateways and four workers → start an instance for each input → send the events that
are waited for; kill a worker with a task in hand, stop a gateway → run in process what has no
WAIT_EVENT → compare the trace documents → timeline and verdict. Whatever happens, all processes are
stopped and the folder is removed: a signal interrupts once, and is then ignored until that is done.
Should the demo be killed, its children end because their stdin is closed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from compiler import json_values
from compiler.spec import GraphSpec
from local_runner.engine import LocalWorkflowEngine, RunResult, WaitEventUnsupported
from local_runner.handlers import HandlerError
from runtime_sql.connection import ExecutionRow, RuntimeClient, connect
from runtime_sql.failures import ApiError, DatabaseProblem
from runtime_sql.installer import install
from wfsql.cli.main import CommandError
from wfsql.cli.output import counted, say, say_error, terminal_width
from wfsql.cli.sources import compile_specs, deploy_script
from wfsql.compare import differences
from wfsql.demo_cluster import GATEWAY_COUNT, WORKER_COUNT, Cluster, ClusterFailed
from wfsql.embedded import EmbeddedServer, EmbeddedUnavailable
from wfsql.handler_modules import load_all
from wfsql.timeline import Stretch, draw

T = TypeVar("T")

EXAMPLES = Path(__file__).parents[1] / "examples"
# A lost lease counts as an attempt in this one, and its trace says how many there were.
_COUNTS_LOST_LEASES = "order_fulfilment"
TIME_LIMIT_SECONDS = 90.0
_LOOK_SECONDS = 0.1
_REMOVE_SECONDS = 10.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})


class DemoFailed(Exception):
    """Ends the demo; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Example:
    """A workflow of the examples folder, with the input files of its runs."""

    name: str
    folder: Path
    spec: GraphSpec
    inputs: tuple[Path, ...]
    events: tuple[Path, ...]

    @property
    def handlers(self) -> Path:
        return self.folder / "handlers.py"


@dataclass(slots=True)
class Run:
    """One instance of an example."""

    example: Example
    input_file: Path
    instance_id: int
    status: str = "RUNNING"
    ended_count: int = 0
    event_sent: bool = False

    @property
    def title(self) -> str:
        return f"{self.example.name} ({self.input_file.stem})"

    @property
    def verdict(self) -> str:
        """The status; of a run that has failed also whether it was meant to."""
        if self.status != "FAILED":
            return self.status
        return "FAILED, as expected" if self.is_meant_to_fail else "FAILED, unexpectedly"

    @property
    def is_meant_to_fail(self) -> bool:
        """Whether the example's README says so in the row of this input."""
        readme = (self.example.folder / "README.md").read_text(encoding="utf-8")
        rows = (line for line in readme.splitlines() if line.startswith("|"))
        return any(f"`inputs/{self.input_file.name}`" in row and "FAILED" in row for row in rows)


def main() -> int:
    """Runs the demo; 0 when all traces agree."""
    for number in _SIGNALS:
        # One that is ignored already (nohup) stays so.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt_once)
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="wfsql-demo-"))
    try:
        with ExitStack() as cleanup:
            cleanup.callback(_remove, folder)
            try:
                agreed = _demo(cleanup, folder)
            finally:
                _ignore_signals()
    except (DemoFailed, ClusterFailed, EmbeddedUnavailable) as error:
        say_error(str(error))
        return 1
    except CommandError as error:
        say_error(error.message, error.hint)
        return error.code
    except KeyboardInterrupt:
        # The terminal may be what has gone.
        with suppress(OSError):
            if sys.stderr.isatty():
                say("")  # below the ^C that the terminal shows
            say_error(f"interrupted; {_what_is_left(folder)}")
        return 130
    print(f"({time.monotonic() - began:.1f} s)")
    return 0 if agreed else 1


def _remove(folder: Path) -> None:
    """Removes a folder in which a process that was just ended may still be writing."""
    give_up_at = time.monotonic() + _REMOVE_SECONDS
    while folder.exists() and time.monotonic() < give_up_at:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(_LOOK_SECONDS)


def _interrupt_once(_number: int, _frame: FrameType | None) -> None:
    _ignore_signals()
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _what_is_left(folder: Path) -> str:
    if folder.exists():
        return f"{folder} could not be removed"
    return "everything is stopped and removed"


def _demo(cleanup: ExitStack, folder: Path) -> bool:
    paths = sorted(EXAMPLES.glob("*/*.wf"))
    if not paths:
        raise DemoFailed(f"no examples in {EXAMPLES}; run the demo from a source checkout")
    # Handlers write below this folder, in both engines.
    os.environ["WFSQL_WORK"] = str(folder / "work")
    with _step("start PostgreSQL"):
        server = EmbeddedServer.start(folder / "pg", durable=False)
        cleanup.callback(server.stop)
        url = server.create_database("demo")
    with _step("install the runtime"):
        _good(install(url))
    client = _good(connect(url))
    cleanup.callback(client.close)
    with _step("compile and deploy the examples"):
        examples = [_deploy(client, path) for path in paths]
    with _step("start gateways and workers"):
        handlers = [example.handlers for example in examples]
        cluster = Cluster.start(cleanup, url, handlers, folder)
    inputs = [(example, path) for example in examples for path in example.inputs]
    instances = counted(len(inputs), "instance")
    print(f"{instances}, {GATEWAY_COUNT} gateways, {WORKER_COUNT} worker processes")
    runs = _follow(client, inputs, cluster)
    cluster.stop()
    agreed = [_compare(client, run) for run in runs]
    _print_timeline(client, runs)
    return _verdict(agreed, cluster) and _all_went_as_expected(runs)


# Steps ------------------------------------------------------------------------------------------


@contextmanager
def _step(title: str) -> Iterator[None]:
    began = time.monotonic()
    print(f"{title} …", end=" ", flush=True)
    yield
    print(f"{time.monotonic() - began:.1f} s", flush=True)


def _good(answer: T | ApiError | DatabaseProblem) -> T:
    if isinstance(answer, ApiError | DatabaseProblem):
        raise DemoFailed(answer.message)
    return answer


def _deploy(client: RuntimeClient, path: Path) -> Example:
    [spec] = compile_specs(str(path))
    _good(client.run_script(deploy_script([spec])))
    folder = path.parent
    return Example(
        spec.name,
        folder,
        spec,
        tuple(sorted(folder.glob("inputs/*.json"))),
        tuple(sorted(folder.glob("*.event.json"))),
    )


def _start(client: RuntimeClient, example: Example, path: Path) -> Run:
    context = path.read_text(encoding="utf-8")
    made = _good(client.create_and_start(example.name, context))
    return Run(example, path, made.instance_id)


# Progress ---------------------------------------------------------------------------------------


def _follow(
    client: RuntimeClient, inputs: Sequence[tuple[Example, Path]], cluster: Cluster
) -> list[Run]:
    """Runs everything, shows it until all have ended; sends awaited events, and breaks things.

    What would show a lost lease in its trace begins when no more is going to be broken.
    """
    runs = [_start(client, *one) for one in inputs if one[0].name != _COUNTS_LOST_LEASES]
    later = [one for one in inputs if one[0].name == _COUNTS_LOST_LEASES]

    def held_by(worker: str) -> list[str] | None:
        return _held_by(client, runs, worker)

    give_up_at = time.monotonic() + TIME_LIMIT_SECONDS
    with _progress() as show:
        while later or any(run.status not in _ENDED for run in runs):
            for run in runs:
                _look(client, run)
            show(runs)
            said = cluster.look(held_by)
            if said is not None:
                _print_folded(f"  -- {said}")
            if cluster.is_gateway_stopped or all(run.status in _ENDED for run in runs):
                runs.extend(_start(client, *one) for one in later)
                later.clear()
            if time.monotonic() > give_up_at:
                late = ", ".join(run.title for run in runs if run.status not in _ENDED)
                raise DemoFailed(
                    f"still running after {TIME_LIMIT_SECONDS:.0f} s: {late} [{cluster.tails()}]"
                )
            time.sleep(_LOOK_SECONDS)
        show(runs)
    return runs


def _held_by(client: RuntimeClient, runs: list[Run], worker: str) -> list[str] | None:
    """The tasks that a worker has in hand; None while it has not done anything yet."""
    at_work = [run for run in runs if run.status not in _ENDED]
    rows = [row for run in at_work for row in _good(client.executions(run.instance_id))]
    of_worker = [row for row in rows if row.worker_id == worker]
    held = [row.path for row in of_worker if row.status == "RUNNING"]
    return held if len(held) < len(of_worker) else None


def _look(client: RuntimeClient, run: Run) -> None:
    if run.status in _ENDED:
        return
    # The status first: what is counted after the end is all there is.
    status = _good(client.get_instance(run.instance_id)).status
    rows = _good(client.executions(run.instance_id))
    run.ended_count = sum(row.status in _ENDED for row in rows)
    run.status = status
    if not run.event_sent and _waits(rows):
        run.event_sent = True
        for path in run.example.events:
            _send(client, json_values.loads(path.read_text(encoding="utf-8")))


def _waits(rows: list[ExecutionRow]) -> bool:
    return any(row.type == "WAIT_EVENT" and row.status not in _ENDED for row in rows)


def _send(client: RuntimeClient, event: dict[str, Any]) -> None:
    _good(
        client.ingest_event(
            event["event_type"],
            event["source"],
            event["idempotency_key"],
            json_values.dumps(event["payload"]),
            event.get("correlation_key"),
        )
    )


@contextmanager
def _progress() -> Iterator[Any]:
    """Gives a function that shows the runs: a live table on a terminal, else a line per change."""
    if not sys.stdout.isatty():
        yield _LinePrinter()
        return
    from rich.live import Live

    with Live(auto_refresh=False) as live:

        def show(runs: list[Run]) -> None:
            # A table half drawn would be drawn again below itself.
            with _signals_held_back():
                live.update(_table(runs), refresh=True)

        yield show


@contextmanager
def _signals_held_back() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _LinePrinter:
    def __init__(self) -> None:
        self._shown: set[int] = set()

    def __call__(self, runs: list[Run]) -> None:
        for run in runs:
            if run.status in _ENDED and run.instance_id not in self._shown:
                self._shown.add(run.instance_id)
                print(
                    f"  {run.title}: {run.verdict}, {counted(run.ended_count, 'node')}", flush=True
                )


def _table(runs: list[Run]) -> Any:
    from rich.table import Table
    from rich.text import Text

    from wfsql.cli.output import STATUS_STYLES

    table = Table(box=None, show_header=False)
    for run in runs:
        meant = run.status == "FAILED" and run.is_meant_to_fail
        style = "green" if meant else STATUS_STYLES.get(run.status, "")
        nodes = Text(counted(run.ended_count, "node"))
        table.add_row(Text(f"  {run.title}"), Text(run.verdict, style=style), nodes)
    return table


# Verdict ----------------------------------------------------------------------------------------


def _compare(client: RuntimeClient, run: Run) -> bool | None:
    """Returns whether both traces agree, None for what only a database can run."""
    context = json_values.loads(run.input_file.read_text(encoding="utf-8"))
    # One id for both engines, so that what they make of it is equal.
    local = _run_locally(run.example, context, run.instance_id)
    if local is None:
        return None
    in_database = json_values.read_stored(_good(client.trace(run.instance_id)))
    found = differences(in_database, local.trace)
    for place, left, right in found[:20]:
        print(f"{run.title}: {place}\n  - PostgreSQL: {left}\n  + local:      {right}")
    if len(found) > 20:
        print(f"{run.title}: and {len(found) - 20} more differences")
    return not found


def _run_locally(example: Example, context: Any, instance_id: int) -> RunResult | None:
    """Runs an example in this process; None when it waits for events."""
    handlers = load_all([str(example.handlers)])
    if isinstance(handlers, HandlerError):
        raise DemoFailed(handlers.message)
    engine = LocalWorkflowEngine(example.spec, handlers, parallel_workers=4)
    result = engine.run(context, instance_id=str(instance_id))
    if isinstance(result, WaitEventUnsupported):
        return None
    if not isinstance(result, RunResult):
        raise DemoFailed(result.message)
    return result


def _print_timeline(client: RuntimeClient, runs: list[Run]) -> None:
    stretches = [
        Stretch(row.worker_id, row.path, row.started_at, row.ended_at)
        for run in runs
        for row in _good(client.executions(run.instance_id))
        if row.worker_id and row.type == "ACTION" and row.started_at and row.ended_at
    ]
    print("\nWho did what, and when:")
    for line in draw(stretches, _chart_width()):
        print(f"  {line}")
    print()


def _chart_width() -> int:
    """The chart's share of a line, beside the workers' names and their sums."""
    width = terminal_width()
    return 60 if width is None else max(10, min(60, width - 42))


def _all_went_as_expected(runs: list[Run]) -> bool:
    wrong = [run for run in runs if (run.status == "FAILED") != run.is_meant_to_fail]
    for run in wrong:
        print(f"{run.title}: {run.status}, which its README does not say.")
    return not wrong


def _verdict(agreed: list[bool | None], cluster: Cluster) -> bool:
    compared = [verdict for verdict in agreed if verdict is not None]
    alone = len(agreed) - len(compared)
    note = f" ({alone} with events: database only)" if alone else ""
    if all(compared) and compared:
        traces = counted(len(compared), "equal trace")
        _print_folded(
            f"PostgreSQL and the local runner agree: {traces}{note}{_in_spite_of(cluster)}."
        )
        return True
    wrong = len(compared) - sum(compared)
    traces = counted(len(compared), "trace")
    _print_folded(f"PostgreSQL and the local runner DISAGREE in {wrong} of {traces}{note}.")
    return False


def _in_spite_of(cluster: Cluster) -> str:
    what = []
    if cluster.killed_with is not None:
        what.append("a worker that was killed")
    if cluster.is_gateway_stopped:
        what.append("a gateway that was stopped")
    return f", in spite of {' and '.join(what)}" if what else ""


def _print_folded(text: str) -> None:
    """Prints a sentence, folded between words on a terminal."""
    width = terminal_width()
    print(text if width is None else textwrap.fill(text, max(width - 1, 20)), flush=True)


if __name__ == "__main__":
    sys.exit(main())

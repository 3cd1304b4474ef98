"""Eight connections that do everything at once, with backends ended at random, for some seconds.

Each thread has its own connection and draws its next call from `WEIGHTS`. A deadlock victim, a
serialization failure or a lock that was not available is called again, up to `TRIES` times; after a
lost connection a new one is made, and a submit is repeated, since nobody knows whether it came in.
What was answered is kept, so that an execution which two calls were told to have completed is seen.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.runtime_sql import drive
from tests.runtime_sql.invariants import broken

THREADS = 8
TRIES = 200
RETRYABLE = {"40001", "40P01", "55P03"}
# What a call may be told when it comes too late: unknown, not in that state, taken, try again.
ANSWERS = {"WA002", "WA003", "WA009", "WA010"}

WORKFLOWS = """
workflow fan {
  input { k : string }
  parallel {
    sequence one { action a = t.do() parallel { action b = t.do() action c = t.do() } }
    sequence two { action d = t.do(k: var.k) { retry 2 backoff 50ms on any } action e = t.do() }
    foreach x in [1, 2, 3, 4, 5] parallel 2 tolerate 1 { action f = t.do(x: var.x) }
  }
  action last = t.do()
}

workflow waits {
  input { k : string }
  parallel join any {
    sequence s {
      wait_event w on "bell" { correlate var.k timeout 2s { action late = t.do() } }
      wait_event v on "gong" { correlate var.k timeout 2s { action later = t.do() } }
    }
    sequence u { action a = t.do() action b = t.do() action c = t.do() action d = t.do() }
  }
}

workflow guarded {
  input { k : string }
  sequence body {
    timeout 1s
    parallel {
      action a = t.do()
      sequence inner { action b = t.do() } finally { action c = t.do() }
    }
  } on_error { action d = t.do() } finally { action e = t.do() }
  repeat 3 { action f = t.do() }
}

workflow started {
  input { k : string }
  on event "gong" start_or_signal { input { k = event.payload.k } }
  wait_event w on "gong" { correlate var.k timeout 1s { } }
  action a = t.limited()
}
"""
CATALOG = """
actions:
  - {name: t.do, capability: t}
  - {name: t.limited, capability: t}
"""

Connection = psycopg.Connection[Any]


@dataclass
class Report:
    """What happened: calls by name, answers by reason, and what had to be called again."""

    calls: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    retries: Counter[str] = field(default_factory=Counter)
    lost_connections: int = 0
    ended_backends: int = 0
    completed: Counter[int] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        return [
            f"calls     {dict(self.calls.most_common())}",
            f"answers   {dict(self.reasons.most_common())}",
            f"retried   {dict(self.retries)}",
            f"backends ended {self.ended_backends}, connections lost {self.lost_connections}",
            f"completed {len(self.completed)} executions",
        ]


class Worker(threading.Thread):
    """One of the eight: a worker of its own, an operator and a source of events at once."""

    def __init__(
        self, number: int, url: str, isolation: str, until: float, report: Report, lock: Any
    ) -> None:
        super().__init__(name=f"stress-{number}")
        self.url = url
        self.isolation = isolation
        self.until = until
        self.report = report
        self.lock = lock
        self.random = random.Random(number)
        self.worker = f"worker{number % 4}"
        self.tasks: list[tuple[int, int]] = []
        self.connection = self.connect()

    def connect(self) -> Connection:
        connection = psycopg.connect(
            self.url,
            autocommit=True,
            prepare_threshold=None,
        )
        connection.execute("set application_name = 'stress'")
        connection.execute(f"set default_transaction_isolation = '{self.isolation}'".encode())
        return connection

    def run(self) -> None:
        calls = [call for call, weight in WEIGHTS for _ in range(weight)]
        try:
            while time.monotonic() < self.until:
                call = self.random.choice(calls)
                with self.lock:
                    self.report.calls[call.__name__] += 1
                call(self)
        except Exception as error:
            with self.lock:
                self.report.errors.append(f"{self.name}: {type(error).__name__}: {error}")

    def rows(self, query: str, *arguments: Any) -> list[tuple[Any, ...]]:
        """Calls a routine, again where that is the thing to do; no rows for a stated refusal."""
        for attempt in range(TRIES):
            try:
                return self.connection.execute(query.encode(), arguments).fetchall()
            except psycopg.OperationalError as error:
                state = error.sqlstate
                if state in RETRYABLE:
                    self.count(retries=state)
                    pause = min(0.5, 0.01 * 2 ** min(attempt, 9))
                    time.sleep(self.random.random() * pause)
                    continue
                self.reconnect()
            except psycopg.DatabaseError as error:
                if error.sqlstate in ANSWERS:
                    self.count(reasons=error.sqlstate)
                    return []
                raise
        raise AssertionError(f"{TRIES} tries did not do: {query}")

    def reconnect(self) -> None:
        with self.lock:
            self.report.lost_connections += 1
        self.connection.close()
        self.connection = self.connect()

    def count(self, **what: str | None) -> None:
        with self.lock:
            for counter, key in what.items():
                getattr(self.report, counter)[key] += 1

    def instance(self) -> int:
        """An instance picked at random, one of the newest."""
        rows = self.rows("select max(workflow_instance_id) from wf.workflow_instance")
        newest = rows[0][0] or 0
        return self.random.randint(max(1, newest - 30), max(1, newest))

    def key(self) -> str:
        return f"k{self.random.randint(0, 9)}"


def claim(self: Worker) -> None:
    rows = self.rows(
        "select node_execution_id, lease_token"
        " from wf.sp_worker_request_tasks(%s, %s, null, %s, %s)",
        self.worker,
        drive.TOKEN,
        self.random.choice((1, 30)),
        self.random.choice((1, 2, 10)),
    )
    self.tasks += [(row[0], row[1]) for row in rows if row[0] is not None]


def take(self: Worker) -> tuple[int, int] | None:
    if not self.tasks:
        claim(self)
    return self.tasks.pop(self.random.randrange(len(self.tasks))) if self.tasks else None


def _answered(self: Worker, task: tuple[int, int], accepted: bool, reason: str) -> None:
    with self.lock:
        self.report.reasons[reason] += 1
        if accepted and reason == "OK":
            self.report.completed[task[0] * 1000 + task[1]] += 1


def submit(self: Worker) -> None:
    task = take(self)
    if task is None:
        return
    code = self.random.choice((0, 0, 0, 0, 0, 0, 1, -1))
    rows = self.rows(
        "select accepted, reason from wf.sp_worker_submit_result(%s, %s, %s, %s, '{}', %s)",
        task[0],
        self.worker,
        drive.TOKEN,
        code,
        task[1],
    )
    for accepted, reason in rows:
        _answered(self, task, accepted, reason)


def submit_many(self: Worker) -> None:
    tasks = {task[0]: task for task in (take(self) for _ in range(5)) if task is not None}
    results = [
        {
            "node_execution_id": task[0],
            "lease_token": task[1],
            "result_code": self.random.choice((0, 0, 0, 0, 0, 0, 0, -1)),
        }
        for task in tasks.values()
    ]
    rows = self.rows(
        "select node_execution_id, accepted, reason from wf.sp_worker_submit_results(%s, %s, %s)",
        self.worker,
        drive.TOKEN,
        drive.json(results),
    )
    for execution, accepted, reason in rows:
        _answered(self, tasks[execution], accepted, reason)


def fail(self: Worker) -> None:
    task = take(self)
    if task is not None:
        self.rows(
            "select reason from wf.sp_worker_fail_task(%s, %s, %s, -5, 'broken', %s)",
            task[0],
            self.worker,
            drive.TOKEN,
            task[1],
        )


def heartbeat(self: Worker) -> None:
    for task in self.tasks[:2]:
        self.rows(
            "select command from wf.sp_worker_heartbeat(%s, %s, %s, 5, %s)",
            task[0],
            self.worker,
            drive.TOKEN,
            task[1],
        )


def release(self: Worker) -> None:
    task = take(self)
    if task is not None:
        self.rows(
            "select rows_updated from wf.sp_worker_release_task(%s, %s, %s, %s)",
            task[0],
            self.worker,
            drive.TOKEN,
            task[1],
        )


def start(self: Worker) -> None:
    name = self.random.choice(("fan", "waits", "guarded", "started"))
    business_key = f"b{self.random.randint(0, 200)}" if self.random.random() < 0.3 else None
    rows = self.rows(
        "select workflow_instance_id from wf.wf_repo_create_workflow_instance(%s, %s, null, %s)",
        name,
        drive.json({"k": self.key() if business_key is None else "k0"}),
        business_key,
    )
    for (instance,) in rows:
        self.rows("select instance_status from wf.sp_start_workflow_instance(%s)", instance)


def operate(self: Worker) -> None:
    routine = self.random.choice(("cancel", "pause", "resume", "resume"))
    self.rows(f"select instance_status from wf.sp_{routine}_workflow_instance(%s)", self.instance())


def retry(self: Worker) -> None:
    rows = self.rows(
        "select workflow_instance_id from wf.workflow_instance where status = 'FAILED'"
        " order by workflow_instance_id desc limit 5"
    )
    if rows:
        self.rows(
            "select instance_status from wf.sp_retry_failed_node(%s)",
            self.random.choice(rows)[0],
        )


def ring(self: Worker) -> None:
    key = self.key()
    self.rows(
        "select applied_count from wf.sp_ingest_event(%s, 'stress', %s, %s, %s)",
        self.random.choice(("bell", "gong")),
        f"e{self.random.randint(0, 100_000)}",
        drive.json({"k": key}),
        key,
    )


def signal(self: Worker) -> None:
    self.rows(
        "select applied_count from wf.sp_signal_wait(%s, %s)",
        self.random.choice(("bell", "gong")),
        self.key(),
    )


def tick(self: Worker) -> None:
    self.rows("select timer_count from wf.sp_tick()")


def purge(self: Worker) -> None:
    self.rows("select purged_count from wf.sp_purge_instances(wf.wf_now() - interval '1 s', 5)")


WEIGHTS: tuple[tuple[Callable[[Worker], None], int], ...] = (
    (claim, 6),
    (submit, 20),
    (submit_many, 8),
    (fail, 1),
    (heartbeat, 4),
    (release, 1),
    (start, 5),
    (operate, 2),
    (retry, 2),
    (ring, 5),
    (signal, 1),
    (tick, 2),
    (purge, 1),
)


def prepare(connection: Connection, folder: Path) -> None:
    """Deploys the workflows and registers the workers."""
    (folder / "w.actions.yaml").write_text(CATALOG, encoding="utf-8")
    for number, text in enumerate(WORKFLOWS.strip().split("\n\nworkflow ")):
        whole = text if number == 0 else f"workflow {text}"
        drive.deploy(connection, drive.compile_text(folder, whole, CATALOG))
    connection.execute(
        "update wf.workflow_action set max_concurrent = 2 where action_name = 't.limited'"
    )
    for number in range(4):
        connection.execute(
            "select wf.sp_register_worker(%s, %s, array['*'])", (f"worker{number}", drive.TOKEN)
        )


def run(url: str, folder: Path, seconds: float, isolation: str, *, kill: bool) -> Report:
    """Runs the stress, ending backends meanwhile when told to, and gives the report."""
    report = Report()
    with drive.connect(url) as connection:
        prepare(connection, folder)
        until = time.monotonic() + seconds
        lock = threading.Lock()
        threads = [Worker(n, url, isolation, until, report, lock) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        chance = random.Random(4711)
        while time.monotonic() < until:
            time.sleep(chance.random() * 0.2)
            if kill:
                ended = connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where application_name = 'stress' and datname = current_database()"
                    " order by random() limit 1"
                ).fetchall()
                report.ended_backends += len(ended)
            found = broken(connection)
            if found:
                report.errors.append(f"while it ran: {found}")
                break
        for thread in threads:
            thread.join(120)
            thread.connection.close()
            if thread.is_alive():
                report.errors.append(f"{thread.name} hangs")
    return report


def drain(connection: Connection) -> list[tuple[Any, ...]]:
    """Brings every instance to its end, with the clock moved on; gives those that did not end."""
    running = "select workflow_instance_id, status from wf.workflow_instance where status in "
    for (instance,) in connection.execute(
        "select workflow_instance_id from wf.workflow_instance where status = 'PAUSED'"
    ).fetchall():
        connection.execute("select wf.sp_resume_workflow_instance(%s)", (instance,))
    for hour in range(1, 60):
        connection.execute(
            "insert into wf.wf_setting values ('now', (now() + make_interval(hours => %s))::text)"
            " on conflict (name) do update set value = excluded.value",
            (hour,),
        )
        connection.execute("select wf.sp_tick()")
        while True:
            tasks = connection.execute(
                "select node_execution_id, lease_token"
                " from wf.sp_worker_request_tasks(%s, %s, null, 60, 100)",
                (drive.WORKER, drive.TOKEN),
            ).fetchall()
            if not tasks:
                break
            results = [
                {"node_execution_id": e, "lease_token": token, "result_code": 0}
                for e, token in tasks
            ]
            connection.execute(
                "select count(*) from wf.sp_worker_submit_results(%s, %s, %s)",
                (drive.WORKER, drive.TOKEN, drive.json(results)),
            )
        if not connection.execute(f"{running} ('RUNNING')".encode()).fetchall():
            break
    return connection.execute(f"{running} ('RUNNING', 'PAUSED')".encode()).fetchall()

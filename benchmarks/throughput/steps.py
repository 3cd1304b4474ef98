"""One worker: claims and submits on its own connection until it is told to stop.

Flow: `python -m benchmarks.throughput.steps JSON` registers itself, prints `ready`, waits for the
line `go`, works, and at the line `stop` (or the end of its input) finishes the batch in hand and
prints a `Report`. A handler does nothing, so what is measured is the runtime.

JSON: `Orders`, below. With `feed`, a worker that finds less than a batch to claim starts a batch of
new instances, so that there is always work and never much of it.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import psycopg

TOKEN = "wf_bench_0123456789012345678901234567890123456789abcd"
_OUTPUT = {"ok": True}


@dataclass(frozen=True, slots=True)
class Orders:
    """`batch`: tasks of a claim. `pause_seconds`: after a claim that found nothing; it doubles up
    to `longest_pause_seconds`. `feed`: a workflow to start instances of."""

    url: str
    worker: str
    batch: int
    pause_seconds: float = 0.001
    longest_pause_seconds: float = 0.02
    feed: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Steps that were accepted, instances started, when the last submit was answered."""

    steps: int
    started: int
    last_at: float


def main(orders: Orders) -> None:
    stop = threading.Event()
    with psycopg.connect(orders.url, autocommit=True) as connection:
        connection.execute(
            "select wf.sp_register_worker(%s, %s, array['*'], %s)",
            (orders.worker, TOKEN, max(orders.batch, 1)),
        )
        print("ready", flush=True)
        sys.stdin.readline()
        threading.Thread(target=listen, args=(stop,), daemon=True).start()
        report = _work(connection, orders, stop)
    print(json.dumps(asdict(report)), flush=True)


def listen(stop: threading.Event) -> None:
    sys.stdin.readline()
    stop.set()


def _work(connection: psycopg.Connection[Any], orders: Orders, stop: threading.Event) -> Report:
    step = one_by_one(connection, orders) if orders.batch == 1 else batches(connection, orders)
    steps, started, last_at, pause = 0, 0, time.time(), orders.pause_seconds
    while not stop.is_set():
        done = step()
        if done:
            steps, last_at, pause = steps + done, time.time(), orders.pause_seconds
        if done < orders.batch and orders.feed:
            feed(connection, orders.feed, orders.batch)
            started += orders.batch
        elif not done:
            stop.wait(pause)
            pause = min(pause * 2, orders.longest_pause_seconds)
    return Report(steps, started, last_at)


def feed(connection: psycopg.Connection[Any], workflow: str, count: int) -> None:
    """Starts instances, all in one transaction."""
    connection.execute(
        "select count(s.instance_status) from generate_series(1, %s) as k"
        " cross join lateral wf.wf_repo_create_workflow_instance("
        "     %s, jsonb_build_object('n', k)) as i"
        " cross join lateral wf.sp_start_workflow_instance(i.workflow_instance_id) as s",
        (count, workflow),
    )


def one_by_one(connection: psycopg.Connection[Any], orders: Orders) -> Callable[[], int]:
    """Claims one task and submits its result; answers how many were accepted."""

    def step() -> int:
        row = connection.execute(
            "select node_execution_id, lease_token, input_json::text"
            " from wf.sp_worker_request_task(%s, %s)",
            (orders.worker, TOKEN),
        ).fetchone()
        if row is None or row[0] is None:
            return 0
        answer = connection.execute(
            "select accepted from wf.sp_worker_submit_result(%s, %s, %s, 0, %s, %s)",
            (row[0], orders.worker, TOKEN, json.dumps(_OUTPUT), row[1]),
        ).fetchone()
        return int(answer is not None and answer[0])

    return step


def batches(connection: psycopg.Connection[Any], orders: Orders) -> Callable[[], int]:
    """Claims up to a batch and submits all results at once."""

    def step() -> int:
        rows = connection.execute(
            "select node_execution_id, lease_token, input_json::text"
            " from wf.sp_worker_request_tasks(%s, %s, null, 300, %s)",
            (orders.worker, TOKEN, orders.batch),
        ).fetchall()
        if not rows:
            return 0
        results = [
            {
                "node_execution_id": row[0],
                "lease_token": row[1],
                "result_code": 0,
                "output": _OUTPUT,
            }
            for row in rows
        ]
        answers = connection.execute(
            "select accepted from wf.sp_worker_submit_results(%s, %s, %s)",
            (orders.worker, TOKEN, json.dumps(results)),
        ).fetchall()
        return sum(accepted for (accepted,) in answers)

    return step


if __name__ == "__main__":
    main(Orders(**json.loads(sys.argv[1])))

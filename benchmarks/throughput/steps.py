"""One worker: claims and submits on its own connection until nothing is left.

Flow: `python -m benchmarks.throughput.steps URL WORKER BATCH` waits for a line on its standard
input, works, and prints how many steps it made. A handler does nothing, so what is measured is the
runtime.
"""

from __future__ import annotations

import json
import sys

import psycopg

TOKEN = "wf_bench_0123456789012345678901234567890123456789abcd"


def main(url: str, worker: str, batch: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select wf.sp_register_worker(%s, %s, array['*'])", (worker, TOKEN))
        print("ready", flush=True)
        sys.stdin.readline()
        print(
            _one_by_one(connection, worker) if batch == 1 else _batches(connection, worker, batch)
        )


def _one_by_one(connection: psycopg.Connection[tuple[object, ...]], worker: str) -> int:
    done = 0
    while True:
        row = connection.execute(
            "select node_execution_id, lease_token, input_json::text"
            " from wf.sp_worker_request_task(%s, %s)",
            (worker, TOKEN),
        ).fetchone()
        if row is None or row[0] is None:
            return done
        connection.execute(
            "select accepted, reason from wf.sp_worker_submit_result(%s, %s, %s, 0, %s, %s)",
            (row[0], worker, TOKEN, '{"ok": true}', row[1]),
        ).fetchone()
        done += 1


def _batches(connection: psycopg.Connection[tuple[object, ...]], worker: str, batch: int) -> int:
    done = 0
    while True:
        rows = connection.execute(
            "select node_execution_id, lease_token, input_json::text"
            " from wf.sp_worker_request_tasks(%s, %s, null, 300, %s)",
            (worker, TOKEN, batch),
        ).fetchall()
        if not rows:
            return done
        results = [
            {
                "node_execution_id": row[0],
                "lease_token": row[1],
                "result_code": 0,
                "output": {"ok": True},
            }
            for row in rows
        ]
        connection.execute(
            "select accepted, reason from wf.sp_worker_submit_results(%s, %s, %s)",
            (worker, TOKEN, json.dumps(results)),
        ).fetchall()
        done += len(rows)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

"""One sender of events: each event completes the wait of one instance.

Flow: `python -m benchmarks.throughput.ingest JSON` connects, prints `ready`, waits for a line,
sends the events of its keys one by one, and prints how many were applied and when that was.
"""

from __future__ import annotations

import json
import sys
import time

import psycopg


def main(url: str, worker: str, first: int, last: int) -> None:
    applied = 0
    with psycopg.connect(url, autocommit=True) as connection:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(first, last):
            row = connection.execute(
                "select applied_count from wf.sp_ingest_event('bench.event', %s, %s, %s, %s)",
                (worker, str(number), '{"amount": 1}', f"key-{number}"),
            ).fetchone()
            assert row is not None
            applied += row[0]
        ended_at = time.time()
        print(json.dumps({"applied": applied, "ended_at": ended_at}), flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))

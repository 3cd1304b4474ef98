"""Several sessions at once: a call that runs in a thread, and waiting until it is blocked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

T = TypeVar("T")

PATIENCE_SECONDS = 60.0


@contextmanager
def background(call: Callable[[], T]) -> Any:
    """Runs a call in a thread of its own and gives its future; it is joined at the end.

    When the test fails meanwhile, the call may be waiting for a lock of the test's own session, so
    nobody waits for it.
    """
    pool = ThreadPoolExecutor(1)
    try:
        yield pool.submit(call)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def wait_until_blocked(
    observer: psycopg.Connection[Any], blocked: psycopg.Connection[Any], future: Future[Any]
) -> None:
    """Returns once the session waits for a lock; fails if its call ends first.

    Behind a pooler nobody knows which backend a session has; then any one of the database counts.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    pid = None if "WF_PGBOUNCER" in os.environ else blocked.info.backend_pid
    while time.monotonic() < deadline:
        row = observer.execute(
            "select coalesce(bool_or(cardinality(pg_blocking_pids(a.pid)) > 0), false)"
            " from pg_stat_activity a"
            " where a.datname = current_database() and a.pid = coalesce(%s, a.pid)",
            (pid,),
        ).fetchone()
        if row == (True,):
            return
        if future.done():
            raise AssertionError(f"the call did not wait for a lock: {future.result()!r}")
        time.sleep(0.005)
    raise AssertionError("the session was never blocked")

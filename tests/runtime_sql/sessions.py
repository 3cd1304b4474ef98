"""Several sessions at once: a call that runs in a thread, and waiting until it is blocked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

T = TypeVar("T")
U = TypeVar("U")

PATIENCE_SECONDS = 60.0

# The advisory lock of a stop (`stopped`, `variants.put_stop`).
STOP = 4242


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
        # In a transaction the observer would see what it saw first.
        observer.execute("select pg_stat_clear_snapshot()")
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


def meet(
    first: psycopg.Connection[Any],
    one: Callable[[], T],
    second: psycopg.Connection[Any],
    other: Callable[[], U],
    observer: psycopg.Connection[Any],
    meanwhile: Callable[[], object] = lambda: None,
) -> tuple[T, U]:
    """Runs `one`, leaves its transaction open until `other` waits for it, commits; gives both.

    `meanwhile` is called while `other` waits.
    """
    first.execute("begin")
    try:
        answer = one()
        with background(other) as waiting:
            wait_until_blocked(observer, second, waiting)
            meanwhile()
            first.execute("commit")
            return answer, waiting.result()
    finally:
        first.execute("rollback")


def pass_by(
    first: psycopg.Connection[Any],
    one: Callable[[], T],
    second: psycopg.Connection[Any],
    other: Callable[[], U],
) -> tuple[T, U]:
    """Runs `other` while the transaction of `one` is open; fails if it has to wait for it."""
    first.execute("begin")
    try:
        answer = one()
        # Not lock_timeout: a pass survives that in its savepoint.
        second.execute("set statement_timeout = '10s'")
        passed = other()
        first.execute("commit")
        return answer, passed
    finally:
        first.execute("rollback")
        second.execute("reset statement_timeout")


@contextmanager
def stopped(
    observer: psycopg.Connection[Any],
    session: psycopg.Connection[Any],
    call: Callable[[], T],
) -> Iterator[Future[T]]:
    """Runs a call up to the stop that `variants.put_stop` made; it goes on at the end of the block.

    Within the block the call stands at its stop, with all the locks that it has taken so far, and
    the observer is in a transaction, which holds the stop: behind a pooler a session could not.
    """
    observer.execute("begin")
    try:
        observer.execute("select pg_advisory_xact_lock(%s)", (STOP,))
        with background(call) as standing:
            wait_until_blocked(observer, session, standing)
            yield standing
            observer.execute("commit")
    finally:
        observer.execute("rollback")

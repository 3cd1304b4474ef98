"""A backend is killed in the middle of submits: the server restarts, and no submit is cut in two.

A server of its own, with fsync on, since what it has acknowledged must still be there.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from runtime_sql.installer import install
from tests.runtime_sql import drive, stress
from tests.runtime_sql.invariants import broken
from wfsql.embedded import EmbeddedServer

CHAIN = """
    workflow chain {
      foreach x in [1, 2, 3, 4, 5, 6, 7, 8] parallel {
        repeat 200 { action a = t.do(x: var.x) action b = t.do() }
      }
    }
"""
PATIENCE_SECONDS = 60.0


@pytest.fixture
def own_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("crash") / "pg"
    data.mkdir()
    server = EmbeddedServer.start(data)
    try:
        url = server.create_database("crash")
        install(url, test=True)
        yield url
    finally:
        server.stop()


def connect_again(url: str) -> psycopg.Connection[Any]:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return drive.connect(url)
        except psycopg.OperationalError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.1)


def test_a_killed_backend_leaves_each_submit_done_or_not_done(own_url: str, tmp_path: Path) -> None:
    with drive.connect(own_url) as connection:
        drive.deploy(connection, drive.compile_text(tmp_path, CHAIN))
        drive.start(connection, "chain", {})
    acknowledged: list[tuple[int, int]] = []
    in_doubt: list[tuple[int, int]] = []

    def work(session: psycopg.Connection[Any]) -> None:
        task: dict[str, Any] | None = None
        try:
            while True:
                task = drive.claim(session)
                if task is None:
                    continue
                drive.submit(session, task, 0)
                acknowledged.append((task["node_execution_id"], task["lease_token"]))
        except psycopg.OperationalError:
            if task is not None:
                in_doubt.append((task["node_execution_id"], task["lease_token"]))

    sessions = [drive.connect(own_url) for _ in range(4)]
    threads = [threading.Thread(target=work, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while len(acknowledged) < 40 and time.monotonic() < give_up_at:
        time.sleep(0.01)
    os.kill(sessions[0].info.backend_pid, signal.SIGKILL)
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()

    with connect_again(own_url) as connection:
        done = dict(
            connection.execute(
                "select node_execution_id, last_token from wf.node_execution"
                " where answer = 'OK' and status = 'SUCCEEDED'"
            ).fetchall()
        )
        assert {e: token for e, token in acknowledged if done.get(e) != token} == {}
        assert broken(connection) == {}
        for execution, token in in_doubt:
            answer = drive.submit(
                connection, {"node_execution_id": execution, "lease_token": token}, 0
            )
            was_done = (execution, token) in acknowledged or done.get(execution) == token
            assert answer["reason"] == ("REPEATED" if was_done else "OK")
        assert stress.drain(connection) == []
        assert broken(connection) == {}

"""A database whose clock stands still, with what operators meet: instances, workers, tasks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from tests.runtime_sql import drive

NOON = datetime.fromisoformat("2030-01-02T12:00:00+00:00")
CATALOG = """
actions:
  - {name: t.do, capability: t, result_codes: {0: ok}}
  - {name: u.do, capability: u, result_codes: {0: ok}}
"""


@dataclass
class Scene:
    """`connection` may do everything; nobody works here but whom a test registers."""

    connection: psycopg.Connection[Any]
    folder: Path
    now: datetime = NOON

    def begin(self, text: str, context: dict[str, Any] | None = None) -> int:
        """Deploys the one workflow of a text, starts an instance and returns its id."""
        spec = drive.compile_text(self.folder, text, CATALOG)
        drive.deploy(self.connection, spec)
        return drive.start(self.connection, spec.name, context or {})

    def register(self, name: str, *capabilities: str, slots: int = 1) -> None:
        self.connection.execute(
            "select wf.sp_register_worker(%s, %s, %s, %s)",
            (name, drive.TOKEN, list(capabilities), slots),
        )

    def take(self, name: str, at_most: int = 1) -> list[tuple[int, int]]:
        """Claims tasks for a worker, for a minute; returns their ids and lease tokens."""
        rows = self.connection.execute(
            "select r.node_execution_id, r.lease_token"
            " from wf.sp_worker_request_tasks(%s, %s, null, 60, %s) as r"
            " where r.node_execution_id is not null",
            (name, drive.TOKEN, at_most),
        ).fetchall()
        return [(row[0], row[1]) for row in rows]

    def submit(
        self, name: str, task: tuple[int, int], code: int = 0, message: str | None = None
    ) -> None:
        self.connection.execute(
            "select * from wf.sp_worker_submit_result(%s, %s, %s, %s, '{}', %s, %s)",
            (task[0], name, drive.TOKEN, code, task[1], message),
        )

    def send(self, event_type: str, key: str | None) -> None:
        self.connection.execute(
            "select * from wf.sp_ingest_event(%s, 'test', %s, '{}', %s)",
            (event_type, f"{event_type} {key}", key),
        )

    def wait(self, seconds: float) -> None:
        """Moves the clock; what is due then happens at the next call of the engine."""
        self.now += timedelta(seconds=seconds)
        self.set_clock()

    def set_clock(self) -> None:
        self.connection.execute(
            "insert into wf.wf_setting (name, value) values ('now', %s)"
            " on conflict (name) do update set value = excluded.value",
            (self.now.isoformat(),),
        )

"""What a claim and a submit cost, in counts: statements executed and 8 kB pages touched.

Flow: five-action SEQUENCEs run, until plans and caches are warm; then the calls that follow are
counted and compared with cost_guard.json. A tenth more fails. Counts do not depend on how busy the
machine is; they depend on PostgreSQL's version, so another major version is not compared.

Where a growth is meant, or something became cheaper, the numbers of the failure's message (or of
`python -m pytest tests/runtime_sql/test_cost_guard.py -s`) go into the file.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.runtime_sql import drive

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "cost_guard.json").read_text(encoding="utf-8")
)
ACTIONS = " ".join(f"action a{k} = t.do(n: var.n)" for k in range(5))
CHAIN = f"workflow chain {{ input {{ n : int }} {ACTIONS} }}"
WARM, MEASURED = 6, 5
CLAIM = (
    "select node_execution_id, lease_token from wf.sp_worker_request_tasks(%s, %s, null, 300, %s)"
)
SUBMIT = "select * from wf.sp_worker_submit_results(%s, %s, %s)"


class Counter:
    """A connection whose statements, those inside of routines too, are counted by auto_explain."""

    def __init__(self, connection: psycopg.Connection[Any], url: str) -> None:
        self.connection = connection
        self.url = url
        self._statements = 0
        connection.add_notice_handler(self._heard)
        for setting in (
            "load 'auto_explain'",
            "set auto_explain.log_nested_statements = on",
            "set client_min_messages = log",
        ):
            connection.execute(setting.encode())

    def _heard(self, notice: psycopg.errors.Diagnostic) -> None:
        self._statements += (notice.message_primary or "").startswith("duration:")

    def call(self, statement: str, *arguments: Any) -> tuple[list[Any], int]:
        """The rows of a statement, and how many statements that took."""
        self._statements = 0
        self.connection.execute(b"set auto_explain.log_min_duration = 0")
        rows = self.connection.execute(statement.encode(), arguments).fetchall()
        self.connection.execute(b"set auto_explain.log_min_duration = -1")
        return rows, self._statements

    def pages(self, statement: str, *arguments: Any) -> int:
        """Runs a statement and says how many pages it touched."""
        row = self.connection.execute(
            f"explain (analyze, buffers, timing off, format json) {statement}".encode(), arguments
        ).fetchone()
        assert row is not None
        plan = row[0][0]["Plan"]
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


@pytest.fixture
def counter(pg_url: str, tmp_path: Path) -> Iterator[Counter]:
    with drive.connect(pg_url) as connection:
        major = connection.info.server_version // 10_000
        if major != RECORDED["server_major"]:
            pytest.skip(f"recorded on PostgreSQL {RECORDED['server_major']}, this is {major}")
        drive.deploy(connection, drive.compile_text(tmp_path, CHAIN))
        yield Counter(connection, pg_url)


def results(tasks: list[Any]) -> str:
    return json.dumps(
        [
            {"node_execution_id": task[0], "lease_token": task[1], "result_code": 0, "output": {}}
            for task in tasks
        ]
    )


def leased(counter: Counter) -> list[Any]:
    return counter.connection.execute(
        "select t.node_execution_id, t.lease_token from wf.task t"
        " where t.worker_id = %s order by t.node_execution_id",
        (drive.WORKER,),
    ).fetchall()


def found_costs(counter: Counter, batch: int) -> dict[str, int]:
    """Medians of calls that follow some that warm up; each takes or ends `batch` tasks."""
    for n in range(batch * (WARM + 2 * MEASURED)):
        drive.start(counter.connection, "chain", {"n": n})
    counter.connection.execute("vacuum analyze")
    with drive.connect(counter.url) as other, other.transaction():
        # An old snapshot keeps all dead rows: when they would go by themselves depends on what runs
        # in other databases of the server.
        other.execute("set transaction isolation level repeatable read")
        other.execute("select 1")
        return _medians(counter, batch)


def _medians(counter: Counter, batch: int) -> dict[str, int]:
    worker = (drive.WORKER, drive.TOKEN)
    for _call in range(WARM):
        tasks, _statements = counter.call(CLAIM, *worker, batch)
        assert len(tasks) == batch
        counter.call(SUBMIT, *worker, results(tasks))
    found: dict[str, list[int]] = {
        name: []
        for name in ("claim_statements", "claim_pages", "submit_statements", "submit_pages")
    }
    for _call in range(MEASURED):
        tasks, statements = counter.call(CLAIM, *worker, batch)
        found["claim_statements"].append(statements)
        _rows, statements = counter.call(SUBMIT, *worker, results(tasks))
        found["submit_statements"].append(statements)
        found["claim_pages"].append(counter.pages(CLAIM, *worker, batch))
        found["submit_pages"].append(counter.pages(SUBMIT, *worker, results(leased(counter))))
    return {name: int(statistics.median(counts)) for name, counts in found.items()}


@pytest.mark.parametrize("batch", [1, 20])
def test_a_claim_and_a_submit_cost_no_more_than_recorded(counter: Counter, batch: int) -> None:
    recorded = RECORDED[f"batch_{batch}"]

    found = found_costs(counter, batch)

    print(f"batch {batch}: {json.dumps(found)}")
    grown = {
        name: (recorded[name], count)
        for name, count in found.items()
        if count > recorded[name] * 1.1
    }
    assert grown == {}, f"recorded and found: {grown}; all: {found}"


def test_a_statement_within_a_routine_is_counted(counter: Counter) -> None:
    _rows, alone = counter.call("select 1")
    _rows, with_inner = counter.call("select wf.wf_work_limit()")

    assert (alone, with_inner > alone) == (1, True)

"""DBOS: workflows in Python whose steps are rows, written by the process that runs the workflow.

`queue`: workflows are put on a queue, and worker processes take them from it. `in process`: whoever
wants a workflow calls it, so nothing is dispatched; the fan-out then is one workflow of many steps.
Looking every 20 ms (1 s by default) and a pool of 20 connections are its fast settings.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

import protocol
import psycopg
from dbos import DBOS
from protocol import RESULT

told = protocol.orders()
QUEUED = told.variant == "queue"
AT_ONCE = {"steps": 4, "fan": 50, "idle": 4, "drain": 50}[told.workload]
LOOK_SECONDS = 0.02
QUEUE = "bench"


@DBOS.step()
def step(number: int) -> dict[str, bool]:
    return RESULT


@DBOS.step()
async def step_at_once(number: int) -> dict[str, bool]:
    return RESULT


@DBOS.workflow()
def chain(steps: int) -> dict[str, bool]:
    for number in range(steps):
        step(number)
    return RESULT


@DBOS.workflow()
def leaf() -> dict[str, bool]:
    return RESULT


@DBOS.workflow()
def fan(items: int) -> dict[str, bool]:
    handles = [DBOS.enqueue_workflow(QUEUE, leaf) for _ in range(items)]
    for handle in handles:
        handle.get_result(polling_interval_sec=LOOK_SECONDS)
    return RESULT


@DBOS.workflow()
async def fan_of_steps(items: int) -> dict[str, bool]:
    await asyncio.gather(*(step_at_once(number) for number in range(items)))
    return RESULT


def launch(name: str, queues: list[str]) -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": told.url,
            "executor_id": name,
            "application_version": "1",
            "log_level": "ERROR",
            "sys_db_pool_size": 20,
            "run_migrations": told.role == "main",
        }
    )
    DBOS.listen_queues(queues)
    DBOS.launch()


def work() -> None:
    launch(f"w{told.index}", [QUEUE] if QUEUED else [])
    protocol.get_ready()
    if QUEUED:
        protocol.end_with_parent()
        time.sleep(3600)
    sys.stdin.readline()
    for _number in range(told.workflows // told.processes):
        chain(told.steps)
    print("done", flush=True)
    sys.stdin.readline()


def main() -> None:
    launch("main", [])
    DBOS.register_queue(QUEUE, worker_concurrency=AT_ONCE, polling_interval_sec=LOOK_SECONDS)
    database = psycopg.connect(told.url, autocommit=True)

    def count(statement: str) -> int:
        ((found,),) = database.execute(statement).fetchall()
        return int(found)

    def succeeded() -> int:
        return count("select count(*) from dbos.workflow_status where status = 'SUCCESS'")

    def steps_made() -> int:
        return count("select count(*) from dbos.operation_outputs")

    def steps() -> None:
        with protocol.team(__file__, told, told.processes) as workers:
            time.sleep(1)
            with protocol.load() as taken:
                if QUEUED:
                    for _number in range(told.workflows):
                        DBOS.enqueue_workflow(QUEUE, chain, told.steps)
                    protocol.until(lambda: succeeded() == told.workflows, 0.02)
                else:
                    for worker in workers:
                        worker.stdin.write("go\n")
                        worker.stdin.flush()
                    for worker in workers:
                        protocol.expect(worker, "done")
        wanted = told.workflows // told.processes * told.processes
        protocol.require(steps_made(), wanted * told.steps)
        protocol.answer(steps_made(), taken.seconds)

    def fan_out() -> None:
        if not QUEUED:
            with protocol.load() as taken:
                asyncio.run(fan_of_steps(told.fan))
            protocol.require(steps_made(), told.fan)
        else:
            with protocol.team(__file__, told, told.processes):
                time.sleep(1)
                with protocol.load() as taken:
                    fan(told.fan)
            protocol.require(succeeded(), told.fan + 1)
        protocol.answer(told.fan, taken.seconds)

    def start(_number: int) -> Any:
        if not QUEUED:
            chain(1)
            return lambda: True
        handle = DBOS.enqueue_workflow(QUEUE, chain, 1)
        statement = (
            "select 1 from dbos.workflow_status where workflow_uuid = %s and status = 'SUCCESS'"
        )
        name = handle.get_workflow_id()
        return lambda: database.execute(statement, (name,)).fetchone() is not None

    def idle() -> None:
        with protocol.team(__file__, told, 1 if QUEUED else 0):
            time.sleep(1)
            protocol.idle(told, start)

    def drain() -> None:
        DBOS.enqueue_workflow(QUEUE, leaf)
        multiply(database, told.jobs - 1)
        database.execute("vacuum analyze")
        with protocol.team(__file__, told, told.processes):
            protocol.drain(told, succeeded)

    {"steps": steps, "fan": fan_out, "idle": idle, "drain": drain}[told.workload]()
    sys.stdout.flush()
    os._exit(0)


def multiply(database: psycopg.Connection[Any], times: int) -> None:
    """Copies the one workflow that is queued: through the calls it would take many minutes."""
    database.execute(
        "create temp table copies as select gen_random_uuid()::text as copy_id, n"
        " from generate_series(1, %s) as n",
        (times,),
    )
    changed = {"workflow_uuid": "c.copy_id", "created_at": "o.created_at + c.n"}
    for table in ("workflow_input", "workflow_status"):
        columns = [
            name
            for (name,) in database.execute(
                "select column_name from information_schema.columns where table_schema = 'dbos'"
                " and table_name = %s and is_generated = 'NEVER' and is_identity = 'NO'",
                (table,),
            )
        ]
        named = ", ".join(f'"{name}"' for name in columns)
        values = ", ".join(changed.get(name, f'o."{name}"') for name in columns)
        database.execute(
            f"insert into dbos.{table} ({named})"
            f" select {values} from dbos.{table} as o cross join copies as c"
        )


if __name__ == "__main__":
    main() if told.role == "main" else work()

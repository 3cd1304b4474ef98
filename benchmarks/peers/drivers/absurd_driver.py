"""absurd-sdk: a task whose steps are checkpoints, made in the worker's process; its SQL is given.

Batches of claims and a pause of 20 ms between looks (250 ms by default) are its fast settings.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import protocol
import psycopg
from absurd_sdk import Absurd
from protocol import RESULT

told = protocol.orders()
CLAIMED_AT_ONCE = {"steps": 10, "fan": 50, "idle": 1, "drain": 50}[told.workload]
LOOK_SECONDS = 0.02
# A task may wait only for tasks of another queue.
PARENTS, CHILDREN = "parents", "children"


def connect(queue: str) -> Any:
    app = Absurd(told.url, queue_name=queue)

    if queue == PARENTS:

        @app.register_task("chain", queue=PARENTS)
        def chain(parameters: Any, context: Any) -> Any:
            for number in range(parameters["steps"]):
                context.step(f"step-{number}", lambda: RESULT)
            return RESULT

        @app.register_task("fan", queue=PARENTS)
        def fan(parameters: Any, context: Any) -> Any:
            def spawn() -> list[str]:
                made = [
                    app.spawn("leaf", {}, queue=CHILDREN, idempotency_key=f"{context.task_id}-{n}")
                    for n in range(parameters["items"])
                ]
                return [str(child["task_id"]) for child in made]

            for child in context.step("spawn", spawn):
                context.await_task_result(child, queue_name=CHILDREN)
            return RESULT

    if queue == CHILDREN or told.workload != "fan":

        @app.register_task("leaf", queue=queue)
        def leaf(_parameters: Any, _context: Any) -> Any:
            return RESULT

    return app


def work(queue: str) -> None:
    app = connect(queue)
    protocol.get_ready()
    protocol.end_with_parent()
    app.start_worker(
        worker_id=f"{queue}-{told.index}",
        batch_size=CLAIMED_AT_ONCE,
        concurrency=1,
        poll_interval=LOOK_SECONDS,
        claim_timeout=120,
    )


def main() -> None:
    database = psycopg.connect(told.url, autocommit=True)
    database.execute(Path(told.sql).read_bytes())
    app = connect(PARENTS)
    for queue in (PARENTS, CHILDREN):
        app.create_queue(queue)

    def completed(queue: str) -> int:
        statement = f"select count(*) from absurd.t_{queue} where state = 'completed'"
        ((found,),) = database.execute(statement).fetchall()
        return int(found)

    def steps() -> None:
        with (
            protocol.team(__file__, told, told.processes, PARENTS),
            protocol.load() as taken,
        ):
            for _number in range(told.workflows):
                app.spawn("chain", {"steps": told.steps}, queue=PARENTS)
            protocol.until(lambda: completed(PARENTS) == told.workflows, 0.02)
        ((made,),) = database.execute(f"select count(*) from absurd.c_{PARENTS}").fetchall()
        protocol.require(made, told.workflows * told.steps)
        protocol.answer(made, taken.seconds)

    def fan() -> None:
        with (
            protocol.team(__file__, told, told.processes, CHILDREN),
            protocol.team(__file__, told, 1, PARENTS),
            protocol.load() as taken,
        ):
            app.spawn("fan", {"items": told.fan}, queue=PARENTS)
            protocol.until(lambda: completed(PARENTS) == 1, 0.02)
        protocol.require(completed(CHILDREN), told.fan)
        protocol.answer(told.fan, taken.seconds)

    def start(_number: int) -> Any:
        made = app.spawn("chain", {"steps": 1}, queue=PARENTS)
        statement = f"select 1 from absurd.t_{PARENTS} where task_id = %s and state = 'completed'"
        return lambda: database.execute(statement, (made["task_id"],)).fetchone() is not None

    def idle() -> None:
        with protocol.team(__file__, told, 1, PARENTS):
            protocol.idle(told, start)

    def drain() -> None:
        database.execute(
            "select count(*) from generate_series(1, %s) as n cross join lateral"
            f" absurd.spawn_task('{PARENTS}', 'leaf', jsonb_build_object('n', n), '{{}}'::jsonb)",
            (told.jobs,),
        )
        database.execute("vacuum analyze")
        with protocol.team(__file__, told, told.processes, PARENTS):
            protocol.drain(told, lambda: completed(PARENTS))

    {"steps": steps, "fan": fan, "idle": idle, "drain": drain}[told.workload]()
    os._exit(0)


if __name__ == "__main__":
    main() if told.role == "main" else work(told.role)

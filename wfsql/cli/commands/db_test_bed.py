"""`wf db test-bed`: puts the test bed's workflows into a database and runs each of them there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from runtime_sql.connection import connect
from runtime_sql.installer import install
from runtime_sql.test_bed import (
    ExampleRun,
    default_folder,
    deploy_seeds,
    missing_file,
    run_examples,
)
from wfsql.cli.database import JsonOption, UrlOption, good, need_url, stop_with
from wfsql.cli.main import CommandError
from wfsql.cli.output import say, say_error, write_json


def command(
    url: UrlOption = None,
    seed_dir: Annotated[
        Path | None,
        typer.Option(
            "--seed-dir",
            metavar="DIR",
            help="The seeds and their instance_context_examples; those of the runtime by default.",
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Install the test bed and run its workflows inside the database, with scripted results.

    The database must be one that nobody works in: a run takes every task that there is. No worker
    is needed. The exit code is 1 when a run did not end as its example says.

    Example:  wf db test-bed --url postgresql://me@localhost/scratch
    """
    target = need_url(url)
    folder = default_folder(target) if seed_dir is None else seed_dir
    lacking = missing_file(folder)
    if lacking is not None:
        raise CommandError(f"{folder} lacks {lacking}")
    good(install(target, test=True))
    client = good(connect(target))
    try:
        failure = deploy_seeds(client, folder)
        if failure is not None:
            stop_with(failure)
        runs = good(run_examples(client, folder))
    except ValueError as error:
        raise CommandError(str(error)) from error
    finally:
        client.close()
    _report(runs, json)
    return 0 if all(run.mismatch is None for run in runs) else 1


def _report(runs: list[ExampleRun], json: bool) -> None:
    if json:
        write_json(
            {
                "runs": [
                    {
                        "example": run.name,
                        "run_id": run.run_id,
                        "instance_id": run.instance_id,
                        "status": run.status,
                        "task_count": run.task_count,
                        "mismatch": run.mismatch,
                    }
                    for run in runs
                ]
            }
        )
        return
    for run in runs:
        if run.mismatch is None:
            say(f"{run.name}: passed, {run.task_count} tasks (run {run.run_id})")
        else:
            say_error(f"{run.name}: {run.mismatch}", f"wf trace {run.instance_id} has all of it")

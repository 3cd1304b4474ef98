"""The test bed: whole runs inside the database, its seeds, and the command that runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from compiler.pipeline import compile_file
from emit_mssql.emitter import emit as emit_mssql
from emit_pg.emitter import emit as emit_pg
from runtime_sql.scripts import read_script
from runtime_sql.test_bed import CONTEXTS, SEED_SCRIPTS, default_folder, missing_file
from tests.runtime_sql import drive
from wfsql.cli.main import main

Connection = psycopg.Connection[Any]

SOURCES = Path(__file__).parents[2] / "runtime_sql" / "test_bed"

TEXT = """
    workflow w {
      input { n : int = 1 }
      output { got = ctx.task.b.output }
      action a = t.do(n: var.n) { retry 1 backoff 1h }
      sleep 2h
      action b = t.do() { timeout 10m }
    }
"""


@pytest.fixture
def connection(any_url: str) -> Iterator[Connection]:
    with drive.connect(any_url) as connection:
        yield connection


def play(
    connection: Connection, script: Any = None, context: Any = None, name: str = "w"
) -> dict[str, Any]:
    with connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        cursor.execute(
            "select * from wf.sp_test_bed_run_workflow(%s, %s, %s)",
            (name, drive.json(context or {}), drive.json({} if script is None else script)),
        )
        return cursor.fetchone() or {}


@pytest.fixture
def deployed(connection: Connection, tmp_path: Path) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, TEXT))


@pytest.mark.usefixtures("deployed")
def test_a_run_goes_through_retries_and_times_to_its_end(connection: Connection) -> None:
    run = play(
        connection,
        {
            "results": {"a": [{"code": -2}, {}], "b": [{"output": 5}]},
            "expect": {"output": {"got": 5}},
        },
    )

    assert (run["instance_status"], run["task_count"], run["mismatch"]) == ("SUCCEEDED", 3, None)
    assert run["output_json"] == {"got": 5}
    assert connection.execute(
        "select node_key, attempt_no, result_code from wf.test_bed_task_log order by task_no"
    ).fetchall() == [("a", 1, -2), ("a", 2, 0), ("b", 1, 0)]
    (hours,) = connection.execute(
        "select extract(epoch from ended_at - started_at) / 3600 from wf.test_bed_run"
    ).fetchone() or (0,)
    assert hours == 3


@pytest.mark.usefixtures("deployed")
def test_a_run_leaves_no_worker_and_no_stopped_clock(connection: Connection) -> None:
    play(connection)

    assert connection.execute("select count(*) from wf.worker").fetchone() == (1,)
    clock = connection.execute("select value from wf.wf_setting where name = 'now'").fetchone()
    assert clock is None


@pytest.mark.usefixtures("deployed")
def test_a_result_that_never_comes_times_out(connection: Connection) -> None:
    run = play(connection, {"results": {"b": [{"hang": True}]}, "expect": {"status": "FAILED"}})

    assert (run["instance_status"], run["mismatch"]) == ("FAILED", None)


@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize(
    ("script", "mismatch"),
    [
        (
            {"results": {"b": [{"code": -1, "message": "no"}]}},
            "status FAILED, not SUCCEEDED: no",
        ),
        ({"expect": {"output": {"got": 1}}}, 'output {"got": {}}, not {"got": 1}'),
        ({"expect": {"status": "FAILED"}}, "status SUCCEEDED, not FAILED"),
    ],
)
def test_what_differs_from_the_expectation_is_said(
    connection: Connection, script: Any, mismatch: str
) -> None:
    # jsonb writes a blank after a colon, T-SQL writes what it was given.
    said = str(play(connection, script)["mismatch"])
    assert said.replace('":', '": ').replace("  ", " ") == mismatch


def test_a_run_that_is_stuck_is_cancelled(connection: Connection, tmp_path: Path) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, "workflow w { action a = t.do() }"))
    run = play(connection, {"results": {"a": [{"hang": True}]}})

    assert run["mismatch"] == "still running: nothing can be claimed and nothing is due"
    assert run["instance_status"] == "CANCELLED"


def test_events_of_the_script_complete_waits(connection: Connection, tmp_path: Path) -> None:
    text = """
        workflow w {
          output { got = var.got }
          wait_event go on "t.go" { correlate "k" set got = event.payload.n }
        }
    """
    drive.deploy(connection, drive.compile_text(tmp_path, text))
    events = [
        {"type": "t.go", "correlation_key": "other", "payload": {"n": 1}},
        {"type": "t.go", "correlation_key": "k", "payload": {"n": 2}},
    ]
    run = play(connection, {"events": events, "expect": {"output": {"got": 2}}})

    assert run["mismatch"] is None


@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ([], 'a script is {"results": {node: […]}, "events": […], "expect": {"status", "output"}}'),
        ({"result": {}}, 'a script is {"results": {node: […]}, "events": […], "expect": '),
        ({"results": {"a": {}}}, "the results of a must be a list of"),
        ({"results": {"a": []}}, "the results of a must be a list of"),
        ({"results": {"a": [3]}}, "the results of a must be a list of"),
        ({"results": {"a": [{"kode": 1}]}}, "the results of a must be a list of"),
        ({"results": {"nobody": [{}]}}, "the workflow has no action nobody"),
        ({"results": {"w": [{}]}}, "the workflow has no action w"),
    ],
)
def test_a_script_of_another_form_is_refused(
    connection: Connection, script: Any, message: str
) -> None:
    with pytest.raises(psycopg.DatabaseError) as raised:
        play(connection, script)
    assert raised.value.diag.message_detail == "20004"
    assert str(raised.value.diag.message_primary).startswith(message)
    assert connection.execute("select count(*) from wf.workflow_instance").fetchone() == (0,)


@pytest.mark.usefixtures("deployed")
def test_a_database_with_running_instances_is_no_test_bed(connection: Connection) -> None:
    drive.start(connection, "w", {})
    with pytest.raises(psycopg.DatabaseError) as raised:
        play(connection)
    assert raised.value.diag.message_detail == "20003"


def test_an_unknown_workflow_is_not_run(connection: Connection) -> None:
    with pytest.raises(psycopg.DatabaseError) as raised:
        play(connection, name="nothing")
    assert raised.value.diag.message_detail == "20002"


# Seeds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SEED_SCRIPTS)
def test_the_seeds_are_what_the_compiler_emits(name: str) -> None:
    (spec,) = compile_file(SOURCES / f"{name}.wf").specs
    assert read_script("pg", SEED_SCRIPTS[name]) == emit_pg(spec)
    assert read_script("mssql", SEED_SCRIPTS[name]) == emit_mssql(spec)


@pytest.mark.parametrize("url", ["postgresql://", "mssql://host/database"])
def test_the_seeds_that_ship_are_whole(url: str) -> None:
    assert missing_file(default_folder(url)) is None


def test_the_command_installs_deploys_and_runs(
    empty_pg_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["db", "test-bed", "--url", empty_pg_url, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [(r["example"], r["status"], r["mismatch"]) for r in runs] == [
        (name, "SUCCEEDED", None) for name in SEED_SCRIPTS
    ]
    assert main(["db", "test-bed", "--url", empty_pg_url]) == 0
    assert capsys.readouterr().err.splitlines()[0] == "flat_demo: passed, 6 tasks (run 5)"


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    """A folder of seeds to change."""
    folder = tmp_path / "seeds"
    (folder / CONTEXTS).mkdir(parents=True)
    for name, script in SEED_SCRIPTS.items():
        shutil.copy(default_folder() / script, folder)
        shutil.copy(default_folder() / CONTEXTS / f"{name}.json", folder / CONTEXTS)
    return folder


def test_a_run_that_differs_fails_the_command(
    pg_url: str, seeds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = seeds / CONTEXTS / "two_groups.json"
    file.write_text(file.read_text().replace("[11, 21]", "[11, 22]"))

    assert main(["db", "test-bed", "--url", pg_url, "--seed-dir", str(seeds)]) == 1
    assert "error: two_groups: output " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("gone", "named"),
    [
        (["wf_two_group_test_seed.sql"], "wf_two_group_test_seed.sql"),
        (
            ["instance_context_examples/tree_demo.json", "wf_mc_two_group_test_seed.sql"],
            "wf_mc_two_group_test_seed.sql",
        ),
        (["instance_context_examples/tree_demo.json"], "instance_context_examples/tree_demo.json"),
    ],
)
def test_the_first_missing_file_is_named_by_command_and_script(
    seeds: Path, capsys: pytest.CaptureFixture[str], gone: list[str], named: str
) -> None:
    for name in gone:
        (seeds / name).unlink()

    assert main(["db", "test-bed", "--url", "x", "--seed-dir", str(seeds)]) == 1
    assert capsys.readouterr().err.strip() == f"error: {seeds} lacks {named}"
    done = subprocess.run(
        ["sh", str(default_folder() / "deploy_test_bed.sh"), "--seed-dir", str(seeds)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (1, f"error: {seeds} lacks {named}")


def test_a_context_that_is_no_example_is_named(
    pg_url: str, seeds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = seeds / CONTEXTS / "flat_demo.json"
    file.write_text('{"workflow": "flat_demo"}')

    assert main(["db", "test-bed", "--url", pg_url, "--seed-dir", str(seeds)]) == 1
    assert f'error: {file}: not {{"workflow", "context", "script"}}' in capsys.readouterr().err


def test_the_script_deploys_and_runs(pg_url: str, tmp_path: Path) -> None:
    wf = tmp_path / "wf"
    wf.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wfsql "$@"\n')
    wf.chmod(0o755)
    done = subprocess.run(
        ["sh", str(default_folder() / "deploy_test_bed.sh"), "--url", pg_url],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"WF": str(wf), "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 4), done.stderr

"""The workflows of the load, and a database that has them: the template of every fresh one."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.durable import Durable
from benchmarks.measure import BenchmarkError
from compiler.pipeline import compile_text
from emit_pg.emitter import emit
from runtime_sql.installer import Installed, install

CATALOG = "actions: [{name: t.do, capability: t}]"
ACTIONS = 5
CHAIN = "\n".join(
    (
        "workflow chain { input { n : int }",
        *(f"  action a{k} = t.do(n: var.n)" for k in range(ACTIONS)),
        "}",
    )
)
ONE = "workflow one { input { n : int } action a = t.do(n: var.n) }"
FAN = """workflow fan { input { xs : list<int> }
  foreach x in var.xs parallel { action a = t.do(x: var.x) } }"""
WAIT = """workflow waiting { input { key : string }
  wait_event w on "bench.event" { correlate var.key } }"""
TEMPLATE = "wfsql_template"


def make_template(server: Durable) -> str:
    """Installs the runtime into a database and deploys all workflows there; returns its name."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"create database {TEMPLATE} template template0".encode())
    installed = install(server.url(TEMPLATE))
    if not isinstance(installed, Installed):
        raise BenchmarkError(f"the runtime was not installed: {installed}")
    deploy_all(server.url(TEMPLATE))
    return TEMPLATE


def deploy_all(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for text in (CHAIN, ONE, FAN, WAIT):
            connection.execute(_script(text).encode())


def _script(text: str) -> str:
    with tempfile.TemporaryDirectory(prefix="wfsql-bench-") as folder:
        catalog = Path(folder) / "bench.actions.yaml"
        catalog.write_text(CATALOG, encoding="utf-8")
        result = compile_text(text, "bench.wf", [catalog])
    if not result.specs:
        raise BenchmarkError(f"the benchmark's workflow has errors: {result.diagnostics}")
    return emit(result.specs[0])


def start_many(
    connection: psycopg.Connection[Any], name: str, contexts: list[dict[str, Any]], at_once: int
) -> None:
    """Creates and starts one instance for each context, `at_once` of them in a transaction."""
    for begin in range(0, len(contexts), at_once):
        connection.execute(
            "select count(s.instance_status) from jsonb_array_elements(%s) as c(value)"
            " cross join lateral wf.wf_repo_create_workflow_instance(%s, c.value) as i"
            " cross join lateral wf.sp_start_workflow_instance(i.workflow_instance_id) as s",
            (json.dumps(contexts[begin : begin + at_once]), name),
        )


def unfinished(connection: psycopg.Connection[Any]) -> int:
    """How many instances have not succeeded."""
    row = connection.execute(
        "select count(*) from wf.workflow_instance as i where i.status <> 'SUCCEEDED'"
    ).fetchone()
    assert row is not None
    return int(row[0])

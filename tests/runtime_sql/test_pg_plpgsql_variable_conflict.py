"""Names in a workflow that mean something to PL/pgSQL, to SQL or to the engine are only names.

Variables, fields, keys of nodes and of events are data to every routine. Here they are called like
columns, parameters (`p_…`), locals (`v_…`), placeholders (`$1`), keywords, operators and special
variables of PL/pgSQL, and both engines must leave the same trace. That no routine takes a column
for a variable is PL/pgSQL's own check when it runs (its default is an error), and plpgsql_check's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from compiler import json_values
from runtime_sql.scripts import SCRIPTS, read_script
from tests.runtime_sql import drive

# Columns of the engine's tables; parameters and locals of its routines; words of SQL and PL/pgSQL.
WORDS = """
    id status result value name node_key node_execution_id workflow_instance_id scope_id
    iteration_no output_json value_json ordinal error_code kind attempt_no result_code

    p_now p_entries p_output p_workflow_instance_id v_id v_row v_now v_value new_id q t n

    user current_user select from where order end begin declare new old sqlstate sqlerrm ctid oid
    xmin tableoid all any array row values default table column union wf public query found
    strict into using perform raise exception loop exit rowcount is like similar between
"""
NAMES = tuple(WORDS.split())
# A field, or a key of a map, may be any text.
FIELDS = (
    *NAMES,
    "$1", "$2", ":id", "@p", "?", "%s", "%1$s", "a b", "'", '"', "''", '";--', "\\", "{", "}",
    "[0]", "${var.id}", "-", "->>", "||", "*", "::text", "--", "/*", "0", "-1", "", "é", "İ", "ı",
)  # fmt: skip


@pytest.fixture
def connection(pg_url: str) -> Iterator[psycopg.Connection[Any]]:
    with drive.connect(pg_url) as connection:
        yield connection


def on_both(
    connection: psycopg.Connection[Any], folder: Path, text: str, context: dict[str, Any]
) -> dict[str, Any]:
    """Runs on both engines, actions giving back their input; answers the one trace."""
    spec = drive.compile_text(folder, text)
    document = drive.run_pg(connection, spec, context, drive.Scripted())
    assert drive.readable(document) == drive.readable(
        drive.run_local(spec, context, drive.Scripted())
    )
    assert document["status"] == "SUCCEEDED", document["error"]
    return document


def test_inputs_and_outputs(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    text = f"""
        workflow names {{
          input {{ {", ".join(f"{name}: int" for name in NAMES)} }}
          output {{ {", ".join(f"{name} = var.{name}" for name in NAMES)} }}
        }}
    """
    given = {name: number for number, name in enumerate(NAMES)}

    assert on_both(connection, tmp_path, text, given)["output"] == given


def test_variables_that_are_set_collected_and_looped_over(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    body = "\n".join(
        f"""
          foreach {name} in [1, 2] {{
            set x_{name} = var.{name} + 1
            collect {name}_s = var.x_{name}
          }}
          foreach x in [3, 4] parallel {{
            var {name} : int = var.x
            set {name} = var.{name} * 2
            collect {name}_p = var.{name}
          }}
        """
        for name in NAMES
    )
    outputs = ", ".join(f"{name} = [var.{name}_s, var.{name}_p]" for name in NAMES)

    document = on_both(
        connection, tmp_path, f"workflow names {{ output {{ {outputs} }} {body} }}", {}
    )

    assert document["output"] == {name: [[2, 3], [6, 8]] for name in NAMES}


def test_keys_of_nodes(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    body = "\n".join(
        f"""
          action {name} = t.do({name}: 1)
          if {name} {{ fail -1 }}
          set {name}_out = ctx.task.{name}.output.echo.{name}
        """
        for name in NAMES
    )
    outputs = ", ".join(f"{name} = var.{name}_out" for name in NAMES)

    document = on_both(
        connection, tmp_path, f"workflow names {{ output {{ {outputs} }} {body} }}", {}
    )

    assert document["output"] == dict.fromkeys(NAMES, 1)


def test_fields_of_data_inputs_of_actions_and_interpolation(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    given = {"data": {field: f"<{field}>" for field in FIELDS}}
    quoted = {field: json_values.dumps(field).replace("${", "$${") for field in FIELDS}
    args = ", ".join(f"f{n}: var.data[{quoted[field]}]" for n, field in enumerate(FIELDS))
    text = f"""
        workflow names {{
          input {{ data: any }}
          output {{ echo = var.echo, all = var.data, first = var.first }}
          action a = t.do({args}, all: var.data) {{ set echo = out.echo }}
          set first = "1: ${{var.data.id}} ${{var.data.status}} ${{var.data.v_id}}"
        }}
    """

    output = on_both(connection, tmp_path, text, given)["output"]

    assert output["echo"] == {f"f{n}": f"<{field}>" for n, field in enumerate(FIELDS)} | {
        "all": given["data"]
    }
    assert (output["all"], output["first"]) == (given["data"], "1: <id> <status> <v_id>")


def test_fields_and_keys_of_events(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    names = NAMES[:20]
    text = f"""
        workflow names {{
          input {{ key: string }}
          output {{ got = var.got, status = ctx.event.payload.status }}
          wait_event id on "v_id" {{
            correlate var.key
            set got = [{", ".join(f"event.payload.{name}" for name in names)}]
          }}
        }}
    """
    drive.deploy(connection, drive.compile_text(tmp_path, text))
    payload = {name: number for number, name in enumerate(names)}
    for number, key in enumerate(("$1", "v_id", "null", "user", "'; --", "%s")):
        instance = drive.start(connection, "names", {"key": key})
        row = connection.execute(
            "select applied_count from wf.sp_ingest_event('v_id', 'p_source', %s, %s, %s)",
            (f"$1 {number}", drive.json(payload), key),
        ).fetchone()
        assert row == (1,), key
        assert drive.trace(connection, instance)["output"] == {
            "got": list(range(len(names))),
            "status": 1,
        }


@pytest.mark.parametrize("name", ["id", "v_id", "user", "select", "$1", "a' or true --", "%s"])
def test_names_that_the_api_takes(
    connection: psycopg.Connection[Any], tmp_path: Path, name: str
) -> None:
    """Workers, capabilities, sources, business keys, tags and extensions."""
    drive.deploy(connection, drive.compile_text(tmp_path, "workflow w { action a = t.do() }"))
    row = connection.execute(
        "select workflow_instance_id from wf.wf_repo_create_workflow_instance("
        "'w', '{}', p_business_key => %s, p_tags_json => %s)",
        (name, drive.json({name: name})),
    ).fetchone()
    assert row is not None
    connection.execute("select wf.sp_start_workflow_instance(%s)", row)
    connection.execute(
        "select wf.wf_repo_upsert_instance_extension(%s, %s, %s)", (*row, name, drive.json(name))
    )
    connection.execute(
        "select wf.sp_register_worker(%s, %s, array['t', %s])", (name, drive.TOKEN, name)
    )

    assert connection.execute(
        "select node_key from wf.sp_worker_request_task(%s, %s, 't')", (name, drive.TOKEN)
    ).fetchone() == ("a",)
    assert connection.execute(
        "select worker_id from wf.v_lease where worker_id = %s", (name,)
    ).fetchone() == (name,)
    assert connection.execute(
        "select name, value from wf.instance_tag where workflow_instance_id = %s", row
    ).fetchone() == (name, name)


def test_no_routine_resolves_a_conflict_in_favour_of_a_variable() -> None:
    """`#variable_conflict use_variable` would let a new column change what a routine means."""
    lax = [
        name
        for name in SCRIPTS["pg"]
        if re.search(r"#variable_conflict\s+use_variable", read_script("pg", name))
    ]

    assert lax == []

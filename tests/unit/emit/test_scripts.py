"""Deploy scripts of both dialects: what they hold, how they are shaped, that they never vary."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

import emit_mssql.emitter as mssql
import emit_pg.emitter as pg
from compiler import json_values
from compiler.emit.base import INVISIBLE
from compiler.emit.plan import plan_deploy
from compiler.spec import GraphSpec, dump_spec
from tests.unit.emit.read_back import (
    comparable,
    parsed_inserts,
    planned_rows,
    rows_of,
    statements,
)
from tests.unit.emit.small_specs import NODE_TYPES, action, awkward, edges, node, spec, wide

EMITTERS = {"postgres": pg.emit, "tsql": mssql.emit}
SPECS = NODE_TYPES | {"awkward": awkward()}
ROOT = Path(__file__).parents[3]

both_dialects = pytest.mark.parametrize("dialect", EMITTERS)


@both_dialects
@pytest.mark.parametrize("name", SPECS)
def test_the_rows_of_the_plan_are_the_rows_of_the_script(name: str, dialect: str) -> None:
    script = EMITTERS[dialect](SPECS[name])
    assert comparable(rows_of(script, dialect)) == comparable(
        planned_rows(plan_deploy(SPECS[name]))
    )


@both_dialects
def test_every_row_has_a_line_of_its_own(dialect: str) -> None:
    script = EMITTERS[dialect](wide(20))
    lines = [line for line in script.splitlines() if line.startswith("  (")]
    assert len(lines) == sum(len(rows) for rows in rows_of(script, dialect).values())


@both_dialects
def test_a_script_has_line_feeds_only_and_ends_in_one(dialect: str) -> None:
    script = EMITTERS[dialect](awkward())
    assert INVISIBLE.sub("", script.replace("\n", "")) == script.replace("\n", "")
    assert script.endswith("\n")
    assert not script.endswith("\n\n")


@both_dialects
def test_comments_hold_no_text_of_the_user(dialect: str) -> None:
    hostile = spec("x\n; drop table y --", [node("r", "SEQUENCE")], [])
    comments = [line for line in EMITTERS[dialect](hostile).splitlines() if line.startswith("--")]
    assert comments[0] == "-- workflow: x___drop_table_y_--"
    assert all(re.fullmatch(r"-- [a-z_]+: [A-Za-z0-9_./-]+", line) for line in comments)


@both_dialects
def test_rows_of_a_version_are_inserted_only_while_it_is_unpublished(dialect: str) -> None:
    shared = {"workflow_def", "workflow_version", "workflow_action", "workflow_action_revision"}
    for insert in parsed_inserts(EMITTERS[dialect](SPECS["foreach"]), dialect):
        if insert.this.this.name in shared:
            continue
        where = insert.expression.args["where"]
        assert where.this == exp.column("published_at", table="v").is_(exp.null())


@both_dialects
def test_shared_rows_are_sorted_so_that_two_deploys_lock_alike(dialect: str) -> None:
    keys = [node("r", "SEQUENCE"), action("a", name="z.z"), action("b", name="a.a")]
    graph = spec("order_of", keys, edges(("r", "a", "SEQUENCE"), ("r", "b", "SEQUENCE")))
    rows = rows_of(EMITTERS[dialect](graph), dialect)
    assert [row["action_name"] for row in rows["workflow_action"]] == ["a.a", "z.z"]


@both_dialects
def test_a_value_that_no_database_stores_is_refused(dialect: str) -> None:
    broken = spec("broken", [node("r", "SEQUENCE", fail={"code": -1, "message": "\x00"})], [])
    with pytest.raises(json_values.UnstorableValue, match=r"U\+0000"):
        EMITTERS[dialect](broken)


def test_the_postgresql_script_is_one_transaction_without_psql_commands() -> None:
    script = pg.emit(SPECS["action"])
    parts = statements(script)
    assert parts[0] == "begin isolation level read committed"
    assert parts[1:3] == [
        "set local standard_conforming_strings = on",
        "set local client_encoding = 'UTF8'",
    ]
    assert parts[3] == "select wf.wf_require_runtime(p_version => 2)"
    assert "pg_advisory_xact_lock" in parts[4]
    assert parts[-1] == "commit"
    assert not any(line.startswith("\\") for line in script.splitlines())


def test_sqlglot_understands_every_statement_of_the_postgresql_script() -> None:
    for statement in statements(pg.emit(awkward())):
        assert not isinstance(sqlglot.parse_one(statement, read="postgres"), exp.Command)


@pytest.mark.parametrize("activate", [True, False])
def test_the_postgresql_script_publishes_as_it_was_told(activate: bool) -> None:
    publish = statements(pg.emit(SPECS["if"], activate=activate, update_actions=not activate))[-2]
    arguments = {
        k.this.name: value.name if (value := k.expression).is_string else value.this
        for k in sqlglot.parse_one(publish, read="postgres").find_all(exp.Kwarg)
    }
    assert arguments == {
        "p_name": "choice",
        "p_content_hash": SPECS["if"].content_hash(),
        "p_activate": activate,
        "p_update_actions": not activate,
    }


@pytest.mark.parametrize("activate", [True, False])
def test_the_tsql_script_publishes_as_it_was_told(activate: bool) -> None:
    script = mssql.emit(SPECS["if"], activate=activate, update_actions=not activate)
    assert f"@activate = {int(activate)}, @update_actions = {int(not activate)};" in script


def test_the_tsql_settings_stand_in_a_batch_of_their_own() -> None:
    settings = mssql.emit(SPECS["if"]).split("\nGO\n")[0]
    code = [line for line in settings.splitlines() if line and not line.startswith("--")]
    assert code == [
        "set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,",
        "    concat_null_yields_null on;",
        "set numeric_roundabort off;",
        "set xact_abort on;",
        "set nocount on;",
    ]


def test_every_tsql_batch_after_the_first_makes_sure_of_the_transaction() -> None:
    later = mssql.emit(SPECS["foreach"]).split("\nGO\n")[2:-1]
    assert len(later) > 5
    assert all(batch.strip().startswith("if xact_state() <> 1 throw") for batch in later)


def test_no_tsql_statement_has_more_than_a_thousand_rows() -> None:
    parts = [s for s in statements(mssql.emit(wide(2_100))) if "insert into wf.workflow_node" in s]
    assert [part.count("\n  (N'") for part in parts] == [1_000, 1_000, 101]


@pytest.mark.parametrize(("name", "expected"), [("if", False), ("awkward", True)])
def test_a_tsql_script_checks_its_encoding_when_it_is_not_ascii(name: str, expected: bool) -> None:
    script = mssql.emit(SPECS[name])
    assert ("unicode(N'é')" in script) is expected
    assert script.isascii() is not expected


def test_no_line_of_a_tsql_script_is_go_but_the_separators() -> None:
    script = mssql.emit(awkward())
    batches = script.split("\nGO\n")
    assert sum(line.strip().upper().startswith("GO") for line in script.splitlines()) == (
        len(batches) - 1 + int(script.endswith("\nGO"))
    )


def _emit_elsewhere(emitter: str, document: Path, cwd: Path, seed: str) -> bytes:
    code = (
        "import pathlib, sys\n"
        "from compiler.spec import parse_spec\n"
        f"from {emitter}.emitter import emit\n"
        "text = pathlib.Path(sys.argv[1]).read_text(encoding='utf-8')\n"
        "sys.stdout.buffer.write(emit(parse_spec(text)).encode())\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, str(document)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, check=True).stdout


@pytest.mark.parametrize("emitter", ["emit_pg", "emit_mssql"])
def test_hash_seed_and_folder_do_not_change_a_byte(emitter: str, tmp_path: Path) -> None:
    document = tmp_path / "spec.json"
    document.write_text(dump_spec(awkward()), encoding="utf-8")
    runs = [
        _emit_elsewhere(emitter, document, cwd, seed)
        for cwd, seed in ((ROOT, "0"), (tmp_path, "1"), (Path("/"), "random"))
    ]
    emit: Callable[[GraphSpec], str] = pg.emit if emitter == "emit_pg" else mssql.emit
    assert {*runs} == {emit(awkward()).encode()}

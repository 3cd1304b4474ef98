"""The contract holds for both trees and a fresh database, and each kind of difference is found."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from runtime_sql.contract.catalogue import read_catalogue
from runtime_sql.contract.comparison import Difference, compare, compare_stems
from runtime_sql.contract.model import (
    FILE,
    Contract,
    ContractError,
    Planned,
    Schema,
    load_contract,
    read_contract,
)
from runtime_sql.contract.sql_files import read_text, read_tree
from runtime_sql.contract.validate_contract import main, validate_database, validate_tree
from runtime_sql.scripts import SCRIPTS, Dialect, read_script
from tests.runtime_sql import drive
from tests.runtime_sql.conftest import GraphDatabase

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def contract() -> Contract:
    return load_contract()


def lines(differences: tuple[Difference, ...]) -> list[str]:
    return [str(difference) for difference in differences]


def shape(connection: psycopg.Connection[Any]) -> Schema:
    """What a database holds, leaving out rights and owners, which a new object has not yet."""
    return replace(read_catalogue(connection), rights={}, uses_roles=False, faults=())


def new_lines(before: tuple[Difference, ...], after: tuple[Difference, ...]) -> list[str]:
    """Returns what a change brought, whatever differed before it."""
    return [str(difference) for difference in after if difference not in before]


# As it stands -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["pg", "mssql"])
def test_the_contract_holds_for_the_files(dialect: Dialect) -> None:
    assert lines(validate_tree(dialect)) == []


@pytest.mark.parametrize("dialect", ["pg", "mssql"])
def test_the_files_grant_what_the_contract_gives_to_roles_and_nothing_else(
    dialect: Dialect, contract: Contract
) -> None:
    assert read_tree(dialect).rights == contract.rights()


def test_the_contract_holds_for_a_fresh_database(pg_url: str) -> None:
    assert validate_database(pg_url) == ()


def test_the_files_are_read_as_the_catalogue_has_them(
    runtime_connection: psycopg.Connection[Any],
) -> None:
    """Every routine and table, not only those of the contract: so the reader is to be trusted."""
    there = read_catalogue(runtime_connection)
    runtime_connection.rollback()
    declared = read_tree("pg")
    assert declared.routines == there.routines
    assert _tables(declared) == _tables(there)
    assert _view_columns(declared) == _view_columns(there)


def _tables(schema: Schema) -> dict[str, Any]:
    return {name: r.columns for name, r in schema.relations.items() if r.kind == "table"}


def _view_columns(schema: Schema) -> dict[str, list[str]]:
    return {
        name: [column.name for column in r.columns or ()]
        for name, r in schema.relations.items()
        if r.kind == "view"
    }


def test_every_listed_routine_is_called_by_a_test(contract: Contract) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    text += (TESTS / "runtime_sql" / "drive.py").read_text(encoding="utf-8")
    uncalled = [
        routine.name
        for routine in contract.routines
        if not re.search(
            rf"(?<!function )(?<!procedure )\bwf\.{routine.name}\("
            rf"|\bcall\(\w+, \"{routine.name}\""
            rf"|\.answer\(\s*\"{routine.name}\"",
            text,
        )
    ]
    assert uncalled == []


# A database that differs --------------------------------------------------------------------------

TICK_COLUMNS = "reclaimed_count integer, timer_count integer, released_count integer"


def tick(parameters: str = "", columns: str = TICK_COLUMNS) -> str:
    """Makes sp_tick anew, with other parameters or columns."""
    return (
        f"drop function wf.sp_tick(); create function wf.sp_tick({parameters})"
        f" returns table ({columns}) language sql as 'select 1, 1, 1';"
        f" revoke all on all routines in schema wf from public"
    )


def new_function(name: str, parameters: str = "") -> str:
    return (
        f"create function wf.{name}({parameters}) returns integer language sql as 'select 1';"
        " revoke all on all routines in schema wf from public"
    )


CHANGES = {
    "a dropped routine": ("drop function wf.sp_tick()", ["missing in schema wf: sp_tick"]),
    "a new sp_ routine": (new_function("sp_new"), ["function sp_new: not in the contract"]),
    "a new wf_repo_ routine": (
        new_function("wf_repo_new"),
        ["function wf_repo_new: not in the contract"],
    ),
    "a new v_ view": (
        "create view wf.v_new as select 1 as one",
        ["view v_new: not in the contract"],
    ),
    "a new materialized view": (
        "create materialized view wf.v_new as select 1 as one",
        ["materialized view v_new: not in the contract"],
    ),
    "an overload": (
        new_function("sp_tick", "p_limit integer"),
        ["function sp_tick: exists 2 times with other parameters"],
    ),
    "an added parameter": (
        tick("p_limit integer default 5"),
        ["function sp_tick: parameter 1 (limit integer default 5) is not in the contract"],
    ),
    "a changed default": (
        "create or replace function wf.wf_reclaim_expired_leases(p_limit integer default 7)"
        " returns integer language sql as 'select 1'",
        [
            "function wf_reclaim_expired_leases: parameter 1 must be limit integer default 100,"
            " not limit integer default 7"
        ],
    ),
    "a renamed parameter": (
        "drop function wf.wf_reclaim_expired_leases(integer);"
        " create function wf.wf_reclaim_expired_leases(p_most integer default 100)"
        " returns integer language sql as 'select 1';"
        " revoke all on all routines in schema wf from public",
        [
            "function wf_reclaim_expired_leases: parameter 1 must be limit integer default 100,"
            " not most integer default 100"
        ],
    ),
    "another type of a parameter": (
        "drop function wf.wf_trace_instance(bigint);"
        " create function wf.wf_trace_instance(p_workflow_instance_id integer)"
        " returns jsonb language sql as 'select null::jsonb';"
        " revoke all on all routines in schema wf from public",
        [
            "function wf_trace_instance: parameter 1 must be workflow_instance_id bigint,"
            " not workflow_instance_id integer"
        ],
    ),
    "another type of the value": (
        "drop function wf.wf_reclaim_expired_leases(integer);"
        " create function wf.wf_reclaim_expired_leases(p_limit integer default 100)"
        " returns bigint language sql as 'select 1::bigint';"
        " revoke all on all routines in schema wf from public",
        ["function wf_reclaim_expired_leases: must return integer, not bigint"],
    ),
    "a renamed result column": (
        tick(columns=TICK_COLUMNS.replace("timer", "timers")),
        ["function sp_tick: result column 2 must be timer_count integer, not timers_count integer"],
    ),
    "a missing result column": (
        "drop function wf.sp_tick(); create function wf.sp_tick()"
        " returns table (reclaimed_count integer, timer_count integer)"
        " language sql as 'select 1, 1'; revoke all on all routines in schema wf from public",
        ["function sp_tick: result column 3 (released_count integer) is missing"],
    ),
    "a procedure in place of a function": (
        "drop function wf.sp_set_worker_state(text, text);"
        " create procedure wf.sp_set_worker_state(p_worker_id text, p_desired_state text)"
        " language sql as 'select 1'; revoke all on all routines in schema wf from public",
        ["procedure sp_set_worker_state: must be a function"],
    ),
    "a missing view": ("drop view wf.v_instance", ["missing in schema wf: v_instance"]),
    "a renamed view column": (
        "alter view wf.v_instance rename column status to state",
        ["view v_instance: column 4 must be status text, not state text"],
    ),
    "a table in place of a view": (
        "drop view wf.task_lease; create table wf.task_lease (id bigint)",
        ["table task_lease: must be a view"],
    ),
    "a missing table": ("drop table wf.audit_log", ["missing in schema wf: audit_log"]),
    "a renamed table column": (
        "alter table wf.worker rename column build_id to build",
        [
            "table worker: column build_id text null is missing",
            "table worker: column build text null is not in the contract",
        ],
    ),
    "another type of a table column": (
        "alter table wf.schedule alter column next_due_at type bigint using null",
        [
            "table schedule: column next_due_at must be next_due_at timestamptz null,"
            " not next_due_at bigint null"
        ],
    ),
    "a table column that may be null": (
        "alter table wf.worker alter column desired_state drop not null",
        [
            "table worker: column desired_state must be desired_state text not null,"
            " not desired_state text null"
        ],
    ),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_a_change_in_the_database_is_found(
    runtime_connection: psycopg.Connection[Any],
    contract: Contract,
    change: str,
    expected: list[str],
) -> None:
    try:
        before = compare(contract, shape(runtime_connection))
        runtime_connection.execute(change.encode())
        after = compare(contract, shape(runtime_connection))
        assert new_lines(before, after) == expected
    finally:
        runtime_connection.rollback()


RIGHTS = {
    "a right of PUBLIC": (
        "grant execute on function wf.sp_tick() to public",
        ["sp_tick: PUBLIC must not have execute"],
    ),
    "a right that a role must not have": (
        "grant execute on function wf.wf_truth(jsonb) to wf_reader",
        ["wf_truth: wf_reader must not have execute"],
    ),
    "a right that a role lacks": (
        "revoke execute on function wf.sp_tick() from wf_gateway",
        ["sp_tick: wf_gateway lacks execute"],
    ),
    "a table that a role may read": (
        "grant select on wf.worker_token to wf_gateway",
        ["worker_token: wf_gateway must not have select"],
    ),
    "a column that a role may write": (
        "grant update (is_active) on wf.workflow_version to wf_author",
        ["workflow_version: wf_author must not have update"],
    ),
    "the schema open to PUBLIC": (
        "grant usage on schema wf to public",
        ["schema wf: PUBLIC has usage"],
    ),
    "another owner": (
        "alter function wf.sp_tick() owner to postgres",
        ["sp_tick: belongs to postgres, not to wf_owner"],
    ),
    "a search_path that anybody can fill": (
        "alter function wf.sp_tick() set search_path = public",
        ["function sp_tick: security definer without a search_path"],
    ),
}


@pytest.mark.parametrize(("change", "expected"), RIGHTS.values(), ids=RIGHTS)
def test_a_change_of_rights_is_found(
    runtime_connection: psycopg.Connection[Any],
    contract: Contract,
    change: str,
    expected: list[str],
) -> None:
    try:
        runtime_connection.execute(change.encode())
        assert lines(compare(contract, read_catalogue(runtime_connection))) == expected
    finally:
        runtime_connection.rollback()


def test_an_object_that_was_planned_is_found(
    runtime_connection: psycopg.Connection[Any], contract: Contract
) -> None:
    planned = replace(contract, planned=(Planned("later", "table"),))
    try:
        runtime_connection.execute("create table wf.later (id bigint)")
        assert lines(compare(planned, shape(runtime_connection)))[-1:] == [
            "table later: exists, but the contract has it as planned"
        ]
    finally:
        runtime_connection.rollback()


def test_the_grants_of_the_files_are_those_of_a_database(
    runtime_connection: psycopg.Connection[Any],
) -> None:
    there = read_catalogue(runtime_connection)
    runtime_connection.rollback()
    assert read_tree("pg").rights == there.rights


def test_what_is_not_public_may_come_and_go(
    runtime_connection: psycopg.Connection[Any], contract: Contract
) -> None:
    try:
        before = compare(contract, shape(runtime_connection))
        runtime_connection.execute(
            "create table wf.something (id bigint); create view wf.other as select 1 as one;"
            f" {new_function('wf_inner')}".encode()
        )
        after = compare(contract, shape(runtime_connection))
        assert new_lines(before, after) == []
    finally:
        runtime_connection.rollback()


def test_a_database_without_the_runtime_misses_all_of_it(
    empty_pg_url: str, contract: Contract
) -> None:
    found = validate_database(empty_pg_url, contract)
    assert isinstance(found, tuple), found
    assert {difference.kind for difference in found} == {"missing"}
    assert {difference.name for difference in found} == contract.names()


# Files that differ --------------------------------------------------------------------------------


def tree(dialect: Dialect) -> str:
    return "\n".join(read_script(dialect, name) for name in SCRIPTS[dialect])


FILE_CHANGES = {
    "a dropped routine": (
        ("function wf.sp_tick()", "function wf.wf_tick()"),
        ["missing in schema wf: sp_tick"],
    ),
    "a new routine": (
        ("function wf.wf_raise(", "function wf.sp_raise("),
        ["function sp_raise: not in the contract"],
    ),
    "a changed default": (
        ("p_extend_seconds integer default 300", "p_extend_seconds integer default 30"),
        [
            "function sp_worker_heartbeat: parameter 4 must be extend_seconds integer default 300,"
            " not extend_seconds integer default 30"
        ],
    ),
    "a renamed result column": (
        (
            "p_limit integer default 1000\n) returns table (purged_count integer)\nlanguage plpgsql"
            " security definer set search_path = pg_catalog, pg_temp\nset plan_cache",
            "p_limit integer default 1000\n) returns table (gone_count integer)\nlanguage plpgsql"
            " security definer set search_path = pg_catalog, pg_temp\nset plan_cache",
        ),
        [
            "function sp_purge_instances: result column 1 must be purged_count integer,"
            " not gone_count integer"
        ],
    ),
    "a missing view": (
        ("view wf.v_instance as", "view wf.instances as"),
        ["missing in schema wf: v_instance"],
    ),
    "a renamed view column": (
        ("n.node_key as error_node_key", "n.node_key as error_key"),
        ["view v_instance: column 12 must be error_node_key text, not error_key ?"],
    ),
    "a renamed table column": (
        ("    build_id ", "    build "),
        [
            "table worker: column build_id text null is missing",
            "table worker: column build text null is not in the contract",
        ],
    ),
    "a grant to one more role": (
        ("\n       to wf_operator;\n\n    -- Looking", "\n       to wf_operator, wf_author;\n\n"),
        [
            f"{name}: wf_author must not have execute"
            for name in (
                "sp_cancel_workflow_instance",
                "sp_delete_workflow_def",
                "sp_pause_workflow_instance",
                "sp_purge_bundles",
                "sp_purge_events",
                "sp_purge_instances",
                "sp_release_affinity",
                "sp_resume_workflow_instance",
                "sp_retry_failed_node",
                "sp_set_worker_state",
                "wf_repo_upsert_event_type",
            )
        ],
    ),
}


@pytest.mark.parametrize(("change", "expected"), FILE_CHANGES.values(), ids=FILE_CHANGES)
def test_a_change_in_the_postgresql_files_is_found(
    contract: Contract, change: tuple[str, str], expected: list[str]
) -> None:
    text = tree("pg")
    assert text.count(change[0]) == 1
    before = compare(contract, read_text(text, "pg"))
    after = compare(contract, read_text(text.replace(*change), "pg"))
    assert new_lines(before, after) == expected


HASH_THEN_ACTIVATE = "    @content_hash nvarchar(4000),\n    @activate bit = 1,"

TSQL_CHANGES = {
    "a renamed parameter": (
        (HASH_THEN_ACTIVATE, HASH_THEN_ACTIVATE.replace("@activate", "@active")),
        [
            "procedure wf_publish_workflow_version: parameter 3 must be activate bit default …,"
            " not active bit default …"
        ],
    ),
    "a parameter that lost its default": (
        (HASH_THEN_ACTIVATE, HASH_THEN_ACTIVATE.replace(" = 1", "")),
        [
            "procedure wf_publish_workflow_version: parameter 3 must be activate bit default …,"
            " not activate bit"
        ],
    ),
    "another kind": (
        ("procedure wf.wf_set_version_notes", "function wf.wf_set_version_notes"),
        ["function wf_set_version_notes: must be a procedure"],
    ),
    "a public routine": (
        ("procedure wf.wf_verify_graph", "procedure wf.sp_verify_graph"),
        ["procedure sp_verify_graph: not in the contract"],
    ),
    "a renamed table column": (
        ("    desired_state ", "    desired "),
        [
            "table worker: column desired_state nvarchar not null is missing",
            "table worker: column desired nvarchar not null is not in the contract",
        ],
    ),
}


@pytest.mark.parametrize(("change", "expected"), TSQL_CHANGES.values(), ids=TSQL_CHANGES)
def test_a_change_in_the_tsql_files_is_found(
    contract: Contract, change: tuple[str, str], expected: list[str]
) -> None:
    text = tree("mssql")
    assert text.count(change[0]) == 1
    before = compare_stems(contract, read_text(text, "mssql"))
    after = compare_stems(contract, read_text(text.replace(*change), "mssql"))
    assert new_lines(before, after) == expected


def test_output_parameters_of_tsql_are_result_columns(contract: Contract) -> None:
    head = (
        "create or alter procedure wf.wf_try_task_result_code\n    @execution_id bigint,\n"
        "    @task_key nvarchar(200),\n    @value_json nvarchar(max) output,\n"
        "    @error_code int output,\n    @message nvarchar(max) output\nas\nbegin\n"
    )
    assert lines(compare_stems(contract, read_text(head, "mssql"))) == [
        "procedure wf_try_task_result_code: output parameter 3 must be error_message nvarchar,"
        " not message nvarchar"
    ]


# The file itself ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written() -> Any:
    return yaml.safe_load((files("runtime_sql.contract") / FILE).read_text(encoding="utf-8"))


MISTAKES: dict[str, tuple[Callable[[Any], object], str]] = {
    "an unknown key": (
        lambda d: d["routines"][0].update(row="one"),
        r"wf_worker_authenticate: missing \[\], unknown \['row'\]",
    ),
    "a missing key": (lambda d: d["views"][0].pop("group"), r"task_lease: missing \['group'\]"),
    "an unknown type": (
        lambda d: d["tables"][0]["columns"].update(name="string"),
        "wf_setting: name has the unknown type string",
    ),
    "an unknown group": (lambda d: d["tables"][0].update(group="x"), "there is no group x"),
    "a name that stands twice": (
        lambda d: d["planned"].append({"name": "sp_tick", "kind": "routine"}),
        "listed twice: sp_tick",
    ),
    "rows without columns": (
        lambda d: d["routines"][0].update(rows="one"),
        "wf_worker_authenticate: rows one does not fit",
    ),
    "an unknown error code": (
        lambda d: d["routines"][0].update(errors=[20099]),
        "wf_worker_authenticate: errors must be known codes",
    ),
    "an unknown role": (
        lambda d: d["views"][0].update(roles=["wf_owner"]),
        "task_lease: there is no role wf_owner",
    ),
    "a dialect without its kind": (
        lambda d: d["routines"][0].update(kind={"pg": "function"}),
        r"wf_worker_authenticate: kind: missing \['mssql'\]",
    ),
}


@pytest.mark.parametrize(("mistake", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_file_is_refused(
    written: Any, mistake: Callable[[Any], object], message: str
) -> None:
    document = copy.deepcopy(written)
    mistake(document)
    with pytest.raises(ContractError, match=message):
        read_contract(document)


# The command --------------------------------------------------------------------------------------


def test_the_command_checks_files_and_database(
    pg_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--url", pg_url]) == 0
    assert capsys.readouterr().out.startswith("the contract holds: ")


def test_the_command_writes_a_line_for_each_difference(
    pg_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute("drop view wf.v_node_execution")
        connection.execute("drop function wf.sp_tick()")
    assert main(["--url", pg_url]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "database: missing in schema wf: sp_tick",
        "database: missing in schema wf: v_node_execution",
    ]


def test_the_command_says_when_the_database_does_not_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--url", "postgresql://nobody@127.0.0.1:1/nothing"]) == 2
    assert capsys.readouterr().out.startswith("error: the database cannot be reached: ")


# Listed routines that no other test calls by name -------------------------------------------------


@pytest.fixture
def connection(pg_url: str) -> Iterator[psycopg.Connection[Any]]:
    with drive.connect(pg_url) as connection:
        yield connection


def one_row(connection: psycopg.Connection[Any], query: str) -> tuple[Any, ...]:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return tuple(row)


def test_version_notes_are_written_to_a_version_that_is_there(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, "workflow w { action a = t.do() }"))
    connection.execute(
        "select wf.wf_set_version_notes('w', v.content_hash, '{\"a\": 1}', 'new words')"
        " from wf.workflow_version v"
    )
    assert one_row(
        connection,
        "select v.source_map ->> 'a', d.description"
        " from wf.workflow_version v join wf.workflow_def d using (workflow_def_id)",
    ) == ("1", "new words")


def test_version_notes_of_an_unknown_version_are_refused(
    connection: psycopg.Connection[Any],
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute("select wf.wf_set_version_notes('w', 'no hash', '{}', null)")
    assert (caught.value.sqlstate, caught.value.diag.message_detail) == ("WA002", "20002")


def test_reclaiming_takes_back_a_lease_that_has_ended(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, "workflow w { action a = t.do() }"))
    drive.start(connection, "w", {})
    assert drive.claim(connection, lease_seconds=10) is not None
    assert one_row(connection, "select wf.wf_reclaim_expired_leases()") == (0,)
    connection.execute(
        "insert into wf.wf_setting (name, value)"
        " values ('now', (wf.wf_now() + interval '11 seconds')::text)"
    )
    assert one_row(connection, "select wf.wf_reclaim_expired_leases(10)") == (1,)
    assert one_row(connection, "select worker_id, lease_until from wf.task") == (None, None)


@pytest.fixture
def sequence(database: GraphDatabase) -> int:
    """A root with an ended action `a` and a running action `b`; answers the execution of `b`."""
    database.node("w", "SEQUENCE")
    database.node("a", "ACTION", "w")
    database.node("b", "ACTION", "w")
    root = database.execution("w")
    database.execution("a", root, status="SUCCEEDED", result_code=3)
    return database.execution("b", root)


def test_the_result_code_of_an_ended_task_is_answered(
    database: GraphDatabase, sequence: int
) -> None:
    answer = database.answer("wf_try_task_result_code", execution_id=sequence, task_key="a")
    assert answer == 3


def test_the_result_code_of_a_running_task_is_not_there(
    database: GraphDatabase, sequence: int
) -> None:
    answer = database.answer("wf_try_task_result_code", execution_id=sequence, task_key="b")
    assert answer == (10001, "ctx.task.b.resultCode is not there")


def test_every_call_that_runs_the_engine_is_planned_alike(pg_url: str) -> None:
    """A plan that one call makes is kept for the session and serves the others, too."""
    with psycopg.connect(pg_url) as connection:
        rows = connection.execute(
            "select p.proname, p.proconfig from pg_proc p"
            " where p.pronamespace = 'wf'::regnamespace and p.prosecdef"
            " and p.prosrc ~ 'wf_engine_|wf_submit|wf_apply_due|wf_run_timers|wf_reclaim'"
        ).fetchall()
    assert {name for name, _ in rows} >= {"sp_tick", "sp_worker_submit_result"}
    wanted = {"plan_cache_mode=force_generic_plan", "enable_seqscan=off"}
    assert [name for name, settings in rows if not wanted <= set(settings)] == []

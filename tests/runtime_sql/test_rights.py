"""Who may do what: the roles, what PUBLIC has, whose rights routines run with (R3, R22)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from emit_pg.emitter import emit
from runtime_sql.connection import PostgresClient, connect
from runtime_sql.contract.model import ROLES, load_contract
from runtime_sql.failures import DatabaseProblem
from runtime_sql.installer import Installed, install, uninstall
from runtime_sql.scripts import read_script
from tests.runtime_sql import drive

WORKFLOW = """
    workflow w {
      input { n : int }
      output { seen = ctx.task.a.resultCode }
      action a = t.do(n: var.n)
    }
"""


@pytest.fixture
def connection(pg_url: str) -> Iterator[psycopg.Connection[Any]]:
    with drive.connect(pg_url) as connection:
        yield connection


@contextmanager
def acting_as(connection: psycopg.Connection[Any], role: str) -> Iterator[None]:
    connection.execute(f"set role {role}".encode())
    try:
        yield
    finally:
        connection.execute("reset role")


def refused(connection: psycopg.Connection[Any], statement: str, *arguments: Any) -> bool:
    """Whether a statement ends in a lack of rights; any other error is raised."""
    try:
        connection.execute(statement.encode(), arguments)
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def started(connection: psycopg.Connection[Any], folder: Path) -> int:
    drive.deploy(connection, drive.compile_text(folder, WORKFLOW))
    return drive.start(connection, "w", {"n": 1})


def login(connection: psycopg.Connection[Any], url: str, *roles: str, options: str = "") -> str:
    """Makes a login of its own, member of roles, and returns its URL."""
    name = f"login_{connection.info.dbname}_{len(roles)}"
    connection.execute(f"drop role if exists {name}".encode())
    connection.execute(f"create role {name} login {options}".encode())
    for role in roles:
        connection.execute(f"grant {role} to {name}".encode())
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{name}@{parts.netloc.rpartition('@')[2]}"))


# What nobody may ------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [r for r in ROLES if r != "wf_author"])
def test_a_role_has_no_right_to_any_table(connection: psycopg.Connection[Any], role: str) -> None:
    rows = connection.execute(
        "select c.relname::text from pg_class c"
        " where c.relnamespace = 'wf'::regnamespace and c.relkind = 'r'"
        " and has_any_column_privilege(%s, c.oid, 'select, insert, update, references')",
        (role,),
    ).fetchall()
    assert rows == []


def test_a_login_without_a_role_may_nothing(
    connection: psycopg.Connection[Any], pg_url: str
) -> None:
    answer = connect(login(connection, pg_url))
    assert isinstance(answer, DatabaseProblem)
    assert answer.kind == "not_allowed"


def test_nothing_is_executable_by_public(connection: psycopg.Connection[Any]) -> None:
    rows = connection.execute(
        "select p.proname::text from pg_proc p"
        " cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a"
        " where p.pronamespace = 'wf'::regnamespace and a.grantee = 0"
    ).fetchall()
    assert rows == []


def test_only_the_api_and_what_views_need_runs_with_the_owners_rights(
    connection: psycopg.Connection[Any],
) -> None:
    rows = connection.execute(
        "select p.proname::text from pg_proc p where p.pronamespace = 'wf'::regnamespace"
        " and p.prosecdef and p.prorettype <> 'trigger'::regtype"
    ).fetchall()
    found = {row[0] for row in rows} - {"wf_now", "wf_execution_path"}
    apis = {"worker_api", "event_api", "repository_api", "admin"}
    listed = [r for r in load_contract().routines if r.group in apis]
    assert {r.name for r in listed if r.roles} <= found <= {r.name for r in listed}


def test_all_that_runs_with_the_owners_rights_belongs_to_wf_owner_and_has_a_safe_path(
    connection: psycopg.Connection[Any],
) -> None:
    rows = connection.execute(
        "select distinct p.proowner::regrole::text,"
        " array_to_string(array(select s from unnest(p.proconfig) s"
        "                        where s like 'search_path=%'), ',')"
        " from pg_proc p where p.pronamespace = 'wf'::regnamespace and p.prosecdef"
    ).fetchall()
    assert rows == [("wf_owner", "search_path=pg_catalog, pg_temp")]


def test_wf_owner_is_nobody_s_login(connection: psycopg.Connection[Any]) -> None:
    row = connection.execute(
        "select rolcanlogin, rolsuper, rolcreaterole, rolcreatedb from pg_roles"
        " where rolname = 'wf_owner'"
    ).fetchone()
    assert row == (False, False, False, False)


# wf_author ------------------------------------------------------------------------------------


def test_an_author_deploys(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    spec = drive.compile_text(tmp_path, WORKFLOW)
    with acting_as(connection, "wf_author"):
        drive.deploy(connection, spec)
        drive.deploy(connection, spec)
    rows = connection.execute("select version_no, is_active from wf.workflow_version").fetchall()
    assert rows == [(1, True)]


@pytest.mark.parametrize(
    "statement",
    [
        "update wf.workflow_def set description = 'x'",
        "delete from wf.workflow_node",
        "truncate wf.workflow_edge cascade",
        "insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, published_at)"
        " select workflow_def_id, repeat('a', 64), 1, now() from wf.workflow_def",
        "insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, is_active)"
        " select workflow_def_id, repeat('a', 64), 1, true from wf.workflow_def",
        "insert into wf.workflow_action (action_name, capability, paused) values ('x', 'x', true)",
        "insert into wf.wf_setting values ('now', '2020-01-01')",
        "select * from wf.workflow_instance",
        "select * from wf.v_instance",
        "select * from wf.sp_tick()",
    ],
)
def test_an_author_may_only_add_rows(
    connection: psycopg.Connection[Any], tmp_path: Path, statement: str
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, WORKFLOW))
    with acting_as(connection, "wf_author"):
        assert refused(connection, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated)"
        " select workflow_version_id, 'x', 'SEQUENCE', false"
        " from wf.workflow_version",
        "insert into wf.workflow_edge select workflow_version_id, 'w', 'a', 'SEQUENCE', 9"
        " from wf.workflow_version",
    ],
)
def test_rows_for_a_published_version_are_refused(
    connection: psycopg.Connection[Any], tmp_path: Path, statement: str
) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, WORKFLOW))
    with acting_as(connection, "wf_author"), pytest.raises(psycopg.Error) as caught:
        connection.execute(statement.encode())
    assert caught.value.sqlstate == "WA003"


# wf_gateway -----------------------------------------------------------------------------------


def test_a_gateway_runs_an_instance(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    drive.deploy(connection, drive.compile_text(tmp_path, WORKFLOW))
    with acting_as(connection, "wf_gateway"):
        drive.start(connection, "w", {"n": 1})
        task = drive.claim(connection)
        assert task is not None
        assert drive.submit(connection, task, 0)["instance_status"] == "SUCCEEDED"


@pytest.mark.parametrize(
    "statement",
    [
        "select * from wf.task",
        "select * from wf.worker_token",
        "select * from wf.node_execution",
        "select * from wf.v_node_execution",
        "select * from wf.v_ready",
        "select * from wf.v_lease",
        "select * from wf.task_lease",
        "select wf.wf_trace_instance(1)",
        "select wf.wf_submit('driver', '{}')",
        "select * from wf.sp_cancel_workflow_instance(1)",
    ],
)
def test_a_gateway_reads_no_table_no_token_and_no_other_worker_s_task(
    connection: psycopg.Connection[Any], statement: str
) -> None:
    with acting_as(connection, "wf_gateway"):
        assert refused(connection, statement)


def test_a_worker_cannot_submit_for_another(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    started(connection, tmp_path)
    task = drive.claim(connection)
    assert task is not None
    other = drive.TOKEN + "other"
    with acting_as(connection, "wf_gateway"):
        connection.execute("select wf.sp_register_worker('other', %s, array['*'])", (other,))
        row = connection.execute(
            "select accepted, reason from wf.sp_worker_submit_result(%s, 'other', %s, 0, null, %s)",
            (task["node_execution_id"], other, task["lease_token"]),
        ).fetchone()
        assert row == (False, "STALE")
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(
                "select 1 from wf.sp_worker_submit_result(%s, %s, %s, 0, null, %s)",
                (task["node_execution_id"], drive.WORKER, other, task["lease_token"]),
            )
    assert caught.value.sqlstate == "WA001"


def test_a_login_of_the_gateway_role_can_work_and_start(
    connection: psycopg.Connection[Any], pg_url: str, tmp_path: Path
) -> None:
    instance = started(connection, tmp_path)
    client = connect(login(connection, pg_url, "wf_gateway"))
    assert isinstance(client, PostgresClient), client
    answers = [
        client.action_capabilities(),
        [row.name for row in client.inputs("w", None)],  # type: ignore[union-attr]
        client.output_names(instance),
        client.event_types(),
        client.waiting_capabilities(instance),
        client.tick(),
        client.vacuum_tasks(),
    ]
    dead = client.dead_task_rows()
    found = client.get_instance(instance)
    client.close()
    assert answers == [{"t.do": "t"}, ["n"], ["seen"], [], [], None, None]
    assert isinstance(dead, int)
    assert getattr(found, "status", found) == "RUNNING"


# wf_operator and wf_reader ----------------------------------------------------------------------


@pytest.mark.parametrize("role", ["wf_reader", "wf_operator"])
def test_who_looks_can_read_every_view(
    connection: psycopg.Connection[Any], tmp_path: Path, role: str
) -> None:
    instance = started(connection, tmp_path)
    views = [r.name for r in load_contract().relations if r.kind == "view"]
    with acting_as(connection, role):
        for view in views:
            connection.execute(f"select * from wf.{view}".encode())
        assert drive.trace(connection, instance)["status"] == "RUNNING"


@pytest.mark.parametrize(
    "statement",
    [
        "select * from wf.workflow_instance",
        "select * from wf.sp_cancel_workflow_instance(1)",
        "select * from wf.sp_worker_request_task('driver', 'x')",
        "select * from wf.wf_repo_create_workflow_instance('w', '{}')",
        "select * from wf.sp_tick()",
    ],
)
def test_a_reader_may_only_look(connection: psycopg.Connection[Any], statement: str) -> None:
    with acting_as(connection, "wf_reader"):
        assert refused(connection, statement)


def test_an_operator_pauses_and_cancels(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    instance = started(connection, tmp_path)
    with acting_as(connection, "wf_operator"):
        connection.execute("select * from wf.sp_pause_workflow_instance(%s)", (instance,))
        connection.execute("select * from wf.sp_cancel_workflow_instance(%s)", (instance,))
    assert drive.trace(connection, instance)["status"] == "CANCELLED"


# The clock --------------------------------------------------------------------------------------


def test_the_clock_moves_in_a_test_database_only(empty_pg_url: str) -> None:
    assert install(empty_pg_url) == Installed(2, changed=True)
    with psycopg.connect(empty_pg_url, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("insert into wf.wf_setting values ('now', '2020-01-01')")
        assert caught.value.sqlstate == "WA008"
        connection.execute("insert into wf.wf_setting values ('test_database', 'true')")
        connection.execute("insert into wf.wf_setting values ('now', '2020-01-01')")
        assert connection.execute("select wf.wf_now() < '2020-01-02'").fetchone() == (True,)


# Who installs -----------------------------------------------------------------------------------


def test_a_login_that_may_create_roles_installs_and_uninstalls(
    connection: psycopg.Connection[Any], pg_url: str, empty_pg_url: str, tmp_path: Path
) -> None:
    url = _own_database(connection, empty_pg_url, "createrole", "wf_owner")
    assert install(url) == Installed(2, changed=True)
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(emit(drive.compile_text(tmp_path, WORKFLOW)).encode())
    done = uninstall(url)
    assert getattr(done, "version", done) == 2


def test_a_login_that_may_not_act_as_the_owner_is_told_so(
    connection: psycopg.Connection[Any], empty_pg_url: str
) -> None:
    url = _own_database(connection, empty_pg_url, "")
    answer = install(url)
    assert isinstance(answer, DatabaseProblem)
    assert answer.kind == "not_allowed"
    assert answer.message == "this login may not act as the role wf_owner"
    assert answer.hint.startswith("let an administrator run: grant wf_owner to ")


def test_a_login_without_rights_on_roles_installs_without_them(
    connection: psycopg.Connection[Any], empty_pg_url: str, tmp_path: Path
) -> None:
    url = _own_database(connection, empty_pg_url, "")
    assert install(url, roles=False, test=True) == Installed(2, changed=True)
    with drive.connect(url) as other:
        spec = drive.compile_text(tmp_path, WORKFLOW)
        assert drive.run_pg(other, spec, {"n": 1}, drive.Scripted())["status"] == "SUCCEEDED"
        row = other.execute("select has_schema_privilege('wf_gateway', 'wf', 'usage')").fetchone()
    assert row == (False,)


def test_a_role_that_may_not_be_created_is_named(pg_url: str, empty_pg_url: str) -> None:
    """In a transaction that is undone, since the server's other databases use the roles."""
    with psycopg.connect(empty_pg_url) as connection:
        login(connection, empty_pg_url)
        connection.execute("alter role wf_reader rename to wf_reader_of_others")
        connection.execute(f"set session authorization login_{connection.info.dbname}_0".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
            connection.execute(read_script("pg", "00_roles.sql").encode())
        connection.rollback()
    assert caught.value.diag.message_primary == "this login may not create the role wf_reader"


def _own_database(
    connection: psycopg.Connection[Any], empty_url: str, options: str, *roles: str
) -> str:
    url = login(connection, empty_url, *roles, options=options)
    parts = urlsplit(url)
    database = parts.path.removeprefix("/")
    connection.execute(f"alter database {database} owner to {parts.username}".encode())
    return url

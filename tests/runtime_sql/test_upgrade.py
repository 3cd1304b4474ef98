"""Upgrading: from every version that was there, the same catalogue as a fresh installation has."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from runtime_sql import installer
from runtime_sql.contract.validate_contract import validate_database
from runtime_sql.failures import NO_RUNTIME, DatabaseProblem
from runtime_sql.installer import Installed, Removed, install, uninstall, upgrade
from runtime_sql.scripts import (
    MIGRATIONS,
    RUNTIME_VERSION,
    SCRIPTS,
    TABLE_SCRIPTS,
    read_script,
    upgrade_steps,
)
from runtime_sql.verification import REFERENCES, faults
from tests.runtime_sql import drive
from tests.runtime_sql.sessions import background, wait_until_blocked

VERSIONS = Path(__file__).parent / "versions"
OLDER = tuple(range(1, RUNTIME_VERSION))
WORKFLOW = "workflow w { action a = t.do() action b = t.do() }"

# Names and definitions, without object ids and places of columns: an upgrade adds at the end.
CATALOGUE = """
select 'column', c.relname || '.' || a.attname,
       concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
                 pg_get_expr(d.adbin, d.adrelid))
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
 where c.relnamespace = 'wf'::regnamespace and c.relkind in ('r', 'v', 'c')
union all
select 'relation', c.relname, concat_ws(' ', c.relkind, c.relowner::regrole, c.reloptions,
                 array(select x::text from unnest(c.relacl) x order by 1))
  from pg_class c where c.relnamespace = 'wf'::regnamespace and c.relkind in ('r', 'v', 'c', 'S')
union all
select 'acl of a column', c.relname || '.' || a.attname, a.attacl::text
  from pg_class c join pg_attribute a on a.attrelid = c.oid
 where c.relnamespace = 'wf'::regnamespace and a.attacl is not null
union all
select 'view', c.relname, pg_get_viewdef(c.oid)
  from pg_class c where c.relnamespace = 'wf'::regnamespace and c.relkind = 'v'
union all
select 'index', i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
  from pg_index i join pg_class c on c.oid = i.indrelid where c.relnamespace = 'wf'::regnamespace
union all
select 'constraint', r.conrelid::regclass || '.' || r.conname, pg_get_constraintdef(r.oid)
  from pg_constraint r where r.connamespace = 'wf'::regnamespace and r.contype <> 'n'
union all
select 'trigger', t.tgrelid::regclass || '.' || t.tgname, pg_get_triggerdef(t.oid)
  from pg_trigger t join pg_class c on c.oid = t.tgrelid
 where c.relnamespace = 'wf'::regnamespace and not t.tgisinternal
union all
select 'routine', p.oid::regprocedure::text, pg_get_functiondef(p.oid) || p.proowner::regrole::text
       || array(select x::text from unnest(p.proacl) x order by 1)::text
  from pg_proc p where p.pronamespace = 'wf'::regnamespace
union all
select 'schema', n.nspname, n.nspowner::regrole || n.nspacl::text
  from pg_namespace n where n.nspname = 'wf'
union all
select 'sequence', s.sequencename, concat_ws(' ', s.data_type, s.cache_size, s.increment_by)
  from pg_sequences s where s.schemaname = 'wf'
 order by 1, 2, 3
"""


def put_version(url: str, version: int) -> None:
    """Installs an old version as its installer did: by one login, in one transaction."""
    with psycopg.connect(url) as connection:
        connection.execute((VERSIONS / f"{version}.sql").read_bytes())


def catalogue(url: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(CATALOGUE).fetchall()


@pytest.fixture
def old_url(empty_pg_url: str) -> str:
    put_version(empty_pg_url, 1)
    return empty_pg_url


def test_every_older_version_has_a_migration_and_its_files_are_kept() -> None:
    assert tuple(sorted(MIGRATIONS)) == OLDER
    assert all((VERSIONS / f"{n}.sql").is_file() for n in OLDER)


@pytest.mark.parametrize("name", [n for n in SCRIPTS["pg"] if n not in TABLE_SCRIPTS])
def test_only_the_table_files_make_what_an_upgrade_keeps(name: str) -> None:
    text = read_script("pg", name).lower()
    assert "\ncreate table" not in text
    assert "\ncreate sequence" not in text
    assert "\ncreate index" not in text


@pytest.mark.parametrize("name", sorted(TABLE_SCRIPTS))
def test_the_table_files_make_nothing_that_an_upgrade_replaces(name: str) -> None:
    text = read_script("pg", name).lower()
    assert not [
        word
        for word in ("view", "type", "function", "procedure", "trigger")
        if f" {word} wf." in text
    ]


@pytest.mark.parametrize("version", OLDER)
def test_an_upgraded_database_is_like_a_fresh_one(
    empty_pg_url: str, pg_url: str, version: int
) -> None:
    put_version(empty_pg_url, version)
    assert upgrade(empty_pg_url) == Installed(RUNTIME_VERSION, changed=True)
    fresh, upgraded = catalogue(pg_url), catalogue(empty_pg_url)
    assert [row for row in fresh if row not in upgraded] == []
    assert [row for row in upgraded if row not in fresh] == []
    assert validate_database(empty_pg_url) == ()


def test_an_instance_that_runs_goes_on_after_the_upgrade(old_url: str) -> None:
    with psycopg.connect(old_url, autocommit=True) as connection:
        deploy_old(connection)
        connection.execute(
            "select wf.sp_register_worker(%s, %s, array['*'])", (drive.WORKER, drive.TOKEN)
        )
        instance = drive.start(connection, "w", {})
        first = drive.claim(connection)
        assert first is not None
        drive.submit(connection, first, 0)
        held = drive.claim(connection)
        assert held is not None
    assert upgrade(old_url) == Installed(RUNTIME_VERSION, changed=True)
    with drive.connect(old_url) as connection:
        assert drive.submit(connection, held, 0)["accepted"]
        connection.execute("insert into wf.wf_setting values ('test_database', 'true')")
        drive.stop_clock(connection)
        drive.drain(connection, drive.Scripted())
        document = drive.trace(connection, instance)
        assert document["status"] == "SUCCEEDED"
        assert [node["status"] for node in document["nodes"]] == ["SUCCEEDED"] * 7
        assert [node["input"] for node in document["nodes"] if node["type"] == "ACTION"] == [
            {},
            {"n": 1},
            {"n": 0},
            {"sum": 1, "text": "n is 0"},
            {"n": 1},
        ]
    assert faults(old_url) == ()


def fail_at(connection: psycopg.Connection[Any], node_key: str) -> int:
    """Runs the old workflow up to a failure of this ACTION; answers the instance."""
    deploy_old(connection)
    connection.execute(
        "select wf.sp_register_worker(%s, %s, array['*'])", (drive.WORKER, drive.TOKEN)
    )
    instance = drive.start(connection, "w", {})
    while (task := drive.claim(connection)) is not None:
        drive.submit(connection, task, -1 if task["node_key"] == node_key else 0)
    return instance


def test_an_instance_that_failed_before_the_upgrade_is_retried_after_it(old_url: str) -> None:
    with psycopg.connect(old_url, autocommit=True) as connection:
        instance = fail_at(connection, "d")
    upgrade(old_url)
    with drive.connect(old_url) as connection:
        row = connection.execute(
            "select * from wf.sp_retry_failed_node(%s)", (instance,)
        ).fetchone()
        assert row == ("RUNNING", 1)
        task = drive.claim(connection)
        assert task is not None
        assert (task["node_key"], task["attempt_no"]) == ("d", 2)
        assert task["input_json"] == {"sum": 1, "text": "n is 0"}
        drive.submit(connection, task, 0)
        drive.drain(connection, drive.Scripted())
        document = drive.trace(connection, instance)
    assert document["status"] == "SUCCEEDED"
    assert faults(old_url) == ()


def test_a_join_that_failed_before_the_upgrade_is_not_retried(old_url: str) -> None:
    """Version 1 did not keep what a failed PARALLEL had counted."""
    with psycopg.connect(old_url, autocommit=True) as connection:
        instance = fail_at(connection, "b")
    upgrade(old_url)
    with drive.connect(old_url) as connection:
        before = drive.trace(connection, instance)
        with pytest.raises(
            psycopg.Error, match="the state of w/parallel_1 was not kept"
        ) as refused:
            connection.execute("select wf.sp_retry_failed_node(%s)", (instance,))
        assert refused.value.diag.message_detail == "20003"
        assert drive.trace(connection, instance) == before


def deploy_old(connection: psycopg.Connection[Any]) -> None:
    """Runs the deploy script that version 1 wrote of a workflow `w`, which has five ACTIONs."""
    connection.execute((VERSIONS / "1.deploy.sql").read_bytes())


def test_an_upgrade_again_changes_nothing(pg_url: str) -> None:
    before = catalogue(pg_url)
    assert upgrade(pg_url) == Installed(RUNTIME_VERSION, changed=False)
    assert catalogue(pg_url) == before


def test_an_upgrade_of_nothing_is_refused(empty_pg_url: str) -> None:
    assert upgrade(empty_pg_url) == NO_RUNTIME


def test_an_older_runtime_is_not_installed_over(old_url: str) -> None:
    answer = install(old_url)
    assert isinstance(answer, DatabaseProblem)
    assert (answer.kind, answer.hint) == ("older_runtime", 'run "wf db upgrade --url …"')


def test_a_newer_runtime_is_not_downgraded(pg_url: str) -> None:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute("insert into wf.schema_version values (%s)", (RUNTIME_VERSION + 1,))
    answer = upgrade(pg_url)
    assert isinstance(answer, DatabaseProblem)
    assert answer.kind == "newer_runtime"


def test_an_upgrade_that_breaks_off_leaves_all_as_it_was(
    old_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = catalogue(old_url)

    def broken(dialect: Any, name: str) -> str:
        return "select 1/0" if name == "99_permissions.sql" else read_script(dialect, name)

    monkeypatch.setattr(installer, "read_script", broken)
    with pytest.raises(psycopg.errors.DivisionByZero):
        upgrade(old_url)
    assert catalogue(old_url) == before


def test_an_upgrade_whose_session_is_ended_leaves_all_as_it_was(
    old_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = catalogue(old_url)
    ended = "reset role; select pg_terminate_backend(pg_backend_pid())"

    def killed(dialect: Any, name: str) -> str:
        return ended if name == "99_permissions.sql" else read_script(dialect, name)

    monkeypatch.setattr(installer, "read_script", killed)
    answer = upgrade(old_url)
    assert isinstance(answer, DatabaseProblem)
    assert answer.kind == "unreachable"
    assert catalogue(old_url) == before


@pytest.mark.parametrize("first", ["install", "upgrade"])
def test_the_second_of_two_at_once_waits_and_changes_nothing(empty_pg_url: str, first: str) -> None:
    if first == "upgrade":
        put_version(empty_pg_url, 1)
    act = upgrade if first == "upgrade" else install
    with psycopg.connect(empty_pg_url) as holder, psycopg.connect(empty_pg_url) as observer:
        holder.execute("select pg_advisory_xact_lock(%s)", (installer.LOCK_KEY,))
        with (
            background(lambda: act(empty_pg_url)) as one,
            background(lambda: act(empty_pg_url)) as other,
        ):
            _wait_for_waiters(observer, 2)
            holder.rollback()
            answers = [one.result(), other.result()]
    assert sorted(answers, key=lambda a: a.changed) == [
        Installed(RUNTIME_VERSION, changed=False),
        Installed(RUNTIME_VERSION, changed=True),
    ]


def _wait_for_waiters(observer: psycopg.Connection[Any], count: int) -> None:
    observer.autocommit = True
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        row = observer.execute(
            "select count(*) from pg_locks where locktype = 'advisory' and not granted"
            " and database = (select oid from pg_database where datname = current_database())"
        ).fetchone()
        if row == (count,):
            return
        time.sleep(0.01)
    raise AssertionError("nobody waits for the lock")


def test_a_call_that_meets_an_upgrade_waits_for_it_and_changes_nothing(old_url: str) -> None:
    """It may still be in the old code when it goes on, and then it fails; its repeat does not."""
    with (
        psycopg.connect(old_url) as upgrading,
        psycopg.connect(old_url, autocommit=True) as worker,
        psycopg.connect(old_url, autocommit=True) as observer,
    ):
        deploy_old(worker)
        worker.execute(
            "select wf.sp_register_worker(%s, %s, array['*'])", (drive.WORKER, drive.TOKEN)
        )
        drive.start(worker, "w", {})
        upgrading.execute("set local check_function_bodies = off")
        for name in upgrade_steps(1):
            upgrading.execute(read_script("pg", name).encode())
        with background(lambda: drive.claim(worker)) as call:
            wait_until_blocked(observer, worker, call)
            upgrading.commit()
            error = call.exception()
        assert error is None or isinstance(error, psycopg.errors.UndefinedFunction), error
        if error is not None:
            assert drive.claim(worker) is not None
        assert worker.execute("select count(*) from wf.v_lease").fetchone() == (1,)


def test_what_depends_on_the_runtime_s_code_is_not_dropped_with_it(old_url: str) -> None:
    with psycopg.connect(old_url, autocommit=True) as connection:
        connection.execute("create view mine as select * from wf.v_instance")
    before = catalogue(old_url)
    answer = upgrade(old_url)
    assert isinstance(answer, DatabaseProblem)
    assert (answer.kind, answer.hint) == ("in_use", "drop it first, and make it anew afterwards")
    assert catalogue(old_url) == before


# Without roles ----------------------------------------------------------------------------------


def test_a_runtime_without_roles_is_upgraded_without_them(old_url: str) -> None:
    assert upgrade(old_url, roles=False) == Installed(RUNTIME_VERSION, changed=True)
    with psycopg.connect(old_url) as connection:
        rows = connection.execute(
            "select distinct relowner::regrole::text from pg_class"
            " where relnamespace = 'wf'::regnamespace"
        ).fetchall()
    assert rows == [("postgres",)]
    assert validate_database(old_url) == ()


# Uninstalling ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [*OLDER, RUNTIME_VERSION])
def test_an_uninstalled_runtime_leaves_nothing(empty_pg_url: str, version: int) -> None:
    if version == RUNTIME_VERSION:
        install(empty_pg_url)
    else:
        put_version(empty_pg_url, version)
    assert uninstall(empty_pg_url) == Removed(version, 0)
    with psycopg.connect(empty_pg_url) as connection:
        assert connection.execute("select to_regnamespace('wf')").fetchone() == (None,)
        left = connection.execute(
            "select count(*) from pg_shdepend d join pg_database b on b.oid = d.dbid"
            " where b.datname = current_database() and d.refobjid = 'wf_owner'::regrole"
        ).fetchone()
    assert left == (0,)


def test_uninstalling_nothing_changes_nothing(empty_pg_url: str) -> None:
    assert uninstall(empty_pg_url) == Removed(None, 0)


def test_instances_are_not_removed_by_mistake(pg_url: str, tmp_path: Path) -> None:
    with drive.connect(pg_url) as connection:
        drive.deploy(connection, drive.compile_text(tmp_path, WORKFLOW))
        drive.start(connection, "w", {})
    answer = uninstall(pg_url)
    assert isinstance(answer, DatabaseProblem)
    assert (answer.kind, answer.message) == ("in_use", "the database holds 1 instances")
    assert uninstall(pg_url, delete_data=True) == Removed(RUNTIME_VERSION, 1)


def test_what_somebody_put_into_the_schema_is_not_removed(pg_url: str) -> None:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute("create table wf.mine (id bigint)")
    before = catalogue(pg_url)
    answer = uninstall(pg_url)
    assert isinstance(answer, DatabaseProblem)
    assert answer.kind == "in_use"
    assert catalogue(pg_url) == before


def test_another_database_of_the_server_keeps_its_rights(pg_url: str, empty_pg_url: str) -> None:
    install(empty_pg_url)
    before = catalogue(pg_url)
    uninstall(empty_pg_url)
    assert catalogue(pg_url) == before


# Rows that point at nothing -------------------------------------------------------------------


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda r: f"{r.table}.{r.column}")
def test_a_reference_names_columns_that_are_there(
    runtime_connection: psycopg.Connection[Any], reference: Any
) -> None:
    try:
        runtime_connection.execute(
            f"select c.{reference.column}, t.{reference.target_column}"
            f" from wf.{reference.table} c, wf.{reference.target} t limit 0".encode()
        )
    finally:
        runtime_connection.rollback()


def test_a_run_leaves_no_row_that_points_at_nothing(pg_url: str, tmp_path: Path) -> None:
    with drive.connect(pg_url) as connection:
        spec = drive.compile_text(tmp_path, WORKFLOW)
        drive.run_pg(connection, spec, {}, drive.Scripted())
        drive.start(connection, "w", {})
    assert faults(pg_url) == ()


def test_a_row_that_points_at_nothing_is_found(pg_url: str, tmp_path: Path) -> None:
    with drive.connect(pg_url) as connection:
        drive.deploy(connection, drive.compile_text(tmp_path, WORKFLOW))
        drive.start(connection, "w", {})
        connection.execute("update wf.task set node_execution_id = 9999")
    assert faults(pg_url) == (
        "table task: 1 rows name no node_execution by node_execution_id (first: 9999)",
    )


def test_a_moved_clock_is_found_where_no_tests_run(pg_url: str) -> None:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute("insert into wf.wf_setting values ('now', '2026-01-01')")
        connection.execute("delete from wf.wf_setting where name = 'test_database'")
    assert faults(pg_url) == ("wf_setting: the clock is moved, and this is no test database",)

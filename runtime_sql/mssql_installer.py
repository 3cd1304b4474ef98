"""Installs and removes the runtime in a SQL Server or Azure SQL database, as `installer` does in
PostgreSQL.

Flow: begin → application lock → read `wf.schema_version` → same version: nothing; another: refused;
none: every batch of every file of `SCRIPTS`, then the version row → commit. All of it is one
transaction. `script_text` writes the same as one file that `sqlcmd -b` or any runner that knows GO
runs as often as you like: whether there is something to do stands in the table #wf_install, and a
batch that makes something is a string, because `create procedure` cannot stand under an `if`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from runtime_sql.failures import DAMAGED, NO_RUNTIME, DatabaseProblem, Failure
from runtime_sql.go_batches import split_batches
from runtime_sql.mssql_driver import (
    SESSION,
    MssqlConnection,
    MssqlError,
    Row,
    connect_mssql,
)
from runtime_sql.mssql_failures import from_mssql_error
from runtime_sql.scripts import RUNTIME_VERSION, SCRIPTS, read_script

T = TypeVar("T")

# In every session that installs, one after the other.
_LOCK = """\
declare @v_lock int;
exec @v_lock = sys.sp_getapplock @Resource = N'wf.install', @LockMode = N'Exclusive',
    @LockOwner = N'Transaction', @LockTimeout = 60000;
if @v_lock < 0 throw 70009, N'another installation is running', 1;"""
# Any of the roles may call the function; the table is the owner's.
_FOUND = """
select case when object_id(N'wf.wf_runtime_version') is not null then 2
            when object_id(N'wf.schema_version', N'U') is not null then 1 else 0 end;"""
_ASK = "select wf.wf_runtime_version();"
_VERSION = "select max(v.version) from wf.schema_version as v;"
_MARK = f"insert into wf.schema_version (version) values ({RUNTIME_VERSION});"
_TEST = "insert into wf.wf_setting (name, value) values (N'test_database', N'true');"
_ABOUT_ROLES = frozenset({"00_roles.sql", "99_permissions.sql"})
# What a batch of the tree begins with and the session has already.
_COMMENT = re.compile(r"--[^\n]*")
_SETTINGS_ONLY = re.compile(r"\s*(?:set [^;]*;\s*)*", re.IGNORECASE)
_CREATES = re.compile(
    r"^\s*create (?:or alter )?(?:table|view|sequence|type|function|procedure) wf\.(\w+)",
    re.MULTILINE | re.IGNORECASE,
)
_PRESENT = """
select o.name from sys.objects as o where o.schema_id = schema_id(N'wf')
union select t.name from sys.types as t where t.schema_id = schema_id(N'wf');"""


def tree_batches(*, roles: bool = True) -> Iterator[str]:
    """Yields what the installation executes, in order, without batches of settings."""
    for name in SCRIPTS["mssql"]:
        if name in _ABOUT_ROLES and not roles:
            continue
        for batch in split_batches(read_script("mssql", name)):
            if _SETTINGS_ONLY.fullmatch(_COMMENT.sub("", batch.text)) is None:
                yield batch.text


def declared_objects() -> frozenset[str]:
    """Returns the names of what the scripts make."""
    return frozenset(name for batch in tree_batches() for name in _CREATES.findall(batch))


def install_mssql(url: str, *, roles: bool = True, test: bool = False) -> int | Failure | None:
    """Installs the runtime; returns the version, None when it was there before.

    Args:
      roles: make the runtime's roles where they are missing and give them their rights; without it
        only the owner of the schema may do anything.
      test: mark the database as one for tests, in which the clock may be moved.
    """

    def change(connection: MssqlConnection) -> int | Failure | None:
        connection.rows("begin transaction;")
        connection.rows(_LOCK)
        version = read_mssql_version(connection)
        if version is not None:
            connection.rows("rollback transaction;")
            return None if version == RUNTIME_VERSION else _other_version(version)
        for batch in tree_batches(roles=roles):
            connection.rows(batch)
        connection.rows(_MARK)
        if test:
            connection.rows(_TEST)
        connection.rows("commit transaction;")
        return RUNTIME_VERSION

    return _on(url, change, is_damage_known=False)


def uninstall_mssql(url: str, *, delete_data: bool = False) -> tuple[int | None, int] | Failure:
    """Removes schema wf; returns the version that was there and how many instances it had.

    Roles stay, since people are members of them. What others made in schema wf is never dropped.

    Args:
      delete_data: also when there are instances; without it such a database is refused.
    """

    def change(connection: MssqlConnection) -> tuple[int | None, int] | Failure:
        connection.rows("begin transaction;")
        connection.rows(_LOCK)
        version = read_mssql_version(connection)
        if version is None:
            return None, 0
        if version > RUNTIME_VERSION:
            return _other_version(version)
        [(count,)] = connection.rows("select count(*) from wf.workflow_instance as i;")
        if count and not delete_data:
            return DatabaseProblem(
                "in_use",
                f"the database holds {count} instances",
                "add --delete-data to remove them with the runtime",
            )
        objects = connection.rows(_DROPPED)
        ours = declared_objects()
        # A server that is not SQL Server may show sequences of its own behind identity columns.
        others = sorted(
            name
            for kind, name in objects
            if name not in ours and kind != "sequence" and "@" not in name
        )
        if others:
            return DatabaseProblem(
                "in_use",
                f"schema wf holds what is not the runtime's: {', '.join(others)}",
                "drop it first",
            )
        for table, name in connection.rows(_LINKS):
            connection.rows(f"alter table wf.[{table}] drop constraint [{name}];")
        for kind, name in objects:
            if name in ours:
                connection.rows(f"drop {kind} wf.[{name}];")
        connection.rows("drop schema wf;")
        connection.rows("commit transaction;")
        return version, int(count)

    return _on(url, change)


# What uses others first: views and procedures, then tables, then what those may use; of one kind
# the newest first.
_DROPPED = """
select d.kind, d.name
  from (select k.kind, o.name, k.place, o.object_id
          from sys.objects as o
          join (values (N'V', N'view', 1), (N'P', N'procedure', 2), (N'U', N'table', 3),
                       (N'IF', N'function', 4), (N'TF', N'function', 4), (N'FN', N'function', 4),
                       (N'SO', N'sequence', 5)) as k(type, kind, place) on k.type = rtrim(o.type)
         where o.schema_id = schema_id(N'wf')
        union all
        select N'type', t.name, 6, t.user_type_id
          from sys.types as t
         where t.schema_id = schema_id(N'wf')) as d
 order by d.place, d.object_id desc;"""
_LINKS = """
select object_name(f.parent_object_id), f.name
  from sys.foreign_keys as f
 where f.schema_id = schema_id(N'wf');"""


def installed_mssql_version(url: str) -> int | Failure | None:
    """Returns the version of the runtime in a database, None when there is none."""
    return _on(url, read_mssql_version)


def missing_mssql_objects(url: str) -> tuple[str, ...] | Failure:
    """Returns the names of the runtime's objects that a database does not have, sorted."""

    def read(connection: MssqlConnection) -> tuple[str, ...]:
        present = {name for (name,) in connection.rows(_PRESENT)}
        return tuple(sorted(declared_objects() - present))

    return _on(url, read)


def read_mssql_rows(url: str, read: Callable[[Callable[[str], list[Row]]], T]) -> T | Failure:
    """Lets a reader ask a database, in one transaction for all that it asks."""

    def ask(connection: MssqlConnection) -> T | Failure:
        connection.rows("begin transaction;")
        return read(lambda query: connection.rows(query))

    return _on(url, ask)


def read_mssql_version(connection: MssqlConnection) -> int | None:
    """Returns the newest version row, None when the table is not there."""
    [(found,)] = connection.rows(_FOUND)
    if not found:
        return None
    [(version,)] = connection.rows(_ASK if found == 2 else _VERSION)
    return None if version is None else int(version)


def check_mssql_version(connection: MssqlConnection) -> Failure | None:
    """Returns what is wrong with the runtime at the other end, None when it fits."""
    try:
        version = read_mssql_version(connection)
    except MssqlError as error:
        failure = from_mssql_error(error)
        if failure is None:
            raise
        return failure
    if version is None:
        return NO_RUNTIME
    return None if version == RUNTIME_VERSION else _other_version(version)


def _other_version(version: int) -> DatabaseProblem:
    from runtime_sql.installer import other_version

    return other_version(version)


def _on(
    url: str, read: Callable[[MssqlConnection], T | Failure], *, is_damage_known: bool = True
) -> T | Failure:
    connection = connect_mssql(url)
    if isinstance(connection, DatabaseProblem):
        return connection
    try:
        return read(connection)
    except MssqlError as error:
        failure = from_mssql_error(error)
        # An object that the scripts miss while they run is a fault of the scripts.
        if failure is None or (failure == DAMAGED and not is_damage_known):
            raise
        return failure
    finally:
        # What a failure has left open is rolled back with the connection.
        connection.close()


# One file ---------------------------------------------------------------------------------------

_HEAD = f"""\
-- The wfsql runtime, version {RUNTIME_VERSION}, for SQL Server 2019 and newer and Azure SQL:
--     sqlcmd -b -I -f 65001 -S SERVER -d DATABASE -i FILE
-- It installs in one transaction. Run again, it changes nothing; at another version it stops.
{SESSION.replace("; ", ";" + chr(10))}
set xact_abort on;
GO
if @@trancount > 0 throw 70003, N'run this script outside of a transaction', 1;
if object_id(N'tempdb..#wf_install', N'U') is not null drop table #wf_install;
create table #wf_install (has_work bit not null);
begin transaction;
{_LOCK}
declare @v_version int;
if object_id(N'wf.schema_version', N'U') is not null
    exec sys.sp_executesql N'select @v_version = max(v.version) from wf.schema_version as v;',
        N'@v_version int output', @v_version output;
insert into #wf_install (has_work) values (case when @v_version is null then 1 else 0 end);
if @v_version <> {RUNTIME_VERSION}
    throw 70006, N'the database has another version of the runtime', 1;
GO"""
# A tool that does not stop at an error goes on with the next batch after everything is rolled back.
_GUARD = """\
if xact_state() <> 1 throw 70003, N'the installation failed before this batch', 1;
if exists (select 1 from #wf_install as i where i.has_work = 1)
exec (N'"""
_END = f"""\
if xact_state() <> 1 throw 70003, N'the installation failed before this batch', 1;
if exists (select 1 from #wf_install as i where i.has_work = 1)
    exec (N'{_MARK}');
commit transaction;
drop table #wf_install;
GO
"""


def mssql_script_text() -> str:
    """Returns one self-contained script of the whole runtime."""
    parts = [_HEAD]
    for batch in tree_batches():
        quoted = batch.replace("'", "''")
        parts.append(f"{_GUARD}{quoted}');\nGO")
    return "\n\n".join([*parts, _END])

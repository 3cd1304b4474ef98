"""Installs, upgrades and removes the runtime in a database, and tells its version.

Flow: take the advisory lock → read the version → none: every file of `SCRIPTS`; an older one, when
upgrading: `upgrade_steps`; this one: nothing; a newer one: refused → write the version row. All of
it is one transaction, so a failure leaves the database as it was. `mssql_installer` does it in SQL
Server, where there is no older version to upgrade.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from runtime_sql.connection import connect_driver
from runtime_sql.failures import (
    DAMAGED,
    NO_RUNTIME,
    ApiError,
    DatabaseProblem,
    Failure,
    first_line,
    from_driver_error,
)
from runtime_sql.mssql_url import is_mssql
from runtime_sql.scripts import (
    DROP_CODE,
    RUNTIME_VERSION,
    declared_objects,
    install_steps,
    read_script,
    upgrade_steps,
)

if TYPE_CHECKING:
    import psycopg

# "wfsql" as a number; taken for the transaction, so a pooler does no harm.
LOCK_KEY = 0x7766_7371_6C

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Installed:
    """The version that is there now; `changed` is false when it was there before."""

    version: int
    changed: bool


@dataclass(frozen=True, slots=True)
class Removed:
    """What was taken away: the version, None when there was none, and how many instances."""

    version: int | None
    instances: int


def install(url: str, *, roles: bool = True, test: bool = False) -> Installed | Failure:
    """Installs the runtime, or does nothing when this version is there already.

    Args:
      roles: make the runtime's roles where they are missing and give everything to wf_owner;
        without it everything belongs to the login.
      test: mark the database as one for tests, in which the clock may be moved.
    """
    if is_mssql(url):
        return _install_mssql(url, roles, test)

    def change(connection: psycopg.Connection[Any], version: int | None) -> Installed | Failure:
        if version == RUNTIME_VERSION:
            return Installed(version, changed=False)
        if version is not None:
            return other_version(version)
        done = _run(connection, install_steps(), roles)
        if test:
            connection.execute("insert into wf.wf_setting values ('test_database', 'true')")
        return done

    return _in_one_transaction(url, change)


def upgrade(url: str, *, roles: bool = True) -> Installed | Failure:
    """Brings an older runtime up to this version; instances, workers and definitions stay.

    Args:
      roles: as for `install`; counts for a runtime that has no roles yet.
    """
    if is_mssql(url):
        return _upgrade_mssql(url)

    def change(connection: psycopg.Connection[Any], version: int | None) -> Installed | Failure:
        if version is None:
            return NO_RUNTIME
        if version == RUNTIME_VERSION:
            return Installed(version, changed=False)
        if version > RUNTIME_VERSION:
            return other_version(version)
        return _run(connection, upgrade_steps(version), roles)

    return _in_one_transaction(url, change)


def uninstall(url: str, *, delete_data: bool = False) -> Removed | Failure:
    """Removes schema wf with all that the runtime put there. Roles stay: other databases use them.

    What others made in schema wf, or made to depend on it, is never dropped: then it is refused.

    Args:
      delete_data: also when there are instances; without it such a database is refused.
    """
    if is_mssql(url):
        from runtime_sql.mssql_installer import uninstall_mssql

        gone = uninstall_mssql(url, delete_data=delete_data)
        return gone if isinstance(gone, ApiError | DatabaseProblem) else Removed(*gone)

    def change(connection: psycopg.Connection[Any], version: int | None) -> Removed | Failure:
        if version is None:
            return Removed(None, 0)
        if version > RUNTIME_VERSION:
            return other_version(version)
        connection.execute(_BE_THE_OWNER)
        count = _one(connection, "select count(*) from wf.workflow_instance")
        if count and not delete_data:
            return DatabaseProblem(
                "in_use",
                f"the database holds {count} instances",
                "add --delete-data to remove them with the runtime",
            )
        connection.execute(read_script("pg", DROP_CODE).encode())
        tables = _one(connection, _TABLES, list(declared_objects()))
        connection.execute(f"drop table {tables}".encode())
        connection.execute("drop schema wf")
        return Removed(version, count)

    return _in_one_transaction(url, change)


# What login may act as wf_owner need not have its rights without asking for them.
_BE_THE_OWNER = """
do $$
begin
    if (select n.nspowner::regrole::text from pg_catalog.pg_namespace n where n.nspname = 'wf')
        = 'wf_owner'
    then
        set local role wf_owner;
    end if;
end
$$"""
_TABLES = """
select string_agg(c.oid::regclass::text, ', ') from pg_catalog.pg_class as c
 where c.relnamespace = 'wf'::regnamespace and c.relkind in ('r', 'p')
   and c.relname = any (%s)
"""


def _install_mssql(url: str, roles: bool, test: bool) -> Installed | Failure:
    from runtime_sql.mssql_installer import install_mssql

    version = install_mssql(url, roles=roles, test=test)
    if isinstance(version, ApiError | DatabaseProblem):
        return version
    return Installed(RUNTIME_VERSION, changed=version is not None)


def _upgrade_mssql(url: str) -> Installed | Failure:
    """The first version for SQL Server is this one, so there is nothing older to upgrade."""
    version = installed_version(url)
    if version is None:
        return NO_RUNTIME
    if not isinstance(version, int):
        return version
    return (
        Installed(version, changed=False) if version == RUNTIME_VERSION else other_version(version)
    )


def _run(connection: psycopg.Connection[Any], files: Sequence[str], roles: bool) -> Installed:
    # Routines name each other across files, so their bodies are looked at when all are there.
    connection.execute("set local check_function_bodies = off")
    if not roles:
        connection.execute("set local wf.roles = 'none'")
    for name in files:
        connection.execute(read_script("pg", name).encode())
    connection.execute("insert into wf.schema_version (version) values (%s)", (RUNTIME_VERSION,))
    return Installed(RUNTIME_VERSION, changed=True)


def _in_one_transaction(
    url: str, change: Callable[[psycopg.Connection[Any], int | None], T | Failure]
) -> T | Failure:
    import psycopg

    connection = connect_driver(url)
    if isinstance(connection, DatabaseProblem):
        return connection
    with connection:
        try:
            with connection.transaction():
                connection.execute("select pg_advisory_xact_lock(%s)", (LOCK_KEY,))
                return change(connection, read_version(connection))
        except psycopg.Error as error:
            failure = _refusal(error) or from_driver_error(error)
            # An object that the scripts miss while they run is a fault of the scripts.
            if failure is None or failure == DAMAGED:
                raise
            return failure


def _refusal(error: psycopg.Error) -> DatabaseProblem | None:
    """Returns what the scripts themselves refuse, with their own hint."""
    if error.sqlstate == "42501":
        hint = error.diag.message_hint or "use a login that has the rights for it"
        return DatabaseProblem("not_allowed", first_line(error), hint)
    if error.sqlstate == "2BP01":
        return DatabaseProblem(
            "in_use",
            f"something that is not the runtime's depends on it: {first_line(error)}",
            "drop it first, and make it anew afterwards",
        )
    return None


def _one(connection: psycopg.Connection[Any], query: str, *arguments: object) -> Any:
    row = connection.execute(query.encode(), arguments).fetchone()
    return None if row is None else row[0]


def installed_version(url: str) -> int | Failure | None:
    """Returns the version of the runtime in a database, None when there is none."""
    if is_mssql(url):
        from runtime_sql.mssql_installer import installed_mssql_version

        return installed_mssql_version(url)
    import psycopg

    connection = connect_driver(url)
    if isinstance(connection, DatabaseProblem):
        return connection
    with connection:
        try:
            return read_version(connection)
        except psycopg.Error as error:
            failure = from_driver_error(error)
            if failure is None:
                raise
            return failure


def read_version(connection: psycopg.Connection[Any]) -> int | None:
    """Returns the runtime's version, None when there is none. Any of the roles may ask."""
    if _one(connection, "select to_regprocedure('wf.wf_runtime_version()') is not null"):
        return _as_version(_one(connection, "select wf.wf_runtime_version()"))
    # Version 1 had a table only.
    if _one(connection, "select to_regclass('wf.schema_version') is not null"):
        return _as_version(_one(connection, "select max(v.version) from wf.schema_version as v"))
    return None


def _as_version(value: Any) -> int | None:
    return None if value is None else int(value)


def check_version(connection: psycopg.Connection[Any]) -> Failure | None:
    """Returns what is wrong with the runtime at the other end, None when it fits."""
    import psycopg

    try:
        version = read_version(connection)
    except psycopg.Error as error:
        failure = from_driver_error(error)
        if failure is None:
            raise
        return failure
    if version is None:
        return NO_RUNTIME
    return None if version == RUNTIME_VERSION else other_version(version)


def other_version(version: int) -> DatabaseProblem:
    """Returns what to say of a runtime whose version is not this program's."""
    if version > RUNTIME_VERSION:
        return DatabaseProblem(
            "newer_runtime",
            f"the database has runtime version {version}, newer than this program's"
            f" {RUNTIME_VERSION}",
            "install a newer wfsql",
        )
    return DatabaseProblem(
        "older_runtime",
        f"the database has runtime version {version}, older than this program's {RUNTIME_VERSION}",
        'run "wf db upgrade --url …"',
    )

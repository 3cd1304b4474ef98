"""Installs the runtime into a PostgreSQL database and tells which version is there.

Flow: take the advisory lock → read `wf.schema_version` → same version: nothing; newer or older:
refused; none: execute every file of `SCRIPTS` and write the version row. All of it is one
transaction, so a failure leaves the database as it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime_sql.connection import connect_driver
from runtime_sql.failures import DAMAGED, NO_RUNTIME, DatabaseProblem, Failure, from_driver_error
from runtime_sql.scripts import RUNTIME_VERSION, SCRIPTS, read_script

if TYPE_CHECKING:
    import psycopg

# "wfsql" as a number; taken for the transaction, so a pooler does no harm.
_LOCK_KEY = 0x7766_7371_6C

_CREATES = re.compile(
    r"^create (?:or replace )?"
    r"(?:unlogged table|table|view|sequence|type|function|procedure) wf\.(\w+)",
    re.MULTILINE | re.IGNORECASE,
)
_PRESENT = """
select c.relname::text from pg_catalog.pg_class as c where c.relnamespace = to_regnamespace('wf')
union
select p.proname::text from pg_catalog.pg_proc as p where p.pronamespace = to_regnamespace('wf')
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """The version that is there now; `changed` is false when it was there before."""

    version: int
    changed: bool


def install(url: str) -> Installed | Failure:
    """Installs the runtime, or does nothing when this version is there already."""
    import psycopg

    connection = connect_driver(url)
    if isinstance(connection, DatabaseProblem):
        return connection
    with connection:
        try:
            with connection.transaction():
                return _install(connection)
        except psycopg.Error as error:
            failure = from_driver_error(error)
            # An object that the scripts miss while they run is a fault of the scripts.
            if failure is None or failure == DAMAGED:
                raise
            return failure


def _install(connection: psycopg.Connection[Any]) -> Installed | Failure:
    connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK_KEY,))
    version = read_version(connection)
    if version == RUNTIME_VERSION:
        return Installed(version, changed=False)
    if version is not None:
        return _other_version(version)
    # Routines name each other across files, so their bodies are looked at when all are there.
    connection.execute("set local check_function_bodies = off")
    for name in SCRIPTS["pg"]:
        connection.execute(read_script("pg", name).encode())
    connection.execute("insert into wf.schema_version (version) values (%s)", (RUNTIME_VERSION,))
    return Installed(RUNTIME_VERSION, changed=True)


def installed_version(url: str) -> int | Failure | None:
    """Returns the version of the runtime in a database, None when there is none."""
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


def declared_objects() -> frozenset[str]:
    """Returns the names of the tables, views, sequences and routines that the scripts make."""
    text = "\n".join(read_script("pg", name) for name in SCRIPTS["pg"])
    return frozenset(_CREATES.findall(text))


def missing_objects(url: str) -> tuple[str, ...] | Failure:
    """Returns the names of the runtime's objects that a database does not have, sorted."""
    import psycopg

    connection = connect_driver(url)
    if isinstance(connection, DatabaseProblem):
        return connection
    with connection:
        try:
            rows = connection.execute(_PRESENT).fetchall()
        except psycopg.Error as error:
            failure = from_driver_error(error)
            if failure is None:
                raise
            return failure
    return tuple(sorted(declared_objects() - {row[0] for row in rows}))


def read_version(connection: psycopg.Connection[Any]) -> int | None:
    """Returns the newest version row, None when the table is not there."""
    found = connection.execute("select to_regclass('wf.schema_version') is not null").fetchone()
    if found is None or not found[0]:
        return None
    row = connection.execute("select max(v.version) from wf.schema_version as v").fetchone()
    return None if row is None else row[0]


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
    return None if version == RUNTIME_VERSION else _other_version(version)


def _other_version(version: int) -> DatabaseProblem:
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
        "use the wfsql that installed it, or a new database",
    )

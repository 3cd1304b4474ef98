"""Checks the contract against both SQL trees and, given a URL, against a live database.

    python -m runtime_sql.contract.validate_contract [--url postgresql://… | mssql://…]

Flow: `db_objects.yaml` → `Contract`; a tree or a catalogue → `Schema`; `comparison` → differences,
one line each. Exit code 0: none; 1: some; 2: the database does not answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from runtime_sql.connection import connect_driver
from runtime_sql.contract.catalogue import read_catalogue
from runtime_sql.contract.comparison import (
    Difference,
    compare,
    compare_stems,
    missing_objects,
)
from runtime_sql.contract.model import Contract, load_contract
from runtime_sql.contract.sql_files import read_tree
from runtime_sql.failures import ApiError, DatabaseProblem, Failure, from_driver_error
from runtime_sql.mssql_url import is_mssql
from runtime_sql.scripts import Dialect


def validate_tree(dialect: Dialect, contract: Contract | None = None) -> tuple[Difference, ...]:
    """Returns where a tree's files differ from the contract."""
    check = compare if dialect == "pg" else compare_stems
    return check(contract or load_contract(), read_tree(dialect))


def validate_database(
    url: str, contract: Contract | None = None
) -> tuple[Difference, ...] | Failure:
    """Returns where a database differs from the contract."""
    if is_mssql(url):
        return _validate_mssql(url, contract or load_contract())
    import psycopg

    connection = connect_driver(url)
    if isinstance(connection, DatabaseProblem):
        return connection
    with connection:
        try:
            # One snapshot, so that the queries see one catalogue.
            with connection.transaction():
                connection.execute("set transaction isolation level repeatable read, read only")
                found = read_catalogue(connection)
        except psycopg.Error as error:
            failure = from_driver_error(error)
            if failure is None:
                raise
            return failure
    return compare(contract or load_contract(), found)


def _validate_mssql(url: str, contract: Contract) -> tuple[Difference, ...] | Failure:
    """Looks both ways at what there is, and at names only at what there should be."""
    from runtime_sql.contract.mssql_catalogue import read_mssql_catalogue
    from runtime_sql.mssql_driver import MssqlError, connect_mssql
    from runtime_sql.mssql_failures import from_mssql_error

    connection = connect_mssql(url)
    if isinstance(connection, DatabaseProblem):
        return connection
    try:
        found = read_mssql_catalogue(connection)
    except MssqlError as error:
        failure = from_mssql_error(error)
        if failure is None:
            raise
        return failure
    finally:
        connection.close()
    return (
        *missing_objects(contract, found),
        *compare_stems(contract, found, knows_defaults=False),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the checks and writes what differs."""
    parser = argparse.ArgumentParser(
        prog="python -m runtime_sql.contract.validate_contract",
        description="Checks the contract against both SQL trees and a database.",
    )
    parser.add_argument("--url", help="a database, as postgresql://… or mssql://…")
    url = parser.parse_args(arguments).url
    contract = load_contract()
    lines = [f"pg files: {difference}" for difference in validate_tree("pg", contract)]
    lines += [f"mssql files: {difference}" for difference in validate_tree("mssql", contract)]
    if url is not None:
        found = validate_database(url, contract)
        if isinstance(found, ApiError | DatabaseProblem):
            print(f"error: {found.message}")
            return 2
        lines += [f"database: {difference}" for difference in found]
    for line in lines:
        print(line)
    if not lines:
        print(f"the contract holds: {len(contract.names())} objects")
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())

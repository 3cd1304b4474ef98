"""URLs of SQL Server databases: what they may say, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import pytest

from runtime_sql.failures import DatabaseProblem
from runtime_sql.mssql_driver import odbc_text
from runtime_sql.mssql_url import TOKEN_VARIABLE, MssqlTarget, is_mssql, read_url


def target(url: str, **environment: str) -> MssqlTarget:
    found = read_url(url, environment)
    assert isinstance(found, MssqlTarget), found
    return found


def test_a_whole_url() -> None:
    found = target("mssql://sa:p%40ss@db.example:1500/orders?encrypt=no&driver=python-tds")
    assert (found.host, found.port, found.database) == ("db.example", 1500, "orders")
    assert (found.user, found.password, found.driver) == ("sa", "p@ss", "python-tds")
    assert not found.encrypt


def test_encryption_is_on_and_the_certificate_is_checked_when_nothing_is_said() -> None:
    found = target("mssql://sa:x@host/orders")
    assert (found.port, found.encrypt, found.trust_server_certificate) == (1433, True, False)


def test_a_token_comes_from_the_environment_when_no_user_is_named() -> None:
    found = target("mssql://host/orders", **{TOKEN_VARIABLE: "abc"})
    assert (found.user, found.access_token) == (None, "abc")


def test_a_token_of_the_environment_does_not_take_the_place_of_a_user() -> None:
    found = target("mssql://sa:x@host/orders", **{TOKEN_VARIABLE: "abc"})
    assert (found.user, found.access_token) == ("sa", None)


def test_secrets_are_not_shown() -> None:
    shown = repr(target("mssql://sa:geheim@host/orders"))
    assert "geheim" not in shown


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://a@host/b", "not one of a SQL Server database"),
        ("mssql:///orders", "names no host"),
        ("mssql://sa:x@host", "the name of one database"),
        ("mssql://sa:x@host/a/b", "the name of one database"),
        ("mssql://host/orders", TOKEN_VARIABLE),
        ("mssql://sa:x@host/orders?access_token=t", "only one of them"),
        ("mssql://sa:x@host/orders?encrypt=maybe", '"encrypt" is yes or no'),
        ("mssql://sa:x@host/orders?timeout=1", 'option "timeout" is not known'),
        ("mssql://sa:x@host/orders?encrypt=no&encrypt=yes", "given twice"),
        ("mssql://sa:x@host/orders?driver=pyodbc", 'driver "pyodbc" is not known'),
        ("mssql://sa:x@host:port/orders", "Port could not be cast"),
    ],
)
def test_what_is_refused(url: str, said: str) -> None:
    found: Any = read_url(url, {})
    assert isinstance(found, DatabaseProblem)
    assert found.kind == "bad_url"
    assert said in found.message


def test_only_its_own_schemes_are_taken_for_sql_server() -> None:
    urls = ("mssql://h/d", "SQLSERVER://h/d", "postgresql://h/d", "dbname=mssql")
    assert [is_mssql(url) for url in urls] == [True, True, False, False]


def test_a_password_cannot_add_options_to_the_connection() -> None:
    text = odbc_text(target("mssql://sa:a%7D%3BEncrypt%3Dno@host/orders"))
    assert "PWD={a}};Encrypt=no};" in text
    assert text.startswith("Server={tcp:host,1433};Database={orders};Encrypt={yes};")

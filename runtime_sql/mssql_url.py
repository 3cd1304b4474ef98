"""Reads the URL of a SQL Server or Azure SQL database.

    mssql://user:password@host:1433/database?encrypt=yes&trust_server_certificate=no

Encryption is on unless the URL says otherwise. An access token of Microsoft Entra ID takes the
place of user and password: `access_token=…`, or better the variable WF_MSSQL_ACCESS_TOKEN, which
counts when the URL names no user.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from runtime_sql.failures import DatabaseProblem

SCHEMES = ("mssql", "sqlserver")
TOKEN_VARIABLE = "WF_MSSQL_ACCESS_TOKEN"
DRIVERS = ("mssql-python", "python-tds")
DEFAULT_PORT = 1433

_OPTIONS = ("encrypt", "trust_server_certificate", "access_token", "driver")
_SWITCH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_FORM = "write it as mssql://user:password@host:1433/database"


@dataclass(frozen=True, slots=True, kw_only=True)
class MssqlTarget:
    """A database and how to get there. `driver` None: whichever is installed."""

    host: str
    port: int
    database: str
    user: str | None
    password: str | None = field(repr=False)
    access_token: str | None = field(repr=False)
    encrypt: bool
    trust_server_certificate: bool
    driver: str | None


class _Refused(Exception):
    """What is wrong with a URL; never leaves this module."""


def is_mssql(url: str) -> bool:
    """Returns whether a URL is one of a SQL Server database."""
    return url.partition(":")[0].lower() in SCHEMES


def read_url(
    url: str, environment: Mapping[str, str] = os.environ
) -> MssqlTarget | DatabaseProblem:
    """Returns where a URL leads, or what is wrong with it."""
    try:
        return _read(url, environment)
    except (_Refused, ValueError) as error:
        return DatabaseProblem("bad_url", f"the URL cannot be read: {error}", _FORM)


def _read(url: str, environment: Mapping[str, str]) -> MssqlTarget:
    parts = urlsplit(url)
    if parts.scheme.lower() not in SCHEMES:
        raise _Refused("it is not one of a SQL Server database")
    if not parts.hostname:
        raise _Refused("it names no host")
    database = unquote(parts.path.removeprefix("/"))
    if not database or "/" in database:
        raise _Refused("its path has to be the name of one database")
    options = _options(parts)
    user = unquote(parts.username) if parts.username else None
    token = options.get("access_token")
    if token is None and user is None:
        token = environment.get(TOKEN_VARIABLE)
    if token and user:
        raise _Refused("it has a user and an access token; only one of them can log in")
    if not token and not user:
        raise _Refused(f"it names no user, and {TOKEN_VARIABLE} holds no access token")
    driver = options.get("driver")
    if driver is not None and driver not in DRIVERS:
        raise _Refused(f'driver "{driver}" is not known; there are {" and ".join(DRIVERS)}')
    return MssqlTarget(
        host=parts.hostname,
        port=parts.port or DEFAULT_PORT,
        database=database,
        user=user,
        password=unquote(parts.password) if parts.password else None,
        access_token=token,
        encrypt=_switch(options, "encrypt", default=True),
        trust_server_certificate=_switch(options, "trust_server_certificate", default=False),
        driver=driver,
    )


def _options(parts: SplitResult) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True):
        if name not in _OPTIONS:
            raise _Refused(f'option "{name}" is not known; there are {", ".join(_OPTIONS)}')
        if name in options:
            raise _Refused(f'option "{name}" is given twice')
        options[name] = value
    return options


def _switch(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    written = options.get(name)
    if written is None:
        return default
    if written.lower() not in _SWITCH:
        raise _Refused(f'"{name}" is yes or no, not "{written}"')
    return _SWITCH[written.lower()]

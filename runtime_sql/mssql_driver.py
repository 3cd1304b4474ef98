"""A plain connection to SQL Server, the same through either of two drivers.

`mssql-python` is Microsoft's own; `python-tds` is pure Python and speaks to every TDS server. Both
are imported when a connection is opened. Statements are written with `%s` for a parameter and have
no other per cent sign and no question mark. A connection is in autocommit: a transaction is what
statements begin and commit.

Whatever a driver raises leaves here as a `MssqlError` with the server's number. mssql-python tells
the text of an error only, so its number is asked for: @@ERROR keeps it for the next batch.
"""

from __future__ import annotations

import importlib
import os
import re
import struct
from collections.abc import Sequence
from typing import Any, Protocol

from runtime_sql.failures import DatabaseProblem, first_line, unreachable
from runtime_sql.mssql_url import MssqlTarget, read_url

CONNECT_TIMEOUT_SECONDS = 10
Row = tuple[Any, ...]

# What filtered indexes and computed columns ask of a session; no driver sets all of it.
SESSION = (
    "set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,"
    " concat_null_yields_null on; set numeric_roundabort off; set nocount on;"
    " set implicit_transactions off; set transaction isolation level read committed;"
)
_ACCESS_TOKEN = 1256  # SQL_COPT_SS_ACCESS_TOKEN
_ODBC_MARKS = re.compile(r"^.*?DDBC Error: |\[[^\]]*\]")
_NO_DRIVER = DatabaseProblem(
    "no_driver",
    "no driver for SQL Server is installed",
    'run pip install "wfsql[mssql]"',
)


class MssqlError(Exception):
    """What the server or the way to it answered. `number` None: the connection is lost."""

    def __init__(self, number: int | None, message: str) -> None:
        super().__init__(message)
        self.number = number
        self.message = message


class MssqlConnection(Protocol):
    """What the client and the installer need from a driver."""

    def rows(self, statement: str, *parameters: object) -> list[Row]:
        """Runs one batch and returns the rows of its last result set; none without one.

        Raises:
          MssqlError: the server refused it, or could not be reached.
        """

    def close(self) -> None: ...


def connect_mssql(url: str) -> MssqlConnection | DatabaseProblem:
    """Opens a connection with the settings that the runtime needs."""
    target = read_url(url)
    if isinstance(target, DatabaseProblem):
        return target
    try:
        connection = _open(target)
        if not isinstance(connection, DatabaseProblem):
            connection.rows(SESSION)
        return connection
    except MssqlError as error:
        return unreachable(error.message)


def _open(target: MssqlTarget) -> MssqlConnection | DatabaseProblem:
    if target.driver != "python-tds":
        module = _module("mssql_python")
        if module is not None:
            return _MssqlPython(module, target)
    if target.driver != "mssql-python":
        module = _module("pytds")
        if module is not None:
            return _open_tds(module, target)
    return _NO_DRIVER


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class _MssqlPython:
    """mssql-python: ODBC, brought along by the package."""

    def __init__(self, module: Any, target: MssqlTarget) -> None:
        before = {}
        if target.access_token is not None:
            encoded = target.access_token.encode("utf-16-le")
            before[_ACCESS_TOKEN] = struct.pack(f"<i{len(encoded)}s", len(encoded), encoded)
        self._error = module.Error
        try:
            self._connection = module.connect(
                odbc_text(target),
                autocommit=True,
                attrs_before=before or None,
                timeout=CONNECT_TIMEOUT_SECONDS,
            )
            # The time-out counted for the login; statements take as long as they take.
            self._connection.timeout = 0
        except module.Error as error:
            raise MssqlError(None, _plain(error)) from error
        except RuntimeError as error:
            raise MssqlError(None, first_line(error)) from error

    def rows(self, statement: str, *parameters: object) -> list[Row]:
        try:
            return self._run(statement.replace("%s", "?") if parameters else statement, parameters)
        except (self._error, RuntimeError) as error:
            raise MssqlError(self._number(), _plain(error)) from error

    def _run(self, statement: str, parameters: Sequence[object]) -> list[Row]:
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement, *parameters)
            return _last_rows(cursor)
        finally:
            cursor.close()

    def _number(self) -> int | None:
        try:
            [(number,)] = self._run("select @@error", ())
        except (self._error, RuntimeError):
            return None
        return int(number)

    def close(self) -> None:
        self._connection.close()


def odbc_text(target: MssqlTarget) -> str:
    """Returns the connection string of a target; values stand in braces, so any text can."""
    words = {
        "Server": f"tcp:{target.host},{target.port}",
        "Database": target.database,
        "Encrypt": "yes" if target.encrypt else "no",
        "TrustServerCertificate": "yes" if target.trust_server_certificate else "no",
    }
    if target.user is not None:
        words |= {"UID": target.user, "PWD": target.password or ""}
    return "".join(f"{key}={{{value.replace('}', '}}')}}};" for key, value in words.items())


def _plain(error: Exception) -> str:
    return _ODBC_MARKS.sub("", first_line(error)).strip() or first_line(error)


def _open_tds(module: Any, target: MssqlTarget) -> MssqlConnection | DatabaseProblem:
    """Refuses what python-tds cannot do: an encrypted connection with a certificate unseen."""
    if target.encrypt and target.trust_server_certificate:
        return DatabaseProblem(
            "bad_url",
            "python-tds cannot encrypt without checking the server's certificate",
            'take mssql-python (pip install "wfsql[mssql]"), or say encrypt=no',
        )
    authorities = None
    if target.encrypt:
        certifi = _module("certifi")
        if certifi is None or _module("OpenSSL") is None:
            return DatabaseProblem(
                "no_driver",
                "python-tds needs pyOpenSSL and certifi for an encrypted connection",
                'run pip install "wfsql[mssql]", or say encrypt=no',
            )
        authorities = os.environ.get("SSL_CERT_FILE") or certifi.where()
    return _Tds(module, target, authorities)


class _Tds:
    """python-tds."""

    def __init__(self, module: Any, target: MssqlTarget, authorities: str | None) -> None:
        login: dict[str, Any] = {"user": target.user, "password": target.password or ""}
        if target.access_token is not None:
            login = {"access_token_callable": lambda: target.access_token}
        self._error = module.Error
        try:
            self._connection = module.connect(
                target.host,
                target.database,
                port=target.port,
                autocommit=True,
                login_timeout=CONNECT_TIMEOUT_SECONDS,
                cafile=authorities,
                disable_connect_retry=True,
                **login,
            )
        except (module.Error, OSError) as error:
            raise MssqlError(None, first_line(error)) from error

    def rows(self, statement: str, *parameters: object) -> list[Row]:
        try:
            with self._connection.cursor() as cursor:
                if parameters:
                    cursor.execute(statement, parameters)
                else:
                    cursor.execute(statement)
                return _last_rows(cursor)
        except OSError as error:
            raise MssqlError(None, first_line(error)) from error
        except self._error as error:
            # An error that the server did not number is one of the way to it.
            number = getattr(error, "number", 0) or None
            raise MssqlError(number, str(getattr(error, "text", error))) from error

    def close(self) -> None:
        self._connection.close()


def _last_rows(cursor: Any) -> list[Row]:
    """Walks all result sets: an error after the first is only seen there."""
    found: list[Row] = []
    while True:
        if cursor.description:
            found = [tuple(row) for row in cursor.fetchall()]
        if not cursor.nextset():
            return found

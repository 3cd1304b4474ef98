"""What an error of SQL Server means, as a value.

The runtime throws 50000 + its own code (R23); all other numbers are the server's. This is the one
place that reads them. It returns None for what nobody expects, which the caller raises.
"""

from __future__ import annotations

from runtime_sql.failures import DAMAGED, ApiError, DatabaseProblem, Failure, unreachable
from runtime_sql.mssql_driver import MssqlError

_THROWN = range(60_001, 80_000)
"""50000 + 10001… (the engine's codes) and + 20001… (the API's)."""
# Deadlock victim, lock request timed out, snapshot updated by another: repeat the same call.
_TRY_AGAIN = frozenset({1205, 1222, 3960})
BUSY = 20009
"""The API's own answer when an application lock was not to be had in time."""

# Invalid object, column; procedure not found; schema; function not found.
_UNDEFINED = frozenset({208, 2812, 2760, 4121, 195})
# No permission on an object, a column, a statement, the schema; login without a user here.
_NOT_ALLOWED = frozenset({229, 230, 262, 297, 300, 916, 15247})
# Login failed; database cannot be opened or is not there; Azure SQL: moving, busy, out of quota.
_NOT_REACHED = frozenset({18456, 18452, 4060, 911, 40197, 40501, 40613, 42108, 42109})
# No memory, log or file group full, read-only, resource limits of Azure SQL.
_NOT_NOW = frozenset({701, 802, 1105, 3906, 9002, 10928, 10929, 49918, 49919, 49920})


def from_mssql_error(error: MssqlError) -> Failure | None:
    """Returns what an error means, or None when it is unexpected."""
    number = error.number
    if number is None or number in _NOT_REACHED:
        return unreachable(error.message)
    if number in _THROWN:
        return ApiError(number - 50_000, error.message)
    if number in _UNDEFINED:
        return DAMAGED
    if number in _TRY_AGAIN:
        return DatabaseProblem("server", error.message, "try again", retryable=True)
    if number in _NOT_ALLOWED:
        return DatabaseProblem("not_allowed", error.message, "use a login that has the rights")
    if number in _NOT_NOW:
        return DatabaseProblem("server", error.message, "the server cannot do it now; see its log")
    return None


def is_passing(failure: Failure) -> bool:
    """Returns whether the same call may succeed in a moment, on the same connection."""
    if isinstance(failure, ApiError):
        return failure.code == BUSY
    return failure.retryable and failure.kind == "server"

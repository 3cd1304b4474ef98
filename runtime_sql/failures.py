"""What can go wrong with a database, as values.

`ApiError` is an answer of the runtime itself (codes 10001… and 20001…, R23); `DatabaseProblem` is
everything around it: no server, no runtime, another version. `from_driver_error` is the one place
that reads a driver's exception. It returns None for what nobody expects, which the caller raises:
that is a fault of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar

if TYPE_CHECKING:
    import psycopg

P = ParamSpec("P")
T = TypeVar("T")

ProblemKind = Literal[
    "unreachable",
    "bad_url",
    "no_driver",
    "no_runtime",
    "newer_runtime",
    "older_runtime",
    "damaged_runtime",
    "not_allowed",
    "in_use",
    "server",
]


@dataclass(frozen=True, slots=True)
class ApiError:
    """The runtime refused a call: `code` is 10001… (engine) or 20001… (API)."""

    code: int
    message: str


@dataclass(frozen=True, slots=True)
class DatabaseProblem:
    """The call did not reach the runtime. `retryable`: the same call may succeed later."""

    kind: ProblemKind
    message: str
    hint: str
    retryable: bool = False


Failure = ApiError | DatabaseProblem

NO_RUNTIME = DatabaseProblem(
    "no_runtime",
    "the database has no wfsql runtime",
    'run "wf db install --url …" first',
)

NO_DRIVER = DatabaseProblem(
    "no_driver",
    "the PostgreSQL driver is not installed",
    'run pip install "wfsql[postgres]"',
)

# Said by a call after the version was found to fit.
DAMAGED = DatabaseProblem(
    "damaged_runtime",
    "an object of the wfsql runtime is missing in the database",
    'run "wf db verify --url …" to see which',
)

# Serialization failure, deadlock victim, lock not available: repeat the same call.
_TRY_AGAIN = frozenset({"40001", "40P01", "55P03"})
# Undefined function, table, schema.
_UNDEFINED = frozenset({"42883", "42P01", "3F000"})
_API_CLASSES = {"WF": 10000, "WA": 20000}


def unreachable(reason: str) -> DatabaseProblem:
    """Returns the problem for a server that does not answer or refuses the login."""
    return DatabaseProblem(
        "unreachable",
        f"the database cannot be reached: {reason}",
        "check that the server runs and that --url names its host, port, user and database",
        retryable=True,
    )


def from_driver_error(error: psycopg.Error) -> Failure | None:
    """Returns what a driver's exception means, or None when it is unexpected."""
    import psycopg

    state = error.sqlstate
    if state is None:
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return unreachable(first_line(error))
        return None
    if state[:2] in _API_CLASSES and state[2:].isdigit():
        return ApiError(_api_code(error, state), error.diag.message_primary or first_line(error))
    if state in _UNDEFINED:
        return DAMAGED
    return _server_problem(error, state)


def _api_code(error: psycopg.Error, state: str) -> int:
    detail = (error.diag.message_detail or "").strip()
    return int(detail) if detail.isdigit() else _API_CLASSES[state[:2]] + int(state[2:])


def _server_problem(error: psycopg.Error, state: str) -> Failure | None:
    reason = first_line(error)
    if state in _TRY_AGAIN:
        return DatabaseProblem("server", reason, "try again", retryable=True)
    if state[:2] in {"08", "57", "28"} or state == "3D000":
        return unreachable(reason)
    if state == "42501":
        return DatabaseProblem("not_allowed", reason, "use a login that has the rights for it")
    if state[:2] in {"53", "58"} or state == "25006":
        return DatabaseProblem("server", reason, "the server cannot do it now; see its log")
    return None


def first_line(error: Exception) -> str:
    """Returns the part of a driver's message that fits on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removeprefix("connection failed: ") if lines else type(error).__name__


def failures_as_values(method: Callable[P, T]) -> Callable[P, T | Failure]:
    """Makes a method give back what the driver raises; what nobody expects is still raised."""

    @wraps(method)
    def call(*args: P.args, **options: P.kwargs) -> T | Failure:
        import psycopg

        try:
            return method(*args, **options)
        except psycopg.Error as error:
            failure = from_driver_error(error)
            if failure is None:
                raise
            return failure

    return call

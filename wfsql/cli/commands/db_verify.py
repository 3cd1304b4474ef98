"""`wf db verify`: says whether a database has this program's runtime, whole and unchanged.

Flow: the version → the names of all objects that the scripts make → the contract, both ways, rights
and owners among it → references between rows, settings. Each difference is one line.
"""

from __future__ import annotations

from runtime_sql.failures import NO_RUNTIME
from runtime_sql.installer import installed_version, other_version
from runtime_sql.scripts import RUNTIME_VERSION
from runtime_sql.verification import faults, missing_objects
from wfsql.cli.database import JsonOption, UrlOption, good, need_url, stop_with
from wfsql.cli.output import say, say_error, write_json


def command(url: UrlOption = None, json: JsonOption = False) -> int:
    """Say which runtime a database has, and where it differs from what clients rely on.

    Every difference is one line, and the exit code is 1 when there is one: an object that is
    missing, a routine or view that should not be there, a parameter or column that has changed, a
    right that a role lacks or should not have, rows that point at nothing. The login must own the
    runtime or be a member of wf_owner.

    Example:  wf db verify --url postgresql://me@localhost/orders
    """
    target = need_url(url)
    version = good(installed_version(target))
    if version is None:
        stop_with(NO_RUNTIME)
    missing, differences = _examine(target) if version == RUNTIME_VERSION else ((), ())
    fits = version == RUNTIME_VERSION and not missing and not differences
    if json:
        report = {"version": version, "expected": RUNTIME_VERSION, "missing": list(missing)}
        write_json(report | {"differences": list(differences), "ok": fits})
    elif version != RUNTIME_VERSION:
        problem = other_version(version)
        say_error(problem.message, problem.hint)
    elif fits:
        say(f"runtime version {version}, nothing missing, nothing changed")
    else:
        _say_differences(missing, differences)
    return 0 if fits else 1


def _examine(url: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the names of what is missing, and a line for every other difference."""
    from runtime_sql.contract.validate_contract import validate_database

    differences = good(validate_database(url))
    gone = {difference.name for difference in differences if difference.kind == "missing"}
    missing = sorted(gone.union(good(missing_objects(url))))
    others = [str(d) for d in differences if d.kind != "missing"]
    # Rows are looked at where all tables are as they should be.
    rows = () if missing or others else good(faults(url))
    return tuple(missing), (*others, *rows)


def _say_differences(missing: tuple[str, ...], differences: tuple[str, ...]) -> None:
    lines = [*(f"missing in schema wf: {name}" for name in missing), *differences]
    for line in lines[:-1]:
        say_error(line)
    say_error(lines[-1], "install into a new database")

"""`wf db verify`: says which runtime a database has and whether anything of it is missing."""

from __future__ import annotations

from runtime_sql.failures import NO_RUNTIME
from runtime_sql.installer import installed_version, missing_objects
from runtime_sql.scripts import RUNTIME_VERSION
from wfsql.cli.database import JsonOption, UrlOption, good, need_url, stop_with
from wfsql.cli.output import say, say_error, write_json


def command(url: UrlOption = None, json: JsonOption = False) -> int:
    """Say which runtime a database has, and whether any object of it is missing.

    Example:  wf db verify --url postgresql://me@localhost/orders
    """

    target = need_url(url)
    version = good(installed_version(target))
    if version is None:
        stop_with(NO_RUNTIME)
    missing = good(missing_objects(target)) if version == RUNTIME_VERSION else ()
    fits = version == RUNTIME_VERSION and not missing
    if json:
        report = {"version": version, "expected": RUNTIME_VERSION, "missing": list(missing)}
        write_json(report | {"ok": fits})
        return 0 if fits else 1
    if version != RUNTIME_VERSION:
        say_error(
            f"the database has runtime version {version}, this program speaks {RUNTIME_VERSION}",
            "use the wfsql of that version",
        )
    elif missing:
        say_error(f"missing in schema wf: {', '.join(missing)}", "install into a new database")
    else:
        say(f"runtime version {version}, nothing missing")
    return 0 if fits else 1

"""`wf db install`: puts the runtime into a database, once."""

from __future__ import annotations

from runtime_sql.installer import install
from wfsql.cli.database import JsonOption, UrlOption, good, need_url
from wfsql.cli.output import say, write_json


def command(url: UrlOption = None, json: JsonOption = False) -> int:
    """Install the runtime: schema wf with its tables and routines.

    It is one transaction, and running it again changes nothing. The login must be allowed to
    create a schema.

    Example:  wf db install --url postgresql://me@localhost/orders
    """
    done = good(install(need_url(url)))
    if json:
        write_json({"version": done.version, "changed": done.changed})
        return 0
    state = "is installed" if done.changed else "was there already; nothing changed"
    say(f"runtime version {done.version} {state}")
    return 0

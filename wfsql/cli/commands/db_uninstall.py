"""`wf db uninstall`: removes the runtime from a database."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime_sql.installer import uninstall
from wfsql.cli.database import JsonOption, UrlOption, good, need_url
from wfsql.cli.output import say, write_json


def command(
    url: UrlOption = None,
    delete_data: Annotated[
        bool, typer.Option("--delete-data", help="Also when the database holds instances.")
    ] = False,
    json: JsonOption = False,
) -> int:
    """Remove schema wf with all that the runtime put there.

    Roles stay, since other databases of the server may use them. What somebody else put into
    schema wf, or made to depend on it, is never removed: the command refuses then.

    Example:  wf db uninstall --url postgresql://me@localhost/orders
    """
    done = good(uninstall(need_url(url), delete_data=delete_data))
    if json:
        write_json({"version": done.version, "instances": done.instances})
    elif done.version is None:
        say("there is no wfsql runtime; nothing changed")
    else:
        say(f"runtime version {done.version} is removed, with {done.instances} instances")
    return 0

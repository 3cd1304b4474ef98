"""`wf db install`: puts the runtime into a database, once."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime_sql.installer import install
from wfsql.cli.database import JsonOption, UrlOption, good, need_url
from wfsql.cli.output import say, write_json

NoRolesOption = Annotated[
    bool,
    typer.Option(
        "--no-roles", help="Make and grant no roles; everything belongs to the login that installs."
    ),
]


def command(
    url: UrlOption = None,
    no_roles: NoRolesOption = False,
    test: Annotated[
        bool, typer.Option("--test", help="For tests: the clock of the database may be moved.")
    ] = False,
    json: JsonOption = False,
) -> int:
    """Install the runtime: schema wf with its tables, routines and views, and its roles.

    It is one transaction, and running it again changes nothing. The login must be allowed to
    create a schema, and roles where they are missing on the server.

    Example:  wf db install --url postgresql://me@localhost/orders
    """
    done = good(install(need_url(url), roles=not no_roles, test=test))
    if json:
        write_json({"version": done.version, "changed": done.changed})
        return 0
    state = "is installed" if done.changed else "was there already; nothing changed"
    say(f"runtime version {done.version} {state}")
    return 0

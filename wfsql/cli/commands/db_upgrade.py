"""`wf db upgrade`: brings the runtime of a database up to this program's version."""

from __future__ import annotations

from runtime_sql.installer import upgrade
from wfsql.cli.commands.db_install import NoRolesOption
from wfsql.cli.database import JsonOption, UrlOption, good, need_url
from wfsql.cli.output import say, write_json


def command(
    url: UrlOption = None, no_roles: NoRolesOption = False, json: JsonOption = False
) -> int:
    """Upgrade an older runtime; running instances go on afterwards.

    It is one transaction: calls that come meanwhile wait for it. Workers and programs of the
    older version must be replaced by those of the new one.

    Example:  wf db upgrade --url postgresql://me@localhost/orders
    """
    done = good(upgrade(need_url(url), roles=not no_roles))
    if json:
        write_json({"version": done.version, "changed": done.changed})
        return 0
    say(
        f"upgraded to runtime version {done.version}"
        if done.changed
        else f"runtime version {done.version} was there already; nothing changed"
    )
    return 0

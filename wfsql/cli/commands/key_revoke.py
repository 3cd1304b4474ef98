"""`wf key revoke`: ends a key of the gateway's API for good."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime_sql.gateway_client import connect_gateway
from wfsql.cli.database import UrlOption, good, need_url
from wfsql.cli.main import CommandError
from wfsql.cli.output import say


def command(
    key: Annotated[
        str, typer.Argument(metavar="ID|NAME", help="The key's id or name.", show_default=False)
    ],
    url: UrlOption = None,
) -> int:
    """End a key for good. Gateways may go on taking it for 30 seconds.

    Example:  wf key revoke ci
    """
    client = good(connect_gateway(need_url(url)))
    rows = good(client.list_api_keys())
    found = [row for row in rows if row.is_live and key in (row.key_id, row.name)]
    found = found or [row for row in rows if row.key_id == key]
    if not found:
        raise CommandError(f'there is no live key "{key}"', 'see "wf key ls --all"')
    good(client.revoke_api_key(found[0].key_id))
    client.close()
    say(f"key {found[0].key_id} of {found[0].name} is revoked")
    return 0

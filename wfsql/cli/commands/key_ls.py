"""`wf key ls`: lists the keys of the gateway's API, without their secrets."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime_sql.gateway_client import KeyRow, connect_gateway
from wfsql.cli.database import JsonOption, UrlOption, good, need_url
from wfsql.cli.output import Crop, say, short_time, write_json, write_table
from wfsql.cli.views import timestamp


def command(
    url: UrlOption = None,
    all_: Annotated[
        bool, typer.Option("--all", "-a", help="List also those that were revoked or expired.")
    ] = False,
    json: JsonOption = False,
) -> int:
    """List keys: who may do what. The keys themselves are kept nowhere.

    Example:  wf key ls --all
    """
    client = good(connect_gateway(need_url(url)))
    rows = [row for row in good(client.list_api_keys()) if all_ or row.is_live]
    client.close()
    if json:
        write_json([_as_json(row) for row in rows])
    elif rows:
        write_table(
            ("ID", "NAME", "ROLES", "BOUND TO", "EXPIRES", "STATE"),
            [_as_cells(row) for row in rows],
            {"BOUND TO": Crop(10), "NAME": Crop(8)},
        )
    else:
        say("no keys" if all_ else "no live keys; --all shows those that have ended")
    return 0


def _as_json(row: KeyRow) -> dict[str, object]:
    times = {
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "revoked_at": row.revoked_at,
    }
    return {
        "key_id": row.key_id,
        "name": row.name,
        "roles": list(row.roles),
        "source": row.source,
        "event_types": list(row.event_types),
        "capabilities": list(row.capabilities),
        "is_live": row.is_live,
        **{name: timestamp(at) for name, at in times.items()},
    }


def _as_cells(row: KeyRow) -> tuple[str, ...]:
    bound = [row.source] if row.source else []
    bound += [*row.event_types, *row.capabilities]
    state = "revoked" if row.revoked_at else "live" if row.is_live else "expired"
    return (
        row.key_id,
        row.name,
        ",".join(row.roles),
        " ".join(bound),
        short_time(row.expires_at),
        state,
    )

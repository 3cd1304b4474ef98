"""`wf key ls`: lists the keys of the gateway's API, without their secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from runtime_sql.gateway_client import KeyRow, connect_gateway
from wfsql.cli.database import JsonOption, UrlOption, good, need_url
from wfsql.cli.output import (
    Crop,
    say,
    short_time,
    table_width,
    terminal_width,
    write_json,
    write_table,
)
from wfsql.cli.views import timestamp

_CROPS = {"BOUND TO": Crop(10), "NAME": Crop(8, keep="ends"), "ROLES": Crop(10)}
_DROPS = ("EXPIRES", "BOUND TO")


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
        _write(rows)
    else:
        say("no keys" if all_ else "no live keys; --all shows those that have ended")
    return 0


def _write(rows: Sequence[KeyRow]) -> None:
    table = _table(rows, narrow=False)
    width = terminal_width()
    if width is not None and table_width(table) > width:
        table = _table(rows, narrow=True)
    write_table(table[0], table[1:], _CROPS, _DROPS)


def _table(rows: Sequence[KeyRow], narrow: bool) -> list[tuple[str, ...]]:
    return [
        ("ID", "NAME", "ROLES", "BOUND TO", "EXPIRES", "STATE"),
        *(_as_cells(row, narrow) for row in rows),
    ]


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


def _day(row: KeyRow) -> str:
    return short_time(row.expires_at)[:10]


def _as_cells(row: KeyRow, narrow: bool) -> tuple[str, ...]:
    bound = [row.source] if row.source else []
    bound += [*row.event_types, *row.capabilities]
    state = "revoked" if row.revoked_at else "live" if row.is_live else "expired"
    return (
        row.key_id,
        row.name,
        ",".join(row.roles),
        " ".join(bound),
        _day(row) if narrow else short_time(row.expires_at),
        state,
    )

"""`wf key create`: makes a key for the gateway's API."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime_sql.gateway_client import KeyGrant, connect_gateway
from wfsql.cli.database import JsonOption, UrlOption, good, need_url
from wfsql.cli.main import wrong_use
from wfsql.cli.output import did_you_mean, say, write, write_json
from wfsql.cli.views import timestamp
from wfsql.gateway.keys import ROLES, bad_span, expiry, new_key


def command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Whose key it is.", show_default=False)
    ],
    url: UrlOption = None,
    role: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help=f"One of {', '.join(ROLES)}; may be repeated."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="event_source: the source of its events.")
    ] = None,
    event_type: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE", help="event_source: a type it may send; may be repeated."),
    ] = None,
    capability: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="enroll: a capability it may give to workers, * for any; may be repeated.",
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When it ends, from now, as 90d or 12h; never without."),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Make a key and write it to stdout. It is shown this once; the database keeps a hash.

    Example:  wf key create ci --role operator --expires 90d
    """
    if not role:
        raise wrong_use("no role is given", f"give --role, one of {', '.join(ROLES)}")
    for each in role:
        if each not in ROLES:
            near = did_you_mean(each, ROLES) or f"the roles are {', '.join(ROLES)}"
            raise wrong_use(f'there is no role "{each}"', near)
    ends = None if expires is None else expiry(expires)
    if expires is not None and ends is None:
        raise wrong_use(*bad_span("--expires", expires))
    _check_bounds(role, source, event_type or [], capability or [])
    grant = KeyGrant(
        name=name,
        roles=tuple(role),
        source=source,
        event_types=tuple(event_type or ()),
        capabilities=tuple(capability or ()),
        expires_at=ends,
    )
    client = good(connect_gateway(need_url(url)))
    key = new_key()
    key_id = good(client.create_api_key(key, grant))
    client.close()
    if json:
        write_json({"key_id": key_id, "name": name, "key": key, "expires_at": timestamp(ends)})
    else:
        say(f"key {key_id} of {name}; it is not shown again:")
        write(key)
    return 0


def _check_bounds(
    roles: list[str], source: str | None, types: list[str], capabilities: list[str]
) -> None:
    """Refuses a role without what it is bound to, and what binds a role that is not given."""
    if "enroll" in roles and not capabilities:
        raise wrong_use(
            "a key of role enroll needs the capabilities that it may give",
            "add --capability NAME, once for each, or --capability '*' for any",
        )
    if capabilities and "enroll" not in roles:
        raise wrong_use("--capability is for the role enroll", "add --role enroll, or leave it out")
    if "event_source" in roles and not (source and types):
        raise wrong_use(
            "a key of role event_source needs the source and the types of its events",
            "add --source NAME, and --event-type TYPE once for each",
        )
    if (source or types) and "event_source" not in roles:
        raise wrong_use(
            "--source and --event-type are for the role event_source",
            "add --role event_source, or leave them out",
        )

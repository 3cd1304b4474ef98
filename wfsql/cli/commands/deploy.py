"""`wf deploy`: compiles a file and puts its workflows into a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from runtime_sql.mssql_url import is_mssql
from wfsql.cli.database import JsonOption, UrlOption, good, need_url, open_client
from wfsql.cli.output import say, write_json
from wfsql.cli.sources import CatalogOption, compile_specs, deploy_script

if TYPE_CHECKING:
    from compiler.spec import GraphSpec
    from runtime_sql.connection import RuntimeClient
    from runtime_sql.scripts import Dialect


def command(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A workflow file; - is stdin.", show_default=False)
    ],
    url: UrlOption = None,
    catalog: CatalogOption = None,
    no_activate: Annotated[
        bool, typer.Option("--no-activate", help="Do not make it the active version.")
    ] = False,
    update_actions: Annotated[
        bool,
        typer.Option(
            "--update-actions",
            help="Take over changed dispatch settings of actions that are there.",
        ),
    ] = False,
    json: JsonOption = False,
) -> int:
    """Compile a file and put its workflows into a database, each as a new version: all or none.

    Content that is there already changes nothing but becomes the active version again.

    Example:  wf deploy order.wf --url postgresql://me@localhost/orders
    """
    specs = compile_specs(file, catalog)
    dialect: Dialect = "mssql" if is_mssql(need_url(url)) else "pg"
    script = deploy_script(specs, dialect, activate=not no_activate, update_actions=update_actions)
    client = open_client(url)
    before = [_version(client, spec) for spec in specs]
    good(client.run_script(script))
    reports = [_report(client, *pair) for pair in zip(specs, before, strict=True)]
    if json:
        write_json(reports)
    return 0


def _version(client: RuntimeClient, spec: GraphSpec) -> int | None:
    return good(client.deployed_version(spec.name, spec.content_hash()))


def _report(client: RuntimeClient, spec: GraphSpec, before: int | None) -> dict[str, object]:
    content_hash = spec.content_hash()
    version = _version(client, spec)
    state = "is deployed" if before is None else "was there already"
    say(f"{spec.name} version {version} ({content_hash[:12]}) {state}")
    return {
        "workflow": spec.name,
        "version": version,
        "content_hash": content_hash,
        "changed": before is None,
    }

"""`wf deploy`: compiles a file and puts its workflows into a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from compiler import json_values
from wfsql.cli.database import JsonOption, UrlOption, good, open_client
from wfsql.cli.output import say, write
from wfsql.cli.sources import CatalogOption, compile_specs, deploy_script

if TYPE_CHECKING:
    from compiler.spec import GraphSpec
    from runtime_sql.connection import PostgresClient


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
    """Compile a file and put its workflows into a database, each as a new version.

    Content that is there already changes nothing but becomes the active version again.

    Example:  wf deploy order.wf --url postgresql://me@localhost/orders
    """
    specs = compile_specs(file, catalog)
    scripts = [
        deploy_script(spec, activate=not no_activate, update_actions=update_actions)
        for spec in specs
    ]
    client = open_client(url)
    reports = [_deploy(client, s, text) for s, text in zip(specs, scripts, strict=True)]
    if json:
        write(json_values.dumps(reports))
    return 0


def _deploy(client: PostgresClient, spec: GraphSpec, script: str) -> dict[str, object]:
    content_hash = spec.content_hash()
    before = good(client.deployed_version(spec.name, content_hash))
    good(client.run_script(script))
    version = good(client.deployed_version(spec.name, content_hash))
    state = "is deployed" if before is None else "was there already"
    say(f"{spec.name} version {version} ({content_hash[:12]}) {state}")
    return {
        "workflow": spec.name,
        "version": version,
        "content_hash": content_hash,
        "changed": before is None,
    }

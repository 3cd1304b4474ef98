"""`wf cache ls`: lists what iterations of `foreach … reuse` have stored for later runs."""

from __future__ import annotations

from typing import Annotated

import typer

from wfsql.cli.cache import counted, created_at, open_bundles, read_all
from wfsql.cli.database import JsonOption
from wfsql.cli.output import say, write_json, write_table
from wfsql.cli.project import ProjectRootOption


def command(
    workflow: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only entries of this workflow.")
    ] = None,
    project_root: ProjectRootOption = None,
    json: JsonOption = False,
) -> int:
    """List the entries of the reuse cache of a project, by key.

    Example:  wf cache ls --workflow photos
    """
    bundles = open_bundles(project_root)
    entries, damaged = read_all(bundles)
    found = [entry for entry in entries if workflow in (None, entry.workflow)]
    if json:
        write_json(
            [
                {
                    "content_key": entry.key,
                    "workflow": entry.workflow,
                    "path": entry.path,
                    "created_at": created_at(entry),
                    "bytes": entry.size,
                }
                for entry in found
            ]
        )
    elif found:
        write_table(
            ("CONTENT KEY", "WORKFLOW", "STORED BY", "CREATED", "BYTES"),
            [(e.key, e.workflow, e.path, created_at(e), str(e.size)) for e in found],
        )
    else:
        say(f"no entries in {bundles.folder}")
    if damaged:
        say(f"{counted(len(damaged))} damaged: see wf cache verify")
    return 0

"""`wf cache verify`: reads every entry of the reuse cache and proves it by its own hash."""

from __future__ import annotations

from wfsql.cli.cache import counted, open_bundles, read_all
from wfsql.cli.database import JsonOption
from wfsql.cli.output import one_line, say, write, write_json
from wfsql.cli.project import ProjectRootOption


def command(project_root: ProjectRootOption = None, json: JsonOption = False) -> int:
    """Prove every entry of the reuse cache; the exit code is 1 when one is damaged.

    A damaged entry does no harm: runs count it as absent, say so, and write it anew.

    Example:  wf cache verify
    """
    bundles = open_bundles(project_root)
    entries, damaged = read_all(bundles)
    if json:
        rows = [{"content_key": found.key, "reason": found.reason} for found in damaged]
        write_json({"whole": len(entries), "damaged": rows})
    else:
        for found in damaged:
            write(one_line(f"{found.key}: {found.reason}"))
        say(f"{counted(len(entries))} whole, {len(damaged)} damaged")
        if damaged:
            say("hint: wf cache rm --damaged takes them away")
    return 1 if damaged else 0

"""What the `wf cache` commands share: the project's bundles, and telling of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from local_runner.bundles import Damage, Entry, FileBundles
from wfsql.cli.main import CommandError
from wfsql.cli.project import find_project_root


def open_bundles(project_root: str | None) -> FileBundles:
    """Returns the bundles of the project named, or of the one around the current folder."""
    return FileBundles(find_project_root(Path(), project_root))


def read_all(bundles: FileBundles) -> tuple[list[Entry], list[Damage]]:
    """Reads every entry; one that goes meanwhile is in neither list."""
    entries: list[Entry] = []
    damaged: list[Damage] = []
    try:
        for key in bundles.content_keys():
            found = bundles.read(key)
            if isinstance(found, Damage):
                damaged.append(found)
            elif found is not None:
                entries.append(found)
    except OSError as error:
        raise CommandError(f"{bundles.folder}: {(error.strerror or str(error)).lower()}") from error
    return entries, damaged


def created_at(entry: Entry) -> str:
    """Returns the time of an entry as RFC 3339 in UTC, to the millisecond."""
    at = datetime.fromtimestamp(entry.created_at_ns / 1e9, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(count: int) -> str:
    """Returns `1 entry`, `2 entries`."""
    return "1 entry" if count == 1 else f"{count} entries"

"""`wf cache rm`: removes entries of the reuse cache, so that their iterations run again."""

from __future__ import annotations

from typing import Annotated

import typer

from local_runner.bundles import FileBundles
from wfsql.cli.cache import counted, open_bundles, read_all
from wfsql.cli.main import CommandError, wrong_use
from wfsql.cli.output import say
from wfsql.cli.project import ProjectRootOption


def command(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY...", help="Content keys, or their first digits."),
    ] = None,
    workflow: Annotated[
        str | None, typer.Option(metavar="NAME", help="All entries of this workflow.")
    ] = None,
    damaged: Annotated[
        bool, typer.Option("--damaged", help="Damaged entries, and what killed runs have left.")
    ] = False,
    all_: Annotated[bool, typer.Option("--all", help="Everything.")] = False,
    project_root: ProjectRootOption = None,
) -> int:
    """Remove entries of the reuse cache; the iterations they stand for run again.

    Example:  wf cache rm --workflow photos

    Example:  wf cache rm 3f2a91
    """
    chosen = [bool(keys), workflow is not None, damaged, all_]
    if sum(chosen) != 1:
        raise wrong_use(
            "say what to remove: keys, --workflow, --damaged or --all, one of them",
            "wf cache ls shows the keys",
        )
    bundles = open_bundles(project_root)
    names = _named(bundles, keys) if keys else _chosen(bundles, workflow, damaged)
    for name in names:
        try:
            bundles.remove(name)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise CommandError(f"{bundles.folder / name}: cannot be removed: {reason}") from error
    say(f"{counted(len(names))} removed")
    return 0


def _named(bundles: FileBundles, prefixes: list[str]) -> list[str]:
    known = list(bundles.content_keys())
    found: list[str] = []
    for prefix in prefixes:
        fitting = [key for key in known if key.startswith(prefix)]
        if len(fitting) != 1:
            count = "no entry" if not fitting else f"{len(fitting)} entries"
            raise CommandError(f"{prefix}: {count} with that key", "wf cache ls shows the keys")
        found += fitting
    return list(dict.fromkeys(found))


def _chosen(bundles: FileBundles, workflow: str | None, only_damaged: bool) -> list[str]:
    entries, damaged = read_all(bundles)
    if workflow is not None:
        return [entry.key for entry in entries if entry.workflow == workflow]
    broken = [found.key for found in damaged] + list(bundles.leftovers())
    return broken if only_damaged else [entry.key for entry in entries] + broken

"""Puts the workflows of a folder into the database, file by file.

A file with errors is reported as `wf check` would, and leaves the version that runs as it is; the
others go on. Dispatch settings of a catalog are taken over: here nobody else uses the database.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compiler.spec import GraphSpec
from runtime_sql.connection import RuntimeClient
from runtime_sql.failures import ApiError, DatabaseProblem

# Folders that hold other people's files.
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "build", "dist"})


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one file. `changed`: something new is in the database now."""

    text: str
    changed: bool = False
    failed: bool = False


def workflow_files(folder: Path) -> list[Path]:
    """Returns every `.wf` file below a folder, in order; hidden folders are left out."""
    return sorted(_walk(folder, ".wf"))


def handler_files(workflows: Iterable[Path]) -> list[Path]:
    """Returns the `handlers.py` that stand beside workflows."""
    found = {path.parent / "handlers.py" for path in workflows}
    return sorted(path for path in found if path.is_file())


def deploy(client: RuntimeClient, path: Path) -> list[Report]:
    """Compiles a file and deploys its workflows, all or none."""
    from compiler.pipeline import compile_file
    from dsl.diagnostics import has_errors
    from dsl.render import render_line, render_text

    result = compile_file(_shown(path), None)
    if has_errors(result.diagnostics):
        errors = [found for found in result.diagnostics if found.severity == "error"]
        return [Report(render_text(errors).rstrip("\n"), failed=True)]
    reports = [Report(render_line(warning)) for warning in result.diagnostics]
    if not result.specs:
        return reports
    return [*reports, *_put(client, result.specs, _shown(path))]


def _shown(path: Path) -> str:
    """Returns a path as people call it: from here, when it is below here."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _put(client: RuntimeClient, specs: tuple[GraphSpec, ...], shown: str) -> list[Report]:
    from wfsql.cli.sources import deploy_script

    before = [client.deployed_version(spec.name, spec.content_hash()) for spec in specs]
    failure = client.run_script(deploy_script(specs, update_actions=True))
    if failure is not None:
        return [Report(f"{shown}: {failure.message}", failed=True)]
    return [_told(client, spec, old) for spec, old in zip(specs, before, strict=True)]


def _told(
    client: RuntimeClient, spec: GraphSpec, before: int | ApiError | DatabaseProblem | None
) -> Report:
    if isinstance(before, int):
        return Report(f"{spec.name} version {before}: nothing new")
    version = client.deployed_version(spec.name, spec.content_hash())
    return Report(f"{spec.name} version {version} is deployed", changed=True)


def _walk(folder: Path, suffix: str) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED]
        for name in files:
            if name.endswith(suffix):
                yield Path(place) / name

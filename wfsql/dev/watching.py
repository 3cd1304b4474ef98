"""Says which files of a folder have changed, a group of changes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event

_CATALOG = (".actions.yaml", ".actions.yml")
_LOOK_MS = 300  # between two looks while nothing changes: how long an end may take


@dataclass(frozen=True, slots=True)
class Changes:
    """What has changed; a workflow or catalog asks for a deploy, Python for new workers."""

    workflows: tuple[Path, ...]
    catalogs: tuple[Path, ...]
    handlers: tuple[Path, ...]


def changes(folder: Path, stop: Event) -> Iterator[Changes | None]:
    """Yields groups of changes until `stop` is set, and None whenever a while passes without."""
    from watchfiles import watch

    for found in watch(
        folder,
        watch_filter=lambda _change, path: _is_of_interest(Path(path), folder),
        debounce=400,
        step=50,
        stop_event=stop,
        rust_timeout=_LOOK_MS,
        yield_on_timeout=True,
        raise_interrupt=False,
    ):
        paths = sorted({Path(path) for _change, path in found})
        yield _sorted_by_kind(paths) if paths else None


def _is_of_interest(path: Path, folder: Path) -> bool:
    below = path.relative_to(folder).parts
    if any(part.startswith(".") or part == "__pycache__" for part in below):
        return False
    return path.name.endswith((".wf", ".py", *_CATALOG))


def _sorted_by_kind(paths: list[Path]) -> Changes:
    return Changes(
        workflows=tuple(path for path in paths if path.suffix == ".wf"),
        catalogs=tuple(path for path in paths if path.name.endswith(_CATALOG)),
        handlers=tuple(path for path in paths if path.suffix == ".py"),
    )

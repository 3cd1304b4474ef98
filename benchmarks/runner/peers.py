"""The other interpreters: installed once, into the user's cache, by the benchmark alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Pinned, so that numbers of two days compare the same programs.
REQUIREMENTS = ("moto[stepfunctions]==5.2.1", "SpiffWorkflow==3.2.0")


def python() -> Path | None:
    """Returns a Python that has them; None, with the reason on stderr, when they cannot be had."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(home) / "wfsql-bench" / "runner-venv"
    found, mark = folder / "bin" / "python", folder / ".complete"
    if not mark.exists():
        pip = [str(found), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for command in ([sys.executable, "-m", "venv", str(folder)], [*pip, *REQUIREMENTS]):
            if subprocess.run(command, check=False).returncode != 0:
                print(f"left out, as this failed: {' '.join(command)}", file=sys.stderr)
                return None
        mark.touch()
    return found

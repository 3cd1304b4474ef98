"""What `wf dev` needs of its gateway: keys to call it with, and to know when it answers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from runtime_sql.failures import ApiError, DatabaseProblem, Failure

_ANSWER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class DevKeys:
    """Files with one key each: workers enrol with the one, people call with the other."""

    enroll: Path
    everyday: Path


def make_keys(url: str, folder: Path) -> DevKeys | Failure:
    """Returns the keys that stand in `folder`, made when they are missing there."""
    from runtime_sql.gateway_client import KeyGrant, connect_gateway
    from wfsql.gateway.keys import new_key

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    keys = DevKeys(folder / "enroll", folder / "everyday")
    grants = {
        keys.enroll: KeyGrant(name="wf dev workers", roles=("enroll",), capabilities=("*",)),
        keys.everyday: KeyGrant(name="wf dev", roles=("author", "operator", "reader")),
    }
    missing = [path for path in grants if not path.exists()]
    if not missing:
        return keys
    client = connect_gateway(url)
    if isinstance(client, ApiError | DatabaseProblem):
        return client
    try:
        for path in missing:
            key = new_key()
            made = client.create_api_key(key, grants[path])
            if isinstance(made, ApiError | DatabaseProblem):
                return made
            _write(path, key)
    finally:
        client.close()
    return keys


def is_ready(address: str) -> bool:
    """Whether the gateway answers, and its database too."""
    import httpx

    try:
        return httpx.get(f"{address}/readyz", timeout=_ANSWER_SECONDS).is_success
    except httpx.HTTPError:
        return False


def _write(path: Path, key: str) -> None:
    """Writes a file that nobody else can read, at any moment."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(key + "\n")

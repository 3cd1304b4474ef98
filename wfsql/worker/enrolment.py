"""Who a worker is at a gateway: its name and token, kept in its folder or given.

Flow: a token that is given (WF_WORKER_TOKEN, --token-file) is used as it is. Otherwise the one in
the folder is, and where there is none, or it was refused, the worker makes one up and enrols under
an API key of role enroll. So the key is needed at the first start, and may stay away afterwards.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wfsql.worker.gateway_source import GatewayAddress, GatewaySource
from wfsql.worker.source import REFUSED_TOKEN, Trouble
from wfsql.worker.state import Identity, StateFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What the user has given; at most one of `token` and `token_file`."""

    worker_id: str | None = None
    token: str | None = None
    token_file: Path | None = None
    key: str | None = None


class Enrolment:
    """Knows how to get a token, and how to get another one when it was refused."""

    def __init__(
        self, address: GatewayAddress, given: Credentials, folder: StateFolder, lease_seconds: int
    ) -> None:
        self._address = address
        self._given = given
        self._folder = folder
        self._lease_seconds = lease_seconds
        kept = folder.identity()
        self._kept = kept if kept is not None and kept.gateway == address.url else None
        self._capabilities: Sequence[str] = ()
        self._concurrency = 1
        self.worker_id = given.worker_id or (self._kept.worker_id if self._kept else new_name())
        if self._kept is not None and self._kept.worker_id != self.worker_id:
            self._kept = None

    def problem(self) -> Trouble | None:
        """Returns why there is no way to a token."""
        if self._given.token is None and self._given.token_file is None:
            if self._given.key is None and self._kept is None:
                return Trouble(
                    "this worker is not enrolled at the gateway",
                    "give --enroll-key-file or WF_API_KEY (a key of role enroll), or a token of"
                    " its own with --token-file or WF_WORKER_TOKEN",
                )
        elif self._given.worker_id is None and self._kept is None:
            return Trouble(
                "the token belongs to a worker that is not named", "give its name with --worker-id"
            )
        return None

    def token(self) -> str:
        """Returns the token to begin with.

        Raises:
          OSError: the token's file cannot be read.
        """
        if self._given.token is not None:
            return self._given.token
        if self._given.token_file is not None:
            return read_secret(self._given.token_file)
        return self._kept.token if self._kept is not None else new_token()

    def actions(self, source: GatewaySource) -> Mapping[str, str] | Trouble:
        """Returns the actions there; asked under the key, as long as there is no other right."""
        if self._given.key is not None:
            answer = source.actions_for_key(self._given.key)
            if not isinstance(answer, Trouble) or answer.code != REFUSED_TOKEN:
                return answer
        return source.actions()

    def enrol(
        self, source: GatewaySource, capabilities: Sequence[str], concurrency: int
    ) -> Trouble | None:
        """Makes the worker known for these capabilities, unless it is so already."""
        self._capabilities, self._concurrency = capabilities, concurrency
        if self._given.token is not None or self._given.token_file is not None:
            return None
        wanted = self._identity(source.token)
        if self._kept == wanted or self._given.key is None:
            return None
        refused = source.enroll(self._given.key, capabilities, concurrency)
        if refused is None:
            self._keep(wanted)
        return refused

    @property
    def kept_capabilities(self) -> tuple[str, ...] | None:
        """For what the worker is enrolled, when nothing here can change it."""
        return self._kept.capabilities if self._kept is not None and not self._given.key else None

    def renewed(self) -> str | None:
        """Returns another token after one was refused: that of the file now, or a new one."""
        if self._given.token_file is not None:
            try:
                return read_secret(self._given.token_file)
            except OSError:
                return None
        if self._given.token is not None or self._given.key is None or not self._capabilities:
            return None
        token = new_token()
        fresh = GatewaySource(self._address, self.worker_id, token, self._lease_seconds)
        try:
            refused = fresh.enroll(self._given.key, self._capabilities, self._concurrency)
        finally:
            fresh.close()
        if refused is not None:
            return None
        self._keep(self._identity(token))
        return token

    def _identity(self, token: str) -> Identity:
        return Identity(
            worker_id=self.worker_id,
            token=token,
            gateway=self._address.url,
            capabilities=tuple(self._capabilities),
            max_concurrency=self._concurrency,
        )

    def _keep(self, identity: Identity) -> None:
        self._kept = identity
        self._folder.keep(identity)


def new_token() -> str:
    """Returns a fresh worker token: `wf_`, an id to look it up by, 256 random bits (R26)."""
    return f"wf_{secrets.token_hex(6)}_{secrets.token_urlsafe(32)}"


def new_name() -> str:
    """Returns a name for a worker that has none."""
    return f"{socket.gethostname()[:100]}-{secrets.token_hex(4)}"


def read_secret(path: Path) -> str:
    """Returns the first line of a file, without its end.

    Raises:
      OSError: it cannot be read, or is empty.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    if not lines[0].strip():
        raise OSError(None, "is empty", str(path))
    return lines[0].strip()

"""Who calls: bearer tokens of workers, and keys with roles.

A worker's token is checked by the database in each call that names the worker. A key that was good
is remembered for at most 30 seconds by its SHA-256, never as text, and not beyond its expiry. What
is compared is a digest of 256 bits, so the time that a comparison takes tells nothing.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from runtime_sql.failures import ApiError, DatabaseProblem
from runtime_sql.gateway_client import GatewayClient, KeyOwner
from wfsql.gateway.pool import Pool
from wfsql.gateway.problems import BEARER, Refusal, of_failure

REMEMBERED_SECONDS = 30.0
_MOST_REMEMBERED = 10_000
_LONGEST_TOKEN = 200


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token as it was sent; `digest` stands for it wherever it is kept or counted."""

    token: str
    digest: bytes

    def __repr__(self) -> str:
        return "Bearer(…)"


def bearer_of(headers: Mapping[bytes, bytes]) -> Bearer:
    """Returns the bearer token of a request.

    Raises:
      Refusal: there is none, 401.
    """
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    token = token.strip()
    if scheme.lower() != b"bearer" or not token:
        raise unauthorized("a bearer token is needed")
    if len(token) > _LONGEST_TOKEN or not token.isascii():
        raise unauthorized("the token is not valid")
    return Bearer(token.decode("ascii"), hashlib.sha256(token).digest())


def unauthorized(detail: str) -> Refusal:
    """Returns the refusal for a caller that nobody knows."""
    return Refusal(401, 20001, detail, headers=BEARER)


class KeyRing:
    """Keys that were found good a moment ago. Belongs to one event loop."""

    def __init__(self, pool: Pool, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[float, KeyOwner]] = OrderedDict()

    async def owner(self, bearer: Bearer) -> KeyOwner:
        """Returns whose key it is.

        Raises:
          Refusal: nobody's, 401; the database is away, 503.
        """
        found = self._known.get(bearer.digest)
        if found is not None and found[0] > self._clock():
            return found[1]
        answer = await self._pool.ask(_authenticate(bearer.token))
        if isinstance(answer, ApiError) and answer.code == 20001:
            self.forget(bearer)
            raise unauthorized(answer.message)
        if isinstance(answer, ApiError | DatabaseProblem):
            raise of_failure(answer)
        self._remember(bearer, answer)
        return answer

    def forget(self, bearer: Bearer) -> None:
        """Makes the next call ask the database."""
        self._known.pop(bearer.digest, None)

    def _remember(self, bearer: Bearer, owner: KeyOwner) -> None:
        seconds = REMEMBERED_SECONDS
        if owner.expires_at is not None:
            left = (owner.expires_at - datetime.now(UTC)).total_seconds()
            seconds = max(0.0, min(seconds, left))
        self._known[bearer.digest] = (self._clock() + seconds, owner)
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)


def _authenticate(key: str) -> Callable[[GatewayClient], KeyOwner | ApiError | DatabaseProblem]:
    return lambda client: client.authenticate_key(key)


def need_role(owner: KeyOwner, roles: frozenset[str]) -> None:
    """Refuses, with 403, a key that has none of the roles."""
    if not owner.roles & roles:
        wanted = " or ".join(sorted(roles))
        raise Refusal(403, "role", f"this needs a key with the role {wanted}")

"""What an operation of the API is: one entry per method and path, for the router and for OpenAPI.

Flow of a request through `Gateway`: `app.py` finds the operation, checks the caller and reads the
body into a `Call`; the operation's handler answers a `Reply` or raises a `Refusal`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from runtime_sql.gateway_client import KeyOwner
from wfsql.gateway.auth import Bearer, KeyRing
from wfsql.gateway.hub import Hub
from wfsql.gateway.metrics import Metrics
from wfsql.gateway.pool import Pool
from wfsql.gateway.problems import Refusal, bad_request

Caller = Literal["anybody", "worker", "key", "worker_or_key", "monitor"]
"""Who may call: `worker` sends a worker's token and its id in the body, `worker_or_key` with the
header X-Worker-Id; `monitor` is anybody on loopback, else a key of role reader."""


@dataclass(slots=True)
class Known:
    """What a gateway has learned of its database: its name, once a claim has asked for it.

    `unrecorded`: accepted tasks that the database could not write down under their execution scope;
    the next result takes them along. Threads replace it, and change none.
    """

    database_id: str | None = None
    unrecorded: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Gateway:
    """What the handlers work with. `claims` is entered by every claim: half of the connections."""

    pool: Pool
    claims: asyncio.Semaphore
    hub: Hub
    keys: KeyRing
    metrics: Metrics
    log: Any
    known: Known = field(default_factory=Known)


@dataclass(slots=True)
class Call:
    """One request, checked and read. `who` names its caller in the log."""

    operation: Operation
    request_id: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any = None
    bearer: Bearer | None = None
    owner: KeyOwner | None = None
    worker_id: str | None = None
    who: str | None = None
    receive: Callable[[], Awaitable[Any]] | None = None

    @property
    def token(self) -> str:
        """The token of a caller that has one."""
        assert self.bearer is not None
        return self.bearer.token

    def id(self, name: str) -> int:
        """Returns an id from the path.

        Raises:
          Refusal: no row has such an id, 404.
        """
        text = self.path[name]
        if not text.isascii() or not text.isdigit() or len(text) > 18 or text.startswith("0"):
            raise Refusal(404, 20002, f"there is no {name.removesuffix('_id')} of this id")
        return int(text)

    def number(self, name: str, default: int | None, least: int, most: int) -> int | None:
        """Returns a number from the query.

        Raises:
          Refusal: it is none, or out of bounds, 400.
        """
        text = self.query.get(name)
        if text is None:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise bad_request(20004, f"{name} must be a number")
        if not least <= int(text) <= most:
            raise bad_request(20004, f"{name} must be between {least} and {most}")
        return int(text)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: `value` is written by `answers.write`, bytes are sent as they are."""

    value: Any
    status: int = 200
    content_type: bytes = b"application/json"


Handler = Callable[[Gateway, Call], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A query parameter; `schema` is its JSON Schema."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`roles`: a key needs one of them. `needs_body`: without one the request is refused."""

    name: str
    method: Literal["GET", "POST"]
    path: str
    summary: str
    handler: Handler
    caller: Caller
    answer: type[BaseModel] | None
    roles: frozenset[str] = frozenset()
    body: type[BaseModel] | None = None
    needs_body: bool = True
    status: int = 200
    query: tuple[Parameter, ...] = ()
    refusals: tuple[int, ...] = ()

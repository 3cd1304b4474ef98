"""The gateway as an ASGI application.

Flow of a request: request id → Host → operation by path and method → bearer token → rate → key
and role → query and body → the operation's handler → answer. Whatever is refused on the way is a
problem document; what nobody expected is one, too, that says nothing but the request's id. Each
request is a line of the log and a count of the metrics.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.routing import Route

from wfsql.gateway import api_calls, service_calls, worker_calls
from wfsql.gateway.answers import write
from wfsql.gateway.auth import KeyRing, bearer_of, need_role, unauthorized
from wfsql.gateway.bodies import ClientGone, check_headers, parse_body, read_body
from wfsql.gateway.hub import Hub
from wfsql.gateway.limits import RateLimit
from wfsql.gateway.log import new_logger
from wfsql.gateway.metrics import Metrics
from wfsql.gateway.operations import Call, Gateway, Operation, Reply
from wfsql.gateway.pool import Connect, Pool
from wfsql.gateway.problems import Refusal, bad_request, document
from wfsql.gateway.settings import Settings, is_known_host

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

OPERATIONS: tuple[Operation, ...] = (
    *worker_calls.OPERATIONS,
    *api_calls.OPERATIONS,
    *service_calls.OPERATIONS,
)

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_CLOSE = (b"connection", b"close")


class _Path:
    """All operations of one path: the endpoint of its route."""

    def __init__(self, edge: Edge, operations: Mapping[str, Operation]) -> None:
        self._edge = edge
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self._operations.get(scope["method"])
        if operation is None:
            allowed = ", ".join(sorted(self._operations)).encode()
            scope["wf.refusal"] = Refusal(
                405, "method", "this path has no such method", headers=((b"allow", allowed),)
            )
        await self._edge.answer(operation, scope, receive, send)


class Edge:
    """Answers every request, whatever it is."""

    def __init__(self, gateway: Gateway, settings: Settings) -> None:
        self._gateway = gateway
        self._settings = settings
        self._rate = RateLimit(settings.rate)
        self._is_private = settings.is_private
        self._is_known_host = lru_cache(256)(partial(is_known_host, settings=settings))

    async def answer(
        self, operation: Operation | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Makes the answer of one request and sends it; raises nothing."""
        began = time.perf_counter()
        headers = dict(scope["headers"])
        request_id = _request_id(headers)
        call: Call | None = None
        code: object = None
        try:
            if operation is None:
                raise scope.get("wf.refusal") or Refusal(404, "path", "there is no such path")
            call = Call(operation, request_id, scope["path_params"], {}, receive=receive)
            reply = await self._reply(call, scope, headers)
            status, body, kind = reply.status, _bytes(reply), reply.content_type
            more: tuple[tuple[bytes, bytes], ...] = ()
        except ClientGone:
            return
        except Refusal as refusal:
            status, code, kind = refusal.status, refusal.code, b"application/problem+json"
            body = document(refusal, scope["path"], request_id)
            more = _refusal_headers(refusal)
        except Exception:
            self._gateway.log.exception("fault", request_id=request_id, path=scope["path"])
            fault = Refusal(500, "fault", "the gateway has failed; its log says more")
            status, code, kind = 500, "fault", b"application/problem+json"
            body, more = document(fault, scope["path"], request_id), ()
        self._note(operation, call, scope, request_id, status, code, began)
        await _send(send, status, body, kind, request_id, more)

    def _note(
        self,
        operation: Operation | None,
        call: Call | None,
        scope: Scope,
        request_id: str,
        status: int,
        code: object,
        began: float,
    ) -> None:
        route = "none" if operation is None else operation.path
        self._gateway.metrics.requests.labels(route, str(status)).inc()
        self._gateway.log.info(
            "request",
            request_id=request_id,
            method=scope["method"],
            route=route,
            status=status,
            ms=round((time.perf_counter() - began) * 1000, 1),
            who=None if call is None else call.who,
            code=code,
        )

    async def _reply(self, call: Call, scope: Scope, headers: Mapping[bytes, bytes]) -> Reply:
        if not self._is_known_host(headers.get(b"host", b"")):
            raise Refusal(421, "host", "this gateway does not answer for this host")
        await self._know_caller(call, headers)
        call.query = _query(call.operation, scope["query_string"])
        if call.operation.body is not None:
            await self._read_body(call, headers)
        return await call.operation.handler(self._gateway, call)

    async def _know_caller(self, call: Call, headers: Mapping[bytes, bytes]) -> None:
        operation = call.operation
        open_to_all = operation.caller == "anybody" or (
            operation.caller == "monitor" and self._is_private
        )
        if open_to_all:
            return
        call.bearer = bearer_of(headers)
        wait = self._rate.take(call.bearer.digest)
        if wait:
            raise Refusal(429, "rate", "too many requests of this caller", retry_after=wait)
        if operation.caller == "worker":
            return
        worker_id = headers.get(b"x-worker-id")
        if operation.caller == "worker_or_key" and worker_id is not None:
            call.worker_id = call.who = _worker_id(worker_id)
            return
        call.owner = await self._gateway.keys.owner(call.bearer)
        call.who = call.owner.name
        if operation.roles:
            need_role(call.owner, operation.roles)

    async def _read_body(self, call: Call, headers: Mapping[bytes, bytes]) -> None:
        operation, receive = call.operation, call.receive
        assert operation.body is not None
        assert receive is not None
        empty = b"content-length" not in headers and b"transfer-encoding" not in headers
        if not operation.needs_body and (empty or headers.get(b"content-length") == b"0"):
            call.body = operation.body()
            return
        check_headers(headers, self._settings.max_body)
        body = await read_body(receive, self._settings.max_body, self._settings.body_seconds)
        call.body = await parse_body(body, operation.body)
        if operation.caller == "worker":
            call.who = call.body.worker_id


def _worker_id(header: bytes) -> str:
    try:
        return header.decode("utf-8")
    except UnicodeDecodeError:
        raise unauthorized("the worker is not known or its token is not valid") from None


def _request_id(headers: Mapping[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def _query(operation: Operation, text: bytes) -> dict[str, str]:
    """Reads a query string, whose names must be known and stand once."""
    if not text:
        return {}
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=20,
        )
    except ValueError:
        raise bad_request("query", "the query cannot be read") from None
    known = {parameter.name for parameter in operation.query}
    found = dict(pairs)
    if len(found) != len(pairs) or not known.issuperset(found):
        names = ", ".join(sorted(known)) or "none"
        raise bad_request("query", f"each parameter may stand once; these are known: {names}")
    if any("\0" in value for value in found.values()):
        raise bad_request(10018, "a parameter contains U+0000")
    return found


def _bytes(reply: Reply) -> bytes:
    return reply.value if isinstance(reply.value, bytes) else write(reply.value)


def _refusal_headers(refusal: Refusal) -> tuple[tuple[bytes, bytes], ...]:
    more = refusal.headers
    if refusal.retry_after is not None:
        more = (*more, (b"retry-after", str(refusal.retry_after).encode()))
    return (*more, _CLOSE) if refusal.closes else more


async def _send(
    send: Send,
    status: int,
    body: bytes,
    content_type: bytes,
    request_id: str,
    more: tuple[tuple[bytes, bytes], ...],
) -> None:
    headers = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", request_id.encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class GatewayApp:
    """The ASGI application and what it holds; one per process, or per test."""

    def __init__(self, connect: Connect, settings: Settings, log: Any = None) -> None:
        self.pool = Pool(connect, settings.pool_size, settings.pool_wait_seconds)
        self._log = log or new_logger(requests=settings.log_requests)
        self.hub = Hub(self.pool, self._log)
        self.gateway = Gateway(
            pool=self.pool,
            claims=asyncio.Semaphore((settings.pool_size + 1) // 2),
            hub=self.hub,
            keys=KeyRing(self.pool),
            metrics=Metrics(self.pool, self.hub),
            log=self._log,
        )
        self._edge = Edge(self.gateway, settings)
        self._app = Starlette(routes=self._routes(), lifespan=self._lifespan)
        self._app.router.redirect_slashes = False
        self._app.router.default = self._unknown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # Starlette's own middleware would turn a fault into a text of its own.
            await self._app.router(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def stop(self) -> None:
        """Ends all long polls at once; what is in hand is finished."""
        self.hub.stop()

    def _routes(self) -> list[Route]:
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            by_path.setdefault(operation.path, {})[operation.method] = operation
        return [Route(path, _Path(self._edge, operations)) for path, operations in by_path.items()]

    async def _unknown(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._edge.answer(None, scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        self.hub.start()
        try:
            yield
        finally:
            await self.hub.close()
            await self.pool.close()

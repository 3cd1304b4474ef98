"""Running a gateway: sockets, TLS, slow clients, an orderly end.

A client has `header_seconds` for the head of a request, `body_seconds` for its body; an idle
connection is closed after `idle_seconds`. On SIGTERM no new connection is taken, long polls are
answered with no tasks, what is in hand is finished within `grace_seconds`; a second signal ends it
at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wfsql.gateway.app import GatewayApp
from wfsql.gateway.settings import Address, Settings

BACKLOG = 2048
MAX_HEAD_BYTES = 32 * 1024
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def protocol_with(header_seconds: float) -> type[HttpToolsProtocol]:
    """Returns uvicorn's protocol with a limit on the time and size of a request's head.

    uvicorn itself waits for ever for a head that does not come.
    """

    class PatientProtocol(HttpToolsProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._head_bytes = 0
            self._head_timer: asyncio.TimerHandle | None = self.loop.call_later(
                header_seconds, self._too_slow
            )

        def data_received(self, data: bytes) -> None:
            in_head = self._head_timer is not None
            if not in_head and (self.cycle is None or self.cycle.response_complete):
                self._head_timer = self.loop.call_later(header_seconds, self._too_slow)
                in_head = True
            if in_head:
                self._head_bytes += len(data)
            super().data_received(data)
            if self._head_timer is not None and self._head_bytes > MAX_HEAD_BYTES:
                self._end(_TOO_LARGE)

        def on_headers_complete(self) -> None:
            self._stop_timer()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def _stop_timer(self) -> None:
            self._head_bytes = 0
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

        def _too_slow(self) -> None:
            self._end(_TOO_SLOW)

        def _end(self, answer: bytes) -> None:
            self._stop_timer()
            if not self.transport.is_closing():
                self.transport.write(answer)
                self.transport.close()

    return PatientProtocol


class Server(uvicorn.Server):
    """uvicorn's server with an end of its own: exit code 0, long polls told first."""

    def __init__(
        self, config: uvicorn.Config, app: GatewayApp, started: Callable[[], Any] | None
    ) -> None:
        super().__init__(config)
        self._gateway_app = app
        self._when_started = started
        self._told = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._when_started is not None:
            self._when_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Listens to signals without raising them again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        wanted = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in wanted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._told += 1
        if self._told > 1:
            os._exit(128 + sig)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gateway_app.stop()
        await super().shutdown(sockets)


def open_sockets(addresses: tuple[Address, ...]) -> list[socket.socket]:
    """Binds every address.

    Raises:
      OSError: one of them is in use or not this machine's.
    """
    bound: list[socket.socket] = []
    try:
        for address in addresses:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            one = socket.socket(family, socket.SOCK_STREAM)
            bound.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family is socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind((address.host, address.port))
            one.listen(BACKLOG)
            one.setblocking(False)
    except OSError:
        for one in bound:
            one.close()
        raise
    return bound


def allow_many_files() -> None:
    """Raises the limit of open files to what the system allows: each client is one."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def new_server(
    app: GatewayApp, settings: Settings, started: Callable[[], Any] | None = None
) -> Server:
    """Returns the server for an application; `serve` of it takes the sockets.

    `started` is called when it answers; from then on `should_exit` may be set to end it.
    """
    config = uvicorn.Config(
        app,
        http=protocol_with(settings.header_seconds),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=settings.idle_seconds,
        timeout_graceful_shutdown=settings.grace_seconds,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    return Server(config, app, started)


def run(server: Server, sockets: list[socket.socket]) -> None:
    """Serves until a signal comes."""
    allow_many_files()
    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(server.serve(sockets))

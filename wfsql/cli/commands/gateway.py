"""`wf gateway`: serves the HTTP API for workers, event sources and operators."""

from __future__ import annotations

import os
from pathlib import Path
from socket import socket
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from runtime_sql.failures import ApiError, DatabaseProblem
from runtime_sql.gateway_client import connect_gateway
from wfsql.cli.database import UrlOption, good, need_url
from wfsql.cli.main import CommandError, wrong_use
from wfsql.cli.output import say
from wfsql.gateway.settings import (
    DEFAULT_PORT,
    MAX_BODY_BYTES,
    Address,
    Settings,
    is_host_name,
    parse_address,
    unencrypted_reason,
    unsafe_reason,
)

if TYPE_CHECKING:
    from wfsql.gateway.server import Server


def command(
    url: UrlOption = None,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT",
            help=f"Where to listen, may be repeated; 127.0.0.1:{DEFAULT_PORT} without.",
        ),
    ] = None,
    pool: Annotated[
        int, typer.Option(min=1, max=500, metavar="N", help="Connections to the database at most.")
    ] = 16,
    rate: Annotated[
        float,
        typer.Option(
            min=0, metavar="N", help="Requests per second of each token or key; 0: no limit."
        ),
    ] = 0,
    max_body: Annotated[
        int,
        typer.Option(
            min=1024, max=MAX_BODY_BYTES, metavar="BYTES", help="The largest body of a request."
        ),
    ] = MAX_BODY_BYTES,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The certificate, with its chain.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The certificate's key.")
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="A proxy before it does the encryption."),
    ] = False,
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Answer only for this Host, may be repeated."),
    ] = None,
    grace: Annotated[
        int,
        typer.Option(min=1, max=3600, metavar="SECONDS", help="How long the end may take."),
    ] = 30,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Log only what goes wrong, not every request.")
    ] = False,
    end_with_stdin: Annotated[
        bool,
        typer.Option(
            "--end-with-stdin",
            help="End when stdin is closed, as it is when the program that started it dies.",
        ),
    ] = False,
) -> int:
    """Serve the HTTP API for workers, event sources and operators.

    It listens on this machine only, unless told otherwise; wider it needs TLS, or a proxy that does
    it, and a key in the database ("wf key create"). SIGTERM or Ctrl-C ends it in good order.

    Example:  wf gateway --listen 127.0.0.1:8470 --pool 16
    """
    settings = Settings(
        listen=tuple(map(_address, listen or [f"127.0.0.1:{DEFAULT_PORT}"])),
        pool_size=pool,
        rate=rate,
        max_body=max_body,
        tls_cert=tls_cert,
        tls_key=tls_key,
        behind_proxy=behind_proxy,
        hosts=frozenset(map(_host, host or ())),
        grace_seconds=grace,
        log_requests=not quiet,
    )
    _check_tls(settings)
    _check_encryption(settings)
    target = need_url(url)
    _check_exposure(settings, target)
    return _serve(settings, target, end_with_stdin)


def _address(text: str) -> Address:
    found = parse_address(text)
    if found is None:
        port = text.removeprefix(":")
        raise wrong_use(
            f'"{text}" is no address to listen on',
            f"write it as 127.0.0.1:{port if port.isdigit() else DEFAULT_PORT} or [::1]:8470",
        )
    return found


def _host(text: str) -> str:
    name = text.lower().removeprefix("[").removesuffix("]")
    if not is_host_name(name):
        raise wrong_use(
            f'--host: "{text}" is no name of a host',
            "write it as in the URL that clients use, without port, as flows.example",
        )
    return name


def _check_tls(settings: Settings) -> None:
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise wrong_use("TLS needs both a certificate and its key", "give --tls-cert and --tls-key")
    for path in (settings.tls_cert, settings.tls_key):
        if path is not None and not path.is_file():
            raise wrong_use(f"{path}: no such file", "check the path")
    if settings.tls_cert is None or settings.tls_key is None:
        return
    from ssl import PROTOCOL_TLS_SERVER, SSLContext, SSLError

    try:
        SSLContext(PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (SSLError, OSError) as error:
        raise wrong_use(
            f"{settings.tls_cert} and {settings.tls_key} are no certificate and its key"
            f" ({getattr(error, 'reason', None) or error})",
            "both in PEM form, the key the certificate's own and without a password",
        ) from error


def _check_encryption(settings: Settings) -> None:
    reason = unencrypted_reason(settings)
    if reason is not None:
        raise wrong_use(
            reason, "give --tls-cert and --tls-key, or --behind-proxy where a proxy encrypts"
        )


def _check_exposure(settings: Settings, url: str) -> None:
    """Connects once, which also says that the database is as it should be."""
    client = good(connect_gateway(url))
    keys = client.list_api_keys()
    client.close()
    live = 0
    if not isinstance(keys, ApiError | DatabaseProblem):
        live = sum(key.is_live for key in keys)
    elif not settings.is_private:
        good(keys)
    reason = unsafe_reason(settings, live)
    if reason is not None:
        raise CommandError(reason, 'make a key with "wf key create"')


def _serve(settings: Settings, url: str, end_with_stdin: bool) -> int:
    try:
        from wfsql.gateway.app import GatewayApp
        from wfsql.gateway.server import new_server, open_sockets, run
    except ImportError as error:
        raise CommandError(
            f"the gateway needs a package that is not installed: {error.name}",
            'run pip install "wfsql[gateway]"',
        ) from error
    try:
        sockets = open_sockets(settings.listen)
    except OSError as error:
        raise CommandError(
            f"cannot listen: {(error.strerror or str(error)).lower()}",
            "another program may use the port; choose one with --listen",
        ) from error
    app = GatewayApp(lambda: connect_gateway(url), settings)
    server = new_server(app, settings, lambda: _say_where(settings, sockets))
    if end_with_stdin:
        Thread(target=_end_at_end_of_stdin, args=(server,), name="stdin", daemon=True).start()
    run(server, sockets)
    say("gateway ended")
    return 0


def _say_where(settings: Settings, sockets: list[socket]) -> None:
    scheme = "http" if settings.tls_cert is None else "https"
    for one in sockets:
        name, port = one.getsockname()[:2]
        shown = f"[{name}]" if ":" in name else name
        say(f"gateway listens on {scheme}://{shown}:{port}; Ctrl-C ends it")


def _end_at_end_of_stdin(server: Server) -> None:
    while os.read(0, 4096):
        pass
    server.should_exit = True

"""How a gateway is set up, and what of that is not safe."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PORT = 8470
MAX_BODY_BYTES = 16 * 1024 * 1024

_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?")
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; `port` 0 takes a free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`rate`: requests per second and caller, 0 for no limit. `hosts`: names it answers for."""

    listen: tuple[Address, ...] = (Address("127.0.0.1", DEFAULT_PORT),)
    pool_size: int = 16
    pool_wait_seconds: float = 2.0
    rate: float = 0.0
    max_body: int = MAX_BODY_BYTES
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: int = 75
    grace_seconds: int = 30
    tls_cert: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    hosts: frozenset[str] = frozenset()
    log_requests: bool = True

    @property
    def is_private(self) -> bool:
        """Whether only programs of this machine can reach it."""
        return all(address.is_loopback for address in self.listen) and not self.behind_proxy


def parse_address(text: str) -> Address | None:
    """Reads `host:port`, `[v6]:port`, `host` or `:port`; None for what is none."""
    host, colon, port = text.rpartition(":")
    if text.endswith("]") or not colon:
        host, port = text, str(DEFAULT_PORT)
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        return None
    host = host.removeprefix("[").removesuffix("]") or "0.0.0.0"
    if host.isdigit() or not is_host_name(host):
        return None
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        return None
    return Address(host, int(port))


def is_host_name(text: str) -> bool:
    """Whether a text can be a host: a name, or an address of IPv4 or IPv6 without brackets."""
    if ":" in text:
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            return False
        return True
    return _HOST.fullmatch(text) is not None


def is_known_host(header: bytes, settings: Settings) -> bool:
    """Whether the Host of a request may be answered.

    A web page can make a browser send requests to a loopback address under a name of the page's own
    (DNS rebinding), so there only local names and those of `hosts` count.
    """
    name = header.decode("latin-1").lower()
    name = name.rpartition(":")[0] if not name.endswith("]") and ":" in name else name
    name = name.removeprefix("[").removesuffix("]")
    if name in settings.hosts:
        return True
    if settings.hosts or settings.is_private:
        return name in _LOCAL_NAMES and any(a.is_loopback for a in settings.listen)
    return True


def unencrypted_reason(settings: Settings) -> str | None:
    """Says why a gateway must not listen where it was told to without TLS; None when it may."""
    wide = [a.host for a in settings.listen if not a.is_loopback]
    if wide and settings.tls_cert is None and not settings.behind_proxy:
        return f"{wide[0]} can be reached from elsewhere, and tokens would travel unencrypted"
    return None


def unsafe_reason(settings: Settings, live_key_count: int) -> str | None:
    """Says why a gateway must not listen where it was told to; None when it may."""
    wide = [a.host for a in settings.listen if not a.is_loopback]
    if wide and not live_key_count:
        return (
            unencrypted_reason(settings)
            or f"{wide[0]} can be reached from elsewhere, and the database has no key yet"
        )
    return unencrypted_reason(settings)

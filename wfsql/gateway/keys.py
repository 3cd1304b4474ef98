"""Keys and tokens: `wf_<id>_<43 base64url characters>`, 256 random bits each (R26)."""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime, timedelta

ROLES = ("author", "operator", "reader", "event_source", "enroll")

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def new_key() -> str:
    """Returns a key that was not there before; its id is 12 characters long."""
    return f"wf_{secrets.token_hex(6)}_{secrets.token_urlsafe(32)}"


def bad_span(option: str, text: str) -> tuple[str, str]:
    """Returns what to say of a text that `expiry` does not take, and the hint."""
    if re.fullmatch(r"0+[smhd]", text):
        return f"{option} {text} is over at once", "write a span from now on, as 90d, 12h or 30m"
    return f'{option}: "{text}" is no span of time', "write it as 90d, 12h, 30m or 45s"


def expiry(text: str, now: datetime | None = None) -> datetime | None:
    """Returns the time that `90d`, `12h`, `30m` or `45s` from now is; None for another text."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text)
    if found is None:
        return None
    at = now or datetime.now(UTC)
    return at + timedelta(seconds=int(found[1]) * _UNITS[found[2]])

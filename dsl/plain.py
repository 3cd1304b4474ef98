"""Makes text from files and databases safe to show on a terminal."""

from __future__ import annotations

import re

# C0 and C1 controls, DEL, marks that reorder or hide text, line and paragraph separators, and
# surrogates, which no terminal can be given.
UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff]"
)


def plain(text: str) -> str:
    """Returns `text` with every unsafe character written as `\\x1b` or `\\u202e`."""
    return UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

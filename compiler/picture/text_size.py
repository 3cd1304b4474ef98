"""How wide text is, near enough to draw boxes around it without asking a font.

Widths are tenths of the font size, as common sans-serif faces have them, rounded up.
"""

from __future__ import annotations

from unicodedata import east_asian_width

_NARROW = frozenset("iljtfrI.,:;|!'()[]{} /\\`-\"")
_WIDE = frozenset("mwMW@%—…")


def text_width(text: str, size: int, *, bold: bool = False) -> int:
    """Returns the width in pixels of a text set in `size` pixels."""
    width = (sum(map(_tenths, text)) * size + 9) // 10
    return width * 9 // 8 if bold else width


def _tenths(char: str) -> int:
    if char in _NARROW:
        return 4
    if char in _WIDE:
        return 9
    if not char.isascii() and east_asian_width(char) in "WF":
        return 10
    return 7 if char.isupper() else 6


def _cut(text: str, width: int) -> int:
    """Where to break a text: at a blank, after a dot or a comma, else where the line is full."""
    for sign in (" ", ".", ","):
        found = text.rfind(sign, width // 2, width + (sign == " "))
        if found > 0:
            return found + (sign != " ")
    return width


def wrap(text: str, width: int, most: int) -> list[str]:
    """Breaks a text at blanks, or where it must, into at most `most` lines of `width` characters;
    what does not fit is left out, and an ellipsis says so."""
    lines: list[str] = []
    rest = text
    while rest and len(lines) < most:
        if len(rest) <= width:
            lines.append(rest)
            rest = ""
        else:
            cut = _cut(rest, width)
            lines.append(rest[:cut].rstrip())
            rest = rest[cut:].lstrip()
    if rest:
        lines[-1] = lines[-1][: width - 1] + "…"
    return lines

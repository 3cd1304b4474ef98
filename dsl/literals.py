"""The meaning of number and duration literals.

Numbers are carried as `int`, or as a Decimal that keeps its fraction digits: `1.50e1` is 15.0 and
`1e3` is the integer 1000. An integer has at most 64 bits.
"""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]+)?(?:[eE]([+-]?[0-9]+))?")
_DURATION = re.compile(r"(?:[0-9]+(?:ms|[smhd]))+")
_DURATION_PART = re.compile(r"([0-9]+)(ms|[smhd])")
_UNIT_MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MAX_CHARACTERS = 400  # of a number's plain decimal form
_MAX_INTEGER = 2**63 - 1


def is_duration(text: str) -> bool:
    return _DURATION.fullmatch(text) is not None


_MEANT_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z]+)")
_OTHER_UNITS = {
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86_400_000),
}


def meant_duration(text: str) -> str | None:
    """Returns how a duration is written that has units of other languages: `5sec` is `5s`."""
    if len(text) > 60 or _MEANT_PART.sub("", text):
        return None
    total = Decimal(0)
    for count, unit in _MEANT_PART.findall(text):
        if unit.lower() not in _OTHER_UNITS:
            return None
        total += Decimal(count) * _OTHER_UNITS[unit.lower()]
    if not text or not 0 < total <= _MAX_INTEGER or total != int(total):
        return None
    return _written_duration(int(total))


def _written_duration(total: int) -> str:
    """One unit where one will do, such as `90s`; else several."""
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(total, _UNIT_MILLISECONDS[unit])
        if count and not rest:
            return f"{count}{unit}"
        if count and (parts := _written_duration(rest)):
            return f"{count}{unit}{parts}"
    return f"{total}ms"


def duration_milliseconds(text: str) -> int | str:
    """Returns the milliseconds of a duration, or what is wrong with it."""
    if len(text) > 60:
        return "the duration is too long"
    parts = _DURATION_PART.findall(text)
    units = [unit for _, unit in parts]
    if len(set(units)) < len(units):
        return "a unit stands twice in one duration"
    total = sum(int(count) * _UNIT_MILLISECONDS[unit] for count, unit in parts)
    return total if total <= _MAX_INTEGER else "the duration is too long"


def number_value(text: str, negative: bool) -> int | Decimal | str:
    """Returns the value of an unsigned number literal, or what is wrong with it.

    `negative` says that a minus sign stands before it: it makes room for -9223372036854775808.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        return _what_is_wrong(text)
    whole, fraction, exponent = match.group(1), match.group(2) or "", match.group(3)
    if len(exponent or "") > 5 or abs(int(exponent or 0)) + len(text) > _MAX_CHARACTERS * 2:
        return f"the number takes more than {_MAX_CHARACTERS} characters when written out"
    value = Decimal(f"{whole}{fraction}e{exponent or 0}")
    written = format(value, "f")
    if "." in written:
        if len(written) > _MAX_CHARACTERS:
            return f"the number takes more than {_MAX_CHARACTERS} characters when written out"
        return Decimal(written)
    if len(written) > 19 and written.strip("0"):
        return "the integer does not fit into 64 bits"
    integer = int(written[-30:])
    if integer > _MAX_INTEGER + (1 if negative else 0):
        return "the integer does not fit into 64 bits"
    return integer


def _what_is_wrong(text: str) -> str:
    if re.fullmatch(r"0[0-9]+(\.[0-9]+)?", text):
        return "a number does not begin with a zero"
    if re.fullmatch(r"0[xXbBoO][0-9A-Fa-f]+", text):
        return "numbers are written in decimal"
    if re.match(r"[0-9]+(ms|[smhd])", text):
        return "durations are written like 500ms, 30s or 1h30m"
    if "_" in text and text.replace("_", "").isdigit():
        return "a number has no separators"
    return "this is not a number"

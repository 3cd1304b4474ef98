"""The hint "did you mean …" for a name that is not there.

Flow: fold the candidates → when there are some, leave the few that share most letters with the name
→ difflib on those. A file may hold thousands of unknown names beside thousands of known ones, where
even a glance at each pair takes seconds: among very many only a single slip of the pen is mended,
by looking up everything that one slip can make of the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

MAX_LISTED = 8
_FEW = 24  # candidates that are all compared
_MANY = 600  # more than these are not even looked at one by one
_SIFTED = 32  # of many, those that share most letters; of these, the ones to compare:
_COMPARED = 6
_LONGEST = 100  # characters of a name that is still compared
_CUTOFF = 0.6
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789_-."


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Returns a hint with the nearest candidate, or with all of them when they are few."""
    known = tuple(candidates)
    folded = _folded(known)
    close = _nearest(name.casefold(), folded)
    if close is not None:
        return f'did you mean "{close}"?'
    if folded and len(folded) <= MAX_LISTED:
        return "known here: " + ", ".join(dict.fromkeys(known))
    return None


@lru_cache(maxsize=8)
def _folded(known: tuple[str, ...]) -> dict[str, str]:
    """Returns folded name → candidate; of two that fold alike the first counts."""
    return {candidate.casefold(): candidate for candidate in reversed(known)}


def _nearest(wanted: str, folded: dict[str, str]) -> str | None:
    if wanted in folded:
        return folded[wanted]
    if not folded or len(wanted) > _LONGEST:
        return None
    if len(folded) > _MANY:
        return next((folded[name] for name in _one_slip_away(wanted) if name in folded), None)
    from difflib import get_close_matches  # only needed once something is wrong

    compared = list(folded) if len(folded) <= _FEW else _likely(wanted, folded)
    close = get_close_matches(wanted, compared, n=1, cutoff=_CUTOFF)
    return folded[close[0]] if close else None


def _likely(wanted: str, folded: dict[str, str]) -> list[str]:
    """The candidates worth comparing: by their letters first, then by how they begin and end."""
    from heapq import nsmallest

    letters, length = _letters(wanted), len(wanted)
    sifted = nsmallest(
        _SIFTED,
        [
            ((letters ^ _letters(name)).bit_count() + abs(length - len(name)), -position, name)
            for position, name in enumerate(folded)
        ],
    )
    names = [name for _, _, name in sifted if len(name) <= _LONGEST]
    return sorted(names, key=lambda name: -_common(wanted, name))[:_COMPARED]


def _one_slip_away(name: str) -> Iterator[str]:
    """All that comes of leaving out, swapping, changing or adding one letter."""
    cuts = [(name[:k], name[k:]) for k in range(len(name) + 1)]
    for start, end in cuts[:-1]:
        yield start + end[1:]
        yield start + end[1:2] + end[:1] + end[2:]
    for start, end in cuts:
        for char in _ALPHABET:
            yield start + char + end
            yield start + char + end[1:]


@lru_cache(maxsize=16_384)
def _letters(name: str) -> int:
    """The set of a name's letters, as bits."""
    bits = 0
    for char in name[:_LONGEST]:
        bits |= 1 << (ord(char) & 63)
    return bits


def _common(one: str, other: str) -> int:
    """How many letters two names share at their beginnings and at their ends."""
    shortest = min(len(one), len(other))
    start = next((k for k in range(shortest) if one[k] != other[k]), shortest)
    end = next((k for k in range(shortest) if one[-1 - k] != other[-1 - k]), shortest)
    return start + end

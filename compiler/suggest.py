"""The hint "did you mean …" for a name that is not there.

Flow: fold the candidates → when there are some, leave the few that share most letters with the name
→ difflib on those. A file may hold thousands of unknown names beside thousands of known ones, where
even a glance at each pair takes seconds: among very many, and after some hundred questions, only a
single slip of the pen is mended, by looking up each name without one of its letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

MAX_LISTED = 8
_FEW = 24  # candidates that are all compared
_MANY = 600  # more than these are not even looked at one by one
_SIFTED = 32  # of many, those that share most letters; of these, the ones to compare:
_COMPARED = 6
_PATIENCE = 300  # questions about one set of names; then only a slip is mended
_LONG = 48  # characters of a name that is mended in a single place only
_LONGEST = 100  # characters of a name that is still compared
_CUTOFF = 0.6


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Returns a hint with the nearest candidate, or with all of them when they are few."""
    known = candidates if isinstance(candidates, tuple) else tuple(candidates)
    names = _names(known)
    close = _nearest(name.casefold(), names)
    if close is not None:
        return f'did you mean "{close}"?'
    if names.folded and len(names.folded) <= MAX_LISTED:
        return "known here: " + ", ".join(dict.fromkeys(known))
    return None


class _Names:
    """Candidates, by how they are compared: `folded` is folded name → candidate, of two that fold
    alike the first."""

    def __init__(self, known: tuple[str, ...]) -> None:
        self.known = known
        self.folded = {candidate.casefold(): candidate for candidate in reversed(known)}
        self.asked = 0
        self._shorter: dict[str, list[str]] | None = None

    def one_slip_away(self, wanted: str) -> str | None:
        """Returns the first candidate that one slip makes of a name: a letter left out, added,
        changed, or two swapped. Both without one letter, they are the same."""
        if self._shorter is None:
            self._shorter = {}
            for name in reversed(self.folded):
                for short in _without_one(name) if len(name) <= _LONGEST else ():
                    self._shorter.setdefault(short, []).append(name)
        for short in (wanted, *_without_one(wanted)):
            if short in self.folded:
                return self.folded[short]
            for name in self._shorter.get(short, ()):
                if _is_one_slip(wanted, name):
                    return self.folded[name]
        return None


_last: list[_Names] = []


def _names(known: tuple[str, ...]) -> _Names:
    """Kept for the names last asked for: there may be thousands, and as many questions."""
    if not _last or _last[0].known != known:
        _last[:] = [_Names(known)]
    elif _last[0].known is not known:
        # The same names, asked for elsewhere: what was found there must not matter here.
        _last[0].known, _last[0].asked = known, 0
    return _last[0]


def _nearest(wanted: str, names: _Names) -> str | None:
    folded = names.folded
    if wanted in folded:
        return folded[wanted]
    if not folded or len(wanted) > _LONGEST:
        return None
    if len(folded) > _MANY or len(wanted) > _LONG:
        return names.one_slip_away(wanted)
    names.asked += 1
    if names.asked > _PATIENCE:
        return names.one_slip_away(wanted)
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


def _without_one(name: str) -> Iterator[str]:
    for k in range(len(name)):
        yield name[:k] + name[k + 1 :]


def _is_one_slip(one: str, other: str) -> bool:
    """Whether one letter is left out, added or changed between two names, or two are swapped."""
    shortest = min(len(one), len(other))
    start = next((k for k in range(shortest) if one[k] != other[k]), shortest)
    rest, left = one[start:], other[start:]
    swapped = rest[1:2] + rest[:1] + rest[2:]
    return left in (swapped, rest[1:]) or rest == left[1:] or rest[1:] == left[1:]


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

"""The hint "did you mean …" for a name that is not there.

Flow: fold the candidates (kept for the list that was asked for last, as faults come in rows) →
leave those of nearly the same length that share enough letters → difflib on the few that are left.
A file with thousands of unknown names gets a hint for the first `MAX_SEARCHES` of them in large
lists: nobody reads further, and a hint must never cost more than the check itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MAX_LISTED = 8
MAX_SEARCHES = 200
_SMALL = 50  # candidates that are always searched
_MOST_COMPARED = 50
_LONGEST = 200  # characters of a name that is still compared
_CUTOFF = 0.6


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Returns a hint with the nearest candidate, or with all of them when they are few."""
    known = tuple(candidates)
    folded = _FOLDED.of(known)
    if len(folded) <= _SMALL or _FOLDED.may_search():
        wanted = name.casefold()
        close = _nearest(wanted, folded)
        if close is not None:
            return f'did you mean "{close}"?'
    if folded and len(folded) <= MAX_LISTED:
        return "known here: " + ", ".join(dict.fromkeys(known))
    return None


class _Folded:
    """The folded candidates asked for last, and how often they were searched."""

    def __init__(self) -> None:
        self._known: tuple[str, ...] = ()
        self._folded: dict[str, str] = {}
        self._searches = 0

    def of(self, known: tuple[str, ...]) -> dict[str, str]:
        """Returns folded name → first candidate written so."""
        if known != self._known:
            # Growing scopes ask with ever longer lists: only an unlike start is another run.
            if known[:1] != self._known[:1]:
                self._searches = 0
            self._folded = {candidate.casefold(): candidate for candidate in reversed(known)}
            self._known = known
        return self._folded

    def may_search(self) -> bool:
        self._searches += 1
        return self._searches <= MAX_SEARCHES


_FOLDED = _Folded()


def _nearest(wanted: str, folded: Mapping[str, str]) -> str | None:
    if wanted in folded:
        return folded[wanted]
    if len(wanted) > _LONGEST:
        return None
    import difflib  # only needed once something is wrong

    compared = _likely(wanted, folded) if len(folded) > _SMALL else folded
    close = difflib.get_close_matches(wanted, compared, n=1, cutoff=_CUTOFF)
    return folded[close[0]] if close else None


def _likely(wanted: str, folded: Mapping[str, str]) -> list[str]:
    """The candidates worth comparing, at most `_MOST_COMPARED`: those that share most letters.

    A ratio of `_CUTOFF` needs lengths within `_CUTOFF / (2 - _CUTOFF)` of each other.
    """
    import heapq

    bound = (2 - _CUTOFF) / _CUTOFF
    least, most = len(wanted) / bound, len(wanted) * bound
    letters = set(wanted)
    fitting = [name for name in folded if least <= len(name) <= most]

    def unlike(name: str) -> tuple[int, bool, int]:
        other = len(letters.symmetric_difference(name))
        return (other + abs(len(name) - len(wanted)), name[:1] != wanted[:1], -_common(name, wanted))

    return heapq.nsmallest(_MOST_COMPARED, fitting, key=unlike)


def _common(one: str, other: str) -> int:
    """How many letters two names share at their beginnings and ends."""
    shortest = min(len(one), len(other))
    start = next((k for k in range(shortest) if one[k] != other[k]), shortest)
    end = next((k for k in range(1, shortest + 1) if one[-k] != other[-k]), shortest + 1) - 1
    return start + end

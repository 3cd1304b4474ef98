"""The hint "did you mean …" for a name that is not there."""

from __future__ import annotations

from collections.abc import Iterable

MAX_LISTED = 8


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Returns a hint with the nearest candidate, or with all of them when they are few."""
    import difflib  # only needed once something is wrong

    known = list(dict.fromkeys(candidates))
    folded = {candidate.casefold(): candidate for candidate in reversed(known)}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    if close:
        return f'did you mean "{folded[close[0]]}"?'
    if known and len(known) <= MAX_LISTED:
        return "known here: " + ", ".join(known)
    return None

"""What the verifier finds: a code, a message, and where in the document it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsl.codes import Code


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is wrong with a spec.

    node: the key of the node it is about, when it is about one.
    place: a JSON pointer to the row, such as `/edges/3`; empty for the whole document.
    """

    code: Code
    message: str
    node: str | None = None
    place: str = ""


Findings = Iterator[Finding]

"""No collecting of garbage while a command builds one large tree."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Looking for circles of garbage among the nodes of a large file takes up to half the time.

    What was built is set aside at the end, or the first object made after it would have all of it
    looked through, and so would the end of the process. The next command looks again at what this
    one has left.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    gc.unfreeze()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()

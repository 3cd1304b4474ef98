"""What one command has built is never looked through again in its process."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from wfsql.cli.garbage import uncollected


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_was_built_is_set_aside() -> None:
    with uncollected():
        assert not gc.isenabled()
        built = [[number] for number in range(1_000)]
    assert gc.isenabled()
    assert not any(other is built for other in gc.get_objects())


def test_the_next_command_looks_at_it_again() -> None:
    with uncollected():
        built = [[0]]
    with uncollected():
        assert any(other is built for other in gc.get_objects())


def test_who_collects_nothing_goes_on_so() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

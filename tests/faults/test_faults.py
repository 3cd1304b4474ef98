"""What is broken under a workload is mended, and the end is as it would have been.

Each fault in a quick form here; with `-m more` longer ones, with a longer lease. What was measured
is printed (`-s`); `python -m tests.faults.report` writes it to docs/reliability.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.breaking import Fault
from tests.faults.report import LONG_FORM, SHORT_FORM, play
from tests.faults.scene import Scene


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    made = Scene(SHORT_FORM[1])
    yield made
    made.close()


@pytest.fixture(scope="module")
def long_scene() -> Iterator[Scene]:
    made = Scene(LONG_FORM[1])
    yield made
    made.close()


def _check(scene: Scene, fault: Fault, count: int) -> None:
    try:
        row = play(scene, fault, count)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{scene.logs()}") from error
    print(row.text())
    assert row.judged.wrong == ()
    assert (row.judged.lost, row.judged.counted_twice) == (0, 0)


@pytest.mark.parametrize("fault", SHORT_FORM[0], ids=lambda fault: fault.name)
def test_every_instance_ends_as_without_the_fault(scene: Scene, fault: Fault) -> None:
    _check(scene, fault, SHORT_FORM[2])


@pytest.mark.more
@pytest.mark.parametrize("fault", LONG_FORM[0], ids=lambda fault: fault.name)
def test_so_it_does_when_the_fault_is_longer_than_the_lease(
    long_scene: Scene, fault: Fault
) -> None:
    _check(long_scene, fault, LONG_FORM[2])

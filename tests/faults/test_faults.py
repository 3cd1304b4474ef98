"""What is broken under a workload is mended, and the end is as it would have been.

Each fault in a quick form here; with `-m more` longer ones, with a longer lease. What was measured
is printed (`-s`); `python -m tests.faults.report` writes it to docs/reliability.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults import breaking, workload
from tests.faults.breaking import Fault
from tests.faults.scene import Scene

QUICK_INSTANCES = 24
LONG_INSTANCES = 60
LONG_LEASE_SECONDS = 6


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


@pytest.fixture(scope="module")
def long_scene() -> Iterator[Scene]:
    made = Scene(LONG_LEASE_SECONDS)
    yield made
    made.close()


def _play(scene: Scene, fault: Fault, count: int) -> None:
    load = workload.start(scene, count)
    load.wait_until_under_way()
    seen = fault.make(scene, load, fault.seconds)
    try:
        judged = load.finish()
    except AssertionError as error:
        raise AssertionError(f"{error}\n{scene.logs()}") from error
    print(f"{fault.title}: {seen}; recovered after {judged.recovered_seconds:.1f} s")
    assert judged.wrong == ()
    assert (judged.lost, judged.counted_twice) == (0, 0)


@pytest.mark.parametrize("fault", breaking.SHORT, ids=lambda fault: fault.name)
def test_every_instance_ends_as_without_the_fault(scene: Scene, fault: Fault) -> None:
    _play(scene, fault, QUICK_INSTANCES)


@pytest.mark.more
@pytest.mark.parametrize("fault", breaking.LONG, ids=lambda fault: fault.name)
def test_and_after_longer_than_the_lease(long_scene: Scene, fault: Fault) -> None:
    _play(long_scene, fault, LONG_INSTANCES)

"""What the judge of the faults finds wrong when it is wrong."""

from __future__ import annotations

import socket

import pytest

from tests.faults.effects import Effect
from tests.faults.wires import Wire
from tests.faults.workload import Lease, bad_effects

PLACE = (1, "fan/ship")


def lease(ended_at: float, *, until: float = 13.0, is_accepted: bool = False) -> Lease:
    return Lease(PLACE, 10.0, until, ended_at, is_accepted)


def effect(at: float) -> Effect:
    return Effect("a1", *PLACE, at)


ACCEPTED = lease(14.5, until=17.0, is_accepted=True)


def test_a_second_effect_may_come_when_the_lease_of_the_first_has_ended() -> None:
    assert bad_effects({PLACE: [effect(10.1), effect(14)]}, {5: [lease(13.5), ACCEPTED]}) == []


def test_a_second_effect_under_a_lease_that_goes_on_is_found() -> None:
    found = bad_effects({PLACE: [effect(10.1), effect(13.2)]}, {5: [lease(13.5), ACCEPTED]})
    assert found == [f"{PLACE}: an effect before the lease of the last had ended"]


def test_an_effect_beside_a_lease_that_was_given_back_is_found() -> None:
    found = bad_effects({PLACE: [effect(10.1), effect(14)]}, {5: [lease(11), ACCEPTED]})
    assert found == [f"{PLACE}: an effect before the lease of the last had ended"]


def test_a_result_without_an_effect_is_found() -> None:
    assert bad_effects({}, {5: [ACCEPTED]}) == [f"{PLACE}: a result without an effect"]


def test_an_effect_whose_result_was_lost_is_found() -> None:
    assert bad_effects({PLACE: [effect(10.1)]}, {}) == [f"{PLACE}: an effect without a result"]


@pytest.mark.parametrize("taken", [[lease(13.5)], [ACCEPTED, ACCEPTED]], ids=["none", "two"])
def test_another_number_of_results_than_one_is_found(taken: list[Lease]) -> None:
    assert len(bad_effects({PLACE: [effect(10.1)]}, {5: taken})) == 1


def test_bytes_of_a_stalled_wire_come_late() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        wire = Wire(int(server.getsockname()[1]))
        try:
            with socket.create_connection(("127.0.0.1", wire.port)) as near:
                far, _address = server.accept()
                wire.stall()
                near.sendall(b"late")
                far.settimeout(0.05)
                with pytest.raises(TimeoutError):
                    far.recv(10)
                wire.mend()
                far.settimeout(10)
                assert far.recv(10) == b"late"
                wire.cut()
                assert far.recv(10) == b""
                far.close()
        finally:
            wire.close()

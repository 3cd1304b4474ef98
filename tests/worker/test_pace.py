"""How many tasks a worker asks for, and how long it pauses."""

from __future__ import annotations

from threading import Event

import pytest

from tests.worker.fakes import AWAY
from wfsql.worker.pace import Pace
from wfsql.worker.patience import Backoff, repeat
from wfsql.worker.source import Trouble


def pace(mean_seconds: float, concurrency: int = 1) -> Pace:
    made = Pace(concurrency)
    made.took(mean_seconds)
    made.claimed(1, 1)
    return made


def test_at_first_it_asks_for_as_many_as_threads_are_free() -> None:
    made = Pace(4)
    assert [made.room(in_hand) for in_hand in (0, 1, 4)] == [4, 3, 0]


@pytest.mark.parametrize(
    ("mean_seconds", "room"), [(0.00001, 100), (0.001, 21), (0.005, 5), (0.019, 2), (0.021, 1)]
)
def test_ahead_is_what_is_done_in_20_ms(mean_seconds: float, room: int) -> None:
    assert pace(mean_seconds).room(0) == room


def test_nothing_is_claimed_ahead_when_the_last_claim_brought_less_than_asked() -> None:
    made = pace(0.001)
    made.claimed(3, 21)
    assert made.room(0) == 1


def test_the_next_claim_waits_until_half_of_what_is_ahead_is_done() -> None:
    made = pace(0.001)
    assert [made.room(in_hand) for in_hand in (21, 12, 11, 1)] == [0, 0, 10, 20]


def test_a_long_wait_ends_the_claiming_ahead() -> None:
    made = pace(0.001)
    made.was_wrong(0.5)
    made.claimed(1, 1)
    assert made.room(0) == 1


def test_pauses_double_up_to_the_last() -> None:
    backoff = Backoff(0.02, 0.1, draw=lambda: 1.0)
    assert [backoff.next() for _ in range(5)] == pytest.approx([0.02, 0.04, 0.08, 0.1, 0.1])


def test_a_pause_lies_between_half_of_the_step_and_all_of_it() -> None:
    draws = iter([0.0, 1.0])
    backoff = Backoff(1.0, 1.0, draw=lambda: next(draws))
    assert [backoff.next(), backoff.next()] == [0.5, 1.0]


def test_a_pause_is_as_long_as_it_was_asked_for() -> None:
    assert Backoff(0.02).next(at_least=7.0) == 7.0


def test_what_does_not_pass_is_not_repeated() -> None:
    calls: list[int] = []

    def call() -> Trouble:
        calls.append(1)
        return Trouble("no", code=20004)

    assert repeat(call, Event(), print) == Trouble("no", code=20004)
    assert calls == [1]


def test_patience_ends() -> None:
    answer = repeat(lambda: AWAY, Event(), print, patience_seconds=0.05)
    assert answer is AWAY


def test_a_stop_ends_the_repeating() -> None:
    stop = Event()
    stop.set()
    assert repeat(lambda: AWAY, stop, print) is AWAY

"""Handing in: what becomes a batch, what is tried again, what is given up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Any

from runtime_sql.connection import Submitted
from tests.worker.fakes import AWAY, OK, FakeSource, ListLog, finished
from wfsql.worker.source import Trouble
from wfsql.worker.spool import Spool
from wfsql.worker.submitter import Submitter

STALE = Submitted(False, "RUNNING", 0, "STALE")
TOO_LARGE = Trouble("too large", code=20005)


def make(source: FakeSource, spool: Spool | None = None) -> tuple[Submitter, list[int], list[Any]]:
    answered: list[int] = []
    given_up: list[Any] = []
    submitter = Submitter(source, spool, ListLog(), answered.extend, given_up.append)
    return submitter, answered, given_up


def hand_in(source: FakeSource, *numbers: int, output: str = "{}") -> tuple[list[int], list[Any]]:
    """Hands in results that are all there when the first call is made."""
    submitter, answered, given_up = make(source)
    for number in numbers:
        submitter.put(finished(number, output))
    submitter.start()
    submitter.end(10)
    return answered, given_up


def sizes(source: FakeSource) -> list[int]:
    return [len(batch) for batch in source.batches]


def test_what_piles_up_during_a_call_goes_with_the_next() -> None:
    source = FakeSource()
    submitter, answered, _given_up = make(source)
    under_way, go_on = Event(), Event()

    def hold_the_first(_results: Sequence[Any]) -> None:
        if not source.batches:
            under_way.set()
            assert go_on.wait(10)

    source.before_submit = hold_the_first
    submitter.start()
    submitter.put(finished(1))
    assert under_way.wait(10)
    for number in (2, 3, 4):
        submitter.put(finished(number))
    go_on.set()
    submitter.end(10)
    assert sizes(source) == [1, 3]
    assert answered == [1, 2, 3, 4]


def test_a_batch_has_at_most_a_hundred_results() -> None:
    source = FakeSource()
    hand_in(source, *range(1, 251))
    assert sizes(source) == [100, 100, 50]


def test_large_outputs_go_one_by_one() -> None:
    source = FakeSource()
    hand_in(source, 1, 2, output=f'"{"x" * 3_000_000}"')
    assert sizes(source) == [1, 1]


def test_one_that_is_refused_does_not_take_the_others_along() -> None:
    source = FakeSource(submit_answers=deque([TOO_LARGE, None, TOO_LARGE, None]))
    answered, given_up = hand_in(source, 1, 2, 3)
    assert [done.task_id for batch in source.batches for done in batch] == [1, 3]
    assert source.failed == [(2, "too large")]
    assert sorted(answered) == [1, 2, 3]
    assert given_up == []


def test_a_problem_of_one_item_is_about_that_item() -> None:
    source = FakeSource(submit_answers=deque([[OK, TOO_LARGE, STALE]]))
    answered, _given_up = hand_in(source, 1, 2, 3)
    assert source.failed == [(2, "too large")]
    assert sorted(answered) == [1, 2, 3]


def test_a_passing_problem_of_one_item_is_tried_again() -> None:
    source = FakeSource(submit_answers=deque([[OK, AWAY]]))
    answered, _given_up = hand_in(source, 1, 2)
    assert sizes(source) == [2, 1]
    assert sorted(answered) == [1, 2]


def test_a_refused_token_gives_up_and_keeps_the_results() -> None:
    refused = Trouble("not authenticated", code=20001)
    submitter, answered, given_up = make(FakeSource(submit_answers=deque([refused])))
    submitter.put(finished(1))
    submitter.start()
    left = submitter.end(10)
    assert given_up == [refused]
    assert [done.task_id for done in left] == [1]
    assert answered == []


def test_results_are_made_to_last_when_the_other_end_is_away(tmp_path: Path) -> None:
    source = FakeSource(submit_answers=deque([AWAY, AWAY, AWAY]))
    secured: list[int] = []
    spool = Spool(tmp_path, "w at g", print)
    really: Callable[..., None] = spool.secure

    def note(results: Sequence[Any]) -> None:
        secured.extend(done.task_id for done in results)
        really(results)

    spool.secure = note  # type: ignore[method-assign,assignment]
    submitter, answered, _given_up = make(source, spool)
    submitter.put(finished(1))
    submitter.start()
    submitter.end(10)
    assert secured == [1]
    assert answered == [1]
    assert spool.load() == []


def test_results_enough_that_nobody_takes_stop_the_claiming() -> None:
    submitter, _answered, _given_up = make(FakeSource())
    for number in range(200):
        assert not submitter.is_behind
        submitter.put(finished(number))
    assert submitter.is_behind

"""The chart of who was busy when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from wfsql.timeline import Stretch, draw

START = datetime(2026, 1, 1, tzinfo=UTC)


def stretch(worker: str, begin: float, end: float) -> Stretch:
    at = [START + timedelta(seconds=s) for s in (begin, end)]
    return Stretch(worker, "path", at[0], at[1])


def test_nothing_done_draws_nothing() -> None:
    assert draw([]) == []


def test_marks_stand_where_a_worker_was_busy() -> None:
    lines = draw([stretch("a", 0, 5), stretch("b", 5, 10)], width=4)
    assert lines == [
        "a |██  |    1 task, 5.00 s busy",
        "b |  ██|    1 task, 5.00 s busy",
        "   0   10.00 s",
    ]


def test_a_task_too_short_to_see_has_a_mark() -> None:
    [first, _scale] = draw([stretch("a", 0, 0.001), stretch("a", 9.9, 10)], width=4)
    assert first.startswith("a |▁  ▁|")

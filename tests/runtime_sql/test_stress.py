"""Everything at once (`stress.py`), and then what must hold (`invariants.py`).

The short runs are part of the suite; `-m more` has the long ones. The report is printed, which `-s`
shows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime_sql import drive, stress
from tests.runtime_sql.invariants import broken


def check(url: str, folder: Path, seconds: float, isolation: str, *, kill: bool) -> None:
    report = stress.run(url, folder, seconds, isolation, kill=kill)
    with drive.connect(url) as connection:
        row = connection.execute(
            "select deadlocks from pg_stat_database where datname = current_database()"
        ).fetchone()
        assert row is not None
        print(f"\n{seconds} s, {isolation}", *report.lines(), f"deadlocks {row[0]}", sep="\n  ")
        assert report.errors == []
        assert [key for key, count in report.completed.items() if count > 1] == []
        assert broken(connection) == {}
        assert stress.drain(connection) == []
        assert broken(connection) == {}


def test_everything_at_once_leaves_nothing_wrong(pg_url: str, tmp_path: Path) -> None:
    check(pg_url, tmp_path, 5, "read committed", kill=True)


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_everything_at_once_under_a_stricter_isolation(
    pg_url: str, tmp_path: Path, isolation: str
) -> None:
    check(pg_url, tmp_path, 3, isolation, kill=False)


@pytest.mark.more
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_everything_at_once_for_a_minute(pg_url: str, tmp_path: Path, isolation: str) -> None:
    check(pg_url, tmp_path, 60, isolation, kill=True)

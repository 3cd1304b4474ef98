"""Tables on terminals of any width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from wfsql.cli import output
from wfsql.cli.output import Crop, counted, cropped, did_you_mean, fit

TABLE = [["PATH", "STATUS", "OUTPUT"], ["order/foreach_1[2]/pack", "SUCCEEDED", "x" * 40]]


def line_width(table: list[list[str]]) -> int:
    return sum(max(map(len, column)) for column in zip(*table, strict=True)) + 2 * 2


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks")], ids=str
)
def test_counts_are_in_the_plural_but_for_one(count: int, text: str) -> None:
    assert counted(count, "task") == text


def test_a_near_name_is_suggested() -> None:
    assert did_you_mean("nmae", ["name", "size"]) == 'did you mean "name"?'


def test_a_far_name_is_not_suggested() -> None:
    assert did_you_mean("nmae", ["size"]) is None


def test_a_table_that_fits_is_left_alone() -> None:
    assert fit(TABLE, {"OUTPUT": Crop(5)}, 200) == TABLE


def test_the_first_crop_gives_way_first() -> None:
    fitted = fit(TABLE, {"OUTPUT": Crop(5), "PATH": Crop(5)}, 60)
    assert fitted[1][0] == "order/foreach_1[2]/pack"
    assert line_width(fitted) == 60


def test_the_next_crop_takes_what_is_still_too_much() -> None:
    fitted = fit(TABLE, {"OUTPUT": Crop(10), "PATH": Crop(5, keep="end")}, 40)
    assert fitted[1][2] == "x" * 9 + "…"
    assert fitted[1][0].startswith("…")
    assert fitted[1][0].endswith("/pack")
    assert line_width(fitted) == 40


def test_a_name_is_never_cropped() -> None:
    assert fit(TABLE, {"OUTPUT": Crop(1)}, 10)[0] == TABLE[0]


def test_a_long_name_is_cut_in_the_middle() -> None:
    assert cropped("crane-2.example.com", 9, "ends") == "cran….com"


def test_a_wide_name_cut_in_the_middle_is_no_wider_than_its_room() -> None:
    assert cropped("東京都港区芝公園", 8, "ends") == "東京…園"


def test_a_column_that_may_be_cropped_may_be_dropped_too() -> None:
    fitted = fit(TABLE, {"OUTPUT": Crop(10), "PATH": Crop(20)}, 30, drops=("OUTPUT",))
    assert fitted[0] == ["PATH", "STATUS"]


def test_a_column_is_dropped_when_cropping_is_not_enough() -> None:
    fitted = fit(TABLE, {"OUTPUT": Crop(10)}, 36, drops=("STATUS",))
    assert fitted[0] == ["PATH", "OUTPUT"]


def test_no_column_is_dropped_when_cropping_is_enough() -> None:
    assert fit(TABLE, {"OUTPUT": Crop(10)}, 60, drops=("STATUS",))[0] == TABLE[0]


def test_wide_characters_count_double() -> None:
    assert cropped("日本語", 5) == "日本…"


class Terminal:
    """Collects what is written, and says that it is a terminal."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Terminal]:
    """Returns a function that makes stdout a terminal of some width."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")

    def become(width: int) -> Terminal:
        stream: Any = Terminal()
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr("sys.stdout", stream)
        return stream  # type: ignore[no-any-return]

    return become


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_of_a_table_is_wider_than_the_terminal(
    terminal: Callable[[int], Terminal], width: int
) -> None:
    stream = terminal(width)
    output.write_table(TABLE[0], TABLE[1:], {"OUTPUT": Crop(5), "PATH": Crop(10, keep="end")})
    lines = stream.text.splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= width
    assert set(lines[1]) == {"─"}

"""The picture of a run."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from local_runner.events import TimelineEntry
from local_runner.timeline_svg import timeline_svg

SVG = "{http://www.w3.org/2000/svg}"


def bars(text: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(text)
    return [rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]


def test_each_call_is_a_bar_in_its_workers_lane() -> None:
    entries = [
        TimelineEntry("w/a", "x", 0, 10.0, 11.0),
        TimelineEntry("w/b", "y", 1, 10.5, 12.0),
        TimelineEntry("w/c", "x", 0, 11.0, 12.0),
    ]
    first, second, third = bars(timeline_svg(entries))
    assert first.get("y") == third.get("y") != second.get("y")
    assert first.get("fill") == third.get("fill") != second.get("fill")
    assert float(first.get("width", "")) * 1.5 - float(second.get("width", "")) < 0.1
    assert first[0].text == "w/a  x  1000.0 ms"


def test_a_call_too_short_to_see_has_a_bar() -> None:
    entries = [TimelineEntry("w/a", "x", 0, 0.0, 0.0), TimelineEntry("w/b", "x", 0, 5.0, 9.0)]
    assert bars(timeline_svg(entries))[0].get("width") == "1.00"


def test_nothing_done_is_a_picture_that_says_so() -> None:
    text = timeline_svg([])
    assert bars(text) == []
    assert "no action was run" in text


def test_names_are_escaped() -> None:
    path = 'w/f[0]/<script>&"\x00\x1b\ud800'
    text = timeline_svg([TimelineEntry(path, "a<b", 0, 0.0, 1.0)])
    assert "<script>" not in text
    assert bars(text)[0][0].text == 'w/f[0]/<script>&"\ufffd\ufffd\ufffd  a<b  1000.0 ms'
    text.encode()

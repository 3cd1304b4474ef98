"""The handlers of sample_preparation, called directly."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def lab(load_handlers: Callable[[str], ModuleType]) -> ModuleType:
    return load_handlers("sample_preparation")


def sample(wear: int = 2, adapter: bool = False, seed: int = 1) -> dict[str, Any]:
    return {"id": "s", "seed": seed, "wear": wear, "adapter": adapter}


def drawn(lab: ModuleType, **kinds: Any) -> str:
    file: str = lab.draw_reads(sample(**kinds), "chr1", "w")["file"]
    return file


def test_the_same_sample_gives_the_same_file(lab: ModuleType) -> None:
    assert drawn(lab) == drawn(lab)


def test_another_seed_gives_another_file(lab: ModuleType) -> None:
    assert drawn(lab, seed=1) != drawn(lab, seed=2)


def test_a_file_has_four_lines_for_each_read(lab: ModuleType, work: Path) -> None:
    lines = (work / "w" / drawn(lab)).read_text(encoding="ascii").splitlines()
    assert (len(lines), lines[0], len(lines[1]), lines[2], len(lines[3])) == (
        4 * 24,
        "@s.chr1.0",
        60,
        "+",
        60,
    )


def test_a_fresh_sample_is_good(lab: ModuleType) -> None:
    assert lab.measure(drawn(lab), 24, "w").code == lab.GOOD


def test_an_adapter_is_found_before_wear(lab: ModuleType) -> None:
    result = lab.measure(drawn(lab, wear=30, adapter=True), 24, "w")
    assert (result.code, result.output["adapters"]) == (lab.HAS_ADAPTER, 8)


def test_a_worn_sample_is_below_the_quality(lab: ModuleType) -> None:
    assert lab.measure(drawn(lab, wear=14), 24, "w").code == lab.WORN


def test_clipping_leaves_no_adapter(lab: ModuleType) -> None:
    clipped = lab.clip_adapter(drawn(lab, adapter=True), "w")["file"]
    assert lab.measure(clipped, 24, "w").output["adapters"] == 0


def test_trimming_raises_the_mean_quality(lab: ModuleType) -> None:
    file = drawn(lab, wear=14)
    before = lab.measure(file, 24, "w").output["mean_quality"]
    trimmed = lab.trim_tail(file, 12, "w")["file"]
    assert lab.measure(trimmed, 24, "w").output["mean_quality"] > before


def test_trimming_drops_reads_that_become_too_short(lab: ModuleType) -> None:
    trimmed = lab.trim_tail(drawn(lab), 37, "w")["file"]
    assert lab.measure(trimmed, 24, "w").output["reads"] == 0


def test_a_library_without_reads_is_spent(lab: ModuleType) -> None:
    trimmed = lab.trim_tail(drawn(lab), 60, "w")["file"]
    assert lab.measure(trimmed, 24, "w").code == lab.SPENT


def test_pool_takes_only_what_passed(lab: ModuleType) -> None:
    libraries = [
        {"file": drawn(lab, seed=1), "passed": True},
        {"file": drawn(lab, seed=2), "passed": False},
    ]
    result = lab.pool("s", libraries, "w")
    assert lab.count(result.output["file"], "w") == {"reads": 24, "bases": 24 * 60}


def test_pool_of_nothing_is_empty(lab: ModuleType) -> None:
    result = lab.pool("s", [{"file": drawn(lab), "passed": False}], "w")
    assert (result.code, result.output) == (lab.EMPTY, {"libraries": 0})


def test_amplify_doubles_in_the_first_cycle(lab: ModuleType) -> None:
    assert lab.amplify(100, 0) == {"copies": 200}


def test_amplify_yields_less_in_a_later_cycle(lab: ModuleType) -> None:
    assert lab.amplify(200, 2) == {"copies": 200 + 200 * 86 // 100}


def test_digest_is_that_of_the_file(lab: ModuleType, work: Path) -> None:
    file = drawn(lab)
    content = (work / "w" / file).read_bytes()
    assert lab.digest(file, "w")["sha256"] == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("states", "code"),
    [
        (["prepared", "prepared"], 0),
        (["prepared", "rejected"], 1),
        (["rejected", "rejected"], 2),
        ([], 0),
    ],
)
def test_report_says_how_many_samples_are_ready(
    lab: ModuleType, states: list[str], code: int
) -> None:
    prepared = [
        {"sample": "s", "state": state, "reads": 1, "bases": 2, "copies": 3} for state in states
    ]
    assert lab.report("study", prepared, "w").code == code


def test_report_sums_reads_and_bases(lab: ModuleType) -> None:
    line = {"sample": "s", "state": "prepared", "reads": 3, "bases": 7, "copies": 1}
    output = lab.report("study", [line, line], "w").output
    assert (output["reads"], output["bases"]) == (6, 14)

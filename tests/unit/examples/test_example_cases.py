"""The test files beside the examples pass on both engines, and take every edge together."""

from __future__ import annotations

from pathlib import Path

import pytest

from wfsql.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = sorted(folder.name for folder in EXAMPLES.iterdir() if (folder / "handlers.py").is_file())


@pytest.mark.parametrize("example", NAMES)
def test_an_example_has_cases(example: str) -> None:
    assert (EXAMPLES / example / f"{example}.wftest.yaml").is_file()


def test_the_cases_of_the_examples_pass_in_this_process(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (main(["test", str(EXAMPLES), "--strict"]), capsys.readouterr().err) == (0, "")


def test_the_cases_of_the_examples_take_every_edge_in_a_database(
    empty_pg_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["test", str(EXAMPLES), "--engine", "pg", "--url", empty_pg_url, "--coverage"]
    code = main([*words, "--strict"])
    shown = capsys.readouterr()
    assert code == 0, shown.out + shown.err
    assert [line for line in shown.out.splitlines() if "never taken" in line] == []

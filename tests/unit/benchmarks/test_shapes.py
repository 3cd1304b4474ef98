"""The files of the compiler's benchmark are what its table says they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.compiler import shapes
from benchmarks.measure import BenchmarkError, Command, run_once
from compiler.pipeline import check_file
from dsl.printer import format_text


def test_ours_is_valid_and_has_the_nodes_that_were_asked_for(tmp_path: Path) -> None:
    (tmp_path / "w.wf").write_text(shapes.wf_text(50))
    (tmp_path / "w.actions.yaml").write_text(shapes.CATALOG)
    checked = check_file(tmp_path / "w.wf")
    assert checked.diagnostics == ()
    nodes = [n for n in checked.models[0].nodes if n.type in ("ACTION", "IF")]
    assert len(nodes) == 50


def test_ours_is_canonical() -> None:
    text = shapes.wf_text(20)
    assert format_text(text, "w.wf").text == text


@pytest.mark.parametrize("size", [10, 50])
def test_all_three_have_the_same_nodes(size: int) -> None:
    states = json.loads(shapes.asl_text(size))["States"]
    kinds = [state["Type"] for state in states.values()]
    ours, theirs = shapes.wf_text(size), shapes.wdl_text(size)
    assert len(re.findall(r"^ +action ", ours, re.M)) == size * 9 // 10
    assert len(re.findall(r"^ +call ", theirs, re.M)) == size * 9 // 10
    assert kinds.count("Task") == size * 9 // 10
    assert len(re.findall(r"^ +if ", ours, re.M)) == size // 10
    assert len(re.findall(r"^ +if ", theirs, re.M)) == size // 10
    assert kinds.count("Choice") == size // 10


def test_every_state_leads_to_one_that_is_there() -> None:
    states = json.loads(shapes.asl_text(30))["States"]
    choices = [c for s in states.values() for c in s.get("Choices", ())]
    after = [s.get("Next") or s.get("Default") for s in (*states.values(), *choices)]
    assert {name for name in after if name} == states.keys() - {"a0"}


def test_a_command_that_fails_is_no_measurement() -> None:
    with pytest.raises(BenchmarkError, match="nothing ended with 3"):
        run_once(Command("nothing", ("/bin/sh", "-c", "exit 3")), 60)


def test_a_command_that_takes_too_long_is_ended() -> None:
    sample = run_once(Command("slow", ("/bin/sh", "-c", "exec sleep 60")), 0.05)
    assert (sample.timed_out, sample.exit_code) == (True, -9)

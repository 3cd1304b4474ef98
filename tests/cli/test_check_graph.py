"""`wf check` reads graphs as well as workflow files."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Wf

CASES = Path(__file__).parents[1] / "corpus" / "err"


def test_a_graph_that_was_compiled_is_sound(wf: Wf, greeting: Path) -> None:
    assert wf("compile", "greeting.wf", "--dialect", "spec", "-o", "g.spec.json").code == 0
    done = wf("check", "g.spec.json")
    assert (done.code, done.err) == (0, "1 file: no findings\n")


def test_a_finding_has_code_line_and_column(wf: Wf) -> None:
    path = CASES / "WF612" / "jump.spec.json"
    done = wf("check", str(path))
    assert done.code == 1
    assert f"{path}:8:5: error[WF612]: program of variable v: instruction 1 jumps" in done.err


def test_graphs_and_workflows_are_checked_together(wf: Wf, greeting: Path) -> None:
    done = wf("check", "greeting.wf", str(CASES / "WF609" / "empty_parallel.spec.json"))
    assert done.code == 1
    assert "2 files: 1 error" in done.err


def test_a_graph_that_is_not_there(wf: Wf) -> None:
    done = wf("check", "none.spec.json")
    assert done.code == 1
    assert "error: none.spec.json: no such file or directory" in done.err

"""`wf run` with `foreach … reuse`, as an author meets it: two runs, a forced one, a full disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Wf = Callable[..., Any]

WORKFLOW = """\
workflow thumbs {
  input { names : list<string> }
  output { sizes = var.sizes }
  foreach name in var.names reuse {
    action scale = image.scale(name: var.name)
    collect sizes = ctx.task.scale.output.size
  }
}
"""
CATALOG = """\
actions:
  - name: image.scale
    input: "{ name: string }"
    output: "{ size: int }"
"""
HANDLERS = """\
from pathlib import Path

from wfsql import action


@action("image.scale")
def scale(name):
    with Path("ran.txt").open("a") as file:
        file.write(name + "\\n")
    return {"size": len(name)}
"""
NAMES = '{"names": ["a", "bb"]}'
RUN = ("run", "flows/thumbs.wf", "--handlers", "flows/thumbs.py", "-q", "--context")


@pytest.fixture
def thumbs(wf: Wf, tmp_path: Path) -> Path:
    """A project with a workflow in a folder of it."""
    (tmp_path / "pyproject.toml").touch()
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "thumbs.wf").write_text(WORKFLOW)
    (flows / "thumbs.actions.yaml").write_text(CATALOG)
    (flows / "thumbs.py").write_text(HANDLERS)
    return tmp_path


def ran(folder: Path) -> list[str]:
    file = folder / "ran.txt"
    return file.read_text().split() if file.exists() else []


def test_a_second_run_does_only_what_is_new(wf: Wf, thumbs: Path) -> None:
    assert wf(*RUN, NAMES).code == 0
    done = wf(*RUN, '{"names": ["bb", "ccc"]}', "--trace", "trace.json")
    assert json.loads(done.out) == {"sizes": [2, 3]}
    assert ran(thumbs) == ["a", "bb", "ccc"]
    nodes = json.loads((thumbs / "trace.json").read_text())["nodes"]
    skipped = [node["path"] for node in nodes if node["status"] == "SKIPPED"]
    assert skipped == ["thumbs/foreach_1[0]"]
    assert len(list((thumbs / ".caas" / "foreach_bundle").iterdir())) == 3


def test_force_rerun_does_all_again(wf: Wf, thumbs: Path) -> None:
    wf(*RUN, NAMES)
    assert wf(*RUN, NAMES, "--force-rerun").code == 0
    assert ran(thumbs) == ["a", "bb", "a", "bb"]


def test_another_project_root_knows_nothing(wf: Wf, thumbs: Path) -> None:
    (thumbs / "other").mkdir()
    wf(*RUN, NAMES)
    wf(*RUN, NAMES, "--project-root", "other")
    assert ran(thumbs) == ["a", "bb", "a", "bb"]
    assert (thumbs / "other" / ".caas").is_dir()


def test_a_changed_body_does_all_again(wf: Wf, thumbs: Path) -> None:
    wf(*RUN, NAMES)
    changed = WORKFLOW.replace("name: var.name", 'name: "${var.name}!"')
    (thumbs / "flows" / "thumbs.wf").write_text(changed)
    wf(*RUN, NAMES)
    assert ran(thumbs) == ["a", "bb", "a!", "bb!"]


def test_a_store_that_cannot_be_written_is_told_and_the_run_succeeds(wf: Wf, thumbs: Path) -> None:
    (thumbs / ".caas").write_text("no folder")
    done = wf(*RUN, NAMES)
    assert (done.code, json.loads(done.out)) == (0, {"sizes": [1, 2]})
    (warning, status) = done.err.splitlines()[-2:]
    assert warning.startswith(
        "warning: thumbs/foreach_1[0]: what it exported cannot be stored for reuse: "
    )
    assert status == "thumbs: SUCCEEDED"


def test_a_damaged_entry_is_told_and_done_again(wf: Wf, thumbs: Path) -> None:
    wf(*RUN, NAMES)
    for entry in (thumbs / ".caas" / "foreach_bundle").iterdir():
        (entry / "entry.json").write_text("{")
    done = wf(*RUN, NAMES)
    assert done.code == 0
    assert done.err.count("the entry is damaged; the iteration runs again") == 2
    assert ran(thumbs) == ["a", "bb", "a", "bb"]
    assert wf("cache", "verify").code == 0


def test_a_dry_run_neither_reads_nor_writes_entries(wf: Wf, thumbs: Path) -> None:
    done = wf("run", "flows/thumbs.wf", "--dry-run", "--context", NAMES)
    assert done.code == 0
    assert not (thumbs / ".caas").exists()


def test_an_ordinary_run_makes_no_folder(wf: Wf, greeting: Path) -> None:
    wf("run", "greeting.wf", "--handlers", "greeting_handlers.py", "--context", '{"name": "A"}')
    assert not (greeting / ".caas").exists()

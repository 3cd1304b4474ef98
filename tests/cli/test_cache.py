"""`wf cache`: the reuse cache of a project, listed, proved, removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_runner.bundles import FileBundles

Wf = Callable[..., Any]

ONE, TWO = "1" * 64, "2" * 64


@pytest.fixture
def bundles(wf: Wf, tmp_path: Path) -> FileBundles:
    """Two entries of two workflows, in a project whose subfolder is the current one."""
    (tmp_path / "wf.toml").touch()
    found = FileBundles(tmp_path)
    for key, workflow in ((ONE, "photos"), (TWO, "bills")):
        path = f"{workflow}/each[0]"
        found.store(key, {"got": 1}, workflow=workflow, path=path, replaces=False)
    return found


@pytest.fixture
def _below(bundles: FileBundles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "flows").mkdir()
    monkeypatch.chdir(tmp_path / "flows")


def spoil(bundles: FileBundles, key: str) -> None:
    (bundles.folder / key / "entry.json").write_text("{")


@pytest.mark.usefixtures("_below")
def test_ls_lists_the_entries_of_the_project_around(wf: Wf) -> None:
    done = wf("cache", "ls")
    lines = done.out.splitlines()
    assert lines[0].split() == ["CONTENT", "KEY", "WORKFLOW", "STORED", "BY", "CREATED", "BYTES"]
    assert [line.split()[:3] for line in lines[1:]] == [
        [ONE, "photos", "photos/each[0]"],
        [TWO, "bills", "bills/each[0]"],
    ]
    assert (done.code, done.err) == (0, "")


def test_ls_of_one_workflow_as_json(wf: Wf, bundles: FileBundles) -> None:
    (row,) = json.loads(wf("cache", "ls", "--workflow", "bills", "--json").out)
    assert sorted(row) == ["bytes", "content_key", "created_at", "path", "workflow"]
    assert (row["content_key"], row["created_at"][-1]) == (TWO, "Z")


def test_ls_without_entries_says_so(wf: Wf, tmp_path: Path) -> None:
    done = wf("cache", "ls", "--project-root", str(tmp_path))
    assert (done.code, done.out) == (0, "")
    assert done.err == f"no entries in {tmp_path}/.caas/foreach_bundle\n"


def test_verify_proves_whole_entries(wf: Wf, bundles: FileBundles) -> None:
    done = wf("cache", "verify")
    assert (done.code, done.out, done.err) == (0, "", "2 entries whole, 0 damaged\n")


def test_verify_names_a_damaged_entry_and_exits_1(wf: Wf, bundles: FileBundles) -> None:
    spoil(bundles, TWO)
    done = wf("cache", "verify")
    assert (done.code, done.out) == (1, f"{TWO}: the entry is damaged\n")
    assert done.err == ("1 entry whole, 1 damaged\nhint: wf cache rm --damaged takes them away\n")
    assert json.loads(wf("cache", "verify", "--json").out) == {
        "whole": 1,
        "damaged": [{"content_key": TWO, "reason": "the entry is damaged"}],
    }


def test_rm_damaged_leaves_whole_entries(wf: Wf, bundles: FileBundles) -> None:
    spoil(bundles, TWO)
    assert wf("cache", "rm", "--damaged").err == "1 entry removed\n"
    assert list(bundles.content_keys()) == [ONE]


@pytest.mark.parametrize(
    ("arguments", "left"),
    [(("111",), [TWO]), ((TWO, ONE), []), (("--workflow", "photos"), [TWO]), (("--all",), [])],
)
def test_rm_removes_what_is_named(
    arguments: tuple[str, ...], left: list[str], wf: Wf, bundles: FileBundles
) -> None:
    assert wf("cache", "rm", *arguments).code == 0
    assert list(bundles.content_keys()) == left


@pytest.mark.parametrize(
    ("key", "problem"), [("9", "no entry with that key"), ("", "2 entries with that key")]
)
def test_rm_of_no_single_entry_removes_nothing(
    key: str, problem: str, wf: Wf, bundles: FileBundles
) -> None:
    done = wf("cache", "rm", ONE, key)
    assert (done.code, problem in done.err) == (1, True)
    assert len(list(bundles.content_keys())) == 2


@pytest.mark.parametrize("arguments", [(), ("--all", "--damaged"), (ONE, "--all")])
def test_rm_takes_one_way_of_naming(
    arguments: tuple[str, ...], wf: Wf, bundles: FileBundles
) -> None:
    assert wf("cache", "rm", *arguments).code == 2
    assert len(list(bundles.content_keys())) == 2


def test_a_project_root_that_is_not_there_is_wrong_use(wf: Wf) -> None:
    done = wf("cache", "ls", "--project-root", "nowhere")
    assert (done.code, done.err.splitlines()[0]) == (2, "error: nowhere: there is no such folder")

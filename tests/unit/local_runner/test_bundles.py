"""The project's folder of bundles: two writers, kills, damage, a full disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from local_runner.bundles import Damage, Entry, FileBundles
from local_runner.engine import LocalWorkflowEngine, RunResult
from tests.unit.local_runner.graphs import workflow
from tests.unit.local_runner.test_journal import Killed
from tests.unit.local_runner.test_reuse import SPEC, VARIABLES, reusing

KEY = "ab" * 32


def store(bundles: FileBundles, exported: dict[str, Any], *, replaces: bool = False) -> None:
    bundles.store(KEY, exported, workflow="w", path="w/f[0]", replaces=replaces)


def exported(bundles: FileBundles) -> Any:
    return bundles.find(KEY)


def entry_file(root: Path) -> Path:
    return root / ".caas" / "foreach_bundle" / KEY / "entry.json"


def names(root: Path) -> list[str]:
    return sorted(os.listdir(root / ".caas" / "foreach_bundle"))


def test_what_was_stored_is_found_with_its_digits(tmp_path: Path) -> None:
    value = {"got": [Decimal("1.50"), 2**70, "é", None]}
    store(FileBundles(tmp_path), value)
    assert exported(FileBundles(tmp_path)) == value
    assert str(exported(FileBundles(tmp_path))["got"][0]) == "1.50"
    assert names(tmp_path) == [KEY]


def test_an_entry_is_json_with_its_own_hash(tmp_path: Path) -> None:
    store(FileBundles(tmp_path), {"got": 1})
    document = json.loads(entry_file(tmp_path).read_text())
    assert (document["content_key"], document["exported"]) == (KEY, {"got": 1})
    assert len(document["sha256"]) == 64


def test_the_first_writer_wins(tmp_path: Path) -> None:
    store(FileBundles(tmp_path), {"got": 1})
    store(FileBundles(tmp_path), {"got": 2})
    assert exported(FileBundles(tmp_path)) == {"got": 1}
    assert names(tmp_path) == [KEY]


def test_one_that_replaces_wins_over_the_first(tmp_path: Path) -> None:
    store(FileBundles(tmp_path), {"got": 1})
    store(FileBundles(tmp_path), {"got": 2}, replaces=True)
    assert exported(FileBundles(tmp_path)) == {"got": 2}
    assert names(tmp_path) == [KEY]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"got": 1', '"got": 7').replace('"got":1', '"got":7'),
        lambda text: text.replace(KEY, "cd" * 32),
        lambda text: "[" * 5000,
        lambda text: "[1]",
        lambda text: '{"bundle_format": 1, "exported": {"got": 1}}',
    ],
    ids=["empty", "half", "changed", "moved", "deep", "array", "no-hash"],
)
def test_a_damaged_entry_is_told_counts_as_absent_and_is_written_anew(
    spoil: Callable[[str], str], tmp_path: Path
) -> None:
    store(FileBundles(tmp_path), {"got": 1})
    file = entry_file(tmp_path)
    text = file.read_text()
    assert spoil(text) != text
    file.write_text(spoil(text))
    told: list[str] = []
    bundles = FileBundles(tmp_path, told.append)
    assert exported(bundles) is None
    assert exported(bundles) is None
    assert told == [f"{file.parent}: the entry is damaged; the iteration runs again"]
    assert isinstance(bundles.read(KEY), Damage)
    store(bundles, {"got": 3})
    assert exported(bundles) == {"got": 3}


def test_a_folder_without_its_file_counts_as_damaged(tmp_path: Path) -> None:
    entry_file(tmp_path).parent.mkdir(parents=True)
    told: list[str] = []
    bundles = FileBundles(tmp_path, told.append)
    assert exported(bundles) is None
    assert "the entry has no file" in told[0]
    store(bundles, {"got": 3})
    assert exported(bundles) == {"got": 3}


def test_a_removed_entry_is_gone_at_once(tmp_path: Path) -> None:
    bundles = FileBundles(tmp_path)
    store(bundles, {"got": 1})
    bundles.remove(KEY)
    bundles.remove(KEY)
    assert exported(bundles) is None
    assert names(tmp_path) == []


def test_a_young_leftover_belongs_to_a_writer_that_lives(tmp_path: Path) -> None:
    bundles = FileBundles(tmp_path)
    young, old = bundles.folder / ".new-1-a", bundles.folder / ".new-2-b"
    for folder in (young, old):
        folder.mkdir(parents=True)
    os.utime(old, (1, 1))
    assert list(bundles.leftovers()) == [old.name]
    assert list(bundles.content_keys()) == []


def test_an_entry_that_comes_between_two_looks_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundles, exists = FileBundles(tmp_path), Path.exists

    def come_now(path: Path) -> bool:
        monkeypatch.setattr(Path, "exists", exists)
        store(FileBundles(tmp_path), {"got": 1})
        return path.exists()

    monkeypatch.setattr(Path, "exists", come_now)
    assert isinstance(bundles.read(KEY), Entry)


# -- with runs


def run(root: Path, items: list[int], ran: list[int], told: list[str] | None = None) -> Any:
    def work(x: int) -> int:
        ran.append(x)
        return x * 10

    bundles = FileBundles(root, (told if told is not None else []).append)
    return LocalWorkflowEngine(SPEC, {"do": work}).run({"items": items}, bundles=bundles)


def test_a_second_run_calls_no_handler(tmp_path: Path) -> None:
    ran: list[int] = []
    first = run(tmp_path, [1, 2, 3], ran)
    second = run(tmp_path, [1, 2, 3, 4], ran)
    assert ran == [1, 2, 3, 4]
    assert second.trace["variables"]["got"] == [10, 20, 30, 40]
    assert first.status == second.status == "SUCCEEDED"


def test_a_folder_that_cannot_be_written_is_told_once_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / ".caas").write_text("no folder")
    ran: list[int] = []
    told: list[str] = []
    result = run(tmp_path, [1, 2, 3], ran, told)
    assert (result.status, ran) == ("SUCCEEDED", [1, 2, 3])
    stored = [line for line in told if "cannot be stored" in line]
    assert len(stored) == 1
    assert stored[0].startswith("w/f[0]: what it exported cannot be stored for reuse: ")


_RUNNER = """
import json, os, resource, sys
from pathlib import Path
from compiler.spec import parse_spec
from local_runner.bundles import FileBundles
from local_runner.engine import LocalWorkflowEngine

root, spec, items, kill_at, limit = sys.argv[1:6]
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
if int(kill_at):
    # Dies at a step of a writer that the number picks, as by `kill -9`.
    count, steps = 0, ("mkdir", "write_bytes", "rename", "replace")
    for name in steps:
        def step(self, *given, _do=getattr(Path, name), **named):
            global count
            count += 1
            if count == int(kill_at):
                os.kill(os.getpid(), 9)
            return _do(self, *given, **named)
        setattr(Path, name, step)
told = []
result = LocalWorkflowEngine(
    parse_spec(Path(spec).read_text()), {"do": lambda x: x * 10}
).run({"items": json.loads(items)}, bundles=FileBundles(Path(root), told.append))
got = [int(v) for v in result.trace["variables"]["got"]]
skipped = sum(row["status"] == "SKIPPED" for row in result.trace["nodes"])
print(json.dumps([result.status, got, skipped, told]))
"""


def _start(root: Path, items: list[int], kill_at: int = 0, limit: int = 0) -> subprocess.Popen[str]:
    from compiler.spec import dump_spec

    spec = root / "spec.json"
    if not spec.exists():
        spec.write_text(dump_spec(SPEC))
    arguments = [str(root), str(spec), json.dumps(items), str(kill_at), str(limit)]
    return subprocess.Popen(
        [sys.executable, "-c", _RUNNER, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )


def _result(process: subprocess.Popen[str]) -> Any:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return json.loads(out)


def test_two_runners_at_once_leave_whole_entries(tmp_path: Path) -> None:
    items = list(range(150))
    runners = [_start(tmp_path, items), _start(tmp_path, items[::-1])]
    results = [_result(runner) for runner in runners]
    assert results[0][1] == [10 * item for item in items]
    assert results[1][1] == results[0][1][::-1]
    assert results[0][3] == results[1][3] == []
    bundles = FileBundles(tmp_path)
    keys = list(bundles.content_keys())
    assert len(keys) == len(items) == len(names(tmp_path))
    assert all(isinstance(bundles.read(key), Entry) for key in keys)


@pytest.mark.parametrize("kill_at", [2, 3, 4, 5])
def test_a_runner_killed_in_the_middle_of_writing_leaves_no_half_entry(
    kill_at: int, tmp_path: Path
) -> None:
    killed = _start(tmp_path, [1, 2, 3], kill_at=kill_at)
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    bundles = FileBundles(tmp_path)
    whole = list(bundles.content_keys())
    assert all(isinstance(bundles.read(key), Entry) for key in whole)
    status, got, skipped, told = _result(_start(tmp_path, [1, 2, 3]))
    assert (status, got, skipped, told) == ("SUCCEEDED", [10, 20, 30], len(whole), [])


def test_a_full_disk_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    status, got, _skipped, told = _result(_start(tmp_path, [1, 2, 3], limit=100))
    assert (status, got) == ("SUCCEEDED", [10, 20, 30])
    assert told == [
        "w/f[0]: what it exported cannot be stored for reuse: file too large; it goes on"
    ]
    assert names(tmp_path) == []


# -- with a journal


def test_a_run_that_goes_on_is_told_the_same_about_bundles(tmp_path: Path) -> None:
    items, ran = [1, 2, 3], list[int]()
    run(tmp_path, [1], ran)

    def die_at_3(x: int) -> int:
        if x == 3:
            raise Killed
        return x * 10

    engine = LocalWorkflowEngine(SPEC, {"do": die_at_3})
    with pytest.raises(Killed):
        engine.run({"items": items}, journal=tmp_path / "j", bundles=FileBundles(tmp_path))
    # What the killed run skipped is gone now, and what it ran is stored.
    bundles = FileBundles(tmp_path)
    for key in list(bundles.content_keys()):
        bundles.remove(key)
    went_on = LocalWorkflowEngine(SPEC, {"do": lambda x: x * 10}).run(
        {"items": items}, journal=tmp_path / "j", bundles=FileBundles(tmp_path)
    )
    assert isinstance(went_on, RunResult)
    statuses = {row["path"]: row["status"] for row in went_on.trace["nodes"]}
    assert statuses["w/f[0]"] == "SKIPPED"
    assert statuses["w/f[1]/a"] == statuses["w/f[2]/a"] == "SUCCEEDED"
    assert went_on.trace["variables"]["got"] == [10, 20, 30]


def test_what_another_run_has_stored_since_the_kill_changes_no_replayed_call(
    tmp_path: Path,
) -> None:
    ran: list[int] = []

    def die_at_2(x: int) -> int:
        if x == 2:
            raise Killed
        return x * 10

    spec = workflow([reusing()], variables=VARIABLES)
    with pytest.raises(Killed):
        LocalWorkflowEngine(spec, {"do": die_at_2}).run(
            {"items": [1, 2]}, journal=tmp_path / "j", bundles=FileBundles(tmp_path)
        )
    run(tmp_path, [1, 2, 3], ran)
    went_on = LocalWorkflowEngine(spec, {"do": lambda x: x * 11}).run(
        {"items": [1, 2]}, journal=tmp_path / "j", bundles=FileBundles(tmp_path)
    )
    assert isinstance(went_on, RunResult)
    assert went_on.trace["variables"]["got"] == [10, 22]

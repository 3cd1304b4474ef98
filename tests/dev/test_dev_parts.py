"""The parts of `wf dev` that need no process."""

from __future__ import annotations

import io
from pathlib import Path
from threading import Event, Thread

from wfsql.dev.deploying import handler_files, workflow_files
from wfsql.dev.log import DevLog
from wfsql.dev.session import default_data
from wfsql.dev.watching import Changes, changes


def test_workflows_in_hidden_and_foreign_folders_are_left_out(tmp_path: Path) -> None:
    for name in ("a/one.wf", ".git/two.wf", "node_modules/three.wf", "b/c/four.wf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "b/c/handlers.py").write_text("")
    found = workflow_files(tmp_path)
    assert [path.name for path in found] == ["one.wf", "four.wf"]
    assert handler_files(found) == [tmp_path / "b/c/handlers.py"]


def test_a_line_says_who_and_shows_control_signs() -> None:
    stream = io.StringIO()
    DevLog(stream).write("worker-1", "one\x1b[31m\ntwo")
    first, second = stream.getvalue().splitlines()
    assert first[8:] == " worker-1   one\\x1b[31m"
    assert second[8:] == " worker-1   two"


def test_two_folders_of_one_name_have_each_a_database(tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "flows", tmp_path / "b" / "flows"
    assert default_data(one) != default_data(two)
    assert default_data(one) == default_data(one)
    assert tmp_path not in default_data(one).parents


def test_changes_are_sorted_by_what_they_ask_for(tmp_path: Path) -> None:
    stop = Event()
    watch = changes(tmp_path, stop)
    assert next(watch) is None
    names = ("one.wf", "one.actions.yaml", "handlers.py", "notes.txt", ".hidden.wf")
    for name in names:
        (tmp_path / name).write_text("x")
    seen: list[Changes] = []

    def look() -> None:
        for found in watch:
            if found is not None:
                seen.append(found)
            if {path.name for one in seen for path in _all(one)} >= set(names[:3]):
                stop.set()

    thread = Thread(target=look, daemon=True)
    thread.start()
    thread.join(30)
    assert stop.is_set()
    assert {path.name for one in seen for path in one.workflows} == {"one.wf"}
    assert {path.name for one in seen for path in one.catalogs} == {"one.actions.yaml"}
    assert {path.name for one in seen for path in one.handlers} == {"handlers.py"}


def _all(found: Changes) -> tuple[Path, ...]:
    return found.workflows + found.catalogs + found.handlers

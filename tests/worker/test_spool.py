"""Results on disk, and the folder around them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.worker.fakes import finished
from wfsql.worker.spool import Spool
from wfsql.worker.state import Identity, StateFolder, StateProblem

IDENTITY = Identity(
    worker_id="w", token="secret", gateway="https://g", capabilities=("a",), max_concurrency=2
)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path, "w at g", lambda _text: None)


def kept(tmp_path: Path) -> Path:
    [path] = (tmp_path / "results").iterdir()
    return path


def test_a_result_comes_back_as_it_was(spool: Spool) -> None:
    done = finished(3, '{"n":12345678901234567890.10,"t":"ä"}', code=-4, message="why\n")
    spool.put(done)
    assert spool.load() == [done]


@pytest.mark.parametrize("output", [None, "null"])
def test_no_output_and_null_are_two_things(spool: Spool, output: str | None) -> None:
    spool.put(finished(3, output))
    assert spool.load()[0].output_json == output


def test_results_come_back_in_the_order_of_their_ends(spool: Spool, tmp_path: Path) -> None:
    for number in (10, 9, 11):
        spool.put(finished(number))
    for age, number in enumerate((10, 9, 11)):
        os.utime(tmp_path / "results" / f"{number}-{number}.json", ns=(age, age))
    assert [done.task_id for done in spool.load()] == [10, 9, 11]


def test_files_are_for_their_owner_only(spool: Spool, tmp_path: Path) -> None:
    spool.put(finished(3))
    assert stat.S_IMODE(kept(tmp_path).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "results").stat().st_mode) == 0o700


def test_a_removed_result_is_gone(spool: Spool, tmp_path: Path) -> None:
    spool.put(finished(3))
    spool.remove(finished(3))
    assert list((tmp_path / "results").iterdir()) == []


def test_securing_keeps_what_is_there(spool: Spool) -> None:
    spool.put(finished(3))
    spool.secure([finished(3)])
    assert [done.task_id for done in spool.load()] == [3]


def changed(**members: Any) -> str:
    row = {
        "format": 1, "owner": "w at g", "name": "n", "task_id": 3, "lease_token": 3,
        "result_code": 0, "message": None,
    }  # fmt: skip
    return json.dumps({**row, **members})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value"),
        ('{"format": 1, "ow', "Unterminated string"),
        ("[]", "list indices"),
        ("{}", "'format'"),
        (changed(format=2), "it has format 2"),
        (changed(owner="w at h"), "it is of w at h"),
        (changed(task_id="3"), "'3' is not an integer"),
        (changed(task_id=4), "its name is not that of its task"),
        ("\x00\xff", "Expecting value"),
    ],
)
def test_what_is_no_result_of_ours_is_set_aside(tmp_path: Path, text: str, why: str) -> None:
    lines: list[str] = []
    spool = Spool(tmp_path, "w at g", lines.append)
    (tmp_path / "results" / "3-3.json").write_text(text)
    assert spool.load() == []
    assert (tmp_path / "aside" / "3-3.json").read_text() == text
    [line] = lines
    assert why in line


def test_bytes_that_are_no_text_are_set_aside(tmp_path: Path, spool: Spool) -> None:
    (tmp_path / "results" / "3-3.json").write_bytes(b"\xff\xfe")
    assert spool.load() == []
    assert (tmp_path / "aside" / "3-3.json").exists()


def test_a_half_written_file_is_removed(tmp_path: Path, spool: Spool) -> None:
    (tmp_path / "results" / ".3-3.json.new").write_text("{")
    assert spool.load() == []
    assert list((tmp_path / "results").iterdir()) == []


def test_a_disk_that_refuses_is_logged_and_the_worker_goes_on(tmp_path: Path) -> None:
    lines: list[str] = []
    spool = Spool(tmp_path, "w at g", lines.append)
    (tmp_path / "results").rmdir()
    spool.put(finished(3))
    spool.secure([finished(3)])
    assert lines == ["a result cannot be kept on disk: No such file or directory"] * 2


# The folder -------------------------------------------------------------------------------------


def opened(path: Path) -> StateFolder:
    folder = StateFolder.open(path)
    assert isinstance(folder, StateFolder)
    return folder


def test_an_identity_comes_back(tmp_path: Path) -> None:
    folder = opened(tmp_path / "a" / "b")
    assert folder.identity() is None
    folder.keep(IDENTITY)
    assert folder.identity() == IDENTITY


def test_the_folder_and_the_token_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = opened(tmp_path / "s")
    folder.keep(IDENTITY)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "s" / "worker.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"worker_id": "w"}', '{"capabilities": 1}'])
def test_a_damaged_identity_is_none(tmp_path: Path, text: str) -> None:
    folder = opened(tmp_path)
    (tmp_path / "worker.json").write_text(text)
    assert folder.identity() is None


def test_two_workers_cannot_share_a_folder(tmp_path: Path) -> None:
    first = opened(tmp_path)
    second = StateFolder.open(tmp_path)
    assert isinstance(second, StateProblem)
    assert second.message == f"another worker uses the state folder {tmp_path}"
    first.close()
    opened(tmp_path).close()


def test_a_folder_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert isinstance(StateFolder.open(tmp_path / "file" / "s"), StateProblem)

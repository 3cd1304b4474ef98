"""`wf fmt`: which files it takes, what it writes where, its exit codes."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Wf = Callable[..., Any]

UGLY = "workflow w{set a=1}\n"
CANONICAL = "workflow w {\n  set a = 1\n}\n"


def test_a_file_is_rewritten_in_place(wf: Wf, tmp_path: Path) -> None:
    file = tmp_path / "x.wf"
    file.write_text(UGLY)
    done = wf("fmt", "x.wf")
    assert (done.code, done.out) == (0, "")
    assert done.err == "x.wf: formatted\n1 file: 1 changed\n"
    assert file.read_text() == CANONICAL


def test_a_canonical_file_is_not_touched(wf: Wf, tmp_path: Path) -> None:
    file = tmp_path / "x.wf"
    file.write_text(CANONICAL)
    before = file.stat()
    done = wf("fmt", "x.wf")
    assert (done.code, done.err) == (0, "1 file: nothing to change\n")
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_folder_means_every_workflow_file_below_it(wf: Wf, tmp_path: Path) -> None:
    for name in ("b.wf", "a/x.wf", "a/notes.txt", ".hidden/y.wf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(UGLY)
    done = wf("fmt", ".")
    assert done.err == "b.wf: formatted\na/x.wf: formatted\n2 files: 2 changed\n"
    assert (tmp_path / "a/notes.txt").read_text() == UGLY
    assert (tmp_path / ".hidden/y.wf").read_text() == UGLY


def test_a_file_named_twice_is_formatted_once(wf: Wf, tmp_path: Path) -> None:
    (tmp_path / "x.wf").write_text(UGLY)
    assert wf("fmt", "x.wf", ".", "x.wf").err.endswith("1 file: 1 changed\n")


def test_the_rights_of_a_file_stay(wf: Wf, tmp_path: Path) -> None:
    file = tmp_path / "x.wf"
    file.write_text(UGLY)
    file.chmod(0o640)
    wf("fmt", "x.wf")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_link_stays_a_link(wf: Wf, tmp_path: Path) -> None:
    (tmp_path / "real.wf").write_text(UGLY)
    (tmp_path / "link.wf").symlink_to("real.wf")
    wf("fmt", "link.wf")
    assert (tmp_path / "link.wf").is_symlink()
    assert (tmp_path / "real.wf").read_text() == CANONICAL


def test_stdin_goes_to_stdout(wf: Wf) -> None:
    done = wf("fmt", "-", stdin=UGLY.encode())
    assert (done.code, done.out, done.err) == (0, CANONICAL, "")


def test_stdin_stands_alone(wf: Wf) -> None:
    assert wf("fmt", "-", "x.wf").code == 2


def test_check_changes_nothing_and_exits_1(wf: Wf, tmp_path: Path) -> None:
    file = tmp_path / "x.wf"
    file.write_text(UGLY)
    done = wf("fmt", "--check", "x.wf")
    assert (done.code, done.out) == (1, "")
    assert done.err == "x.wf: would change\n1 file: 1 would change\n"
    assert file.read_text() == UGLY


@pytest.mark.parametrize("text", [UGLY, CANONICAL])
def test_check_of_stdin_says_it_by_the_exit_code(wf: Wf, text: str) -> None:
    done = wf("fmt", "--check", "-", stdin=text.encode())
    assert (done.code, done.out) == (int(text == UGLY), "")


def test_a_file_with_other_line_ends_would_change(wf: Wf, tmp_path: Path) -> None:
    (tmp_path / "x.wf").write_bytes(CANONICAL.replace("\n", "\r\n").encode())
    assert wf("fmt", "--check", "x.wf").code == 1


def test_diff_writes_a_patch_and_changes_nothing(wf: Wf, tmp_path: Path) -> None:
    file = tmp_path / "x.wf"
    file.write_text(UGLY)
    done = wf("fmt", "--diff", "x.wf")
    assert done.code == 0
    assert done.out == (
        "--- x.wf (as it is)\n+++ x.wf (formatted)\n@@ -1 +1,3 @@\n"
        "-workflow w{set a=1}\n+workflow w {\n+  set a = 1\n+}\n"
    )
    assert file.read_text() == UGLY


def test_diff_says_that_a_last_line_end_is_missing(wf: Wf) -> None:
    done = wf("fmt", "--diff", "-", stdin=b"type T = int")
    assert done.out.endswith("-type T = int\n\\ No newline at end of file\n+type T = int\n")


def test_a_file_with_an_error_is_left_alone_and_the_others_are_formatted(
    wf: Wf, tmp_path: Path
) -> None:
    (tmp_path / "bad.wf").write_text("workflow w { set a 1 }")
    (tmp_path / "good.wf").write_text(UGLY)
    done = wf("fmt", "bad.wf", "good.wf")
    assert done.code == 1
    assert done.err.startswith("bad.wf:1:19: error[WF001]: ")
    assert done.err.endswith("2 files: 1 changed, 1 with errors\n")
    assert (tmp_path / "bad.wf").read_text() == "workflow w { set a 1 }"
    assert (tmp_path / "good.wf").read_text() == CANONICAL


def test_a_missing_file_is_an_error(wf: Wf) -> None:
    done = wf("fmt", "none.wf")
    assert done.code == 1
    assert "none.wf: error[WF004]: there is no such file" in done.err


def test_the_program_that_shows_the_form_has_it(wf: Wf) -> None:
    page = (Path(__file__).parents[2] / "docs" / "language.md").read_text()
    program = page.partition("## Format\n")[2].partition("```wf\n")[2].partition("```")[0]
    assert wf("fmt", "-", stdin=program.encode()).out == program

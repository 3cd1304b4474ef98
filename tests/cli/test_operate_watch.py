"""`--watch`: in a pipe what has changed, on a terminal the same place, and a clean end."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.cli.conftest import Wf
from tests.cli.scene import Scene
from wfsql.cli import watching

ONE = "workflow one { action a = t.do() }"


def drawing(*texts: str) -> Callable[[], bool]:
    """Draws one text after the other; the last is the end."""
    left = list(texts)

    def draw() -> bool:
        sys.stdout.write(left.pop(0) + "\n")
        return bool(left)

    return draw


def test_a_pipe_gets_what_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    assert watching.show(drawing("a", "a", "b", "b", "a"), 0.001) == 0
    assert capsys.readouterr().out == "a\nb\na\n"


def test_without_watch_it_is_drawn_once(capsys: pytest.CaptureFixture[str]) -> None:
    watching.show(drawing("a", "b"), None)
    assert capsys.readouterr().out == "a\n"


def test_ctrl_c_while_drawing_is_a_clean_end() -> None:
    def draw() -> bool:
        raise KeyboardInterrupt

    assert watching.show(draw, 1) == 0


def test_watching_an_instance_ends_with_it(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    scene.begin(ONE)
    scene.submit("w1", scene.take("w1")[0])
    done = wf("show", "1", "--watch", "0.05")
    assert done.code == 0
    assert "one 1: SUCCEEDED\n" in done.err


def test_an_id_after_watch_is_the_id(wf: Wf, scene: Scene) -> None:
    scene.begin(ONE)
    wf("cancel", "1")
    assert wf("why", "--watch", "1").out.startswith("one 1 was CANCELLED")


def test_json_is_a_line_for_each_change(
    wf: Wf, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.begin(ONE)

    def then_cancel(_seconds: float) -> None:
        scene.connection.execute("select wf.sp_cancel_workflow_instance(1, null)")

    monkeypatch.setattr(watching.time, "sleep", then_cancel)
    lines = wf("why", "1", "--watch", "--json").out.splitlines()
    assert ['"status":"RUNNING"' in lines[0], '"status":"CANCELLED"' in lines[1]] == [True, True]


def read_until(leader: int, wanted: str) -> str:
    """Reads what a terminal was given, until a text is among it."""
    seen = b""
    while wanted.encode() not in seen:
        ready, _, _ = select.select([leader], [], [], 30)
        assert ready, f"{wanted!r} did not come; seen: {seen!r}"
        seen += os.read(leader, 65536)
    return seen.decode()


def test_a_terminal_is_drawn_over_until_ctrl_c(scene: Scene) -> None:
    scene.begin(ONE)
    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-m", "wfsql", "ps", "--watch", "0.1"],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
        env=environment,
    )
    os.close(follower)
    try:
        first = read_until(leader, "Ctrl-C ends it")
        scene.connection.execute("select wf.sp_pause_workflow_instance(1)")
        read_until(leader, "PAUSED")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(leader)
    assert "RUNNING" in first

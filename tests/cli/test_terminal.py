"""What a person sees: the commands on a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime_sql import drive


def on_terminal(*arguments: str, columns: int = 100) -> str:
    """Runs `wf` with a terminal as its stdout and stderr, and answers what it wrote there."""
    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": str(columns), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "wfsql", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
        env=environment,
    )
    os.close(follower)
    written = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux says EIO when the last writer is gone
            break
        if not piece:
            break
        written += piece
    os.close(leader)
    process.wait()
    return written.decode()


@pytest.fixture
def marked(pg_url: str, tmp_path: Path) -> str:
    """A database with an instance whose data would style a terminal, if anything let it."""
    with drive.connect(pg_url) as connection:
        text = "workflow w { input { s: string } output { s = var.s } action a = t.do() }"
        drive.deploy(connection, drive.compile_text(tmp_path, text))
        row = connection.execute(
            "select workflow_instance_id from wf.wf_repo_create_workflow_instance("
            "'w', %s, p_business_key => '[red]x[/red][link=http://e]')",
            (drive.json({"s": "[bold]\x1b[31m\u202eabc"}),),
        ).fetchone()
        assert row is not None
        connection.execute("select wf.sp_start_workflow_instance(%s)", (row[0],))
    return pg_url


def test_tables_are_coloured_and_data_is_not_markup(marked: str) -> None:
    seen = on_terminal("ps", "--url", marked)

    assert "[red]x[/red][link=http://e]" in seen
    assert "\x1b[" in seen
    assert "\x1b]8" not in seen


def test_data_cannot_reach_the_terminal_as_control_characters(marked: str) -> None:
    with drive.connect(marked) as connection:
        drive.drain(connection, drive.Scripted())

    for command in (("show", "1"), ("trace", "1"), ("trace", "1", "--json")):
        seen = on_terminal(*command, "--url", marked)
        assert "\x1b[31m\u202e" not in seen, command
        assert "\u202e" not in seen, command

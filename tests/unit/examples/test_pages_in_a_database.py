"""The database commands of README.md and of order_delivery's page, as a reader would type them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from wfsql.cli.main import main

ROOT = Path(__file__).parents[3]


class Shell:
    """Runs `wf …` lines in the current folder; a worker in a process of its own, until idle."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self.capture = capture

    def type(self, line: str) -> str:
        """Runs one line, which must succeed, and returns what it wrote to stdout."""
        words = shlex.split(line, comments=True)[1:]
        if words[0] == "worker":
            command = [sys.executable, "-m", "wfsql", *words, "--idle-exit", "0.3"]
            subprocess.run(command, check=True, capture_output=True, timeout=60)
            return ""
        self.capture.readouterr()
        code = main(words)
        written = self.capture.readouterr()
        assert code == 0, f"{line}\n{written.err}"
        return written.out


@pytest.fixture
def shell(
    tmp_path: Path,
    empty_pg_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Shell:
    monkeypatch.setenv("WF_URL", empty_pg_url)
    monkeypatch.setenv("WFSQL_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)


def command_lines(text: str) -> list[str]:
    """Returns the `wf …` lines of a text's plain blocks, continuation lines joined."""
    joined = "\n".join(re.findall(r"^```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    return [line for line in joined.replace("\\\n", " ").splitlines() if line.startswith("wf ")]


def test_the_database_commands_of_the_readme_do_what_it_says(shell: Shell, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, content in re.findall(
        r"[Ss]ave this as\s+`([\w.]+)`:\n\n```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    ):
        (tmp_path / name).write_text(content, encoding="utf-8")
    section = text.partition("## In a database")[2].partition("\n## ")[0]
    written = {line.split("#")[0].strip(): shell.type(line) for line in command_lines(section)}

    trace = json.loads(written["wf trace 1 --json"])
    assert (trace["status"], trace["output"]) == ("SUCCEEDED", {"counts": [2, 4], "total": 6})


def test_the_commands_of_order_delivery_bring_the_instance_to_its_end(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "examples" / "order_delivery" / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(ROOT)
    shell.type("wf db install")
    lines = command_lines(text)
    for line in lines:
        shell.type(line)
    (worker,) = (line for line in lines if line.startswith("wf worker"))
    shell.type(worker)  # on the page it still runs when the event comes

    trace = json.loads(shell.type("wf trace 1 --json"))
    assert (trace["status"], trace["output"]["complete"]) == ("SUCCEEDED", True)

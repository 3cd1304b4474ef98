"""Runs `wf` in this interpreter, which is quicker than a process per case."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.scene import Scene
from tests.runtime_sql import drive
from wfsql.cli.main import main

WORKFLOW = """\
workflow greeting {
  input { name : string }
  output { text = var.text }
  action hello = greet.hello(name: var.name) { set text = out.text }
}
"""
CATALOG = """\
actions:
  - name: greet.hello
    capability: greet
    input: "{ name: string }"
    output: "{ text: string }"
"""
HANDLERS = """\
from wfsql import action


@action("greet.hello")
def hello(name):
    return {"text": "Hello " + name}
"""


@dataclass(frozen=True)
class Done:
    """What a command left: its exit code and what it wrote."""

    code: int
    out: str
    err: str


Wf = Callable[..., Done]


@pytest.fixture
def wf(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Wf:
    """Returns a function that runs one command in an empty folder; `stdin` is its input."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WF_URL", raising=False)
    monkeypatch.delenv("WF_DEBUG", raising=False)

    def run(*arguments: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def greeting(wf: Wf, tmp_path: Path) -> Path:
    """A folder with a workflow of one action, its catalog and its handler."""
    (tmp_path / "greeting.wf").write_text(WORKFLOW)
    (tmp_path / "greeting.actions.yaml").write_text(CATALOG)
    (tmp_path / "greeting_handlers.py").write_text(HANDLERS)
    return tmp_path


@pytest.fixture
def scene(wf: Wf, pg_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A database at noon, without workers; WF_URL names it."""
    monkeypatch.setenv("WF_URL", pg_url)
    with drive.connect(pg_url) as connection:
        connection.execute("delete from wf.worker")
        made = Scene(connection, tmp_path)
        made.set_clock()
        yield made


def is_one_line_each(text: str) -> bool:
    """Whether an error is one `error:` line and at most one `hint:` line."""
    lines = text.splitlines()
    return (
        bool(lines)
        and lines[0].startswith("error: ")
        and len(lines) <= 2
        and all(line.startswith("hint: ") for line in lines[1:])
    )

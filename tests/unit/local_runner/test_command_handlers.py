"""Programs as handlers."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from local_runner import command_handlers
from local_runner.command_handlers import command
from local_runner.handlers import HandlerError, Handlers, Outcome, TaskContext, load_handlers

MODULE = """
import sys
from local_runner.command_handlers import command

command("x.do", [sys.executable, "-c", {script!r}, "fixed $HOME"])
"""


def loaded(folder: Path, script: str) -> Handlers:
    path = folder / "work_with_programs.py"
    path.write_text(MODULE.format(script=script))
    handlers = load_handlers(str(path))
    assert isinstance(handlers, Handlers)
    return handlers


def call(folder: Path, script: str, input: Any = None) -> Outcome:
    return loaded(folder, script).invoke("x.do", input or {}, TaskContext("w/a", 1, "i"))


def test_input_goes_in_on_stdin_and_output_comes_from_stdout(tmp_path: Path) -> None:
    script = "import json, sys; print(json.dumps([json.load(sys.stdin), sys.argv[1]]))"
    outcome = call(tmp_path, script, {"task": 1, "n": "é"})
    assert outcome == Outcome(0, [{"task": 1, "n": "é"}, "fixed $HOME"], None)


def test_the_exit_code_is_the_result_code(tmp_path: Path) -> None:
    script = "import sys; print('{}'); print('a'); print('b ', file=sys.stderr); sys.exit(7)"
    outcome = call(tmp_path, script.replace("print('a'); ", ""))
    assert outcome == Outcome(7, {}, "b")


def test_nothing_on_stdout_is_null(tmp_path: Path) -> None:
    assert call(tmp_path, "") == Outcome(0, None, None)


def test_numbers_stay_exact(tmp_path: Path) -> None:
    outcome = call(tmp_path, "print('[1.50, 9007199254740993]')")
    assert [str(n) for n in outcome.output] == ["1.50", "9007199254740993"]


@pytest.mark.parametrize(
    ("script", "text"),
    [("print('hello')", "wrote what is no JSON"), ("print('\"\\\\u0000\"')", "cannot be stored")],
)
def test_an_output_that_is_no_value_is_a_failure(tmp_path: Path, script: str, text: str) -> None:
    outcome = call(tmp_path, script)
    assert outcome.code == -1
    assert outcome.message is not None
    assert text in outcome.message


def test_a_program_that_a_signal_ended_has_failed(tmp_path: Path) -> None:
    outcome = call(tmp_path, "import os; os.kill(os.getpid(), 9)")
    assert (outcome.code, outcome.output) == (-1, None)
    assert outcome.message == f"{sys.executable} was ended by signal 9"


def test_a_program_that_is_not_there_has_failed() -> None:
    handlers = Handlers.from_functions({"x": command("x", ["no-such-program-here"])})
    outcome = handlers.invoke("x", {}, TaskContext("w/a", 1, "i"))
    assert (outcome.code, outcome.message) == (
        -1,
        "no-such-program-here: no such file or directory",
    )


def test_a_program_that_does_not_read_its_input_may_succeed(tmp_path: Path) -> None:
    assert call(tmp_path, "print(1)", {"text": "x" * 1_000_000}).output == 1


def test_a_cancelled_program_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_handlers, "_LOOK_SECONDS", 0.01)
    cancelled = threading.Event()
    cancelled.set()
    script = "import threading; threading.Event().wait()"
    task = TaskContext("w/a", 1, "i", cancelled)
    outcome = loaded(tmp_path, script).invoke("x.do", {}, task)
    assert outcome.message == f"{sys.executable} was ended by signal 15"


def test_a_cancelled_program_that_does_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_handlers, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(command_handlers, "_KILL_AFTER_SECONDS", 0.05)
    cancelled = threading.Event()
    flag = tmp_path / "ready"
    script = (
        "import signal, pathlib, threading; signal.signal(15, signal.SIG_IGN);"
        f"pathlib.Path({str(flag)!r}).touch(); threading.Event().wait()"
    )
    handlers = loaded(tmp_path, script)
    outcomes: list[Outcome] = []
    task = TaskContext("w/a", 1, "i", cancelled)
    thread = threading.Thread(target=lambda: outcomes.append(handlers.invoke("x.do", {}, task)))
    thread.start()
    while not flag.exists() and thread.is_alive():
        thread.join(0.01)
    cancelled.set()
    thread.join(20)
    assert outcomes[0].message == f"{sys.executable} was ended by signal 9"


@pytest.mark.parametrize("argv", ["rm -rf x", [], ["a", 1], b"x"])
def test_only_a_list_of_texts_is_a_program(argv: Any) -> None:
    with pytest.raises(TypeError, match="command 'x'"):
        command("x", argv)


def test_a_program_and_a_function_for_one_action_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "work_twice.py"
    text = "\nfrom local_runner.handlers import action\n@action('x.do')\ndef do(): pass\n"
    path.write_text(MODULE.format(script="") + text)
    refused = load_handlers(str(path))
    assert isinstance(refused, HandlerError)
    assert refused.message == f"{path}: action 'x.do' has two handlers"

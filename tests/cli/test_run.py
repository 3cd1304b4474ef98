"""What `wf run` does besides running: dry run, journal, timeline, forced reruns, programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_runner.events import (
    ActionAbandoned,
    ActionFinished,
    ActionOffered,
    ActionStarted,
    NodeEnded,
)
from wfsql.cli.run_progress import Board, progress

Wf = Callable[..., Any]

RUN = ("run", "greeting.wf", "--handlers", "greeting_handlers.py", "--context", '{"name": "Ada"}')
DRY = ("run", "greeting.wf", "--dry-run", "--context", '{"name": "Ada"}')


# dry run ----------------------------------------------------------------------------------------


def test_a_dry_run_prints_each_input_and_needs_no_handlers(wf: Wf, greeting: Path) -> None:
    done = wf(*DRY)
    assert done.code == 0
    assert done.out == (
        'greeting/hello  greet.hello\n  {\n    "name": "Ada"\n  }\n{\n  "text": ""\n}\n'
    )
    assert done.err == "greeting: SUCCEEDED\n"


def test_a_dry_run_takes_results_from_a_file(wf: Wf, greeting: Path) -> None:
    (greeting / "results.json").write_text('{"hello": {"output": {"text": "hi"}}}')
    done = wf(*DRY, "--results", "results.json", "--json")
    assert json.loads(done.out) == {
        "workflow": "greeting",
        "status": "SUCCEEDED",
        "output": {"text": "hi"},
        "error": None,
        "steps": [
            {
                "path": "greeting/hello",
                "action": "greet.hello",
                "attempt": 1,
                "input": {"name": "Ada"},
                "assumed": {"code": 0, "output": {"text": "hi"}},
            }
        ],
    }


def test_a_dry_run_takes_results_from_stdin(wf: Wf, greeting: Path) -> None:
    done = wf(*DRY, "--results", "-", stdin=b'{"hello": {"code": -4}}')
    assert done.code == 1
    assert "error -4: result code -4" in done.err


def test_a_dry_run_whose_input_does_not_fit_is_exit_1(wf: Wf, greeting: Path) -> None:
    done = wf("run", "greeting.wf", "--dry-run")
    assert done.code == 1
    assert "error 10015: input name: is missing" in done.err


def test_results_for_an_action_that_is_not_there_are_wrong_use(wf: Wf, greeting: Path) -> None:
    done = wf(*DRY, "--results", "-", stdin=b'{"greeting/helo": {}}')
    assert done.code == 2
    assert done.err == (
        "error: stdin: greeting has no action greeting/helo\nhint: did you mean hello?\n"
    )


def test_results_of_another_shape_are_wrong_use(wf: Wf, greeting: Path) -> None:
    done = wf(*DRY, "--results", "-", stdin=b'{"hello": 4}')
    assert done.code == 2
    assert 'the result of "hello" must be an object with code and output' in done.err


def test_results_without_a_dry_run_are_wrong_use(wf: Wf, greeting: Path) -> None:
    done = wf(*RUN, "--results", "results.json")
    assert (done.code, done.err.splitlines()[0]) == (2, "error: --results needs --dry-run")


@pytest.mark.parametrize("option", ["--journal", "--timeline"])
def test_a_dry_run_leaves_no_journal_and_no_timeline(wf: Wf, greeting: Path, option: str) -> None:
    done = wf(*DRY, option, "there")
    assert done.code == 2
    assert f"--dry-run and {option} exclude each other" in done.err
    assert not (greeting / "there").exists()


# forced reruns ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "expected"), [((), False), (("--force-rerun",), True)])
def test_force_rerun_is_seen_by_the_workflow(
    wf: Wf, greeting: Path, options: tuple[str, ...], expected: bool
) -> None:
    text = "workflow w {\n  output { forced = ctx.forceRerun }\n}\n"
    (greeting / "forced.wf").write_text(text)
    done = wf("run", "forced.wf", *options)
    assert json.loads(done.out) == {"forced": expected}


# journal ----------------------------------------------------------------------------------------


def test_a_second_run_with_the_journal_runs_nothing_again(wf: Wf, greeting: Path) -> None:
    first = wf(*RUN, "--journal", "journal")
    (greeting / "greeting_handlers.py").write_text(
        "from wfsql import action\n@action('greet.hello')\ndef hello(name): raise ValueError\n"
    )
    second = wf(*RUN, "--journal", "journal")
    assert (first.code, second.code) == (0, 0)
    assert second.out == first.out
    assert "greet.hello ->" in first.err
    assert "greet.hello ->" not in second.err


def test_a_journal_of_another_run_is_refused(wf: Wf, greeting: Path) -> None:
    wf(*RUN, "--journal", "journal")
    done = wf(*RUN[:-1], '{"name": "Eve"}', "--journal", "journal")
    assert done.code == 1
    assert "it is a run with another context; use another folder" in done.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_clear_line(
    wf: Wf, greeting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from local_runner import journal

    def full(_descriptor: int, entry: dict[str, Any]) -> None:
        if "do" in entry:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal, "_append", full)
    done = wf(*RUN, "--journal", "journal")
    assert done.code == 1
    assert done.err.splitlines() == [
        "error: journal: the journal cannot be written: no space left on device",
        "hint: make room and run the same command again: it goes on from what is written",
    ]


# timeline and progress --------------------------------------------------------------------------


def test_the_timeline_is_an_svg_file(wf: Wf, greeting: Path) -> None:
    assert wf(*RUN, "--timeline", "out.svg").code == 0
    text = (greeting / "out.svg").read_text()
    assert text.startswith("<svg ")
    assert "<title>greeting/hello  greet.hello  " in text


def test_progress_is_a_line_per_action_without_a_terminal(wf: Wf, greeting: Path) -> None:
    done = wf(*RUN)
    assert done.err == "  greeting/hello  greet.hello -> 0\ngreeting: SUCCEEDED\n"


def test_an_abandoned_action_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as listen:
        listen(ActionAbandoned("w/a", "x", 0))
    assert capsys.readouterr().err == "  w/a  x timed out; its thread is left behind\n"


def test_the_board_lists_what_runs_what_waits_and_how_far_loops_are() -> None:
    board = Board()
    for event in [
        ActionOffered("w/f[0]/a", "x"),
        ActionOffered("w/f[1]/a", "x"),
        ActionOffered("w/f[2]/a", "x"),
        ActionStarted("w/f[0]/a", "x", 0),
        ActionFinished("w/f[0]/a", "x", 0, 0, None),
        NodeEnded("w/f[0]/a", "ACTION", "SUCCEEDED"),
        NodeEnded("w/f[0]", "SEQUENCE", "SUCCEEDED", 3),
        ActionStarted("w/f[1]/a", "x", 0),
    ]:
        board.note(event)
    lines = board.lines()
    assert [(kind, text) for kind, text, _far in lines] == [
        ("runs", "w/f[1]/a  x"),
        ("loop", "w/f"),
        ("waits", "w/f[2]/a  x"),
    ]
    assert lines[1][2] == "1 of 3"
    assert board.finished == 1


def test_the_board_forgets_what_was_cancelled_and_loops_that_ended() -> None:
    board = Board()
    for event in [
        ActionOffered("w/f[0]/a", "x"),
        NodeEnded("w/f[0]", "SEQUENCE", "FAILED", 3),
        NodeEnded("w/f[0]/a", "ACTION", "CANCELLED"),
        NodeEnded("w/f", "FOREACH", "FAILED"),
    ]:
        board.note(event)
    assert board.lines() == []


def test_the_board_can_be_drawn() -> None:
    from rich.console import Console

    board = Board()
    board.note(ActionStarted("w/[red]a", "x", 0))
    console = Console(width=80, record=True, file=None)
    with console.capture() as captured:
        console.print(board.table())
    assert "w/[red]a  x" in captured.get()


# handlers ---------------------------------------------------------------------------------------


def test_a_program_may_be_the_handler(wf: Wf, greeting: Path) -> None:
    script = "import json, sys; print(json.dumps({'text': json.load(sys.stdin)['name'] * 2}))"
    (greeting / "programs.py").write_text(
        "from local_runner.command_handlers import command\n"
        f"command('greet.hello', [{sys.executable!r}, '-c', {script!r}])\n"
    )
    done = wf(*RUN[:3], "programs.py", *RUN[4:])
    assert json.loads(done.out) == {"text": "AdaAda"}


def test_what_a_handler_prints_is_no_part_of_the_output(wf: Wf, greeting: Path) -> None:
    (greeting / "loud.py").write_text(
        "from wfsql import action\n@action('greet.hello')\n"
        "def hello(name):\n    print('loud')\n    return {'text': name}\n"
    )
    done = wf(*RUN[:3], "loud.py", *RUN[4:])
    assert json.loads(done.out) == {"text": "Ada"}
    assert done.err.startswith("loud\n")


def test_an_argument_that_does_not_fit_its_hint_fails_the_action(wf: Wf, greeting: Path) -> None:
    (greeting / "hinted.py").write_text(
        "from wfsql import action\n@action('greet.hello')\ndef hello(name: int): pass\n"
    )
    done = wf(*RUN[:3], "hinted.py", *RUN[4:])
    assert done.code == 1
    assert "error -1: argument name: input should be a valid integer" in done.err


# interrupts -------------------------------------------------------------------------------------

SLOW = """
import threading
from wfsql import TaskContext, action


@action("greet.hello")
def hello(task: TaskContext, name):
    print("begun", flush=True)
    task.cancelled.wait(60)
    print("told", flush=True)
    threading.Event().wait({seconds})
    return {{"text": name}}
"""


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    ("seconds", "count", "expected"),
    [
        (0, 1, ["  greeting/hello  greet.hello -> 0", "greeting: CANCELLED"]),
        (60, 2, ["error: interrupted while handlers were running"]),
    ],
)
def test_an_interrupt_waits_for_handlers_and_a_second_does_not(
    greeting: Path, workers: str, seconds: float, count: int, expected: list[str]
) -> None:
    (greeting / "slow.py").write_text(SLOW.format(seconds=seconds))
    command = [sys.executable, "-m", "wfsql", *RUN[:3], "slow.py", *RUN[4:]]
    with subprocess.Popen(
        [*command, "--parallel-workers", workers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        # The handler and the command hear of it at once, and either may be the first to speak.
        lines = [process.stderr.readline().rstrip("\n") for _ in range(2)]
        if count == 2:
            process.send_signal(signal.SIGINT)
        # Not by `communicate`, which passes over what was read ahead.
        lines += process.stderr.read().splitlines()
        process.wait(timeout=30)
    note = "interrupted: waiting for the handler that runs; Ctrl-C again ends it"
    said = "\n".join(lines)
    assert note in said
    # Two threads speak, and `print` writes the end of a line apart from it.
    rest = said.replace(note, "\n").split("\n")
    assert [line for line in rest if line] == ["told", *expected]
    assert process.returncode == 130


def test_a_key_that_no_input_has_is_a_note(wf: Wf, greeting: Path) -> None:
    done = wf(*RUN[:-1], '{"name": "Ada", "nmae": "Eve"}')
    assert done.code == 0
    assert done.err.splitlines()[0].startswith('note: no input is called "nmae"; ')


def test_the_summary_counts_calls_and_failures_by_action() -> None:
    from local_runner.events import TimelineEntry
    from wfsql.cli.run_progress import by_action

    entries = (
        TimelineEntry("w/a", "x", 0, 0.0, 1.0, -1),
        TimelineEntry("w/b", "y", 1, 0.0, 0.5),
        TimelineEntry("w/a", "x", 0, 2.0, 4.0, 3),
    )
    assert by_action(entries) == {"x": (2, 1, 3.0), "y": (1, 0, 0.5)}


def test_a_handler_that_hangs_past_its_time_out_does_not_keep_the_command(
    greeting: Path,
) -> None:
    (greeting / "slow.py").write_text(SLOW.format(seconds=60))
    spec_text = (greeting / "greeting.wf").read_text()
    (greeting / "greeting.wf").write_text(
        spec_text.replace("{ set text", "{ timeout 50ms set text")
    )
    command = [sys.executable, "-m", "wfsql", *RUN[:3], "slow.py", *RUN[4:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    # The handler hears that it is not wanted any more, and may say so at any moment.
    lines = done.stderr.splitlines()
    assert [line for line in lines if line != "told"] == [
        "begun",
        "  greeting/hello  greet.hello timed out; its thread is left behind",
        "greeting: FAILED",
        "error 10013: greeting/hello: timed out after 50 ms",
    ]


def test_warnings_of_a_run_are_a_line_each_and_a_count(wf: Wf, tmp_path: Path) -> None:
    path = tmp_path / "idle.wf"
    path.write_text("workflow idle {\n  input { a : int = 1, b : int = 2 }\n  sleep 1ms\n}\n")
    done = wf("run", "idle.wf")
    assert done.code == 0
    assert done.err.splitlines()[:3] == [
        'idle.wf:2:11: warning[WF220]: input "a" is never read',
        'idle.wf:2:24: warning[WF220]: input "b" is never read',
        "2 warnings; `wf check idle.wf` shows more",
    ]


def test_errors_of_a_run_are_shown_whole_and_without_the_warnings(wf: Wf, tmp_path: Path) -> None:
    path = tmp_path / "wrong.wf"
    path.write_text("workflow wrong {\n  input { a : int = 1 }\n  set b = var.c\n}\n")
    done = wf("run", "wrong.wf")
    assert done.code == 1
    assert "warning[" not in done.err
    assert "    |           ^^^^^" in done.err


# what a handler may do wrong ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("raise ValueError('no ' + name)", "error -1: ValueError: no Ada"),
        ("return {1, 2}", "error -1: the output cannot be stored: a value of type set is not JSON"),
        ("return {'text': float('nan')}", "error -1: the output cannot be stored: "),
        ("raise SystemExit(3)", "error -1: SystemExit: 3"),
        ("return Result(-5)", "error -5: result code -5"),
        ("return Result('x')", "error -1: the result code 'x' is not a 32-bit integer"),
    ],
    ids=["raises", "no-json", "nan", "exits", "code", "no-code"],
)
def test_what_a_handler_does_wrong_is_told_with_its_node(
    body: str, told: str, wf: Wf, greeting: Path
) -> None:
    (greeting / "greeting_handlers.py").write_text(
        "from wfsql import Result, action\n\n\n"
        f"@action('greet.hello')\ndef hello(name):\n    {body}\n"
    )
    done = wf(*RUN, "--quiet", "--journal", "j")
    assert done.code == 1
    line, place = done.err.splitlines()[-2:]
    assert line.startswith(told)
    assert place == "  at greeting/hello"
    # The journal is whole: the run that goes on has ended already, and alike.
    again = wf(*RUN, "--quiet", "--journal", "j")
    assert (again.code, again.err) == (1, done.err)


def test_a_handler_that_prints_leaves_the_output_clean(wf: Wf, greeting: Path) -> None:
    (greeting / "greeting_handlers.py").write_text(
        "from wfsql import action\n\n\n@action('greet.hello')\n"
        "def hello(name):\n    print('noise')\n    return {'text': 'hi'}\n"
    )
    done = wf(*RUN)
    assert json.loads(done.out) == {"text": "hi"}
    assert "noise" in done.err


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("x = 1\n", "no function is marked with @action"),
        ("from wfsql import action\naction('greet.hello')(5)\n", "AttributeError"),
        ("from wfsql import action\n@action('other')\ndef f(): ...\n", "without a handler"),
        ("import nothing_like_it\n", "ModuleNotFoundError"),
    ],
    ids=["none", "not-callable", "missing", "no-import"],
)
def test_handlers_that_cannot_be_had_end_it_before_anything_runs(
    module: str, told: str, wf: Wf, greeting: Path
) -> None:
    (greeting / "greeting_handlers.py").write_text(module)
    done = wf(*RUN)
    assert done.code in (1, 2)
    assert (done.out, told in done.err) == ("", True)


def test_a_handler_that_kills_the_process_leaves_a_journal_to_go_on_from(greeting: Path) -> None:
    handlers = greeting / "greeting_handlers.py"
    text = handlers.read_text()
    handlers.write_text(text.replace("    return", "    import os\n    os._exit(9)\n    return"))
    start = "import sys; from wfsql.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", start, *RUN, "--journal", "j"]
    root = str(Path(__file__).parents[2])
    environment = dict(os.environ, PYTHONPATH=root)
    killed = subprocess.run(command, cwd=greeting, env=environment, check=False)
    assert killed.returncode == 9
    handlers.write_text(text)
    done = subprocess.run(
        command, cwd=greeting, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, {"text": "Hello Ada"})

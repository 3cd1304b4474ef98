"""The journal: a run that was killed goes on, and each finished action is not run again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from local_runner.clock import VirtualClock
from local_runner.engine import JournalRefused, LocalWorkflowEngine, RunResult
from local_runner.handlers import Result
from local_runner.journal import FILE_NAME, Journal, open_journal
from tests.unit.local_runner.graphs import action, foreach, lit, sleep, workflow

SPEC = workflow(
    [
        action("a", "a", sets=[("x", [["out", []]])]),
        action("b", "b", template={"x": "${var.x}"}),
        action("c", "c"),
    ],
    variables=[("x", "set", None)],
)


class Killed(BaseException):
    """Stands for the end of the process: nothing after it is written."""


def run(spec: Any, folder: Path, handlers: Any, context: Any = None, **options: Any) -> Any:
    clock = options.pop("clock", None)
    engine = LocalWorkflowEngine(spec, handlers, **options)
    return engine.run(context or {}, journal=folder, clock=clock)


def handlers_with(ran: list[str], **changed: Any) -> dict[str, Any]:
    def note(name: str) -> Any:
        return lambda **_given: ran.append(name) or name

    return {name: note(name) for name in "abc"} | changed


def killed() -> Any:
    def die(**_given: Any) -> None:
        raise Killed

    return die


def die_at_b(folder: Path, ran: list[str]) -> None:
    engine = LocalWorkflowEngine(SPEC, handlers_with(ran, b=killed()))
    with pytest.raises(Killed):
        engine.run({}, journal=folder)


def test_a_finished_action_is_not_run_again(tmp_path: Path) -> None:
    ran: list[str] = []
    die_at_b(tmp_path, ran)
    result = run(SPEC, tmp_path, handlers_with(ran))
    assert (result.status, ran) == ("SUCCEEDED", ["a", "b", "c"])
    rows = {row["path"]: row for row in result.trace["nodes"]}
    assert rows["w/b"]["input"] == {"x": "a"}
    assert rows["w/b"]["attempts"] == 1


def test_a_run_that_had_ended_only_shows_its_result(tmp_path: Path) -> None:
    ran: list[str] = []
    first = run(SPEC, tmp_path, handlers_with(ran))
    second = run(SPEC, tmp_path, handlers_with(ran))
    assert ran == ["a", "b", "c"]
    assert (second.trace, second.output) == (first.trace, first.output)


def test_the_instance_keeps_its_id(tmp_path: Path) -> None:
    spec = workflow([action("a", "a", template={"id": "${ctx.instance_id}"}), action("b", "b")])
    seen: list[str] = []
    handlers = handlers_with([], a=lambda id: seen.append(id), b=killed())
    with pytest.raises(Killed):
        run(spec, tmp_path, handlers)
    header = json.loads((tmp_path / FILE_NAME).read_text().splitlines()[0])
    assert header["instance_id"] == seen[0]


def test_a_last_line_that_was_cut_off_counts_as_never_written(tmp_path: Path) -> None:
    ran: list[str] = []
    die_at_b(tmp_path, ran)
    path = tmp_path / FILE_NAME
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"do": "complete", "id": 3, "no')
    assert run(SPEC, tmp_path, handlers_with(ran)).status == "SUCCEEDED"
    assert path.read_bytes().startswith(whole)
    assert ran == ["a", "b", "c"]


def test_every_prefix_of_a_journal_goes_on(tmp_path: Path) -> None:
    spec = workflow([foreach("f", "x", lit([1, 2]), [action("a", "a")]), action("b", "b")])
    whole_run = run(spec, tmp_path / "whole", handlers_with([]))
    data = (tmp_path / "whole" / FILE_NAME).read_bytes()
    lines = data.splitlines(keepends=True)
    for count in range(len(lines) + 1):
        folder = tmp_path / str(count)
        folder.mkdir()
        (folder / FILE_NAME).write_bytes(b"".join(lines[:count]))
        assert run(spec, folder, handlers_with([])).trace == whole_run.trace


def test_numbers_come_back_exact(tmp_path: Path) -> None:
    output = {"n": Decimal("1.50"), "big": 9007199254740993}
    die = handlers_with([], a=lambda: output, b=killed())
    with pytest.raises(Killed):
        run(SPEC, tmp_path, die)
    result = run(SPEC, tmp_path, handlers_with([]))
    assert result.trace["variables"]["x"] == output
    assert str(result.trace["variables"]["x"]["n"]) == "1.50"


def test_an_output_as_deep_as_allowed_can_be_read_again(tmp_path: Path) -> None:
    output: Any = 1
    # One level less than a value may have, because the next action gets it inside its input.
    for _ in range(99):
        output = [output]
    with pytest.raises(Killed):
        run(SPEC, tmp_path, handlers_with([], a=lambda: output, b=killed()))
    assert isinstance(run(SPEC, tmp_path, handlers_with([])), RunResult)


def test_a_failed_attempt_stays_counted(tmp_path: Path) -> None:
    retry = {"limit": 2, "backoff_ms": 1000, "on": ["any"]}
    spec = workflow([action("a", "a", retry=retry)])
    codes = iter([-1])

    def first() -> Result:
        code = next(codes, None)
        if code is None:
            raise Killed
        return Result(code)

    with pytest.raises(Killed):
        run(spec, tmp_path, {"a": first}, clock=VirtualClock())
    result = run(spec, tmp_path, {"a": lambda: None}, clock=VirtualClock())
    assert result.trace["nodes"][1]["attempts"] == 2


def test_time_that_has_passed_stays_passed(tmp_path: Path) -> None:
    spec = workflow([sleep("s", 1000), action("a", "a")])
    with pytest.raises(Killed):
        run(spec, tmp_path, {"a": killed()}, clock=VirtualClock())
    opened = open_journal(tmp_path, _header(tmp_path))
    assert isinstance(opened, Journal)
    assert opened.last_ms == 1000
    opened.close()


def _header(folder: Path) -> dict[str, Any]:
    header: dict[str, Any] = json.loads((folder / FILE_NAME).read_text().splitlines()[0])
    return header


def refusal(folder: Path, spec: Any = SPEC, context: Any = None) -> str:
    refused = run(spec, folder, handlers_with([]), context)
    assert isinstance(refused, JournalRefused)
    return refused.reason


def test_a_journal_of_another_context_is_refused(tmp_path: Path) -> None:
    run(SPEC, tmp_path, handlers_with([]))
    assert refusal(tmp_path, context={"n": 1}).endswith("another context; use another folder")


def test_a_journal_of_another_content_is_refused(tmp_path: Path) -> None:
    run(SPEC, tmp_path, handlers_with([]))
    changed = workflow([action("a", "a")])
    assert "the workflow has changed since that run" in refusal(tmp_path, changed)


@pytest.mark.parametrize(
    "line",
    [b"{broken", b"[]", b'{"do": []}', b'{"do": "fly"}', b'{"do": "begin", "id": 2}', b"\xff"],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    run(SPEC, tmp_path, handlers_with([]))
    path = tmp_path / FILE_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], line + b"\n", *lines[1:]]))
    assert refusal(tmp_path).endswith("line 2 is damaged")


def test_a_file_that_is_no_journal_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(b'{"a": 1}\n')
    assert refusal(tmp_path).endswith("it is no journal of this version")
    assert path.read_bytes() == b'{"a": 1}\n'


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "file" in refusal(tmp_path / "file")


def test_a_journal_in_use_is_refused(tmp_path: Path) -> None:
    run(SPEC, tmp_path, handlers_with([]))
    opened = open_journal(tmp_path, _header(tmp_path))
    assert isinstance(opened, Journal)
    assert refusal(tmp_path).endswith("another run is using it")
    opened.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_os_error_of_the_run(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        journal = Journal(tmp_path, full.fileno(), {})
        with pytest.raises(OSError, match="No space left"):
            journal.write({"do": "redeliver"})


PROGRAM = """
import sys
from pathlib import Path
from local_runner.engine import LocalWorkflowEngine
from tests.unit.local_runner.graphs import action, foreach, lit, workflow

folder = Path(sys.argv[1])
spec = workflow([foreach("f", "x", lit(list(range(50))), [action("a", template={"x": "${var.x}"})],
                         parallel=0)])

def do(x):
    with open(folder / "ran", "a") as ran:
        ran.write(f"{x}\\n")
    print(x, flush=True)

result = LocalWorkflowEngine(spec, {"do": do}, parallel_workers=2).run({}, journal=folder)
print(result.status, flush=True)
"""


@pytest.mark.parametrize("killed_after", [1, 17])
def test_a_killed_process_goes_on(tmp_path: Path, killed_after: int) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        for _ in range(killed_after):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert done.stdout.endswith(b"SUCCEEDED\n")
    ran = [int(line) for line in (tmp_path / "ran").read_text().split()]
    assert set(ran) == set(range(50))
    # Only what was in hand at the kill may have run twice: one action of each worker.
    assert len(ran) - 50 <= 2

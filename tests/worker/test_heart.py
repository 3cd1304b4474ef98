"""The heart: which leases are extended when, what is passed on, and when its process ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from tests.worker.played_gateway import Answer, Asked, Played, playing, problem
from wfsql.worker import heart as heart_module
from wfsql.worker.heart import Beat, BeatFailed, GatewayBeater, Heart, Lease
from wfsql.worker.heartbeat import Heard, HeartProcess


class PlayedBeater:
    """Notes what it extends; ends the heart after so many calls."""

    def __init__(self, answers: Sequence[list[Beat] | BeatFailed]) -> None:
        self.answers = list(answers)
        self.beaten: list[list[int]] = []
        self.tokens: list[str] = []
        self.heart: Heart | None = None

    def beat(self, leases: Sequence[Lease], token: str) -> list[Beat]:
        self.beaten.append([held.task_id for held in leases])
        self.tokens.append(token)
        answer = self.answers.pop(0)
        if not self.answers and self.heart is not None:
            self.heart.end()
        if isinstance(answer, BeatFailed):
            raise answer
        return answer


Said = pytest.CaptureFixture[str]


@pytest.fixture
def said(capsys: Said) -> Said:
    """What the heart has written for its worker."""
    return capsys


def lines(said: Said) -> list[Any]:
    return [json.loads(line) for line in said.readouterr().out.splitlines()]


def play(messages: Iterable[Any], answers: Sequence[list[Beat] | BeatFailed]) -> PlayedBeater:
    beater = PlayedBeater(answers)
    heart = Heart(beater, "t1")
    beater.heart = heart
    for message in messages:
        heart.hear(message)
    heart.run(os.getppid())
    return beater


def test_a_lease_is_extended_when_a_third_of_it_is_over(said: Said) -> None:
    began = time.monotonic()
    beater = play([{"hold": [[1, 5, 0.9]]}], [[Beat(1, "NONE", True)]])
    assert beater.beaten == [[1]]
    assert 0.2 < time.monotonic() - began < 0.9
    assert lines(said) == []


def test_leases_that_are_nearly_due_go_along(said: Said) -> None:
    held = {"hold": [[1, 5, 0.3], [2, 5, 0.31], [3, 5, 60.0]]}
    assert play([held], [[]]).beaten == [[1, 2]]


def test_what_was_dropped_is_not_extended(said: Said) -> None:
    beater = play([{"hold": [[1, 5, 0.1], [2, 5, 0.2]]}, {"drop": [1]}], [[]])
    assert beater.beaten == [[2]]


def test_a_lost_lease_is_told_and_forgotten(said: Said) -> None:
    answers = [[Beat(1, "CANCEL", False), Beat(2, "NONE", True)], [Beat(2, "NONE", True)]]
    beater = play([{"hold": [[1, 5, 0.3], [2, 5, 0.3]]}], answers)
    assert beater.beaten == [[1, 2], [2]]
    assert lines(said) == [{"cancel": [1]}]


def test_a_command_is_told_once(said: Said) -> None:
    answers = [[Beat(1, "DRAIN", True)]] * 2 + [[Beat(1, "STOP", True)]]
    play([{"hold": [[1, 5, 0.3]]}], answers)
    assert lines(said) == [{"command": "DRAIN"}, {"command": "STOP"}]


def test_a_failed_beat_is_made_again_sooner(said: Said) -> None:
    failed = BeatFailed("HTTP 503")
    beater = play([{"hold": [[1, 5, 0.9]]}], [failed, [Beat(1, "NONE", True)]])
    assert beater.beaten == [[1], [1]]
    assert lines(said) == [{"note": "heartbeat: HTTP 503"}]


def test_a_refused_token_is_told_and_the_new_one_used(said: Said) -> None:
    beater = PlayedBeater([BeatFailed("HTTP 401", is_refused=True), []])
    heart = Heart(beater, "t1")
    beater.heart = heart
    heart.hear({"hold": [[1, 5, 0.3]]})
    really = beater.beat

    def beat(leases: Sequence[Lease], token: str) -> list[Beat]:
        try:
            return really(leases, token)
        finally:
            heart.hear({"token": "t2"})

    beater.beat = beat  # type: ignore[method-assign]
    heart.run(os.getppid())
    assert beater.tokens == ["t1", "t2"]
    assert lines(said) == [{"refused": True}]


def test_it_ends_when_the_worker_is_no_longer_its_parent() -> None:
    Heart(PlayedBeater([]), "t").run(os.getppid() + 1)


# Over HTTP --------------------------------------------------------------------------------------


@pytest.fixture
def played() -> Iterator[Played]:
    with playing() as made:
        yield made


def lease(number: int) -> Lease:
    return Lease(number, 5, 60.0, 0.0)


def test_leases_go_in_one_call_on_a_kept_connection(played: Played) -> None:
    rows = [
        {"task_id": 1, "rows_updated": 1, "desired_state": "ACTIVE", "command": "NONE"},
        {"task_id": 2, "rows_updated": 0, "desired_state": "ACTIVE", "command": "CANCEL"},
        {"task_id": 3, "problem": {"code": 20002}},
    ]
    played.answer = lambda _asked: Answer(body={"answers": rows})
    beater = GatewayBeater(f"{played.url}/flows", None, "w1", 60)
    for _ in range(2):
        beats = beater.beat([lease(1), lease(2), lease(3)], "secret")
        assert beats == [Beat(1, "NONE", True), Beat(2, "CANCEL", False)]
    first, second = played.asked
    assert first.path == "/flows/v1/workers/tasks/heartbeat"
    assert first.headers["Authorization"] == "Bearer secret"
    assert second.json == {
        "worker_id": "w1",
        "extend_seconds": 60,
        "leases": [{"task_id": n, "lease_token": 5} for n in (1, 2, 3)],
    }


@pytest.mark.parametrize(
    ("answer", "is_refused"),
    [
        (problem(401, 20001, "no"), True),
        (problem(503, "database", "not now"), False),
        (Answer(502, "<html>"), False),
        (Answer(200, "{}"), False),
        (Answer(200, "[1]"), False),
    ],
)
def test_anything_else_is_a_failed_beat(played: Played, answer: Answer, is_refused: bool) -> None:
    played.answer = lambda _asked: answer
    with pytest.raises(BeatFailed) as found:
        GatewayBeater(played.url, None, "w1", 60).beat([lease(1)], "secret")
    assert found.value.is_refused is is_refused


# The process ------------------------------------------------------------------------------------


class Ears:
    """Notes what a heart process says."""

    def __init__(self) -> None:
        self.cancelled: list[int] = []
        self.commands: list[str] = []
        self.refused = 0
        self.notes: list[str] = []

    def heard(self) -> Heard:
        def refused() -> None:
            self.refused += 1

        return Heard(self.cancelled.extend, self.commands.append, refused, self.notes.append)


def wait_for(condition: Any, seconds: float = 20) -> None:
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at, "the condition did not come true"
        time.sleep(0.01)


def start(played: Played) -> dict[str, Any]:
    return {"worker_id": "w1", "token": "t", "extend_seconds": 3, "gateway": played.url}


def lost(asked: Asked) -> Answer:
    held = [row["task_id"] for row in asked.json["leases"]]
    rows = [{"task_id": n, "rows_updated": 0, "command": "CANCEL"} for n in held]
    return Answer(body={"answers": rows})


def test_a_process_extends_and_tells(played: Played) -> None:
    played.answer = lost
    ears = Ears()
    process = HeartProcess(start(played))
    process.begin(ears.heard())
    try:
        process.hold([(1, 5, 0.3)])
        wait_for(lambda: ears.cancelled == [1])
    finally:
        process.end()
    assert ears.notes == []


def test_a_process_that_died_is_replaced_and_told_of_the_leases(played: Played) -> None:
    played.answer = lost
    ears = Ears()
    process = HeartProcess(start(played))
    process.begin(ears.heard())
    try:
        first = process.pid
        assert first is not None
        process.hold([(1, 5, 60.0), (2, 5, 1.0)])
        process.drop([1])
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: ears.cancelled == [2])
        assert process.pid != first
    finally:
        process.end()
    assert ears.notes == ["the heartbeat process has died; starting it again"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_for_all_processes_leaves_it_alive(played: Played, number: signal.Signals) -> None:
    played.answer = lost
    ears = Ears()
    process = HeartProcess(start(played))
    process.begin(ears.heard())
    try:
        process.hold([(1, 5, 0.3)])
        wait_for(lambda: ears.cancelled == [1])
        pid = process.pid
        assert pid is not None
        os.kill(pid, number)
        process.hold([(2, 5, 0.3)])
        wait_for(lambda: ears.cancelled == [1, 2])
        assert process.pid == pid
    finally:
        process.end()


PARENT = """
import sys
from wfsql.worker.heartbeat import Heard, HeartProcess
start = {"worker_id": "w", "token": "t", "extend_seconds": 3, "gateway": sys.argv[1]}
process = HeartProcess(start)
process.begin(Heard(print, print, print, print))
print(process.pid, flush=True)
sys.stdin.read()
"""


def test_it_ends_with_the_worker_even_when_that_is_killed(played: Played) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, played.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
        parent.wait(20)
        wait_for(lambda: not _is_alive(pid))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_it_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import wfsql.worker.heart;"
        "print([m for m in sys.modules if m.split('.')[0] in"
        " ('httpx', 'psycopg', 'pydantic', 'lark', 'compiler', 'runtime_sql', 'typer')])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code, os.getcwd()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
    assert heart_module.__doc__ is not None

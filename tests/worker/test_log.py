"""What a worker writes."""

from __future__ import annotations

import json

from tests.worker.fakes import finished
from wfsql.worker.log import JsonLog, TextLog


def text(quiet: bool = False) -> tuple[TextLog, list[str]]:
    lines: list[str] = []
    return TextLog(lines.append, is_quiet=quiet), lines


def test_a_task_is_one_line() -> None:
    log, lines = text()
    log.task(finished(3, code=-2, message="no stock", took_seconds=0.0123))
    assert lines == ["w/k[3] (1) act -> -2 in 12 ms: no stock"]


def test_a_quiet_log_tells_of_results_that_do_not_count() -> None:
    log, lines = text(quiet=True)
    log.task(finished(3))
    log.task(finished(4), refused="STALE")
    assert lines == ["w/k[4] (1) act: result not taken: STALE"]


def test_json_lines_say_what_belongs_to_a_task() -> None:
    lines: list[str] = []
    log = JsonLog("w1", write=lines.append)
    log.task(finished(3, code=-2, message="a\nb", took_seconds=0.0123))
    [line] = lines
    assert line.count("\n") == 1
    row = json.loads(line)
    assert row.pop("timestamp").endswith("Z")
    assert row == {
        "level": "warning",
        "event": "task done",
        "worker_id": "w1",
        "task": "w/k[3] (1) act",
        "task_id": 3,
        "result_code": -2,
        "took_ms": 12.3,
        "message": "a\nb",
    }


def test_json_lines_of_a_quiet_worker() -> None:
    lines: list[str] = []
    log = JsonLog("w1", is_quiet=True, write=lines.append)
    log.task(finished(3))
    log.note("told to DRAIN")
    assert [json.loads(line)["event"] for line in lines] == ["told to DRAIN"]

"""What a worker counts, and that the page lists it."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Event

from prometheus_client import generate_latest

from tests.worker.fakes import finished, task
from wfsql.worker.log import TextLog
from wfsql.worker.metrics import WorkerMetrics
from wfsql.worker.process import Outcome

PAGE = Path(__file__).parents[2] / "docs" / "observability.md"


def test_tasks_are_counted_by_action_and_code() -> None:
    metrics = WorkerMetrics()
    invoke = metrics.counted(lambda _task, _cancelled: Outcome(-2, None))
    invoke(task(1, "shop.pay"), Event())
    assert (
        metrics.registry.get_sample_value(
            "wf_worker_tasks_total", {"action": "shop.pay", "result_code": "-2"}
        )
        == 1
    )
    assert (
        metrics.registry.get_sample_value("wf_worker_handler_seconds_count", {"action": "shop.pay"})
        == 1
    )


def test_a_task_without_handler_is_not_counted() -> None:
    metrics = WorkerMetrics()
    assert metrics.counted(lambda _task, _cancelled: None)(task(1), Event()) is None
    assert b"wf_worker_tasks_total{" not in generate_latest(metrics.registry)


def test_lost_leases_are_counted_and_still_logged() -> None:
    lines: list[str] = []
    metrics = WorkerMetrics()
    log = metrics.log(TextLog(lines.append))
    log.task(finished(1), refused="STALE")
    log.task(finished(2), refused="CANCELLED")
    assert metrics.registry.get_sample_value("wf_worker_leases_lost_total") == 1
    assert len(lines) == 2


def test_what_is_in_hand_and_on_disk_is_asked_for_when_it_is_read() -> None:
    metrics = WorkerMetrics()
    numbers = {"hand": 1, "disk": 2}
    metrics.watch(lambda: numbers["hand"], lambda: numbers["disk"])
    numbers["hand"] = 5
    assert metrics.registry.get_sample_value("wf_worker_in_hand") == 5
    assert metrics.registry.get_sample_value("wf_worker_spool_size") == 2


def test_the_page_lists_the_metrics_with_their_labels() -> None:
    metrics = WorkerMetrics()
    metrics.counted(lambda _task, _cancelled: Outcome(0, None))(task(1), Event())
    stated = {
        name: set(re.findall(r"`(\w+)`", labels))
        for name, labels in re.findall(r"^\| `(wf_worker_\w+)` \|([^|]*)\|", PAGE.read_text(), re.M)
    }
    seen: dict[str, set[str]] = {}
    text = generate_latest(metrics.registry).decode()
    for name, labels in re.findall(r"^(wf_\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        if not name.endswith("_created"):
            stem = re.sub(r"_(bucket|sum|count)$", "", name)
            seen.setdefault(stem, set()).update(set(re.findall(r"(\w+)=", labels)) - {"le"})
    assert seen == stated

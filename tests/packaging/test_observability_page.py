"""docs/observability.md, and what other pages say of metrics, against the code."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

from tests.worker.fakes import finished
from wfsql.worker.log import JsonLog

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "observability.md").read_text()
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
# What structlog adds to every line, or to those of a fault.
ADDED = {"at", "level", "event", "exception"}


def fields_of(process: str) -> set[str]:
    return set(re.findall(rf"^\| {process} \| `(\w+)` \|", PAGE, re.MULTILINE))


def gateway_lines() -> list[tuple[str, set[str]]]:
    """Returns event and fields of each line that the gateway's code writes."""
    found = []
    for path in (ROOT / "wfsql" / "gateway").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and ast.unparse(node.func.value).endswith("log")
            ):
                event = node.args[0]
                assert isinstance(event, ast.Constant), ast.unparse(node)
                found.append((str(event.value), {str(k.arg) for k in node.keywords}))
    return found


def test_the_fields_of_the_gateways_log_are_those_of_the_page() -> None:
    written = set().union(*(fields for _event, fields in gateway_lines()))
    assert written | ADDED == fields_of("gateway")


def test_the_events_of_the_gateways_log_are_those_of_the_page() -> None:
    [line] = re.findall(r"^\| gateway \| `event` \|(.*)\|$", PAGE, re.MULTILINE)
    assert {event for event, _fields in gateway_lines()} == set(re.findall(r"`(\w+)`", line))


def test_the_fields_of_a_workers_log_are_those_of_the_page() -> None:
    lines: list[str] = []
    log = JsonLog("w", write=lines.append)
    log.note("text")
    log.task(finished(1, code=-1, message="no"))
    log.task(finished(1), refused="STALE")
    assert set().union(*map(json.loads, lines)) == fields_of("worker")


def test_metrics_that_pages_name_are_there() -> None:
    listed = set(re.findall(r"^\| `(wf_\w+)` \|", PAGE, re.MULTILINE))
    gateway = (ROOT / "docs" / "gateway.md").read_text()
    listed |= set(re.findall(r"^\| `(wf_\w+)` \|", gateway, re.MULTILINE))
    operations = (ROOT / "docs" / "operations.md").read_text()
    named = set(re.findall(r"`(wf_(?:gateway|queue|worker)_\w+)`", operations))
    roles = {"wf_gateway", "wf_worker"}
    assert named - roles
    assert named - roles <= listed

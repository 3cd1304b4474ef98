"""`wf why`: what an instance waits for, in one sentence per open node."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from dsl.plain import plain
from runtime_sql.connection import RuntimeClient
from wfsql.cli.database import INSTANCES_HINT, good, open_client
from wfsql.cli.operating import operator_parser, parse_one_id, timestamp, watch_seconds
from wfsql.cli.output import counted, terminal_width, write, write_json
from wfsql.cli.views import ENDED
from wfsql.cli.waits import Situation, Wait, headline, instance_advice, waits
from wfsql.cli.watching import show

_MOST_NODES = 1000
_MOST_ALIKE = 3
_WIDTH = 100
_UNIT = re.compile(r"(\d) (ms|s|min|h|days)\b")


def run(arguments: Sequence[str]) -> int:
    """Reads what is open in an instance and says why it is."""
    parser = operator_parser(
        "why",
        "ID",
        "Say what an instance waits for: one sentence for each open node, and what\ncould be done.",
        "wf why 17",
        watch=True,
    )
    options = parse_one_id(parser, arguments)
    seconds = watch_seconds(options)
    client = open_client(options.url)

    def draw() -> bool:
        situation = _look(client, options.id)
        found = waits(situation)
        if options.json:
            write_json(_document(situation, found))
        else:
            _write(situation, found)
        return situation.instance.status not in ENDED

    return show(draw, seconds)


def _look(client: RuntimeClient, instance_id: int) -> Situation:
    """Reads what is needed; the parts are read one after the other, while the instance goes on."""
    instance = good(client.get_instance(instance_id), INSTANCES_HINT)
    now = good(client.now())
    relative = terminal_width() is not None
    if instance.status in ENDED:
        return Situation(instance, (), {}, now, relative)
    nodes = good(client.open_nodes(instance_id, _MOST_NODES))
    blocked = {}
    if any(node.waits_for == "WORKER" for node in nodes):
        rows = good(client.unclaimable(instance_id, _MOST_NODES))
        blocked = {row.execution_id: row for row in rows}
    return Situation(instance, tuple(nodes), blocked, now, relative)


def _write(situation: Situation, found: Sequence[Wait]) -> None:
    _write_wrapped(headline(situation), "")
    alike = _alike(found)
    for sentence, some in alike.items():
        paths = [wait.node.path for wait in some]
        shown = ", ".join(paths[:_MOST_ALIKE])
        more = len(paths) - _MOST_ALIKE
        _write_wrapped(f"{shown}{f' and {more} more' if more > 0 else ''}: {sentence}", "  ")
    if len(found) == _MOST_NODES:
        write(f"  these are the {_MOST_NODES} oldest; there may be more")
    if not found and situation.instance.status == "RUNNING":
        write("  nothing of it is open at this moment; ask again")
    advice = [instance_advice(situation.instance), *(wait.advice for wait in found)]
    could = list(dict.fromkeys(text for text in advice if text is not None))
    if could:
        write("What could be done:")
        for text in could[:_MOST_ALIKE]:
            _write_wrapped(text, "  ")
        if len(could) > _MOST_ALIKE:
            write(f"  and {counted(len(could) - _MOST_ALIKE, 'more thing')} like these")


def _alike(found: Sequence[Wait]) -> dict[str, list[Wait]]:
    """Puts the nodes together of which the same can be said, in the order of the first."""
    groups: dict[str, list[Wait]] = {}
    for wait in found:
        groups.setdefault(wait.sentence, []).append(wait)
    return groups


def _write_wrapped(text: str, start: str) -> None:
    """Writes a sentence; on a terminal in lines that fit, those after the first further in."""
    width = terminal_width()
    if width is None:
        write(start + plain(text))
        return
    # A number and its unit stay together.
    text = _UNIT.sub("\\1\N{NO-BREAK SPACE}\\2", plain(text))
    lines = textwrap.wrap(
        text,
        min(width, _WIDTH),
        initial_indent=start,
        subsequent_indent=start + "  ",
        break_on_hyphens=False,
    )
    write("\n".join(lines).replace("\N{NO-BREAK SPACE}", " "))


def _document(situation: Situation, found: Sequence[Wait]) -> dict[str, Any]:
    instance = situation.instance
    return {
        "instance_id": instance.instance_id,
        "workflow": instance.workflow,
        "status": instance.status,
        "summary": headline(situation),
        "advice": instance_advice(instance),
        "waits": [_wait_json(wait) for wait in found],
    }


def _wait_json(wait: Wait) -> dict[str, Any]:
    node = wait.node
    return {
        "path": node.path,
        "type": node.type,
        "reason": wait.reason,
        "sentence": wait.sentence,
        "advice": wait.advice,
        "opened_at": timestamp(node.opened_at),
        "action": node.action,
        "capability": node.capability,
        "attempt": node.attempt,
        "attempt_limit": node.attempt_limit,
        "available_at": timestamp(node.available_at),
        "worker": node.worker_id,
        "claimed_at": timestamp(node.claimed_at),
        "lease_until": timestamp(node.lease_until),
        "due_at": timestamp(node.due_at or node.deadline),
        "event_type": node.event_type,
        "correlation_key": node.correlation_key,
        "total_count": node.total_count,
        "succeeded_count": node.succeeded_count,
        "failed_count": node.failed_count,
    }

"""`wf logs`: the attempts at an instance's actions, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any

from runtime_sql.operator_rows import Attempt
from wfsql.cli.database import INSTANCES_HINT, good, open_client
from wfsql.cli.operating import (
    add_limit,
    operator_parser,
    parse_one_id,
    span,
    timestamp,
    watch_seconds,
)
from wfsql.cli.output import (
    Crop,
    say,
    short_time,
    table_width,
    terminal_width,
    write_json,
    write_table,
)
from wfsql.cli.views import ENDED
from wfsql.cli.watching import show

_CROPS = {
    "MESSAGE": Crop(16),
    "WORKER": Crop(8, keep="ends"),
    "PATH": Crop(16, keep="end"),
}
_DROPS = ("WORKER",)
_LEASE_LOST = 10014


def run(arguments: Sequence[str]) -> int:
    """Lists attempts in the order of their time."""
    parser = operator_parser(
        "logs",
        "ID",
        "List the attempts at an instance's actions: when each began, who made it,\n"
        "how it ended, its result code and message, and how long it took.",
        "wf logs 17",
        watch=True,
    )
    add_limit(parser, 1000, "attempts, those of the newest actions")
    options = parse_one_id(parser, arguments)
    seconds = watch_seconds(options)
    client = open_client(options.url)

    def draw() -> bool:
        instance = good(client.get_instance(options.id), INSTANCES_HINT)
        rows = sorted(good(client.attempts(options.id, options.limit)), key=_moment)
        if options.json:
            write_json([_json(row) for row in rows])
        elif rows:
            _write(rows)
        else:
            say(f"no action of instance {options.id} {_never(instance.status in ENDED)}")
        if len(rows) == options.limit:
            say(f"note: these are {options.limit}; --limit shows more")
        return instance.status not in ENDED

    return show(draw, seconds)


def _never(has_ended: bool) -> str:
    return "was ever claimed" if has_ended else "has been claimed yet"


def _moment(row: Attempt) -> tuple[float, int, int]:
    """When an attempt began, or ended if nobody knows when it began."""
    at = row.started_at or row.ended_at
    return (at.timestamp() if at else float("inf"), row.execution_id, row.attempt)


def _write(rows: Sequence[Attempt]) -> None:
    table = _table(rows, narrow=False)
    width = terminal_width()
    if width is not None and table_width(table) > width:
        table = _table(rows, narrow=True)
    crops = {name: crop for name, crop in _CROPS.items() if name in table[0]}
    write_table(table[0], table[1:], crops, _DROPS)


def _table(rows: Sequence[Attempt], narrow: bool) -> list[list[str]]:
    columns: dict[str, list[str]] = {
        "STARTED": _starts(rows, narrow),
        "PATH": [row.path for row in rows],
        "TRY": [str(row.attempt) for row in rows],
        "WORKER": [row.worker_id or "" for row in rows],
        "STATUS": ["LOST" if _is_lost(row) else row.status for row in rows],
        "CODE": ["" if (code := _code(row)) is None else str(code) for row in rows],
        "TOOK": ["" if (ms := _took_ms(row)) is None else span(ms / 1000) for row in rows],
    }
    if any(row.message for row in rows):
        columns["MESSAGE"] = [_message(row) for row in rows]
    return [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]


def _starts(rows: Sequence[Attempt], narrow: bool) -> list[str]:
    """The times; where there is little room and all are of one day, without the day."""
    starts = [row.started_at for row in rows]
    if narrow and len({at.astimezone(UTC).date() for at in starts if at is not None}) == 1:
        return ["" if at is None else at.astimezone(UTC).strftime("%H:%M:%SZ") for at in starts]
    return [short_time(at, narrow=narrow) for at in starts]


def _code(row: Attempt) -> int | None:
    return row.engine_error_code if row.result_code is None else row.result_code


def _is_lost(row: Attempt) -> bool:
    """Whether the lease ran out and was taken back: the worker died, or could not be heard."""
    return row.result_code is None and row.engine_error_code == _LEASE_LOST


def _message(row: Attempt) -> str:
    if not _is_lost(row):
        return row.message or ""
    took = _took_ms(row)
    after = "" if took is None else f", after {span(took / 1000)}"
    return f"lease lost, worker {row.worker_id}{after}"


def _took_ms(row: Attempt) -> int | None:
    if row.started_at is None or row.ended_at is None:
        return None
    return round((row.ended_at - row.started_at).total_seconds() * 1000)


def _json(row: Attempt) -> dict[str, Any]:
    return {
        "path": row.path,
        "action": row.action,
        "attempt": row.attempt,
        "worker": row.worker_id,
        "status": row.status,
        "code": row.result_code,
        "engine_code": row.engine_error_code,
        "message": row.message,
        "started_at": timestamp(row.started_at),
        "ended_at": timestamp(row.ended_at),
        "took_ms": _took_ms(row),
    }

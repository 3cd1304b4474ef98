"""The least that an engine must do, as pgbench does it: claim work, say that it is done, commit.

One row for a piece of work: whose it is, its payload, its result, its times. What counts as done is
counted in the table. Nothing here knows of workflows, leases or retries: it is the bar that any
engine on this server can be held against.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from benchmarks.durable import Durable, program
from benchmarks.measure import BenchmarkError
from benchmarks.throughput.bench import Run, measured

STEPS = 5
_TABLES = """
create table work (
    work_id bigint generated always as identity primary key,
    state "char" not null default 'r',
    worker integer,
    payload jsonb not null default '{}',
    result jsonb,
    created_at timestamptz not null default now(),
    claimed_at timestamptz,
    ended_at timestamptz
);
create index on work (work_id) where state = 'r';
create table checkpoint_row (
    work_id bigint, step integer, result jsonb not null, made_at timestamptz not null default now(),
    primary key (work_id, step)
);
"""
_CLAIM = """
update work w set state = 'c', worker = :client_id, claimed_at = now()
 where w.work_id = (select r.work_id from work r where r.state = 'r'
                     order by r.work_id limit 1 for update skip locked)
returning w.work_id \\gset
"""
_COMPLETE = """
update work w set state = 'd', result = '{"ok": true}', ended_at = now() where w.work_id = :work_id;
"""
_CLAIM_FIFTY = """
with claimed as (
    update work w set state = 'c', worker = :client_id, claimed_at = now()
     where w.work_id in (select r.work_id from work r where r.state = 'r'
                          order by r.work_id limit 50 for update skip locked)
    returning w.work_id)
select '{' || coalesce(string_agg(c.work_id::text, ','), '') || '}' as taken from claimed c \\gset
"""
_COMPLETE_FIFTY = """
update work w set state = 'd', result = '{"ok": true}', ended_at = now()
 where w.work_id = any(:taken::bigint[]);
"""
_CHECKPOINTS = "".join(
    "insert into checkpoint_row (work_id, step, result)"
    f" values (:work_id, {step}, '{{\"ok\": true}}');\n"
    for step in range(STEPS)
)
_DONE = "select count(*) from work w where w.state = 'd'"


@dataclass(frozen=True, slots=True)
class Floor:
    """One protocol: its script, how many connections run it, what of it is counted."""

    name: str
    script: str
    clients: int
    counted: str
    unit: str
    rows_per_second: int


ONE_BY_ONE = Floor("floor, one by one", _CLAIM + _COMPLETE, 4, _DONE, "job", 20_000)
FIFTIES = Floor("floor, in fifties", _CLAIM_FIFTY + _COMPLETE_FIFTY, 4, _DONE, "job", 200_000)
CHECKPOINTS = Floor(
    "floor, a row for each step",
    _CLAIM + _CHECKPOINTS + _COMPLETE,
    4,
    "select count(*) from checkpoint_row",
    "step",
    10_000,
)
LATENCY = Floor(
    "floor, insert, claim, complete",
    "insert into work (payload) values ('{}');\n" + _CLAIM + _COMPLETE,
    1,
    _DONE,
    "job",
    0,
)
FLOORS = (ONE_BY_ONE, FIFTIES, CHECKPOINTS, LATENCY)


def run_floor(server: Durable, floor: Floor, seconds: int) -> Run:
    """Fills a fresh database with more work than the time is enough for, and lets pgbench loose."""
    name = server.fresh()
    try:
        with (
            psycopg.connect(server.url(name), autocommit=True) as connection,
            tempfile.TemporaryDirectory(prefix="wfsql-bench-") as folder,
        ):
            connection.execute(_TABLES.encode())
            connection.execute(
                "insert into work (payload) select '{}' from generate_series(1, %s)",
                (floor.rows_per_second * seconds,),
            )
            connection.execute("vacuum analyze")
            connection.execute("checkpoint")
            command = _command(server.url(name), floor, seconds, Path(folder))
            before = server.reading()
            with subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            ) as child:
                _out, said = child.communicate()
            after = server.reading()
            if child.returncode:
                raise BenchmarkError(f"pgbench: {said.decode().strip().splitlines()[-1]}")
            units = _count(connection, floor.counted)
            latencies = _latencies(Path(folder)) if floor is LATENCY else ()
    finally:
        server.drop(name)
    return measured(
        floor.name, floor.unit, units, after.at - before.at, (before, after), latencies_ms=latencies
    )


def _command(url: str, floor: Floor, seconds: int, folder: Path) -> list[str]:
    script = folder / "script.sql"
    script.write_text(floor.script, encoding="utf-8")
    where = conninfo_to_dict(url)
    options = ["-n", "-M", "prepared", "-c", str(floor.clients), "-j", str(min(floor.clients, 2))]
    if floor is LATENCY:
        options += ["-l", "--log-prefix", str(folder / "log")]
    place = ["-h", str(where["host"]), "-U", str(where["user"]), str(where["dbname"])]
    return [program("pgbench"), *options, "-T", str(seconds), "-f", str(script), *place]


def _latencies(folder: Path) -> tuple[float, ...]:
    """Milliseconds of each transaction of the script, which is in fact three."""
    lines = (line for log in folder.glob("log*") for line in log.read_text().splitlines())
    return tuple(int(line.split()[2]) / 1000 for line in lines)


def _count(connection: psycopg.Connection[Any], statement: str) -> int:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return int(row[0])

"""Who is measured: packages, drivers, variants with their workloads, and what to know of each."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.peers.installs import PSYCOPG, Snapshot

WORKLOADS = ("steps", "fan", "idle", "drain")


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a peer. `how`: its settings and what it lacks, shown beside the numbers."""

    name: str
    workloads: tuple[str, ...]
    how: str


@dataclass(frozen=True, slots=True)
class Peer:
    """`sql`: what its package does not carry, read from a snapshot when it runs."""

    name: str
    driver: str
    packages: tuple[str, ...]
    variants: tuple[Variant, ...]
    sql: Snapshot | None = None

    @property
    def in_node(self) -> bool:
        return self.driver.endswith(".mjs")


# Who hands work to processes through a queue in the database, and who comes nearest without a queue
# of steps: absurd's workers claim a workflow and then write a row for each step of their own.
DISPATCHES = "dbos, queue"
CHECKPOINTS = "absurd"
_JOBS = "jobs only"
PEERS = (
    Peer(
        "absurd",
        "absurd_driver.py",
        ("absurd-sdk==0.5.1", PSYCOPG),
        (
            Variant(
                "",
                WORKLOADS,
                "claims of 10, 50 or (idle) 1; looks every 20 ms (default 250);"
                " steps are checkpoints in process",
            ),
        ),
        sql=Snapshot(("earendil-works+absurd", "absurd"), "sql/absurd.sql"),
    ),
    Peer(
        "dbos",
        "dbos_driver.py",
        ("dbos==3.4.0", PSYCOPG),
        (
            Variant(
                "queue",
                WORKLOADS,
                "4 or 50 at a time in a process, looks every 20 ms (default 1 s), pool of 20;"
                " steps are checkpoints in process",
            ),
            Variant(
                "in process",
                ("steps", "fan", "idle"),
                "pool of 20; nothing is dispatched, steps are checkpoints in process",
            ),
        ),
    ),
    Peer(
        "pgqueuer",
        "pgqueuer_driver.py",
        ("pgqueuer[asyncpg]==1.6.0", "uvloop==0.23.0", PSYCOPG),
        (
            Variant(
                "",
                ("fan", "idle", "drain"),
                f"{_JOBS}; batches of 50 (idle: 1), done written 50 at a time, uvloop",
            ),
        ),
    ),
    Peer(
        "graphile-worker",
        "graphile_driver.mjs",
        ("graphile-worker@0.18.0", "pg@8.23.1"),
        (
            Variant(
                "plain",
                ("fan", "idle", "drain"),
                f"{_JOBS}, no results kept; 24 at a time in a process (idle: 1)",
            ),
            Variant(
                "batched",
                ("fan", "drain"),
                f"{_JOBS}, no results kept; local queue of 500, done written in batches",
            ),
        ),
    ),
    Peer(
        "pg-boss",
        "pgboss_driver.mjs",
        ("pg-boss@12.38.0", "pg@8.23.1"),
        (
            Variant(
                "one by one",
                ("fan", "idle", "drain"),
                f"{_JOBS}; 10 at a time in a process, notified, bursts",
            ),
            Variant("batch", ("fan", "drain"), f"{_JOBS}; batches of 50 that end as one, notified"),
            Variant("flow", ("fan",), "dependencies, no data passed; batches of 50, notified"),
        ),
    ),
)

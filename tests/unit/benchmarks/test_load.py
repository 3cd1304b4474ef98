"""The load benchmarks, at their smallest: what they count is what was done."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from benchmarks.durable import Durable, Reading, spent
from benchmarks.measure import BenchmarkError
from benchmarks.peers import report as peers_report
from benchmarks.peers.floor import FIFTIES, LATENCY, Floor, run_floor
from benchmarks.peers.installs import NotRun, Snapshot, read_snapshot
from benchmarks.peers.subjects import PEERS, WORKLOADS
from benchmarks.peers.trials import DRIVERS
from benchmarks.throughput import beside, chains, shapes, tables
from benchmarks.throughput.bench import TINY, Bench, Run, percentile
from benchmarks.throughput.report import by_row, rate_table
from benchmarks.throughput.targets import targets
from benchmarks.throughput.workflows import ACTIONS, deploy_all
from wfsql.embedded import EmbeddedServer

_numbers = count(1)


@pytest.fixture
def server(pg_server: EmbeddedServer) -> Iterator[Durable]:
    opened = Durable(pg_server, prefix=f"bench{os.getpid()}_{next(_numbers)}")
    yield opened
    opened.disconnect()


@pytest.fixture
def bench(server: Durable, pg_template: str) -> Iterator[Bench]:
    template = server.fresh(pg_template)
    deploy_all(server.url(template))
    yield Bench(server, template, TINY)
    server.drop(template)


def test_every_step_of_the_chains_is_counted_once(bench: Bench) -> None:
    (run,) = chains.steps(bench, batches=(5,))
    assert (run.row, run.unit) == ("five actions, batch 5", "step")
    assert run.units == TINY.chains * ACTIONS
    assert run.seconds > 0
    assert run.spent["write_transactions"] > 0
    assert run.spent["wal_bytes"] > 0


def test_workers_that_feed_themselves_end_what_they_start(bench: Bench) -> None:
    with bench.database() as url:
        run = chains.feed(bench, url, 1, 1.0, "fed")
    assert run.units > 0


def test_the_fan_out_ends_with_its_join(bench: Bench) -> None:
    run = next(shapes.fan_out(bench))
    assert (run.unit, run.units) == ("task", TINY.fan)


def test_each_event_completes_one_wait(bench: Bench) -> None:
    (run,) = tables.events(bench)
    assert (run.unit, run.units) == ("event", TINY.waiting)


def test_claims_are_timed_beside_what_stands_in_the_tables(bench: Bench) -> None:
    runs = list(tables.claims(bench))
    assert [run.row for run in runs] == [
        "claim 1 beside 10 READY, 10 ended",
        "claim 50 beside 10 READY, 10 ended",
        "claim 1 beside 20 READY, 10 ended",
        "claim 50 beside 20 READY, 10 ended",
    ]
    assert all(run.more["pages"] > 0 for run in runs)


@pytest.mark.parametrize("floor", [FIFTIES, LATENCY], ids=lambda floor: floor.name)
def test_the_floor_counts_what_is_done(server: Durable, floor: Floor) -> None:
    run = run_floor(server, floor, 1)
    assert run.units > 0
    assert bool(run.latencies_ms) == (floor is LATENCY)


def test_what_is_spent_is_given_for_each_unit() -> None:
    before = Reading(10.0, 1_000, 5, 1.0, 2.0, 10.0)
    after = Reading(12.0, 5_000, 25, 1.5, 2.25, 11.0)
    found = spent(before, after, 10)
    assert found["wal_bytes"] == 400
    assert found["write_transactions"] == 2
    assert found["server_cpu_ms"] == 50
    assert found["load_cpu_ms"] == 25
    assert found["foreign"] == round(0.25 / 2.0 / (os.cpu_count() or 1), 3)


@pytest.mark.parametrize(
    ("share", "wanted"), [(0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100), (0.001, 1)]
)
def test_a_percentile_is_a_value_that_was_found(share: float, wanted: int) -> None:
    assert percentile(list(range(100, 0, -1)), share) == wanted


def _run(row: str, rate: int, workload: str = "steps") -> dict[str, object]:
    spending = {
        "server_cpu_ms": 1.0,
        "load_cpu_ms": 0.5,
        "write_transactions": 2.0,
        "wal_bytes": 700.0,
        "foreign": 0.02,
    }
    run = Run(row=row, unit="step", units=rate, seconds=1.0, spent=spending)
    return {"workload": workload, **run.as_data()}


def test_a_row_shows_the_median_of_its_rounds_and_how_far_they_lie_apart() -> None:
    table = rate_table(by_row([_run("a", 300), _run("a", 100), _run("a", 200)]))
    assert table.splitlines()[2].startswith("| a | step | 200 | 100–300 |")


def test_rates_beside_others_are_also_given_as_parts_of_the_floor() -> None:
    data = {
        "runs": [_run("the floor", 400, "floor"), _run("a", 100), _run("a", 300)],
        "how": {"a": "batches of 5"},
        "not_run": {"b": "no snapshot"},
    }
    text = peers_report.tables(data)
    assert "### The floor" in text
    assert "| a | 200 | 100–300 | 0.500 | 2.000 | 700 | 1.000 | 0.500 | 2% | batches of 5 |" in text
    assert "- b: no snapshot" in text


def test_what_was_wanted_is_held_against_what_was_found() -> None:
    rows = by_row(
        [
            _run("five actions, batch 1", 1_600),
            _run("direct, batch 20", 1_000),
            _run("through the gateway, batch 20", 500),
        ]
    )
    found = {target.what: target for target in targets(rows)}
    assert found["actions/s, one by one"].is_reached
    assert "**not reached**" not in found["actions/s, one by one"].line()
    through = found["through the gateway, batch 20, part of that without"]
    assert through.line().endswith("| at least 0.6 | 0.50 | **not reached** |")
    assert len(found) == 2


def test_sql_that_no_snapshot_has_is_a_reason_not_to_run(tmp_path: Path) -> None:
    wanted = Snapshot(("owner+name",), "sql/x.sql")
    none = read_snapshot(None, wanted, tmp_path / "x.sql")
    missing = read_snapshot(tmp_path, wanted, tmp_path / "x.sql")
    assert none == NotRun("its SQL is read from a snapshot: give --snapshots")
    assert missing == NotRun("sql/x.sql is not in a snapshot: looked for owner+name")


def test_every_peer_has_a_driver_and_says_how_it_is_set() -> None:
    for peer in PEERS:
        assert (DRIVERS / peer.driver).exists(), peer.driver
        for variant in peer.variants:
            assert variant.how
            assert set(variant.workloads) <= set(WORKLOADS)


def test_what_is_written_down_can_be_read_again() -> None:
    run = Run(row="a", unit="job", units=4, seconds=2.0, spent={}, latencies_ms=(1.0, 2.0, 3.0))
    data = json.loads(json.dumps(run.as_data()))
    assert (data["rate"], data["p50_ms"], data["p99_ms"]) == (2.0, 2.0, 3.0)


def test_a_worker_that_does_not_start_is_an_error() -> None:
    from benchmarks.throughput.crew import crew

    with pytest.raises(BenchmarkError, match="ended with 1"), crew("benchmarks.nothing", [{}]):
        pass


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("engine", "claim, READY 1,000"),
        ("compiler", "wf check, 10,000 nodes"),
        ("runner", "local foreach of 1,000"),
    ],
)
def test_the_other_benchmarks_give_their_figures_to_the_one_table(name: str, what: str) -> None:
    data = json.loads((beside.RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert what in beside.figures(name, data)

"""Reuse of iterations in PostgreSQL (S9, R8): keys, hits, what is skipped, what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from compiler import json_values
from compiler.spec import GraphSpec
from tests.runtime_sql import drive

Connection = psycopg.Connection[Any]

FINGERPRINT = "ab" * 32

EACH = """
    workflow w {
      input { xs : list<any> }
      output { got = var.got }
      foreach x in var.xs {
        action a = t.do(x: var.x)
        collect got = ctx.task.a.output
      }
    }
"""


@pytest.fixture
def connection(any_url: str) -> Iterator[Connection]:
    with drive.connect(any_url) as connection:
        drive.stop_clock(connection)
        yield connection


def reusing(spec: GraphSpec, key: str = "foreach_1", reads: list[Any] | None = None) -> GraphSpec:
    """The graph with `reuse` on one of its FOREACHs."""
    nodes = [
        node.model_copy(
            update={
                "attributes": node.attributes
                | {"reuse": {"fingerprint": FINGERPRINT, "reads": reads or []}}
            }
        )
        if node.key == key
        else node
        for node in spec.nodes
    ]
    return spec.model_copy(update={"nodes": nodes})


def deploy(connection: Connection, folder: Path, text: str = EACH, **more: Any) -> None:
    drive.deploy(connection, reusing(drive.compile_text(folder, text), **more))


def run(connection: Connection, context: dict[str, Any], **results: Any) -> dict[str, Any]:
    """Runs workflow w to its end and answers its trace."""
    instance = drive.start(connection, "w", context)
    drive.drain(connection, drive.Scripted({k: list(v) for k, v in results.items()}))
    return drive.trace(connection, instance)


def statuses(document: dict[str, Any], type_: str = "SEQUENCE") -> dict[str, str]:
    return {
        n["path"]: n["status"]
        for n in document["nodes"]
        if n["type"] == type_ and n["path"].endswith("]")
    }


def test_what_ran_before_is_skipped_with_what_it_exported(
    connection: Connection, tmp_path: Path
) -> None:
    deploy(connection, tmp_path)
    first = run(connection, {"xs": [1, 2]}, a=[(0, "one"), (0, "two")])
    again = run(connection, {"xs": [2, 3, 1]}, a=[(0, "three")])

    assert set(statuses(first).values()) == {"SUCCEEDED"}
    assert statuses(again) == {
        "w/foreach_1[0]": "SKIPPED",
        "w/foreach_1[1]": "SUCCEEDED",
        "w/foreach_1[2]": "SKIPPED",
    }
    assert again["output"] == {"got": ["two", "three", "one"]}
    assert [n["path"] for n in again["nodes"] if n["type"] == "ACTION"] == ["w/foreach_1[1]/a"]


def test_a_skipped_iteration_stands_in_the_trace_with_item_and_output(
    connection: Connection, tmp_path: Path
) -> None:
    deploy(connection, tmp_path)
    run(connection, {"xs": ["a"]}, a=[(0, 7)])
    (row,) = [n for n in run(connection, {"xs": ["a"]})["nodes"] if n["path"].endswith("[0]")]

    assert row == {
        "path": "w/foreach_1[0]",
        "type": "SEQUENCE",
        "status": "SKIPPED",
        "attempts": 1,
        "result_code": 0,
        "input": None,
        "output": {"got": 7},
        "error": None,
        "variables": {"x": "a"},
    }


ITEMS = [
    1,
    1.50,
    -0.0,
    10**30,
    "a b",
    'é😀"\\\n\x7f',
    True,
    None,
    {"b": [1, {}], "a": {"é": None, "Z": []}},
    [],
    [[1.0]],
]


def keys(connection: Connection) -> list[str]:
    return [
        row[0]
        for row in connection.execute(
            "select content_key from wf.foreach_item order by node_execution_id, iteration_no"
        )
    ]


def test_the_key_is_the_hash_of_what_the_iteration_depends_on(
    connection: Connection, tmp_path: Path
) -> None:
    text = EACH.replace("foreach x in", "foreach x, i in").replace(
        "input {", "input { most : int = 3 "
    )
    reads = [
        ["ctx", "context", ["xs", 0]],
        ["ctx", "context", ["nowhere"]],
        ["ctx", "index", []],
        ["ctx", "iterationNo", []],
        ["var", "most", "w", []],
    ]
    spec = reusing(drive.compile_text(tmp_path, text), reads=reads)
    drive.deploy(connection, spec)
    items = [json_values.from_python(item) for item in ITEMS]
    drive.start(connection, "w", {"xs": items})

    assert keys(connection) == [
        json_values.sha256_hex(
            ["w", FINGERPRINT, "foreach_1", item, [], [[1], [], [i], [i + 1], [3]]]
        )
        for i, item in enumerate(items)
    ]


def test_the_index_variable_counts_as_what_is_read(connection: Connection, tmp_path: Path) -> None:
    text = EACH.replace("foreach x in", "foreach x, i in")
    drive.deploy(
        connection,
        reusing(drive.compile_text(tmp_path, text), reads=[["var", "i", "foreach_1.body", []]]),
    )
    drive.start(connection, "w", {"xs": ["a", "a"]})

    assert keys(connection) == [
        json_values.sha256_hex(["w", FINGERPRINT, "foreach_1", "a", [], [[i]]]) for i in (0, 1)
    ]


NESTED = """
    workflow w {
      input { xs : list<list<int>> }
      foreach xs2 in var.xs {
        foreach batch in var.xs2 batch 2 {
          foreach x in var.batch parallel {
            action a = t.do(x: var.x)
          }
        }
      }
    }
"""


def test_items_of_the_enclosing_foreachs_are_part_of_the_key(
    connection: Connection, tmp_path: Path
) -> None:
    deploy(connection, tmp_path, NESTED, key="foreach_3")
    drive.start(connection, "w", {"xs": [[5, 6, 7]]})
    assert keys(connection)[-2:] == [
        json_values.sha256_hex(["w", FINGERPRINT, "foreach_3", x, [[5, 6, 7], [5, 6]], []])
        for x in (5, 6)
    ]
    drive.drain(connection, drive.Scripted())

    run(connection, {"xs": [[1, 5, 6]]})
    hits = statuses(run(connection, {"xs": [[5, 6, 7]]}))
    assert hits["w/foreach_1[0]/foreach_2[0]/foreach_3[1]"] == "SKIPPED"
    assert {p for p, s in hits.items() if s != "SKIPPED"} == {
        "w/foreach_1[0]",
        "w/foreach_1[0]/foreach_2[0]",
        "w/foreach_1[0]/foreach_2[1]",
    }


def test_batches_are_what_a_reusing_foreach_counts(connection: Connection, tmp_path: Path) -> None:
    deploy(connection, tmp_path, EACH.replace("in var.xs {", "in var.xs batch 2 {"))
    run(connection, {"xs": [1, 2, 3]})

    assert list(statuses(run(connection, {"xs": [1, 2, 3, 4]})).values()) == [
        "SKIPPED",
        "SUCCEEDED",
    ]


@pytest.mark.parametrize("how", ["", "parallel", "parallel 2"])
def test_hits_take_no_place_among_those_that_run(
    connection: Connection, tmp_path: Path, how: str
) -> None:
    deploy(connection, tmp_path, EACH.replace("in var.xs {", f"in var.xs {how} {{"))
    run(connection, {"xs": [1, 3, 4, 7]}, a=[(0, n) for n in "acdg"])
    instance = drive.start(connection, "w", {"xs": [1, 2, 3, 4, 5, 6, 7]})
    width = {"": 1, "parallel": 3, "parallel 2": 2}[how]

    assert (
        connection.execute(
            "select open_count, succeeded_count, next_index from wf.join_counter"
        ).fetchone()
        == {1: (1, 1, 2), 3: (3, 4, 7), 2: (2, 3, 5)}[width]
    )
    drive.drain(connection, drive.Scripted({"a": [(0, n) for n in "bef"]}))
    document = drive.trace(connection, instance)
    assert document["output"] == {"got": list("abcdefg")}
    assert list(statuses(document).values()).count("SKIPPED") == 4


def test_the_deciding_routine_stops_after_the_slots_it_may_fill(
    connection: Connection, tmp_path: Path
) -> None:
    deploy(connection, tmp_path)
    run(connection, {"xs": ["b", "d", "e"]})
    drive.start(connection, "w", {"xs": ["a", "b", "c", "d", "e"]})

    def decide(start: int, slots: int) -> Any:
        return connection.execute(
            "select s.* from wf.join_counter c cross join lateral"
            " wf.wf_foreach_caas_try_skip_body(c.node_execution_id, %s, %s, wf.wf_now()) s",
            (start, slots),
        ).fetchone()

    assert decide(1, 1) == ([2], 1, 3)
    assert decide(3, 4) == ([], 2, 5)


def test_a_foreach_of_hits_alone_succeeds_when_it_starts(
    connection: Connection, tmp_path: Path
) -> None:
    deploy(connection, tmp_path)
    run(connection, {"xs": [1, 2, 3]}, a=[(0, 1), (0, 2), (0, 3)])
    instance = drive.start(connection, "w", {"xs": [3, 2, 1]})

    document = drive.trace(connection, instance)
    assert (document["status"], document["output"]) == ("SUCCEEDED", {"got": [3, 2, 1]})
    assert connection.execute("select count(*) from wf.join_counter").fetchone() == (0,)
    assert connection.execute("select count(*) from wf.foreach_item").fetchone() == (0,)


def test_failed_iterations_are_not_kept_and_hits_are_tolerated_ones_no_failures(
    connection: Connection, tmp_path: Path
) -> None:
    deploy(connection, tmp_path, EACH.replace("in var.xs {", "in var.xs tolerate 1 {"))
    first = run(connection, {"xs": [1, 2, 3]}, a=[(0, 1), (-1, None), (0, 3)])
    again = run(connection, {"xs": [1, 2, 3]}, a=[(-1, None)])

    assert list(statuses(first).values()) == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert list(statuses(again).values()) == ["SKIPPED", "FAILED", "SKIPPED"]
    assert (again["status"], again["output"]) == ("SUCCEEDED", {"got": [1, None, 3]})


def test_iterations_after_a_failure_are_not_skipped_but_never_start(
    connection: Connection, tmp_path: Path
) -> None:
    deploy(connection, tmp_path)
    run(connection, {"xs": [2]})
    document = run(connection, {"xs": [1, 2]}, a=[(-1, None)])

    assert document["status"] == "FAILED"
    assert statuses(document) == {"w/foreach_1[0]": "FAILED"}


def test_without_collect_there_is_no_output(connection: Connection, tmp_path: Path) -> None:
    text = "workflow w { input { xs : list<int> } foreach x in var.xs { action a = t.do() } }"
    deploy(connection, tmp_path, text)
    first = run(connection, {"xs": [1]})
    again = run(connection, {"xs": [1]})

    outputs = [n["output"] for d in (first, again) for n in d["nodes"] if n["path"][-1] == "]"]
    assert outputs == [None, None]
    assert statuses(again) == {"w/foreach_1[0]": "SKIPPED"}


def test_force_rerun_knows_no_hits_and_replaces_what_is_there(
    connection: Connection, tmp_path: Path
) -> None:
    deploy(connection, tmp_path)
    run(connection, {"xs": [1]}, a=[(0, "old")])
    forced = run(connection, {"xs": [1], "forceRerun": True}, a=[(0, "new")])
    after = run(connection, {"xs": [1]})

    assert statuses(forced) == {"w/foreach_1[0]": "SUCCEEDED"}
    assert after["output"] == {"got": ["new"]}
    assert connection.execute("select count(*) from wf.foreach_bundle_entry").fetchone() == (1,)


TWICE = """
    workflow w {
      output { got = var.got }
      repeat 2 {
        foreach x in [1, 1] {
          action a = t.do(x: var.x)
          collect got = ctx.task.a.output
        }
      }
    }
"""


def test_what_the_call_itself_wrote_is_no_hit_and_what_an_earlier_one_wrote_is(
    connection: Connection, tmp_path: Path
) -> None:
    """The second round is activated by the call that ends the second iteration of the first."""
    text = TWICE.replace("[1, 1]", "[1, 2]").replace("output { got = var.got }", "")
    deploy(connection, tmp_path, text)

    assert statuses(run(connection, {})) == {
        "w/repeat_1[0]": "SUCCEEDED",
        "w/repeat_1[0]/foreach_1[0]": "SUCCEEDED",
        "w/repeat_1[0]/foreach_1[1]": "SUCCEEDED",
        "w/repeat_1[1]": "SUCCEEDED",
        "w/repeat_1[1]/foreach_1[0]": "SKIPPED",
        "w/repeat_1[1]/foreach_1[1]": "SUCCEEDED",
    }


def test_what_is_committed_after_the_activation_is_no_hit(
    connection: Connection, tmp_path: Path
) -> None:
    deploy(connection, tmp_path)
    waiting = drive.start(connection, "w", {"xs": [1, 2]})
    task = drive.claim(connection)
    assert task is not None
    run(connection, {"xs": [2]})
    drive.submit(connection, task, 0)
    drive.drain(connection, drive.Scripted())

    assert set(statuses(drive.trace(connection, waiting)).values()) == {"SUCCEEDED"}


def test_two_writers_of_one_key_never_wait_and_the_first_one_counts(
    any_url: str, connection: Connection, tmp_path: Path
) -> None:
    deploy(connection, tmp_path)
    for _ in range(2):
        drive.start(connection, "w", {"xs": [1]})
    first, second = drive.claim(connection), drive.claim(connection)
    assert first is not None
    assert second is not None
    with drive.connect(any_url) as other:
        other.execute("set lock_timeout = '1s'")
        with connection.transaction():
            drive.submit(connection, first, 0, "first")
            # It would time out here if it waited.
            drive.submit(other, second, 0, "second")

    assert run(connection, {"xs": [1]})["output"] == {"got": ["first"]}


def test_entries_survive_the_purge_of_their_instance_and_go_with_the_workflow(
    connection: Connection, tmp_path: Path
) -> None:
    deploy(connection, tmp_path)
    run(connection, {"xs": [1]})
    connection.execute("select wf.sp_purge_instances(wf.wf_now() + interval '1 s')")
    assert statuses(run(connection, {"xs": [1]})) == {"w/foreach_1[0]": "SKIPPED"}

    connection.execute("select wf.sp_delete_workflow_def('w', false, true)")
    assert connection.execute("select count(*) from wf.foreach_bundle_entry").fetchone() == (0,)


def purge(connection: Connection, *arguments: Any) -> int:
    marks = ", ".join(["%s"] * len(arguments))
    row = connection.execute(f"select * from wf.sp_purge_bundles({marks})".encode(), arguments)
    return int((row.fetchone() or (0,))[0])


def test_purge_removes_old_entries_in_batches(connection: Connection, tmp_path: Path) -> None:
    deploy(connection, tmp_path)
    run(connection, {"xs": [1, 2, 3]})
    (now,) = connection.execute("select wf.wf_now()").fetchone() or ()
    (later,) = connection.execute("select wf.wf_now() + interval '1 ms'").fetchone() or ()

    assert purge(connection, now) == 0
    assert purge(connection, later, "another") == 0
    assert [purge(connection, later, "w", 2), purge(connection, later)] == [2, 1]
    assert purge(connection, later) == 0


@pytest.mark.parametrize(
    "arguments", [(None,), ("2030-01-01", None, 0), ("2030-01-01", None, None)]
)
def test_purge_refuses_what_it_does_not_understand(
    connection: Connection, arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(psycopg.DatabaseError) as raised:
        purge(connection, *arguments)
    assert raised.value.diag.message_detail == "20004"


def test_a_long_run_of_hits_is_passed_over_in_one_step(
    connection: Connection, tmp_path: Path
) -> None:
    """With the work limit of one call at four, a step per hit would not be possible."""
    deploy(connection, tmp_path)
    run(connection, {"xs": list(range(500))})
    connection.execute("insert into wf.wf_setting values ('max_activations_per_call', '4')")
    document = run(connection, {"xs": [*range(250), "new", *range(250, 500)]})

    assert document["status"] == "SUCCEEDED"
    assert list(statuses(document).values()).count("SKIPPED") == 500

"""`wf ps`, `wf logs`, `wf events`, `wf workers`: what they list, as tables and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Done, Wf
from tests.cli.scene import Scene

ONE = "workflow one { action a = t.do() }"
TWO = "workflow two { action a = t.do() }"
RETRIED = "workflow retried { action a = t.do() { retry 2 backoff 30s } }"
WAITS = """
    workflow waits {
      input { order: any }
      wait_event w on "parcel.seen" { correlate var.order }
    }
"""


def words(value: object) -> str:
    """The name of a case: its arguments."""
    return " ".join(value) if isinstance(value, tuple) else ""


def table(done: Done) -> list[list[str]]:
    """The cells of a table that is not cropped; columns are two blanks apart."""
    assert done.code == 0
    return [[cell.strip() for cell in line.split("  ") if cell] for line in done.out.splitlines()]


def documents(done: Done) -> Any:
    assert done.code == 0
    return json.loads(done.out)


@pytest.fixture
def three(scene: Scene) -> Scene:
    """1 of `one` failed, 2 of `two` runs, 3 of `one` runs with the key K."""
    scene.register("w1", "t")
    scene.begin(ONE)
    scene.submit("w1", scene.take("w1")[0], -1)
    scene.begin(TWO)
    scene.connection.execute(
        "select wf.sp_start_workflow_instance(c.workflow_instance_id)"
        " from wf.wf_repo_create_workflow_instance('one', '{}', null, 'K') as c"
    )
    return scene


# ps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ((), [3, 2]),
        (("--all",), [3, 2, 1]),
        (("--status", "failed"), [1]),
        (("--status", "FAILED", "--status", "RUNNING"), [3, 2, 1]),
        (("--workflow", "one"), [3]),
        (("--workflow", "one", "--all"), [3, 1]),
        (("--key", "K"), [3]),
        (("--key", "k"), []),
        (("--limit", "1"), [3]),
        (("--before", "3", "--all"), [2, 1]),
    ],
    ids=words,
)
def test_ps_lists_those_that_fit(
    wf: Wf, three: Scene, options: tuple[str, ...], ids: list[int]
) -> None:
    found = documents(wf("ps", "--json", *options))
    assert [row["instance_id"] for row in found] == ids


def test_ps_that_finds_nothing_says_so(wf: Wf, three: Scene) -> None:
    done = wf("ps", "--workflow", "none")
    assert (done.code, done.out, done.err) == (0, "", "no such instances\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ps", "--status", "DONE"), '--status: "DONE" is not one of "CREATED"'),
        (("ps", "--limit", "0"), "--limit is at least 1"),
        (("ps", "--limit", "ten"), "--limit takes an integer"),
        (("ps", "--watch", "soon"), "--watch takes a number of seconds"),
        (("ps", "--watch", "0"), "--watch is at least 0.05"),
        (("why",), "ID is missing"),
        (("logs", "x"), "ID takes an integer"),
        (("events", "0"), "ID is at least 1"),
        (("cancel", "1", "x"), "ID takes an integer"),
        (("drain",), "WORKER is missing"),
        (("drain", "w", "--undo", "--stop"), "--undo and --stop exclude each other"),
        (("show", "1", "--graph", "a.png"), "--graph a.png: not the name of an SVG file"),
        (("show", "1", "--graph", "--json"), "--graph and --json exclude each other"),
        (("workers", "more"), '"more" is one argument too many'),
    ],
    ids=words,
)
def test_wrong_use_is_one_line(wf: Wf, arguments: tuple[str, ...], message: str) -> None:
    done = wf(*arguments, "--url", "postgresql://127.0.0.1:1/none")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {message}")


@pytest.mark.parametrize("command", ["ps", "workers", "events"])
def test_a_command_without_a_database_is_wrong_use(wf: Wf, command: str) -> None:
    done = wf(command)
    assert (done.code, done.err.splitlines()[0]) == (2, "error: no database is named")


# logs -------------------------------------------------------------------------------------------


@pytest.fixture
def tried(scene: Scene) -> Scene:
    """An action whose first attempt failed after 2 s and whose second is in hand."""
    scene.register("w1", "t")
    scene.begin(RETRIED)
    [task] = scene.take("w1")
    scene.wait(2)
    scene.submit("w1", task, -5, "not [bold]now[/bold]")
    scene.wait(30)
    scene.connection.execute("select wf.sp_tick()")
    scene.take("w1")
    return scene


def test_logs_lists_the_attempts_in_their_order(wf: Wf, tried: Scene) -> None:
    first, second = documents(wf("logs", "1", "--json"))
    assert first == {
        "path": "retried/a",
        "action": "t.do",
        "attempt": 1,
        "worker": "w1",
        "status": "FAILED",
        "code": -5,
        "engine_code": None,
        "message": "not [bold]now[/bold]",
        "started_at": "2030-01-02T12:00:00.000Z",
        "ended_at": "2030-01-02T12:00:02.000Z",
        "took_ms": 2000,
    }
    assert (second["attempt"], second["status"], second["ended_at"]) == (2, "RUNNING", None)


def test_logs_as_a_table(wf: Wf, tried: Scene) -> None:
    assert table(wf("logs", "1"))[:2] == [
        ["STARTED", "PATH", "TRY", "WORKER", "STATUS", "CODE", "TOOK", "MESSAGE"],
        [
            "2030-01-02 12:00:00Z",
            "retried/a",
            "1",
            "w1",
            "FAILED",
            "-5",
            "2.0 s",
            "not [bold]now[/bold]",
        ],
    ]


def test_logs_has_the_attempt_that_succeeded(wf: Wf, tried: Scene) -> None:
    row = tried.connection.execute("select node_execution_id, lease_token from wf.task").fetchone()
    assert row is not None
    tried.submit("w1", (row[0], row[1]))
    assert [row["status"] for row in documents(wf("logs", "1", "--json"))] == [
        "FAILED",
        "SUCCEEDED",
    ]


def test_logs_keeps_what_failed_before_an_operators_retry(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    scene.begin(ONE)
    scene.submit("w1", scene.take("w1")[0], -5, "no")
    wf("retry", "1")
    scene.submit("w1", scene.take("w1")[0])
    found = documents(wf("logs", "1", "--json"))
    assert [(row["attempt"], row["status"], row["message"]) for row in found] == [
        (1, "FAILED", "no"),
        (2, "SUCCEEDED", None),
    ]


def test_logs_has_a_lease_that_was_lost(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    scene.begin(ONE)
    scene.take("w1")
    scene.wait(61)
    scene.connection.execute("select wf.sp_tick()")
    scene.register("w2", "t")
    scene.submit("w2", scene.take("w2")[0])
    assert [
        (row["attempt"], row["worker"], row["status"], row["engine_code"], row["took_ms"])
        for row in documents(wf("logs", "1", "--json"))
    ] == [(1, "w1", "FAILED", 10014, 61_000), (1, "w2", "SUCCEEDED", None, 0)]
    lost, _ = table(wf("logs", "1"))[1:]
    assert lost[4:] == ["LOST", "10014", "61 s", "lease lost, worker w1, after 61 s"]


def test_logs_has_the_lease_whose_loss_ended_an_action(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    scene.begin(ONE)
    for _ in range(5):
        scene.take("w1")
        scene.wait(61)
        scene.connection.execute("select wf.sp_tick()")
    rows = table(wf("logs", "1"))[1:]
    assert [row[4] for row in rows] == ["LOST"] * 5


def test_logs_before_anything_was_claimed(wf: Wf, scene: Scene) -> None:
    scene.begin(ONE)
    done = wf("logs", "1")
    assert (done.code, done.out) == (0, "")
    assert done.err == "no action of instance 1 has been claimed yet\n"


# events -----------------------------------------------------------------------------------------


@pytest.fixture
def sent(scene: Scene) -> Scene:
    """Event 1 ended the wait of instance 1; event 2, of another key, is kept."""
    scene.begin(WAITS, {"order": "A1"})
    scene.send("parcel.seen", "A1")
    scene.send("parcel.lost", "B2")
    return scene


def test_events_lists_what_came_of_each(wf: Wf, sent: Scene) -> None:
    assert table(wf("events")) == [
        ["EVENT", "TYPE", "KEY", "SOURCE", "TAKEN IN", "OUTCOME", "INSTANCE", "PATH"],
        ["2", "parcel.lost", "B2", "test", "2030-01-02 12:00:00Z", "kept"],
        [
            "1",
            "parcel.seen",
            "A1",
            "test",
            "2030-01-02 12:00:00Z",
            "applied",
            "1",
            "waits/w",
        ],
    ]


def test_events_of_an_instance(wf: Wf, sent: Scene) -> None:
    [event] = documents(wf("events", "1", "--json"))
    assert (event["event_id"], event["deliveries"]) == (
        1,
        [
            {
                "outcome": "applied",
                "reason": None,
                "workflow": "waits",
                "instance_id": 1,
                "path": "waits/w",
                "delivered_at": "2030-01-02T12:00:00.000Z",
            }
        ],
    )


@pytest.mark.parametrize(
    ("options", "ids"),
    [(("--type", "parcel.lost"), [2]), (("--before", "2"), [1]), (("--limit", "1"), [2])],
    ids=words,
)
def test_events_that_fit(wf: Wf, sent: Scene, options: tuple[str, ...], ids: list[int]) -> None:
    found = documents(wf("events", "--json", *options))
    assert [event["event_id"] for event in found] == ids


def test_events_of_an_instance_that_is_not_there(wf: Wf, scene: Scene) -> None:
    assert wf("events", "7").err.startswith("error: instance 7 is not known (20002)\n")


# workers ----------------------------------------------------------------------------------------


def test_workers_says_what_each_has_in_hand(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t", "u", slots=4)
    scene.register("w2", "*")
    scene.begin(ONE)
    scene.take("w1")
    assert table(wf("workers")) == [
        ["WORKER", "STATE", "LAST SEEN", "IN HAND", "CAPABILITIES"],
        ["w1", "ACTIVE", "2030-01-02 12:00:00Z", "1 of 4", "t u"],
        ["w2", "ACTIVE", "2030-01-02 12:00:00Z", "0 of 1", "*"],
    ]


def test_a_worker_that_was_not_heard_of_is_silent(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    scene.begin(ONE)
    scene.take("w1")
    scene.wait(301)
    [row] = documents(wf("workers", "--json"))
    assert (row["state"], row["is_present"]) == ("ACTIVE", False)
    assert table(wf("workers"))[1][1] == "SILENT"


def test_workers_that_are_gone_are_listed_on_demand(wf: Wf, scene: Scene) -> None:
    scene.register("old", "t")
    scene.wait(301)
    scene.register("new", "t")
    done = wf("workers")
    assert [row[0] for row in table(done)[1:]] == ["new"]
    assert done.err == "note: 1 worker not heard of for five minutes; --all shows more\n"
    assert [row["worker_id"] for row in documents(wf("workers", "--json"))] == ["new"]
    done = wf("workers", "--all")
    assert [row[:2] for row in table(done)[1:]] == [["new", "ACTIVE"], ["old", "SILENT"]]
    assert done.err == ""


def test_workers_when_all_are_gone(wf: Wf, scene: Scene) -> None:
    scene.register("old", "t")
    scene.wait(301)
    done = wf("workers")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("no worker is there; start one with: wf worker")


def test_no_workers(wf: Wf, scene: Scene) -> None:
    done = wf("workers")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("no worker is registered; start one with: wf worker")


def test_data_that_would_style_a_terminal_is_made_harmless(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    scene.begin(ONE)
    scene.submit("w1", scene.take("w1")[0], -5, "\x1b[31mred\nnext")
    for command in ("logs", "why", "show", "ps"):
        done = wf(command, *(["--all"] if command == "ps" else ["1"]))
        assert "\x1b" not in done.out + done.err
    assert "\\x1b[31mred" in wf("logs", "1").out


def test_logs_of_an_instance_that_ended_without_a_claim(wf: Wf, scene: Scene) -> None:
    scene.begin(ONE)
    wf("cancel", "1")
    assert wf("logs", "1").err == "no action of instance 1 was ever claimed\n"

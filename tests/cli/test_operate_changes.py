"""`wf cancel`, `pause`, `resume`, `retry`, `drain`: what they change, and what they refuse."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Wf
from tests.cli.scene import Scene

ONE = "workflow one { action a = t.do() }"


def status_of(scene: Scene, instance_id: int) -> str:
    row = scene.connection.execute(
        "select i.status from wf.v_instance as i where i.workflow_instance_id = %s", (instance_id,)
    ).fetchone()
    assert row is not None
    return str(row[0])


def failed(scene: Scene) -> int:
    scene.register("w1", "t")
    instance = scene.begin(ONE)
    scene.submit("w1", scene.take("w1")[0], -5)
    return instance


def test_cancel_ends_each_and_keeps_the_reason(wf: Wf, scene: Scene) -> None:
    first, second = scene.begin(ONE), scene.begin(ONE)
    done = wf("cancel", str(first), str(second), "--reason", "a trial")
    assert (done.code, done.out) == (0, "1 CANCELLED\n2 CANCELLED\n")
    assert (status_of(scene, 1), status_of(scene, 2)) == ("CANCELLED", "CANCELLED")
    row = scene.connection.execute("select distinct cancel_reason from wf.v_instance").fetchall()
    assert row == [("a trial",)]


def test_pause_and_resume(wf: Wf, scene: Scene) -> None:
    instance = scene.begin(ONE)
    assert wf("pause", "1").out == "1 PAUSED\n"
    assert status_of(scene, instance) == "PAUSED"
    assert wf("resume", "1").out == "1 RUNNING\n"
    assert status_of(scene, instance) == "RUNNING"


def test_retry_says_how_many_nodes_are_tried_again(wf: Wf, scene: Scene) -> None:
    instance = failed(scene)
    done = wf("retry", "1")
    assert (done.code, done.out) == (0, "1 RUNNING; 1 failed node is tried again\n")
    assert status_of(scene, instance) == "RUNNING"


def test_one_that_is_refused_stops_no_other_and_the_code_is_1(wf: Wf, scene: Scene) -> None:
    scene.begin(ONE)
    done = wf("pause", "99", "1")
    assert (done.code, done.out) == (1, "1 PAUSED\n")
    assert done.err == (
        "error: 99: there is no workflow instance 99 (20002)\n"
        'hint: see "wf ps --all" for the instances that are there\n'
    )


@pytest.mark.parametrize("command", ["pause", "resume", "cancel"])
def test_what_has_ended_is_refused(wf: Wf, scene: Scene, command: str) -> None:
    failed(scene)
    done = wf(command, "1")
    assert done.code == 1
    assert done.err.startswith("error: 1: instance 1 ")
    assert done.err.endswith("(20003)\n")


def test_what_has_not_failed_is_not_retried(wf: Wf, scene: Scene) -> None:
    scene.begin(ONE)
    assert wf("retry", "1").err == "error: 1: instance 1 is running, not failed (20003)\n"


def test_an_id_that_is_named_twice_is_changed_once(wf: Wf, scene: Scene) -> None:
    scene.begin(ONE)
    assert wf("cancel", "1", "1").out == "1 CANCELLED\n"


def test_json_has_an_entry_for_each(wf: Wf, scene: Scene) -> None:
    failed(scene)
    done = wf("retry", "1", "99", "--json")
    assert done.code == 1
    assert json.loads(done.out) == [
        {"instance_id": 1, "status": "RUNNING", "error": None, "retried_count": 1},
        {
            "instance_id": 99,
            "status": None,
            "error": {"code": 20002, "message": "there is no workflow instance 99"},
        },
    ]


def test_a_database_that_is_gone_ends_the_command(wf: Wf) -> None:
    done = wf("cancel", "1", "2", "--url", "postgresql://127.0.0.1:1/none")
    assert (done.code, done.out) == (1, "")
    assert done.err.count("error: ") == 1


# drain ------------------------------------------------------------------------------------------


def state_of(scene: Scene, worker: str) -> str:
    row = scene.connection.execute(
        "select w.desired_state from wf.worker as w where w.worker_id = %s", (worker,)
    ).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize(
    ("option", "state", "outlook"),
    [
        ((), "DRAINING", "it finishes 1 task and ends"),
        (("--stop",), "STOPPING", "it gives 1 task back and ends"),
        (("--undo",), "ACTIVE", "it may take tasks again"),
    ],
    ids=["drain", "stop", "undo"],
)
def test_drain_tells_a_worker_that_has_a_task(
    wf: Wf, scene: Scene, option: tuple[str, ...], state: str, outlook: str
) -> None:
    scene.register("w1", "t")
    scene.begin(ONE)
    scene.take("w1")
    done = wf("drain", "w1", *option)
    assert (done.code, done.err) == (0, f"worker w1 is {state}: {outlook}\n")
    assert state_of(scene, "w1") == state


def test_drain_of_a_worker_with_empty_hands(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    assert wf("drain", "w1").err == "worker w1 is DRAINING: it has nothing in hand and ends\n"


def test_drain_of_a_worker_that_is_gone_says_so(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    scene.begin(ONE)
    scene.take("w1")
    scene.wait(301)
    assert wf("drain", "w1").err == (
        "worker w1 is DRAINING, but it is gone: nobody has heard of it since"
        " 2030-01-02 12:00:00Z; its 1 task will be taken back as leases end\n"
    )


def test_drain_of_a_misspelt_worker_names_the_near_one(wf: Wf, scene: Scene) -> None:
    scene.register("crane-1", "t")
    done = wf("drain", "crane1")
    assert done.code == 1
    assert done.err == 'error: there is no worker crane1 (20002)\nhint: did you mean "crane-1"?\n'


def test_drain_writes_json(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    assert json.loads(wf("drain", "w1", "--json").out) == {"worker_id": "w1", "state": "DRAINING"}


# start ------------------------------------------------------------------------------------------


def test_start_of_a_misspelt_workflow_names_the_near_one(wf: Wf, scene: Scene) -> None:
    scene.begin("workflow order_fulfilment { action a = t.do() }")
    done = wf("start", "order_fullfilment")
    assert done.code == 1
    assert done.err.endswith('(20002)\nhint: did you mean "order_fulfilment"?\n')

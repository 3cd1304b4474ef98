"""`wf why`: a sentence for each kind of open node, and what could be done about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Done, Wf
from tests.cli.scene import Scene

ONE = "workflow one { action a = t.do() }"
RETRIED = "workflow retried { action a = t.do() { retry 2 backoff 30s } }"
WAITS = """
    workflow waits {
      input { order: any }
      wait_event w on "parcel.seen" { correlate var.order timeout 1h }
    }
"""


def sentences(done: Done) -> list[str]:
    """The lines between the headline and the advice."""
    assert done.code == 0
    lines = done.out.splitlines()[1:]
    end = lines.index("What could be done:") if "What could be done:" in lines else len(lines)
    return [line.strip() for line in lines[:end]]


def advice(done: Done) -> list[str]:
    lines = done.out.splitlines()
    start = lines.index("What could be done:") if "What could be done:" in lines else len(lines)
    return [line.strip() for line in lines[start + 1 :]]


def test_an_action_that_nobody_can_do(wf: Wf, scene: Scene) -> None:
    done = wf("why", str(scene.begin(ONE)))
    assert done.out.splitlines()[0] == "one 1 is RUNNING since 2030-01-02 12:00:00Z"
    assert sentences(done) == ["one/a: no worker has the capability t"]
    assert advice(done) == ["start a worker: wf worker --handlers MODULE --capability t"]


def test_an_action_that_may_be_claimed(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    done = wf("why", str(scene.begin(ONE)))
    assert sentences(done) == ["one/a: it is ready for any worker with the capability t"]
    assert advice(done) == ["see who is at what, and what they may take: wf workers"]


def test_an_action_in_hand(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    instance = scene.begin(ONE)
    scene.take("w1")
    done = wf("why", str(instance))
    assert sentences(done) == [
        "one/a: worker w1 is at it since 2030-01-02 12:00:00Z;"
        " its lease runs until 2030-01-02 12:01:00Z"
    ]
    assert advice(done) == []


def test_an_action_whose_lease_has_run_out(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    instance = scene.begin(ONE)
    scene.take("w1")
    scene.wait(61)
    done = wf("why", str(instance))
    assert sentences(done) == [
        "one/a: worker w1 is at it since 2030-01-02 12:00:00Z; its lease ran out at"
        " 2030-01-02 12:01:00Z: the next claim takes it from that worker"
    ]
    assert advice(done) == ["see whether that worker lives: wf workers"]


def test_an_action_that_was_lost_says_how_often(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    instance = scene.begin(ONE)
    scene.take("w1")
    scene.wait(61)
    scene.connection.execute("select wf.sp_tick()")
    assert "handed out 1 time before" in sentences(wf("why", str(instance)))[0]


def test_a_retry_says_when_and_which_attempt(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    instance = scene.begin(RETRIED)
    [task] = scene.take("w1")
    scene.submit("w1", task, -5, "no")
    done = wf("why", str(instance))
    assert sentences(done) == ["retried/a: attempt 2 of 3 is due at 2030-01-02 12:00:30Z"]
    assert advice(done) == ["see why it failed before: wf logs 1"]


def test_a_second_attempt_in_hand_is_told(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    instance = scene.begin(RETRIED)
    [task] = scene.take("w1")
    scene.submit("w1", task, -5, "no")
    scene.wait(30)
    scene.connection.execute("select wf.sp_tick()")
    scene.take("w1")
    assert ", attempt 2 of 3; its lease" in sentences(wf("why", str(instance)))[0]


def test_a_wait_for_an_event(wf: Wf, scene: Scene) -> None:
    done = wf("why", str(scene.begin(WAITS, {"order": "A 1"})))
    assert sentences(done) == [
        'waits/w: it waits for the event "parcel.seen" with the key "A 1";'
        " its time-out is at 2030-01-02 13:00:00Z"
    ]
    assert advice(done) == ["send it: wf events send parcel.seen --correlate 'A 1' --payload JSON"]


def test_a_wait_whose_key_is_null(wf: Wf, scene: Scene) -> None:
    done = wf("why", str(scene.begin(WAITS, {"order": None})))
    assert sentences(done)[0].startswith("waits/w: its correlate gave null, so that no event")
    assert advice(done) == []


def test_a_wait_for_any_key_without_an_end(wf: Wf, scene: Scene) -> None:
    done = wf("why", str(scene.begin('workflow any { wait_event w on "x" }')))
    assert sentences(done) == ['any/w: it waits for the event "x" with any key; without a time-out']


def test_a_sleep(wf: Wf, scene: Scene) -> None:
    done = wf("why", str(scene.begin("workflow nap { sleep 10m action a = t.do() }")))
    assert sentences(done) == ["nap/sleep_1: it sleeps until 2030-01-02 12:10:00Z"]


def test_a_join_says_how_many_of_how_many(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t", slots=3)
    text = "workflow fan { foreach x in [1, 2, 3] parallel 3 { action a = t.do() } }"
    instance = scene.begin(text)
    scene.submit("w1", scene.take("w1")[0])
    assert sentences(wf("why", str(instance)))[0] == "fan/foreach_1: 1 of 3 iterations has ended"


def test_nodes_of_which_the_same_can_be_said_share_a_line(wf: Wf, scene: Scene) -> None:
    text = "workflow fan { foreach x in [1, 2, 3, 4, 5] parallel 5 { action a = t.do() } }"
    lines = sentences(wf("why", str(scene.begin(text))))
    assert lines[1] == (
        "fan/foreach_1[0]/a, fan/foreach_1[1]/a, fan/foreach_1[2]/a and 2 more:"
        " no worker has the capability t"
    )


def test_a_finally_that_runs(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    text = """
        workflow tidy {
          sequence s { action a = t.do() } finally { action b = u.do() }
        }
    """
    instance = scene.begin(text)
    scene.submit("w1", scene.take("w1")[0])
    assert "tidy/s: its finally is running" in sentences(wf("why", str(instance)))


@pytest.mark.parametrize(
    ("break_it", "sentence", "could"),
    [
        (
            "select wf.sp_set_worker_state('w1', 'DRAINING')",
            "one/a: every worker with the capability t is draining or stopping",
            "let a worker go on, or start another: wf drain WORKER --undo",
        ),
        (
            "update wf.workflow_action set paused = true",
            "one/a: action t.do is paused",
            "unpause the action: set paused to false with wf.wf_repo_upsert_workflow_action",
        ),
        (
            "update wf.worker_presence set last_seen_at = last_seen_at - interval '1 hour'",
            "one/a: no free worker with the capability t was heard of for five minutes",
            "look after the workers that are silent: wf workers",
        ),
        (
            "update wf.task set pinned_worker_id = 'w9'",
            "one/a: it is pinned to worker w9, which is not registered",
            "start that worker again, or free the task:"
            " select * from wf.sp_release_affinity(1, 'KEY')",
        ),
    ],
)
def test_what_keeps_a_worker_from_it(
    wf: Wf, scene: Scene, break_it: str, sentence: str, could: str
) -> None:
    scene.register("w1", "t")
    instance = scene.begin(ONE)
    scene.connection.execute(break_it.encode())
    done = wf("why", str(instance))
    assert (sentences(done), advice(done)) == ([sentence], [could])


def test_a_paused_instance(wf: Wf, scene: Scene) -> None:
    instance = scene.begin(ONE)
    wf("pause", str(instance))
    done = wf("why", str(instance))
    assert done.out.splitlines()[0].startswith("one 1 is PAUSED: nothing of it is claimed")
    assert sentences(done) == ["one/a: instance 1 is paused"]
    assert advice(done) == ["let it go on: wf resume 1"]


def test_a_cancelled_instance(wf: Wf, scene: Scene) -> None:
    instance = scene.begin(ONE)
    wf("cancel", str(instance), "--reason", "ordered twice")
    done = wf("why", str(instance))
    assert done.out == (
        "one 1 was CANCELLED at 2030-01-02 12:00:00Z: cancelled by an operator: ordered twice\n"
    )


def test_a_failed_instance(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    instance = scene.begin(ONE)
    scene.submit("w1", scene.take("w1")[0], -5, "the card is void")
    done = wf("why", str(instance))
    assert done.out.splitlines() == [
        "one 1 FAILED at 2030-01-02 12:00:00Z: one/a: the card is void (-5)",
        "What could be done:",
        "  see what happened: wf show 1, and of its actions: wf logs 1; then try again what failed:"
        " wf retry 1",
    ]


def test_an_instance_that_succeeded(wf: Wf, scene: Scene) -> None:
    scene.register("w1", "t")
    instance = scene.begin(ONE)
    scene.submit("w1", scene.take("w1")[0])
    done = wf("why", str(instance))
    assert done.out == "one 1 SUCCEEDED at 2030-01-02 12:00:00Z; it waits for nothing\n"


def test_an_instance_that_was_never_started(wf: Wf, scene: Scene) -> None:
    scene.begin(ONE)
    scene.connection.execute("select wf.wf_repo_create_workflow_instance('one', '{}')")
    done = wf("why", "2")
    assert done.out.splitlines()[0] == "one 2 was created and has not been started"
    assert advice(done) == ["start it: select * from wf.sp_start_workflow_instance(2)"]


def test_json_has_the_parts_of_each_sentence(wf: Wf, scene: Scene) -> None:
    instance = scene.begin(WAITS, {"order": "A1"})
    document: dict[str, Any] = json.loads(wf("why", str(instance), "--json").out)
    [found] = document["waits"]
    assert document["status"] == "RUNNING"
    assert {name: found[name] for name in ("path", "type", "reason", "event_type", "due_at")} == {
        "path": "waits/w",
        "type": "WAIT_EVENT",
        "reason": "EVENT",
        "event_type": "parcel.seen",
        "due_at": "2030-01-02T13:00:00.000Z",
    }


def test_an_instance_that_is_not_there(wf: Wf, scene: Scene) -> None:
    done = wf("why", "7")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: instance 7 is not known (20002)\nhint: ")

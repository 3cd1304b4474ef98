"""Workers as processes at a real gateway: enrolment, batches, ends, faults of the network."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import stat
from pathlib import Path

import pytest

from tests.worker.conftest import CALLED, Place, Process, Wire, wait_for, wf

FINE = f"""
@action("ACTION")
def do(**_input):
    {CALLED}
    return {{"ok": True}}
"""
# The file `go` lets the task end.
HELD = f"""
@action("ACTION")
def do(task: TaskContext):
    {CALLED}
    while not pathlib.Path("go").exists() and not task.cancelled.wait(0.01):
        pass
    if task.cancelled.is_set():
        pathlib.Path("cancelled").touch()
"""


def ended(process: Process) -> str:
    assert process.wait() == 0, process.lines
    return "".join(process.lines)


# Enrolment --------------------------------------------------------------------------------------


def test_a_worker_enrols_under_a_key_and_works(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    instance = flow.start()
    text = ended(flow.worker("--idle-exit", "0.5"))
    assert f"claims {flow.name}; Ctrl-C ends it" in text
    assert f"{flow.name}/do ({instance}) {flow.name}.do -> 0 in " in text
    assert flow.status(instance) == "SUCCEEDED"


def test_what_it_is_stays_in_its_folder_for_its_owner_only(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    text = ended(flow.worker("--idle-exit", "0", "--worker-id", "bob"))
    path = flow.folder / "state" / "worker.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = json.loads(path.read_text())
    token = kept.pop("token")
    assert kept == {
        "worker_id": "bob",
        "gateway": place.url,
        "capabilities": [flow.name],
        "max_concurrency": 1,
    }
    assert token not in text
    assert place.key not in text


def test_once_enrolled_it_needs_no_key(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    ended(flow.worker("--idle-exit", "0"))
    instance = flow.start()
    ended(flow.worker("--idle-exit", "0.5", WF_API_KEY=""))
    assert flow.status(instance) == "SUCCEEDED"


def test_without_key_or_token_it_says_what_it_needs(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    process = flow.worker(WF_API_KEY="")
    assert process.wait() == 2
    assert process.lines[0] == "error: this worker is not enrolled at the gateway\n"
    assert process.lines[1].startswith("hint: give --enroll-key-file or WF_API_KEY ")


def test_a_key_that_is_nobodys_is_refused(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    process = flow.worker(WF_API_KEY="wf_0123456789ab_" + "x" * 43)
    assert process.wait() == 1
    assert process.lines[0].endswith("(20001)\n")


def test_a_token_needs_a_name(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    process = flow.worker(WF_WORKER_TOKEN="x" * 40)
    assert process.wait() == 2
    assert process.lines[0] == "error: the token belongs to a worker that is not named\n"


def test_two_workers_cannot_share_a_state_folder(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    first = flow.worker()
    wait_for(lambda: first.says("claims"))
    second = flow.worker()
    assert second.wait() == 1
    assert second.lines[0].startswith("error: another worker uses the state folder ")


def test_a_damaged_identity_is_made_anew(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    (flow.folder / "state").mkdir()
    (flow.folder / "state" / "worker.json").write_text("{")
    ended(flow.worker("--idle-exit", "0"))
    assert json.loads((flow.folder / "state" / "worker.json").read_text())["token"]


def register(place: Place, worker: str, token: str, capability: str) -> None:
    place.ask("select wf.sp_register_worker(%s, %s, %s)::text", worker, token, [capability])


def only(place: Place, worker: str, token: str) -> None:
    """Ends all tokens of a worker but one."""
    place.ask(
        "update wf.worker_token as t set revoked_at = wf.wf_now() where t.worker_id = %s"
        " and t.token_hash <> sha256(t.salt || convert_to(%s, 'UTF8')) returning 1",
        worker,
        token,
    )


def test_a_token_file_is_read_again_when_the_token_was_refused(place: Place) -> None:
    flow = place.flow()
    flow.handlers(HELD)
    old, new = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    register(place, "t1", old, flow.name)
    path = flow.folder / "token"
    path.write_text(old + "\n")
    options = ("--worker-id", "t1", "--token-file", str(path), "--lease", "3")
    process = flow.worker(*options, WF_API_KEY="")
    first = flow.start()
    wait_for(lambda: flow.calls() == 1)
    register(place, "t1", new, flow.name)
    path.write_text(new + "\n")
    only(place, "t1", new)
    [(_worker, _token, until)] = flow.tasks()
    # The heartbeat meets the refusal first, and goes on under the new token.
    wait_for(lambda: flow.tasks()[0][2] > until)
    (flow.folder / "go").touch()
    second = flow.start()
    wait_for(lambda: flow.status(first) == flow.status(second) == "SUCCEEDED")
    assert process.popen.poll() is None


def test_a_worker_with_a_key_enrols_anew_when_its_token_was_refused(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    flow.worker("--worker-id", "t2")
    first = flow.start()
    wait_for(lambda: flow.status(first) == "SUCCEEDED")
    before = json.loads((flow.folder / "state" / "worker.json").read_text())["token"]
    only(place, "t2", "nobody's")
    second = flow.start()
    wait_for(lambda: flow.status(second) == "SUCCEEDED", 60)
    after = json.loads((flow.folder / "state" / "worker.json").read_text())["token"]
    assert after != before


# Batches ----------------------------------------------------------------------------------------

MANY = """workflow NAME {
  input { items : list<int> }
  foreach n in var.items parallel { action do = NAME.do() }
}
"""


def test_short_tasks_go_in_batches(place: Place) -> None:
    flow = place.flow(MANY)
    flow.handlers('@action("ACTION")\ndef do(): return None\n')

    def calls(what: str) -> float:
        return sum(
            place.metric("wf_gateway_requests_total", route=f"/v1/workers/tasks/{route}")
            for route in (what, f"{{task_id}}/{what}")
        )

    before = calls("submit"), calls("request")
    instance = flow.start(json.dumps({"items": list(range(400))}))
    ended(flow.worker("--idle-exit", "1", "--quiet"))
    assert flow.status(instance) == "SUCCEEDED"
    submits, requests = calls("submit") - before[0], calls("request") - before[1]
    # On a busy machine a handler looks slow now and then, and its batch is smaller.
    assert 4 <= submits < 200, submits
    assert 4 <= requests < 200, requests


# Ends -------------------------------------------------------------------------------------------


def test_a_worker_that_waits_for_work_ends_at_once(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    process = flow.worker()
    wait_for(lambda: process.says("claims"))
    wait_for(lambda: place.ask("select 1 from wf.worker_presence limit 1"))
    process.signal(signal.SIGTERM)
    # Its request would have waited for 30 s.
    assert process.wait(10) == 0
    assert process.says("ended after 0 tasks")


@pytest.mark.parametrize("state", ["DRAINING", "STOPPING"])
def test_a_command_ends_a_worker_that_waits(place: Place, state: str) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    name = f"{flow.name}-{state.lower()}"
    process = flow.worker("--worker-id", name)
    first = flow.start()
    wait_for(lambda: flow.status(first) == "SUCCEEDED")
    place.ask("select wf.sp_set_worker_state(%s, %s)::text", name, state)
    assert process.wait(20) == 0
    assert process.says(f"told to {'DRAIN' if state == 'DRAINING' else 'STOP'}")


def test_drain_while_a_task_is_in_hand_finishes_it(place: Place) -> None:
    flow = place.flow()
    flow.handlers(HELD)
    process = flow.worker("--worker-id", "drained", "--lease", "3")
    instance = flow.start()
    wait_for(lambda: flow.calls() == 1)
    place.ask("select wf.sp_set_worker_state('drained', 'DRAINING')::text")
    wait_for(lambda: process.says("told to DRAIN"))
    (flow.folder / "go").touch()
    assert process.wait() == 0
    assert flow.status(instance) == "SUCCEEDED"


def test_stop_while_a_task_is_in_hand_gives_it_back(place: Place) -> None:
    flow = place.flow()
    flow.handlers(HELD)
    process = flow.worker("--worker-id", "stopped", "--lease", "3")
    flow.start()
    wait_for(lambda: flow.calls() == 1)
    place.ask("select wf.sp_set_worker_state('stopped', 'STOPPING')::text")
    assert process.wait() == 0
    assert [row[0] for row in flow.tasks()] == [None]


def test_a_second_signal_gives_the_task_back(place: Place) -> None:
    flow = place.flow()
    flow.handlers(HELD)
    process = flow.worker()
    flow.start()
    wait_for(lambda: flow.calls() == 1)
    process.signal(signal.SIGTERM)
    wait_for(lambda: process.says("finishing 1 task; again to end at once"))
    process.signal(signal.SIGTERM)
    assert process.wait() == 128 + signal.SIGTERM
    assert [row[0] for row in flow.tasks()] == [None]


# Cancelling -------------------------------------------------------------------------------------

ASYNC = f"""
import asyncio

@action("ACTION")
async def do():
    {CALLED}
    try:
        await asyncio.sleep(600)
    finally:
        pathlib.Path("cancelled").touch()
"""
PROGRAM = """
command("ACTION", ["sh", "-c",
    "trap 'touch cancelled; exit 1' TERM; touch called-1; while :; do sleep 0.05; done"])
"""


@pytest.mark.parametrize("handlers", [HELD, ASYNC, PROGRAM], ids=["sync", "async", "program"])
def test_a_cancelled_instance_is_told_to_the_handler(place: Place, handlers: str) -> None:
    flow = place.flow()
    flow.handlers(handlers)
    flow.worker("--lease", "3")
    instance = flow.start()
    wait_for(lambda: flow.calls() == 1)
    place.ask("select wf.sp_cancel_workflow_instance(%s, 'no more')::text", instance)
    wait_for(lambda: (flow.folder / "cancelled").exists())
    assert flow.status(instance) == "CANCELLED"


# The network ------------------------------------------------------------------------------------


def kept_results(folder: Path) -> list[Path]:
    return list((folder / "state" / "results").glob("*-*.json"))


def test_a_result_is_handed_in_when_the_network_is_back(place: Place, wire: Wire) -> None:
    flow = place.flow()
    flow.handlers(HELD)
    process = flow.worker(gateway=wire.url)
    instance = flow.start()
    wait_for(lambda: flow.calls() == 1)
    wire.cut()
    (flow.folder / "go").touch()
    wait_for(lambda: kept_results(flow.folder))
    wait_for(lambda: process.says("trying again"))
    assert flow.status(instance) == "RUNNING"
    wire.mend()
    wait_for(lambda: flow.status(instance) == "SUCCEEDED", 60)
    wait_for(lambda: not kept_results(flow.folder))
    assert flow.calls() == 1
    # And it goes on with the next.
    second = flow.start()
    wait_for(lambda: flow.status(second) == "SUCCEEDED", 60)


def test_a_kill_between_the_end_of_a_handler_and_its_submit_loses_nothing(
    place: Place, wire: Wire
) -> None:
    flow = place.flow(declares="    idempotent: false\n")
    flow.handlers(HELD)
    process = flow.worker("--worker-id", "killed", gateway=wire.url)
    instance = flow.start()
    wait_for(lambda: flow.calls() == 1)
    wire.cut()
    (flow.folder / "go").touch()
    wait_for(lambda: kept_results(flow.folder))
    process.signal(signal.SIGKILL)
    process.wait()
    wire.mend()
    assert flow.status(instance) == "RUNNING"
    text = ended(flow.worker("--idle-exit", "0.5", gateway=wire.url))
    assert "handing in 1 kept result\n" in text
    assert flow.status(instance) == "SUCCEEDED"
    assert flow.calls() == 1
    assert kept_results(flow.folder) == []


def test_a_worker_that_ends_while_the_gateway_is_away_keeps_its_results(
    place: Place, wire: Wire
) -> None:
    flow = place.flow()
    flow.handlers(HELD)
    process = flow.worker(gateway=wire.url)
    flow.start()
    wait_for(lambda: flow.calls() == 1)
    wire.cut()
    (flow.folder / "go").touch()
    wait_for(lambda: kept_results(flow.folder))
    process.signal(signal.SIGTERM)
    assert process.wait() == 1
    assert "error: 1 result was not handed in\n" in process.lines
    assert len(kept_results(flow.folder)) == 1


def test_a_kept_result_whose_lease_was_lost_is_dropped(place: Place, wire: Wire) -> None:
    flow = place.flow()
    flow.handlers(HELD)
    process = flow.worker("--worker-id", "late", gateway=wire.url)
    instance = flow.start()
    wait_for(lambda: flow.calls() == 1)
    wire.cut()
    (flow.folder / "go").touch()
    wait_for(lambda: kept_results(flow.folder))
    process.kill()
    place.ask(
        "update wf.task as t set lease_until = t.lease_until - interval '1 hour'"
        " where t.workflow_instance_id = %s returning 1",
        instance,
    )
    other = flow.worker("--state", str(flow.folder / "other"))
    wait_for(lambda: flow.status(instance) == "SUCCEEDED")
    other.kill()
    wire.mend()
    text = ended(flow.worker("--idle-exit", "0.2", gateway=wire.url))
    assert re.search(r"result not taken: (STALE|ENDED)\n", text)
    assert kept_results(flow.folder) == []


# The interpreter's lock --------------------------------------------------------------------------

# A C function that is called through PyDLL keeps the lock: no other thread of the worker runs.
HOLDS_THE_LOCK = f"""
import ctypes

@action("ACTION")
def do():
    {CALLED}
    ctypes.PyDLL(None).sleep(8)
"""


@pytest.mark.parametrize("where", ["gateway", "database"])
def test_a_lease_outlives_a_handler_that_holds_the_lock(place: Place, where: str) -> None:
    flow = place.flow(declares="    idempotent: false\n")
    flow.handlers(HOLDS_THE_LOCK)
    options = ("--lease", "5", "--idle-exit", "0.5")
    instance = flow.start()
    process = flow.worker(*options) if where == "gateway" else flow.database_worker(*options)
    wait_for(lambda: flow.calls() == 1)
    [(_worker, _token, until)] = flow.tasks()

    def is_over() -> bool:
        # Takes back what has run out, as another worker's claim would.
        place.ask("select 1 from wf.sp_tick()")
        return flow.status(instance) != "RUNNING"

    wait_for(lambda: is_over() or flow.tasks()[0][2] > until)
    wait_for(is_over)
    assert flow.status(instance) == "SUCCEEDED"
    assert ended(process)
    assert flow.calls() == 1


# What it says -----------------------------------------------------------------------------------


def test_lines_can_be_json(place: Place) -> None:
    flow = place.flow()
    flow.handlers('@action("ACTION")\ndef do(): raise ValueError("no")\n')
    instance = flow.start()
    process = flow.worker("--idle-exit", "0.5", "--log-format", "json", "--worker-id", "j1")
    assert process.wait() == 0
    rows = [json.loads(line) for line in process.lines]
    [row] = [row for row in rows if row["event"] == "task done"]
    assert (row["worker_id"], row["result_code"], row["message"], row["level"]) == (
        "j1", -1, "ValueError: no", "warning",
    )  # fmt: skip
    assert row["task"] == f"{flow.name}/do ({instance}) {flow.name}.do"
    [(output,)] = place.ask(
        "select e.output_json from wf.node_execution as e where e.workflow_instance_id = %s"
        " and e.output_json is not null",
        instance,
    )
    assert output == {"traceback": ['handlers.py:5 in do: def do(): raise ValueError("no")']}


def test_a_url_with_a_secret_in_it_is_refused(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    process = flow.worker(gateway="https://user:secret@host")
    assert process.wait() == 2
    assert "secret" not in "".join(process.lines)


def test_gateway_and_url_together_are_wrong_use(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    done = wf(
        "worker", "--gateway", place.url, "--url", place.database, "--handlers", "handlers.py",
        cwd=flow.folder,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: tasks come from a gateway or from a database\n")


def test_without_ca_file_the_command_names_it(place: Place) -> None:
    flow = place.flow()
    flow.handlers(FINE)
    process = flow.worker("--ca-file", "none.pem", gateway="https://127.0.0.1:1")
    assert process.wait() == 2
    assert "no such file or directory" in process.lines[0]
    assert os.fspath(flow.folder) not in process.lines[0]

"""The workers of examples/workers, as processes at a real gateway: one in shell, one in Node."""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.worker.conftest import ROOT, Flow, Place, Process, environment, wait_for

EXAMPLES = ROOT / "examples" / "workers"
PROGRAM = """#!/bin/sh
[ "$1" = NAME.do ] || exit 9
touch called
while [ -e hold ]; do sleep 0.05; done
cat >input
if grep -q '"fail"' input; then echo "no stock" >&2; exit 4; fi
jq '{got: .text}' input
"""
MODULE = """import fs from 'node:fs';
export default {
  'NAME.do': async ({ text }, { signal }) => {
    fs.writeFileSync('called', '');
    while (fs.existsSync('hold') && !signal.aborted) await new Promise((d) => setTimeout(d, 20));
    if (signal.aborted) fs.writeFileSync('cancelled', '');
    if (text === 'fail') throw Object.assign(new Error('no stock'), { resultCode: -4 });
    return { got: text };
  },
};
"""
WORKFLOW = """workflow NAME {
  input { text : string }
  output { out = var.out }
  var out : any
  action do = NAME.do(text: var.text) { set out = out }
}
"""
DECLARES = '    input: "{ text: string }"\n'


def need(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")


@pytest.fixture(params=["shell", "node"])
def language(request: pytest.FixtureRequest) -> str:
    need(*(("curl", "jq") if request.param == "shell" else ("node",)))
    return str(request.param)


@pytest.fixture
def flow(place: Place) -> Flow:
    return place.flow(WORKFLOW, declares=DECLARES)


def start(language: str, flow: Flow, name: str, gateway: str | None = None) -> Process:
    """Starts the example with a token that it has to enrol."""
    program = flow.folder / "program"
    program.write_text(PROGRAM.replace("NAME", flow.name))
    program.chmod(0o700)
    (flow.folder / "handlers.mjs").write_text(MODULE.replace("NAME", flow.name))
    command = {
        "shell": ["sh", str(EXAMPLES / "worker.sh"), name, "./program"],
        "node": ["node", str(EXAMPLES / "worker.mjs"), name, "handlers.mjs"],
    }[language]
    popen = subprocess.Popen(
        command,
        cwd=flow.folder,
        env=environment(
            WF_GATEWAY=gateway or flow.place.url,
            WF_API_KEY=flow.place.key,
            WF_WORKER_TOKEN=secrets.token_hex(32),
            CAPABILITIES=flow.name,
            LEASE="9",
        ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    process = Process(popen)
    flow.place.processes.append(process)
    return process


def run(flow: Flow, text: str) -> int:
    return flow.start(json.dumps({"text": text}))


def outcome(place: Place, instance: int) -> tuple[str, int | None, str | None]:
    [row] = place.ask(
        "select i.status, i.error_code, i.engine_error_message from wf.v_instance as i"
        " where i.workflow_instance_id = %s",
        instance,
    )
    return row[0], row[1], row[2]


def test_a_task_is_done(place: Place, flow: Flow, language: str) -> None:
    process = start(language, flow, f"{language}-1")
    instance = run(flow, 'ä "quoted" \\ text')
    wait_for(lambda: flow.status(instance) == "SUCCEEDED")
    [(output,)] = place.ask(
        "select i.output_json from wf.v_instance as i where i.workflow_instance_id = %s", instance
    )
    assert output == {"out": {"got": 'ä "quoted" \\ text'}}
    assert process.popen.poll() is None


def test_a_failure_brings_its_code_and_message(place: Place, flow: Flow, language: str) -> None:
    start(language, flow, f"{language}-2")
    instance = run(flow, "fail")
    wait_for(lambda: flow.status(instance) == "FAILED")
    _status, code, message = outcome(place, instance)
    assert code == -4
    assert "no stock" in (message or "")


def test_a_long_task_keeps_its_lease(place: Place, flow: Flow, language: str) -> None:
    (flow.folder / "hold").touch()
    start(language, flow, f"{language}-3")
    instance = run(flow, "x")
    wait_for(lambda: (flow.folder / "called").exists())
    [(_worker, _token, first)] = flow.tasks()
    wait_for(lambda: flow.tasks()[0][2] > first)
    (flow.folder / "hold").unlink()
    wait_for(lambda: flow.status(instance) == "SUCCEEDED")


def test_a_signal_lets_the_task_in_hand_finish(place: Place, flow: Flow, language: str) -> None:
    (flow.folder / "hold").touch()
    process = start(language, flow, f"{language}-4")
    instance = run(flow, "x")
    wait_for(lambda: (flow.folder / "called").exists())
    process.signal(signal.SIGTERM)
    (flow.folder / "hold").unlink()
    assert process.wait() == 0
    assert flow.status(instance) == "SUCCEEDED"


def test_drain_ends_the_worker(place: Place, flow: Flow, language: str) -> None:
    process = start(language, flow, f"{language}-5")
    instance = run(flow, "x")
    wait_for(lambda: flow.status(instance) == "SUCCEEDED")
    place.ask("select wf.sp_set_worker_state(%s, 'DRAINING')::text", f"{language}-5")
    assert process.wait() == 0


def test_a_cancelled_task_is_told(place: Place, flow: Flow, language: str, tmp_path: Path) -> None:
    (flow.folder / "hold").touch()
    process = start(language, flow, f"{language}-6")
    instance = run(flow, "x")
    wait_for(lambda: (flow.folder / "called").exists())
    place.ask("select wf.sp_cancel_workflow_instance(%s, 'no')::text", instance)
    # It is free for the next task when it has heard, with the file that holds still there.
    (flow.folder / "called").unlink()
    second = run(flow, "y")
    if language == "shell":
        wait_for(lambda: (flow.folder / "called").exists())
    else:
        wait_for(lambda: (flow.folder / "cancelled").exists())
    (flow.folder / "hold").unlink()
    wait_for(lambda: flow.status(second) == "SUCCEEDED")
    assert process.popen.poll() is None

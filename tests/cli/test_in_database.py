"""The database commands on a database with the runtime, and a worker as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from runtime_sql.connection import PostgresClient, connect
from runtime_sql.scripts import RUNTIME_VERSION

Wf = Callable[..., Any]
ADA = ("--context", '{"name": "Ada"}')


@pytest.fixture
def deployed(wf: Wf, greeting: Path, pg_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose workflow is deployed; WF_URL names the database."""
    monkeypatch.setenv("WF_URL", pg_url)
    assert wf("deploy", "greeting.wf").code == 0
    return greeting


@pytest.fixture
def work(deployed: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Returns a function that runs a worker process until it has nothing left to do."""

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "wfsql", "worker", "--idle-exit", "0.2", *options]
        return subprocess.run(
            command, cwd=deployed, capture_output=True, text=True, timeout=60, check=False
        )

    return run


# db ---------------------------------------------------------------------------------------------


def test_install_puts_the_runtime_there(wf: Wf, empty_pg_url: str) -> None:
    done = wf("db", "install", "--url", empty_pg_url)
    assert (done.code, done.err) == (0, f"runtime version {RUNTIME_VERSION} is installed\n")
    assert wf("db", "verify", "--url", empty_pg_url).code == 0


def catalogue(url: str) -> list[Any]:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select 'r', oid::bigint, relname, xmin::text from pg_class"
            " where relnamespace = 'wf'::regnamespace union all"
            " select 'p', oid::bigint, proname, xmin::text from pg_proc"
            " where pronamespace = 'wf'::regnamespace order by 1, 2"
        ).fetchall()


def test_install_again_changes_nothing(wf: Wf, pg_url: str) -> None:
    before = catalogue(pg_url)
    done = wf("db", "install", "--url", pg_url)
    assert done.code == 0
    assert done.err.endswith("was there already; nothing changed\n")
    assert catalogue(pg_url) == before


def test_a_failing_install_leaves_nothing(
    empty_pg_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runtime_sql import installer

    def broken(_dialect: str, name: str) -> str:
        return "create schema wf; create table wf.t (a int);" if name < "01" else "select 1/0;"

    monkeypatch.setattr(installer, "read_script", broken)
    with pytest.raises(psycopg.errors.DivisionByZero):
        installer.install(empty_pg_url)
    assert installer.installed_version(empty_pg_url) is None
    with psycopg.connect(empty_pg_url) as connection:
        assert connection.execute("select to_regnamespace('wf')").fetchone() == (None,)


def test_verify_names_what_is_missing(wf: Wf, pg_url: str) -> None:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute("drop function wf.sp_tick()")
    done = wf("db", "verify", "--url", pg_url)
    assert done.code == 1
    assert done.err.startswith("error: missing in schema wf: sp_tick\n")


def test_verify_writes_json(wf: Wf, pg_url: str) -> None:
    done = wf("db", "verify", "--url", pg_url, "--json")
    assert json.loads(done.out) == {
        "version": RUNTIME_VERSION,
        "expected": RUNTIME_VERSION,
        "missing": [],
        "differences": [],
        "ok": True,
    }


def test_install_writes_json(wf: Wf, pg_url: str) -> None:
    done = wf("db", "install", "--url", pg_url, "--json")
    assert json.loads(done.out) == {"version": RUNTIME_VERSION, "changed": False}


# deploy -----------------------------------------------------------------------------------------


def test_deploy_says_which_version_it_made(wf: Wf, greeting: Path, pg_url: str) -> None:
    done = wf("deploy", "greeting.wf", "--url", pg_url)
    assert done.code == 0
    assert done.err.startswith("greeting version 1 (")
    assert done.err.endswith(") is deployed\n")


def test_deploying_the_same_content_again_changes_nothing(wf: Wf, deployed: Path) -> None:
    done = wf("deploy", "greeting.wf", "--json")
    [report] = json.loads(done.out)
    assert (report["version"], report["changed"]) == (1, False)


def test_deploying_new_content_makes_a_new_version(wf: Wf, deployed: Path) -> None:
    text = (deployed / "greeting.wf").read_text().replace("= out.text", '= "${out.text}!"')
    (deployed / "greeting.wf").write_text(text)
    [report] = json.loads(wf("deploy", "greeting.wf", "--json").out)
    assert (report["version"], report["changed"]) == (2, True)


def test_deploy_of_a_bad_file_does_not_touch_the_database(wf: Wf, tmp_path: Path) -> None:
    (tmp_path / "bad.wf").write_text("workflow bad {")
    done = wf("deploy", "bad.wf", "--url", "postgresql://127.0.0.1:1/none")
    assert done.code == 1
    assert "cannot be reached" not in done.err


# start, ps, show, trace -------------------------------------------------------------------------


def test_start_writes_the_id(wf: Wf, deployed: Path) -> None:
    done = wf("start", "greeting", *ADA)
    assert (done.code, done.out) == (0, "1\n")


def test_start_of_an_unknown_workflow(wf: Wf, deployed: Path) -> None:
    done = wf("start", "greting")
    assert done.code == 1
    assert "greting" in done.err
    assert "(20002)" in done.err
    assert done.err.endswith('hint: did you mean "greeting"?\n')


def test_start_without_a_needed_input_starts_nothing(wf: Wf, deployed: Path) -> None:
    done = wf("start", "greeting")
    assert done.code == 1
    assert done.err == (
        "error: input name: is missing (10015)\nhint: give it as --context '{\"name\": …}'\n"
    )
    assert json.loads(wf("ps", "--all", "--json").out) == []


def test_a_start_that_fails_does_not_use_up_its_business_key(wf: Wf, deployed: Path) -> None:
    assert wf("start", "greeting", "--business-key", "K1").code == 1
    done = wf("start", "greeting", *ADA, "--business-key", "K1", "--json")
    assert json.loads(done.out)["created"] is True


def test_start_with_a_misspelt_input_names_the_right_one(wf: Wf, deployed: Path) -> None:
    done = wf("start", "greeting", "--context", '{"nmae": "Ada"}')
    assert done.code == 1
    assert done.err.endswith('hint: no input is called "nmae"; did you mean "name"?\n')


def test_start_with_a_key_that_no_input_reads_says_so(wf: Wf, deployed: Path) -> None:
    done = wf("start", "greeting", "--context", '{"name": "Ada", "colour": "red"}')
    assert (done.code, done.out) == (0, "1\n")
    assert done.err == 'note: no input is called "colour"; the inputs are: name\n'


def test_start_with_the_flag_of_a_rerun_has_no_note(wf: Wf, deployed: Path) -> None:
    done = wf("start", "greeting", "--context", '{"name": "Ada", "forceRerun": true}')
    assert (done.code, done.err) == (0, "")


class Clock:
    """A clock for `wf start --wait`, whose pauses end it by Ctrl-C after some time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now > 5:
            raise KeyboardInterrupt


def test_start_wait_says_what_it_waits_for(
    wf: Wf, deployed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wfsql.cli.commands.start.time", Clock())
    done = wf("start", "greeting", *ADA, "--wait")
    assert done.code == 130
    assert done.err.splitlines() == [
        "greeting 1: started, waiting for its end",
        "no worker has claimed its tasks yet; they need: greet",
        "hint: start a worker with: wf worker --handlers MODULE",
        'greeting 1 goes on; see it with "wf show 1"',
        "error: interrupted",
    ]


def test_start_with_a_business_key_twice_is_one_instance(wf: Wf, deployed: Path) -> None:
    first = wf("start", "greeting", *ADA, "--business-key", "K1", "--json")
    second = wf("start", "greeting", *ADA, "--business-key", "K1", "--json")
    reports = [json.loads(done.out) for done in (first, second)]
    assert [r["created"] for r in reports] == [True, False]
    assert reports[0]["instance_id"] == reports[1]["instance_id"]


def test_ps_lists_running_instances(wf: Wf, deployed: Path) -> None:
    wf("start", "greeting", *ADA)
    done = wf("ps")
    header, row = done.out.splitlines()
    assert header.split() == ["ID", "WORKFLOW", "VERSION", "STATUS", "KEY", "STARTED", "ENDED"]
    assert row.split()[:4] == ["1", "greeting", "1", "RUNNING"]


def test_ps_does_not_take_what_never_started_for_running(wf: Wf, deployed: Path) -> None:
    with psycopg.connect(os.environ["WF_URL"], autocommit=True) as connection:
        connection.execute("select wf.wf_repo_create_workflow_instance('greeting', '{}')")
    assert json.loads(wf("ps", "--json").out) == []
    [row] = json.loads(wf("ps", "--all", "--json").out)
    assert row["status"] == "CREATED"


def test_ps_says_when_nothing_runs(wf: Wf, deployed: Path) -> None:
    done = wf("ps")
    assert (done.code, done.out) == (0, "")
    assert done.err == "nothing is running; --all shows what has ended\n"


@pytest.mark.parametrize("command", ["show", "trace"])
def test_an_unknown_instance_is_one_line(wf: Wf, deployed: Path, command: str) -> None:
    done = wf(command, "99")
    assert done.code == 1
    assert done.err.splitlines()[0].startswith("error: ")
    assert "99" in done.err
    assert "(20002)" in done.err
    assert len(done.err.splitlines()) == 2


@pytest.mark.parametrize("command", ["show", "trace"])
def test_an_id_that_is_no_number_is_wrong_use(wf: Wf, deployed: Path, command: str) -> None:
    assert wf(command, "abc").code == 2


def test_show_lists_the_nodes(wf: Wf, deployed: Path) -> None:
    wf("start", "greeting", *ADA)
    done = wf("show", "1")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert ["greeting", "SEQUENCE", "RUNNING"] in lines
    assert ["greeting/hello", "ACTION", "READY", "greet.hello"] in lines


def test_an_id_past_64_bits_is_wrong_use(wf: Wf, deployed: Path) -> None:
    assert wf("show", str(2**70)).code == 2


# worker -----------------------------------------------------------------------------------------

HANDLERS = ("--handlers", "greeting_handlers.py")


def test_a_worker_brings_an_instance_to_its_end(wf: Wf, deployed: Path, work: Any) -> None:
    wf("start", "greeting", *ADA)
    done = work(*HANDLERS)
    assert done.returncode == 0, done.stderr
    assert "greeting/hello (1) greet.hello -> 0" in done.stderr
    shown = json.loads(wf("show", "1", "--json").out)
    assert (shown["status"], shown["output"]) == ("SUCCEEDED", {"text": "Hello Ada"})


def test_the_trace_is_that_of_the_local_runner(wf: Wf, deployed: Path, work: Any) -> None:
    wf("start", "greeting", *ADA)
    work(*HANDLERS)
    in_database = json.loads(wf("trace", "1", "--json").out)
    wf("run", "greeting.wf", *HANDLERS, *ADA, "--trace", "local.json")
    assert in_database == json.loads((deployed / "local.json").read_text())


def test_a_handler_that_raises_fails_the_instance(wf: Wf, deployed: Path, work: Any) -> None:
    (deployed / "raising.py").write_text(
        "from wfsql import action\n@action('greet.hello')\ndef hello(name):\n    return 1 / 0\n"
    )
    wf("start", "greeting", *ADA)
    work("--handlers", "raising.py")
    shown = json.loads(wf("show", "1", "--json").out)
    assert shown["status"] == "FAILED"
    assert shown["error"] == {
        "code": -1,
        "engine_code": None,
        "message": "ZeroDivisionError: division by zero",
        "node": "hello",
        "path": "greeting/hello",
    }
    node = shown["nodes"][1]
    times = [node.pop(key) for key in ("started_at", "ended_at")]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", at) for at in times)
    assert isinstance(node.pop("took_ms"), int)
    assert node.pop("worker")
    assert node == {
        "path": "greeting/hello",
        "type": "ACTION",
        "status": "FAILED",
        "action": "greet.hello",
        "attempt": 1,
        "code": -1,
        "engine_code": None,
        "message": "ZeroDivisionError: division by zero",
    }


def test_start_wait_reports_a_failure_as_exit_1(wf: Wf, pg_url: str, tmp_path: Path) -> None:
    (tmp_path / "f.wf").write_text('workflow f { fail -20 "never" }\n')
    wf("deploy", "f.wf", "--url", pg_url)
    done = wf("start", "f", "--wait", "--url", pg_url)
    assert done.code == 1
    assert done.err == (
        "f 1: started, waiting for its end\nf 1: FAILED\nerror -20: never\n  at f/fail_1\n"
    )


def test_an_error_of_the_engine_names_its_path_once(wf: Wf, pg_url: str, tmp_path: Path) -> None:
    (tmp_path / "f.wf").write_text("workflow f { input { n : int } set x = 1 // var.n }\n")
    wf("deploy", "f.wf", "--url", pg_url)
    done = wf("start", "f", "--wait", "--context", '{"n": 0}', "--url", pg_url)
    assert done.err.endswith("f 1: FAILED\nerror 10011: f/set_1: division by zero\n")


def test_ps_says_where_an_instance_failed(wf: Wf, pg_url: str, tmp_path: Path) -> None:
    (tmp_path / "f.wf").write_text('workflow f { fail -20 "never" }\n')
    wf("deploy", "f.wf", "--url", pg_url)
    wf("start", "f", "--url", pg_url)
    header, row = wf("ps", "--all", "--url", pg_url).out.splitlines()
    assert header.split()[-2:] == ["CODE", "AT"]
    assert row.split()[-2:] == ["-20", "f/fail_1"]


def test_output_keeps_the_order_of_its_declaration(wf: Wf, pg_url: str, tmp_path: Path) -> None:
    (tmp_path / "o.wf").write_text("workflow o { output { zebra = 1 bee = 2 ant = 3 } }\n")
    wf("deploy", "o.wf", "--url", pg_url)
    done = wf("start", "o", "--wait", "--json", "--url", pg_url)
    assert '"output":{"zebra":1,"bee":2,"ant":3}' in done.out


def test_a_worker_without_handlers_is_wrong_use(wf: Wf, deployed: Path) -> None:
    done = wf("worker")
    assert done.code == 2
    assert done.err.startswith("error: no handlers are named\n")


def test_a_worker_with_handlers_for_nothing_here(wf: Wf, deployed: Path) -> None:
    (deployed / "other.py").write_text(
        "from wfsql import action\n@action('x.y')\ndef y():\n    return {}\n"
    )
    done = wf("worker", "--handlers", "other.py")
    assert done.code == 1
    assert done.err.startswith(
        "error: none of the handlers (x.y) is for an action in the database (greet.hello)\n"
    )


def test_a_worker_whose_handler_is_misspelt_names_both_sides(wf: Wf, deployed: Path) -> None:
    (deployed / "typo.py").write_text(
        "from wfsql import action\n@action('greet.helo')\ndef y(name):\n    return {}\n"
    )
    done = wf("worker", "--handlers", "typo.py")
    assert done.code == 1
    assert done.err == (
        "error: none of the handlers (greet.helo) is for an action in the database (greet.hello)\n"
        'hint: there is a handler for "greet.helo"; did you mean "greet.hello"?\n'
    )


def test_a_handler_for_another_action_is_no_misspelt_one(wf: Wf, deployed: Path) -> None:
    (deployed / "other.py").write_text(
        "from wfsql import action\n@action('greet.bye')\ndef y(name):\n    return {}\n"
    )
    assert "did you mean" not in wf("worker", "--handlers", "other.py").err


def test_a_worker_for_a_capability_nobody_asks_for_warns(deployed: Path, work: Any) -> None:
    done = work(*HANDLERS, "--capability", "gret")
    assert done.returncode == 0
    assert done.stderr.startswith(
        'warning: no action in the database asks for the capability "gret"; did you mean "greet"?\n'
    )


def test_a_worker_of_a_name_that_was_just_heard_of_warns(deployed: Path, work: Any) -> None:
    first = work(*HANDLERS, "--worker-id", "crane-1")
    assert "warning" not in first.stderr
    second = work(*HANDLERS, "--worker-id", "crane-1")
    assert second.returncode == 0
    assert second.stderr.startswith("warning: a worker crane-1 was heard of ")
    assert "another --worker-id" in second.stderr.splitlines()[0]


def test_a_worker_that_may_ends_when_its_stdin_is_closed(deployed: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "wfsql", "worker", *HANDLERS, "--end-with-stdin"],
        cwd=deployed,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err.endswith("ended after 0 tasks\n")


def test_a_worker_that_lacks_a_handler_of_its_capability(wf: Wf, deployed: Path) -> None:
    (deployed / "other.py").write_text(
        "from wfsql import action\n@action('x.y')\ndef y():\n    return {}\n"
    )
    done = wf("worker", "--handlers", "other.py", "--capability", "greet")
    assert done.code == 1
    assert "greet.hello (greet)" in done.err


SLOW = """\
import pathlib
import time

from wfsql import action


@action("greet.hello")
def hello(name):
    pathlib.Path("begun").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return {"text": name}
"""


@pytest.fixture
def busy_worker(wf: Wf, deployed: Path) -> Iterator[subprocess.Popen[str]]:
    """A worker process in the middle of a task; the file `go` lets the task end."""
    (deployed / "slow.py").write_text(SLOW)
    wf("start", "greeting", *ADA)
    process = subprocess.Popen(
        [sys.executable, "-m", "wfsql", "worker", "--handlers", "slow.py", "--lease", "3"],
        cwd=deployed,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(lambda: (deployed / "begun").exists() or process.poll() is not None)
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at, "the condition did not come true"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_task_in_hand_finish(
    wf: Wf, deployed: Path, busy_worker: subprocess.Popen[str], number: signal.Signals
) -> None:
    assert busy_worker.stderr is not None
    assert busy_worker.stderr.readline().endswith("Ctrl-C ends it\n")
    busy_worker.send_signal(number)
    assert busy_worker.stderr.readline() == "finishing 1 task; again to end at once\n"
    (deployed / "go").touch()
    _out, err = busy_worker.communicate(timeout=30)
    assert busy_worker.returncode == 0, err
    assert err.endswith("ended after 1 task\n")
    assert json.loads(wf("show", "1", "--json").out)["status"] == "SUCCEEDED"


def test_a_second_signal_ends_a_worker_at_once(busy_worker: subprocess.Popen[str]) -> None:
    busy_worker.send_signal(signal.SIGTERM)
    wait_for(lambda: _signals_are_seen(busy_worker))
    busy_worker.send_signal(signal.SIGTERM)
    assert busy_worker.wait(timeout=30) == 128 + signal.SIGTERM


def _signals_are_seen(process: subprocess.Popen[str]) -> bool:
    """Whether no signal is pending, so that the next one is a second one."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():  # not Linux
        time.sleep(0.5)
        return True
    masks = dict(line.split(":\t") for line in status.read_text().splitlines() if ":\t" in line)
    return int(masks["ShdPnd"], 16) == 0 and int(masks["SigPnd"], 16) == 0


def test_a_worker_told_to_stop_gives_its_task_back(
    deployed: Path, busy_worker: subprocess.Popen[str]
) -> None:
    with psycopg.connect(os.environ["WF_URL"], autocommit=True) as connection:
        connection.execute(
            "select wf.sp_set_worker_state(w.worker_id, 'STOPPING') from wf.worker as w"
        )
        # The next heartbeat, a third of the lease later, brings the command.
        assert busy_worker.wait(timeout=30) == 0
        task = connection.execute("select t.worker_id from wf.task as t").fetchall()
    assert task == [(None,)]


def test_the_task_of_a_worker_that_died_goes_to_another(
    wf: Wf, deployed: Path, busy_worker: subprocess.Popen[str], work: Any
) -> None:
    busy_worker.kill()
    busy_worker.wait(timeout=30)
    with psycopg.connect(os.environ["WF_URL"], autocommit=True) as connection:
        connection.execute("update wf.task set lease_until = lease_until - interval '1 hour'")
    done = work(*HANDLERS)
    assert "greeting/hello (1) greet.hello -> 0" in done.stderr
    assert json.loads(wf("show", "1", "--json").out)["output"] == {"text": "Hello Ada"}


def test_a_heartbeat_extends_the_lease(deployed: Path, busy_worker: subprocess.Popen[str]) -> None:
    with psycopg.connect(os.environ["WF_URL"], autocommit=True) as connection:

        def lease_end() -> Any:
            [row] = connection.execute("select t.lease_until from wf.task as t").fetchall()
            return row[0]

        first = lease_end()
        wait_for(lambda: lease_end() > first)
    (deployed / "go").touch()


def test_the_task_queue_can_be_vacuumed(pg_url: str) -> None:
    client = connect(pg_url)
    assert isinstance(client, PostgresClient)
    try:
        assert client.dead_task_rows() == 0
        assert client.vacuum_tasks() is None
        with psycopg.connect(pg_url) as connection:
            seen = connection.execute(
                "select s.vacuum_count from pg_stat_user_tables as s"
                " where s.relid = 'wf.task'::regclass"
            ).fetchone()
        assert seen == (1,)
    finally:
        client.close()


# events -----------------------------------------------------------------------------------------


def test_an_event_ends_a_wait(wf: Wf, pg_url: str, tmp_path: Path) -> None:
    (tmp_path / "w.wf").write_text(
        "workflow w {\n  output { text = var.text }\n"
        '  wait_event news on "a.b" { correlate "K" set text = event.payload.text }\n}\n'
    )
    wf("deploy", "w.wf", "--url", pg_url)
    wf("start", "w", "--url", pg_url)
    payload = ("--correlate", "K", "--payload", '{"text": "hi"}', "--url", pg_url)
    done = wf("events", "send", "a.b", *payload)
    assert (done.code, done.err) == (0, "event 1: delivered to 1 instance\n")
    shown = json.loads(wf("show", "1", "--json", "--url", pg_url).out)
    assert shown["output"] == {"text": "hi"}


def test_an_event_that_nobody_takes_hints_at_its_type(wf: Wf, pg_url: str, tmp_path: Path) -> None:
    (tmp_path / "w.wf").write_text('workflow w { wait_event news on "a.news" }\n')
    wf("deploy", "w.wf", "--url", pg_url)
    done = wf("events", "send", "a.nwes", "--url", pg_url)
    assert done.code == 0
    assert done.err == (
        "event 1: kept; nothing waits for it yet\n"
        'hint: no deployed workflow takes events of type "a.nwes"; did you mean "a.news"?\n'
    )


def test_an_early_event_of_a_known_type_has_no_hint(wf: Wf, pg_url: str, tmp_path: Path) -> None:
    (tmp_path / "w.wf").write_text('workflow w { wait_event news on "a.news" }\n')
    wf("deploy", "w.wf", "--url", pg_url)
    done = wf("events", "send", "a.news", "--url", pg_url)
    assert done.err == "event 1: delivered to nobody, ignored by 1: wf events says why\n"


def test_a_duplicate_says_whether_it_is_the_same(wf: Wf, pg_url: str) -> None:
    event = ("events", "send", "a.b", "--key", "one", "--url", pg_url)
    wf(*event)
    assert wf(*event).err == "event 1: a duplicate, and without effect\n"
    assert wf(*event, "--payload", '{"a": 1}').err == (
        "event 1: a duplicate, and without effect; its type, key or payload differs from the"
        " first one's\n"
    )


def test_the_same_event_again_is_a_duplicate(wf: Wf, pg_url: str) -> None:
    event = ("events", "send", "a.b", "--key", "one", "--json", "--url", pg_url)
    reports = [json.loads(wf(*event).out) for _ in range(2)]
    assert [report["duplicate"] for report in reports] == [False, True]


def test_numbers_stay_as_they_were_written(wf: Wf, pg_url: str, tmp_path: Path) -> None:
    (tmp_path / "n.wf").write_text("workflow n { input { x : number } output { x = var.x } }\n")
    wf("deploy", "n.wf", "--url", pg_url)
    context = '{"x": 12345678901234567890.10}'
    done = wf("start", "n", "--wait", "--context", context, "--json", "--url", pg_url)
    assert '"output":{"x":12345678901234567890.10}' in done.out

"""`wf gateway` as a process: where it listens, how it ends, two of them on one database."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.conftest import Running, serve
from tests.runtime_sql import drive
from wfsql.cli.main import main
from wfsql.gateway.settings import Address, Settings, parse_address, unsafe_reason


@dataclass
class Process:
    """A gateway's process and where it listens."""

    process: subprocess.Popen[str]
    url: str

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)


@contextlib.contextmanager
def started(database: str, *options: str) -> Iterator[Process]:
    command = [sys.executable, "-m", "wfsql", "gateway", "--listen", "127.0.0.1:0", *options]
    process = subprocess.Popen(
        command,
        env={**os.environ, "WF_URL": database},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"https?://\S+(?=;)", line)
        assert found, line + process.stderr.read()
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield Process(process, found[0])
    finally:
        process.kill()
        process.wait()


def poll(gateway: Running, url: str, worker: str, seconds: int) -> Any:
    answer = httpx.post(
        f"{url}/v1/workers/tasks/request",
        headers=gateway.worker(worker),
        json={"worker_id": worker, "wait_seconds": seconds},
        timeout=60,
    )
    return answer.json()


def wait_for_polls(url: str, count: int) -> None:
    give_up_at = time.monotonic() + 20
    while f"wf_gateway_polls_waiting {count}.0" not in httpx.get(f"{url}/metrics").text:
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def test_a_gateway_that_is_told_to_end_answers_its_polls_and_exits_with_0(
    gateway: Running,
) -> None:
    gateway.worker("w1")
    with started(gateway.database) as process, ThreadPoolExecutor() as threads:
        waiting = threads.submit(poll, gateway, process.url, "w1", 30)
        wait_for_polls(process.url, 1)
        began = time.monotonic()
        code = process.end()
        answer = waiting.result(5)

    assert answer == {"tasks": [], "desired_state": "ACTIVE", "command": "NONE"}
    assert code == 0
    assert time.monotonic() - began < 10


def test_a_result_in_hand_is_taken_before_the_end(gateway: Running) -> None:
    instance = gateway.start()
    task = gateway.claim()
    body = {"worker_id": "w1", "lease_token": task["lease_token"], "result_code": 0}
    with started(gateway.database) as process, ThreadPoolExecutor() as threads:
        with drive.connect(gateway.database) as connection, connection.transaction():
            connection.execute(
                "select 1 from wf.workflow_instance where workflow_instance_id = %s for update",
                (instance,),
            )
            submit = threads.submit(
                httpx.post,
                f"{process.url}/v1/workers/tasks/{task['task_id']}/submit",
                headers=gateway.worker(),
                json=body,
                timeout=60,
            )
            give_up_at = time.monotonic() + 20
            while not is_blocked(gateway.database):
                assert time.monotonic() < give_up_at
            process.process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                process.process.wait(0.5)
        answer = submit.result(20)
        code = process.process.wait(20)

    assert answer.json()["reason"] == "OK"
    assert code == 0


def is_blocked(database: str) -> bool:
    with drive.connect(database) as connection:
        row = connection.execute(
            "select exists (select 1 from pg_locks as l where not l.granted)"
        ).fetchone()
    return row == (True,)


def test_it_ends_when_its_stdin_does(gateway: Running) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "wfsql", "gateway", "--listen", "127.0.0.1:0", "--end-with-stdin"],
        env={**os.environ, "WF_URL": gateway.database},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stdin is not None
        assert "listens on" in process.stderr.readline()
        process.stdin.close()
        try:
            assert process.wait(20) == 0
        finally:
            process.kill()


def test_two_gateways_serve_one_database(gateway: Running) -> None:
    other = serve(gateway.database, Settings(listen=(Address("127.0.0.1", 0),), pool_size=2))
    try:
        gateway.worker("w1")
        gateway.worker("w2")
        with ThreadPoolExecutor() as threads:
            polls = [
                threads.submit(poll, gateway, other.url, "w1", 20),
                threads.submit(poll, gateway, gateway.url, "w2", 20),
            ]
            wait_for_polls(other.url, 1)
            wait_for_polls(gateway.url, 1)
            instances = {gateway.start(), gateway.start()}
            claimed = {p.result(30)["tasks"][0]["instance_id"] for p in polls}
    finally:
        other.client.close()
        other.stop()

    assert claimed == instances


def test_a_task_of_one_gateway_is_handed_in_through_another(gateway: Running) -> None:
    other = serve(gateway.database, Settings(listen=(Address("127.0.0.1", 0),), pool_size=2))
    try:
        gateway.start()
        task = gateway.claim()
        answer = httpx.post(
            f"{other.url}/v1/workers/tasks/{task['task_id']}/submit",
            headers=gateway.worker(),
            json={"worker_id": "w1", "lease_token": task["lease_token"], "result_code": 0},
        )
        again = gateway.call(task, "submit", result_code=0)
    finally:
        other.client.close()
        other.stop()

    assert answer.json()["reason"] == "OK"
    assert again.json()["reason"] == "REPEATED"


# Where it listens ----------------------------------------------------------------------------


def run(database: str, *options: str) -> int:
    return main(["gateway", "--url", database, *options])


def test_it_does_not_listen_wider_unencrypted(
    gateway: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.key("reader")

    assert run(gateway.database, "--listen", "0.0.0.0:0") == 2
    assert "unencrypted" in capsys.readouterr().err


def test_it_does_not_listen_wider_without_a_key(
    gateway: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(gateway.database, "--listen", "0.0.0.0:0", "--behind-proxy") == 1
    assert "no key" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--tls-cert", "x.pem"], ["--listen", "nowhere:x"]])
def test_options_that_make_no_sense_are_wrong_use(
    gateway: Running, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(gateway.database, *options) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_port_in_use_is_said_so(gateway: Running, capsys: pytest.CaptureFixture[str]) -> None:
    taken = httpx.URL(gateway.url).port

    assert run(gateway.database, "--listen", f"127.0.0.1:{taken}") == 1
    assert "address already in use" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", Address("127.0.0.1", 80)),
        ("[::1]:80", Address("::1", 80)),
        ("[::1]", Address("::1", 8470)),
        ("localhost", Address("localhost", 8470)),
        (":9000", Address("0.0.0.0", 9000)),
        ("::1:80", None),
        ("host:", None),
        ("host:x", None),
        ("8471", None),
        ("a b:8471", None),
        ("[1::2::3]:8471", None),
        ("host:99999", None),
    ],
)
def test_an_address_is_read(text: str, address: Address | None) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    ("settings", "keys", "is_safe"),
    [
        ({"listen": (Address("::1", 1),)}, 0, True),
        ({"listen": (Address("10.0.0.1", 1),)}, 5, False),
        ({"listen": (Address("::", 1),), "behind_proxy": True}, 0, False),
        ({"listen": (Address("::", 1),), "behind_proxy": True}, 1, True),
        ({"listen": (Address("::", 1),), "tls_cert": Path("x")}, 1, True),
        ({"listen": (Address("example.org", 1),)}, 1, False),
    ],
)
def test_what_is_safe_to_listen_on(settings: dict[str, Any], keys: int, is_safe: bool) -> None:
    assert (unsafe_reason(Settings(**settings), keys) is None) == is_safe


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    openssl = "/usr/bin/openssl"
    if not Path(openssl).exists():
        pytest.skip("no openssl here to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
        f" -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {cert}".split(),
        check=True,
        capture_output=True,
    )
    return cert, key


def test_a_certificate_that_is_none_is_wrong_use(
    certificate: tuple[Path, Path],
) -> None:
    _cert, key = certificate
    for pair in ((key, key), (Path(__file__), key)):
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "wfsql",
                    "gateway",
                    "--url",
                    "postgresql://nobody@nowhere/x",
                ),
                *("--tls-cert", str(pair[0]), "--tls-key", str(pair[1])),
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2
        assert "are no certificate and its key" in done.stderr
        assert done.stderr.count("\n") == 2


def test_it_speaks_tls(gateway: Running, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with started(gateway.database, "--tls-cert", str(cert), "--tls-key", str(key)) as process:
        trust = ssl.create_default_context(cafile=str(cert))
        assert process.url.startswith("https://127.0.0.1:")
        assert httpx.get(f"{process.url}/healthz", verify=trust).status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(process.url.replace("https", "http") + "/healthz")
        assert process.end() == 0


# Keys ----------------------------------------------------------------------------------------


def wf(database: str, *arguments: str) -> int:
    return main([*arguments, "--url", database])


def test_a_key_is_made_shown_once_listed_and_revoked(
    gateway: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    database = gateway.database
    assert wf(database, "key", "create", "ci", "--role", "reader", "--expires", "90d") == 0
    key = capsys.readouterr().out.strip()
    assert re.fullmatch(r"wf_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", key)
    headers = {"Authorization": f"Bearer {key}"}
    assert gateway.client.get("/v1/instances", headers=headers).status_code == 200

    assert wf(database, "key", "ls") == 0
    listed = capsys.readouterr().out
    assert "ci" in listed
    assert "live" in listed
    assert key.rpartition("_")[2] not in listed

    assert wf(database, "key", "revoke", "ci") == 0
    assert wf(database, "key", "revoke", "ci") == 1
    capsys.readouterr()
    assert wf(database, "key", "ls", "--all", "--json") == 0
    assert '"is_live":false' in capsys.readouterr().out.replace(" ", "")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 2),
        (["--role", "owner"], 2),
        (["--role", "reader", "--expires", "soon"], 2),
        (["--role", "event_source"], 2),
        (["--role", "reader", "--capability", "a"], 2),
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(
    gateway: Running, options: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wf(gateway.database, "key", "create", "ci", *options) == code
    assert capsys.readouterr().err.startswith("error: ")
    assert wf(gateway.database, "key", "ls", "--all") == 0
    assert "no keys" in capsys.readouterr().err

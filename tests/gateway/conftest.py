"""A gateway for each file of tests, over a database with two workflows in it.

`gateway` runs uvicorn in a thread on a free port of 127.0.0.1 and begins each test with no
instance, worker or key; `serve` starts others. Requests go through httpx, except where a client
must misbehave.
"""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from runtime_sql.gateway_client import GatewayClient, KeyGrant, connect_gateway
from tests.runtime_sql import drive
from wfsql.gateway.app import GatewayApp
from wfsql.gateway.keys import new_key
from wfsql.gateway.log import new_logger
from wfsql.gateway.server import new_server, open_sockets
from wfsql.gateway.settings import Address, Settings

if TYPE_CHECKING:
    from wfsql.embedded import EmbeddedServer

_numbers = count(1)
_RUN_TIME = """wf.workflow_instance, wf.execution_context, wf.node_execution, wf.node_attempt,
    wf.scope, wf.scope_variable, wf.affinity, wf.task, wf.join_counter, wf.loop_state,
    wf.pending_end, wf.timer, wf.event_wait, wf.worker, wf.event, wf.event_route,
    wf.event_delivery, wf.api_key, wf.execution_scope, wf.execution_scope_action_entry"""

FLOW = """
    workflow pair {
      input { amount : number = 1 }
      action first = t.do(amount: var.amount)
      action second = t.do()
    }
"""
WAITS = """
    workflow waits {
      wait_event bell on "bell" { correlate "k" }
    }
"""


@dataclass
class Running:
    """A gateway that runs, and what a test needs to speak to it."""

    url: str
    database: str
    app: GatewayApp
    log: io.StringIO
    stop: Callable[[], None]
    client: httpx.Client
    keys: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)

    def key(self, role: str, **grant: Any) -> str:
        """A key with a role, made when it is first asked for."""
        name = f"{role}-{len(self.keys)}" if grant else role
        if name not in self.keys:
            given: dict[str, Any] = grant
            if role == "event_source":
                given = {"source": "shop", "event_types": ("bell", "ring"), **grant}
            if role == "enroll":
                given = {"capabilities": ("*",), **grant}
            with_client(
                self.database,
                lambda client, key: client.create_api_key(
                    key, KeyGrant(name=name, roles=(role,), **given)
                ),
                key := new_key(),
            )
            self.keys[name] = key
        return self.keys[name]

    def as_key(self, role: str, **grant: Any) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key(role, **grant)}"}

    def worker(self, name: str = "w1", capabilities: tuple[str, ...] = ("*",)) -> dict[str, str]:
        """The headers of a worker, enrolled when it is first asked for."""
        if name not in self.tokens:
            token = new_key()
            answer = self.client.post(
                "/v1/workers/enroll",
                headers=self.as_key("enroll"),
                json={
                    "worker_id": name,
                    "worker_token": token,
                    "capabilities": list(capabilities),
                },
            )
            assert answer.status_code == 200, answer.text
            self.tokens[name] = token
        return {"Authorization": f"Bearer {self.tokens[name]}"}

    def start(self, workflow: str = "pair", **more: Any) -> int:
        answer = self.client.post(
            "/v1/instances", headers=self.as_key("operator"), json={"workflow": workflow, **more}
        )
        assert answer.status_code == 201, answer.text
        return int(answer.json()["instance_id"])

    def request(self, worker: str = "w1", **more: Any) -> Any:
        answer = self.client.post(
            "/v1/workers/tasks/request",
            headers=self.worker(worker),
            json={"worker_id": worker, **more},
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def claim(self, worker: str = "w1") -> Any:
        [task] = self.request(worker)["tasks"]
        return task

    def call(self, task: Any, what: str, worker: str = "w1", **more: Any) -> httpx.Response:
        return self.client.post(
            f"/v1/workers/tasks/{task['task_id']}/{what}",
            headers=self.worker(worker),
            json={"worker_id": worker, "lease_token": task["lease_token"], **more},
        )


def with_client(database: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """The answer of a call that the database must not refuse."""
    client = connect_gateway(database)
    assert not hasattr(client, "message"), client
    try:
        answer = call(client, *arguments)
        assert not hasattr(answer, "message"), answer
        return answer
    finally:
        client.close()  # type: ignore[union-attr]


def serve(
    database: str,
    settings: Settings | None = None,
    connect: Callable[[], GatewayClient] | None = None,
) -> Running:
    """Starts a gateway in a thread; returns when it listens."""
    chosen = settings or Settings(listen=(Address("127.0.0.1", 0),), pool_size=4)
    sockets = open_sockets(chosen.listen)
    port = sockets[0].getsockname()[1]
    log = io.StringIO()
    app = GatewayApp(connect or (lambda: connect_gateway(database)), chosen, new_logger(log))
    started = threading.Event()
    server = new_server(app, chosen, started.set)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets)), daemon=True)
    thread.start()
    assert started.wait(10)
    url = f"http://127.0.0.1:{port}"

    def stop() -> None:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()

    client = httpx.Client(base_url=url, timeout=40)
    return Running(url, database, app, log, stop, client)


@pytest.fixture(scope="module")
def database(
    pg_server: EmbeddedServer, pg_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a database with the workflows `pair` and `waits`."""
    name = f"gateway_{os.getpid()}_{next(_numbers)}"
    url = pg_server.create_database(name, pg_template)
    with drive.connect(url) as connection:
        for text in (FLOW, WAITS):
            folder = tmp_path_factory.mktemp("flow")
            drive.deploy(connection, drive.compile_text(folder, text))
    yield url
    pg_server.drop_database(name)


@pytest.fixture(scope="module")
def served(database: str) -> Iterator[Running]:
    """A gateway for all tests of a file."""
    running = serve(database)
    try:
        yield running
    finally:
        running.client.close()
        running.stop()


@pytest.fixture
def gateway(served: Running) -> Running:
    """The gateway of the file, its database as if nothing had happened."""
    reset(served)
    return served


def reset(running: Running) -> None:
    """Removes every instance, event, worker and key."""
    with drive.connect(running.database) as connection:
        connection.execute(f"truncate {_RUN_TIME} cascade".encode())
    running.keys.clear()
    running.tokens.clear()
    running.log.truncate(0)
    running.log.seek(0)

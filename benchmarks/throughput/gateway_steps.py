"""One worker that speaks to a gateway: claims and submits over one connection that is kept.

Flow: `python -m benchmarks.throughput.gateway_steps JSON` prints `ready`, waits for the line `go`,
works, and at the line `stop` prints a `Report` with how long the claims took that found work. It
uses the standard library's client, so that little of what is measured is the client's.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.measure import BenchmarkError
from benchmarks.throughput.steps import TOKEN, listen


@dataclass(frozen=True, slots=True)
class Orders:
    """`wait_seconds`: of a long poll. `pace_seconds`: from claim to claim, 0 for no pause."""

    host: str
    port: int
    worker: str
    batch: int
    wait_seconds: int = 1
    pace_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """Steps that were accepted, when the last submit was answered, ms of each claim with work."""

    steps: int
    last_at: float
    claims_ms: tuple[float, ...]


class Caller:
    """A connection to the gateway."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=60)
        self._headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._connection.request("POST", path, json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise BenchmarkError(f"{path}: {answer.status} {text[:200]!r}")
        found: dict[str, Any] = json.loads(text)
        return found


def main(orders: Orders) -> None:
    stop = threading.Event()
    caller = Caller(orders.host, orders.port)
    print("ready", flush=True)
    sys.stdin.readline()
    threading.Thread(target=listen, args=(stop,), daemon=True).start()
    print(json.dumps(asdict(_work(caller, orders, stop))), flush=True)


def _work(caller: Caller, orders: Orders, stop: threading.Event) -> Report:
    steps, last_at = 0, time.time()
    claims: list[float] = []
    due = time.perf_counter()
    while not stop.is_set():
        began = time.perf_counter()
        tasks = _claim(caller, orders)
        if not tasks:
            continue
        claims.append(1000 * (time.perf_counter() - began))
        steps += _submit(caller, orders, tasks)
        last_at = time.time()
        due += orders.pace_seconds
        stop.wait(max(0.0, due - time.perf_counter()) if orders.pace_seconds else 0)
    return Report(steps, last_at, tuple(claims))


def _claim(caller: Caller, orders: Orders) -> list[dict[str, Any]]:
    body = {
        "worker_id": orders.worker,
        "max_tasks": orders.batch,
        "lease_seconds": 300,
        "wait_seconds": orders.wait_seconds,
    }
    tasks: list[dict[str, Any]] = caller.post("/v1/workers/tasks/request", body)["tasks"]
    return tasks


def _submit(caller: Caller, orders: Orders, tasks: list[dict[str, Any]]) -> int:
    """Hands the results in; one goes by the call for one."""
    done = {"result_code": 0, "output": {"ok": True}}
    results = [{k: task[k] for k in ("task_id", "lease_token")} | done for task in tasks]
    if orders.batch == 1:
        (result,) = results
        task_id = result.pop("task_id")
        path = f"/v1/workers/tasks/{task_id}/submit"
        return int(caller.post(path, {"worker_id": orders.worker, **result})["accepted"])
    body = {"worker_id": orders.worker, "results": results}
    answers = caller.post("/v1/workers/tasks/submit", body)["answers"]
    return sum(bool(answer["accepted"]) for answer in answers)


if __name__ == "__main__":
    main(Orders(**json.loads(sys.argv[1])))

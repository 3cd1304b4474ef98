"""The faults. Each is a function that breaks the scene while a workload runs, and mends it.

A fault calls `load.end()` when it is over; what it has seen it returns as a sentence for the
report.
`SHORT` and `LONG` say how long each form lasts.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import httpx
import psutil

from tests.faults import workload
from tests.faults.scene import POOL_SIZE, Scene, Side, is_ready, wait_for
from tests.faults.wires import Wire
from tests.faults.workload import Workload

SLOW_CLIENTS = 2000
_SUBMIT_AT_GATEWAY = b"/submit"
_SUBMIT_AT_DATABASE = b"sp_worker_submit_result"


@dataclass(frozen=True, slots=True)
class Fault:
    """`seconds`: how long it lasts; None where it is a moment. `title` is for the report."""

    name: str
    title: str
    make: Callable[[Scene, Workload, float], str]
    seconds: float = 0.0


# Kills ------------------------------------------------------------------------------------------


def kill_worker(scene: Scene, load: Workload, _seconds: float) -> str:
    """kill -9 of a worker while its handler runs; another of its name is started at the end."""
    victim = scene.sides[0].workers[0]
    wait_for(
        lambda: scene.effects.in_hand(victim.name), "the victim has a task in hand", look=0.001
    )
    load.begin()
    victim.kill()
    scene.effects.forget(victim.name)
    load.end()
    wait_for(lambda: _have_results(scene, load), "the tasks of the victim are done by others")
    victim.start()
    return "others took what it had in hand when the leases had ended"


def kill_gateway(scene: Scene, load: Workload, seconds: float) -> str:
    """kill -9 of a gateway when a submit has just reached it; it is started again."""
    side = scene.sides[0]
    _when_passed(side.to_gateway, _SUBMIT_AT_GATEWAY)
    load.begin()
    side.gateway.kill()
    time.sleep(seconds)
    side.gateway.start()
    load.end()
    return "its workers tried again until it was back, those of the other gateway went on"


def kill_database(scene: Scene, load: Workload, seconds: float) -> str:
    """kill -9 of all of PostgreSQL when a submit has just reached it; it is started again."""
    _when_passed(scene.sides[0].to_database, _SUBMIT_AT_DATABASE)
    load.begin()
    scene.kill_database()
    time.sleep(seconds)
    scene.restart_database()
    load.end()
    took = load.ended_at - load.began_at
    return f"it answered again after {took:.1f} s; workers kept their results until then"


# The network ------------------------------------------------------------------------------------


def cut_workers(scene: Scene, load: Workload, seconds: float) -> str:
    """Connections of two workers to their gateway are reset, and no new ones come about."""
    scene.sides[0].to_gateway.cut()
    time.sleep(seconds)
    scene.sides[0].to_gateway.mend()
    load.end()
    return "results stayed with the two workers and were handed in afterwards"


def stall_workers(scene: Scene, load: Workload, seconds: float) -> str:
    """No byte passes between two workers and their gateway."""
    scene.sides[0].to_gateway.stall()
    time.sleep(seconds)
    scene.sides[0].to_gateway.mend()
    load.end()
    return "the others took what the two workers had, when the leases had ended"


def lose_workers(scene: Scene, load: Workload, seconds: float) -> str:
    """The same, and the connections of the time stay dead without a word."""
    scene.sides[0].to_gateway.stall()
    time.sleep(seconds)
    scene.sides[0].to_gateway.mend(forget=True)
    load.end()
    names = [worker.name for worker in scene.sides[0].workers]
    wait_for(lambda: _are_back(scene, load, names), "the workers are back", 150, 1.0)
    took = time.time() - load.ended_at
    return f"as above; the two workers gave their dead connections up after {took:.0f} s"


def cut_database(scene: Scene, load: Workload, seconds: float) -> str:
    """Connections of one gateway to PostgreSQL are reset, and no new ones come about."""
    scene.sides[0].to_database.cut()
    time.sleep(seconds)
    scene.sides[0].to_database.mend()
    load.end()
    return "the gateway answered 503, its workers tried again"


def stall_database(scene: Scene, load: Workload, seconds: float) -> str:
    """No byte passes between one gateway and PostgreSQL."""
    scene.sides[0].to_database.stall()
    time.sleep(seconds)
    scene.sides[0].to_database.mend()
    load.end()
    return "the gateway's calls hung and went on; leases ended meanwhile, others took the tasks"


# Too much ---------------------------------------------------------------------------------------


def slow_clients(scene: Scene, load: Workload, seconds: float) -> str:
    """Two thousand clients that never finish a head or a body, while workers go on."""
    side = scene.sides[0]
    heads, bodies = SLOW_CLIENTS // 2, SLOW_CLIENTS // 2
    # Before they come: on a busy machine the work may be done when the last of them is there.
    done = load.accepted_count()
    with ExitStack() as opened:
        clients = [_slow_client(opened, side, half_body=False) for _ in range(heads)]
        clients += [
            _slow_client(opened, side, half_body=True, key=scene.keys.everyday.read_text().strip())
            for _ in range(bodies)
        ]
        load.begin()
        began = time.monotonic()
        assert is_ready(side)
        took = time.monotonic() - began
        wait_for(lambda: load.accepted_count() > done, "workers go on beside them")
        gone = 0
        until = time.monotonic() + seconds
        while time.monotonic() < until and gone < len(clients):
            time.sleep(0.5)
            gone = sum(_is_closed(client) for client in clients)
        load.end()
    said = f"; {gone} were hung up on within {seconds:.0f} s" if seconds >= 35 else ""
    return f"/readyz took {took * 1000:.0f} ms just after they had come{said}"


def exhaust_pool(scene: Scene, load: Workload, seconds: float) -> str:
    """A lock in the database holds every call up, and readers ask for more."""
    side = scene.sides[0]
    key = scene.keys.everyday.read_text().strip()
    headers = {"Authorization": f"Bearer {key}"}
    statuses: Counter[int] = Counter()
    over = threading.Event()

    def read() -> None:
        with httpx.Client(headers=headers, timeout=60) as client:
            while not over.is_set():
                statuses[client.get(f"{side.url}/v1/instances").status_code] += 1
                over.wait(0.1)

    with scene.connect() as holder, ThreadPoolExecutor(3 * POOL_SIZE) as readers:
        holder.execute("begin; lock table wf.workflow_instance in access exclusive mode")
        for _ in range(3 * POOL_SIZE):
            readers.submit(read)
        time.sleep(seconds)
        holder.execute("commit")
        load.end()
        over.set()
    assert statuses[503] > 0, statuses
    assert set(statuses) <= {200, 503}, statuses
    return f"{statuses[503]} calls were answered 503 after 2 s; heartbeats waited, so leases ended"


def full_disk(scene: Scene, load: Workload, seconds: float) -> str:
    """Two workers can write no file, and their gateway is out of reach."""
    side = scene.sides[0]
    before = sum(worker.says("cannot be kept on disk") for worker in side.workers)
    limited = []
    for worker in side.workers:
        assert worker.process is not None
        process = psutil.Process(worker.process.pid)
        limited.append((process, process.rlimit(psutil.RLIMIT_FSIZE)))
        process.rlimit(psutil.RLIMIT_FSIZE, (0, limited[-1][1][1]))
    side.to_gateway.cut()
    time.sleep(seconds)
    side.to_gateway.mend()
    load.end()
    said = sum(worker.says("cannot be kept on disk") for worker in side.workers) - before
    for process, limits in limited:
        process.rlimit(psutil.RLIMIT_FSIZE, limits)
    assert said > 0
    return "the workers said so and kept results in memory"


# ------------------------------------------------------------------------------------------------


def _when_passed(wire: Wire, text: bytes) -> None:
    """Returns when a wire has passed on bytes with that text."""
    passed = threading.Event()

    def watch(data: bytes) -> None:
        if text in data:
            passed.set()

    wire.watch = watch
    try:
        assert passed.wait(30), f"nothing with {text.decode()} has passed"
    finally:
        wire.watch = None


def _have_results(scene: Scene, load: Workload) -> bool:
    [(count,)] = scene.ask(
        "select count(*) from wf.task as t where t.node_execution_id = any (%s)",
        list(load.in_hand),
    )
    return bool(count == 0)


def _are_back(scene: Scene, load: Workload, names: list[str]) -> bool:
    """Whether all these workers have begun something since the fault; sees that there is work."""
    load.instances |= workload.start(scene, len(scene.workers)).instances
    begun = {effect.worker for effect in scene.effects.begun if effect.at > load.ended_at}
    return begun.issuperset(names)


def _slow_client(opened: ExitStack, side: Side, *, half_body: bool, key: str = "") -> socket.socket:
    client = opened.enter_context(socket.create_connection(("127.0.0.1", side.port), 30))
    head = "POST /v1/instances HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    if half_body:
        head += f"Authorization: Bearer {key}\r\nContent-Length: 1000\r\n\r\n" + '{"workflow": "f'
    client.sendall(head.encode())
    client.setblocking(False)
    return client


def _is_closed(client: socket.socket) -> bool:
    """Whether the gateway has answered and hung up; reads what it has said."""
    with suppress(BlockingIOError):
        try:
            while client.recv(4096):
                pass
        except ConnectionError:
            pass
        return True
    return False


_LIST = (
    ("kill a worker", "`kill -9` of a worker in a task", kill_worker, 0, 0),
    ("kill a gateway", "`kill -9` of a gateway in a submit; start after {}", kill_gateway, 0.5, 5),
    (
        "kill the database",
        "`kill -9` of PostgreSQL in a commit; start after {}",
        kill_database,
        0.5,
        5,
    ),
    ("cut workers", "worker–gateway cut for {}", cut_workers, 1, 3),
    ("stall workers", "worker–gateway silent for {}", stall_workers, 4, 15),
    ("cut the database", "gateway–database cut for {}", cut_database, 1, 3),
    ("stall the database", "gateway–database silent for {}", stall_database, 4, 15),
    ("slow clients", "2 000 slow clients at a gateway", slow_clients, 1, 40),
    ("exhaust the pool", "the pool exhausted for {}", exhaust_pool, 3, 10),
    ("fill the disk", "workers cannot write to disk, gateway away for {}", full_disk, 1, 3),
    # The last: its workers are away for a while afterwards.
    ("lose workers", "worker–gateway silent for {}, connections lost", lose_workers, None, 15),
)


def _faults(column: int) -> tuple[Fault, ...]:
    found = []
    for row in _LIST:
        name, title, make = row[:3]
        seconds = row[column]
        if seconds is not None:
            found.append(Fault(name, title.format(f"{seconds:g} s"), make, seconds))
    return tuple(found)


SHORT = _faults(3)
LONG = _faults(4)

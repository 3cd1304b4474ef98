"""Many idle long polls on a gateway: one connection each, asked again when its wait is over.

Flow: `python -m benchmarks.throughput.polls JSON` opens them, prints `ready`, and at the second
line of its input prints how many answers came, then ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass

from benchmarks.throughput.steps import TOKEN

WAIT_SECONDS = 30
_AGAIN_SECONDS = 0.5


@dataclass(slots=True)
class Seen:
    """What came back: answers with nothing, and refusals of too many at once, which come again."""

    answered: int = 0
    refused: int = 0


def main(host: str, port: int, workers: list[str]) -> None:
    print(json.dumps(asyncio.run(_hold(host, port, workers))), flush=True)


async def _hold(host: str, port: int, workers: list[str]) -> dict[str, int]:
    seen = Seen()
    polls = [asyncio.create_task(_poll(host, port, worker, seen)) for worker in workers]
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    for _line in range(2):
        await loop.run_in_executor(None, sys.stdin.readline)
    broken = [poll.exception() for poll in polls if poll.done()]
    for poll in polls:
        poll.cancel()
    if broken:
        raise SystemExit(f"{len(broken)} polls ended: {broken[0]}")
    return {"waiting": len(polls), "answered": seen.answered, "refused": seen.refused}


async def _poll(host: str, port: int, worker: str, seen: Seen) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    body = json.dumps({"worker_id": worker, "wait_seconds": WAIT_SECONDS}).encode()
    head = (
        f"POST /v1/workers/tasks/request HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    while True:
        writer.write(head.encode() + body)
        status = await _answer(reader)
        if " 503 " in status:
            seen.refused += 1
            await asyncio.sleep(_AGAIN_SECONDS)
        elif " 200 " in status:
            seen.answered += 1
        else:
            raise ConnectionError(status or "closed")


async def _answer(reader: asyncio.StreamReader) -> str:
    """Reads one answer; returns its first line."""
    status = await reader.readline()
    length = 0
    while (line := await reader.readline()).strip():
        name, _colon, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    await reader.readexactly(length)
    return status.decode().strip()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))

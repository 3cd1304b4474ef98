"""A gateway that is played: it answers as it is told, and keeps what it was asked.

For answers that a real gateway does not give, or not when a test wants it to.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request: `body` is its text."""

    method: str
    path: str
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Played:
    """`answer` is asked for each request, and may wait."""

    url: str = ""
    answer: Callable[[Asked], Answer] = lambda _asked: Answer()
    asked: list[Asked] = field(default_factory=list)
    server: Any = None

    def bodies(self, end: str) -> list[Any]:
        return [asked.json for asked in self.asked if asked.path.endswith(end)]


def problem(status: int, code: int | str, detail: str, **headers: str) -> Answer:
    document = {"title": "no", "status": status, "code": code, "detail": detail}
    return Answer(status, document, {name.replace("_", "-"): v for name, v in headers.items()})


@contextmanager
def playing(context: Any = None) -> Iterator[Played]:
    """Runs one on a free port; `context` makes it speak TLS."""
    played = Played()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode()
            asked = Asked(self.command, self.path, dict(self.headers), body)
            played.asked.append(asked)
            answer = played.answer(asked)
            text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = _do  # noqa: N815

        def log_message(self, *_arguments: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    played.server = server
    played.url = f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield played
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""Tasks over HTTP, from a gateway (docs/worker-protocol.md).

Two clients with connections that are kept: one for requests, which wait at the gateway, one for
everything else. JSON is read and written with exact numbers; an output's text goes in as it is.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, TypeVar

from compiler import json_values
from runtime_sql.connection import Claim, Submitted, Task
from wfsql.worker.source import REFUSED_TOKEN, Finished, Trouble

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

LONGEST_WAIT_SECONDS = 30
_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 60.0
# A refusal that comes so soon after a renewal is about the token before it.
_RENEWAL_SECONDS = 5.0
# What a gateway, or a proxy before it, says when the same call may succeed later.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_NOT_ALLOWED = 20008
_CODES = {401: REFUSED_TOKEN, 403: REFUSED_TOKEN, 404: 20002, 409: 20003, 413: 20005}


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """Where a gateway is, and how to trust it: a file of certificates beside the system's."""

    url: str
    ca_file: str | None = None

    def context(self) -> ssl.SSLContext:
        """Returns how TLS is checked.

        Raises:
          OSError: the file cannot be read, or holds no certificates.
        """
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.ca_file is not None:
            context.load_verify_locations(self.ca_file)
        return context


class GatewaySource:
    """A `TaskSource` over HTTP.

    After a refused token `renewed` is asked for another (None: there is none), the call is made
    again under it, and `on_token` hears of it.
    """

    longest_wait_seconds = LONGEST_WAIT_SECONDS

    def __init__(
        self,
        address: GatewayAddress,
        worker_id: str,
        token: str,
        lease_seconds: int,
        renewed: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds
        self._renewed = renewed
        self.on_token: Callable[[str], None] | None = None
        self._lock = Lock()
        self._interrupted = Event()
        self._socket: Any = None
        self._renewed_until = 0.0
        self.token = token
        self._polls = _client(address)
        self._calls = _client(address)

    def request(self, max_tasks: int, wait_seconds: int) -> Claim | Trouble:
        import httpx

        answer = self._post(
            "/v1/workers/tasks/request",
            self._body(
                max_tasks=max_tasks, lease_seconds=self._lease_seconds, wait_seconds=wait_seconds
            ),
            client=self._polls,
            timeout=httpx.Timeout(_ANSWER_SECONDS + wait_seconds, connect=_CONNECT_SECONDS),
            extensions={"trace": self._note_socket},
        )
        if isinstance(answer, Trouble):
            return answer
        return _read(answer, _claim)

    def submit(self, results: Sequence[Finished]) -> Sequence[Submitted | Trouble] | Trouble:
        if len(results) == 1:
            [one] = results
            answer = self._post(
                f"/v1/workers/tasks/{one.task_id}/submit",
                f"{self._body(lease_token=one.lease_token)[:-1]}, {_result(one)}}}",
            )
            if isinstance(answer, Trouble):
                return answer
            read = _read(answer, _submitted)
            return read if isinstance(read, Trouble) else [read]
        items = ", ".join(
            f'{{"task_id": {done.task_id}, "lease_token": {done.lease_token}, {_result(done)}}}'
            for done in results
        )
        answer = self._post(
            "/v1/workers/tasks/submit", f'{self._body()[:-1]}, "results": [{items}]}}'
        )
        if isinstance(answer, Trouble):
            return answer
        return _read(answer, lambda found: _answers(found, len(results)))

    def fail(self, task_id: int, lease_token: int, code: int, message: str) -> Submitted | Trouble:
        answer = self._post(
            f"/v1/workers/tasks/{task_id}/fail",
            self._body(lease_token=lease_token, result_code=code, message=message),
        )
        return answer if isinstance(answer, Trouble) else _read(answer, _submitted)

    def release(self, task_id: int, lease_token: int) -> Trouble | None:
        answer = self._post(
            f"/v1/workers/tasks/{task_id}/release", self._body(lease_token=lease_token)
        )
        return answer if isinstance(answer, Trouble) else None

    def actions(self) -> Mapping[str, str] | Trouble:
        answer = self._under_token(
            lambda token: self._calls.get(
                "/v1/actions",
                headers={"Authorization": f"Bearer {token}", "X-Worker-Id": self._worker_id},
            )
        )
        return answer if isinstance(answer, Trouble) else _read(answer, _actions)

    def enroll(self, key: str, capabilities: Sequence[str], concurrency: int) -> Trouble | None:
        """Makes this worker known under its token; `key` is an API key of role enroll."""
        answer = self._post(
            "/v1/workers/enroll",
            self._body(
                worker_token=self.token,
                capabilities=list(capabilities),
                max_concurrency=concurrency,
            ),
            bearer=key,
        )
        return answer if isinstance(answer, Trouble) else None

    def actions_for_key(self, key: str) -> Mapping[str, str] | Trouble:
        """Does as `actions` before there is a worker, with an API key."""
        answer = self._send(
            lambda: self._calls.get("/v1/actions", headers={"Authorization": f"Bearer {key}"})
        )
        return answer if isinstance(answer, Trouble) else _read(answer, _actions)

    def renew(self) -> bool:
        with self._lock:
            # Several threads may have been refused with the token before the current one.
            if time.monotonic() < self._renewed_until:
                return True
            token = self._renewed()
            if token is None or token == self.token:
                return False
            self.token = token
            if self.on_token is not None:
                self.on_token(token)
            self._renewed_until = time.monotonic() + _RENEWAL_SECONDS
            return True

    def interrupt(self) -> None:
        self._interrupted.set()
        found = self._socket
        if found is not None:
            # Whoever waits for it wakes up; an error says that it was closed meanwhile.
            with suppress(OSError):
                found.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._polls.close()
        self._calls.close()

    # ----------------------------------------------------------------------------------------------

    def _body(self, **members: object) -> str:
        return json.dumps({"worker_id": self._worker_id, **members})

    def _note_socket(self, name: str, info: dict[str, Any]) -> None:
        """Keeps the socket of the waiting request, so that `interrupt` can close it."""
        import httpx

        if name in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._socket = info["return_value"].get_extra_info("socket")
        if self._interrupted.is_set():
            raise httpx.ReadError("interrupted")

    def _post(
        self,
        path: str,
        body: str,
        *,
        client: httpx.Client | None = None,
        bearer: str | None = None,
        **options: Any,
    ) -> Any | Trouble:
        chosen = client or self._calls

        def post(token: str) -> httpx.Response:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            return chosen.post(path, content=body.encode(), headers=headers, **options)

        return self._send(lambda: post(bearer)) if bearer else self._under_token(post)

    def _under_token(self, call: Callable[[str], httpx.Response]) -> Any | Trouble:
        answer = self._send(lambda: call(self.token))
        is_refused = isinstance(answer, Trouble) and answer.code == REFUSED_TOKEN
        return self._send(lambda: call(self.token)) if is_refused and self.renew() else answer

    def _send(self, call: Callable[[], httpx.Response]) -> Any | Trouble:
        import httpx

        try:
            response = call()
        except httpx.TransportError as error:
            return Trouble(
                f"the gateway cannot be reached: {error or type(error).__name__}",
                "check --gateway, and that the gateway runs",
                passing=True,
            )
        except RuntimeError as error:  # the client was closed under a call
            return Trouble(f"the gateway cannot be reached: {error}", passing=True)
        if response.status_code >= 300:
            return _problem(response)
        try:
            return json_values.read_stored(response.text)
        except ValueError:
            return _strange(f"answered {response.status_code} with what is no JSON")


def _client(address: GatewayAddress) -> httpx.Client:
    import httpx

    return httpx.Client(
        base_url=address.url,
        verify=address.context() if address.url.startswith("https:") else False,
        timeout=httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
        headers={"Accept": "application/json", "User-Agent": "wfsql-worker"},
    )


def _problem(response: httpx.Response) -> Trouble:
    """Reads a problem document (RFC 9457)."""
    status = response.status_code
    try:
        document = json.loads(response.text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return _strange(f"answered {status}")
    said = document.get("detail") or document.get("title") or f"HTTP {status}"
    if status in _PASSING:
        return Trouble(
            f"the gateway is not ready: {said}",
            passing=True,
            after_seconds=_seconds(response.headers.get("retry-after")),
        )
    code = document.get("code")
    number = code if type(code) is int else _CODES.get(status, 0)
    return Trouble(str(said), _hint(number, code), number)


def _hint(number: int, code: object) -> str | None:
    """Returns what to do about a token or key that is not taken."""
    if number == _NOT_ALLOWED or code == "role":
        return "make a key for these capabilities: wf key create NAME --role enroll --capability …"
    if number == REFUSED_TOKEN:
        return (
            "check the key (--enroll-key-file or WF_API_KEY) or the worker's token (--token-file or"
            " WF_WORKER_TOKEN), and that they are of this gateway's database: wf key ls --all"
        )
    return None


def _seconds(text: str | None) -> float:
    """Reads Retry-After; a date there is taken for the usual second."""
    if text is None:
        return 0.0
    return min(float(text), 60.0) if text.strip().isdigit() else 1.0


def _strange(what: str) -> Trouble:
    """Something else answers in the gateway's place, for now; no result is given up for that."""
    return Trouble(
        f"what stands at the gateway's address {what}", "check the URL of --gateway", passing=True
    )


def _read(document: Any, read: Callable[[Any], T]) -> T | Trouble:
    """Takes an answer apart; one of another shape is not from a gateway of ours."""
    try:
        return read(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return _strange(f"answered in another form: {type(error).__name__} {error}")


def _result(done: Finished) -> str:
    output = "null" if done.output_json is None else done.output_json
    return f'"result_code": {done.code}, "message": {json.dumps(done.message)}, "output": {output}'


def _claim(document: Any) -> Claim:
    return Claim(tuple(map(_task, document["tasks"])), document.get("command") or "NONE")


def _task(found: Any) -> Task:
    return Task(
        execution_id=found["task_id"],
        instance_id=found["instance_id"],
        node_key=found["node_key"],
        action=found["action"],
        capability=found["capability"],
        attempt=found["attempt"],
        input_json=json_values.dumps(found["input"]),
        iteration_no=found.get("iteration_no"),
        lease_token=found["lease_token"],
        lease_until=_time(found.get("lease_until")),
        deadline=_time(found.get("deadline")),
        path=found["path"],
        trace_parent=found.get("trace_parent"),
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _submitted(found: Any) -> Submitted:
    return Submitted(
        found["accepted"],
        found.get("instance_status"),
        found.get("next_ready_count") or 0,
        found["reason"],
    )


def _answers(document: Any, count: int) -> list[Submitted | Trouble]:
    answers = [_answer(found) for found in document["answers"]]
    if len(answers) != count:
        raise ValueError(f"{len(answers)} answers for {count} results")
    return answers


def _answer(found: Any) -> Submitted | Trouble:
    problem = found.get("problem")
    if problem is None:
        return _submitted(found)
    code = problem.get("code")
    passing = problem.get("status") in _PASSING
    return Trouble(
        str(problem.get("detail") or problem.get("title")),
        code=None if passing else code if type(code) is int else 0,
        passing=passing,
    )


def _actions(document: Any) -> dict[str, str]:
    return {row["action"]: row["capability"] for row in document["actions"]}

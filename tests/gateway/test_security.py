"""Who may not call what: a problem document, and nothing has changed."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from runtime_sql.gateway_client import KeyGrant
from tests.gateway.conftest import Running, with_client
from tests.runtime_sql import bad_input, drive
from wfsql.gateway.app import OPERATIONS
from wfsql.gateway.keys import new_key
from wfsql.gateway.operations import Operation

PROTECTED = [o for o in OPERATIONS if o.caller not in ("anybody", "monitor")]
BODIES: dict[str, dict[str, Any]] = {
    "enroll_worker": {
        "worker_id": "w2",
        "worker_token": "t" * 43,
        "capabilities": ["a"],
        "max_concurrency": 1,
    },
    "request_tasks": {
        "worker_id": "w1",
        "capability": "t",
        "max_tasks": 1,
        "lease_seconds": 60,
        "wait_seconds": 0,
    },
    "submit_results": {
        "worker_id": "w1",
        "results": [{"task_id": 1, "lease_token": 1, "result_code": 0}],
    },
    "extend_leases": {
        "worker_id": "w1",
        "extend_seconds": 60,
        "leases": [{"task_id": 1, "lease_token": 1}],
    },
    "submit_result": {
        "worker_id": "w1",
        "lease_token": 1,
        "result_code": 0,
        "output": {},
        "message": "m",
    },
    "extend_lease": {"worker_id": "w1", "lease_token": 1, "extend_seconds": 60},
    "fail_task": {"worker_id": "w1", "lease_token": 1, "result_code": -1, "message": "m"},
    "release_task": {"worker_id": "w1", "lease_token": 1},
    "send_event": {
        "event_type": "bell",
        "source": "shop",
        "idempotency_key": "e",
        "payload": {},
        "correlation_key": "k",
        "occurred_at_utc": "2026-01-01T00:00:00Z",
    },
    "start_instance": {
        "workflow": "pair",
        "context": {},
        "version": 1,
        "business_key": "b",
        "priority": 0,
    },
    "cancel_instance": {"reason": "r"},
    "pause_instance": {},
    "resume_instance": {},
    "retry_instance": {},
}
WITH_BODY = [o for o in OPERATIONS if o.body is not None]


def path_of(operation: Operation, ident: int = 1) -> str:
    path = operation.path.replace("{task_id}", str(ident))
    return path.replace("{instance_id}", str(ident))


def call(
    gateway: Running, operation: Operation, headers: dict[str, str], **more: Any
) -> httpx.Response:
    body = BODIES.get(operation.name)
    if body is not None and not more:
        more = {"json": body}
    return gateway.client.request(operation.method, path_of(operation), headers=headers, **more)


def good_headers(gateway: Running, operation: Operation) -> dict[str, str]:
    if operation.caller == "key":
        return gateway.as_key(sorted(operation.roles)[0])
    return gateway.worker()


def assert_problem(answer: httpx.Response, status: int, code: int | str | None = None) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert set(document) - {"errors"} == {
        "type",
        "title",
        "status",
        "detail",
        "instance",
        "code",
        "request_id",
    }
    assert document["status"] == status
    assert document["request_id"] == answer.headers["x-request-id"]
    assert "Traceback" not in answer.text
    if code is not None:
        assert document["code"] == code


def by_name(operation: Operation) -> str:
    return operation.name


def dump(gateway: Running) -> dict[str, str]:
    with drive.connect(gateway.database) as connection:
        found = bad_input.dump(connection)
    # That somebody was heard of, or connected, is no change.
    for name in ("worker_presence", "worker", "worker_token", "worker_capability"):
        found.pop(name)
    return found


@pytest.mark.parametrize("operation", PROTECTED, ids=by_name)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Basic dTpw"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer " + "x" * 300},
        {"Authorization": "Bearer wf_0123456789ab_" + "A" * 43},
    ],
    ids=["none", "basic", "empty", "long", "unknown"],
)
def test_nobody_calls_without_a_token_that_is_known(
    gateway: Running, operation: Operation, headers: dict[str, str]
) -> None:
    before = dump(gateway)

    answer = call(gateway, operation, headers)

    assert_problem(answer, 401, 20001)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert dump(gateway) == before


@pytest.mark.parametrize(
    ("operation", "role"),
    [
        (operation, role)
        for operation in OPERATIONS
        if operation.caller == "key"
        for role in ("author", "operator", "reader", "event_source", "enroll")
        if role not in operation.roles
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_a_key_without_the_role_is_refused(
    gateway: Running, operation: Operation, role: str
) -> None:
    headers = gateway.as_key(role)
    before = dump(gateway)

    assert_problem(call(gateway, operation, headers), 403, "role")
    assert dump(gateway) == before


def test_a_workers_token_is_no_key_and_a_key_no_workers_token(gateway: Running) -> None:
    assert_problem(gateway.client.get("/v1/instances", headers=gateway.worker()), 401)
    answer = gateway.client.post(
        "/v1/workers/tasks/request",
        headers=gateway.as_key("operator"),
        json={"worker_id": "w1"},
    )
    assert_problem(answer, 401)


def test_a_token_belongs_to_one_worker(gateway: Running) -> None:
    gateway.worker("w2")
    answer = gateway.client.post(
        "/v1/workers/tasks/request", headers=gateway.worker("w1"), json={"worker_id": "w2"}
    )
    assert_problem(answer, 401, 20001)


@pytest.mark.parametrize("worker_id", ["w2", "nobody", "", b"\xff"])
def test_the_actions_are_not_shown_under_another_name(gateway: Running, worker_id: Any) -> None:
    gateway.worker("w2")
    headers = {**gateway.worker("w1"), "X-Worker-Id": worker_id}
    assert_problem(gateway.client.get("/v1/actions", headers=headers), 401, 20001)


@pytest.mark.parametrize(
    ("what", "more"),
    [
        ("submit", {"result_code": 0}),
        ("fail", {"result_code": -1, "message": "m"}),
        ("release", {}),
    ],
)
def test_a_task_of_another_worker_is_not_touched(
    gateway: Running, what: str, more: dict[str, Any]
) -> None:
    gateway.start()
    task = gateway.claim("w1")
    gateway.worker("w2")
    before = dump(gateway)

    answer = gateway.call(task, what, worker="w2", **more)

    assert (answer.status_code, answer.json()["accepted"]) == (200, False)
    assert answer.json()["reason"] == "STALE"
    assert dump(gateway) == before


def test_a_heartbeat_for_another_workers_task_changes_nothing(gateway: Running) -> None:
    gateway.start()
    task = gateway.claim("w1")
    gateway.worker("w2")
    before = dump(gateway)

    answer = gateway.call(task, "heartbeat", worker="w2", extend_seconds=86400)

    assert (answer.status_code, answer.json()["rows_updated"]) == (200, 0)
    assert dump(gateway) == before


def expired(gateway: Running) -> str:
    """A key that was good and is not any more."""
    key = new_key()
    grant = KeyGrant(name="old", roles=("reader",))
    with_client(gateway.database, lambda client: client.create_api_key(key, grant))
    with drive.connect(gateway.database) as connection:
        connection.execute("update wf.api_key set expires_at = wf.wf_now() where name = 'old'")
    return key


def test_an_expired_key_is_refused(gateway: Running) -> None:
    headers = {"Authorization": f"Bearer {expired(gateway)}"}

    assert_problem(gateway.client.get("/v1/instances", headers=headers), 401, 20001)


def test_a_revoked_key_is_refused_once_it_is_forgotten(gateway: Running) -> None:
    headers = gateway.as_key("reader")
    assert gateway.client.get("/v1/instances", headers=headers).status_code == 200
    with_client(
        gateway.database,
        lambda client: client.revoke_api_key(client.list_api_keys()[0].key_id),
    )
    for digest, (_until, owner) in gateway.app.gateway.keys._known.items():
        gateway.app.gateway.keys._known[digest] = (time.monotonic(), owner)

    assert_problem(gateway.client.get("/v1/instances", headers=headers), 401, 20001)


def test_a_revoked_worker_token_is_refused_at_once(gateway: Running) -> None:
    gateway.start()
    task = gateway.claim()
    with_client(gateway.database, lambda client: client.revoke_worker_token("w1"))

    assert_problem(gateway.call(task, "submit", result_code=0), 401, 20001)


@pytest.mark.parametrize(
    ("change", "code"),
    [({"source": "other"}, "source"), ({"event_type": "other"}, "event_type")],
)
def test_an_event_beyond_the_key_is_refused(
    gateway: Running, change: dict[str, str], code: str
) -> None:
    headers = gateway.as_key("event_source")
    before = dump(gateway)

    answer = gateway.client.post(
        "/v1/events", headers=headers, json={**BODIES["send_event"], **change}
    )

    assert_problem(answer, 403, code)
    assert dump(gateway) == before


def test_a_key_enrolls_no_worker_beyond_its_capabilities(gateway: Running) -> None:
    headers = gateway.as_key("enroll", capabilities=("a",))
    body = {**BODIES["enroll_worker"], "capabilities": ["a", "b"]}

    assert_problem(
        gateway.client.post("/v1/workers/enroll", headers=headers, json=body), 403, 20008
    )


# Bodies --------------------------------------------------------------------------------------


def fields() -> list[tuple[Operation, str]]:
    return [(o, name) for o in WITH_BODY for name in (o.body.model_fields if o.body else ())]


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        pair
        for pair in fields()
        if pair[0].body and pair[0].body.model_fields[pair[1]].is_required()
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_a_missing_field_is_named(gateway: Running, operation: Operation, name: str) -> None:
    body = {key: value for key, value in BODIES[operation.name].items() if key != name}

    answer = call(gateway, operation, good_headers(gateway, operation), json=body)

    assert_problem(answer, 400, 20004)
    assert answer.json()["errors"] == [{"pointer": f"/{name}", "message": "is missing"}]


@pytest.mark.parametrize("operation", WITH_BODY, ids=by_name)
def test_a_surplus_field_is_named(gateway: Running, operation: Operation) -> None:
    body = {**BODIES[operation.name], "sur/plus~": 1}

    answer = call(gateway, operation, good_headers(gateway, operation), json=body)

    assert_problem(answer, 400, 20004)
    assert answer.json()["errors"] == [
        {"pointer": "/sur~1plus~0", "message": "is no field of this body"}
    ]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("max_tasks", 1.5, "must be a whole number"),
        ("max_tasks", "1", "must be a whole number"),
        ("max_tasks", 101, "must be at most 100"),
        ("worker_id", 7, "must be a string"),
        ("worker_id", "", "must have at least 1 character"),
        ("worker_id", " x", "must hold no control character, and no space at either end"),
    ],
)
def test_a_misfit_is_told_in_our_words(
    gateway: Running, field: str, value: Any, message: str
) -> None:
    operation = next(each for each in WITH_BODY if each.name == "request_tasks")
    body = {**BODIES[operation.name], field: value}
    answer = call(gateway, operation, good_headers(gateway, operation), json=body)
    assert answer.json()["errors"] == [{"pointer": f"/{field}", "message": message}]
    assert answer.json()["detail"].endswith(f": field {field} {message}")


def test_a_body_that_is_no_object_is_told_so(gateway: Running) -> None:
    operation = next(each for each in WITH_BODY if each.name == "request_tasks")
    answer = call(gateway, operation, good_headers(gateway, operation), json=[1])
    assert answer.json()["detail"].endswith(": it must be an object")


ANY_VALUE = {"output", "payload"}
WRONG: tuple[Any, ...] = (True, 1.5, "x" * 201, ["x"], {"x": 1}, -(2**70), 2**70, "1", "")
FITS: dict[str, tuple[type, ...]] = {
    "context": (dict,),
    "message": (str,),
    "payload_json": (),
    "reason": (str,),
}


def is_wrong(name: str, value: Any) -> bool:
    """Whether a field does not take a value, of those in WRONG."""
    if name in FITS:
        return not isinstance(value, FITS[name])
    if name == "worker_token":
        return not isinstance(value, str) or len(value) != 43
    texts = "worker_id capability event_type source idempotency_key correlation_key business_key"
    if name in texts.split() or name == "workflow":
        return not isinstance(value, str) or not 1 <= len(value) <= 200
    if name == "capabilities":
        return value != ["x"]
    return True


@pytest.mark.parametrize("operation", WITH_BODY, ids=by_name)
def test_fields_of_another_type_are_refused_and_change_nothing(
    gateway: Running, operation: Operation
) -> None:
    headers = good_headers(gateway, operation)
    before = dump(gateway)
    for name in BODIES[operation.name]:
        for value in WRONG:
            if name in ANY_VALUE or not is_wrong(name, value):
                continue
            body = {**BODIES[operation.name], name: value}
            answer = call(gateway, operation, headers, json=body)
            assert_problem(answer, 400)
            error = answer.json()["errors"][0]
            assert error["pointer"].startswith(f"/{name}"), (name, value)
            # In our words: nothing of the library that looks at bodies.
            assert error["message"].startswith("must "), error
            assert "{" not in error["message"], error
    assert dump(gateway) == before


RAW = {
    "nothing": b"",
    "no JSON": b"{",
    "an array": b"[]",
    "a text": b'"x"',
    "null": b"null",
    "two values": b"{} {}",
    "not UTF-8": b'{"worker_id": "\xff"}',
    "a mark before it": b"\xef\xbb\xbf{}",
    "NaN": b'{"worker_id": NaN}',
    "a key twice": b'{"worker_id": "w1", "worker_id": "w1"}',
    "U+0000": b'{"worker_id": "w\\u0000"}',
    "half a pair": b'{"worker_id": "\\ud800"}',
    "deep": b'{"worker_id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep and open": b"[" * 1_000_000,
    "a long number": b'{"worker_id": ' + b"9" * 100_000 + b"}",
    "a large exponent": b'{"worker_id": 1e999999999}',
    "many keys": b"{" + b",".join(b'"k%d":1' % n for n in range(50_000)) + b"}",
    "a long key": b'{"' + b"k" * 300 + b'": 1}',
}


@pytest.mark.parametrize("name", RAW)
def test_what_is_no_body_is_refused(gateway: Running, name: str) -> None:
    headers = {**gateway.worker(), "Content-Type": "application/json"}

    answer = gateway.client.post("/v1/workers/tasks/request", headers=headers, content=RAW[name])

    assert_problem(answer, 400)
    assert len(answer.content) < 4000


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Content-Type": "text/plain"}, 415, "content_type"),
        ({"Content-Type": ""}, 415, "content_type"),
        ({"Content-Encoding": "gzip"}, 415, "content_encoding"),
    ],
)
def test_another_form_of_content_is_refused(
    gateway: Running, headers: dict[str, str], status: int, code: str
) -> None:
    given = {"Content-Type": "application/json", **gateway.worker(), **headers}
    answer = gateway.client.post(
        "/v1/workers/tasks/request", headers=given, content=b'{"worker_id": "w1"}'
    )
    assert_problem(answer, status, code)


# Paths and names -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/",
        "/v1/instances/",
        "/v1//instances",
        "/V1/instances",
        "/v1/instances/1/",
        "/v1/instances/1/../2",
        "/v1/instances/1%2ftrace",
        "/v1/instances/..%2f..%2fetc%2fpasswd",
        "/v1/instances/1/trace/x",
        "/v1/instances/1;x=1",
        "/%2e%2e/metrics/x",
        "/metrics/",
        "/healthz%00",
        "/openapi.json/..",
    ],
)
def test_a_path_that_is_none_is_not_found(gateway: Running, path: str) -> None:
    # httpx would tidy the path up.
    url = httpx.URL(gateway.url).copy_with(raw_path=path.encode())
    answer = gateway.client.get(url, headers=gateway.as_key("reader"))

    assert_problem(answer, 404)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])
def test_another_method_is_refused(gateway: Running, method: str) -> None:
    answer = gateway.client.request(method, "/v1/instances", headers=gateway.as_key("reader"))

    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, POST"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.", "["])
def test_another_host_is_refused_on_loopback(gateway: Running, host: str) -> None:
    headers = {**gateway.as_key("reader"), "Host": host}

    assert_problem(gateway.client.get("/v1/instances", headers=headers), 421, "host")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:99", "127.0.0.1:1", "[::1]:8470", "[::1]"]
)
def test_local_names_are_answered(gateway: Running, host: str) -> None:
    assert gateway.client.get("/healthz", headers={"Host": host}).status_code == 200


# What is told --------------------------------------------------------------------------------


def test_a_request_keeps_its_id(gateway: Running) -> None:
    answer = gateway.client.get("/healthz", headers={"X-Request-Id": "order-7.a_b"})

    assert answer.headers["x-request-id"] == "order-7.a_b"


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "ä".encode(), "a\tb"])
def test_a_request_id_of_another_form_is_replaced(gateway: Running, given: Any) -> None:
    answer = gateway.client.get("/healthz", headers={"X-Request-Id": given})

    assert len(answer.headers["x-request-id"]) == 16


def test_nothing_secret_is_logged(gateway: Running) -> None:
    gateway.start(context={"amount": 471147114711})
    task = gateway.claim()
    gateway.call(task, "submit", result_code=0, output={"card": "secret-output"})
    gateway.client.get("/v1/instances?workflow=secret-query", headers=gateway.as_key("reader"))
    gateway.client.get(
        "/v1/instances", headers={"Authorization": "Bearer wf_0123456789ab_" + "S" * 43}
    )

    log = gateway.log.getvalue()

    assert '"who": "w1"' in log
    assert '"who": "operator"' in log
    for secret in (*gateway.keys.values(), *gateway.tokens.values()):
        assert secret not in log
        assert secret.rpartition("_")[2] not in log
    for secret in ("S" * 43, "secret-output", "secret-query", "471147114711"):
        assert secret not in log


def test_a_fault_shows_nothing_but_the_requests_id(gateway: Running) -> None:
    headers = gateway.as_key("reader")
    gateway.client.get("/v1/instances", headers=headers).raise_for_status()
    with drive.connect(gateway.database) as connection:
        connection.execute("alter view wf.v_instance rename column business_key to gone_column")
        try:
            answer = gateway.client.get("/v1/instances", headers=headers)
        finally:
            connection.execute("alter view wf.v_instance rename column gone_column to business_key")

    assert_problem(answer, 500, "fault")
    assert "business_key" not in answer.text
    assert answer.json()["request_id"] in gateway.log.getvalue()

"""What a gateway refuses, as RFC 9457 problem documents with our codes.

`Refusal` is raised anywhere below an operation and becomes the answer; nothing else that is raised
is shown to a client. `of_failure` is the one place that says which status a database's failure has.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from runtime_sql.failures import ApiError, Failure

Code = int | str

TITLES = {
    400: "the request is not right",
    401: "not authenticated",
    403: "not allowed",
    404: "not found",
    405: "method not allowed",
    408: "the request came too slowly",
    409: "not in this state",
    413: "too large",
    415: "not this form of content",
    421: "not this host",
    429: "too many requests",
    431: "the request's headers are too large",
    500: "a fault of the gateway",
    503: "not now",
}

_API_STATUS = {
    20001: 401,
    20002: 404,
    20003: 409,
    20004: 400,
    20005: 413,
    20006: 503,
    20007: 400,
    20008: 403,
    20009: 503,
    20010: 409,
}
RETRY_AFTER_SECONDS = 1
BEARER = ((b"www-authenticate", b"Bearer"),)


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong at one place of a body, by JSON pointer."""

    pointer: str
    message: str


class Refusal(Exception):
    """Ends a request with a problem document. `closes`: the connection cannot be used further."""

    def __init__(
        self,
        status: int,
        code: Code,
        detail: str,
        *,
        errors: tuple[FieldError, ...] = (),
        retry_after: int | None = None,
        closes: bool = False,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.retry_after = retry_after
        self.closes = closes
        self.headers = headers


def of_failure(failure: Failure) -> Refusal:
    """Returns the refusal for what a database answered, or for its not answering."""
    if isinstance(failure, ApiError):
        status = _API_STATUS.get(failure.code, 400)
        retry = RETRY_AFTER_SECONDS if status == 503 else None
        headers = BEARER if status == 401 else ()
        return Refusal(status, failure.code, failure.message, retry_after=retry, headers=headers)
    if failure.kind == "not_allowed":
        # The login's own name and the object stay in the log.
        return Refusal(500, "login_not_allowed", "the gateway's login may not do this")
    return Refusal(
        503,
        "database",
        "the database cannot be reached or cannot do it now; nothing is known of this request",
        retry_after=RETRY_AFTER_SECONDS,
    )


def bad_request(code: Code, detail: str, *errors: FieldError) -> Refusal:
    """Returns the refusal for a request that makes no sense."""
    return Refusal(400, code, detail, errors=errors)


def document(refusal: Refusal, path: str, request_id: str) -> bytes:
    """Returns the problem document; `path` is the request's, without its query."""
    word = str(refusal.code)
    body: dict[str, Any] = {
        "type": f"urn:wfsql:problem:{word}",
        "title": TITLES.get(refusal.status, "refused"),
        "status": refusal.status,
        "detail": refusal.detail,
        "instance": path,
        "code": refusal.code,
        "request_id": request_id,
    }
    if refusal.errors:
        body["errors"] = [{"pointer": e.pointer, "message": e.message} for e in refusal.errors]
    return json.dumps(body).encode()

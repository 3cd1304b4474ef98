"""Reading a request's body: bounded in size and time, then parsed as exact JSON (R6, R7).

The limit holds while the body streams in, so that nobody has to be believed about its length. A
large body is parsed in a thread, so that others are served meanwhile.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from compiler import json_values
from wfsql.gateway.problems import FieldError, Refusal, bad_request

Receive = Callable[[], Awaitable[Any]]
Model = TypeVar("Model", bound=BaseModel)

_THREAD_FROM_BYTES = 65536
_MOST_ERRORS = 20
# In our words, by pydantic's name of what is wrong; `{…}` is what it tells of it.
_MESSAGES = {
    "missing": "is missing",
    "extra_forbidden": "is no field of this body",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "list_type": "must be an array",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "literal_error": "must be one of {expected}",
    "string_unicode": "must hold whole characters only",
}


_WRONG_FORM = "the body has not the form that is asked for"


class ClientGone(Exception):
    """The client went away before its request was complete."""


def check_headers(headers: Mapping[bytes, bytes], max_bytes: int) -> None:
    """Refuses what can be refused before a body is read."""
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Refusal(415, "content_encoding", "a body must not be compressed", closes=True)
    kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    if kind != b"application/json":
        raise Refusal(415, "content_type", "a body must be application/json", closes=True)
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length[:20]) > max_bytes:
        raise _too_large(max_bytes)


async def read_body(receive: Receive, max_bytes: int, seconds: float) -> bytes:
    """Returns the whole body.

    Raises:
      Refusal: it is too large (413), or took too long (408); the connection is then closed.
    """
    message = await _next(receive, seconds)
    body: bytes = message.get("body", b"")
    if len(body) > max_bytes:
        raise _too_large(max_bytes)
    if not message.get("more_body"):
        return body
    return await _rest(receive, body, max_bytes, seconds)


async def _rest(receive: Receive, first: bytes, max_bytes: int, seconds: float) -> bytes:
    parts, size = [first], len(first)
    give_up_at = asyncio.get_running_loop().time() + seconds
    while True:
        left = give_up_at - asyncio.get_running_loop().time()
        message = await _next(receive, left)
        part = message.get("body", b"")
        size += len(part)
        if size > max_bytes:
            raise _too_large(max_bytes)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def _next(receive: Receive, seconds: float) -> Any:
    try:
        async with asyncio.timeout(seconds):
            message = await receive()
    except TimeoutError:
        raise Refusal(408, "slow", "the body came too slowly", closes=True) from None
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message


def _too_large(max_bytes: int) -> Refusal:
    return Refusal(413, 20005, f"a body may have {max_bytes} bytes", closes=True)


async def parse_body(body: bytes, model: type[Model]) -> Model:
    """Returns the body as a value of the model.

    Raises:
      Refusal: it is not JSON, holds what cannot be stored (10018), or has not the model's form.
    """
    if len(body) >= _THREAD_FROM_BYTES:
        return await asyncio.to_thread(_parsed, body, model)
    return _parsed(body, model)


def _parsed(body: bytes, model: type[Model]) -> Model:
    try:
        value = json_values.loads(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise bad_request("not_utf8", "the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise bad_request("not_json", f"the body is not JSON at character {error.pos}") from None
    except json_values.UnstorableValue as error:
        raise bad_request(error.code, str(error)) from None
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _misfit(error) from None


def _misfit(error: ValidationError) -> Refusal:
    found = error.errors(include_url=False, include_input=False)
    errors = tuple(FieldError(_pointer(each["loc"]), _words(each)) for each in found[:_MOST_ERRORS])
    return bad_request(20004, _WRONG_FORM + _first(errors[0]), *errors)


def _words(error: ErrorDetails) -> str:
    """Says what is wrong at a place; our own checks have said it in our words."""
    context = error.get("ctx", {})
    if error["type"] == "value_error":
        return str(context["error"])
    text = _MESSAGES.get(error["type"], "has not the form that is asked for")
    return (
        text.format(**context)
        .replace("at least 1 characters", "at least 1 character")
        .replace("at least 1 entries", "at least 1 entry")
    )


def _first(error: FieldError) -> str:
    """The first misfit as part of the detail, for clients that show no more than that."""
    name = error.pointer.lstrip("/").replace("/", ".")
    return f": field {name} {error.message}" if name else f": it {error.message}"


def _pointer(location: tuple[int | str, ...]) -> str:
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in location)
    return "".join(f"/{part[:100]}" for part in parts)

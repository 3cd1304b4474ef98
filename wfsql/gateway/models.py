"""The bodies of the API: what comes in is validated by these models, OpenAPI is written from all.

Nothing is converted on the way in: a number is no text, `1.0` is no integer, surplus fields are
refused. Answers are written by `answers.py`; a test holds them against these models.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

MAX_ID = 2**63 - 1
MAX_INT = 2**31 - 1


def _time(value: object) -> object:
    """Reads an RFC 3339 time; what is none is left for pydantic to refuse."""
    if not isinstance(value, str) or not 20 <= len(value) <= 40 or value[10] not in "Tt":
        raise ValueError("must be an RFC 3339 time, such as 2026-01-31T12:00:00Z")
    try:
        at = datetime.fromisoformat(value.replace("z", "Z"))
    except ValueError:
        raise ValueError("must be an RFC 3339 time, such as 2026-01-31T12:00:00Z") from None
    if at.tzinfo is None:
        raise ValueError("must name its zone, as in 2026-01-31T12:00:00Z")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("is out of range") from None


def _plain_key(value: str) -> str:
    if value != value.strip(" ") or any(ord(c) < 32 or 127 <= ord(c) < 160 for c in value):
        raise ValueError("must hold no control character, and no space at either end")
    return value


Key = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_plain_key)]
Id = Annotated[int, Field(ge=1, le=MAX_ID)]
LeaseToken = Annotated[int, Field(ge=0, le=MAX_ID)]
Code = Annotated[int, Field(ge=-(2**31), le=MAX_INT)]
Seconds = Annotated[int, Field(ge=1, le=86400)]
Time = Annotated[
    datetime,
    BeforeValidator(_time),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Json = Annotated[Any, WithJsonSchema({"description": "any JSON value"})]
JsonObject = Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]
Command = Literal["NONE", "DRAIN", "STOP"]
Reason = Literal["OK", "REPEATED", "STALE", "CANCELLED", "ENDED"]
DesiredState = Literal["ACTIVE", "DRAINING", "STOPPING"]
InstanceStatus = Literal["CREATED", "RUNNING", "PAUSED", "SUCCEEDED", "FAILED", "CANCELLED"]


class Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


# Workers -------------------------------------------------------------------------------------


class Enrolment(Body):
    worker_id: Key
    worker_token: Annotated[str, Field(min_length=20, max_length=200)]
    capabilities: Annotated[list[Key], Field(min_length=1, max_length=1000)]
    max_concurrency: Annotated[int, Field(ge=1, le=1000)] = 1


class Enrolled(Body):
    worker_id: Key
    capabilities: list[Key]
    max_concurrency: int


class TaskRequest(Body):
    worker_id: Key
    capability: Key | None = None
    max_tasks: Annotated[int, Field(ge=1, le=100)] = 1
    lease_seconds: Seconds = 60
    wait_seconds: Annotated[int, Field(ge=0, le=30)] = 0


class TaskOut(Body):
    task_id: Id
    instance_id: Id
    node_key: str
    action: str
    capability: str
    attempt: int
    input: Json
    iteration_no: int | None
    lease_token: LeaseToken
    lease_until: Time | None
    deadline: Time | None
    path: str
    trace_parent: str | None


class Tasks(Body):
    tasks: list[TaskOut]
    desired_state: DesiredState
    command: Command


class Submit(Body):
    worker_id: Key
    lease_token: LeaseToken
    result_code: Code
    output: Json = None
    message: str | None = None


class SubmitAnswer(Body):
    accepted: bool
    reason: Reason
    instance_status: InstanceStatus | None
    next_ready_count: int


class ResultIn(Body):
    task_id: Id
    lease_token: LeaseToken
    result_code: Code
    output: Json = None
    message: str | None = None


class SubmitMany(Body):
    worker_id: Key
    results: Annotated[list[ResultIn], Field(min_length=1, max_length=100)]


class ProblemOut(Body):
    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: int | str
    request_id: str
    errors: list[dict[str, str]] = []


class ShortProblem(Body):
    code: int | str
    detail: str


class ResultAnswer(Body):
    task_id: Id
    accepted: bool
    reason: Reason | None
    instance_status: InstanceStatus | None
    next_ready_count: int
    problem: ShortProblem | None = None


class SubmitManyAnswer(Body):
    answers: list[ResultAnswer]


class HeartbeatIn(Body):
    worker_id: Key
    lease_token: LeaseToken
    extend_seconds: Seconds = 60


class HeartbeatAnswer(Body):
    rows_updated: int
    desired_state: DesiredState
    command: Literal["NONE", "DRAIN", "STOP", "CANCEL"]


class LeaseIn(Body):
    task_id: Id
    lease_token: LeaseToken


class HeartbeatMany(Body):
    worker_id: Key
    extend_seconds: Seconds = 60
    leases: Annotated[list[LeaseIn], Field(min_length=1, max_length=100)]


class LeaseAnswer(Body):
    task_id: Id
    rows_updated: int
    desired_state: DesiredState | None
    command: Literal["NONE", "DRAIN", "STOP", "CANCEL"]
    problem: ShortProblem | None = None


class HeartbeatManyAnswer(Body):
    answers: list[LeaseAnswer]


class FailIn(Body):
    worker_id: Key
    lease_token: LeaseToken
    result_code: Code
    message: str


class ReleaseIn(Body):
    worker_id: Key
    lease_token: LeaseToken


class ReleaseAnswer(Body):
    accepted: bool
    reason: Literal["OK", "STALE"]


class ActionOut(Body):
    action: str
    capability: str


class Actions(Body):
    actions: list[ActionOut]


# Events and instances ------------------------------------------------------------------------


class EventIn(Body):
    """`payload` is the value; `payload_json` is the same as JSON text. At most one of them."""

    event_type: Key
    source: Key
    idempotency_key: Key
    payload: Json = None
    payload_json: str | None = None
    correlation_key: Key | None = None
    occurred_at_utc: Time | None = None

    @model_validator(mode="after")
    def _one_payload(self) -> EventIn:
        if self.payload is not None and self.payload_json is not None:
            raise ValueError("has both payload and payload_json, which exclude each other")
        return self


class EventAnswer(Body):
    event_id: Id
    duplicate: bool
    applied_count: int
    ignored_count: int
    differs: bool


class StartIn(Body):
    workflow: Annotated[str, Field(min_length=1, max_length=200)]
    context: JsonObject = {}
    version: Annotated[int, Field(ge=1, le=MAX_INT)] | None = None
    business_key: Key | None = None
    priority: Code = 0


class StartAnswer(Body):
    instance_id: Id
    version_id: Id
    created: bool
    status: InstanceStatus


class InstanceOut(Body):
    instance_id: Id
    workflow: str
    version: int
    status: InstanceStatus
    business_key: str | None
    created_at: Time
    started_at: Time | None
    ended_at: Time | None
    error_code: int | None
    engine_error_code: int | None
    error_message: str | None
    error_node: str | None
    error_path: str | None


class InstanceWithOutput(InstanceOut):
    output: Json


class Instances(Body):
    instances: list[InstanceOut]


class CancelIn(Body):
    reason: Annotated[str, Field(max_length=4000)] | None = None


class Nothing(Body):
    """An empty object."""


class StatusAnswer(Body):
    status: InstanceStatus


class RetryAnswer(Body):
    status: InstanceStatus
    retried_count: int


class Health(Body):
    status: Literal["ok"]


class Readiness(Body):
    status: Literal["ready"]
    runtime_version: int

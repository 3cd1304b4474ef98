"""What the owners of keys call: events, instances, and what operators do with them."""

from __future__ import annotations

import json
from typing import Any

from compiler import json_values
from runtime_sql.connection import Created, Instance
from runtime_sql.failures import ApiError, DatabaseProblem, Failure
from runtime_sql.gateway_client import Event, GatewayClient, KeyOwner
from runtime_sql.operator_rows import InstanceFilter
from wfsql.gateway import models
from wfsql.gateway.answers import RawJson, instance_answer, instance_with_output
from wfsql.gateway.operations import Call, Gateway, Operation, Parameter, Reply
from wfsql.gateway.problems import FieldError, Refusal, bad_request, of_failure

_STATUSES = ("CREATED", "RUNNING", "PAUSED", "SUCCEEDED", "FAILED", "CANCELLED")
_OPERATE = frozenset({"operator"})
_START = frozenset({"operator", "author"})
_LOOK = frozenset({"reader", "operator", "author"})


# Events --------------------------------------------------------------------------------------


async def send_event(gateway: Gateway, call: Call) -> Reply:
    body: models.EventIn = call.body
    assert call.owner is not None
    _check_event_scope(gateway, call.owner, body)
    event = Event(
        event_type=body.event_type,
        source=body.source,
        idempotency_key=body.idempotency_key,
        payload_json=_payload(body),
        correlation_key=body.correlation_key,
        occurred_at=body.occurred_at_utc,
    )
    answer = await gateway.pool.ask(lambda client: client.take_event(event))
    if isinstance(answer, ApiError | DatabaseProblem):
        gateway.metrics.events.labels("refused").inc()
        raise of_failure(answer)
    outcome = "applied" if answer.applied_count else "ignored" if answer.ignored_count else "kept"
    gateway.metrics.events.labels("duplicate" if answer.duplicate else outcome).inc()
    if answer.applied_count:
        gateway.hub.kick()
    return Reply(
        {
            "event_id": answer.event_id,
            "duplicate": answer.duplicate,
            "applied_count": answer.applied_count,
            "ignored_count": answer.ignored_count,
            "differs": answer.differs,
        },
        status=202,
    )


def _check_event_scope(gateway: Gateway, owner: KeyOwner, body: models.EventIn) -> None:
    if body.source != owner.source:
        gateway.metrics.events.labels("refused").inc()
        raise Refusal(403, "source", "the key may not send events of this source")
    if body.event_type not in owner.event_types:
        gateway.metrics.events.labels("refused").inc()
        raise Refusal(403, "event_type", "the key may not send events of this type")


def _payload(body: models.EventIn) -> str:
    if body.payload_json is None:
        return "{}" if body.payload is None else json_values.dumps(body.payload)
    try:
        return json_values.dumps(json_values.loads(body.payload_json))
    except json.JSONDecodeError:
        error = FieldError("/payload_json", "is not JSON")
        raise bad_request("not_json", "payload_json is not JSON", error) from None
    except json_values.UnstorableValue as error:
        raise bad_request(error.code, f"payload_json: {error}") from None


# Instances -----------------------------------------------------------------------------------


async def start_instance(gateway: Gateway, call: Call) -> Reply:
    body: models.StartIn = call.body
    context = json_values.dumps(body.context)

    def start(client: GatewayClient) -> tuple[Created, str] | Failure:
        made = client.create_and_start(
            body.workflow,
            context,
            version=body.version,
            business_key=body.business_key,
            priority=body.priority,
        )
        if not isinstance(made, Created):
            return made
        found = client.get_instance(made.instance_id)
        # It stands; that it cannot be looked at now must not make the caller start another.
        return made, found.status if isinstance(found, Instance) else "RUNNING"

    # Without a business key a second call would make a second instance.
    made, status = await gateway.pool.run(start, repeatable=body.business_key is not None)
    gateway.hub.kick()
    return Reply(
        {
            "instance_id": made.instance_id,
            "version_id": made.version_id,
            "created": made.created,
            "status": status,
        },
        status=201,
    )


async def list_instances(gateway: Gateway, call: Call) -> Reply:
    status = call.query.get("status")
    if status is not None and status not in _STATUSES:
        raise bad_request(20004, f"status must be one of {', '.join(_STATUSES)}")
    wanted = InstanceFilter(
        statuses=() if status is None else (status,),
        workflow=call.query.get("workflow"),
        before_id=call.number("before", None, 1, models.MAX_ID),
    )
    limit = call.number("limit", 100, 1, 1000) or 100
    found = await gateway.pool.run(lambda client: client.list_instances(wanted, limit))
    return Reply({"instances": [instance_answer(each) for each in found]})


async def get_instance(gateway: Gateway, call: Call) -> Reply:
    instance_id = call.id("instance_id")
    found = await gateway.pool.run(lambda client: client.get_instance(instance_id))
    return Reply(instance_with_output(found))


async def get_trace(gateway: Gateway, call: Call) -> Reply:
    instance_id = call.id("instance_id")
    return Reply(RawJson(await gateway.pool.run(lambda client: client.trace(instance_id))))


async def cancel_instance(gateway: Gateway, call: Call) -> Reply:
    instance_id = call.id("instance_id")
    reason = call.body.reason
    status = await gateway.pool.run(lambda client: client.cancel_instance(instance_id, reason))
    return Reply({"status": status})


async def pause_instance(gateway: Gateway, call: Call) -> Reply:
    instance_id = call.id("instance_id")
    return Reply(
        {"status": await gateway.pool.run(lambda client: client.pause_instance(instance_id))}
    )


async def resume_instance(gateway: Gateway, call: Call) -> Reply:
    instance_id = call.id("instance_id")
    status = await gateway.pool.run(lambda client: client.resume_instance(instance_id))
    gateway.hub.kick()
    return Reply({"status": status})


async def retry_instance(gateway: Gateway, call: Call) -> Reply:
    instance_id = call.id("instance_id")
    done = await gateway.pool.run(lambda client: client.retry_instance(instance_id))
    gateway.hub.kick()
    return Reply({"status": done.status, "retried_count": done.retried_count})


def _on_instance(name: str, what: str, summary: str, handler: Any, answer: Any) -> Operation:
    return Operation(
        name=name,
        method="POST",
        path=f"/v1/instances/{{instance_id}}/{what}",
        summary=summary,
        handler=handler,
        caller="key",
        roles=_OPERATE,
        body=models.CancelIn if what == "cancel" else models.Nothing,
        needs_body=False,
        answer=answer,
        refusals=(404, 409),
    )


_QUERY = (
    Parameter(
        name="status",
        description="only those in this status",
        schema={"type": "string", "enum": list(_STATUSES)},
    ),
    Parameter(
        name="workflow", description="only those of this workflow", schema={"type": "string"}
    ),
    Parameter(
        name="limit",
        description="at most so many",
        schema={"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    ),
    Parameter(
        name="before",
        description="only those older than the instance of this id",
        schema={"type": "integer", "minimum": 1},
    ),
)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="send_event",
        method="POST",
        path="/v1/events",
        summary="Hand in an event; a second one with the same source and key has no effect",
        handler=send_event,
        caller="key",
        roles=frozenset({"event_source"}),
        body=models.EventIn,
        answer=models.EventAnswer,
        status=202,
    ),
    Operation(
        name="start_instance",
        method="POST",
        path="/v1/instances",
        summary="Create and start an instance; with a business key a repeat finds the first",
        handler=start_instance,
        caller="key",
        roles=_START,
        body=models.StartIn,
        answer=models.StartAnswer,
        status=201,
        refusals=(404, 409),
    ),
    Operation(
        name="list_instances",
        method="GET",
        path="/v1/instances",
        summary="List instances, the newest first, without their outputs",
        handler=list_instances,
        caller="key",
        roles=_LOOK,
        answer=models.Instances,
        query=_QUERY,
    ),
    Operation(
        name="get_instance",
        method="GET",
        path="/v1/instances/{instance_id}",
        summary="One instance with its output",
        handler=get_instance,
        caller="key",
        roles=_LOOK,
        answer=models.InstanceWithOutput,
        refusals=(404,),
    ),
    Operation(
        name="get_trace",
        method="GET",
        path="/v1/instances/{instance_id}/trace",
        summary="The trace document of an instance",
        handler=get_trace,
        caller="key",
        roles=_LOOK,
        answer=None,
        refusals=(404,),
    ),
    _on_instance(
        "cancel_instance",
        "cancel",
        "End all that is open",
        cancel_instance,
        models.StatusAnswer,
    ),
    _on_instance(
        "pause_instance",
        "pause",
        "Let nothing be claimed and no timer act",
        pause_instance,
        models.StatusAnswer,
    ),
    _on_instance(
        "resume_instance",
        "resume",
        "End a pause",
        resume_instance,
        models.StatusAnswer,
    ),
    _on_instance(
        "retry_instance",
        "retry",
        "Try again what failed in a failed instance",
        retry_instance,
        models.RetryAnswer,
    ),
)
